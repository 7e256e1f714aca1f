/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs of a pool: what is queued for later begins by itself, and a job that hangs holds up none. */
#include "daemon/util/offload/pool.h"

#include <pthread.h>
#include <semaphore.h>
#include <string.h>
#include <unistd.h>

#include "daemon/util/sysops.h"
#include "tests/unit/unit.h"

#define MS UINT64_C(1000000)

enum { JOBS = 4 };

static uv_loop_t loop;
static uv_async_t wake;
static int wakes;
static struct offload_pool *pool;

static struct work {
	struct offload_job *job;
	sem_t *hangs; /* until it is posted; NULL = does not hang */
	int done;     /* times; __atomic */
	pthread_t thread;
} works[JOBS];
static sem_t go;

static int work(void *data)
{
	struct work *w = data;
	if (w->hangs) {
		sem_wait(w->hangs);
	}
	w->thread = pthread_self();
	__atomic_add_fetch(&w->done, 1, __ATOMIC_SEQ_CST);
	return 0;
}

static void release(void *data)
{
	(void)data;
}

static const struct offload_ops ops = {.work = work, .release = release};

static bool trivial(const void *data)
{
	(void)data;
	return true;
}

static void on_wake(uv_async_t *handle)
{
	(void)handle;
	wakes++;
}

static int done(int i)
{
	return __atomic_load_n(&works[i].done, __ATOMIC_SEQ_CST);
}

static void await_phase(int i, enum offload_phase phase)
{
	while (offload_job_phase(works[i].job) != phase) {
		usleep(1000);
	}
}

static void setup(void)
{
	const struct offload_pool_options options = {
		.wake = &wake, .threads_max = JOBS, .stack_bytes = (size_t)256 * 1024};
	wakes = 0;
	sem_init(&go, 0, 0);
	memset(works, 0, sizeof(works));
	ck_assert_int_eq(uv_loop_init(&loop), 0);
	ck_assert_int_eq(uv_async_init(&loop, &wake, on_wake), 0);
	ck_assert_int_eq(offload_pool_create(&options, &pool), 0);
	for (int i = 0; i < JOBS; i++) {
		ck_assert_int_eq(offload_job_create(pool, &ops, &works[i], &works[i].job), 0);
	}
}

static void teardown(void)
{
	offload_pool_wait(pool, 20000 * MS);
	for (int i = 0; i < JOBS; i++) {
		offload_job_detach(works[i].job, trivial);
		offload_job_unref(works[i].job);
	}
	offload_pool_detach(pool);
	uv_close((uv_handle_t *)&wake, NULL);
	uv_run(&loop, UV_RUN_DEFAULT);
	ck_assert_int_eq(uv_loop_close(&loop), 0);
}

/* A thread is there, and rests. */
static void have_a_thread(void)
{
	offload_job_queue(works[0].job, false);
	ck_assert_int_eq(offload_pool_dispatch_one(pool, false), 0);
	uv_run(&loop, UV_RUN_ONCE);
	ck_assert_int_eq(offload_job_accept(works[0].job), 0);
	wakes = works[0].done = 0;
}

static void queue_all_later(uint64_t at_ns, uint64_t now_ns)
{
	for (int i = 0; i < JOBS; i++) {
		offload_job_queue(works[i].job, true);
	}
	offload_pool_start_at(pool, at_ns, now_ns);
}

TEST_TIMEOUT(30);
FIXTURE(setup, teardown);

START_TEST(what_is_queued_for_later_begins_by_itself_and_wakes_the_loop_once)
{
	have_a_thread();
	for (uint64_t tick = 1; tick < 5; tick++) { /* on a clock of the caller's */
		queue_all_later(tick * 30 * MS, (tick - 1) * 30 * MS);
		uv_run(&loop, UV_RUN_ONCE);
		ck_assert_int_eq(wakes, (int)tick);
		for (int i = 0; i < JOBS; i++) {
			ck_assert_int_eq(done(i), (int)tick);
			ck_assert(pthread_equal(works[i].thread, works[0].thread));
			ck_assert_int_eq(offload_job_phase(works[i].job), OFFLOAD_DONE);
			ck_assert_int_eq(offload_job_accept(works[i].job), 0);
		}
	}
	ck_assert_uint_eq(offload_pool_threads(pool), 1);
}
END_TEST

START_TEST(nothing_begins_before_its_time_unless_it_is_dispatched)
{
	have_a_thread();
	queue_all_later(1000000 * MS, 0);
	ck_assert_int_eq(offload_pool_dispatch(pool), 0);
	offload_pool_wait(pool, 20000 * MS);
	usleep(10000);
	for (int i = 0; i < JOBS; i++) {
		ck_assert_int_eq(done(i), 0);
		ck_assert_int_eq(offload_job_phase(works[i].job), OFFLOAD_QUEUED);
	}
	ck_assert_int_eq(offload_pool_dispatch_one(pool, true), 0);
	for (int i = 0; i < JOBS; i++) {
		await_phase(i, OFFLOAD_DONE);
	}
}
END_TEST

START_TEST(an_earlier_start_takes_the_place_of_a_later_one)
{
	have_a_thread();
	queue_all_later(1000000 * MS, 0);
	usleep(5000);
	offload_pool_start_at(pool, MS, 0);
	for (int i = 0; i < JOBS; i++) {
		await_phase(i, OFFLOAD_DONE);
	}
}
END_TEST

START_TEST(others_do_what_is_behind_a_job_that_hangs)
{
	have_a_thread();
	works[0].hangs = &go;
	queue_all_later(MS, 0);
	await_phase(0, OFFLOAD_RUNNING);
	ck_assert(offload_pool_behind(pool));
	ck_assert_int_eq(done(1), 0);
	ck_assert_int_eq(offload_pool_dispatch(pool), 0);
	for (int i = 1; i < JOBS; i++) {
		await_phase(i, OFFLOAD_DONE);
	}
	ck_assert(!offload_pool_behind(pool));
	uv_run(&loop, UV_RUN_ONCE);
	ck_assert_int_ge(wakes, 1);
	sem_post(&go);
}
END_TEST

START_TEST(the_end_of_a_job_that_nobody_awaits_wakes_nobody)
{
	static const struct offload_ops unawaited = {
		.work = work, .release = release, .unawaited = true};
	struct offload_job *job;
	ck_assert_int_eq(offload_job_create(pool, &unawaited, &works[1], &job), 0);
	offload_job_queue(job, false);
	ck_assert(!offload_pool_behind(pool));
	ck_assert_int_eq(offload_pool_dispatch_one(pool, false), 0);
	offload_pool_wait(pool, 20000 * MS);
	uv_run(&loop, UV_RUN_NOWAIT);
	ck_assert_int_eq(done(1), 1);
	ck_assert_int_eq(wakes, 0);
	ck_assert_int_eq(offload_job_accept(job), 0);
	offload_job_queue(works[0].job, false); /* its end does */
	offload_job_queue(job, false);
	ck_assert(offload_pool_behind(pool));
	ck_assert_int_eq(offload_pool_dispatch_one(pool, false), 0);
	offload_pool_wait(pool, 20000 * MS);
	uv_run(&loop, UV_RUN_NOWAIT);
	ck_assert_int_eq(done(1), 2);
	ck_assert_int_eq(wakes, 1);
	ck_assert_int_eq(offload_job_accept(job), 0);
	ck_assert_int_eq(offload_job_accept(works[0].job), 0);
	/* nor does it hold up what a thread begins by itself, which it does every 30 ms */
	works[1].hangs = &go;
	offload_pool_start_at(pool, 1000000 * MS, 0);
	offload_pool_start_at(pool, 1000030 * MS, 0);
	offload_job_queue(job, true);
	offload_job_queue(works[0].job, true);
	offload_pool_start_at(pool, 30 * MS, 0);
	uv_run(&loop, UV_RUN_ONCE);
	ck_assert_int_eq(wakes, 2);
	ck_assert_int_eq(done(0), 2);
	ck_assert_int_eq(done(1), 2);
	sem_post(&go);
	offload_pool_wait(pool, 20000 * MS);
	uv_run(&loop, UV_RUN_NOWAIT);
	ck_assert_int_eq(done(1), 3);
	ck_assert_int_eq(wakes, 2);
	ck_assert(offload_job_detach(job, trivial));
	offload_job_unref(job);
}
END_TEST

START_TEST(a_job_that_waits_for_its_time_can_be_cancelled_or_abandoned)
{
	have_a_thread();
	queue_all_later(1000000 * MS, 0);
	offload_job_cancel(works[1].job);
	ck_assert_int_eq(offload_job_phase(works[1].job), OFFLOAD_IDLE);
	ck_assert(!offload_job_detach(works[2].job, NULL));
	ck_assert_int_eq(offload_pool_dispatch(pool), 0);
	await_phase(2, OFFLOAD_GONE);
	ck_assert_int_eq(done(2), 1); /* what is queued is done before its release */
	ck_assert_int_eq(done(1), 0);
}
END_TEST
