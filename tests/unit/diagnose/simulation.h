/* SPDX-License-Identifier: Apache-2.0 */
/*
 * simulation.h: an instrumented app and the sensors of its machine in simulated time, on the real
 * objects of core: apps take the records that the library would send, metrics and history what
 * sensors give. Deterministic for a seed. 120 s take far less than one.
 *
 *	struct simulation *s = simulation_open(&(struct simulation_options){
 *		.model = {.camera_fps = 15, .stages = 2, .stage = {
 *			{.name = "capture", .mean_ms = 5, .sigma_ms = 0.5},
 *			{.name = "infer", .mean_ms = 40, .sigma_ms = 2}}},
 *		.change = heats_up, .sense = sensors});
 *	simulation_run(s, 120);
 *	simulation_gather(s, &facts);
 *	simulation_close(s);
 */
#pragma once

#include "daemon/core/apps/apps.h"
#include "daemon/core/core.h"
#include "daemon/core/diagnose/facts/facts.h"
#include "daemon/core/diagnose/facts/gather.h"
#include "daemon/core/frames/settings.h"
#include "daemon/core/metrics/processes.h"
#include "daemon/core/metrics/throttle.h"
#include "daemon/core/status/facts.h"
#include "daemon/core/status/modes.h"

enum { SIMULATION_PENDING = 16384, SIMULATION_THREADS = 3, SIMULATION_QUEUE = 4 };

#define SIMULATION_T0 (UINT64_C(100000) * 1000000000) /* long after boot */
#define SIMULATION_APP "cam"

enum simulation_kind {
	SIMULATE_FRAMES,   /* stages within frames: ids, FRAME and CONTEXT */
	SIMULATE_TICKS,	   /* stages without ids, and a bare FRAME after each iteration */
	SIMULATE_STAGES,   /* stages without ids, one after the other */
	SIMULATE_STATSD,   /* the same, but they are sent together, so that they seem to overlap */
	SIMULATE_PIPELINE, /* stages on up to 3 threads with queues between them: ids only */
	SIMULATE_TASKS,	   /* 3 frames at one time, each in a task of its own: asyncio, a pool */
	SIMULATE_TASK_STAGES, /* the same, but stages without ids */
};

struct simulation_stage {
	const char *name, *unit, *expected_unit; /* units: NULL = none */
	double mean_ms, sigma_ms;		 /* without what is nested in it */
	double cpu_share;			 /* CPU time / wall time; 0 = not measured */
	int parent;	    /* index + 1 of the stage around it, which comes before it; 0 = none */
	int thread;	    /* of a pipeline: 0, 1, 2, ascending */
	double deadline_ms; /* of its own; 0 = none */
	bool by_id;	    /* BEGIN and END records: with nothing nested in it */
	int every;	    /* runs in every n-th frame; 0 or 1 = in each */
};

/* What changes may change at any time. */
struct simulation_model {
	double camera_fps;   /* 0 = no limit */
	bool capture_blocks; /* the first stage waits for the camera; else the loop sleeps */
	bool stopped;	     /* no frame begins */
	double deadline_ms, target_fps; /* of the operator; 0 = none */
	size_t stages;
	struct simulation_stage stage[FACTS_STAGES];
	/* slow frames: each n-th, or by chance; the stage (index) takes so much longer, -1 = all
	 * stages in turn */
	int slow_every;
	double slow_chance, slow_ms;
	int slow_stage;
	/* a frame's context, and what a slow frame has in addition */
	struct simulation_context {
		double run_delay_ms, voluntary, involuntary, minor_faults, major_faults;
	} context, slow_context;
};

struct simulation;

struct simulation_options {
	enum simulation_kind kind;
	struct simulation_model model;
	uint64_t seed;	   /* 0 = the usual one */
	double interval_s; /* of samples; 0 = 1 s */
	uint32_t warmup;   /* of frames */
	uint64_t ids;	   /* they repeat after so many; 0 = they ascend */
	bool tags;	   /* no FRAME and no CONTEXT records */
	/* Ahead of each frame, at t_s seconds after the start. */
	void (*change)(struct simulation *simulation, double t_s, struct simulation_model *model);
	/* At each sample: calls simulation_set(). What it does not set is null. */
	void (*sense)(struct simulation *simulation, double t_s);
	void *ctx;
};

struct simulation_pending {
	uint32_t slot;
	uint64_t t_ns; /* when it is published */
	struct proto_record record;
};

struct simulation {
	struct simulation_options options;
	struct simulation_model model;
	struct core core;
	struct machine_facts machine;
	struct modes modes;
	struct throttle_status throttle;
	struct processes processes; /* row[0] is the app's */
	struct app_settings settings;
	struct source *sensors, *of_apps;
	struct app_process *process;
	struct gatherer *gatherer;
	void *pool;
	uint64_t now_ns, random, next_id;
	uint64_t camera_ns; /* of the last frame taken from it */
	uint64_t free_ns[SIMULATION_THREADS];
	uint64_t begun_ns[SIMULATION_THREADS][SIMULATION_QUEUE]; /* of the last frames */
	size_t pending;
	struct simulation_pending record[SIMULATION_PENDING];
};

struct simulation *simulation_open(const struct simulation_options *options);
void simulation_close(struct simulation *simulation);
void simulation_run(struct simulation *simulation, double seconds);
/* The app ends and is started again: another run. */
void simulation_restart(struct simulation *simulation);
/* Sets a metric in the sense callback; null when there is a reason (static text). throttle/active
 * is also what marks frames as throttled. */
void simulation_set(struct simulation *simulation, enum unit unit, const char *path, double value,
	const char *reason);
struct app *simulation_app(const struct simulation *simulation);
void simulation_gather(struct simulation *simulation, struct facts *ret);
/* Normally distributed. */
double simulation_noise(struct simulation *simulation, double mean, double sigma);
