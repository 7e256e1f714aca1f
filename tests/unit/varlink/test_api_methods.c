/* SPDX-License-Identifier: Apache-2.0 */
/* Methods on a core of literals, over a real socket; every reply against the description. */
#include "daemon/core/status/degraded.h"
#include "daemon/core/status/modes.h"
#include "tests/unit/unit.h"
#include "tests/unit/varlink/api_apps_fixture.h"

TEST_TIMEOUT(60);
FIXTURE(start, end);

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
	char *text = calloc(1, proto_interface_size);
	ck_assert_ptr_nonnull(text);
	proto_interface(text);
	ck_assert_str_eq(string(reply, "description"), text);
	free(text);
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
	struct degraded degraded = {.count = 0};
	degraded_add(&degraded, "history", "no space");
	f.core.degraded = &degraded;
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
	reply = ask("GetSelf", "{}");
	ck_assert_str_eq(
		string(item_of(reply, "degraded", "file", "history"), "reason"), "no space");
	cJSON_Delete(reply);
	f.core.degraded = NULL;
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
	ck_assert_str_eq(string(get(reply, "source"), "state"), "suspended");
	ck_assert_double_eq(number(get(reply, "source"), "interval_ms"), 250);
	cJSON_Delete(reply);
	ck_assert(!f.thermal->wanted);
	ck_assert_uint_eq(f.thermal->wanted_interval_ns, 250000000);
	ck_assert_uint_eq(f.thermal->request_serial, 1);
	ck_assert_str_eq(
		ask_error("SetSource", "{\"name\":\"x\"}"), "NotFound what=\"source\" name=\"x\"");
	ck_assert_str_eq(ask_error("SetSource", "{\"name\":\"thermal\",\"interval_ms\":-1}"),
		"InvalidParameter parameter=\"interval_ms\"");
	ck_assert_str_eq(ask_error("SetSource", "{\"name\":\"thermal\",\"interval_ms\":49}"),
		"InvalidParameter parameter=\"interval_ms\"");
	ck_assert_str_eq(ask_error("SetSource", "{\"name\":\"thermal\",\"interval_ms\":1e999}"),
		"InvalidParameter parameter=\"interval_ms\"");
	ck_assert_str_eq(ask_error("SetSource", "{}"), "InvalidParameter parameter=\"name\"");
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
	/* pending again: what is said of the time before is over */
	struct alert *max = NULL;
	for (size_t i = 0; !max || strcmp(max->instance, "max") != 0; i++) {
		max = (struct alert *)alerts_at(f.core.alerts, i);
	}
	snprintf(max->text, sizeof(max->text), "no longer above 75");
	max->phase = ALERT_OK;
	reply = ask("ListAlerts", "{\"all\":true}");
	alert = item_of(reply, "alerts", "instance", "max");
	ck_assert_str_eq(string(alert, "text"), "no longer above 75");
	cJSON_Delete(reply);
	max->phase = ALERT_PENDING;
	reply = ask("ListAlerts", NULL);
	ck_assert_str_eq(string(item_of(reply, "alerts", "instance", "max"), "text"), "");
	cJSON_Delete(reply);
}
END_TEST

/* covers G0.13 */
START_TEST(throttling_is_null_until_the_hardware_tells)
{
	static const char *const flags[] = {"currently_under_voltage", "currently_freq_capped",
		"currently_throttled", "currently_soft_temp_limit", "under_voltage_occurred",
		"freq_capped_occurred", "throttled_occurred", "soft_temp_limit_occurred",
		"is_throttling", "over_current"};
	throttle_clear(&f.throttle, "no source on this machine reports it");
	throttle_add_tried(&f.throttle, "/dev/vcio", "No such file or directory");
	fixture_temperature(83, 0);
	cJSON *reply = ask("GetThrottle", NULL);
	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
		ck_assert_msg(cJSON_IsNull(cJSON_GetObjectItem(reply, flags[i])), "%s", flags[i]);
		ck_assert_str_eq(string(item_of(reply, "unknown", "field", flags[i]), "reason"),
			"no source on this machine reports it");
	}
	ck_assert(cJSON_IsNull(cJSON_GetObjectItem(reply, "raw")));
	ck_assert(cJSON_IsNull(cJSON_GetObjectItem(reply, "source")));
	ck_assert_str_eq(string(item_of(reply, "tried", "source", "/dev/vcio"), "result"),
		"No such file or directory");
	/* hot is not throttling */
	ck_assert(cJSON_IsTrue(cJSON_GetObjectItem(reply, "over_critical")));
	ck_assert_double_eq(number(reply, "critical_celsius"), 82);
	cJSON_Delete(reply);

	throttle_on_word(&f.throttle, 0x50004, THROTTLE_SINCE_BOOT);
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

START_TEST(self_reaches_back_to_the_first_sample)
{
	const uint64_t first_ns = f.now_ns - 10 * (uint64_t)FIXTURE_SECOND;
	/* the bucket of 10 s with the first ones is complete, and then that of 1 min */
	fixture_temperature(50, -60);
	fixture_temperature(50, -120);
	cJSON *reply = ask("GetSelf", NULL);
	const double since_s = (double)(sysops()->now_ns() - first_ns) / 1e9;
	ck_assert_double_ge(number(reply, "history_span_s"), 10);
	ck_assert_double_le(number(reply, "history_span_s"), since_s);
	ck_assert_int_eq(count(reply, "history_tiers"), 3);
	const cJSON *tier;
	cJSON_ArrayForEach(tier, cJSON_GetObjectItem(reply, "history_tiers"))
	{
		ck_assert_double_ge(number(tier, "span_s"), 10);
		ck_assert_double_le(number(tier, "span_s"), since_s);
	}
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
	fixture_temperature(80, 0);
	static const char *const holds[][2] = {
		{"SilenceAlert", "{\"rule\":\"hot\",\"seconds\":60}"},
		{"AckAlert", "{\"rule\":\"hot\"}"},
		{"TestAlert", "{}"},
		{"RecordNow", "{}"},
	};
	for (size_t i = 0; i < sizeof(holds) / sizeof(holds[0]); i++) {
		reply = client_call(fd, holds[i][0], holds[i][1], "");
		ck_assert_str_eq(string(reply, "error"), "io.edgeprof.NotPermitted");
		ck_assert_str_eq(string(get(reply, "parameters"), "method"), holds[i][0]);
		cJSON_Delete(reply);
	}
	reply = client_call(fd, "ListSilences", NULL, "");
	ck_assert_int_eq(count(get(reply, "parameters"), "silences"), 0);
	cJSON_Delete(reply);
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
	cJSON_Delete(client_call(fd, "Mark", "{\"label\":\"theirs\",\"app\":\"other\"}", ""));
	reply = ask("ListMarks", NULL); /* as root, who may see it */
	ck_assert_str_eq(string(item_of(reply, "marks", "label", "theirs"), "memory_reason"),
		"the app is another user's");
	cJSON_Delete(reply);
	int refused = 0;
	for (int i = 0; i < 60; i++) {
		reply = client_call(fd, "Mark", "{\"label\":\"m\"}", "");
		refused += cJSON_HasObjectItem(reply, "error");
		cJSON_Delete(reply);
	}
	ck_assert_int_gt(refused + (sysops()->now_ns() - f.now_ns > FIXTURE_SECOND), 0);
	close(fd);
}
END_TEST

FIXTURE(NULL, NULL);

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
