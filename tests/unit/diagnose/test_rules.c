/* SPDX-License-Identifier: Apache-2.0 */
/* The rules of diagnosis: facts as literals, and the finding that must come first. */
#include <stdio.h>
#include <string.h>

#include "daemon/core/diagnose/rules/diagnose.h"
#include "tests/unit/unit.h"

#define UNKNOWN ((double)NAN)
#define GIB (1024.0 * 1024 * 1024)
#define MIB (1024.0 * 1024)

static struct facts facts;
static struct diagnosis diagnosis;

static struct fact_series *metric(enum fact_metric metric, double now, double usual)
{
	static const char *const paths[] = {
#define X(name, path, how) path,
		FACT_METRICS(X)
#undef X
	};
	struct fact_series *series = &facts.metric[metric];
	const char *app = strstr(paths[metric], "%s");
	*series = (struct fact_series){.mean = {now, usual},
		.least = now,
		.most = now,
		.first_s = UNKNOWN,
		.slope = 0,
		.slope_low = -1,
		.frames_match = UNKNOWN};
	snprintf(series->path, sizeof(series->path), "%.*s%s%s",
		app ? (int)(app - paths[metric]) : 200, paths[metric], app ? "cam" : "",
		app ? app + 2 : "");
	return series;
}

/* Changed this many seconds ago, in step with the frames. */
static void moved(enum fact_metric id, double now, double usual, double first_s, double match)
{
	struct fact_series *series = metric(id, now, usual);
	series->first_s = first_s;
	series->frames_match = match;
}

static struct fact_stage *stage(const char *name, double now, double usual)
{
	struct fact_stage *found = &facts.stage[0];
	while (found < facts.stage + facts.stages && strcmp(found->name, name) != 0) {
		found++;
	}
	facts.stages += found == facts.stage + facts.stages;
	*found = (struct fact_stage){.role = stage_role_of(name),
		.ms = {now, usual},
		.p99_ms = 1.1 * now,
		.cpu_ratio = UNKNOWN,
		.wait_ms = UNKNOWN};
	snprintf(found->name, sizeof(found->name), "%s", name);
	return found;
}

static void process(const char *name, double cpu_percent)
{
	facts.process[0] = (struct fact_process){.pid = 4711,
		.cpu_percent = cpu_percent,
		.rss_bytes = 50 * MIB,
		.io_bytes = UNKNOWN};
	snprintf(facts.process[0].name, sizeof(facts.process[0].name), "%s", name);
}

static void frame(double now, double usual)
{
	facts.frame_ms = (struct fact){now, usual};
	facts.frame_p50_ms = now;
	facts.frame_p95_ms = 1.04 * now;
	facts.frame_p99_ms = 1.08 * now;
}

static void slower(double now, double usual)
{
	frame(now, usual);
	facts.since_s = 60;
}

/* A camera at 30 frames/s with time to spare. */
static void camera(void)
{
	facts = (struct facts){.app = "cam",
		.span_s = 200,
		.frames = 6000,
		.frames_now = 600,
		.event_rate = 150,
		.latency_ms = {UNKNOWN, UNKNOWN},
		.latency_p50_ms = UNKNOWN,
		.latency_p95_ms = UNKNOWN,
		.busy_ms = {33, 33},
		.busy_p5_ms = 31,
		.target_ms = UNKNOWN,
		.deadline_ms = UNKNOWN,
		.miss_percent = {UNKNOWN, UNKNOWN},
		.in_flight = 1,
		.since_s = UNKNOWN,
		.run_delay_ms = {UNKNOWN, UNKNOWN},
		.major_faults = {UNKNOWN, UNKNOWN},
		.slow_excess_ms = UNKNOWN,
		.slow_run_delay_ms = UNKNOWN,
		.slow_major_faults = UNKNOWN,
		.slow_minor_faults = UNKNOWN,
		.slow_cpu_ms = UNKNOWN,
		.slow_period_frames = UNKNOWN,
		.slow_regularity = UNKNOWN,
		.throttled_share = 0,
		.throttled_ms = UNKNOWN,
		.unthrottled_ms = UNKNOWN,
		.throttled_joules = UNKNOWN,
		.unthrottled_joules = UNKNOWN,
		.cpus = 4,
		.governor = "schedutil",
		.frequency_limit = 1,
		.critical_celsius = 85,
		.policy = "SCHED_OTHER",
		.quota_percent = UNKNOWN,
		.quota_throttled = UNKNOWN,
		.cpus_allowed = 4};
	frame(33.3, 33.3);
	stage("capture", 15, 15);
	stage("preprocess", 4, 4);
	stage("infer", 12, 12);
	stage("postprocess", 2, 2);
	metric(FACT_TEMPERATURE, 62, 61);
	metric(FACT_THROTTLE_ACTIVE, 0, 0);
	metric(FACT_UNDER_VOLTAGE, 0, 0);
	metric(FACT_CPU, 40, 40);
	metric(FACT_CPU_BUSIEST, 60, 60);
	metric(FACT_CPU_FREQUENCY, 1.5e9, 1.5e9);
	metric(FACT_MEMORY_PERCENT, 40, 40);
	metric(FACT_MEMORY_AVAILABLE, 2.2 * GIB, 2.2 * GIB);
	metric(FACT_PRESSURE_CPU, 1, 1);
	metric(FACT_PRESSURE_MEMORY, 0, 0);
	metric(FACT_PRESSURE_IO, 0.2, 0.2);
	metric(FACT_APP_CPU, 70, 70);
	metric(FACT_APP_RSS, 200 * MIB, 200 * MIB);
	metric(FACT_APP_THREADS, 4, 4);
	metric(FACT_APP_STOPPED, 0, 0);
	metric(FACT_DAEMON_CPU, 0.5, 0.5);
	process("sshd", 2);
}

/* The frame takes 66 ms instead of 33, and computing is what grew. */
static void computes_slower(void)
{
	camera();
	slower(66, 33.3);
	facts.busy_ms = (struct fact){66, 33};
	stage("capture", 1, 15);
	stage("preprocess", 10, 4)->share = 0.15;
	stage("infer", 50, 12)->share = 0.76;
	stage("postprocess", 5, 2)->share = 0.08;
}

static void below_target(double infer, double preprocess)
{
	camera();
	double all = infer + preprocess + 4;
	frame(all, all);
	facts.busy_ms = (struct fact){all, all};
	facts.busy_p5_ms = 0.95 * all;
	facts.target_ms = 33.3;
	stage("capture", 2, 2)->share = 2 / all;
	stage("preprocess", preprocess, preprocess)->share = preprocess / all;
	stage("infer", infer, infer)->share = infer / all;
	stage("postprocess", 2, 2)->share = 2 / all;
}

/* One frame in `every` takes this much longer. */
static void jitter(double every, double excess_ms)
{
	camera();
	frame(33.3 + excess_ms / every, 33.3 + excess_ms / every);
	facts.frame_p50_ms = 33.3;
	facts.frame_p95_ms = every < 20 ? 33.3 + excess_ms : 34;
	facts.frame_p99_ms = 33.3 + excess_ms;
	facts.slow_share = 1 / every;
	facts.slow_excess_ms = excess_ms;
	facts.slow_period_frames = every;
	facts.slow_regularity = 1.4;
	facts.slow_stages = 1;
}

#define CASE(name) static void name(void)

CASE(writes_wait_for_the_card);
CASE(stopped_while_it_waits_for_the_camera);
CASE(writes_wait_without_delay_accounting);

CASE(thermal_throttling_of_a_pi)
{
	computes_slower();
	moved(FACT_THROTTLE_ACTIVE, 0.96, 0, 62, 0.8);
	moved(FACT_TEMPERATURE, 82.4, 70, 100, 0.7);
	facts.throttled_ms = 65;
	facts.unthrottled_ms = 33.3;
	facts.throttled_share = 0.3;
}

CASE(thermal_throttling_that_raises_the_load_of_the_gpu)
{
	thermal_throttling_of_a_pi();
	metric(FACT_GPU, 99, 70);
	moved(FACT_GPU_FREQUENCY, 3e8, 6e8, 60, -0.8);
	moved(FACT_CPU, 60, 40, 60, 0.8);
}

CASE(thermal_throttling_since_the_start_below_the_target)
{
	below_target(80, 6);
	metric(FACT_THROTTLE_ACTIVE, 1, UNKNOWN);
	metric(FACT_TEMPERATURE, 84, UNKNOWN);
	facts.frame_ms.usual = UNKNOWN;
	facts.throttled_share = 1;
	facts.throttled_ms = 90;
}

CASE(thermal_throttling_in_turns)
{
	camera();
	frame(40, 36);
	facts.frame_p95_ms = 48;
	moved(FACT_THROTTLE_ACTIVE, 0.5, 0.2, 150, 0.7);
	metric(FACT_TEMPERATURE, 84, 82);
	facts.throttled_share = 0.4;
	facts.throttled_ms = 48;
	facts.unthrottled_ms = 33.3;
}

CASE(thermal_with_a_busy_process_that_takes_nothing)
{
	thermal_throttling_of_a_pi();
	process("stress", 80);
	facts.run_delay_ms = (struct fact){0.4, 0.3};
	metric(FACT_PRESSURE_CPU, 3, 3);
}

CASE(thermal_with_flags_unknown)
{
	computes_slower();
	facts.metric[FACT_THROTTLE_ACTIVE].path[0] = '\0';
	moved(FACT_TEMPERATURE, 84, 70, 90, 0.7);
	moved(FACT_CPU_FREQUENCY, 0.7e9, 1.5e9, 60, -0.8);
	metric(FACT_CPU_BUSIEST, 80, 60);
}

CASE(low_voltage_with_a_capped_clock)
{
	computes_slower();
	moved(FACT_UNDER_VOLTAGE, 0.9, 0, 60, 0.8);
	moved(FACT_THROTTLE_ACTIVE, 0.95, 0, 60, 0.8);
	metric(FACT_TEMPERATURE, 64, 61);
	facts.throttled_ms = 65;
	facts.unthrottled_ms = 33.3;
}

CASE(low_voltage_flickers_while_capped)
{
	computes_slower();
	moved(FACT_UNDER_VOLTAGE, 0.12, 0, 60, 0.4);
	moved(FACT_THROTTLE_ACTIVE, 1, 0, 60, 0.8);
}

CASE(heat_while_the_voltage_was_always_low)
{
	computes_slower();
	metric(FACT_UNDER_VOLTAGE, 1, 1);
	moved(FACT_THROTTLE_ACTIVE, 0.95, 0, 60, 0.8);
	moved(FACT_TEMPERATURE, 84, 70, 90, 0.8);
}

CASE(low_voltage_flickers_since_the_start)
{
	below_target(60, 6);
	metric(FACT_UNDER_VOLTAGE, 0.15, 0.15);
	metric(FACT_THROTTLE_ACTIVE, 1, 1);
	facts.throttled_share = 1;
	facts.throttled_ms = 70;
}

CASE(thermal_throttling_of_all_that_is_known)
{
	below_target(60, 6);
	metric(FACT_TEMPERATURE, 84, 84);
	metric(FACT_THROTTLE_ACTIVE, 1, 1);
	facts.throttled_share = 1;
	facts.throttled_ms = 70;
}

CASE(over_current_of_a_jetson)
{
	computes_slower();
	moved(FACT_OVER_CURRENT_RATE, 40, 2, 60, 0.8);
	moved(FACT_POWER, 15000, 10000, 60, 0.6);
	moved(FACT_POWER_BUDGET, 100, 70, 60, 0.6);
	facts.metric[FACT_UNDER_VOLTAGE].path[0] = '\0';
	metric(FACT_TEMPERATURE, 60, 58);
}

CASE(the_clock_fell_without_throttling)
{
	computes_slower();
	moved(FACT_CPU_FREQUENCY, 0.6e9, 1.5e9, 60, -0.9);
	metric(FACT_CPU_BUSIEST, 95, 60);
	facts.frequency_limit = 0.4;
}

CASE(a_frequency_limit_below_the_target)
{
	below_target(52, 6);
	facts.frequency_limit = 0.5;
}

CASE(the_governor_powersave)
{
	below_target(60, 6);
	snprintf(facts.governor, sizeof(facts.governor), "powersave");
}

CASE(cpu_fallback_below_the_target)
{
	below_target(90, 6);
	struct fact_stage *infer = stage("infer", 90, 90);
	infer->cpu_fallback = true;
	infer->share = 0.88;
	strcpy(infer->unit, "cpu");
	strcpy(infer->expected_unit, "gpu");
}

CASE(cpu_fallback_in_the_middle_of_a_run)
{
	camera();
	slower(66, 33.3);
	facts.busy_ms = (struct fact){66, 33};
	stage("capture", 1, 15);
	stage("infer", 0, 12);
	struct fact_stage *infer = stage("infer_cpu", 50, 0);
	infer->cpu_fallback = true;
	infer->share = 0.76;
	strcpy(infer->unit, "cpu");
	strcpy(infer->expected_unit, "gpu");
}

CASE(model_too_large)
{
	below_target(80, 6);
}

CASE(model_too_large_with_a_hot_board)
{
	below_target(80, 6);
	metric(FACT_TEMPERATURE, 84, 84);
}

CASE(model_too_large_for_its_deadline)
{
	below_target(60, 6);
	facts.target_ms = UNKNOWN;
	facts.deadline_ms = 50;
	facts.miss_percent = (struct fact){100, 100};
}

CASE(slow_without_a_target)
{
	below_target(300, 20);
	facts.target_ms = UNKNOWN;
}

CASE(preprocessing_takes_most)
{
	below_target(20, 40);
}

CASE(postprocessing_takes_most)
{
	below_target(10, 6);
	frame(66, 66);
	facts.busy_ms = (struct fact){66, 66};
	stage("postprocess", 48, 48)->share = 0.73;
}

CASE(no_stage_reaches_the_deadline)
{
	below_target(22, 20);
	facts.busy_ms = (struct fact){66, 66};
	frame(66, 66);
	stage("draw", 21, 21);
	stage("publish", 20, 20);
	facts.busy_p5_ms = 62;
	facts.deadline_ms = 33;
	facts.miss_percent = (struct fact){100, 100};
}

/* Frames come as they should. */
static void late(double now, double usual, double deadline_ms)
{
	camera();
	struct fact_stage *infer = stage("infer", now, usual);
	infer->took_ms = infer->ms;
	infer->deadline_ms = deadline_ms;
	infer->least_ms = 0.9 * now;
	infer->miss_percent = 100;
}

CASE(a_stage_that_never_meets_its_deadline)
{
	late(12, 12, 8);
}

CASE(stopped_in_a_stage_with_a_deadline)
{
	stopped_while_it_waits_for_the_camera();
	struct fact_stage *infer = stage("infer", 14, 10);
	infer->took_ms = infer->ms;
	infer->deadline_ms = 18;
	infer->least_ms = 9;
	infer->miss_percent = 4;
}

CASE(a_stage_that_heat_makes_late)
{
	late(20, 12, 16);
	moved(FACT_THROTTLE_ACTIVE, 0.96, 0, 62, 0.8);
	moved(FACT_TEMPERATURE, 84, 70, 100, 0.7);
	facts.since_s = 60;
	facts.throttled_ms = facts.unthrottled_ms = 33.3;
}

CASE(a_stage_that_a_hog_makes_late)
{
	late(20, 12, 16);
	process("stress-ng", 99);
	facts.since_s = 60;
	facts.run_delay_ms = (struct fact){8, 0.2};
}

CASE(a_stage_that_nobody_makes_late)
{
	late(20, 12, 16);
}

/* One stage grew from `usual`, the camera waits as much less. */
static void grows(const char *name, double now, double usual)
{
	camera();
	slower(33.3 + now - usual, 33.3);
	facts.busy_ms = (struct fact){33 + now - usual, 33};
	stage(name, now, usual);
}

CASE(a_larger_model)
{
	grows("infer", 30, 12);
}

CASE(a_larger_input)
{
	grows("preprocess", 20, 4);
}

CASE(a_crowd)
{
	grows("postprocess", 20, 2);
}

/* The work takes longer than a period of the camera, whose next frame is waited for. */
CASE(heat_makes_the_loop_miss_a_frame_of_the_camera)
{
	thermal_throttling_of_a_pi();
	stage("capture", 26, 15);
	stage("preprocess", 9, 4);
	stage("infer", 27, 12);
	stage("postprocess", 4, 2);
}

CASE(mild_heat)
{
	camera();
	slower(123, 117);
	metric(FACT_TEMPERATURE, 82, 70);
	moved(FACT_THROTTLE_ACTIVE, 1, 0, 61, 0.8);
	facts.throttled_share = 0.4;
	facts.throttled_ms = 125;
	facts.unthrottled_ms = 117;
	facts.throttled = facts.unthrottled = (struct fact_scatter){200, 4};
	facts.busy_ms = (struct fact){123, 117};
	stage("capture", 1, 1);
	stage("infer", 112, 106)->share = 0.9;
}

CASE(events_of_low_voltage)
{
	low_voltage_with_a_capped_clock();
	metric(FACT_OVER_CURRENT, 0, 0);
	moved(FACT_OVER_CURRENT_RATE, 12, 0, 61, 0.8);
}

CASE(the_camera_stalls)
{
	camera();
	slower(66, 33.3);
	facts.busy_ms = (struct fact){66, 33};
	stage("capture", 48, 15)->share = 0.73;
}

CASE(the_camera_delivers_too_little)
{
	camera();
	frame(66, UNKNOWN);
	facts.busy_ms = (struct fact){66, UNKNOWN};
	facts.target_ms = 33.3;
	stage("capture", 48, UNKNOWN)->share = 0.73;
}

CASE(the_camera_spikes)
{
	jitter(30, 200);
	stage("capture", 21, 21)->excess_ms = 6.5;
	facts.slow_run_delay_ms = 0.1;
	facts.slow_cpu_ms = 1;
}

CASE(a_hog_takes_the_processor)
{
	computes_slower();
	process("stress-ng", 99);
	facts.run_delay_ms = (struct fact){30, 0.2};
	moved(FACT_PRESSURE_CPU, 60, 1, 62, 0.8);
	moved(FACT_CPU, 99, 40, 61, 0.8);
}

CASE(a_hog_without_frame_context)
{
	computes_slower();
	process("stress-ng", 99);
	moved(FACT_PRESSURE_CPU, 60, 1, 55, 0.8);
	moved(FACT_CPU, 99, 40, 61, 0.8);
}

CASE(a_hog_and_a_hot_board)
{
	a_hog_takes_the_processor();
	moved(FACT_TEMPERATURE, 84, 62, 40, 0.7);
}

CASE(heat_lowers_the_clock_under_a_flag_that_is_always_on)
{
	computes_slower();
	facts.throttled_share = 1;
	metric(FACT_THROTTLE_ACTIVE, 1, 1);
	moved(FACT_TEMPERATURE, 98, 54, 60, 0.8);
	moved(FACT_CPU_FREQUENCY, 960e6, 1728e6, 60, -0.8);
	facts.critical_celsius = 99;
}

/* As Python apps are: no wait of a frame is known, but there is only one thread. */
CASE(a_hog_since_the_start_of_one_thread)
{
	below_target(60, 6);
	process("stress-ng", 40);
	metric(FACT_APP_THREADS, 1, 1);
	metric(FACT_APP_RUN_DELAY, 48, 48);
}

/* It explains a part of what is wrong at all times, and all that became worse. */
CASE(a_hog_since_the_start_that_gets_worse)
{
	below_target(60, 6);
	slower(100, 70);
	facts.busy_ms = (struct fact){100, 70};
	stage("infer", 88, 60)->share = 0.88;
	process("stress-ng", 99);
	facts.run_delay_ms = (struct fact){64, 36};
}

CASE(two_hogs_of_one_thread)
{
	a_hog_since_the_start_of_one_thread();
	slower(76, 60);
	moved(FACT_APP_RUN_DELAY, 59, 48, 61, 0.8);
}

CASE(a_hog_in_slow_frames_only)
{
	jitter(15, 60);
	process("backup", 85);
	facts.slow_run_delay_ms = 55;
	facts.run_delay_ms = (struct fact){4, 4};
}

CASE(a_hog_since_the_start)
{
	below_target(60, 6);
	process("stress-ng", 99);
	facts.run_delay_ms = (struct fact){32, 32};
	metric(FACT_PRESSURE_CPU, 60, 60);
	metric(FACT_CPU, 99, 99);
}

CASE(a_hog_since_the_start_without_frame_context)
{
	below_target(40, 20);
	process("stress-ng", 99);
	metric(FACT_PRESSURE_CPU, 60, 60);
	metric(FACT_CPU, 99, 99);
}

CASE(a_hog_with_a_late_flag_that_costs_nothing)
{
	a_hog_takes_the_processor();
	moved(FACT_THROTTLE_ACTIVE, 0.9, 0, 15, 0.3);
	metric(FACT_TEMPERATURE, 84, 70);
	facts.throttled_share = 0.1;
	facts.throttled_ms = 66;
	facts.unthrottled_ms = 65;
}

CASE(a_camera_that_stalls_while_another_process_leaks)
{
	camera();
	slower(66, 33.3);
	facts.busy_ms = (struct fact){66, 33};
	stage("capture", 48, 15)->share = 0.73;
	moved(FACT_MEMORY_AVAILABLE, 1 * GIB, 2 * GIB, 150, 0.6);
	moved(FACT_MEMORY_PERCENT, 75, 40, 150, 0.6);
	facts.largest = (struct fact_process){.name = "leaky", .pid = 99, .rss_bytes = 2 * GIB};
}

CASE(storage_stalls_while_the_clock_falls_for_want_of_work)
{
	writes_wait_for_the_card();
	moved(FACT_CPU_FREQUENCY, 0.6e9, 1.5e9, 58, -0.9);
	metric(FACT_CPU_BUSIEST, 20, 60);
}

CASE(a_low_priority)
{
	a_hog_takes_the_processor();
	facts.nice = 19;
}

CASE(a_quota)
{
	below_target(50, 6);
	facts.quota_percent = 50;
	facts.quota_throttled = 0.45;
}

CASE(more_threads_than_processors)
{
	computes_slower();
	facts.run_delay_ms = (struct fact){30, 1};
	moved(FACT_APP_CPU, 395, 70, 60, 0.8);
	metric(FACT_APP_THREADS, 17, 4);
}

CASE(priority_inversion)
{
	jitter(30, 150);
	process("hog", 99);
	facts.nice = -5;
	facts.slow_run_delay_ms = 1;
	facts.slow_cpu_ms = 2;
	facts.run_delay_ms = (struct fact){0.1, 0.1};
	metric(FACT_APP_RUN_DELAY, 60, 2);
	stage("infer", 17, 12)->excess_ms = 5;
}

CASE(priority_inversion_since_the_start)
{
	priority_inversion();
	metric(FACT_APP_RUN_DELAY, 60, 60);
}

CASE(garbage_collection)
{
	jitter(50, 80);
	facts.slow_regularity = 0.05;
	facts.slow_cpu_ms = 78;
	facts.slow_run_delay_ms = 0.1;
	facts.slow_stages = 3;
}

CASE(allocator_pauses_without_cpu_times)
{
	jitter(40, 70);
	facts.slow_minor_faults = 4000;
	facts.slow_run_delay_ms = 0.1;
	stage("infer", 14, 14)->excess_ms = 1.7;
}

CASE(stopped_by_a_signal)
{
	jitter(60, 400);
	facts.slow_cpu_ms = 0.5;
	facts.slow_run_delay_ms = 0.2;
	facts.slow_stages = 3;
	stage("capture", 17, 17)->excess_ms = 3;
	stage("infer", 15, 15)->excess_ms = 3;
}

CASE(stopped_without_cpu_times)
{
	stopped_by_a_signal();
	facts.slow_cpu_ms = UNKNOWN;
	facts.frame_ms.usual = 33.3;
	metric(FACT_APP_CPU, 60, 70);
}

CASE(a_collector_beside_a_busy_neighbour)
{
	jitter(30, 180);
	facts.frame_ms.usual = 33.3;
	facts.slow_stages = 1;
	stage("infer", 18, 12)->excess_ms = 5.5;
	metric(FACT_APP_CPU, 40, 30);
	moved(FACT_PRESSURE_CPU, 22, 17, 60, 0.6);
	moved(FACT_APP_RUN_DELAY, 10.9, 8.5, 60, 0.6);
	metric(FACT_APP_MAJOR_FAULTS, 0, 0);
	metric(FACT_APP_READ, 0, 0);
	metric(FACT_APP_WRITE, 0, 0);
	moved(FACT_PRESSURE_IO, 16, 0, 60, 0.6);
	moved(FACT_PRESSURE_MEMORY, 4, 0, 60, 0.6);
	process("live-app", 63);
}

CASE(a_slow_broker)
{
	jitter(20, 60);
	stage("publish", 4, 4)->excess_ms = 3;
}

CASE(starved_without_a_target)
{
	below_target(56, 4);
	facts.target_ms = UNKNOWN;
	facts.run_delay_ms = (struct fact){56, 56};
	process("cc1", 99);
}

/* A thread of low priority holds a lock and gets no processor. */
CASE(priority_inversion_by_a_hog)
{
	priority_inversion();
	facts.nice = 0;
	metric(FACT_APP_CPU, 3, 38);
}

CASE(a_disk_without_psi)
{
	writes_wait_without_delay_accounting();
	facts.metric[FACT_PRESSURE_IO].path[0] = '\0';
	moved(FACT_CPU_IOWAIT, 42, 0.3, 60, 0.8);
}

/* Another one swaps. */
CASE(a_disk_beside_memory_pressure)
{
	writes_wait_without_delay_accounting();
	moved(FACT_PRESSURE_MEMORY, 40, 0, 60, 0.8);
	metric(FACT_MEMORY_PERCENT, 97, 40);
	metric(FACT_APP_MAJOR_FAULTS, 0, 0);
	metric(FACT_APP_MINOR_FAULTS, 10, 10);
	metric(FACT_APP_READ, 2 * MIB, 2 * MIB);
}

CASE(swapping_without_psi)
{
	computes_slower();
	facts.metric[FACT_PRESSURE_MEMORY].path[0] = '\0';
	moved(FACT_MEMORY_PERCENT, 98, 60, 60, 0.8);
	moved(FACT_SWAP_USED, 480 * MIB, 0, 60, 0.8);
}

CASE(a_host_takes_the_processors)
{
	computes_slower();
	moved(FACT_CPU_STEAL, 50, 1, 60, 0.8);
}

CASE(silent)
{
	camera();
	facts.target_ms = 33.3;
	facts.silent_s = 45;
	facts.frames = 4000; /* not without other pauses */
	facts.frames_now = 0;
	facts.frame_ms.now = UNKNOWN;
}

/* Of a loop that never waits nothing shows how fast it would be. */
CASE(throttled_since_the_daemon_started)
{
	below_target(60, 6);
	facts.target_ms = UNKNOWN;
	metric(FACT_TEMPERATURE, 84, UNKNOWN);
	metric(FACT_THROTTLE_ACTIVE, 1, UNKNOWN);
}

/* Whoever waits most of the time is stopped in its wait. */
CASE(stopped_while_it_waits_for_the_camera)
{
	the_camera_spikes();
	moved(FACT_APP_STOPPED, 0, 0, UNKNOWN, 0.5);
}

CASE(stopped_half_of_the_time)
{
	camera();
	slower(66, 33.3);
	moved(FACT_APP_STOPPED, 0.5, 0, 60, 0.8);
}

/* No frame's context is known, but the load was high when frames were slow. */
CASE(a_hog_in_slow_frames_without_frame_context)
{
	jitter(15, 60);
	process("backup", 85);
	moved(FACT_PRESSURE_CPU, 22, 4, UNKNOWN, 0.6);
}

CASE(pauses_while_the_load_is_always_high)
{
	garbage_collection();
	process("backup", 85);
	moved(FACT_PRESSURE_CPU, 40, 40, UNKNOWN, 0.1);
	facts.slow_cpu_ms = facts.slow_run_delay_ms = UNKNOWN;
	facts.frame_ms.usual = 33.3;
	metric(FACT_APP_CPU, 72, 70);
}

static void leak(double bytes_per_second)
{
	struct fact_series *rss =
		metric(FACT_APP_RSS, 200 * MIB + 100 * bytes_per_second, 200 * MIB);
	facts.span_s = 400;
	rss->slope = bytes_per_second;
	rss->slope_low = 0.9 * bytes_per_second;
	rss->most = rss->mean.now + 40 * bytes_per_second;
	rss->first_s = 180;
}

CASE(a_leak)
{
	camera();
	leak(0.5 * MIB);
}

CASE(a_leak_that_is_felt)
{
	computes_slower();
	leak(8 * MIB);
	moved(FACT_PRESSURE_MEMORY, 30, 0, 60, 0.8);
	moved(FACT_MEMORY_PERCENT, 97, 40, 80, 0.8);
	moved(FACT_MEMORY_AVAILABLE, 0.1 * GIB, 2 * GIB, 100, 0.8);
}

CASE(memory_pressure_by_another_process)
{
	computes_slower();
	moved(FACT_PRESSURE_MEMORY, 30, 0, 60, 0.8);
	moved(FACT_PRESSURE_IO, 40, 0, 60, 0.8);
	moved(FACT_MEMORY_PERCENT, 97, 40, 80, 0.8);
	moved(FACT_APP_MAJOR_FAULTS, 300, 0, 60, 0.8);
	facts.largest = (struct fact_process){.name = "hoarder", .pid = 99, .rss_bytes = 3 * GIB};
}

CASE(writes_wait_for_the_card)
{
	camera();
	slower(66, 33.3);
	facts.busy_ms = (struct fact){66, 33};
	stage("capture", 1, 15);
	stage("save", 47, 2)->cpu_ratio = 0.05;
	moved(FACT_PRESSURE_IO, 55, 0.2, 60, 0.8);
	moved(FACT_APP_IODELAY, 66, 0.5, 60, 0.8);
	metric(FACT_APP_WRITE, 2 * MIB, 2 * MIB);
}

CASE(writes_wait_without_delay_accounting)
{
	writes_wait_for_the_card();
	facts.metric[FACT_APP_IODELAY].path[0] = '\0';
}

CASE(storage_stalls_now_and_then)
{
	jitter(40, 180);
	metric(FACT_PRESSURE_IO, 12, 12);
	facts.slow_cpu_ms = 1;
	facts.slow_run_delay_ms = 0.3;
	stage("save", 6, 6)->excess_ms = 4.5;
}

CASE(the_gpu_is_at_its_limit)
{
	below_target(80, 6);
	metric(FACT_GPU, 99, 99);
	strcpy(facts.stage[2].unit, "gpu");
}

CASE(another_process_uses_the_gpu)
{
	computes_slower();
	moved(FACT_GPU, 99, 55, 60, 0.8);
	stage("preprocess", 4, 4);
	stage("infer", 58, 12)->share = 0.85;
}

CASE(the_memory_bus_is_full)
{
	computes_slower();
	moved(FACT_EMC, 93, 45, 60, 0.8);
}

CASE(stages_out_of_balance)
{
	camera();
	facts.in_flight = 7;
	frame(60, 60);
	facts.busy_ms = (struct fact){82, 82};
	facts.latency_ms = (struct fact){420, 420};
	stage("infer", 59, 59)->wait_ms = 330;
}

CASE(the_profiler_costs)
{
	below_target(40, 10);
	facts.event_rate = 400000;
	metric(FACT_DAEMON_CPU, 60, 60);
	metric(FACT_CPU, 95, 95);
	facts.run_delay_ms = (struct fact){6, 6};
}

CASE(nobody_knows)
{
	computes_slower();
}

CASE(a_hog_that_was_always_there)
{
	computes_slower();
	process("stress", 99);
	facts.run_delay_ms = (struct fact){1, 1};
	metric(FACT_PRESSURE_CPU, 40, 40);
	metric(FACT_CPU, 95, 95);
}

static const struct {
	void (*set)(void);
	enum cause cause;
	enum confidence least;
} causes[] = {
	{thermal_throttling_of_a_pi, CAUSE_THERMAL_THROTTLING, CONFIDENCE_HIGH},
	{thermal_throttling_that_raises_the_load_of_the_gpu, CAUSE_THERMAL_THROTTLING,
		CONFIDENCE_HIGH},
	{thermal_throttling_since_the_start_below_the_target, CAUSE_THERMAL_THROTTLING,
		CONFIDENCE_HIGH},
	{thermal_throttling_in_turns, CAUSE_THERMAL_THROTTLING, CONFIDENCE_HIGH},
	{thermal_with_a_busy_process_that_takes_nothing, CAUSE_THERMAL_THROTTLING, CONFIDENCE_HIGH},
	{thermal_with_flags_unknown, CAUSE_THERMAL_THROTTLING, CONFIDENCE_MEDIUM},
	{low_voltage_with_a_capped_clock, CAUSE_UNDER_VOLTAGE, CONFIDENCE_HIGH},
	{low_voltage_flickers_while_capped, CAUSE_UNDER_VOLTAGE, CONFIDENCE_HIGH},
	{heat_while_the_voltage_was_always_low, CAUSE_THERMAL_THROTTLING, CONFIDENCE_HIGH},
	{low_voltage_flickers_since_the_start, CAUSE_UNDER_VOLTAGE, CONFIDENCE_HIGH},
	{thermal_throttling_of_all_that_is_known, CAUSE_THERMAL_THROTTLING, CONFIDENCE_HIGH},
	{over_current_of_a_jetson, CAUSE_OVER_CURRENT, CONFIDENCE_HIGH},
	{the_clock_fell_without_throttling, CAUSE_CLOCK_LIMIT, CONFIDENCE_HIGH},
	{a_frequency_limit_below_the_target, CAUSE_CLOCK_LIMIT, CONFIDENCE_HIGH},
	{the_governor_powersave, CAUSE_CLOCK_LIMIT, CONFIDENCE_HIGH},
	{cpu_fallback_below_the_target, CAUSE_CPU_FALLBACK, CONFIDENCE_HIGH},
	{cpu_fallback_in_the_middle_of_a_run, CAUSE_CPU_FALLBACK, CONFIDENCE_HIGH},
	{model_too_large, CAUSE_INFERENCE_BOUND, CONFIDENCE_HIGH},
	{model_too_large_with_a_hot_board, CAUSE_INFERENCE_BOUND, CONFIDENCE_HIGH},
	{model_too_large_for_its_deadline, CAUSE_INFERENCE_BOUND, CONFIDENCE_HIGH},
	{slow_without_a_target, CAUSE_INFERENCE_BOUND, CONFIDENCE_MEDIUM},
	{preprocessing_takes_most, CAUSE_PREPROCESSING_BOUND, CONFIDENCE_HIGH},
	{postprocessing_takes_most, CAUSE_STAGE_BOUND, CONFIDENCE_HIGH},
	{no_stage_reaches_the_deadline, CAUSE_DEADLINE_UNREACHABLE, CONFIDENCE_HIGH},
	{a_stage_that_never_meets_its_deadline, CAUSE_DEADLINE_UNREACHABLE, CONFIDENCE_HIGH},
	{stopped_in_a_stage_with_a_deadline, CAUSE_STOPPED, CONFIDENCE_HIGH},
	{a_stage_that_heat_makes_late, CAUSE_THERMAL_THROTTLING, CONFIDENCE_HIGH},
	{a_stage_that_a_hog_makes_late, CAUSE_CPU_CONTENTION, CONFIDENCE_HIGH},
	{a_stage_that_nobody_makes_late, CAUSE_INFERENCE_BOUND, CONFIDENCE_MEDIUM},
	{a_larger_model, CAUSE_INFERENCE_BOUND, CONFIDENCE_HIGH},
	{a_larger_input, CAUSE_PREPROCESSING_BOUND, CONFIDENCE_HIGH},
	{a_crowd, CAUSE_STAGE_BOUND, CONFIDENCE_HIGH},
	{heat_makes_the_loop_miss_a_frame_of_the_camera, CAUSE_THERMAL_THROTTLING, CONFIDENCE_HIGH},
	{mild_heat, CAUSE_THERMAL_THROTTLING, CONFIDENCE_MEDIUM},
	{events_of_low_voltage, CAUSE_UNDER_VOLTAGE, CONFIDENCE_HIGH},
	{the_camera_stalls, CAUSE_CAPTURE_STALL, CONFIDENCE_MEDIUM},
	{the_camera_delivers_too_little, CAUSE_CAPTURE_STALL, CONFIDENCE_HIGH},
	{the_camera_spikes, CAUSE_CAPTURE_STALL, CONFIDENCE_HIGH},
	{a_hog_takes_the_processor, CAUSE_CPU_CONTENTION, CONFIDENCE_HIGH},
	{a_hog_without_frame_context, CAUSE_CPU_CONTENTION, CONFIDENCE_HIGH},
	{a_hog_and_a_hot_board, CAUSE_CPU_CONTENTION, CONFIDENCE_HIGH},
	{a_hog_in_slow_frames_only, CAUSE_CPU_CONTENTION, CONFIDENCE_HIGH},
	{heat_lowers_the_clock_under_a_flag_that_is_always_on, CAUSE_THERMAL_THROTTLING,
		CONFIDENCE_HIGH},
	{a_hog_since_the_start, CAUSE_CPU_CONTENTION, CONFIDENCE_HIGH},
	{a_hog_since_the_start_of_one_thread, CAUSE_CPU_CONTENTION, CONFIDENCE_HIGH},
	{a_hog_since_the_start_that_gets_worse, CAUSE_CPU_CONTENTION, CONFIDENCE_HIGH},
	{two_hogs_of_one_thread, CAUSE_CPU_CONTENTION, CONFIDENCE_HIGH},
	{a_hog_since_the_start_without_frame_context, CAUSE_CPU_CONTENTION, CONFIDENCE_MEDIUM},
	{a_hog_with_a_late_flag_that_costs_nothing, CAUSE_CPU_CONTENTION, CONFIDENCE_HIGH},
	{a_camera_that_stalls_while_another_process_leaks, CAUSE_CAPTURE_STALL, CONFIDENCE_MEDIUM},
	{storage_stalls_while_the_clock_falls_for_want_of_work, CAUSE_IO_STALL, CONFIDENCE_HIGH},
	{a_low_priority, CAUSE_SCHEDULING, CONFIDENCE_HIGH},
	{a_quota, CAUSE_SCHEDULING, CONFIDENCE_HIGH},
	{more_threads_than_processors, CAUSE_SCHEDULING, CONFIDENCE_HIGH},
	{priority_inversion, CAUSE_SCHEDULING, CONFIDENCE_HIGH},
	{priority_inversion_since_the_start, CAUSE_SCHEDULING, CONFIDENCE_HIGH},
	{garbage_collection, CAUSE_PAUSES, CONFIDENCE_HIGH},
	{allocator_pauses_without_cpu_times, CAUSE_PAUSES, CONFIDENCE_HIGH},
	{stopped_by_a_signal, CAUSE_STOPPED, CONFIDENCE_HIGH},
	{stopped_without_cpu_times, CAUSE_STOPPED, CONFIDENCE_MEDIUM},
	{stopped_while_it_waits_for_the_camera, CAUSE_STOPPED, CONFIDENCE_HIGH},
	{stopped_half_of_the_time, CAUSE_STOPPED, CONFIDENCE_HIGH},
	{a_collector_beside_a_busy_neighbour, CAUSE_PAUSES, CONFIDENCE_MEDIUM},
	{a_slow_broker, CAUSE_STAGE_BOUND, CONFIDENCE_MEDIUM},
	{starved_without_a_target, CAUSE_CPU_CONTENTION, CONFIDENCE_HIGH},
	{priority_inversion_by_a_hog, CAUSE_SCHEDULING, CONFIDENCE_HIGH},
	{a_disk_without_psi, CAUSE_IO_STALL, CONFIDENCE_MEDIUM},
	{a_disk_beside_memory_pressure, CAUSE_IO_STALL, CONFIDENCE_MEDIUM},
	{swapping_without_psi, CAUSE_MEMORY_PRESSURE, CONFIDENCE_MEDIUM},
	{a_host_takes_the_processors, CAUSE_CPU_CONTENTION, CONFIDENCE_MEDIUM},
	{silent, CAUSE_STOPPED, CONFIDENCE_MEDIUM},
	{throttled_since_the_daemon_started, CAUSE_THERMAL_THROTTLING, CONFIDENCE_MEDIUM},
	{a_hog_in_slow_frames_without_frame_context, CAUSE_CPU_CONTENTION, CONFIDENCE_HIGH},
	{pauses_while_the_load_is_always_high, CAUSE_PAUSES, CONFIDENCE_HIGH},
	{a_leak, CAUSE_MEMORY_LEAK, CONFIDENCE_HIGH},
	{a_leak_that_is_felt, CAUSE_MEMORY_LEAK, CONFIDENCE_HIGH},
	{memory_pressure_by_another_process, CAUSE_MEMORY_PRESSURE, CONFIDENCE_HIGH},
	{writes_wait_for_the_card, CAUSE_IO_STALL, CONFIDENCE_HIGH},
	{writes_wait_without_delay_accounting, CAUSE_IO_STALL, CONFIDENCE_HIGH},
	{storage_stalls_now_and_then, CAUSE_IO_STALL, CONFIDENCE_HIGH},
	{the_gpu_is_at_its_limit, CAUSE_GPU_BOUND, CONFIDENCE_HIGH},
	{another_process_uses_the_gpu, CAUSE_GPU_BOUND, CONFIDENCE_HIGH},
	{the_memory_bus_is_full, CAUSE_MEMORY_BANDWIDTH, CONFIDENCE_HIGH},
	{stages_out_of_balance, CAUSE_QUEUEING, CONFIDENCE_HIGH},
	{the_profiler_costs, CAUSE_PROFILER_OVERHEAD, CONFIDENCE_MEDIUM},
	{nobody_knows, CAUSE_UNEXPLAINED, CONFIDENCE_MEDIUM},
	{a_hog_that_was_always_there, CAUSE_UNEXPLAINED, CONFIDENCE_MEDIUM},
};

static bool mentions(const char *text, const char *word)
{
	return strcasestr(text, word) != NULL;
}

/* Every text is there, and none has a number that is not one. */
static void check_texts(void)
{
	ck_assert_str_ne(diagnosis.summary, "");
	for (size_t i = 0; i < diagnosis.findings; i++) {
		const struct finding *finding = &diagnosis.finding[i];
		bool nan = mentions(finding->symptom, "nan") || mentions(finding->text, "nan ") ||
			   mentions(finding->symptom, "inf/") || mentions(finding->text, "?");
		for (size_t n = 0; n < finding->evidence_count; n++) {
			nan |= mentions(finding->evidence[n], "nan") ||
			       mentions(finding->evidence[n], "?");
		}
		ck_assert_msg(!nan && finding->symptom[0] && finding->text[0], "%s: '%s' '%s'",
			cause_name(finding->cause), finding->symptom, finding->text);
		ck_assert(finding->score >= 0 && finding->score <= 1);
		ck_assert_ptr_nonnull(finding->advice[0]);
		ck_assert_uint_gt(finding->evidence_count, 0);
		ck_assert(i == 0 || finding->score <= finding[-1].score);
	}
}

static void show(const char *name)
{
	printf("%s: %s\n", name, diagnosis.summary);
	for (size_t i = 0; i < diagnosis.findings; i++) {
		const struct finding *finding = &diagnosis.finding[i];
		printf("  %-20s %.2f | %s | %s\n", cause_name(finding->cause), finding->score,
			finding->symptom, finding->text);
		for (size_t n = 0; i == 0 && n < finding->evidence_count; n++) {
			printf("      %s\n", finding->evidence[n]);
		}
	}
}

/* covers G0.26, covers G2.10 */
START_LOOP_TEST(the_true_cause_comes_first, 0, COUNT(causes))
{
	causes[_i].set();
	diagnose(&facts, &diagnosis);
	show(cause_name(causes[_i].cause));
	check_texts();
	ck_assert_int_eq(diagnosis.state, DIAGNOSIS_FINDINGS);
	ck_assert_str_eq(cause_name(diagnosis.finding[0].cause), cause_name(causes[_i].cause));
	ck_assert_int_ge(finding_confidence(&diagnosis.finding[0]), causes[_i].least);
	ck_assert_str_eq(diagnosis.summary, diagnosis.finding[0].text);
	/* The finding that wins is not one of several equal ones. */
	ck_assert(
		diagnosis.findings < 2 || diagnosis.finding[0].score > diagnosis.finding[1].score);
}
END_TEST

CASE(healthy_camera)
{
	camera();
	facts.target_ms = 33.3;
	facts.deadline_ms = 50;
	facts.miss_percent = (struct fact){0.1, 0};
}

CASE(capture_takes_most_of_a_healthy_frame)
{
	camera();
	stage("capture", 25, 20);
	stage("infer", 4, 8);
}

CASE(hot_but_not_throttling)
{
	camera();
	metric(FACT_TEMPERATURE, 84.5, 70);
	metric(FACT_HEADROOM, 0.5, 15);
}

CASE(throttled_but_frames_are_not_affected)
{
	camera();
	moved(FACT_THROTTLE_ACTIVE, 1, 0, 60, 0.1);
	metric(FACT_TEMPERATURE, 84, 70);
	facts.throttled_share = 0.4;
	facts.throttled_ms = 33.4;
	facts.unthrottled_ms = 33.3;
}

CASE(low_voltage_but_frames_are_not_affected)
{
	camera();
	metric(FACT_UNDER_VOLTAGE, 1, 0);
	metric(FACT_FREQ_CAPPED, 1, 0);
}

CASE(leak_in_another_process)
{
	camera();
	metric(FACT_MEMORY_AVAILABLE, 1 * GIB, 2.2 * GIB)->slope = -5 * MIB;
	facts.largest = (struct fact_process){.name = "leaky", .pid = 99, .rss_bytes = 1.5 * GIB};
}

CASE(jitter_of_the_warm_up)
{
	jitter(50, 200);
	frame(33.3, 33.3);
	facts.warming_up = true;
}

CASE(busy_neighbour)
{
	camera();
	process("make", 200);
	moved(FACT_CPU, 90, 40, 60, 0);
	moved(FACT_PRESSURE_CPU, 20, 1, 60, 0);
	facts.run_delay_ms = (struct fact){0.3, 0.2};
}

CASE(a_few_hiccups)
{
	jitter(100, 60);
	facts.slow_stages = 2;
}

CASE(wide_but_steady_frames)
{
	jitter(15, 20);
	facts.frame_p95_ms = 55;
	facts.frame_p99_ms = 65;
}

CASE(memory_settles_after_the_start)
{
	camera();
	leak(0.5 * MIB);
	facts.metric[FACT_APP_RSS].most = facts.metric[FACT_APP_RSS].least;
}

CASE(slow_by_choice)
{
	camera();
	frame(1000, 1000);
	facts.busy_ms = (struct fact){40, 40};
}

CASE(cpu_fallback_that_is_fast_enough)
{
	healthy_camera();
	struct fact_stage *infer = stage("infer", 12, 12);
	infer->cpu_fallback = true;
	strcpy(infer->expected_unit, "npu");
}

/* The loop waits for its camera. */
CASE(one_frame_a_second)
{
	slow_by_choice();
	facts.busy_ms = (struct fact){990, 990};
	stage("capture", 290, 290);
	stage("infer", 640, 640)->share = 0.65;
}

CASE(over_current_by_design)
{
	camera();
	metric(FACT_OVER_CURRENT_RATE, 9, 8);
	metric(FACT_OVER_CURRENT, 1, 1);
	metric(FACT_GPU, 99, 99);
	metric(FACT_EMC, 92, 92);
}

CASE(a_little_slower_than_usual)
{
	camera();
	slower(35.5, 33.3);
}

CASE(storage_is_busy_elsewhere)
{
	camera();
	metric(FACT_PRESSURE_IO, 40, 0);
	metric(FACT_APP_IODELAY, 0.1, 0.1);
}

CASE(nothing_is_known)
{
	camera();
	memset(facts.metric, 0, sizeof(facts.metric));
	facts.stages = 0;
	facts.frame_ms.usual = facts.busy_ms.now = facts.busy_ms.usual = UNKNOWN;
	facts.critical_celsius = facts.frequency_limit = facts.cpus_allowed = UNKNOWN;
	facts.governor[0] = facts.policy[0] = facts.process[0].name[0] = '\0';
}

/* The camera's rate is kept: what one frame takes longer the next one takes less. */
CASE(two_models_in_turns)
{
	jitter(2.2, 35);
	frame(33.3, 33.3);
	facts.slow_regularity = 0;
	stage("infer", 12, 12)->excess_ms = 9;
}

static void (*const healthy[])(void) = {
	healthy_camera,
	capture_takes_most_of_a_healthy_frame,
	hot_but_not_throttling,
	throttled_but_frames_are_not_affected,
	low_voltage_but_frames_are_not_affected,
	leak_in_another_process,
	jitter_of_the_warm_up,
	busy_neighbour,
	a_few_hiccups,
	wide_but_steady_frames,
	memory_settles_after_the_start,
	slow_by_choice,
	cpu_fallback_that_is_fast_enough,
	one_frame_a_second,
	over_current_by_design,
	a_little_slower_than_usual,
	storage_is_busy_elsewhere,
	nothing_is_known,
	two_models_in_turns,
};

static void unexplained_says(const char *text)
{
	diagnose(&facts, &diagnosis);
	const struct finding *found = NULL;
	for (size_t i = 0; i < diagnosis.findings && !found; i++) {
		const struct finding *one = &diagnosis.finding[i];
		found = one->cause == CAUSE_UNEXPLAINED ? one : NULL;
	}
	ck_assert_ptr_nonnull(found);
	ck_assert_msg(strstr(found->text, text), "%s", found->text);
}

/* Slow frames now and then are no change, and "longer than before" would be wrong. */
START_TEST(what_is_unexplained_says_longer_than_what)
{
	nobody_knows();
	unexplained_says(" ms longer than before; no metric");
	jitter(30, 70);
	unexplained_says(
		"a frame takes 2.3 ms longer on average, because of the slow ones; no metric");
}
END_TEST

START_TEST(a_queue_that_drops_is_named_where_all_is_well)
{
	healthy[0]();
	facts.unended = 0.44;
	diagnose(&facts, &diagnosis);
	ck_assert_ptr_nonnull(strstr(diagnosis.summary, "; 44 % of the frames never ended"));
	facts.unended = 0.04;
	diagnose(&facts, &diagnosis);
	ck_assert_ptr_null(strstr(diagnosis.summary, "never ended"));
}
END_TEST

START_LOOP_TEST(healthy_apps_have_no_finding_above_low, 0, COUNT(healthy))
{
	healthy[_i]();
	diagnose(&facts, &diagnosis);
	show("healthy");
	check_texts();
	ck_assert_int_eq(diagnosis.state, DIAGNOSIS_HEALTHY);
	ck_assert_ptr_eq(strstr(diagnosis.summary, "nothing wrong"), diagnosis.summary);
	for (size_t i = 0; i < diagnosis.findings; i++) {
		ck_assert_int_eq(finding_confidence(&diagnosis.finding[i]), CONFIDENCE_LOW);
	}
}
END_TEST

START_TEST(two_causes_are_both_found)
{
	/* Half of it is a hog, half heat. */
	a_hog_takes_the_processor();
	facts.run_delay_ms = (struct fact){16, 0.2};
	moved(FACT_THROTTLE_ACTIVE, 0.96, 0, 62, 0.8);
	moved(FACT_TEMPERATURE, 84, 70, 70, 0.8);
	diagnose(&facts, &diagnosis);
	show("two");
	check_texts();
	enum cause first = diagnosis.finding[0].cause, second = diagnosis.finding[1].cause;
	ck_assert(first == CAUSE_THERMAL_THROTTLING || second == CAUSE_THERMAL_THROTTLING);
	ck_assert(first == CAUSE_CPU_CONTENTION || second == CAUSE_CPU_CONTENTION);
	ck_assert_int_eq(finding_confidence(&diagnosis.finding[1]), CONFIDENCE_HIGH);
}
END_TEST

START_TEST(a_model_that_is_too_large_stays_one_when_the_board_throttles)
{
	below_target(60, 6);
	slower(120, 70);
	facts.busy_ms.now = 120;
	stage("infer", 110, 60)->share = 0.9;
	moved(FACT_THROTTLE_ACTIVE, 0.96, 0, 62, 0.8);
	moved(FACT_TEMPERATURE, 84, 70, 70, 0.8);
	diagnose(&facts, &diagnosis);
	show("both");
	check_texts();
	ck_assert_int_eq(diagnosis.finding[0].cause, CAUSE_THERMAL_THROTTLING);
	ck_assert_int_eq(diagnosis.finding[1].cause, CAUSE_INFERENCE_BOUND);
	ck_assert_int_eq(finding_confidence(&diagnosis.finding[1]), CONFIDENCE_HIGH);
}
END_TEST

START_TEST(a_model_and_a_hog_each_have_their_part)
{
	a_larger_model();
	slower(66, 33.3);
	stage("preprocess", 8, 4);
	stage("infer", 55, 12);
	stage("postprocess", 4, 2);
	stage("capture", 1, 1);
	facts.busy_ms = (struct fact){66, 33};
	process("stress-ng", 99);
	moved(FACT_PRESSURE_CPU, 60, 1, 55, 0.8);
	diagnose(&facts, &diagnosis);
	show("model and hog");
	ck_assert_int_eq(diagnosis.finding[0].cause, CAUSE_INFERENCE_BOUND);
	ck_assert_int_eq(diagnosis.finding[1].cause, CAUSE_CPU_CONTENTION);
	ck_assert_str_eq(diagnosis.summary, "infer takes 55.0 ms, 12.0 ms before; the other "
					    "stages did not grow so: its model or input changed");
}
END_TEST

/* The app was slower before the clock was capped: what frames cost since is measured. */
START_TEST(a_tax_that_came_late_is_the_tax_that_was_measured)
{
	computes_slower();
	facts.since_s = 100;
	moved(FACT_THROTTLE_ACTIVE, 0.96, 0, 40, 0.8);
	moved(FACT_TEMPERATURE, 84, 70, 70, 0.8);
	facts.throttled_ms = 65;
	facts.unthrottled_ms = 33.3;
	facts.throttled_share = 0.3;
	diagnose(&facts, &diagnosis);
	show("late");
	ck_assert_int_eq(diagnosis.finding[0].cause, CAUSE_THERMAL_THROTTLING);
	ck_assert(diagnosis.finding[0].explained_ms >= 30);
	for (size_t i = 0; i < diagnosis.findings; i++) {
		ck_assert_int_ne(diagnosis.finding[i].cause, CAUSE_UNEXPLAINED);
	}
}
END_TEST

/* 25 instead of 30 frames/s, the app computes no more than it did. */
static void the_camera_goes_on_slower(void)
{
	camera();
	slower(40, 33.3);
	metric(FACT_APP_CPU, 20, 24);
}

START_TEST(a_slower_camera_is_no_fault_but_said)
{
	the_camera_goes_on_slower();
	facts.busy_ms = (struct fact){40, 33.2};
	stage("capture", 35, 28.3);
	stage("infer", 5, 5);
	diagnose(&facts, &diagnosis);
	ck_assert_str_eq(diagnosis.summary,
		"nothing wrong: 25.0 frames/s, 30.0 before; capture 85 % of the frame; capture "
		"waits for frames, 35.0 ms each, usually 28.3 ms");
}
END_TEST

START_TEST(a_wait_outside_of_stages_is_none_of_theirs)
{
	const struct fact busy = {5.4, 5};
	the_camera_goes_on_slower();
	facts.busy_ms = busy;
	facts.stages = 0; /* no capture */
	stage("infer", busy.now, busy.usual);
	diagnose(&facts, &diagnosis);
	ck_assert_str_eq(diagnosis.summary,
		"nothing wrong: 25.0 frames/s, 30.0 before; the loop waits outside of stages, "
		"34.6 ms each, usually 28.3 ms");
	slower(66.6, 33.3);
	metric(FACT_APP_CPU, 12, 24);
	diagnose(&facts, &diagnosis);
	ck_assert_int_eq(diagnosis.finding[0].cause, CAUSE_CAPTURE_STALL);
	ck_assert_int_eq(finding_confidence(&diagnosis.finding[0]), CONFIDENCE_MEDIUM);
	/* where it computes, it does not wait */
	metric(FACT_APP_CPU, 60, 24);
	diagnose(&facts, &diagnosis);
	ck_assert_int_eq(diagnosis.finding[0].cause, CAUSE_UNEXPLAINED);
	metric(FACT_APP_CPU, UNKNOWN, UNKNOWN);
	diagnose(&facts, &diagnosis);
	ck_assert_int_eq(diagnosis.finding[0].cause, CAUSE_UNEXPLAINED);
}
END_TEST

static const char *last_evidence(size_t index, enum cause cause)
{
	const struct finding *finding = &diagnosis.finding[index];
	ck_assert_int_eq(finding->cause, cause);
	return finding->evidence[finding->evidence_count - 1];
}

START_TEST(the_evidence_is_of_the_stage_that_is_named)
{
	camera();
	slower(95, 33.3);
	facts.busy_ms = (struct fact){95, 33};
	stage("capture", 55, 15);
	stage("infer", 34, 12);
	diagnose(&facts, &diagnosis);
	show("both grew");
	ck_assert_str_eq(last_evidence(0, CAUSE_CAPTURE_STALL),
		"stage/cam/capture/mean_ms: 55.0 ms of a frame, usually 15.0");
	ck_assert_str_eq(last_evidence(1, CAUSE_INFERENCE_BOUND),
		"stage/cam/infer/mean_ms: 34.0 ms of a frame, usually 12.0");

	below_target(6, 3);
	frame(44, 44);
	stage("capture", 33, 33)->share = 0.75;
	diagnose(&facts, &diagnosis);
	show("slow camera");
	ck_assert_str_eq(last_evidence(0, CAUSE_CAPTURE_STALL),
		"stage/cam/capture/mean_ms: 33.0 ms of a frame, usually 33.0");
}
END_TEST

START_TEST(a_throttled_app_reads_as_one_line)
{
	thermal_throttling_of_a_pi();
	facts.metric[FACT_THROTTLE_ACTIVE].first_s = 240;
	facts.since_s = 240;
	diagnose(&facts, &diagnosis);
	ck_assert_str_eq(
		diagnosis.summary, "infer 76 % of the frame; clock capped for 4 min at 82.4 °C");
	ck_assert_str_eq(diagnosis.finding[0].symptom, "15.2 frames/s instead of 30.0, for 4 min");
	ck_assert_str_eq(diagnosis.finding[0].evidence[0],
		"throttle/active 96.0 % of the time, usually 0 % of the time until 4 min ago");
}
END_TEST

START_TEST(a_late_stage_is_named)
{
	a_stage_that_never_meets_its_deadline();
	diagnose(&facts, &diagnosis);
	ck_assert_str_eq(
		diagnosis.finding[0].symptom, "infer takes 12.0 ms, its deadline is 8.0 ms");
	ck_assert_str_eq(diagnosis.summary, "the fastest executions of infer need 10.8 ms of work, "
					    "the deadline is 8.0 ms");
}
END_TEST

/* Several threads of a frame may wait at the same time, for longer than the frame takes. */
START_TEST(waits_of_threads_are_milliseconds)
{
	starved_without_a_target();
	facts.run_delay_ms = (struct fact){90, 90};
	diagnose(&facts, &diagnosis);
	ck_assert_str_eq(
		diagnosis.finding[0].symptom, "threads wait 90.0 ms for a processor in each frame");
}
END_TEST

START_TEST(the_process_is_named_that_came_when_frames_became_slower)
{
	a_hog_takes_the_processor();
	facts.process[0].busy_s = 190;
	facts.process[1] = (struct fact_process){.pid = 12, .cpu_percent = 60, .busy_s = 63};
	snprintf(facts.process[1].name, sizeof(facts.process[1].name), "backup");
	diagnose(&facts, &diagnosis);
	ck_assert_ptr_eq(
		strstr(diagnosis.summary, "backup (12) uses 60.0 % of a core"), diagnosis.summary);
	facts.process[1].busy_s = 180; /* none came: the busiest */
	diagnose(&facts, &diagnosis);
	ck_assert_ptr_eq(strstr(diagnosis.summary, "stress-ng (4711)"), diagnosis.summary);
}
END_TEST

START_TEST(several_that_get_little_each_are_named_too)
{
	a_hog_takes_the_processor();
	for (size_t i = 0; i < FACTS_PROCESSES; i++) {
		facts.process[i] = facts.process[0];
		facts.process[i].cpu_percent = 20;
	}
	diagnose(&facts, &diagnosis);
	ck_assert_int_eq(diagnosis.finding[0].cause, CAUSE_CPU_CONTENTION);
	ck_assert_ptr_eq(strstr(diagnosis.summary,
				 "stress-ng (4711) and others use at least 60.0 % of a core"),
		diagnosis.summary);
}
END_TEST

START_TEST(what_reads_the_same_is_no_evidence_of_a_change)
{
	thermal_throttling_of_a_pi();
	metric(FACT_HEADROOM, 0, 0.001);
	diagnose(&facts, &diagnosis);
	bool found = false;
	for (size_t i = 0; i < diagnosis.finding[0].evidence_count; i++) {
		found |= strstr(diagnosis.finding[0].evidence[i], " 0 °C") != NULL;
	}
	ck_assert(!found);
}
END_TEST

START_TEST(few_frames_are_not_enough_data)
{
	thermal_throttling_of_a_pi();
	facts.frames = 6;
	diagnose(&facts, &diagnosis);
	ck_assert_int_eq(diagnosis.state, DIAGNOSIS_TOO_FEW);
	ck_assert_uint_eq(diagnosis.findings, 0);
	ck_assert_str_eq(diagnosis.summary, "not enough data: 6 frames, at least 10 are needed");
}
END_TEST

START_TEST(doubtful_facts_lower_the_confidence)
{
	thermal_throttling_of_a_pi();
	diagnose(&facts, &diagnosis);
	double score = diagnosis.finding[0].score;
	facts.frames = 20;
	diagnose(&facts, &diagnosis);
	ck_assert(diagnosis.finding[0].score < score);
	facts.virtual_machine = facts.warming_up = true;
	double less = diagnosis.finding[0].score;
	diagnose(&facts, &diagnosis);
	ck_assert(diagnosis.finding[0].score < less);
}
END_TEST

/* Each number of the facts in turn is unknown or zero: no crash, no "nan", no score beyond 1. */
START_LOOP_TEST(unknown_facts_are_never_printed, 0, COUNT(causes))
{
	causes[_i].set();
	const struct facts whole = facts;
	for (size_t at = 0; at < sizeof(facts) / sizeof(double); at++) {
		double number;
		memcpy(&number, (const double *)&whole + at, sizeof(number));
		/* Only what looks like a double that is set: texts and counts stay. */
		if (number < 1e-6 || number > 1e12 || isnan(number)) {
			continue;
		}
		for (int zero = 0; zero < 2; zero++) {
			facts = whole;
			((double *)&facts)[at] = zero ? 0 : UNKNOWN;
			diagnose(&facts, &diagnosis);
			check_texts();
		}
	}
	causes[_i].set();
	memset(facts.metric, 0, sizeof(facts.metric));
	diagnose(&facts, &diagnosis);
	check_texts();
}
END_TEST

static double jitter_of(uint32_t *state)
{
	*state = *state * 1664525 + 1013904223;
	return 0.97 + 0.06 * (*state >> 8) / (double)(1 << 24);
}

/* Each number is off by up to 3 %, except for the symptoms themselves. */
static void add_noise(uint32_t *state)
{
	double *number = (double *)&facts;
	const struct facts kept = facts;
	for (size_t at = 0; at < sizeof(facts) / sizeof(double); at++) {
		bool set = number[at] > 1e-6 && number[at] < 1e12;
		number[at] *= set ? jitter_of(state) : 1;
	}
	facts.frame_ms = kept.frame_ms;
	facts.target_ms = kept.target_ms;
	facts.deadline_ms = kept.deadline_ms;
	facts.metric[FACT_APP_RSS] = kept.metric[FACT_APP_RSS];
}

START_TEST(noise_changes_no_verdict)
{
	uint32_t state = 1;
	size_t right = 0, quiet = 0;
	enum { ROUNDS = 100 };
	for (size_t i = 0; i < ROUNDS * COUNT(causes); i++) {
		causes[i % COUNT(causes)].set();
		add_noise(&state);
		diagnose(&facts, &diagnosis);
		bool found = diagnosis.findings > 0 &&
			     diagnosis.finding[0].cause == causes[i % COUNT(causes)].cause;
		right += found;
		if (!found && i < 300) {
			show(cause_name(causes[i % COUNT(causes)].cause));
		}
	}
	for (size_t i = 0; i < ROUNDS * COUNT(healthy); i++) {
		healthy[i % COUNT(healthy)]();
		add_noise(&state);
		diagnose(&facts, &diagnosis);
		bool found = diagnosis.state != DIAGNOSIS_HEALTHY;
		quiet += !found;
		if (found && i < 300) {
			show("healthy, noisy");
		}
	}
	printf("%zu %zu\n", right, quiet);
	ck_assert_uint_ge(right, ROUNDS * COUNT(causes) * 97 / 100);
	ck_assert_uint_ge(quiet, ROUNDS * COUNT(healthy) * 97 / 100);
}
END_TEST

static const struct {
	const char *name;
	enum stage_role role;
} roles[] = {
	{"capture", ROLE_CAPTURE},
	{"cam_read", ROLE_CAPTURE},
	{"camera", ROLE_CAPTURE},
	{"grab_frame", ROLE_CAPTURE},
	{"preprocess", ROLE_PREPROCESS},
	{"preproc", ROLE_PREPROCESS},
	{"pre", ROLE_PREPROCESS},
	{"resize", ROLE_PREPROCESS},
	{"infer", ROLE_INFER},
	{"Inference", ROLE_INFER},
	{"detect", ROLE_INFER},
	{"yolov8n", ROLE_INFER},
	{"postprocess", ROLE_POSTPROCESS},
	{"nms", ROLE_POSTPROCESS},
	{"draw_boxes", ROLE_POSTPROCESS},
	{"publish", ROLE_PUBLISH},
	{"mqtt_send", ROLE_PUBLISH},
	{"thread_pool", ROLE_OTHER},
	{"scamper", ROLE_OTHER},
	{"total", ROLE_OTHER},
	{"", ROLE_OTHER},
};

START_LOOP_TEST(the_name_of_a_stage_says_what_it_does, 0, COUNT(roles))
{
	ck_assert_int_eq(stage_role_of(roles[_i].name), roles[_i].role);
}
END_TEST

START_TEST(causes_have_the_names_of_the_api)
{
	ck_assert_str_eq(cause_name(CAUSE_THERMAL_THROTTLING), "thermal_throttling");
	ck_assert_str_eq(cause_name(CAUSE_UNEXPLAINED), "unexplained");
	ck_assert_str_eq(confidence_name(CONFIDENCE_MEDIUM), "medium");
}
END_TEST
