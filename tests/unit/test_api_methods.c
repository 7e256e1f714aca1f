/* Every method on a core of literals, over a real socket; every reply against the description. */
#include "api_fixture.h"

#include "proto/mapping.h"

static void start(void)
{
	fixture_open();
	fixture_serve();
}

static void end(void)
{
	fixture_close();
}

static struct app_process *attach(const char *name, uid_t uid)
{
	struct app_process *process = NULL;
	ck_assert_int_eq(
		apps_attach(f.core.apps, name, uid, 4711, 99, 65536, f.now_ns, &process), 0);
	return process;
}

static void declare(struct app_process *process, uint32_t index, const char *name,
	const char *category, uint64_t deadline_ns)
{
	struct proto_declaration declaration = {.deadline_ns = deadline_ns};
	snprintf(declaration.name, sizeof(declaration.name), "%s", name);
	snprintf(declaration.category, sizeof(declaration.category), "%s", category);
	apps_declare(f.core.apps, process, index, &declaration);
}

static void event(struct app_process *process, uint16_t stage, uint64_t duration_ns)
{
	struct proto_record record = {.stage = stage,
		.kind = PROTO_KIND_COMPLETE,
		.cpu_us = PROTO_CPU_NOT_MEASURED,
		.start_ns = f.now_ns - duration_ns,
		.value = duration_ns,
		.frame = PROTO_NO_FRAME};
	apps_record(f.core.apps, process, 0, &record, f.now_ns);
}

static void tick(struct app_process *process, uint64_t t_ns)
{
	struct proto_record record = {.kind = PROTO_KIND_FRAME,
		.cpu_us = PROTO_CPU_NOT_MEASURED,
		.start_ns = t_ns,
		.frame = PROTO_NO_FRAME};
	apps_record(f.core.apps, process, 0, &record, f.now_ns);
}

START_TEST(get_info_tells_interfaces)
{
	cJSON *reply = ask("org.varlink.service.GetInfo", NULL);
	ck_assert_str_eq(string(reply, "product"), "edgeprofd");
	ck_assert_str_eq(string(reply, "version"), "0.1.0");
	ck_assert_int_eq(count(reply, "interfaces"), 2);
	cJSON_Delete(reply);
}
END_TEST

START_TEST(the_description_is_served_to_the_byte)
{
	cJSON *reply = ask(
		"org.varlink.service.GetInterfaceDescription", "{\"interface\":\"io.edgeprof\"}");
	ck_assert_str_eq(string(reply, "description"), proto_interface);
	cJSON_Delete(reply);
	reply = ask("org.varlink.service.GetInterfaceDescription",
		"{\"interface\":\"org.varlink.service\"}");
	ck_assert_ptr_nonnull(
		strstr(string(reply, "description"), "interface org.varlink.service\n"));
	cJSON_Delete(reply);
	ck_assert_str_eq(
		ask_error("org.varlink.service.GetInterfaceDescription", "{\"interface\":\"a.b\"}"),
		"InterfaceNotFound interface=\"a.b\"");
}
END_TEST

START_TEST(status_tells_facts_sources_and_what_is_degraded)
{
	snprintf(f.facts.history_reason, sizeof(f.facts.history_reason), "no space");
	f.broker = (struct broker_status){
		.state = BROKER_AWAY, .host = "mq", .port = 1883, .reason = "refused"};
	fixture_temperature(80, 0);
	cJSON *reply = ask("GetStatus", "{}");
	ck_assert_str_eq(string(reply, "hostname"), "board");
	ck_assert(!cJSON_HasObjectItem(reply, "model"));
	ck_assert_str_eq(string(reply, "os"), "Debian");
	ck_assert_double_ge(number(reply, "uptime_s"), 60);
	ck_assert_double_ge(number(reply, "time_us"), 1700000000000000.0);
	ck_assert(cJSON_IsTrue(get(reply, "clock_synced")));
	ck_assert_double_eq(number(reply, "sources"), 3);
	ck_assert_double_eq(number(reply, "sources_ok"), 1);
	ck_assert_str_eq(string(item_of(reply, "sources_bad", "name", "broken"), "reason"),
		"Input/output error");
	ck_assert_double_eq(number(reply, "temperature_celsius"), 80);
	ck_assert(!cJSON_HasObjectItem(reply, "cpu_percent"));
	const cJSON *alert = item_of(reply, "alerts", "rule", "hot");
	ck_assert_str_eq(string(alert, "state"), "firing");
	ck_assert_double_eq(number(alert, "threshold"), 75);
	ck_assert_str_eq(string(get(reply, "broker"), "state"), "away");
	ck_assert_int_eq(count(reply, "degraded"), 3);
	cJSON_Delete(reply);
}
END_TEST

/* covers G0.18 */
START_TEST(status_tells_modes_and_leaves_out_what_is_not_known)
{
	struct modes modes = {.have_power_mode = true,
		.power_mode = 2,
		.power_mode_name = "MAXN",
		.governor = "schedutil",
		.clocks = CLOCKS_PINNED};
	f.core.modes = &modes;
	cJSON *reply = ask("GetStatus", "{}");
	ck_assert_double_eq(number(reply, "power_mode"), 2);
	ck_assert_str_eq(string(reply, "power_mode_name"), "MAXN");
	ck_assert_str_eq(string(reply, "governor"), "schedutil");
	ck_assert(!cJSON_HasObjectItem(reply, "gpu_governor"));
	ck_assert(cJSON_IsTrue(get(reply, "jetson_clocks")));
	cJSON_Delete(reply);
	modes = (struct modes){0};
	reply = ask("GetStatus", "{}");
	ck_assert(!cJSON_HasObjectItem(reply, "power_mode"));
	ck_assert(!cJSON_HasObjectItem(reply, "governor"));
	ck_assert(!cJSON_HasObjectItem(reply, "jetson_clocks"));
	cJSON_Delete(reply);
	f.core.modes = NULL;
}
END_TEST

START_TEST(a_metric_tells_its_origin_when_it_has_one)
{
	f.zone->origin = "sum of the rails";
	fixture_temperature(40, 0);
	cJSON *reply = ask("ListMetrics", "{\"glob\":\"temperature/*\"}");
	ck_assert_str_eq(string(item_of(reply, "metrics", "name", "temperature/max"), "origin"),
		"sum of the rails");
	ck_assert(!cJSON_HasObjectItem(
		item_of(reply, "metrics", "name", "temperature/soc"), "origin"));
	cJSON_Delete(reply);
}
END_TEST

START_TEST(a_null_value_has_a_reason)
{
	cJSON *reply = ask("ListMetrics", "{\"glob\":\"temperature/*\"}");
	ck_assert_int_eq(count(reply, "metrics"), 2);
	const cJSON *zone = item_of(reply, "metrics", "name", "temperature/max");
	ck_assert_double_eq(number(zone, "value"), 40);
	ck_assert_str_eq(string(zone, "unit"), "celsius");
	ck_assert_str_eq(string(zone, "source"), "thermal");
	ck_assert_str_eq(string(zone, "state"), "ok");
	ck_assert(!cJSON_HasObjectItem(zone, "reason"));
	const cJSON *absent = item_of(reply, "metrics", "name", "temperature/soc");
	ck_assert(cJSON_IsNull(get(absent, "value")));
	ck_assert_str_eq(string(absent, "reason"), "Permission denied");
	cJSON_Delete(reply);
	reply = ask("ListMetrics", "{\"glob\":\"nothing/*\"}");
	ck_assert_int_eq(count(reply, "metrics"), 0);
	cJSON_Delete(reply);
	ck_assert_str_eq(ask_error("ListMetrics", "{\"glob\":\"no/such\"}"),
		"NotFound what=\"metric\" name=\"no/such\"");
	ck_assert_str_eq(ask_error("ListMetrics", "{\"glob\":\"[\"}"),
		"InvalidParameter parameter=\"glob\"");
}
END_TEST

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

/* Lengthens rows of the first chunk byte by byte: it ends at every distance from its limit. */
START_TEST(a_chunk_leaves_room_for_the_empty_tail)
{
	static const char forty_eight[] = "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx";
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
	for (size_t total = 0; total < 600; total++) {
		for (size_t i = 0, left = total; i < 40; i++) {
			int length = left < 20 ? (int)left : 20;
			snprintf(app->stage[i]->category, sizeof(app->stage[i]->category), "%.*s",
				length, forty_eight);
			left -= (size_t)length;
		}
		cJSON *reply = client_call(fd, "ListStages", NULL, ",\"more\":true");
		int seen = count(get(reply, "parameters"), "stages");
		ck_assert(cJSON_IsTrue(cJSON_GetObjectItem(reply, "continues")));
		/* two chunks, or more where a turn of the loop ran out of its time */
		while (cJSON_IsTrue(cJSON_GetObjectItem(reply, "continues"))) {
			cJSON_Delete(reply);
			reply = client_reply(fd, "ListStages");
			seen += count(get(reply, "parameters"), "stages");
		}
		ck_assert_int_eq(seen, 200);
		cJSON_Delete(reply);
	}
	close(fd);
}
END_TEST

START_TEST(sources_are_listed_and_wished)
{
	cJSON *reply = ask("ListSources", NULL);
	ck_assert_int_eq(count(reply, "sources"), 3);
	ck_assert_double_eq(
		number(item_of(reply, "sources", "name", "thermal"), "interval_ms"), 1000);
	cJSON_Delete(reply);
	/* the test is the daemon's own user, so he may */
	reply = ask("SetSource", "{\"name\":\"thermal\",\"enabled\":false,\"interval_ms\":250}");
	ck_assert(cJSON_IsFalse(get(get(reply, "source"), "enabled")));
	cJSON_Delete(reply);
	ck_assert(!f.thermal->wanted);
	ck_assert_uint_eq(f.thermal->wanted_interval_ns, 250000000);
	ck_assert_uint_eq(f.thermal->wish_serial, 1);
	ck_assert_str_eq(
		ask_error("SetSource", "{\"name\":\"x\"}"), "NotFound what=\"source\" name=\"x\"");
	ck_assert_str_eq(ask_error("SetSource", "{\"name\":\"thermal\",\"interval_ms\":-1}"),
		"InvalidParameter parameter=\"interval_ms\"");
	ck_assert_str_eq(ask_error("SetSource", "{\"name\":\"thermal\",\"interval_ms\":1e999}"),
		"InvalidParameter parameter=\"interval_ms\"");
	ck_assert_str_eq(ask_error("SetSource", "{}"), "InvalidParameter parameter=\"name\"");
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

/* covers G0.4: names, Σ stage means without `total`, max_fps */
START_TEST(stages_have_the_contract_s_numbers)
{
	struct app_process *process = attach("cam", geteuid());
	declare(process, 0, "infer", "nn", 60000000);
	declare(process, 1, "total", "", 0);
	for (uint64_t ms = 1; ms <= 100; ms++) {
		event(process, 0, ms * 1000000);
		event(process, 1, ms * 2000000);
	}
	cJSON *reply = ask("ListStages", "{\"app\":\"cam\"}");
	const cJSON *stage = item_of(reply, "stages", "stage", "infer");
	ck_assert_double_eq_tol(number(stage, "p50_ms"), 50.5, 1e-9);
	ck_assert_double_eq_tol(number(stage, "median_ms"), 50.5, 1e-9);
	ck_assert_double_eq_tol(number(stage, "p90_ms"), 90.1, 1e-9);
	ck_assert_double_eq_tol(number(stage, "p95_ms"), 95.05, 1e-9);
	ck_assert_double_eq_tol(number(stage, "p99_ms"), 99.01, 1e-9);
	ck_assert_double_eq_tol(number(stage, "std_ms"), 28.8660700, 1e-7);
	ck_assert_double_eq_tol(number(stage, "std_sample_ms"), 29.0114920, 1e-7);
	ck_assert_double_eq_tol(number(stage, "tail_ratio"), 99.01 / 50.5, 1e-9);
	ck_assert_double_eq(number(stage, "count"), 100);
	ck_assert_double_eq(number(stage, "deadline_ms"), 60);
	ck_assert_double_eq(number(stage, "misses"), 40);
	ck_assert_str_eq(string(stage, "category"), "nn");
	ck_assert(cJSON_IsTrue(get(stage, "exact")));
	const cJSON *total = item_of(reply, "totals", "app", "cam");
	ck_assert_double_eq_tol(number(total, "mean_ms"), 50.5, 1e-9);
	ck_assert_double_eq_tol(number(total, "max_fps"), 1000 / 50.5, 1e-9);
	ck_assert_double_eq_tol(number(total, "throughput_fps"), 1000 / 50.5, 1e-9);
	cJSON_Delete(reply);
	ck_assert_int_gt(f.refreshes, 0);
	ck_assert_str_eq(
		ask_error("ListStages", "{\"app\":\"x\"}"), "NotFound what=\"app\" name=\"x\"");
}
END_TEST

START_TEST(a_stage_without_events_has_no_numbers)
{
	struct app_process *process = attach("cam", geteuid());
	declare(process, 0, "infer", "", 0);
	cJSON *reply = ask("ListStages", NULL);
	if (count(reply, "stages") > 0) {
		const cJSON *stage = item_of(reply, "stages", "stage", "infer");
		ck_assert(!cJSON_HasObjectItem(stage, "mean_ms"));
	}
	ck_assert_double_eq(number(item_of(reply, "totals", "app", "cam"), "max_fps"), 0);
	cJSON_Delete(reply);
}
END_TEST

/* covers G0.2: golden vector A over the wire */
START_TEST(frames_have_the_contract_s_numbers)
{
	static const int deltas_ms[] = {33, 34, 33, 50, 33, 35, 100, 33, 34, 33};
	struct app_process *process = attach("cam", geteuid());
	declare(process, 0, "frame", "", 0);
	cJSON *reply = ask("GetFrames", "{\"app\":\"cam\"}");
	ck_assert_str_eq(
		string(item_of(reply, "frames", "app", "cam"), "status"), "insufficient data");
	cJSON_Delete(reply);
	uint64_t t_ns = f.now_ns - FIXTURE_SECOND;
	tick(process, t_ns);
	for (size_t i = 0; i < 10; i++) {
		t_ns += (uint64_t)deltas_ms[i] * 1000000;
		tick(process, t_ns);
	}
	apps_drained(f.core.apps, process);
	reply = ask("GetFrames", NULL);
	const cJSON *frames = item_of(reply, "frames", "app", "cam");
	ck_assert_str_eq(string(frames, "status"), "ok");
	ck_assert_double_eq_tol(number(frames, "fps"), 23.9234450, 1e-7);
	ck_assert_double_eq_tol(number(frames, "fps_mean"), 26.8910109, 1e-7);
	ck_assert_double_eq_tol(number(frames, "fps_min"), 10, 1e-9);
	ck_assert_double_eq_tol(number(frames, "fps_p5"), 14.5, 1e-9);
	ck_assert_double_eq_tol(number(frames, "frame_time_mean_ms"), 41.8, 1e-9);
	ck_assert_double_eq_tol(number(frames, "frame_time_p95_ms"), 77.5, 1e-9);
	ck_assert_double_eq_tol(number(frames, "frame_time_p99_ms"), 95.5, 1e-9);
	ck_assert_double_eq_tol(number(frames, "jitter_ms"), 20.0239856, 1e-7);
	ck_assert_double_eq(number(frames, "frame_count"), 10);
	cJSON_Delete(reply);
}
END_TEST

START_TEST(apps_tell_accounting_and_last_words)
{
	struct app_process *process = attach("cam", geteuid());
	process->accounting =
		(struct app_accounting){.sent = 10, .received = 7, .dropped = 1, .in_ring = 2};
	process->open_count = 1;
	snprintf(process->open[0].stage, sizeof(process->open[0].stage), "infer");
	process->open[0].frame = 8841;
	process->open[0].start_ns = f.now_ns;
	attach("gone", 4242);
	cJSON *reply = ask("ListApps", NULL);
	const cJSON *app = item_of(reply, "apps", "name", "cam");
	ck_assert_str_eq(string(app, "state"), "running");
	ck_assert_double_eq(number(app, "sent"),
		number(app, "received") + number(app, "dropped") + number(app, "in_ring"));
	const cJSON *row = cJSON_GetArrayItem(get(app, "processes"), 0);
	ck_assert_double_eq(number(row, "pid"), 4711);
	ck_assert_double_eq(number(cJSON_GetArrayItem(get(row, "open"), 0), "frame"), 8841);
	cJSON_Delete(reply);
	apps_detach(f.core.apps, process, PROCESS_DIED, f.now_ns);
	reply = ask("ListApps", NULL);
	app = item_of(reply, "apps", "name", "cam");
	ck_assert_str_eq(string(app, "state"), "died");
	ck_assert_ptr_nonnull(strstr(string(app, "last_words"), "8841"));
	ck_assert_int_eq(count(reply, "refused"), 0);
	cJSON_Delete(reply);
}
END_TEST

START_TEST(apps_say_why_a_process_was_refused)
{
	struct refusals *refusals = &f.counters.refusals;
	refusals_add(refusals, "mic", getuid(), 99, "it is in another time namespace", f.now_ns);
	refusals_add(refusals, "mic", getuid(), 99, "it is in another time namespace", f.now_ns);
	refusals_add(refusals, "", getuid(), 0, "no hello within 5 s", f.now_ns);
	cJSON *reply = ask("ListApps", NULL);
	const cJSON *row = item_of(reply, "refused", "app", "mic");
	ck_assert_str_eq(string(row, "reason"), "it is in another time namespace");
	ck_assert_double_eq(number(row, "count"), 2);
	ck_assert_double_eq(number(row, "pid"), 99);
	row = cJSON_GetArrayItem(get(reply, "refused"), 1);
	ck_assert(!cJSON_HasObjectItem(row, "app"));
	ck_assert(!cJSON_HasObjectItem(row, "pid"));
	cJSON_Delete(reply);
}
END_TEST

START_TEST(process_rows_are_clean_text)
{
	cJSON *reply = ask("ListProcesses", NULL);
	ck_assert_int_eq(count(reply, "processes"), 2);
	const cJSON *row = item_of(reply, "processes", "name", "cam");
	ck_assert_str_eq(string(row, "comm"), "c\xef\xbf\xbd\x1b[m");
	ck_assert_double_eq(number(row, "rss_bytes"), 4096);
	ck_assert(!cJSON_HasObjectItem(row, "user_percent"));
	ck_assert_str_eq(string(row, "state"), "S");
	cJSON_Delete(reply);
}
END_TEST

static const struct {
	const char *parameters, *name; /* NULL = refused */
	enum watch_kind kind;
} watches[] = {
	{"{\"pid\":42}", "pid-42", WATCH_PID},
	{"{\"pattern\":\"/opt/cam*\"}", "cam", WATCH_PATTERN},
	{"{\"pattern\":\"*\"}", "_", WATCH_PATTERN},
	{"{\"unit\":\"cam\"}", "cam", WATCH_UNIT},
	{"{\"unit\":\"a.b.slice\",\"name\":\"x\"}", "x", WATCH_UNIT},
	{"{}", NULL, 0},
	{"{\"name\":\"x\"}", NULL, 0},
	{"{\"pid\":0}", NULL, 0},
	{"{\"pid\":4194305}", NULL, 0},
	{"{\"pid\":1,\"unit\":\"x\"}", NULL, 0},
	{"{\"pattern\":\"\"}", NULL, 0},
	{"{\"pattern\":\"a\\nb\"}", NULL, 0},
	{"{\"unit\":\"a/b\"}", NULL, 0},
	{"{\"pid\":1,\"name\":\"a/b\"}", NULL, 0},
};

START_TEST(watches_are_made_and_taken_back)
{
	struct processes *processes = f.core.processes;
	size_t before = processes->watches;
	if (!watches[_i].name) {
		const char *error = ask_error("WatchProcess", watches[_i].parameters);
		ck_assert_int_eq(strncmp(error, "InvalidParameter ", 17), 0);
		ck_assert_uint_eq(processes->watches, before);
		return;
	}
	cJSON *reply = ask("WatchProcess", watches[_i].parameters);
	ck_assert_str_eq(string(reply, "name"), watches[_i].name);
	ck_assert_double_eq(number(reply, "count"), 1);
	cJSON_Delete(reply);
	ck_assert_uint_eq(processes->watches, before + 1);
	ck_assert_int_eq(processes->watch[before].kind, watches[_i].kind);
	char remove[128];
	snprintf(remove, sizeof(remove), "{\"name\":\"%s\",\"remove\":true}", watches[_i].name);
	reply = ask("WatchProcess", remove);
	ck_assert_double_eq(number(reply, "count"), 1);
	cJSON_Delete(reply);
	ck_assert_uint_eq(processes->watches, before);
}
END_TEST

START_TEST(watches_made_at_run_time_are_limited)
{
	char parameters[32];
	for (int i = 1; i <= WATCHES_RUNTIME_MAX; i++) {
		snprintf(parameters, sizeof(parameters), "{\"pid\":%d}", i);
		cJSON_Delete(ask("WatchProcess", parameters));
	}
	ck_assert_str_eq(ask_error("WatchProcess", "{\"pid\":99}"),
		"LimitReached what=\"watches\" limit=32");
	cJSON_Delete(ask("WatchProcess", "{\"pid\":1,\"remove\":true}"));
	ck_assert_str_eq(ask_error("WatchProcess", "{\"pid\":1,\"remove\":true}"),
		"NotFound what=\"watch\" name=\"1\"");
	cJSON_Delete(ask("WatchProcess", "{\"pid\":99}"));
}
END_TEST

START_TEST(alerts_pending_firing_and_all)
{
	cJSON *reply = ask("ListAlerts", NULL);
	ck_assert_int_eq(count(reply, "alerts"), 0);
	cJSON_Delete(reply);
	reply = ask("ListAlerts", "{\"all\":true}");
	const cJSON *alert = item_of(reply, "alerts", "instance", "max");
	ck_assert_str_eq(string(alert, "state"), "ok");
	cJSON_Delete(reply);
	fixture_temperature(80, 0);
	reply = ask("ListAlerts", "{\"all\":null}");
	ck_assert_double_eq(number(item_of(reply, "alerts", "instance", "max"), "value"), 80);
	cJSON_Delete(reply);
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

/* covers G0.13 */
START_TEST(throttling_is_null_until_the_hardware_tells)
{
	static const char *const flags[] = {"currently_under_voltage", "currently_freq_capped",
		"currently_throttled", "currently_soft_temp_limit", "under_voltage_occurred",
		"freq_capped_occurred", "throttled_occurred", "soft_temp_limit_occurred",
		"is_throttling", "over_current"};
	throttle_clear(&f.throttle, "no source on this machine tells it");
	throttle_add_tried(&f.throttle, "/dev/vcio", "No such file or directory");
	fixture_temperature(83, 0);
	cJSON *reply = ask("GetThrottle", NULL);
	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
		ck_assert_msg(cJSON_IsNull(cJSON_GetObjectItem(reply, flags[i])), "%s", flags[i]);
		ck_assert_str_eq(string(item_of(reply, "unknown", "field", flags[i]), "reason"),
			"no source on this machine tells it");
	}
	ck_assert(cJSON_IsNull(cJSON_GetObjectItem(reply, "raw")));
	ck_assert(cJSON_IsNull(cJSON_GetObjectItem(reply, "source")));
	ck_assert_str_eq(string(item_of(reply, "tried", "source", "/dev/vcio"), "result"),
		"No such file or directory");
	/* hot is not throttling */
	ck_assert(cJSON_IsTrue(cJSON_GetObjectItem(reply, "over_critical")));
	ck_assert_double_eq(number(reply, "critical_celsius"), 82);
	cJSON_Delete(reply);

	throttle_take_word(&f.throttle, 0x50004, THROTTLE_SINCE_BOOT);
	throttle_add_source(&f.throttle, "firmware mailbox");
	fixture_temperature(50, 0);
	reply = ask("GetThrottle", NULL);
	ck_assert_str_eq(string(reply, "raw"), "0x50004");
	ck_assert_str_eq(string(reply, "source"), "firmware mailbox");
	ck_assert(cJSON_IsTrue(cJSON_GetObjectItem(reply, "is_throttling")));
	ck_assert(cJSON_IsTrue(cJSON_GetObjectItem(reply, "currently_throttled")));
	ck_assert(cJSON_IsFalse(cJSON_GetObjectItem(reply, "currently_under_voltage")));
	ck_assert(cJSON_IsTrue(cJSON_GetObjectItem(reply, "under_voltage_occurred")));
	ck_assert(cJSON_IsFalse(cJSON_GetObjectItem(reply, "over_critical")));
	ck_assert_int_eq(count(reply, "unknown"), 1);
	cJSON_Delete(reply);
}
END_TEST

START_TEST(self_counts)
{
	f.counters.events_received = 5;
	cJSON *reply = ask("GetSelf", NULL);
	ck_assert_double_eq(number(reply, "pid"), getpid());
	ck_assert_double_eq(number(reply, "events_received"), 5);
	ck_assert_double_eq(number(reply, "api_connections"), 1);
	ck_assert_double_eq(number(reply, "api_calls"), 1);
	ck_assert_double_eq(number(reply, "metrics_max"), 4096);
	ck_assert_double_ge(number(reply, "history_samples"), 11);
	cJSON_Delete(reply);
}
END_TEST

START_TEST(reload_tells_what_was_wrong)
{
	cJSON_Delete(ask("Reload", NULL));
	ck_assert_int_eq(f.reloads, 1);
	f.reload_result = -EINVAL;
	ck_assert_str_eq(
		ask_error("Reload", NULL), "ReloadFailed text=\"edgeprofd.conf:3: unknown key\"");
}
END_TEST

START_TEST(unknown_names_and_types_are_named)
{
	static const char *const table[][3] = {
		{"NoSuch", NULL, "MethodNotFound method=\"io.edgeprof.NoSuch\""},
		{"org.varlink.service.No", NULL,
			"MethodNotFound method=\"org.varlink.service.No\""},
		{"a.b.C", NULL, "InterfaceNotFound interface=\"a.b\""},
		{"io.edgeprof", NULL, "InterfaceNotFound interface=\"io\""},
		{"GetStatus", "{\"x\":1}", "InvalidParameter parameter=\"x\""},
		{"GetStatus", "[]", "InvalidParameter parameter=\"parameters\""},
		{"GetStatus", "7", "InvalidParameter parameter=\"parameters\""},
		{"ListMetrics", "{\"glob\":[]}", "InvalidParameter parameter=\"glob\""},
		{"ListAlerts", "{\"all\":1}", "InvalidParameter parameter=\"all\""},
		{"ListEvents", "{\"limit\":\"9\"}", "InvalidParameter parameter=\"limit\""},
		{"Mark", "{\"label\":{}}", "InvalidParameter parameter=\"label\""},
		{"Subscribe", "{}", "ExpectedMore"},
	};
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		ck_assert_str_eq(ask_error(table[i][0], table[i][1]), table[i][2]);
	}
	int fd = client_open();
	cJSON *reply = client_call(fd, "GetStatus", NULL, ",\"upgrade\":true");
	ck_assert_str_eq(string(reply, "error"), "org.varlink.service.MethodNotImplemented");
	cJSON_Delete(reply);
	close(fd);
}
END_TEST

/* A connection as another user: credentials are those of the connect. */
static int client_open_as(uid_t uid)
{
	ck_assert_int_eq(seteuid(uid), 0);
	int fd = client_open();
	ck_assert_int_eq(seteuid(0), 0);
	return fd;
}

START_TEST(other_users_may_look_but_not_change)
{
	if (geteuid() != 0) {
		return; /* needs root to become somebody else */
	}
	attach("mine", 4242);
	attach("other", 4343);
	int fd = client_open_as(4242);
	cJSON *reply = client_call(fd, "SetSource", "{\"name\":\"thermal\"}", "");
	ck_assert_str_eq(string(reply, "error"), "io.edgeprof.NotPermitted");
	ck_assert_str_eq(string(get(reply, "parameters"), "group"), "edgeprof-test-absent");
	ck_assert_str_eq(string(get(reply, "parameters"), "method"), "SetSource");
	cJSON_Delete(reply);
	reply = client_call(fd, "WatchProcess", "{\"pid\":1}", "");
	ck_assert_str_eq(string(reply, "error"), "io.edgeprof.NotPermitted");
	cJSON_Delete(reply);
	reply = client_call(fd, "Reload", NULL, "");
	ck_assert_str_eq(string(reply, "error"), "io.edgeprof.NotPermitted");
	cJSON_Delete(reply);
	ck_assert_int_eq(f.reloads, 0);
	reply = client_call(fd, "ListProcesses", NULL, "");
	ck_assert_int_eq(count(get(reply, "parameters"), "processes"), 1);
	ck_assert_double_eq(
		number(item_of(get(reply, "parameters"), "processes", "name", "cam"), "pid"), 43);
	cJSON_Delete(reply);
	reply = client_call(fd, "ListApps", NULL, "");
	const cJSON *apps = get(reply, "parameters");
	ck_assert_int_eq(count(item_of(apps, "apps", "name", "mine"), "processes"), 1);
	ck_assert_int_eq(count(item_of(apps, "apps", "name", "other"), "processes"), 0);
	cJSON_Delete(reply);
	int refused = 0;
	for (int i = 0; i < 60; i++) {
		reply = client_call(fd, "Mark", "{\"label\":\"m\"}", "");
		refused += cJSON_HasObjectItem(reply, "error");
		cJSON_Delete(reply);
	}
	ck_assert_int_gt(refused + (seam()->now_ns() - f.now_ns > FIXTURE_SECOND), 0);
	close(fd);
}
END_TEST

START_TEST(members_of_the_group_may_change)
{
	if (geteuid() != 0) {
		return;
	}
	fixture_open();
	f.options.admin_group = "root"; /* gid 0: the groups of a process started by root */
	fixture_serve();
	int fd = client_open_as(4242);
	cJSON *reply = client_call(fd, "Reload", NULL, "");
	ck_assert(!cJSON_HasObjectItem(reply, "error"));
	cJSON_Delete(reply);
	close(fd);
	fixture_close();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("api_methods");
	TCase *tests = tcase_create("methods");
	tcase_set_timeout(tests, 60);
	tcase_add_checked_fixture(tests, start, end);
	tcase_add_test(tests, get_info_tells_interfaces);
	tcase_add_test(tests, the_description_is_served_to_the_byte);
	tcase_add_test(tests, status_tells_facts_sources_and_what_is_degraded);
	tcase_add_test(tests, status_tells_modes_and_leaves_out_what_is_not_known);
	tcase_add_test(tests, a_metric_tells_its_origin_when_it_has_one);
	tcase_add_test(tests, a_null_value_has_a_reason);
	tcase_add_test(tests, a_long_list_is_too_large_or_comes_in_chunks);
	tcase_add_test(tests, a_chunk_leaves_room_for_the_empty_tail);
	tcase_add_test(tests, sources_are_listed_and_wished);
	tcase_add_test(tests, history_has_every_row_as_columns);
	tcase_add_test(tests, history_without_more_is_thinned_to_max_points);
	tcase_add_test(tests, history_with_more_has_all_rows_in_chunks);
	tcase_add_test(tests, history_refuses_what_is_out_of_range);
	tcase_add_test(tests, stages_have_the_contract_s_numbers);
	tcase_add_test(tests, a_stage_without_events_has_no_numbers);
	tcase_add_test(tests, frames_have_the_contract_s_numbers);
	tcase_add_test(tests, apps_tell_accounting_and_last_words);
	tcase_add_test(tests, apps_say_why_a_process_was_refused);
	tcase_add_test(tests, process_rows_are_clean_text);
	tcase_add_loop_test(
		tests, watches_are_made_and_taken_back, 0, sizeof(watches) / sizeof(watches[0]));
	tcase_add_test(tests, watches_made_at_run_time_are_limited);
	tcase_add_test(tests, alerts_pending_firing_and_all);
	tcase_add_test(tests, marks_and_events_page_through_the_timeline);
	tcase_add_test(tests, throttling_is_null_until_the_hardware_tells);
	tcase_add_test(tests, self_counts);
	tcase_add_test(tests, reload_tells_what_was_wrong);
	tcase_add_test(tests, unknown_names_and_types_are_named);
	tcase_add_test(tests, other_users_may_look_but_not_change);
	suite_add_tcase(suite, tests);
	TCase *own = tcase_create("groups");
	tcase_set_timeout(own, 60);
	tcase_add_test(own, members_of_the_group_may_change);
	suite_add_tcase(suite, own);
	SRunner *runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	int failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? 0 : 1;
}
