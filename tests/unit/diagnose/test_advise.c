/* SPDX-License-Identifier: Apache-2.0 */
/* What is advised beyond findings: facts as literals, and what the tables make of them. */
#include "daemon/core/diagnose/advise.h"

#include <stdio.h>
#include <string.h>

#include "tests/unit/unit.h"

#define MIB (1024.0 * 1024)

static struct facts facts;
static struct diagnosis diagnosis;
static struct improvements improvements;

static struct fact_series *metric(enum fact_metric id, const char *path, double now)
{
	struct fact_series *series = &facts.metric[id];
	*series = (struct fact_series){.mean = {now, NAN}, .slope = NAN, .slope_low = NAN};
	snprintf(series->path, sizeof(series->path), "%s", path);
	return series;
}

static struct fact_stage *stage(const char *name, double share)
{
	struct fact_stage *ret = &facts.stage[facts.stages++];
	*ret = (struct fact_stage){
		.role = stage_role_of(name), .share = share, .cpu_ratio = (double)NAN};
	snprintf(ret->name, sizeof(ret->name), "%s", name);
	return ret;
}

static void judge(void)
{
	advise(&facts, &diagnosis, &diagnosis_limits_default, &improvements);
}

static bool is_bottleneck(const char *name)
{
	bool found = false;
	for (size_t i = 0; i < improvements.bottlenecks; i++) {
		found = found || strcmp(improvements.bottleneck[i], name) == 0;
	}
	return found;
}

static size_t recommended(const char *part)
{
	size_t count = 0;
	for (size_t i = 0; i < improvements.recommendations; i++) {
		count += strstr(improvements.recommendation[i], part) != NULL;
	}
	return count;
}

static void setup(void)
{
	facts = (struct facts){.frames = 1000, .span_s = 600, .cpus = 4, .frame_ms = {33, 33}};
	diagnosis = (struct diagnosis){.state = DIAGNOSIS_HEALTHY};
}

FIXTURE(setup, NULL);

START_TEST(nothing_is_advised_of_nothing)
{
	judge();
	ck_assert_uint_eq(improvements.bottlenecks + improvements.opportunities +
				  improvements.trends + improvements.recommendations,
		0);
}
END_TEST

/* covers G2.17 */
START_TEST(bottlenecks_have_limits)
{
	metric(FACT_CPU, "cpu/utilization", 85);
	metric(FACT_MEMORY_PERCENT, "memory/used_percent", 90);
	metric(FACT_TEMPERATURE, "temperature/max", 80);
	judge();
	ck_assert_uint_eq(improvements.bottlenecks, 0);
	metric(FACT_CPU, "cpu/utilization", 85.1);
	metric(FACT_MEMORY_PERCENT, "memory/used_percent", 90.1);
	metric(FACT_TEMPERATURE, "temperature/max", 80.1);
	judge();
	ck_assert_uint_eq(improvements.bottlenecks, 3);
	ck_assert(is_bottleneck("cpu_bound") && is_bottleneck("memory_bound"));
	ck_assert(is_bottleneck("thermal") && !is_bottleneck("thermal_throttling"));
	facts.metric[FACT_CPU].mean.now = (double)NAN;
	judge();
	ck_assert(!is_bottleneck("cpu_bound"));
}
END_TEST

START_TEST(throttling_by_heat_wants_hardware_evidence)
{
	metric(FACT_TEMPERATURE, "temperature/max", 60);
	metric(FACT_THROTTLE_ACTIVE, "throttle/active", 1); /* under-voltage, say */
	judge();
	ck_assert(!is_bottleneck("thermal_throttling"));
	metric(FACT_TEMPERATURE, "temperature/max", 85);
	judge();
	ck_assert(is_bottleneck("thermal_throttling"));
	setup();
	diagnosis.findings = 1;
	diagnosis.finding[0] = (struct finding){.cause = CAUSE_THERMAL_THROTTLING, .score = 0.9};
	judge();
	ck_assert(is_bottleneck("thermal_throttling"));
}
END_TEST

static const struct {
	const char *name;
	double share;
	const char *priority, *text; /* NULL: no rule holds */
	double gain_low;
} rows[] = {
	{"detect", 0.31, "HIGH", "the detector: detect takes 31 %", 10},
	{"detect", 0.29, "HIGH", NULL, 0},
	{"infer", 0.6, "HIGH", "the model: infer takes 60 %", 15},
	{"preprocess", 0.11, "MEDIUM", "preprocessing: preprocess takes 11 %", 5},
	{"preprocess", 0.09, "MEDIUM", NULL, 0},
	{"memcpy_frame", 0.06, "MEDIUM", "memory operations: memcpy_frame takes 6 %", 0},
	{"memcpy_frame", 0.04, "LOW", NULL, 0},
	{"draw", 0.2, "MEDIUM", NULL, 0},
	{"draw", 0.21, "HIGH", NULL, 0},
	{"draw", 0.05, "MEDIUM", NULL, 0},
};

START_LOOP_TEST(an_opportunity_has_its_priority_and_rule, 0, sizeof(rows) / sizeof(rows[0]))
{
	stage(rows[_i].name, rows[_i].share);
	judge();
	const struct opportunity *found = &improvements.opportunity[0];
	ck_assert_uint_eq(improvements.opportunities, 1);
	ck_assert_str_eq(found->priority, rows[_i].priority);
	ck_assert_msg(rows[_i].text ? strstr(found->text, rows[_i].text) == found->text
				    : found->text[0] == '\0',
		"%s", found->text);
	ck_assert(rows[_i].gain_low > 0 ? found->gain_low == rows[_i].gain_low
					: isnan(found->gain_low));
	ck_assert_uint_eq(improvements.recommendations, rows[_i].text != NULL);
}
END_TEST

START_TEST(stages_that_are_waited_for_little_are_not_the_rate)
{
	stage("infer", 1);
	facts.busy_ms.now = 5;
	facts.frame_ms.now = 40;
	judge();
	ck_assert_uint_eq(improvements.recommendations, 2);
	ck_assert_str_eq(improvements.recommendation[1],
		"a frame comes every 40.0 ms and takes 5.0 ms of work: faster stages save energy, "
		"but do not raise the rate");
	facts.frame_ms.now = 9;
	judge();
	ck_assert_uint_eq(improvements.recommendations, 1);
}
END_TEST

START_TEST(the_greatest_share_comes_first_and_waiting_is_none)
{
	stage("draw", 0.1);
	stage("capture", 0.5);
	stage("infer", 0.3);
	judge();
	ck_assert_uint_eq(improvements.opportunities, 2);
	ck_assert_str_eq(improvements.opportunity[0].stage, "infer");
	facts.stage[1].cpu_ratio = 0.9;
	judge();
	ck_assert_str_eq(improvements.opportunity[0].stage, "capture");
}
END_TEST

START_TEST(one_operation_may_dominate_its_category)
{
	snprintf(stage("encode", 0.15)->category, PROTO_LABEL_SIZE, "video");
	snprintf(stage("mux", 0.05)->category, PROTO_LABEL_SIZE, "video");
	judge();
	ck_assert_double_eq_tol(improvements.opportunity[0].category_percent, 75, 1e-6);
	ck_assert_str_eq(improvements.opportunity[0].text, "encode takes 75 % of its category");
	ck_assert_str_eq(improvements.opportunity[1].text, "");
}
END_TEST

START_TEST(a_trend_is_certain_and_matters)
{
	struct fact_series *rss = metric(FACT_APP_RSS, "process/cam/rss", 100 * MIB);
	rss->slope = 0.02 * MIB;
	rss->slope_low = 0.015 * MIB; /* 9 MiB in 600 s */
	rss->begin = 90 * MIB;
	rss->mean.now = 101.5 * MIB;
	judge();
	ck_assert_uint_eq(improvements.trends, 1);
	ck_assert_str_eq(improvements.trend[0].metric, "process/cam/rss");
	ck_assert_double_eq_tol(improvements.trend[0].per_hour, 69 * MIB, 1);
	ck_assert_double_eq_tol(improvements.trend[0].per_hour_least, 54 * MIB, 1);
	ck_assert_str_eq(
		improvements.trend[0].text, "rose from 90.0 to 101.5 MiB in the last 10 min");
	rss->slope_low = -1;
	judge();
	ck_assert_uint_eq(improvements.trends, 0);
	rss->slope_low = 0.001 * MIB;
	judge();
	ck_assert_uint_eq(improvements.trends, 0);
}
END_TEST

START_TEST(a_trend_is_never_more_than_was_measured)
{
	struct fact_series *hot = metric(FACT_TEMPERATURE, "temperature/max", 83);
	hot->slope = 0.1;
	hot->slope_low = 0.08; /* 48 °C in 600 s */
	hot->begin = 49;
	judge();
	ck_assert_double_eq_tol(improvements.trend[0].per_hour_least, 34 * 6, 1e-6);
	ck_assert_str_eq(
		improvements.trend[0].text, "rose from 49.0 to 83.0 °C in the last 10 min");
	hot->begin = 82; /* what rose fell again */
	judge();
	ck_assert_uint_eq(improvements.trends, 0);
}
END_TEST

/* covers G2.16 */
START_TEST(recommendations_are_of_likely_findings_and_no_duplicates)
{
	diagnosis.state = DIAGNOSIS_FINDINGS;
	diagnosis.findings = 3;
	diagnosis.finding[0] = (struct finding){.score = 0.9, .advice = {"cool it", "slower"}};
	diagnosis.finding[1] = (struct finding){.score = 0.5, .advice = {"cool it"}};
	diagnosis.finding[2] = (struct finding){.score = 0.1, .advice = {"buy another"}};
	judge();
	ck_assert_uint_eq(improvements.recommendations, 1);
	ck_assert_str_eq(improvements.recommendation[0], "cool it");
}
END_TEST

START_TEST(what_makes_numbers_untrustworthy_is_noted)
{
	facts.frames = 20;
	facts.virtual_machine = true;
	facts.dropped = 0.1;
	metric(FACT_DAEMON_CPU, "process/edgeprofd/cpu", 12);
	facts.process[0] = (struct fact_process){.name = "stress", .pid = 7, .cpu_percent = 180};
	judge();
	ck_assert_uint_eq(improvements.recommendations, 5);
	ck_assert_uint_eq(recommended("percentiles of 20 frames"), 1);
	ck_assert_uint_eq(recommended("virtual machine"), 1);
	ck_assert_uint_eq(recommended("10.0 % of the events"), 1);
	ck_assert_uint_eq(recommended("record less"), 1);
	ck_assert_uint_eq(recommended("12.0 % of a core (process/edgeprofd/cpu)"), 1);
	ck_assert_uint_eq(recommended("stress (pid 7)"), 1);
	facts.frames = 1000;
	facts.span_s = 5;
	facts.crowded = 64;
	judge();
	ck_assert_uint_eq(recommended("5.0 s is too short"), 1);
	ck_assert_uint_eq(recommended("record less"), 0);
	ck_assert_uint_eq(recommended("no more than 64 threads"), 1);
}
END_TEST

START_TEST(too_few_frames_are_only_noted)
{
	diagnosis.state = DIAGNOSIS_TOO_FEW;
	facts.frames = 4;
	stage("infer", 0.9);
	metric(FACT_CPU, "cpu/utilization", 99);
	judge();
	ck_assert_uint_eq(improvements.bottlenecks + improvements.opportunities, 0);
	ck_assert_uint_eq(improvements.recommendations, 1);
	ck_assert_str_eq(diagnosis_state_name(diagnosis.state), "insufficient_data");
}
END_TEST
