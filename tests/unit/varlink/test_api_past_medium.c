/* SPDX-License-Identifier: Apache-2.0 */
/* A medium that does not answer, and who waits for it. */
#include <semaphore.h>

#include "tests/unit/unit.h"
#include "tests/unit/varlink/past_fixture.h"

enum { NOW_S = 1700000000 };

static void start(void)
{
	fixture_open();
	past_open_file();
	past_boot(1, NOW_S - 40000, 17, 7200, 4, true);
	past_serve(2);
	fixture_serve();
}

static void end(void)
{
	archive_destroy(past.archive);
	f.core.archive = NULL;
	past_close_file();
	fixture_close();
}

static struct {
	int reads, cancels;
	struct archive_plan *plan;
} hung;

static int hung_read(void *ctx, struct archive_plan *plan, archive_read_done *done, void *user,
	struct archive_read **ret)
{
	(void)ctx;
	(void)done;
	(void)user;
	hung.reads++;
	hung.plan = plan;
	*ret = (struct archive_read *)&hung;
	return 0;
}

static void hung_cancel(struct archive_read *read)
{
	ck_assert_ptr_eq(read, &hung);
	archive_plan_destroy(hung.plan);
	hung.cancels++;
}

static int refused_read(void *ctx, struct archive_plan *plan, archive_read_done *done, void *user,
	struct archive_read **ret)
{
	(void)ctx;
	(void)plan;
	(void)done;
	(void)user;
	(void)ret;
	return -ENOSPC;
}

TEST_TIMEOUT(60);
FIXTURE(start, end);

/* Others are answered at once, the caller after 5 s: by live history, and a note. */
START_TEST(a_medium_that_hangs_costs_the_past_alone)
{
	static const struct archive_reader reader = {hung_read, hung_cancel, NULL};
	f.core.archive_reader = &reader;
	hung.reads = hung.cancels = 0;
	for (int more = 0; more < 2; more++) {
		uint64_t began_ns = sysops()->now_ns();
		int fd = client_open(), other = client_open();
		client_say(fd, more ? "{\"method\":\"io.edgeprof.GetHistory\",\"more\":true,"
				      "\"parameters\":{\"glob\":\"**\",\"from_us\":0}}"
				    : "{\"method\":\"io.edgeprof.GetHistory\","
				      "\"parameters\":{\"glob\":\"**\",\"from_us\":0}}");
		cJSON *quick = client_call(other, "ListBoots", NULL, "");
		ck_assert_uint_lt(sysops()->now_ns() - began_ns, 4 * (uint64_t)FIXTURE_SECOND);
		cJSON_Delete(quick);
		cJSON *reply = client_reply(fd, "GetHistory");
		ck_assert_uint_ge(sysops()->now_ns() - began_ns, 4 * (uint64_t)FIXTURE_SECOND);
		ck_assert_int_eq(hung.cancels, more + 1);
		int series = count(get(reply, "parameters"), "series");
		while (cJSON_IsTrue(cJSON_GetObjectItem(reply, "continues"))) { /* a slow machine */
			cJSON_Delete(reply);
			reply = client_reply(fd, "GetHistory");
			series += count(get(reply, "parameters"), "series");
		}
		ck_assert_int_eq(series, 1);
		ck_assert_str_eq(string(get(reply, "parameters"), "note"),
			"rows of the archive are missing: its medium does not answer");
		cJSON_Delete(reply);
		close(fd);
		close(other);
	}
	/* who goes away is forgotten */
	int fd = client_open();
	client_say(fd, "{\"method\":\"io.edgeprof.GetHistory\",\"more\":true,"
		       "\"parameters\":{\"glob\":\"**\",\"from_us\":0}}");
	while (hung.reads < 3) {
		uv_run(&f.loop, UV_RUN_ONCE);
	}
	shutdown(fd, SHUT_RDWR);
	close(fd);
	f.core.archive_reader = &(const struct archive_reader){refused_read, hung_cancel, NULL};
	cJSON *reply = ask("GetHistory", "{\"glob\":\"**\",\"from_us\":0}");
	ck_assert_str_eq(string(reply, "note"),
		"rows of the archive are missing: too many read it at this moment");
	cJSON_Delete(reply);
	f.core.archive_reader = &reader; /* of the read that still waits */
	while (hung.cancels < 3) {
		uv_run(&f.loop, UV_RUN_ONCE);
	}
}
END_TEST

static sem_t unplugged;
static int ended[64], ends;

static void plug(uv_work_t *work)
{
	(void)work;
	sem_wait(&unplugged);
}

static int unplugs;

static void no_more(uv_work_t *work, int status)
{
	(void)work;
	(void)status;
	unplugs++;
}

static void on_end(void *user, struct archive_plan *plan, int result)
{
	ck_assert_int_eq(result, 0);
	ck_assert_uint_eq(archive_plan_lost(plan), 0);
	ck_assert_uint_gt(archive_plan_series(plan), 0);
	ended[*(int *)user]++;
	ends++;
	archive_plan_destroy(plan);
}

static int begin_read(int *user, struct archive_read **ret)
{
	const struct archive_reader *reader = f.core.archive_reader;
	struct archive_plan *plan;
	ck_assert_int_eq(
		archive_plan_make(past.archive, "cpu/*", 0, INT64_MAX - 1, 0, 4096, &f.wall, &plan),
		0);
	int r = reader->read(reader->ctx, plan, on_end, user, ret);
	if (r < 0) {
		archive_plan_destroy(plan);
	}
	return r;
}

/* Two reads are under way, the others wait, and too many are refused. libuv's workers are busy all
 * the time: reads do not need them. */
START_TEST(reads_wait_for_their_turn)
{
	const int most = ARCHIVE_READS_MAX + ARCHIVE_READS_QUEUED;
	static int user[64];
	struct archive_read *read[64];
	uv_work_t plugs[4];
	sem_init(&unplugged, 0, 0);
	ends = unplugs = 0;
	for (int i = 0; i < 4; i++) {
		ck_assert_int_eq(uv_queue_work(&f.loop, &plugs[i], plug, no_more), 0);
	}
	for (int i = 0; i < most; i++) {
		user[i] = i;
		ck_assert_int_eq(begin_read(&user[i], &read[i]), 0);
	}
	ck_assert_int_eq(begin_read(&user[63], &read[63]), -ENOSPC);
	f.core.archive_reader->cancel(read[0]);		       /* with a thread */
	f.core.archive_reader->cancel(read[10]);	       /* waits */
	ck_assert_int_eq(begin_read(&user[10], &read[10]), 0); /* its place is free again */
	ck_assert_int_eq(ends, 0);
	while (ends < most - 1) {
		uv_run(&f.loop, UV_RUN_ONCE);
	}
	ck_assert_int_eq(unplugs, 0);
	for (int i = 0; i < 4; i++) {
		sem_post(&unplugged);
	}
	while (unplugs < 4) {
		uv_run(&f.loop, UV_RUN_ONCE);
	}
	ck_assert_int_eq(ended[0], 0);
	for (int i = 1; i < most; i++) {
		ck_assert_int_eq(ended[i], 1);
	}
	/* the file is gone: said at once */
	int fd = past.fd;
	past.fd = -1;
	ck_assert_int_eq(begin_read(&user[0], &read[0]), -ENODATA);
	past.fd = fd;
}
END_TEST

static sem_t asked, answer;
static int cancelled;

static ssize_t hung_pread(int fd, void *buf, size_t size, off_t offset)
{
	sem_post(&asked);
	sem_wait(&answer);
	return pread(fd, buf, size, offset);
}

static void on_left(void *user, struct archive_plan *plan, int result)
{
	(void)user;
	ck_assert_ptr_null(plan);
	ck_assert_int_eq(result, -ECANCELED);
	cancelled++;
}

static int begin_hung(archive_read_done *done, struct archive_read **ret)
{
	const struct archive_reader *reader = f.core.archive_reader;
	struct archive_plan *plan;
	ck_assert_int_eq(
		archive_plan_make(past.archive, "cpu/*", 0, INT64_MAX - 1, 0, 4096, &f.wall, &plan),
		0);
	return reader->read(reader->ctx, plan, done, NULL, ret);
}

/* One is waited for, the other was given up: the stop leaves both behind, and the loop ends. */
START_TEST(a_stop_leaves_hung_reads_behind)
{
	const struct sysops *before = sysops();
	struct sysops hung_medium = *before;
	struct archive_read *read[2];
	hung_medium.pread = hung_pread;
	sem_init(&asked, 0, 0);
	sem_init(&answer, 0, 0);
	cancelled = 0;
	sysops_replace(&hung_medium);
	ck_assert_int_eq(begin_hung(on_left, &read[0]), 0);
	ck_assert_int_eq(begin_hung(on_left, &read[1]), 0);
	sem_wait(&asked);
	sem_wait(&asked);
	f.core.archive_reader->cancel(read[1]);
	sysops_replace(before);
	archive_readers_close(past.readers);
	past.readers = NULL;
	f.core.archive_reader = NULL;
	ck_assert_int_eq(cancelled, 1);
	uv_run(&f.loop, UV_RUN_NOWAIT);
	/* they come back late, to a loop that has forgotten them */
	sem_post(&answer);
	sem_post(&answer);
}
END_TEST
