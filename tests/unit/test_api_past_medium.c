/* A medium that does not answer, and who waits for it. */
#include "past_fixture.h"

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

/* Others are answered at once, the caller after 5 s: by live history, and a note. */
START_TEST(a_medium_that_hangs_costs_the_past_alone)
{
	const struct archive_reader reader = {hung_read, hung_cancel, NULL};
	f.core.archive_reader = &reader;
	hung.reads = hung.cancels = 0;
	for (int more = 0; more < 2; more++) {
		uint64_t began_ns = seam()->now_ns();
		int fd = client_open(), other = client_open();
		client_say(fd, more ? "{\"method\":\"io.edgeprof.GetHistory\",\"more\":true,"
				      "\"parameters\":{\"glob\":\"**\",\"from_us\":0}}"
				    : "{\"method\":\"io.edgeprof.GetHistory\","
				      "\"parameters\":{\"glob\":\"**\",\"from_us\":0}}");
		cJSON *quick = client_call(other, "ListBoots", NULL, "");
		ck_assert_uint_lt(seam()->now_ns() - began_ns, FIXTURE_SECOND);
		cJSON_Delete(quick);
		cJSON *reply = client_reply(fd, "GetHistory");
		ck_assert_uint_ge(seam()->now_ns() - began_ns, 4 * (uint64_t)FIXTURE_SECOND);
		ck_assert_int_eq(hung.cancels, more + 1);
		const cJSON *parameters = get(reply, "parameters");
		ck_assert_int_eq(count(parameters, "series"), 1);
		ck_assert_str_eq(string(parameters, "note"),
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

int main(void)
{
	Suite *suite = suite_create("api_past_medium");
	TCase *tests = tcase_create("medium");
	tcase_add_checked_fixture(tests, start, end);
	tcase_set_timeout(tests, 60);
	tcase_add_test(tests, a_medium_that_hangs_costs_the_past_alone);
	suite_add_tcase(suite, tests);
	SRunner *runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	int failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
