/* SPDX-License-Identifier: Apache-2.0 */
/* ExportTrace with follow: what is added while it is told comes once, and what went is counted. */
#include "tests/unit/varlink/api_fixture.h"

#include "daemon/varlink/methods/apps/trace_rows.h"
#include "proto/mapping.h"
#include "tests/unit/unit.h"

enum { SPAN_MS = 700 };

static struct app_process *writer;
static unsigned added;
static bool last_round;

static struct app_process *attach(const char *name)
{
	struct app_process *process = NULL;
	struct proto_declaration declaration = {.name = "infer"};
	ck_assert_int_eq(
		apps_attach(f.core.apps, name, geteuid(), 4711, 99, 65536, f.now_ns, &process), 0);
	apps_declare(f.core.apps, process, 0, &declaration);
	return process;
}

/* Records with numbers of their own as durations, in microseconds. */
static void add(unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		struct proto_record record = {.kind = PROTO_KIND_COMPLETE,
			.cpu_us = PROTO_CPU_NOT_MEASURED,
			.start_ns = f.now_ns - 1000,
			.value = (uint64_t)added++ * 1000,
			.frame = PROTO_NO_FRAME};
		apps_record(f.core.apps, writer, 0, &record, f.now_ns);
	}
}

static void refresh(void *ctx, uint64_t now_ns)
{
	(void)ctx;
	if (now_ns >= f.now_ns + SPAN_MS * 1000000ull) { /* there is one for the call, too */
		ck_assert(!last_round);
		add(5); /* of the ring, just before the end */
		last_round = true;
	}
}

static void start(void)
{
	fixture_open();
	f.options.refresh = refresh;
	fixture_serve();
	added = 0;
	last_round = false;
	writer = attach("cam");
}

static void end(void)
{
	fixture_close();
}

static int begin(void)
{
	char text[256];
	int fd = client_open();
	long long now_us = wallclock_us(&f.wall, f.now_ns);
	snprintf(text, sizeof(text),
		"{\"method\":\"io.edgeprof.ExportTrace\",\"more\":true,\"parameters\":"
		"{\"from_us\":%lld,\"to_us\":%lld,\"follow\":true}}",
		now_us - 1000000, now_us + SPAN_MS * 1000);
	client_say(fd, text);
	return fd;
}

static cJSON *chunk(int fd, bool *more)
{
	cJSON *reply = client_reply(fd, "ExportTrace");
	ck_assert_ptr_nonnull(reply);
	*more = cJSON_IsTrue(cJSON_GetObjectItem(reply, "continues"));
	cJSON *result = cJSON_DetachItemFromObjectCaseSensitive(reply, "parameters");
	cJSON_Delete(reply);
	return result;
}

/* The numbers go up by one from `next` on, but for what was lost. */
static unsigned check_rows(const cJSON *part, unsigned next, bool gaps)
{
	const cJSON *records = cJSON_GetObjectItem(part, "records"), *one;
	if (!records) {
		return next;
	}
	cJSON_ArrayForEach(one, get(records, "duration_us"))
	{
		unsigned number = (unsigned)one->valuedouble;
		ck_assert_msg(
			number == next || (gaps && number > next), "%u after %u", number, next);
		next = number + 1;
	}
	return next;
}

TEST_TIMEOUT(60);
FIXTURE(start, end);

START_TEST(no_record_comes_twice_and_none_is_missed_between_rounds)
{
	bool more = true;
	unsigned next = 0, chunks = 0;
	double lost = 0;
	add(3 * TRACE_ROWS + 7); /* more than a chunk, and no whole ones */
	int fd = begin();
	while (more) {
		cJSON *part = chunk(fd, &more);
		next = check_rows(part, next, false);
		lost = number(part, "lost");
		cJSON_Delete(part);
		chunks++;
		if (!last_round) {
			add(chunks % 3 * 11); /* within a round and between two; sometimes none */
		}
	}
	ck_assert(last_round);
	ck_assert_uint_eq(next, added);
	ck_assert_double_eq(lost, 0);
	ck_assert_uint_gt(chunks, 5);
	close(fd);
}
END_TEST

START_TEST(what_was_overwritten_between_rounds_is_counted)
{
	size_t room = TRACE_DEFAULT / (TRACE_CHUNK * sizeof(struct event)) * TRACE_CHUNK;
	bool more = true, flooded = false;
	unsigned next = 0;
	double lost = 0, rows = 0;
	add(50);
	int fd = begin();
	while (more) {
		cJSON *part = chunk(fd, &more);
		next = check_rows(part, next, true);
		lost = number(part, "lost");
		if (cJSON_HasObjectItem(part, "records")) {
			rows += count(get(part, "records"), "kind");
			if (!flooded) {
				add((unsigned)room + 3000);
			}
			flooded = true;
		}
		cJSON_Delete(part);
	}
	ck_assert_uint_eq(next, added); /* the newest are there */
	ck_assert_double_ge(lost, 3000 - TRACE_CHUNK);
	ck_assert_double_eq(rows + lost, added);
	close(fd);
}
END_TEST

START_TEST(an_app_that_comes_meanwhile_is_told_with_a_start_of_its_own)
{
	bool more = true;
	int starts = 0;
	double of_new = 0;
	unsigned next = 0;
	add(100);
	int fd = begin();
	while (more) {
		cJSON *part = chunk(fd, &more);
		if (cJSON_HasObjectItem(part, "start")) {
			const cJSON *told = get(part, "start");
			const cJSON *cam = item_of(told, "apps", "app", "cam");
			/* nothing was overwritten, whichever round it is */
			ck_assert_double_eq(number(cam, "overwritten"), 0);
			ck_assert_double_ge(number(cam, "records"), 100);
			starts++;
		} else if (cJSON_HasObjectItem(part, "records")) {
			bool fresh = strcmp(string(part, "app"), "new") == 0;
			of_new += fresh ? count(get(part, "records"), "kind") : 0;
			next = fresh ? next : check_rows(part, next, false);
			if (starts == 1 && next == 100) {
				struct app_process *cam = writer;
				writer = attach("new");
				unsigned before = added;
				add(20);
				added = before;
				writer = cam;
			}
		}
		cJSON_Delete(part);
	}
	ck_assert_int_eq(starts, 2);
	ck_assert_double_eq(of_new, 20);
	ck_assert_uint_eq(next, added);
	close(fd);
}
END_TEST

START_TEST(a_clock_that_is_set_meanwhile_is_told)
{
	bool more = true;
	int starts = 0;
	double first_us = 0, last_us = 0;
	add(10);
	int fd = begin();
	while (more) {
		cJSON *part = chunk(fd, &more);
		if (cJSON_HasObjectItem(part, "start")) {
			last_us = number(get(part, "start"), "to_us");
			first_us = starts++ == 0 ? last_us : first_us;
		} else if (starts == 1 && more) { /* an hour on */
			wallclock_note(&f.wall, f.now_ns + 1000000,
				1700000000000000000 + 3600 * (int64_t)FIXTURE_SECOND + 1000000,
				true);
		}
		cJSON_Delete(part);
	}
	ck_assert_int_eq(starts, 2);
	ck_assert_double_eq_tol(last_us - first_us, 3600e6, 1);
	close(fd);
}
END_TEST
