/* SPDX-License-Identifier: Apache-2.0 */
/* Sections and keys: what arrives, what is wrong and how it is told. */
#include "tests/unit/daemon/config_fixture.h"
#include "tests/unit/unit.h"

FIXTURE(setup, teardown);

START_TEST(empty_file_is_the_defaults)
{
	ck_assert_int_eq(load(""), 0);
	ck_assert_uint_eq(config.interval_ns, 1000000000u);
	ck_assert_uint_eq(config.history_bytes, 0); /* auto */
	ck_assert_uint_eq(config.stage_window, 1024);
	ck_assert_uint_eq(config.frame_window, 300);
	ck_assert(!config.mqtt.enabled);
	ck_assert_uint_eq(config.mqtt.brokers, 0);
	ck_assert_uint_eq(config.alerts, 19);
}
END_TEST

/* covers G2.13 */
START_TEST(built_in_rules_have_the_guides_limits)
{
	ck_assert_int_eq(load(""), 0);
	ck_assert_str_eq(config.alert[0].name, "temperature");
	ck_assert_double_eq(config.alert[0].threshold, 75);
	ck_assert_double_eq(config.alert[0].critical, 82);
	ck_assert_str_eq(config.alert[1].name, "temperature_limit");
	ck_assert_double_eq(config.alert[1].threshold, 85);
	ck_assert_str_eq(config.alert[2].metric, "memory/used_percent");
	ck_assert_double_eq(config.alert[2].threshold, 95);
	ck_assert_str_eq(config.alert[3].metric, "cpu/utilization");
	ck_assert_double_eq(config.alert[3].threshold, 90);
}
END_TEST

START_TEST(every_built_in_rule_is_switched_off_by_its_name)
{
	config_defaults(&config);
	const size_t count = config.alerts;
	for (size_t i = 0; i < count; i++) {
		char text[128];
		config_defaults(&config);
		snprintf(text, sizeof(text), "[alert %s]\nenabled = no\n", config.alert[i].name);
		ck_assert_int_eq(load(text), 0);
		ck_assert_uint_eq(config.alerts, count);
		for (size_t k = 0; k < count; k++) {
			ck_assert_int_eq(config.alert[k].enabled, k != i);
		}
	}
}
END_TEST

/* One step, however large, is in the window for `over` and tilts the line all that time. */
START_TEST(loading_a_model_is_no_leak)
{
	ck_assert_int_eq(load(""), 0);
	size_t found = 0;
	for (size_t i = 0; i < config.alerts; i++) {
		const struct alert_rule *rule = &config.alert[i];
		if (rule->kind == ALERT_SLOPE) {
			ck_assert_str_eq(rule->name, "leak");
			ck_assert_uint_gt(rule->for_ns, rule->over_ns);
			found++;
		}
		ck_assert_uint_eq(rule->max_per_hour, 12);
	}
	ck_assert_uint_eq(found, 1);
}
END_TEST

START_TEST(values_arrive)
{
	ck_assert_int_eq(
		load("[daemon]\nlog_level = debug\nsocket_group=video\n"
		     "[sampling]\ninterval = 250ms ; quick\n"
		     "[source thermal]\nenabled = no\n"
		     "[process cam]\nmatch = camera-*\n"
		     "[process svc]\nunit = camera\nmemory_limit = 100M\n"
		     "[alert slow]\nmetric = stage/*/infer/p95_ms\nabove = 33.5\nfor = 5s\n"
		     "severity = critical\nmessage = {instance} is slow\n"
		     "[mqtt]\nhost = broker.local\nca_file = /etc/ca.pem\n"),
		0);
	ck_assert_int_eq(config.log_level, LOG_LEVEL_DEBUG);
	ck_assert_str_eq(config.socket_group, "video");
	ck_assert_uint_eq(config.interval_ns, 250000000u);
	ck_assert_uint_eq(config.sources, 1);
	ck_assert(!config.source[0].enabled);
	ck_assert_str_eq(config.process[0].name, "cam");
	ck_assert_str_eq(config.process[0].pattern, "camera-*");
	ck_assert_int_eq(config.process[1].kind, WATCH_UNIT);
	ck_assert_str_eq(config.process[1].pattern, "camera.service");
	ck_assert_uint_eq(config.process[1].memory_limit_bytes, 100u << 20);
	const struct alert_rule *rule = &config.alert[config.alerts - 1];
	ck_assert_str_eq(rule->name, "slow");
	ck_assert_double_eq(rule->threshold, 33.5);
	ck_assert_uint_eq(rule->for_ns, 5000000000u);
	ck_assert_int_eq(rule->severity, ALERT_CRITICAL);
	ck_assert_str_eq(rule->message, "{instance} is slow");
	ck_assert(config.mqtt.enabled);
	ck_assert_uint_eq(config.mqtt.brokers, 1);
	ck_assert_int_eq(config.mqtt.broker[0].port, 8883);
}
END_TEST

START_TEST(a_broker_may_be_off_in_any_order)
{
	static const struct {
		const char *text;
		bool enabled;
	} row[] = {
		{"[mqtt]\nhost = a\nenabled = no\n", false},
		{"[mqtt]\nenabled = no\nhost = a\n", false},
		{"[mqtt]\nenabled = no\nhost = a\nenabled = yes\n", true},
		{"[mqtt]\nhost = a\n", true},
	};
	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		ck_assert_int_eq(load(row[i].text), 0);
		ck_assert_int_eq(config.mqtt.enabled, row[i].enabled);
	}
}
END_TEST

START_TEST(stage_and_frame_sections_take_globs)
{
	ck_assert_int_eq(load("[statistics]\npercentile_method = nearest\n"
			      "[stages]\nmemory = 2M\n[recorder]\nmemory = 1M\n"
			      "[stage cam/infer]\ndeadline = 33ms\nunit = gpu\n"
			      "[stage */*]\nwarmup = 10\nrss_growth_limit = 20M\n"
			      "[stage cam/infer]\ncategory = nn\n"
			      "[frame c?m*]\ndeadline = 500us\ntarget_fps = 29.97\nwarmup = 7\n"),
		0);
	ck_assert(config.nearest);
	ck_assert_uint_eq(config.stage_bytes, 2u << 20);
	ck_assert_uint_eq(config.recorder_bytes, 1u << 20);
	ck_assert_uint_eq(config.apps.count[SECTION_STAGE], 2);
	const struct app_section *section = config.apps.section[SECTION_STAGE];
	ck_assert_str_eq(section[0].glob, "cam/infer");
	ck_assert_uint_eq(section[0].stage.deadline_ns, 33000000u);
	ck_assert_str_eq(section[0].stage.unit, "gpu");
	ck_assert_str_eq(section[0].stage.category, "nn");
	ck_assert_uint_eq(section[1].stage.warmup, 10);
	ck_assert_int_eq(section[1].stage.rss_growth_limit, 20 << 20);
	ck_assert_uint_eq(config.apps.count[SECTION_FRAME], 1);
	ck_assert_uint_eq(config.apps.section[SECTION_FRAME][0].frames.deadline_ns, 500000);
	ck_assert_double_eq(config.apps.section[SECTION_FRAME][0].frames.target_fps, 29.97);
	ck_assert_uint_eq(config.apps.section[SECTION_FRAME][0].frames.warmup, 7);
}
END_TEST

/* libinih keeps 49 bytes of a section's name. */
START_TEST(long_name_of_a_section_is_whole)
{
	char text[256], a[49], b[49];
	memset(a, 'a', 48);
	memset(b, 'b', 48);
	a[48] = b[48] = '\0';
	snprintf(text, sizeof(text), "[stage %s/%s]\nwarmup = 3\n[process %s]\npid = 1\n", a, b, a);
	ck_assert_int_eq(load(text), 0);
	ck_assert_uint_eq(strlen(config.apps.section[SECTION_STAGE][0].glob), 97);
	ck_assert_str_eq(config.process[0].name, a);
	snprintf(text, sizeof(text), "[stage %sx/%s]\nwarmup = 3\n", a, b);
	ck_assert_int_eq(load(text), -EINVAL);
}
END_TEST

START_TEST(too_many_stage_sections_are_told)
{
	char *text = calloc(100, 64);
	ck_assert_ptr_nonnull(text);
	size_t used = 0;
	for (int i = 0; i < 65; i++) {
		used += (size_t)snprintf(text + used, 64, "[stage cam/s%d]\nwarmup = 1\n", i);
	}
	ck_assert_int_eq(load(text), -EINVAL);
	ck_assert_uint_eq(errors.count, 1);
	ck_assert_ptr_nonnull(strstr(errors.text[0], ":130: [stage cam/s64] warmup = 1: too many"));
	free(text);
}
END_TEST

START_TEST(section_of_a_built_in_rule_changes_single_keys)
{
	ck_assert_int_eq(load("[alert temperature]\nabove = 70\n[alert cpu]\nenabled = no\n"), 0);
	ck_assert_uint_eq(config.alerts, 19);
	ck_assert_double_eq(config.alert[0].threshold, 70);
	ck_assert_double_eq(config.alert[0].critical, 82);
	ck_assert(!config.alert[3].enabled);
}
END_TEST

START_TEST(new_limit_takes_the_built_in_clear_along)
{
	ck_assert_int_eq(load("[alert temperature]\nabove = 70\n"), 0);
	ck_assert_double_eq(config.alert[0].clear, 67);
	ck_assert_int_eq(load("[alert temperature]\nclear = 60\nabove = 70\n"), 0);
	ck_assert_double_eq(config.alert[0].clear, 60);
	ck_assert_int_eq(load("[alert temperature]\nabove = 70\nclear = 61\n"), 0);
	ck_assert_double_eq(config.alert[0].clear, 61);
	ck_assert_int_eq(load("[alert temperature]\ncritical = 90\nbelow = 99\n"), 0);
	ck_assert(isnan(config.alert[0].clear));
}
END_TEST

static const struct {
	const char *text;
	const char *told; /* must be in the message */
} bad[] = {
	{"[daemon]\nlog_levl = debug\n",
		":2: [daemon] log_levl = debug: unknown key; expected one of"},
	{"[deamon]\nlog_level = debug\n", "expected one of [daemon]"},
	{"log_level = debug\n", ":1: [] log_level = debug: stands before any section"},
	{"[daemon]\nlog_level = loud\n", "expected error, warning"},
	{"\n\n[sampling]\ninterval = soon\n",
		":4: [sampling] interval = soon: expected a duration"},
	{"[sampling]\ninterval = 1ms\n", "out of range; expected 50ms to 3600000ms"},
	{"[sampling]\ninterval = -1s\n", "expected a duration"},
	{"[sampling]\ninterval = nan\n", "expected a duration"},
	{"[sampling]\nadaptive = maybe\n", "expected yes or no"},
	{"[sampling]\nmin_interval = 20s\n", "min_interval is longer than max_interval"},
	{"[sampling]\ncalm_cpu = 80\n", "calm_cpu is not below busy_cpu"},
	{"[sampling]\nbusy_temperature = 40\n", "calm_temperature is not below"},
	{"[sampling]\nbusy_factor = 0.5\n", "busy_factor is not from 1 to 100"},
	{"[sampling]\ncalm_factor = 0\n", "calm_factor is not from 0.01 to 1"},
	{"[history]\nmemory = 16Q\n", "expected a size"},
	{"[history]\nmemory = 1K\n", "out of range; expected 256K"},
	{"[history]\nmemory = 0\n", "out of range; expected 256K"},
	{"[stages]\nmemory = auto\n", "expected a size"},
	{"[statistics]\nstage_window = 1.5\n", "expected a whole number"},
	{"[statistics]\nstage_window = 99999999999999999999\n", "expected a whole number"},
	{"[source nonsense]\nenabled = yes\n", "unknown source; expected one of"},
	{"[source thermal]\nenabled = maybe\n", "expected yes or no"},
	{"[source thermal]\nexlude = x\n", "unknown key"},
	{"[source throttle]\nvcgencmd = bin/vcgencmd\n",
		"vcgencmd = bin/vcgencmd: not an absolute"},
	{"[source pi]\nvcgencmd = vcgencmd\n", "not an absolute path"},
	{"[alert a/b]\nabove = 1\n", "invalid name of a section"},
	{"[alert]\nabove = 1\n", "invalid name of a section"},
	{"[daemon x]\nlog_level = info\n", "unknown section"},
	{"[alert a]\nabove = 1\n", "[alert a] has no metric"},
	{"[alert test]\nmetric = x\nabove = 1\n", "is reserved for edgeprofctl test-alert"},
	{"[alert a]\nmetric = cpu/utilization\n", "[alert a] has no limit"},
	{"[alert a]\nmetric = x\nabove = 2\nbelow = 1\n",
		":4: [alert a] below = 1: a rule has one limit, and this one has above already"},
	{"[alert a]\nmetric = cpu utilization\nabove = 1\n", "expected a metric name or glob"},
	{"[alert a]\nmetric = x\nabove = high\n", "expected a number"},
	{"[alert a]\nmetric = x\nabove = inf\n", "expected a number"},
	{"[alert a]\nmetric = x\nabove = 10\nclear = 20\n", "clear = 20 lies beyond the limit 10"},
	{"[alert a]\nmetric = x\nbelow = 10\ncritical = 20\n", "critical = 20 lies before"},
	{"[alert a]\nmetric = x\nabove = 1\nseverity = bad\n",
		"expected info, warning or critical"},
	{"[process p]\n", NULL},
	{"[process p]\npid = 0\n", "expected a process id"},
	{"[process p]\nunit = a/b\n", "expected the name of a systemd unit"},
	{"[process p]\nmatch = x\nmemory_limit = 1\n", "memory_limit"},
	{"[mqtt]\nenabled = yes\n", "[mqtt] enabled = yes without a host"},
	{"[mqtt]\nhost = a b\n", "'a b': expected a host name"},
	{"[mqtt]\nhost = a,b:99999\n",
		"[mqtt] host = a,b:99999: 'b:99999': the port is not 1 to 65535"},
	{"[mqtt]\nhost = a, b:\n", "'b:': the port is not 1 to 65535"},
	{"[mqtt]\nhost = a,,b\n", "'': expected a host name"},
	{"[mqtt]\nhost = [::1\n", "'[::1': expected [ADDRESS] or [ADDRESS]:PORT"},
	{"[mqtt]\nhost = a,b,c,d,e,f,g,h,i\n", "'i': more than 8 brokers"},
	{"[mqtt]\nhost = localhost,b\nusername = x\n", "would go to b as clear text"},
	{"[mqtt]\nport = 70000\n", "expected a number from 1 to 65535"},
	{"[mqtt]\ndevice_id = a/b\n", "expected 1 to 63 of"},
	{"[mqtt]\ntopic_prefix = a/#\n", "expected topic levels"},
	{"[stage cam]\nwarmup = 1\n", "invalid name of a section; expected [stage APP/STAGE]"},
	{"[stage cam/a/b]\nwarmup = 1\n", "invalid name of a section"},
	{"[stage cam/a b]\nwarmup = 1\n", "invalid name of a section"},
	{"[stage]\nwarmup = 1\n", "invalid name of a section"},
	{"[frame cam/a]\ndeadline = 1s\n", "invalid name of a section; expected [frame APP]"},
	{"[frame]\ndeadline = 1s\n", "invalid name of a section"},
	{"[stage cam/a]\ndeadline = 0\n", "expected a duration from 1us to 1h"},
	{"[stage cam/a]\ndeadline = 2h\n", "expected a duration from 1us to 1h"},
	{"[stage cam/a]\ndeadline = fast\n", "deadline = fast: expected a duration"},
	{"[stage cam/a]\nunit = two words\n", "expected a word"},
	{"[stage cam/a]\ncategory = abcdefghijklmnopqrstuvwx\n", "expected a word"},
	{"[stage cam/a]\nunit =\n", "expected a word"},
	{"[stage cam/a]\nwarmup = -1\n", "expected a number of events"},
	{"[stage cam/a]\nwarmup = 0\n", "expected a number of events"},
	{"[stage cam/a]\nrss_growth_limit = 1\n", "expected a size of at least 4K"},
	{"[stage cam/a]\ntarget_fps = 1\n", "unknown key; expected one of deadline unit category"},
	{"[frame cam]\ntarget_fps = 0\n", "expected frames a second"},
	{"[frame cam]\ntarget_fps = nan\n", "expected frames a second"},
	{"[frame cam]\nunit = gpu\n", "unknown key; expected one of deadline target_fps warmup"},
	{"[frame cam]\nwarmup = 0\n", "expected a number of events"},
	{"[stages]\nmemory = 1K\n", "expected 1024K to 1048576K"},
	{"[recorder]\nmemory = 1K\n", "expected 64K to 1048576K"},
	{"[recorder]\nbehind = 1s\n", "unknown key"},
	{"[advice]\nminimal_headroom = 9\n", "expected at most reduce_headroom = 8"},
	{"[advice]\nreduce_headroom = -1\n", "expected at most reduce_headroom = -1"},
	{"[advice]\nmiss_share = 0\n", "expected percent of frames, from 1 to 100"},
	{"[diagnosis]\nhigh_priority = 101\n", "expected percent, from 0 to 100"},
	{"[diagnosis]\nthermal = hot\n", "expected a number"},
	{"[advice]\nrecover_after = 500ms\n", "expected 1s to 3600s"},
	{"[gauge]\nexpire = 500ms\n", "expected 1s to 86400s"},
	{"[gauge]\nexpire = 25h\n", "expected 1s to 86400s"},
	{"[statistics]\npercentile_method = Linear\n", "expected linear or nearest"},
	{"[daemon\nlog_level = info\n", "expected [section] or key = value"},
	{"[daemon]\njust words\n", ":2: not understood; expected [section] or key = value"},
};

START_LOOP_TEST(mistake_is_told_with_file_line_and_what_was_expected, 0, COUNT(bad))
{
	int r = load(bad[_i].text);
	if (!bad[_i].told) {
		ck_assert_int_eq(r, 0);
		return;
	}
	ck_assert_int_eq(r, -EINVAL);
	ck_assert_uint_ge(errors.count, 1);
	bool told = false;
	for (size_t i = 0; i < errors.count && i < CONFIG_ERRORS_MAX; i++) {
		told = told || strstr(errors.text[i], bad[_i].told);
	}
	ck_assert_msg(told, "%s is not in: %s", bad[_i].told, errors.text[0]);
	ck_assert_int_eq(strncmp(errors.text[0], dir, strlen(dir)), 0);
}
END_TEST

START_TEST(all_mistakes_are_told_at_once)
{
	ck_assert_int_eq(load("[daemon]\na = 1\nb = 2\n[sampling]\ninterval = x\n"), -EINVAL);
	ck_assert_uint_eq(errors.count, 3);
}
END_TEST

START_TEST(keys_that_need_a_restart_are_named)
{
	static struct config old, new;
	char keys[512];
	config_defaults(&old);
	config_defaults(&new);
	ck_assert_uint_eq(config_restart_keys(&old, &new, keys, sizeof(keys)), 0);
	ck_assert_str_eq(keys, "");
	char error[320];
	ck_assert_int_eq(config_set(&new, "sampling", "interval", "2s", error, sizeof(error)), 0);
	ck_assert_uint_eq(config_restart_keys(&old, &new, keys, sizeof(keys)), 0);
	ck_assert_int_eq(config_set(&new, "daemon", "admin_group", "x", error, sizeof(error)), 0);
	ck_assert_int_eq(config_set(&new, "history", "memory", "1M", error, sizeof(error)), 0);
	ck_assert_int_eq(config_set(&new, "history", "persist", "yes", error, sizeof(error)), 0);
	ck_assert_uint_eq(config_restart_keys(&old, &new, keys, sizeof(keys)), 3);
	ck_assert_str_eq(keys, "[daemon] admin_group, [history] memory, [history] persist");
}
END_TEST
