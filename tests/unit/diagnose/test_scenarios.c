/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Apps and boards of which the true cause is known, from the records of the app to the first
 * finding. An effect changes the app's model and the sensors by the same laws, so that a row only
 * names what happens, when and how strongly; rates, noise, sensors and distractors vary.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "daemon/core/diagnose/rules/diagnose.h"
#include "daemon/core/metrics/wallclock.h"
#include "daemon/core/status/bystanders.h"
#include "tests/unit/diagnose/simulation.h"
#include "tests/unit/unit.h"

#include "tests/unit/diagnose/scenarios.h"
enum { HEALTHY = CAUSE_COUNT, TOO_FEW };

struct row {
	const char *name;
	int want;
	uint32_t also; /* bits of causes that are as right */
	int second;    /* cause + 1 of the distractor, where it explains a part; 0 = none */
	effect_function *effect;
	double strength, from_s, until_s; /* until_s 0 = for good */
	effect_function *distractor;
	double distractor_from_s, distractor_strength;
	const char *missing; /* prefixes of metrics, with spaces around each */
	bool null;	     /* missing ones are null; else they do not exist */
	enum simulation_kind kind;
	double camera_fps, scale, noise; /* 0 = 15, 1, 1; camera_fps < 0: a loop without one */
	bool sleeps;			 /* the loop waits for the camera outside of the stages */
	double target_fps, deadline_ms, infer_deadline_ms, seconds;
	double restart_s; /* of the app, then it runs for all of seconds; 0 = none */
	double clock_s;	  /* the wall clock is set half of the way through */
};

static struct bystanders bystanders;
static struct wallclock wall;
static struct simulation *simulation;
static struct facts facts;
static struct diagnosis diagnosis;

/* Cause, effect, its strength, when it begins, name; then what else there is. */
#define ROW(cause, what, by, from, ...)                                                \
	{                                                                              \
		.want = CAUSE_##cause, .effect = what, .strength = by, .from_s = from, \
		.name = __VA_ARGS__                                                    \
	}
/* Two causes, of which the first explains more. */
#define BOTH(cause, what, by, from, cause2, what2, by2, from2, ...)                                \
	ROW(cause, what, by, from, __VA_ARGS__, .second = CAUSE_##cause2 + 1, .distractor = what2, \
		.distractor_strength = by2, .distractor_from_s = from2)
#define FINE(...)                                    \
	{                                            \
		.want = HEALTHY, .name = __VA_ARGS__ \
	}

static const struct row rows[] = {
	ROW(THERMAL_THROTTLING, throttles, 2, 60, "throttling after a minute"),
	ROW(THERMAL_THROTTLING, throttles_pi, 1.5, 40, "throttling on a Pi, loop",
		.camera_fps = -1),
	ROW(THERMAL_THROTTLING, throttles, 2, 70, "throttling, stages only",
		.kind = SIMULATE_STAGES),
	ROW(THERMAL_THROTTLING, throttles, 2.4, 50, "throttling, pipelined",
		.kind = SIMULATE_PIPELINE, .camera_fps = 20),
	ROW(THERMAL_THROTTLING, throttles, 2, 80, "throttling, noisy", .noise = 4,
		.camera_fps = 20),
	ROW(THERMAL_THROTTLING, throttles, 2, 55, "throttling with a leak elsewhere",
		.distractor = leaks_elsewhere, .distractor_strength = 2),
	ROW(THERMAL_THROTTLING, throttles_pi, 1.8, 45, "throttling beside a neighbour",
		.distractor = neighbour, .camera_fps = 20),
	ROW(THERMAL_THROTTLING, throttles, 2, 60, "throttling, ticks, deadline",
		.kind = SIMULATE_TICKS, .deadline_ms = 60),
	ROW(THERMAL_THROTTLING, throttles, 1.6, 50, "throttling at 2 frames/s", .scale = 9,
		.camera_fps = -1, .seconds = 150),
	ROW(THERMAL_THROTTLING, throttles, 2, 60, "throttling, EMC always busy",
		.distractor = emc_always, .camera_fps = 20),
	ROW(THERMAL_THROTTLING, throttles, 2, 60, "throttling, power null",
		.missing = "power/ gpu/ budget/", .null = true),
	ROW(UNDER_VOLTAGE, brown_out, 2.2, 50, "under-voltage"),
	ROW(UNDER_VOLTAGE, brown_out, 1.6, 60, "under-voltage while hot", .distractor = hot,
		.camera_fps = -1),
	ROW(UNDER_VOLTAGE, brown_out, 2, 40, "under-voltage, statsd", .kind = SIMULATE_STATSD),
	ROW(UNDER_VOLTAGE, brown_out, 2, 65, "under-voltage, no temperature",
		.missing = "temperature/ headroom/ power/", .camera_fps = 20),
	ROW(OVER_CURRENT, over_current, 2, 50, "over-current"),
	ROW(OVER_CURRENT, over_current, 1.6, 60, "over-current while hot", .distractor = hot,
		.camera_fps = -1),
	ROW(OVER_CURRENT, over_current, 2, 45, "over-current, counter only",
		.missing = "throttle/over_current", .target_fps = 15),
	ROW(CLOCK_LIMIT, power_save, 2.5, 0, "powersave from the start", .target_fps = 15),
	ROW(CLOCK_LIMIT, power_save, 2.5, 60, "powersave later"),
	ROW(CLOCK_LIMIT, power_save, 2, 0, "powersave, deadline, hot", .deadline_ms = 60,
		.distractor = hot),
	ROW(CLOCK_LIMIT, power_save, 2, 50, "powersave, loop, stages only", .camera_fps = -1,
		.kind = SIMULATE_STAGES),
	ROW(CPU_FALLBACK, fallback, 4, 0, "on the CPU", .target_fps = 15),
	ROW(CPU_FALLBACK, fallback, 5, 0, "on the CPU, loop without a target", .camera_fps = -1),
	ROW(CPU_FALLBACK, fallback, 3, 0, "on the CPU, deadline, hot", .deadline_ms = 70,
		.distractor = hot),
	ROW(INFERENCE_BOUND, heavy_model, 4, 0, "model too large", .target_fps = 15),
	ROW(INFERENCE_BOUND, heavy_model, 3, 0, "model too large, hot", .target_fps = 15,
		.distractor = hot),
	ROW(INFERENCE_BOUND, heavy_model, 5, 0, "model too large, no sensors", .target_fps = 15,
		.missing = "c g t h e b p m s", .kind = SIMULATE_STAGES),
	ROW(INFERENCE_BOUND, heavy_model, 4, 0, "model too large, leak elsewhere", .target_fps = 10,
		.noise = 3, .distractor = leaks_elsewhere, .distractor_strength = 1),
	ROW(PREPROCESSING_BOUND, heavy_preprocessing, 15, 0, "preprocessing", .target_fps = 15),
	ROW(PREPROCESSING_BOUND, heavy_preprocessing, 12, 0, "preprocessing, deadline",
		.deadline_ms = 70, .kind = SIMULATE_TICKS),
	ROW(PREPROCESSING_BOUND, heavy_preprocessing, 15, 0, "preprocessing, EMC busy, noisy",
		.target_fps = 12, .noise = 3, .distractor = emc_always),
	ROW(THERMAL_THROTTLING, throttles, 1.6, 50, "throttling, rate kept, late", .camera_fps = 8,
		.sleeps = true, .deadline_ms = 55),
	ROW(CPU_CONTENTION, cpu_hog, 1.6, 60, "CPU hog, rate kept, late", .camera_fps = 8,
		.sleeps = true, .deadline_ms = 55),
	ROW(PREPROCESSING_BOUND, heavy_preprocessing, 8, 0, "preprocessing, stages only",
		.target_fps = 15, .kind = SIMULATE_STAGES),
	ROW(STAGE_BOUND, heavy_publishing, 35, 0, "publishing", .target_fps = 15),
	ROW(STAGE_BOUND, heavy_publishing, 35, 50, "publishing since a while",
		.also = 1u << CAUSE_UNEXPLAINED),
	ROW(STAGE_BOUND, heavy_publishing, 30, 0, "publishing, loop, hot", .camera_fps = -1,
		.target_fps = 20, .distractor = hot),
	ROW(CAPTURE_STALL, slow_camera, 2.5, 60, "slow camera"),
	ROW(CAPTURE_STALL, slow_camera, 2, 50, "slow camera at 30, neighbour", .camera_fps = 20,
		.distractor = neighbour),
	ROW(CAPTURE_STALL, slow_camera, 2.5, 60, "slow camera, stages only",
		.kind = SIMULATE_STAGES),
	ROW(CAPTURE_STALL, slow_camera, 3, 40, "slow camera outside of stages", .sleeps = true),
	ROW(CAPTURE_STALL, camera_stutters, 3, 0, "camera stutters"),
	ROW(CAPTURE_STALL, camera_stutters, 2.5, 0, "camera stutters, hot, 20 frames/s",
		.camera_fps = 20, .distractor = hot),
	ROW(CPU_CONTENTION, cpu_hog, 2, 60, "CPU hog"),
	ROW(CPU_CONTENTION, cpu_hog, 2, 60, "CPU hog while hot", .distractor = hot,
		.camera_fps = -1),
	ROW(CPU_CONTENTION, cpu_hog, 2, 50, "CPU hog, stages only", .kind = SIMULATE_STAGES),
	ROW(CPU_CONTENTION, cpu_hog, 1.6, 70, "CPU hog, leak", .distractor = leaks,
		.distractor_strength = 0.05, .camera_fps = 20, .noise = 2),
	ROW(CPU_CONTENTION, cpu_hog, 2, 40, "CPU hog, pipelined", .kind = SIMULATE_PIPELINE,
		.camera_fps = 25),
	ROW(CPU_CONTENTION, cpu_hog, 2, 60, "CPU hog without PSI", .missing = "pressure/",
		.null = true),
	ROW(SCHEDULING, pinned, 2, 50, "pinned to a core"),
	ROW(SCHEDULING, quota, 2.2, 50, "quota"),
	ROW(SCHEDULING, quota, 2, 0, "quota from the start", .target_fps = 15, .camera_fps = -1),
	ROW(SCHEDULING, niced, 2, 60, "niced", .camera_fps = 20),
	ROW(PAUSES, collects_garbage, 3, 0, "garbage collection"),
	ROW(PAUSES, collects_garbage, 3, 0, "garbage collection, loop", .camera_fps = -1,
		.distractor = hot),
	ROW(PAUSES, collects_garbage, 3, 20, "garbage collection, deadline", .deadline_ms = 80,
		.noise = 2),
	ROW(PAUSES, allocates, 3, 0, "allocator"),
	ROW(MEMORY_LEAK, leaks, 2, 0, "leak"),
	ROW(MEMORY_LEAK, leaks, 6, 30, "leak since a while, loop", .camera_fps = -1),
	ROW(MEMORY_LEAK, leaks, 1, 0, "slow leak, hot", .seconds = 300, .distractor = hot,
		.camera_fps = 5),
	ROW(MEMORY_LEAK, leaks, 3, 0, "leak, stages only, noisy", .kind = SIMULATE_STAGES,
		.noise = 2),
	ROW(MEMORY_PRESSURE, fills_memory, 2, 50, "memory full"),
	ROW(MEMORY_PRESSURE, fills_memory, 2, 60, "memory full, stages only",
		.kind = SIMULATE_STAGES, .camera_fps = 20),
	ROW(MEMORY_PRESSURE, fills_memory, 1.6, 40, "memory full, hot, loop", .camera_fps = -1,
		.distractor = hot),
	ROW(IO_STALL, disk_is_slow, 2, 60, "slow disk"),
	ROW(IO_STALL, others_write, 2.5, 50, "others write", .camera_fps = 20),
	ROW(IO_STALL, others_write, 2, 50, "others write, stages only, hot",
		.kind = SIMULATE_STAGES, .distractor = hot),
	ROW(IO_STALL, disk_stutters, 2, 0, "disk stutters"),
	ROW(GPU_BOUND, gpu_is_shared, 2.2, 50, "GPU shared"),
	ROW(GPU_BOUND, gpu_is_shared, 2, 60, "GPU shared, loop, stages", .camera_fps = -1,
		.kind = SIMULATE_STAGES),
	ROW(MEMORY_BANDWIDTH, emc_is_full, 2, 50, "EMC full"),
	ROW(MEMORY_BANDWIDTH, emc_is_full, 1.8, 60, "EMC full, loop, neighbour", .camera_fps = -1,
		.distractor = neighbour),
	ROW(QUEUEING, heavy_publishing, 30, 50, "queue before the last stage",
		.kind = SIMULATE_PIPELINE),
	ROW(QUEUEING, heavy_publishing, 24, 0, "queue all the time", .kind = SIMULATE_PIPELINE,
		.deadline_ms = 150),
	ROW(DEADLINE_UNREACHABLE, balanced, 1.2, 0, "deadline below the least", .deadline_ms = 25),
	ROW(DEADLINE_UNREACHABLE, balanced, 2, 0, "deadline below the least, loop",
		.deadline_ms = 40, .camera_fps = -1),
	ROW(PROFILER_OVERHEAD, profiled_much, 1.3, 15, "many events", .camera_fps = -1,
		.scale = 0.03, .seconds = 30),
	ROW(STOPPED, stops, 1, 70, "stopped"),
	ROW(STOPPED, stops, 1, 60, "stopped, hot, stages only", .kind = SIMULATE_STAGES,
		.distractor = hot),
	ROW(THERMAL_THROTTLING, throttles, 1.4, 40, "throttling makes a stage late",
		.infer_deadline_ms = 38),
	ROW(CPU_CONTENTION, cpu_hog, 1.4, 60, "a hog makes a stage late, stages only",
		.infer_deadline_ms = 36, .kind = SIMULATE_STAGES),
	ROW(GPU_BOUND, gpu_is_shared, 1.5, 50, "a shared GPU makes a stage late",
		.infer_deadline_ms = 36),
	ROW(DEADLINE_UNREACHABLE, heavy_model, 1.3, 0, "stage over its deadline",
		.infer_deadline_ms = 20),
	ROW(DEADLINE_UNREACHABLE, heavy_model, 1.1, 0, "stage about at its deadline, noisy",
		.infer_deadline_ms = 32, .noise = 3, .camera_fps = 20),
	ROW(SCHEDULING, inverts, 2, 0, "priority inversion"),
	ROW(SCHEDULING, inverts, 3, 20, "priority inversion, loop, hot", .camera_fps = -1,
		.distractor = hot),
	ROW(MEMORY_PRESSURE, memory_hog, 2, 40, "memory hog"),
	ROW(MEMORY_PRESSURE, memory_hog, 1.6, 50, "memory hog, loop, stages only", .camera_fps = -1,
		.kind = SIMULATE_STAGES),
	ROW(IO_STALL, disk_stutters, 3, 20, "disk stutters, no delay accounting",
		.missing = "process/cam/iodelay", .null = true),
	ROW(IO_STALL, others_write, 2, 50, "others write, no delay accounting",
		.missing = "process/cam/iodelay", .null = true, .camera_fps = -1),
	ROW(CPU_CONTENTION, hog_ramps, 2.2, 40, "hog that starts slowly"),
	ROW(CPU_CONTENTION, hog_ramps, 2.2, 40, "hog that starts slowly, loop, noisy",
		.camera_fps = -1, .noise = 3.4),
	ROW(THERMAL_THROTTLING, throttles, 1.8, 50, "throttling, 5 % noise", .noise = 3.4,
		.camera_fps = -1),
	ROW(IO_STALL, disk_is_slow, 2, 60, "slow disk, 5 % noise", .noise = 3.4),
	ROW(MEMORY_LEAK, leaks, 4, 0, "leak, 5 % noise", .noise = 3.4),
	ROW(CAPTURE_STALL, camera_drops, 3, 0, "camera drops frames"),
	ROW(CAPTURE_STALL, camera_drops, 3, 40, "camera drops frames since a while, loop of stages",
		.kind = SIMULATE_STAGES, .camera_fps = 20),
	ROW(THERMAL_THROTTLING, throttles, 2, 80, "throttling after a restart", .restart_s = 30),
	ROW(CPU_CONTENTION, cpu_hog, 2, 90, "hog after a restart, clock set", .restart_s = 40,
		.clock_s = -3600),
	ROW(THERMAL_THROTTLING, throttles, 2, 60, "throttling, clock set forward",
		.clock_s = 86400),
	ROW(STOPPED, is_suspended, 1, 20, "stopped now and then"),
	ROW(STOPPED, is_suspended, 1.5, 0, "stopped now and then, stages only",
		.kind = SIMULATE_STAGES, .camera_fps = 20),
	ROW(INFERENCE_BOUND, waits_now_and_then, 2, 0, "model waits now and then, busy machine",
		.kind = SIMULATE_STAGES, .camera_fps = -1, .seconds = 119),
	ROW(CPU_CONTENTION, backups, 2, 10, "hog now and then"),
	ROW(CPU_CONTENTION, backups, 3, 10, "hog now and then, stages only",
		.kind = SIMULATE_STAGES),
	ROW(THERMAL_THROTTLING, throttles_in_turns, 2, 20, "throttling in turns", .camera_fps = 20),
	ROW(THERMAL_THROTTLING, throttles_in_turns, 2, 10, "throttling in turns, loop, noisy",
		.camera_fps = -1, .noise = 2),
	ROW(THERMAL_THROTTLING, throttles, 2, 60, "throttling at 60 frames/s", .camera_fps = 60,
		.scale = 0.35, .seconds = 90),
	ROW(THERMAL_THROTTLING, throttles, 1.35, 60, "throttling, a little, loop",
		.camera_fps = -1),
	ROW(THERMAL_THROTTLING, throttles, 2, 700, "throttling after 12 minutes", .camera_fps = 5,
		.scale = 3, .seconds = 1000),
	ROW(THERMAL_THROTTLING, throttles, 2, 50, "throttling, only flags and temperature",
		.missing = "c g e b p m s"),
	ROW(THERMAL_THROTTLING, throttles, 2, 50, "throttling after a slow start",
		.distractor = warms_up),
	ROW(UNDER_VOLTAGE, brown_out, 1.5, 70, "under-voltage, neighbour, noisy",
		.distractor = neighbour, .camera_fps = -1, .noise = 3),
	ROW(OVER_CURRENT, over_current, 1.5, 60, "over-current, GPU always busy",
		.distractor = gpu_always, .camera_fps = -1),
	ROW(CLOCK_LIMIT, power_save, 1.6, 70, "powersave, neighbour", .camera_fps = -1,
		.distractor = neighbour),
	ROW(CPU_FALLBACK, fallback, 6, 0, "on the CPU, pipelined", .kind = SIMULATE_PIPELINE,
		.target_fps = 15),
	ROW(INFERENCE_BOUND, heavy_model, 3, 0, "model too large for a deadline", .deadline_ms = 80,
		.camera_fps = 5),
	ROW(CAPTURE_STALL, slow_camera, 4, 80, "slow camera, ticks, leak elsewhere",
		.kind = SIMULATE_TICKS, .distractor = leaks_elsewhere, .distractor_strength = 3),
	ROW(CPU_CONTENTION, busy_neighbour, 1.3, 50, "busy neighbour, loop", .camera_fps = -1),
	ROW(CPU_CONTENTION, cpu_hog, 2, 0, "CPU hog from the start", .target_fps = 20,
		.camera_fps = 25),
	ROW(CPU_CONTENTION, cpu_hog, 1.8, 60, "CPU hog, EMC busy, statsd", .kind = SIMULATE_STATSD,
		.distractor = emc_always),
	ROW(SCHEDULING, pinned, 2.1, 60, "pinned, stages only, hot", .kind = SIMULATE_STAGES,
		.distractor = hot),
	ROW(PAUSES, collects_garbage, 6, 0, "garbage collection at 5 frames/s", .camera_fps = 5,
		.scale = 2),
	ROW(PAUSES, allocates, 4, 30, "allocator, neighbour", .distractor = neighbour,
		.camera_fps = 20),
	ROW(MEMORY_LEAK, leaks, 0.3, 0, "leak for half an hour", .camera_fps = 2, .seconds = 1800),
	ROW(MEMORY_PRESSURE, fills_memory, 1.8, 50, "memory full, neighbour",
		.distractor = neighbour, .camera_fps = 20),
	ROW(IO_STALL, logs, 2, 60, "storage shared, neighbour", .distractor = neighbour),
	ROW(GPU_BOUND, gpu_is_shared, 1.6, 55, "GPU shared, hot", .camera_fps = -1,
		.distractor = hot),
	ROW(MEMORY_BANDWIDTH, emc_is_full, 2.2, 40, "EMC full, statsd, hot",
		.kind = SIMULATE_STATSD, .distractor = hot),
	BOTH(THERMAL_THROTTLING, throttles, 2, 50, CPU_CONTENTION, cpu_hog, 1.25, 70,
		"throttling and a hog", .camera_fps = -1),
	BOTH(CPU_CONTENTION, cpu_hog, 2, 50, THERMAL_THROTTLING, throttles, 1.25, 65,
		"hog and throttling", .camera_fps = -1),
	BOTH(IO_STALL, disk_is_slow, 2, 50, THERMAL_THROTTLING, throttles, 1.6, 60,
		"slow disk and throttling", .camera_fps = -1),
	BOTH(THERMAL_THROTTLING, throttles, 2, 50, CAPTURE_STALL, camera_stutters, 3, 0,
		"throttling and a camera that stutters", .camera_fps = 20),
	BOTH(THERMAL_THROTTLING, throttles, 2, 60, MEMORY_LEAK, leaks, 2, 0,
		"throttling and a leak", .camera_fps = -1),
	BOTH(THERMAL_THROTTLING, throttles, 2, 60, INFERENCE_BOUND, heavy_model, 3, 0,
		"throttling and a model that is too large", .target_fps = 15, .camera_fps = -1),
	BOTH(CPU_CONTENTION, cpu_hog, 2.2, 50, PAUSES, collects_garbage, 3, 0,
		"hog and garbage collection", .camera_fps = -1),
	BOTH(CPU_CONTENTION, cpu_hog, 2, 60, PREPROCESSING_BOUND, heavy_preprocessing, 15, 0,
		"hog and preprocessing", .target_fps = 15, .camera_fps = -1),
	BOTH(IO_STALL, others_write, 2, 50, SCHEDULING, niced, 1.8, 60, "others write, and niced",
		.camera_fps = -1),
	BOTH(UNDER_VOLTAGE, brown_out, 2.2, 50, IO_STALL, disk_is_slow, 1.2, 65,
		"under-voltage and a slow disk", .camera_fps = -1),
	BOTH(CPU_CONTENTION, cpu_hog, 2, 50, CLOCK_LIMIT, power_save, 1.4, 60, "hog and powersave",
		.camera_fps = -1),
	BOTH(GPU_BOUND, gpu_is_shared, 2.5, 50, IO_STALL, disk_is_slow, 0.8, 60,
		"GPU shared and a slow disk", .camera_fps = -1),
	BOTH(MEMORY_BANDWIDTH, emc_is_full, 2.2, 50, CPU_CONTENTION, cpu_hog, 1.3, 60,
		"EMC full and a hog", .camera_fps = -1),
	BOTH(CPU_FALLBACK, fallback, 5, 0, CAPTURE_STALL, camera_stutters, 6, 0,
		"on the CPU, and the camera stutters", .target_fps = 15),
	BOTH(CAPTURE_STALL, slow_camera, 2, 60, PAUSES, collects_garbage, 8, 0,
		"slow camera and garbage collection"),
	BOTH(MEMORY_PRESSURE, fills_memory, 2, 60, STAGE_BOUND, heavy_publishing, 20, 0,
		"memory full, and publishing", .target_fps = 15, .camera_fps = -1),
	FINE("camera-paced"),
	{.want = TOO_FEW, .name = "half a second", .seconds = 0.5},
	{.want = TOO_FEW,
		.name = "a few slow frames",
		.effect = throttles,
		.strength = 2,
		.from_s = 1,
		.seconds = 3,
		.camera_fps = 2},
	{.want = TOO_FEW,
		.name = "just restarted",
		.effect = cpu_hog,
		.strength = 2,
		.restart_s = 60,
		.seconds = 0.5},
	FINE("restarted after a hog", .effect = cpu_hog, .strength = 2, .from_s = 20, .until_s = 59,
		.restart_s = 60),
	FINE("deadline of a stage", .infer_deadline_ms = 36),
	FINE("clock set back", .clock_s = -86400, .target_fps = 15),
	FINE("5 % noise, loop", .camera_fps = -1, .noise = 3.4),
	FINE("loop", .camera_fps = -1),
	FINE("noisy loop", .camera_fps = -1, .noise = 4),
	FINE("camera outside of stages", .sleeps = true),
	FINE("hot", .distractor = hot),
	FINE("hot since a while, loop", .camera_fps = -1, .distractor = hot,
		.distractor_from_s = 50),
	FINE("throttled, rate unaffected", .distractor = throttled),
	FINE("throttled later, rate unaffected", .distractor = throttled, .distractor_from_s = 50,
		.camera_fps = 20),
	FINE("throttled for a while before", .effect = throttles, .strength = 2, .from_s = 20,
		.until_s = 50),
	FINE("EMC always busy", .distractor = emc_always),
	FINE("GPU always busy, target reached", .distractor = gpu_always, .target_fps = 15),
	FINE("GPU always busy, loop", .distractor = gpu_always, .camera_fps = -1),
	FINE("neighbour", .distractor = neighbour, .distractor_from_s = 40),
	FINE("swapped once", .distractor = swapped_once),
	FINE("RSS settles", .distractor = settles, .distractor_from_s = 10),
	FINE("RSS like a saw", .distractor = saw_tooth),
	FINE("leak elsewhere", .distractor = leaks_elsewhere, .distractor_strength = 2),
	FINE("somebody copies files", .distractor = copies_files, .distractor_from_s = 50),
	FINE("low clock, target reached", .distractor = governor_low, .target_fps = 15),
	FINE("warm-up", .distractor = warms_up, .camera_fps = -1),
	FINE("warm-up, camera", .distractor = warms_up, .camera_fps = 20),
	FINE("bursts", .distractor = bursts),
	FINE("bursts, in a pause", .distractor = bursts, .seconds = 118),
	FINE("varies", .distractor = varies, .camera_fps = -1),
	FINE("1 frame a second", .camera_fps = 1, .seconds = 200),
	FINE("30 frames a second, deadline", .camera_fps = 30, .scale = 0.6, .deadline_ms = 40,
		.seconds = 60),
	FINE("a frame in 20 s", .camera_fps = 0.05, .seconds = 815),
	FINE("RSS settles slowly", .distractor = settles, .camera_fps = 5, .seconds = 600),
	FINE("60 frames a second", .camera_fps = 60, .scale = 0.3, .seconds = 60),
	FINE("half an hour at 2 frames/s", .camera_fps = 2, .seconds = 1800, .noise = 2),
	FINE("noisy sensors", .noise = 5, .target_fps = 15),
	FINE("20 seconds", .seconds = 20, .camera_fps = -1),
	FINE("pipelined", .kind = SIMULATE_PIPELINE, .camera_fps = 20),
	FINE("stages only", .kind = SIMULATE_STAGES),
	FINE("statsd", .kind = SIMULATE_STATSD, .noise = 2),
	FINE("ticks, target", .kind = SIMULATE_TICKS, .target_fps = 15),
	FINE("sensors null", .missing = "c g t h e b p m s", .null = true),
	FINE("tasks that end together", .kind = SIMULATE_TASKS, .camera_fps = -1, .sleeps = true),
	FINE("tasks in any order", .kind = SIMULATE_TASKS, .camera_fps = -1, .noise = 6,
		.sleeps = true),
	FINE("a pool, out of order", .kind = SIMULATE_TASKS, .camera_fps = 40, .noise = 7,
		.sleeps = true),
	FINE("tasks that end together, stages only", .kind = SIMULATE_TASK_STAGES, .camera_fps = -1,
		.sleeps = true),
	FINE("tasks in any order, stages only", .kind = SIMULATE_TASK_STAGES, .camera_fps = -1,
		.noise = 6, .sleeps = true),
	ROW(PAUSES, collects_garbage, 4, 0, "garbage collection in tasks", .kind = SIMULATE_TASKS,
		.camera_fps = -1, .sleeps = true),
};

static bool is_missing(const struct row *row, const char *path)
{
	for (const char *word = row->missing; word && *word; word += strspn(word, " ")) {
		size_t length = strcspn(word, " ");
		if (strncmp(path, word, length) == 0) {
			return true;
		}
		word += length;
	}
	return false;
}

static void apply(const struct row *row, struct world *world, double t_s)
{
	if (row->effect && t_s >= row->from_s && !(row->until_s > 0 && t_s >= row->until_s)) {
		world->since_s = t_s - row->from_s;
		world->strength = row->strength;
		row->effect(world);
	}
	if (row->distractor && t_s >= row->distractor_from_s) {
		world->since_s = t_s - row->distractor_from_s;
		world->strength = row->distractor_strength;
		row->distractor(world);
	}
	finish(world);
}

static void init_model(const struct row *row, struct simulation_model *model)
{
	double scale = row->scale > 0 ? row->scale : 1;
	*model = camera;
	model->camera_fps = row->camera_fps < 0 ? 0 : row->camera_fps > 0 ? row->camera_fps : 15;
	model->capture_blocks = !row->sleeps;
	model->target_fps = row->target_fps;
	model->deadline_ms = row->deadline_ms;
	model->context.run_delay_ms *= scale;
	model->stage[INFER].deadline_ms = row->infer_deadline_ms;
	for (size_t i = 0; i < STAGES; i++) {
		struct simulation_stage *stage = &model->stage[i];
		stage->mean_ms *= scale;
		stage->sigma_ms = 0.04 * stage->mean_ms * (row->noise > 0 ? row->noise : 1);
		stage->thread = row->kind == SIMULATE_PIPELINE ? stage->thread : 0;
	}
}

static void set(struct simulation *of, enum fact_metric metric, const char *path, double value)
{
	const struct row *row = of->options.ctx;
	enum unit unit = sensor[metric].unit;
	double part = unit == UNIT_BOOL ? 0 : unit == UNIT_BYTES ? 0.002 : 0.015;
	double noise = part * (row->noise > 0 ? row->noise : 1);
	bool missing = is_missing(row, path);
	if (!missing || row->null) {
		value = missing ? NAN : simulation_noise(of, value, noise * fabs(value));
		simulation_set(
			of, sensor[metric].unit, path, value, isnan(value) ? "not readable" : NULL);
	}
}

/* Of a frame: what is sensed does not matter. */
static void model_at(const struct row *row, double t_s, struct simulation_model *model)
{
	static double metric[FACT_METRIC_COUNT];
	static struct bystanders others;
	static struct modes modes;
	static struct process_row own;
	struct world world = {model, metric, &others, &modes, &own, 0, 0, 0, 0};
	init_model(row, model);
	apply(row, &world, t_s);
}

static void change(struct simulation *of, double t_s, struct simulation_model *model)
{
	model_at(of->options.ctx, t_s, model);
}

static void sense(struct simulation *of, double t_s)
{
	double metric[FACT_METRIC_COUNT];
	struct simulation_model model;
	struct process_row *own = &of->processes.row[0];
	struct world world = {&model, metric, &bystanders, &of->modes, own, 0, 0, 0, 0};
	for (size_t i = 0; i < FACT_METRIC_COUNT; i++) {
		metric[i] = sensor[i].usual;
	}
	init_model(of->options.ctx, &model);
	const struct row *row = of->options.ctx;
	double set_s = t_s > row->seconds / 2 ? row->clock_s : 0;
	wallclock_note(&wall, of->now_ns, (int64_t)((1.7e9 + t_s + set_s) * 1e9), true);
	bystanders = (struct bystanders){.t_ns = of->now_ns};
	add_process(&world, "systemd", 1, 12 * MIB, 0);
	of->modes = (struct modes){
		.frequency_limit = 1, .governor = "schedutil", .limit_ns = of->now_ns};
	apply(of->options.ctx, &world, t_s);
	for (size_t i = 0; i < FACT_METRIC_COUNT; i++) {
		set(of, i, sensor[i].path, metric[i]);
	}
	set(of, FACT_TEMPERATURE, "temperature/cpu", metric[FACT_TEMPERATURE]);
}

static void run(const struct row *row, uint64_t seed)
{
	struct simulation_options options = {.kind = row->kind,
		.seed = seed,
		.change = change,
		.sense = sense,
		.ctx = (void *)(uintptr_t)row};
	model_at(row, 0, &options.model);
	simulation = simulation_open(&options);
	simulation->core.bystanders = &bystanders;
	simulation->core.wall = &wall;
	wallclock_init(&wall);
	simulation_run(simulation, row->restart_s);
	if (row->restart_s > 0) {
		simulation_restart(simulation);
	}
	simulation_run(simulation, row->seconds > 0 ? row->seconds : 100);
	simulation_gather(simulation, &facts);
	diagnose(&facts, &diagnosis);
	simulation_close(simulation);
	simulation = NULL;
}

static bool is_right(const struct row *row)
{
	const struct finding *first = diagnosis.findings ? &diagnosis.finding[0] : NULL;
	if (row->want == TOO_FEW) {
		return diagnosis.state == DIAGNOSIS_TOO_FEW;
	}
	if (row->want == HEALTHY) {
		return diagnosis.state != DIAGNOSIS_FINDINGS;
	}
	bool both = row->second == 0 ||
		    (diagnosis.findings > 1 && (int)first[1].cause + 1 == row->second);
	return diagnosis.state == DIAGNOSIS_FINDINGS && both &&
	       ((int)first->cause == row->want || (row->also >> first->cause & 1));
}

static void print(const struct row *row, int seed)
{
	printf("%s, seed %d: not %s but", row->name, seed,
		row->want >= HEALTHY ? "healthy" : cause_name((enum cause)row->want));
	for (size_t i = 0; i < diagnosis.findings; i++) {
		const struct finding *finding = &diagnosis.finding[i];
		printf(" %s %.2f,", cause_name(finding->cause), finding->score);
	}
	printf(" %s\n  frame %.1f was %.1f, since %.0f, warming %d, slow %.3f\n", diagnosis.summary,
		facts.frame_ms.now, facts.frame_ms.usual, facts.since_s, facts.warming_up,
		facts.slow_share);
	for (size_t i = 0; diagnosis.findings && i < diagnosis.finding[0].evidence_count; i++) {
		printf("    %s\n", diagnosis.finding[0].evidence[i]);
	}
}

TEST_TIMEOUT(120);

START_TEST(the_true_cause_comes_first)
{
	const int seeds = campaign(1, 3);
	int of[2] = {0}, right[2] = {0};
	for (int i = 0; i < COUNT(rows); i++) {
		bool healthy = rows[i].want >= HEALTHY;
		for (int seed = 1; seed <= seeds; seed++) {
			run(&rows[i], (uint64_t)(i * 3 + seed) * 2654435761u);
			of[healthy]++;
			right[healthy] += is_right(&rows[i]);
			if (!is_right(&rows[i])) {
				print(&rows[i], seed);
			}
		}
	}
	printf("%d of %d true causes first, %d of %d healthy\n", right[0], of[0], right[1], of[1]);
	fflush(stdout);
	ck_assert_int_ge(right[0] * 100, of[0] * 95);
	ck_assert_int_eq(right[1], of[1]);
}
END_TEST
