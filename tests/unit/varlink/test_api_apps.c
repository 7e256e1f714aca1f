/* SPDX-License-Identifier: Apache-2.0 */
/* Stages, frames, apps, processes over a real socket; every reply against the description. */
#include "tests/unit/unit.h"
#include "tests/unit/varlink/api_apps_fixture.h"

TEST_TIMEOUT(60);
FIXTURE(start, end);

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

/* 50 frames a second and a run of a stage, the last of both this long ago. */
static void frames_until(struct app_process *process, uint64_t ago_ns)
{
	uint64_t last_ns = f.now_ns - ago_ns;
	struct proto_record run = {.kind = PROTO_KIND_COMPLETE,
		.cpu_us = PROTO_CPU_NOT_MEASURED,
		.start_ns = last_ns - 1000000,
		.value = 1000000,
		.frame = PROTO_NO_FRAME};
	for (uint64_t i = 50; i > 0; i--) {
		tick(process, last_ns - (i - 1) * FIXTURE_SECOND / 50);
	}
	apps_record(f.core.apps, process, 0, &run, f.now_ns);
	apps_drained(f.core.apps, process);
}

START_TEST(a_rate_of_the_past_is_null_with_what_it_was)
{
	struct app_process *process = attach("cam", geteuid());
	declare(process, 0, "infer", "", 0);
	frames_until(process, 8 * (uint64_t)FIXTURE_SECOND);
	static const char *const calls[][2] = {
		{"ListApps", "apps"}, {"GetStatus", "apps"}, {"GetFrames", "frames"}};
	for (size_t i = 0; i < 3; i++) {
		cJSON *reply = ask(calls[i][0], NULL);
		const cJSON *row = get(reply, calls[i][1])->child;
		ck_assert_msg(cJSON_IsNull(get(row, "fps")), "%s", calls[i][0]);
		ck_assert_str_eq(string(row, "fps_reason"), "no event for 8 s");
		ck_assert_double_eq_tol(number(row, "last_fps"), 50, 1e-6);
		ck_assert_double_ge(number(row, "idle_ms"), 8000);
		ck_assert_double_ge(number(row, "age_ms"), 8000);
		cJSON_Delete(reply);
	}
	cJSON *reply = ask("GetFrames", NULL);
	ck_assert(cJSON_HasObjectItem(get(reply, "frames")->child, "frame_time_p95_ms"));
	ck_assert(!cJSON_HasObjectItem(get(reply, "frames")->child, "frame_time_ms"));
	cJSON_Delete(reply);
	reply = ask("ListApps", NULL);
	ck_assert_str_eq(string(get(reply, "apps")->child, "state"), "idle");
	cJSON_Delete(reply);
	reply = ask("ListStages", NULL);
	ck_assert_double_ge(number(get(reply, "stages")->child, "age_ms"), 8000);
	cJSON_Delete(reply);
	frames_until(process, 0);
	reply = ask("ListApps", NULL);
	const cJSON *app = get(reply, "apps")->child;
	ck_assert_str_eq(string(app, "state"), "running");
	ck_assert_double_gt(number(app, "fps"), 0);
	ck_assert(!cJSON_HasObjectItem(app, "last_fps"));
	cJSON_Delete(reply);
}
END_TEST

static const cJSON *of(const cJSON *reply, const char *object, const char *field)
{
	return cJSON_GetObjectItem(get(reply, object), field);
}

START_TEST(a_snapshot_is_of_now_with_its_ages)
{
	struct app_process *process = attach("cam", geteuid());
	struct app_process *slow = attach("mic", geteuid());
	declare(process, 0, "infer", "", 0);
	declare(slow, 0, "infer", "", 0);
	event(process, 0, 18500000);
	event(slow, 0, 40000000);
	fixture_temperature(61.5, 0.5);
	cJSON *reply = ask("GetSnapshot", NULL);
	ck_assert_double_eq(number(reply, "temperature"), 61.5);
	ck_assert(cJSON_IsNumber(of(reply, "ages_ms", "temperature")));
	ck_assert_double_eq_tol(number(reply, "inference_latency"), 40, 1e-9);
	ck_assert_str_eq(string(reply, "inference_app"), "mic");
	ck_assert_int_eq(count(reply, "apps"), 2);
	ck_assert(cJSON_IsNull(get(reply, "cpu_usage")));
	ck_assert_str_eq(cJSON_GetStringValue(of(reply, "reasons", "cpu_usage")),
		"the daemon has no source cpu");
	ck_assert(cJSON_IsNull(of(reply, "memory_usage", "bytes")));
	ck_assert_ptr_null(of(reply, "reasons", "inference_latency"));
	cJSON_Delete(reply);
	/* what has ended is no part of it, from the first moment on */
	apps_detach(f.core.apps, slow, PROCESS_ENDED, f.now_ns);
	reply = ask("GetSnapshot", NULL);
	ck_assert_str_eq(string(reply, "inference_app"), "cam");
	ck_assert_int_eq(count(reply, "apps"), 1);
	cJSON_Delete(reply);
	reply = ask("GetSnapshot", "{\"app\":\"mic\"}");
	ck_assert(cJSON_IsNull(get(reply, "inference_latency")));
	cJSON_Delete(reply);
	ck_assert_str_eq(
		ask_error("GetSnapshot", "{\"app\":\"x\"}"), "NotFound what=\"app\" name=\"x\"");
}
END_TEST

START_TEST(a_snapshot_has_nothing_that_is_old)
{
	struct app_process *process = attach("cam", geteuid());
	declare(process, 0, "infer", "", 0);
	frames_until(process, 8 * (uint64_t)FIXTURE_SECOND);
	f.thermal->last_ok_ns = f.now_ns - 30 * (uint64_t)FIXTURE_SECOND;
	cJSON *reply = ask("GetSnapshot", NULL);
	ck_assert(cJSON_IsNull(get(reply, "inference_latency")));
	ck_assert_str_eq(cJSON_GetStringValue(of(reply, "reasons", "inference_latency")),
		"the stage infer of cam: no event for 8 s");
	ck_assert(cJSON_IsNull(get(reply, "temperature")));
	ck_assert_ptr_nonnull(
		strstr(cJSON_GetStringValue(of(reply, "reasons", "temperature")), "is stale"));
	cJSON_Delete(reply);
	reply = ask("GetStatus", NULL);
	ck_assert(!cJSON_HasObjectItem(reply, "temperature_celsius"));
	cJSON_Delete(reply);
	reply = ask("GetThrottle", NULL);
	ck_assert(cJSON_IsNull(get(reply, "temperature_celsius")));
	cJSON_Delete(reply);
}
END_TEST

START_TEST(an_ended_app_leaves_the_live_views_after_ten_seconds)
{
	static const char *const calls[][2] = {{"ListApps", "apps"}, {"GetStatus", "apps"},
		{"GetFrames", "frames"}, {"ListStages", "stages"}, {"ListStages", "totals"}};
	static const char *const names[] = {"cam", "old"};
	for (size_t i = 0; i < 2; i++) {
		struct app_process *process = attach(names[i], geteuid());
		declare(process, 0, "infer", "", 0);
		frames_until(process, 11 * (uint64_t)FIXTURE_SECOND);
		apps_detach(f.core.apps, process, PROCESS_ENDED,
			f.now_ns - (i ? 10 : 0) * (uint64_t)FIXTURE_SECOND);
	}
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		cJSON *reply = ask(calls[i][0], NULL);
		ck_assert_msg(count(reply, calls[i][1]) == 1, "%s", calls[i][0]);
		cJSON_Delete(reply);
		reply = ask(calls[i][0], "{\"all\":true}");
		ck_assert_msg(count(reply, calls[i][1]) == 2, "%s", calls[i][0]);
		cJSON_Delete(reply);
	}
	cJSON *reply = ask("GetFrames", "{\"app\":\"old\"}");
	const cJSON *frames = item_of(reply, "frames", "app", "old");
	ck_assert_str_eq(string(frames, "fps_reason"), "app ended");
	ck_assert_double_eq_tol(number(frames, "last_fps"), 50, 1e-6);
	cJSON_Delete(reply);
	ck_assert_str_eq(
		ask_error("ListApps", "{\"all\":1}"), "InvalidParameter parameter=\"all\"");
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
	reply = ask("GetFrames", "{\"app\":\"cam\"}");
	ck_assert(cJSON_IsNull(get(get(reply, "frames")->child, "fps")));
	ck_assert_str_eq(string(get(reply, "frames")->child, "fps_reason"),
		"fewer than 2 frames since the start, a pause, or a loss of events");
	cJSON_Delete(reply);
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
	struct rejected_attaches *refusals = &f.counters.rejected_attaches;
	rejected_attaches_add(
		refusals, "mic", getuid(), 99, "it is in another time namespace", f.now_ns);
	rejected_attaches_add(
		refusals, "mic", getuid(), 99, "it is in another time namespace", f.now_ns);
	rejected_attaches_add(refusals, "", getuid(), 0, "no hello within 5 s", f.now_ns);
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

START_LOOP_TEST(watches_are_made_and_taken_back, 0, COUNT(watches))
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
