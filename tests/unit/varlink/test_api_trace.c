/* SPDX-License-Identifier: Apache-2.0 */
/* ExportTrace: what is in it, its limits, who may see what; each reply against the description. */
#include "tests/unit/varlink/api_fixture.h"

#include "daemon/varlink/methods/apps/trace_rows.h"
#include "proto/json_write.h"
#include "proto/mapping.h"
#include "tests/unit/unit.h"

static struct app_process *attach(const char *name, uid_t uid)
{
	struct app_process *process = NULL;
	ck_assert_int_eq(
		apps_attach(f.core.apps, name, uid, 4711, 99, 65536, f.now_ns, &process), 0);
	return process;
}

static void declare(struct app_process *process, uint32_t index, const char *name)
{
	struct proto_declaration declaration = {0};
	snprintf(declaration.name, sizeof(declaration.name), "%s", name);
	apps_declare(f.core.apps, process, index, &declaration);
}

static void run(struct app_process *process, uint16_t stage, uint64_t start_ns, uint64_t ns)
{
	struct proto_record record = {.stage = stage,
		.kind = PROTO_KIND_COMPLETE,
		.cpu_us = PROTO_CPU_NOT_MEASURED,
		.start_ns = start_ns,
		.value = ns,
		.frame = PROTO_NO_FRAME};
	apps_record(f.core.apps, process, 3, &record, f.now_ns);
}

/* The parameters of the next reply of a stream; *more is whether others follow. */
static cJSON *chunk(int fd, bool *more)
{
	cJSON *reply = client_reply(fd, "ExportTrace");
	ck_assert_ptr_nonnull(reply);
	ck_assert(!cJSON_HasObjectItem(reply, "error"));
	*more = cJSON_IsTrue(cJSON_GetObjectItem(reply, "continues"));
	cJSON *result = cJSON_DetachItemFromObjectCaseSensitive(reply, "parameters");
	cJSON_Delete(reply);
	return result;
}

static int begin(const char *parameters)
{
	char text[256];
	int fd = client_open();
	snprintf(text, sizeof(text),
		"{\"method\":\"io.edgeprof.ExportTrace\",\"more\":true,\"parameters\":%s}",
		parameters);
	client_say(fd, text);
	return fd;
}

struct answer {
	cJSON *start;
	cJSON *chunk[64];
	size_t chunks, rows;
	double lost;
};

static struct answer export(const char *parameters)
{
	struct answer answer = {0};
	bool more;
	int fd = begin(parameters);
	answer.start = chunk(fd, &more);
	ck_assert(cJSON_HasObjectItem(answer.start, "start"));
	while (more) {
		cJSON *part = chunk(fd, &more);
		answer.lost = number(part, "lost");
		if (!cJSON_HasObjectItem(part, "records")) {
			ck_assert(!more);
			cJSON_Delete(part);
			continue;
		}
		const cJSON *records = get(part, "records"), *column;
		int rows = count(records, "kind");
		ck_assert_int_gt(rows, 0);
		cJSON_ArrayForEach(column, records)
		{
			ck_assert_int_eq(cJSON_GetArraySize(column), rows);
		}
		answer.rows += (size_t)rows;
		ck_assert_uint_lt(answer.chunks, 64);
		answer.chunk[answer.chunks++] = part;
	}
	close(fd);
	return answer;
}

static void forget(struct answer *answer)
{
	cJSON_Delete(answer->start);
	for (size_t i = 0; i < answer->chunks; i++) {
		cJSON_Delete(answer->chunk[i]);
	}
}

static const cJSON *at(const struct answer *answer, const char *column, int row)
{
	ck_assert_uint_gt(answer->chunks, 0);
	return cJSON_GetArrayItem(get(get(answer->chunk[0], "records"), column), row);
}

static const char *name_at(const struct answer *answer, const char *column, int row)
{
	int index = (int)at(answer, column, row)->valuedouble;
	return cJSON_GetStringValue(cJSON_GetArrayItem(get(answer->chunk[0], "names"), index));
}

static void start(void)
{
	fixture_open();
	fixture_serve();
}

static void end(void)
{
	fixture_close();
}

TEST_TIMEOUT(60);
FIXTURE(start, end);

START_TEST(a_call_without_more_is_refused)
{
	ck_assert_str_eq(ask_error("ExportTrace", "{}"), "ExpectedMore");
}
END_TEST

START_TEST(bad_arguments_are_refused)
{
	static const struct {
		const char *parameters, *error;
	} bad[] = {
		{"{\"from_us\":-1}", "InvalidParameter"},
		{"{\"to_us\":-1}", "InvalidParameter"},
		{"{\"from_us\":1700000000000000,\"to_us\":1699999999000000}", "InvalidParameter"},
		{"{\"app\":\"nobody\"}", "NotFound"},
		{"{\"app\":\"no/name\"}", "NotFound"},
		{"{\"from_us\":\"now\"}", "InvalidParameter"},
		{"{\"glob\":\"x\"}", "InvalidParameter"},
	};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		int fd = begin(bad[i].parameters);
		cJSON *reply = client_reply(fd, "ExportTrace");
		const char *error = string(reply, "error");
		ck_assert_msg(strstr(error, bad[i].error), "%s: %s", bad[i].parameters, error);
		cJSON_Delete(reply);
		close(fd);
	}
}
END_TEST

START_TEST(without_apps_there_is_a_start_and_an_end)
{
	struct answer answer = export("{}");
	const cJSON *told = get(answer.start, "start");
	ck_assert_uint_eq(answer.rows, 0);
	ck_assert_str_eq(string(told, "hostname"), "board");
	ck_assert(cJSON_IsTrue(get(told, "clock_synced")));
	ck_assert_int_eq(count(told, "apps"), 0);
	ck_assert_int_eq(count(told, "clock_mono_us"), 1);
	ck_assert_int_eq(count(told, "clock_time_us"), 1);
	/* both clocks tell the same span, each end rounded down */
	ck_assert_double_eq_tol(number(told, "to_us") - number(told, "from_us"),
		number(told, "to_mono_us") - number(told, "from_mono_us"), 1.5);
	forget(&answer);
}
END_TEST

/* covers G3.16 */
START_TEST(a_record_keeps_its_nanoseconds_and_all_64_bits)
{
	struct app_process *process = attach("cam", geteuid());
	uint64_t t_ns = f.now_ns - 5000000;
	declare(process, 0, "infer");
	declare(process, 1, "queue");
	declare(process, 2, "boxes");
	struct proto_record record = {.stage = 0,
		.kind = PROTO_KIND_COMPLETE,
		.flags = PROTO_RECORD_FAILED | 2 << PROTO_RECORD_DEPTH_SHIFT,
		.cpu_us = 77,
		.start_ns = t_ns,
		.value = 1234567,
		.frame = UINT64_MAX - 1};
	apps_record(f.core.apps, process, 3, &record, f.now_ns);
	double half = 0.5;
	record = (struct proto_record){.stage = 1,
		.kind = PROTO_KIND_GAUGE,
		.start_ns = t_ns + 1,
		.frame = PROTO_NO_FRAME};
	memcpy(&record.value, &half, sizeof(half));
	apps_record(f.core.apps, process, 4, &record, f.now_ns);
	record.kind = PROTO_KIND_ATTRIBUTE;
	record.stage = 2;
	record.cpu_us = 0;
	apps_record(f.core.apps, process, 4, &record, f.now_ns);
	record = (struct proto_record){.stage = 0,
		.kind = PROTO_KIND_BEGIN,
		.start_ns = t_ns + 2,
		.value = UINT64_MAX,
		.frame = PROTO_NO_FRAME};
	apps_record(f.core.apps, process, 4, &record, f.now_ns);

	struct answer answer = export("{\"app\":\"cam\"}");
	ck_assert_uint_eq(answer.chunks, 1);
	ck_assert_uint_eq(answer.rows, 4);
	ck_assert_str_eq(string(answer.chunk[0], "app"), "cam");
	ck_assert_str_eq(at(&answer, "kind", 0)->valuestring, "complete");
	ck_assert_str_eq(name_at(&answer, "name", 0), "infer");
	ck_assert_double_eq(at(&answer, "of", 0)->valuedouble, -1);
	ck_assert_double_eq(at(&answer, "pid", 0)->valuedouble, 4711);
	ck_assert_double_eq(at(&answer, "thread", 0)->valuedouble, 3);
	ck_assert_double_eq(at(&answer, "mono_us", 0)->valuedouble, (double)(t_ns / 1000));
	ck_assert_double_eq(at(&answer, "mono_ns", 0)->valuedouble, (double)(t_ns % 1000));
	ck_assert_double_eq(at(&answer, "duration_us", 0)->valuedouble, 1234);
	ck_assert_double_eq(at(&answer, "duration_ns", 0)->valuedouble, 567);
	ck_assert_str_eq(at(&answer, "frame", 0)->valuestring, "18446744073709551614");
	ck_assert_str_eq(at(&answer, "id", 0)->valuestring, "");
	ck_assert_double_eq(at(&answer, "cpu_us", 0)->valuedouble, 77);
	ck_assert_double_eq(at(&answer, "depth", 0)->valuedouble, 2);
	ck_assert(cJSON_IsTrue(at(&answer, "failed", 0)));
	ck_assert_double_eq(at(&answer, "throttled", 0)->valuedouble, -1);
	ck_assert_str_eq(at(&answer, "kind", 1)->valuestring, "gauge");
	ck_assert_double_eq(at(&answer, "value", 1)->valuedouble, 0.5);
	ck_assert_str_eq(at(&answer, "frame", 1)->valuestring, "");
	ck_assert_str_eq(at(&answer, "kind", 2)->valuestring, "attribute");
	ck_assert_str_eq(name_at(&answer, "name", 2), "boxes");
	ck_assert_str_eq(name_at(&answer, "of", 2), "infer");
	ck_assert_str_eq(at(&answer, "kind", 3)->valuestring, "begin");
	ck_assert_str_eq(at(&answer, "id", 3)->valuestring, "18446744073709551615");
	forget(&answer);
}
END_TEST

START_TEST(what_reaches_into_the_span_is_told)
{
	struct app_process *process = attach("cam", geteuid());
	declare(process, 0, "infer");
	for (unsigned i = 0; i < 10; i++) { /* one each 100 ms, of 50 ms */
		run(process, 0, f.now_ns - (10 - i) * 100000000u, 50000000);
	}
	char text[128];
	int64_t now_us = wallclock_us(&f.wall, f.now_ns);
	/* the third is in, the second ends 20 ms into it, the fourth begins at its end */
	snprintf(text, sizeof(text), "{\"from_us\":%lld,\"to_us\":%lld}",
		(long long)now_us - 870000, (long long)now_us - 700000);
	struct answer answer = export(text);
	ck_assert_uint_eq(answer.rows, 3);
	forget(&answer);
	snprintf(text, sizeof(text), "{\"to_us\":%lld}", (long long)now_us - 2000000);
	answer = export(text);
	ck_assert_uint_eq(answer.rows, 0);
	forget(&answer);
}
END_TEST

START_TEST(other_users_apps_are_named_without_records)
{
	if (geteuid() != 0) {
		return; /* only root can become another user here */
	}
	struct app_process *own = attach("own", 65534), *other = attach("other", 0);
	declare(own, 0, "infer");
	declare(other, 0, "secret");
	run(own, 0, f.now_ns - 2000, 1000);
	run(other, 0, f.now_ns - 2000, 1000);
	/* the connection remembers who opened it; what counts for its own user is the daemon's */
	ck_assert_int_eq(seteuid(65534), 0);
	int fd = client_open();
	ck_assert_int_eq(seteuid(0), 0);
	client_say(fd, "{\"method\":\"io.edgeprof.ExportTrace\",\"more\":true}");
	bool more = true;
	cJSON *first = chunk(fd, &more);
	const cJSON *told = item_of(get(first, "start"), "apps", "app", "other");
	ck_assert_str_eq(string(told, "reason"), "the app is another user's");
	ck_assert(!cJSON_HasObjectItem(told, "records"));
	ck_assert_double_eq(
		number(item_of(get(first, "start"), "apps", "app", "own"), "records"), 1);
	cJSON_Delete(first);
	while (more) {
		cJSON *part = chunk(fd, &more);
		char *text = cJSON_PrintUnformatted(part);
		ck_assert_ptr_null(strstr(text, "secret"));
		free(text);
		cJSON_Delete(part);
	}
	close(fd);
}
END_TEST

START_TEST(records_overwritten_under_the_reader_are_counted)
{
	struct app_process *process = attach("cam", geteuid());
	declare(process, 0, "infer");
	size_t room = TRACE_DEFAULT / (TRACE_CHUNK * sizeof(struct event)) * TRACE_CHUNK;
	for (size_t i = 0; i < room; i++) {
		run(process, 0, f.now_ns - 1000, 1);
	}
	bool more;
	int fd = begin("{}");
	cJSON *part = chunk(fd, &more);
	double kept = number(item_of(get(part, "start"), "apps", "app", "cam"), "records");
	ck_assert_double_gt(kept, 0);
	cJSON_Delete(part);
	for (size_t i = 0; i < 2 * room; i++) { /* all that was noted goes */
		run(process, 0, f.now_ns - 1000, 1);
	}
	double rows = 0, lost = 0;
	while (more) {
		part = chunk(fd, &more);
		rows += cJSON_HasObjectItem(part, "records") ? count(get(part, "records"), "kind")
							     : 0;
		lost = number(part, "lost");
		cJSON_Delete(part);
	}
	ck_assert_double_gt(lost, 0);
	ck_assert_double_eq(rows + lost, kept);
	close(fd);
}
END_TEST

START_TEST(an_app_that_goes_meanwhile_is_lost_and_no_other_takes_its_place)
{
	struct app_process *process = attach("cam", geteuid());
	declare(process, 0, "infer");
	for (int i = 0; i < 40000; i++) {
		run(process, 0, f.now_ns - 1000, 1);
	}
	bool more;
	int fd = begin("{}");
	cJSON *part = chunk(fd, &more);
	cJSON_Delete(part);
	apps_detach(f.core.apps, process, PROCESS_ENDED, f.now_ns);
	/* sixty seconds on the name is free for another user */
	f.now_ns += 100ull * FIXTURE_SECOND;
	process = attach("cam", 4242);
	declare(process, 0, "another");
	run(process, 0, f.now_ns - 1000, 1);
	double rows = 0, lost = 0;
	while (more) {
		part = chunk(fd, &more);
		rows += cJSON_HasObjectItem(part, "records") ? count(get(part, "records"), "kind")
							     : 0;
		lost = number(part, "lost");
		cJSON_Delete(part);
	}
	ck_assert_double_gt(lost, 0);
	ck_assert_double_eq(rows + lost, 40000);
	close(fd);
}
END_TEST

START_TEST(each_connection_of_a_user_may_follow)
{
	if (geteuid() != 0) {
		return; /* only root can become another user here */
	}
	char text[128];
	int fd[32];
	bool more = false;
	long long to_us = wallclock_us(&f.wall, f.now_ns) + 300000000;
	snprintf(text, sizeof(text), "{\"to_us\":%lld,\"follow\":true}", to_us);
	ck_assert_uint_eq(f.options.max_per_uid, sizeof(fd) / sizeof(fd[0]));
	for (int i = 0; i < COUNT(fd); i++) {
		ck_assert_int_eq(seteuid(65534), 0);
		fd[i] = begin(text);
		ck_assert_int_eq(seteuid(0), 0);
		cJSON_Delete(chunk(fd[i], &more));
		ck_assert(more);
	}
	for (int i = 0; i < COUNT(fd); i++) {
		close(fd[i]);
	}
}
END_TEST

FIXTURE(NULL, NULL);

/* The longest row and names that a log can hold, as many as a chunk has. */
START_TEST(the_widest_chunk_fits_into_a_frame)
{
	static char buffer[PROTO_FRAME_MAX];
	static struct trace_batch batch;
	static struct app app;
	static struct stage stages[APP_STAGES_MAX];
	struct trace_buffer *pool;
	struct trace_log *log;
	struct json out;
	ck_assert_int_eq(trace_buffer_create(1 << 20, &pool), 0);
	ck_assert_int_eq(trace_log_open(pool, &log), 0);
	for (unsigned i = 0; i < TRACE_NAMES_MAX; i++) {
		char name[PROTO_NAME_SIZE];
		snprintf(name, sizeof(name), "%048u", i);
		ck_assert_uint_eq(trace_log_name(log, name), i);
	}
	app.log = log;
	for (app.stages = 0; app.stages < APP_STAGES_MAX; app.stages++) {
		struct stage *stage = app.stage[app.stages] = &stages[app.stages];
		snprintf(stage->name, sizeof(stage->name), "%048zu", app.stages);
		memset(stage->unit, '"', sizeof(stage->unit) - 1); /* is two in JSON */
		memset(stage->category, '"', sizeof(stage->category) - 1);
	}
	static const uint8_t kinds[] = {
		PROTO_KIND_ATTRIBUTE, PROTO_KIND_COMPLETE, PROTO_KIND_BEGIN};
	for (size_t k = 0; k < 3; k++) {
		double wide = -2.2250738585072014e-308;
		for (unsigned i = 0; i < TRACE_ROWS; i++) {
			struct event *event = &batch.row[batch.rows++];
			*event = (struct event){
				.record = {.stage = (uint16_t)i,
					.kind = kinds[k],
					.flags = 0xf2,
					.cpu_us = k ? UINT32_MAX - 1 : TRACE_NAMES_MAX - 1 - i,
					.start_ns = UINT64_MAX,
					.value = k == 1 ? 86400999999999u : UINT64_MAX,
					.frame = UINT64_MAX - 1},
				.pid = UINT32_MAX,
				.process = UINT16_MAX,
				.slot = UINT8_MAX};
			if (k == 0) {
				memcpy(&event->record.value, &wide, sizeof(wide));
			}
		}
		json_init(&out, buffer, sizeof(buffer));
		json_open(&out, NULL, '{');
		json_open(&out, "parameters", '{');
		json_string(&out, "app", "012345678901234567890123456789012345678901234567");
		trace_rows_write(&out, &batch, &app);
		json_unsigned(&out, "lost", UINT64_MAX);
		ck_assert(!out.overflow);
		ck_assert_uint_eq(batch.rows, 0);
	}
	trace_log_close(log);
	trace_buffer_destroy(pool);
}
END_TEST
