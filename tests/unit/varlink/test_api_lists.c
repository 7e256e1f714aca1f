/* SPDX-License-Identifier: Apache-2.0 */
/* Answers of any length: lists, history, the timeline, in one reply or in chunks. */
#include "daemon/core/status/sessions.h"
#include "daemon/util/sysops.h"
#include "tests/unit/unit.h"
#include "tests/unit/varlink/api_apps_fixture.h"

static void many_metrics(int total)
{
	for (int i = 0; i < total; i++) {
		char name[64];
		struct metric *metric;
		snprintf(name, sizeof(name), "gauge/test/metric_number_%d", i);
		ck_assert_int_eq(
			metrics_add(f.core.metrics, f.thermal, name, UNIT_NONE, &metric), 0);
		metric_set(metric, i);
	}
	metrics_commit(f.core.metrics, f.thermal, f.now_ns);
}

TEST_TIMEOUT(60);
FIXTURE(start, end);

START_TEST(a_long_list_is_too_large_or_comes_in_chunks)
{
	many_metrics(2000);
	ck_assert_str_eq(ask_error("ListMetrics", NULL), "TooLarge limit_bytes=65536");
	int fd = client_open();
	cJSON *reply = client_call(fd, "ListMetrics", "{\"glob\":\"gauge/**\"}", ",\"more\":true");
	int total = 0, chunks = 0;
	for (;;) {
		const cJSON *metric;
		cJSON_ArrayForEach(metric, get(get(reply, "parameters"), "metrics"))
		{
			ck_assert_double_eq(number(metric, "value"), total);
			total++;
		}
		chunks++;
		bool more = cJSON_IsTrue(cJSON_GetObjectItem(reply, "continues"));
		cJSON_Delete(reply);
		if (!more) {
			break;
		}
		reply = client_reply(fd, "ListMetrics");
	}
	ck_assert_int_eq(total, 2000);
	ck_assert_int_gt(chunks, 3);
	close(fd);
}
END_TEST

static const char forty_eight[] = "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx";

/* Lists 200 stages whose categories have so many bytes in all. How many the first chunk has. */
static int list_longer(int fd, struct app *app, size_t bytes)
{
	for (size_t i = 0, left = bytes; i < 40; i++) {
		int length = left < 20 ? (int)left : 20;
		snprintf(app->stage[i]->category, sizeof(app->stage[i]->category), "%.*s", length,
			forty_eight);
		left -= (size_t)length;
	}
	cJSON *reply = client_call(fd, "ListStages", NULL, ",\"more\":true");
	int first = count(get(reply, "parameters"), "stages"), seen = first;
	ck_assert(cJSON_IsTrue(cJSON_GetObjectItem(reply, "continues")));
	while (cJSON_IsTrue(cJSON_GetObjectItem(reply, "continues"))) {
		const cJSON *chunk = get(reply, "parameters");
		ck_assert(get(chunk, "totals") && get(chunk, "categories") && get(chunk, "units"));
		cJSON_Delete(reply);
		reply = client_reply(fd, "ListStages");
		seen += count(get(reply, "parameters"), "stages");
	}
	ck_assert_int_eq(seen, 200);
	cJSON_Delete(reply);
	return first;
}

START_TEST(a_session_is_empty_until_its_file_is_there)
{
	struct session row = {.name = "new", .uid = geteuid(), .writing = true};
	struct sessions sessions = {.count = 1, .row = {&row}};
	snprintf(sessions.dir, sizeof(sessions.dir), "%s/sessions", f.folder);
	f.core.sessions = &sessions;
	int fd = client_open();
	cJSON *reply = client_call(fd, "GetSession", "{\"name\":\"new\"}", ",\"more\":true");
	ck_assert_str_eq(string(get(reply, "parameters"), "text"), "");
	cJSON_Delete(reply);
	row.writing = false; /* it could not be made */
	reply = client_call(fd, "GetSession", "{\"name\":\"new\"}", ",\"more\":true");
	ck_assert_str_eq(string(reply, "error"), "io.edgeprof.NotFound");
	cJSON_Delete(reply);
	close(fd);
	f.core.sessions = NULL;
}
END_TEST

static uint64_t no_time_passes(void)
{
	return UINT64_C(1000000000000);
}

/* Lengthens rows of the first chunk byte by byte around the length from which it has room for one
 * row less: it ends at every small distance from its limit. */
START_TEST(a_chunk_leaves_room_for_the_empty_tail)
{
	char name[PROTO_NAME_SIZE];
	struct app_process *process = NULL;
	for (unsigned i = 0; i < 200; i++) {
		if (i % 100 == 0) {
			snprintf(name, sizeof(name), "app%u", i / 100);
			process = attach(name, geteuid());
		}
		snprintf(name, sizeof(name), "%.44s%u", forty_eight, i);
		declare(process, i % 100, name, "", 0);
		event(process, (uint16_t)(i % 100), 1234567);
	}
	struct app *app = apps_find(f.core.apps, "app0");
	int fd = client_open();
	struct sysops still = *sysops(); /* so that only the size ends a chunk */
	still.now_ns = no_time_passes;
	sysops_replace(&still);
	size_t total = 64;
	int most = list_longer(fd, app, total);
	while (list_longer(fd, app, total + 32) == most) {
		total += 32;
		ck_assert_uint_lt(total, 800);
	}
	for (size_t i = total - 64; i < total + 40; i++) {
		list_longer(fd, app, i);
	}
	sysops_replace(NULL);
	close(fd);
}
END_TEST

/* Whether it is refused is estimated before the rows are written: too little is harmless. */
START_TEST(a_list_is_refused_only_when_it_does_not_fit)
{
	struct app_process *process = attach("a", geteuid());
	struct sysops still = *sysops(); /* so that only the size ends a chunk */
	int fd = client_open(), refused = 0, fits = 0;
	still.now_ns = no_time_passes;
	sysops_replace(&still);
	for (unsigned i = 0; i < 128; i++) {
		char name[PROTO_NAME_SIZE];
		snprintf(name, sizeof(name), "%u", i);
		declare(process, i, name, "", 0);
		event(process, (uint16_t)i, i % 2 ? 1000000 : 0);
		cJSON *reply = client_call(fd, "ListStages", NULL, "");
		bool error = cJSON_GetObjectItem(reply, "error") != NULL;
		cJSON_Delete(reply);
		reply = client_call(fd, "ListStages", NULL, ",\"more\":true");
		bool chunks = cJSON_IsTrue(cJSON_GetObjectItem(reply, "continues"));
		while (cJSON_IsTrue(cJSON_GetObjectItem(reply, "continues"))) {
			cJSON_Delete(reply);
			reply = client_reply(fd, "ListStages");
		}
		cJSON_Delete(reply);
		ck_assert(!error || chunks);
		refused += error;
		fits += !error;
	}
	sysops_replace(NULL);
	ck_assert_int_gt(refused, 8);
	ck_assert_int_gt(fits, 50);
	close(fd);
}
END_TEST

START_TEST(history_has_every_row_as_columns)
{
	cJSON *reply = ask("GetHistory", "{\"glob\":\"temperature/max\"}");
	ck_assert_int_eq(count(reply, "series"), 1);
	const cJSON *series = item_of(reply, "series", "name", "temperature/max");
	ck_assert_str_eq(string(series, "unit"), "celsius");
	ck_assert_int_eq(count(series, "time_us"), 11);
	ck_assert_double_eq(cJSON_GetArrayItem(get(series, "mean"), 0)->valuedouble, 50);
	ck_assert_double_eq(cJSON_GetArrayItem(get(series, "mean"), 10)->valuedouble, 40);
	ck_assert_double_eq_tol(
		cJSON_GetArrayItem(get(series, "time_us"), 10)->valuedouble, 1700000000000000.0, 1);
	cJSON_Delete(reply);
	/* null rows are gaps */
	reply = ask("GetHistory", "{\"glob\":\"temperature/soc\"}");
	ck_assert_int_eq(count(reply, "series"), 0);
	cJSON_Delete(reply);
}
END_TEST

START_TEST(history_without_more_is_thinned_to_max_points)
{
	for (int i = 0; i < 3000; i++) {
		metric_set(f.zone, i % 50);
		metrics_commit(f.core.metrics, f.thermal, f.now_ns + (uint64_t)i * 1000000);
	}
	f.now_ns += 3 * (uint64_t)FIXTURE_SECOND;
	cJSON *reply = ask("GetHistory",
		"{\"glob\":\"temperature/*\",\"to_us\":1700000003000000,\"max_points\":100}");
	const cJSON *series = item_of(reply, "series", "name", "temperature/max");
	ck_assert_int_le(count(series, "time_us"), 100);
	ck_assert_int_ge(count(series, "time_us"), 10); /* its share of what five series get */
	ck_assert_double_gt(number(series, "step_ms"), 0);
	double rows = 0;
	const cJSON *item;
	cJSON_ArrayForEach(item, get(series, "count"))
	{
		rows += item->valuedouble;
	}
	/* every row is in a bucket; the first ten were there before, one shares its time */
	ck_assert_double_ge(rows, 3009);
	cJSON_Delete(reply);
	ck_assert_str_eq(
		ask_error("GetHistory", "{\"glob\":\"temperature/max\",\"to_us\":1700000003000000,"
					"\"max_points\":1}"),
		"TooLarge limit_bytes=65536");
}
END_TEST

START_TEST(history_with_more_has_all_rows_in_chunks)
{
	for (int i = 0; i < 3000; i++) {
		metric_set(f.zone, i % 50 + 0.123);
		metrics_commit(f.core.metrics, f.thermal, f.now_ns + (uint64_t)i * 1000000);
	}
	int fd = client_open(), rows = 0, chunks = 0;
	double last = 0;
	cJSON *reply = client_call(fd, "GetHistory",
		"{\"glob\":\"temperature/max\",\"to_us\":1700000003000000}", ",\"more\":true");
	for (;;) {
		const cJSON *series, *time;
		cJSON_ArrayForEach(series, get(get(reply, "parameters"), "series"))
		{
			cJSON_ArrayForEach(time, get(series, "time_us"))
			{
				ck_assert_double_ge(time->valuedouble, last);
				last = time->valuedouble;
				rows++;
			}
		}
		chunks++;
		bool more = cJSON_IsTrue(cJSON_GetObjectItem(reply, "continues"));
		cJSON_Delete(reply);
		if (!more) {
			break;
		}
		reply = client_reply(fd, "GetHistory");
	}
	ck_assert_int_ge(rows, 3010);
	ck_assert_int_gt(chunks, 1);
	close(fd);
}
END_TEST

START_TEST(history_refuses_what_is_out_of_range)
{
	static const char *const table[][2] = {
		{"{}", "InvalidParameter parameter=\"glob\""},
		{"{\"glob\":1}", "InvalidParameter parameter=\"glob\""},
		{"{\"glob\":\"[\"}", "InvalidParameter parameter=\"glob\""},
		{"{\"glob\":\"no/such\"}", "NotFound what=\"metric\" name=\"no/such\""},
		{"{\"glob\":\"*\",\"from_us\":-1}", "InvalidParameter parameter=\"from_us\""},
		{"{\"glob\":\"*\",\"from_us\":1.5}", "InvalidParameter parameter=\"from_us\""},
		{"{\"glob\":\"*\",\"to_us\":1e300}", "InvalidParameter parameter=\"to_us\""},
		{"{\"glob\":\"*\",\"from_us\":1700000000000001,\"to_us\":1700000000000000}",
			"InvalidParameter parameter=\"from_us\""},
		{"{\"glob\":\"*\",\"step_ms\":-1}", "InvalidParameter parameter=\"step_ms\""},
		{"{\"glob\":\"*\",\"step_ms\":1e999}", "InvalidParameter parameter=\"step_ms\""},
		{"{\"glob\":\"*\",\"max_points\":0}", "InvalidParameter parameter=\"max_points\""},
		{"{\"glob\":\"*\",\"max_points\":-1}", "InvalidParameter parameter=\"max_points\""},
		{"{\"glob\":\"*\",\"max_points\":1e999}",
			"InvalidParameter parameter=\"max_points\""},
		{"{\"glob\":\"*\",\"more\":true}", "InvalidParameter parameter=\"more\""},
	};
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		ck_assert_str_eq(ask_error("GetHistory", table[i][0]), table[i][1]);
	}
}
END_TEST

START_TEST(marks_and_events_page_through_the_timeline)
{
	cJSON *reply = ask("Mark", "{\"label\":\"before load\",\"app\":\"c/m\"}");
	double serial = number(reply, "serial");
	cJSON_Delete(reply);
	reply = ask("ListEvents", NULL);
	const cJSON *event = item_of(reply, "events", "kind", "mark");
	ck_assert_str_eq(string(event, "text"), "before load");
	ck_assert_str_eq(string(event, "subject"), "c_m");
	ck_assert_double_eq(number(event, "serial"), serial);
	ck_assert_double_eq(number(reply, "last_serial"), serial);
	cJSON_Delete(reply);
	/* longer than a reply: the newest that fit, and on from any serial */
	for (int i = 0; i < 1000; i++) {
		timeline_add(f.core.timeline, f.now_ns, TIMELINE_CLOCK, TIMELINE_INFO, "clock",
			"%0200d", i);
	}
	reply = ask("ListEvents", "{\"limit\":1000}");
	int n = count(reply, "events");
	ck_assert_int_gt(n, 50);
	ck_assert_double_eq(number(cJSON_GetArrayItem(get(reply, "events"), n - 1), "serial"),
		number(reply, "last_serial"));
	cJSON_Delete(reply);
	double from = 100;
	int total = 0;
	for (;;) {
		char text[64];
		snprintf(text, sizeof(text), "{\"from_serial\":%.0f,\"limit\":4096}", from);
		reply = ask("ListEvents", text);
		n = count(reply, "events");
		for (int i = 0; i < n; i++) {
			const cJSON *item = cJSON_GetArrayItem(get(reply, "events"), i);
			ck_assert(total == 0 || number(item, "serial") == from);
			from = number(item, "serial") + 1;
			total++;
		}
		bool all = from > number(reply, "last_serial");
		cJSON_Delete(reply);
		if (all) {
			break;
		}
	}
	ck_assert_int_ge(total, 900);
	ck_assert_str_eq(
		ask_error("ListEvents", "{\"limit\":-1}"), "InvalidParameter parameter=\"limit\"");
	ck_assert_str_eq(ask_error("ListEvents", "{\"from_serial\":-1}"),
		"InvalidParameter parameter=\"from_serial\"");
	ck_assert_str_eq(
		ask_error("Mark", "{\"label\":\"\"}"), "InvalidParameter parameter=\"label\"");
}
END_TEST
