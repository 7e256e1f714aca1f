/* SPDX-License-Identifier: Apache-2.0 */
/* Work off the loop: its result comes once, and what was left behind is released. */
#include "daemon/util/offload/offload.h"

#include <errno.h>
#include <semaphore.h>
#include <stdlib.h>

#include "daemon/util/parse.h"
#include "tests/unit/unit.h"

static sem_t go, released;
static int calls, last_result;

static int work(void *data)
{
	sem_wait(&go);
	return *(int *)data;
}

static void on_done(void *ctx, int result, void *data)
{
	ck_assert_ptr_eq(ctx, &calls);
	ck_assert_int_eq(*(int *)data, result);
	calls++;
	last_result = result;
}

static void release(void *data)
{
	*(int *)data = 0;
	sem_post(&released);
}

static const struct offload_ops ops = {.work = work, .done = on_done, .release = release};

static void setup(void)
{
	sem_init(&go, 0, 0);
	sem_init(&released, 0, 0);
	calls = last_result = 0;
}

FIXTURE(setup, NULL);

START_TEST(a_result_comes_once_on_the_loop)
{
	uv_loop_t loop;
	struct offload *job;
	int data = -EIO;
	ck_assert_int_eq(uv_loop_init(&loop), 0);
	ck_assert_int_eq(offload_start(&loop, &ops, &data, &calls, &job), 0);
	uv_run(&loop, UV_RUN_NOWAIT);
	ck_assert_int_eq(calls, 0);
	sem_post(&go);
	uv_run(&loop, UV_RUN_DEFAULT);
	ck_assert_int_eq(calls, 1);
	ck_assert_int_eq(last_result, -EIO);
	ck_assert_int_eq(uv_loop_close(&loop), 0);
}
END_TEST

START_TEST(what_is_left_behind_ends_without_a_result_and_is_released)
{
	uv_loop_t loop;
	struct offload *job;
	int data = 7;
	ck_assert_int_eq(uv_loop_init(&loop), 0);
	ck_assert_int_eq(offload_start(&loop, &ops, &data, &calls, &job), 0);
	offload_detach(job);
	uv_run(&loop, UV_RUN_DEFAULT);
	ck_assert_int_eq(uv_loop_close(&loop), 0); /* nothing of it is the loop's */
	ck_assert_int_eq(data, 7);
	sem_post(&go);
	sem_wait(&released);
	ck_assert_int_eq(data, 0);
	ck_assert_int_eq(calls, 0);
}
END_TEST

START_TEST(what_is_left_after_its_end_is_released_too)
{
	uv_loop_t loop;
	struct offload *job;
	int data = 7, value;
	ck_assert_int_eq(uv_loop_init(&loop), 0);
	ck_assert_int_eq(offload_start(&loop, &ops, &data, &calls, &job), 0);
	sem_post(&go);
	while (sem_getvalue(&go, &value) == 0 && value > 0) {
	}
	offload_detach(job); /* it ends now, or just did */
	sem_wait(&released);
	uv_run(&loop, UV_RUN_DEFAULT);
	ck_assert_int_eq(calls, 0);
	ck_assert_int_eq(uv_loop_close(&loop), 0);
}
END_TEST

START_TEST(a_result_that_was_waited_for_comes_once)
{
	uv_loop_t loop;
	struct offload *job;
	int data = -EIO;
	ck_assert_int_eq(uv_loop_init(&loop), 0);
	ck_assert_int_eq(offload_start(&loop, &ops, &data, &calls, &job), 0);
	ck_assert(!offload_wait(job, 5));
	ck_assert_int_eq(calls, 0);
	sem_post(&go);
	ck_assert(offload_wait(job, 60000));
	ck_assert_int_eq(last_result, -EIO);
	uv_run(&loop, UV_RUN_DEFAULT);
	ck_assert_int_eq(calls, 1);
	ck_assert_int_eq(uv_loop_close(&loop), 0);
}
END_TEST

START_TEST(a_group_is_found_by_its_name)
{
	gid_t gid = 1;
	ck_assert_int_eq(parse_group("root", &gid), 0);
	ck_assert_uint_eq(gid, 0);
	gid = 77;
	ck_assert_int_eq(parse_group("no-such-group", &gid), -ENOENT);
	ck_assert_int_eq(parse_group("", &gid), -ENOENT);
	ck_assert_uint_eq(gid, 77);
}
END_TEST
