/* SPDX-License-Identifier: Apache-2.0 */
/* simulation.c: runs an app in simulated time. */
#include "tests/unit/diagnose/simulation.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/core/history/history.h"
#include "tests/unit/unit.h"

enum { POOL = 8 << 20, PID = 4711, DRAINS = 10 /* in an interval */ };

static const uint64_t SECOND = 1000000000;

static double chance(struct simulation *simulation)
{
	uint64_t *x = &simulation->random;
	*x ^= *x << 13;
	*x ^= *x >> 7;
	*x ^= *x << 17;
	return (double)(*x >> 11) / (double)(UINT64_C(1) << 53);
}

double simulation_noise(struct simulation *simulation, double mean, double sigma)
{
	double radius = sqrt(-2 * log(1 - chance(simulation)));
	return mean + sigma * radius * cos(2 * 3.14159265358979 * chance(simulation));
}

static void on_commit(void *ctx, const struct source *source, uint64_t t_ns)
{
	struct simulation *simulation = ctx;
	history_append(simulation->core.history, simulation->core.metrics, source, t_ns);
}

static void configure(struct simulation *simulation)
{
	const struct simulation_model *model = &simulation->model;
	struct app_section *section = NULL;
	ck_assert_int_eq(app_settings_section(
				 &simulation->settings, SECTION_FRAME, SIMULATION_APP, &section),
		0);
	section->frames =
		(struct frames_settings){.deadline_ns = (uint64_t)(model->deadline_ms * 1e6),
			.target_fps = model->target_fps,
			.warmup = simulation->options.warmup};
	for (size_t i = 0; i < model->stages; i++) {
		char glob[2 * PROTO_NAME_SIZE];
		if (!model->stage[i].expected_unit) {
			continue;
		}
		snprintf(glob, sizeof(glob), "%s/%s", SIMULATION_APP, model->stage[i].name);
		ck_assert_int_eq(
			app_settings_section(&simulation->settings, SECTION_STAGE, glob, &section),
			0);
		snprintf(section->stage.unit, sizeof(section->stage.unit), "%s",
			model->stage[i].expected_unit);
	}
	apps_configure(
		simulation->core.apps, &(struct apps_config){.settings = &simulation->settings});
}

static void declare(struct simulation *simulation)
{
	for (uint32_t i = 0; i < simulation->model.stages; i++) {
		const struct simulation_stage *stage = &simulation->model.stage[i];
		struct proto_declaration declaration = {
			.deadline_ns = (uint64_t)(stage->deadline_ms * 1e6)};
		snprintf(declaration.name, sizeof(declaration.name), "%s", stage->name);
		snprintf(declaration.unit, sizeof(declaration.unit), "%s",
			stage->unit ? stage->unit : "");
		apps_declare(simulation->core.apps, simulation->process, i, &declaration);
	}
}

static void open_core(struct simulation *simulation)
{
	static const uint8_t boot[16] = "simulated boot";
	const struct apps_options options = {.stage_window = 1024, .frame_window = 300};
	enum history_found found;
	struct core *core = &simulation->core;
	uint64_t interval_ns = (uint64_t)(simulation->options.interval_s * 1e9);
	simulation->pool = calloc(1, POOL);
	ck_assert_ptr_nonnull(simulation->pool);
	ck_assert_int_eq(sources_create(&core->sources), 0);
	ck_assert_int_eq(
		sources_add(core->sources, "sensors", interval_ns, &simulation->sensors), 0);
	ck_assert_int_eq(sources_add(core->sources, "apps", 0, &simulation->of_apps), 0);
	ck_assert_int_eq(metrics_create(&core->metrics), 0);
	ck_assert_int_eq(timeline_create(256, &core->timeline), 0);
	ck_assert_int_eq(history_create(simulation->pool, POOL, boot, &core->history, &found), 0);
	ck_assert_int_eq(metrics_observe(core->metrics,
				 (struct metrics_observer){.commit = on_commit, .ctx = simulation}),
		0);
	ck_assert_int_eq(apps_create(core->metrics, simulation->of_apps, core->timeline, &options,
				 &core->apps),
		0);
	simulation->throttle.times.hold_ns =
		3 * interval_ns > THROTTLE_TIMES_HOLD_NS ? 3 * interval_ns : THROTTLE_TIMES_HOLD_NS;
	apps_set_throttle_times(core->apps, &simulation->throttle.times);
	simulation->machine = (struct machine_facts){.cpus = 4};
	simulation->processes.rows = 1;
	simulation->processes.row[0] = (struct process_row){.pid = PID,
		.watch = SIMULATION_APP,
		.comm = SIMULATION_APP,
		.scheduling_known = true,
		.cpus = "0-3",
		.extra = {.quota_percent = NAN}};
	core->facts = &simulation->machine;
	core->modes = &simulation->modes;
	core->throttle = &simulation->throttle;
	core->processes = &simulation->processes;
}

static void attach(struct simulation *simulation)
{
	uint64_t start_ticks = simulation->now_ns / 10000000;
	ck_assert_int_eq(apps_attach(simulation->core.apps, SIMULATION_APP, 1000, PID, start_ticks,
				 65536, simulation->now_ns, &simulation->process),
		0);
	configure(simulation);
	declare(simulation);
}

void simulation_restart(struct simulation *simulation)
{
	apps_detach(simulation->core.apps, simulation->process, PROCESS_DIED, simulation->now_ns);
	simulation->pending = 0;
	for (size_t i = 0; i < SIMULATION_THREADS; i++) {
		simulation->free_ns[i] = simulation->now_ns;
	}
	attach(simulation);
}

struct simulation *simulation_open(const struct simulation_options *options)
{
	struct simulation *simulation = calloc(1, sizeof(*simulation));
	ck_assert_ptr_nonnull(simulation);
	simulation->options = *options;
	simulation->options.interval_s = options->interval_s > 0 ? options->interval_s : 1;
	simulation->model = options->model;
	simulation->random = options->seed ? options->seed : 88172645463325252u;
	simulation->now_ns = simulation->camera_ns = SIMULATION_T0;
	for (size_t i = 0; i < SIMULATION_THREADS; i++) {
		simulation->free_ns[i] = SIMULATION_T0;
	}
	open_core(simulation);
	attach(simulation);
	ck_assert_int_eq(gatherer_create(&simulation->gatherer), 0);
	return simulation;
}

void simulation_close(struct simulation *simulation)
{
	gatherer_destroy(simulation->gatherer);
	apps_destroy(simulation->core.apps);
	history_destroy(simulation->core.history);
	timeline_destroy(simulation->core.timeline);
	metrics_destroy(simulation->core.metrics);
	sources_destroy(simulation->core.sources);
	free(simulation->pool);
	free(simulation);
}

/* Publishes a record at its time, for a drain to find. */
static void publish(
	struct simulation *simulation, int thread, uint64_t t_ns, struct proto_record record)
{
	ck_assert_uint_lt(simulation->pending, SIMULATION_PENDING);
	simulation->record[simulation->pending++] = (struct simulation_pending){
		.slot = (uint32_t)thread, .t_ns = t_ns, .record = record};
}

struct iteration {
	uint64_t id; /* as it is sent */
	uint64_t number;
	bool slow;
	uint64_t wait_ns; /* of the first stage, for the camera */
};

static uint64_t duration_of(
	struct simulation *simulation, const struct iteration *iteration, size_t index)
{
	const struct simulation_model *model = &simulation->model;
	const struct simulation_stage *stage = &model->stage[index];
	double ms = simulation_noise(simulation, stage->mean_ms, stage->sigma_ms);
	int slow_stage = model->slow_stage >= 0 ? model->slow_stage
						: (int)(iteration->number % model->stages);
	ms = fmax(ms, stage->mean_ms / 4);
	ms += iteration->slow && slow_stage == (int)index ? model->slow_ms : 0;
	return (uint64_t)(ms * 1e6) + (index == 0 ? iteration->wait_ns : 0);
}

/* Runs a stage and those nested in it from start_ns on; returns its end. */
static uint64_t run_stage(struct simulation *simulation, const struct iteration *iteration,
	size_t index, unsigned depth, uint64_t start_ns)
{
	const struct simulation_model *model = &simulation->model;
	const struct simulation_stage *stage = &model->stage[index];
	uint64_t end_ns = start_ns;
	if (stage->every > 1 && iteration->number % (uint64_t)stage->every != 0) {
		return end_ns;
	}
	for (size_t i = index + 1; i < model->stages; i++) {
		if (model->stage[i].parent == (int)index + 1) {
			end_ns = run_stage(simulation, iteration, i, depth + 1, end_ns);
		}
	}
	end_ns += duration_of(simulation, iteration, index);
	double cpu_us = (double)(end_ns - start_ns) / 1e3 * stage->cpu_share;
	struct proto_record record = {.stage = (uint16_t)index,
		.kind = PROTO_KIND_COMPLETE,
		.flags = (uint8_t)(depth << PROTO_RECORD_DEPTH_SHIFT |
				   (depth > 0 ? PROTO_RECORD_NESTED : 0)),
		.cpu_us = cpu_us > 0 ? (uint32_t)cpu_us : PROTO_CPU_NOT_MEASURED,
		.start_ns = start_ns,
		.value = end_ns - start_ns,
		.frame = iteration->id};
	if (stage->by_id) {
		record.kind = PROTO_KIND_BEGIN;
		record.value = iteration->number;
		publish(simulation, stage->thread, start_ns, record);
		record.kind = PROTO_KIND_END;
		record.start_ns = end_ns;
	}
	publish(simulation, stage->thread, end_ns, record);
	return end_ns;
}

/* All stages of a thread, one after the other. */
static uint64_t run_stages(
	struct simulation *simulation, const struct iteration *iteration, int thread, uint64_t t_ns)
{
	for (size_t i = 0; i < simulation->model.stages; i++) {
		const struct simulation_stage *stage = &simulation->model.stage[i];
		if (stage->parent == 0 && stage->thread == thread) {
			t_ns = run_stage(simulation, iteration, i, 0, t_ns);
		}
	}
	return t_ns;
}

static uint16_t about(struct simulation *simulation, double mean)
{
	return (uint16_t)(mean + chance(simulation));
}

static void publish_frame(struct simulation *simulation, const struct iteration *iteration,
	uint64_t start_ns, uint64_t end_ns)
{
	const struct simulation_context *usual = &simulation->model.context;
	const struct simulation_context *slow = &simulation->model.slow_context;
	bool tick = simulation->options.kind == SIMULATE_TICKS;
	double part = iteration->slow;
	publish(simulation, 0, end_ns,
		(struct proto_record){.kind = PROTO_KIND_FRAME,
			.cpu_us = PROTO_CPU_NOT_MEASURED,
			.start_ns = tick ? end_ns : start_ns,
			.value = tick ? 0 : end_ns - start_ns,
			.frame = iteration->id});
	publish(simulation, 0, end_ns,
		(struct proto_record){.kind = PROTO_KIND_CONTEXT,
			.cpu_us =
				(uint32_t)(1e3 * (usual->run_delay_ms + part * slow->run_delay_ms)),
			.start_ns = end_ns,
			.value = proto_context(
				about(simulation, usual->voluntary + part * slow->voluntary),
				about(simulation, usual->involuntary + part * slow->involuntary),
				about(simulation, usual->minor_faults + part * slow->minor_faults),
				about(simulation, usual->major_faults + part * slow->major_faults)),
			.frame = iteration->id});
}

/* The newest frame of the camera when the loop comes back at free_ns: it keeps one. */
static uint64_t camera(struct simulation *simulation, uint64_t free_ns)
{
	double fps = simulation->model.camera_fps;
	if (!(fps > 0)) {
		return free_ns;
	}
	uint64_t period_ns = (uint64_t)(1e9 / fps), next_ns = simulation->camera_ns + period_ns;
	simulation->camera_ns =
		next_ns > free_ns ? next_ns : free_ns - (free_ns - next_ns) % period_ns;
	return simulation->camera_ns > free_ns ? simulation->camera_ns : free_ns;
}

static void run_loop(struct simulation *simulation, struct iteration *iteration)
{
	uint64_t free_ns = simulation->free_ns[0], start_ns = camera(simulation, free_ns);
	size_t first = simulation->pending;
	if (simulation->model.capture_blocks) {
		iteration->wait_ns = start_ns - free_ns;
		start_ns = free_ns;
	}
	uint64_t end_ns = run_stages(simulation, iteration, 0, start_ns);
	if (simulation->options.kind <= SIMULATE_TICKS && !simulation->options.tags) {
		publish_frame(simulation, iteration, start_ns, end_ns);
	}
	for (size_t i = first;
		simulation->options.kind == SIMULATE_STATSD && i < simulation->pending; i++) {
		simulation->record[i].t_ns = end_ns;
		simulation->record[i].record.start_ns = end_ns - simulation->record[i].record.value;
	}
	simulation->free_ns[0] = end_ns > free_ns ? end_ns : free_ns + SECOND / 1000;
}

/* A thread takes a frame when the one before is done with it, and blocks while the queue behind
 * it is full. */
static void run_pipeline(struct simulation *simulation, const struct iteration *iteration)
{
	size_t at = iteration->number % SIMULATION_QUEUE;
	uint64_t t_ns = camera(simulation, simulation->free_ns[0]);
	for (int i = 0; i < SIMULATION_THREADS; i++) {
		t_ns = t_ns > simulation->free_ns[i] ? t_ns : simulation->free_ns[i];
		if (i + 1 < SIMULATION_THREADS && t_ns < simulation->begun_ns[i + 1][at]) {
			t_ns = simulation->begun_ns[i + 1][at];
		}
		simulation->begun_ns[i][at] = t_ns;
		t_ns = run_stages(simulation, iteration, i, t_ns);
		simulation->free_ns[i] = t_ns;
	}
}

/* The tasks take frames in turn, of a camera those that are due, and end them in any order. */
static void run_task(struct simulation *simulation, const struct iteration *iteration)
{
	double fps = simulation->model.camera_fps;
	uint64_t *free_ns = &simulation->free_ns[iteration->number % SIMULATION_THREADS];
	uint64_t due_ns = SIMULATION_T0 + (uint64_t)((double)iteration->number * 1e9 / fps);
	uint64_t start_ns = fps > 0 && due_ns > *free_ns ? due_ns : *free_ns;
	*free_ns = run_stages(simulation, iteration, 0, start_ns);
	if (simulation->options.kind == SIMULATE_TASKS) {
		publish_frame(simulation, iteration, start_ns, *free_ns);
	}
}

/* Frames that begin before this time. */
static void run_frames(struct simulation *simulation, uint64_t until_ns)
{
	struct simulation_model *model = &simulation->model;
	while (simulation->free_ns[0] < until_ns) {
		double t_s = (double)(simulation->free_ns[0] - SIMULATION_T0) / 1e9;
		const double deadline_ms = model->deadline_ms, target_fps = model->target_fps;
		if (simulation->options.change) {
			simulation->options.change(simulation, t_s, model);
		}
		if (deadline_ms != model->deadline_ms || target_fps != model->target_fps) {
			configure(simulation);
		}
		if (model->stopped) {
			simulation->free_ns[0] += SECOND / 100;
			continue;
		}
		uint64_t number = simulation->next_id++;
		bool ids = simulation->options.kind == SIMULATE_FRAMES ||
			   simulation->options.kind == SIMULATE_PIPELINE ||
			   simulation->options.kind == SIMULATE_TASKS;
		struct iteration iteration = {.number = number,
			.id = !ids			? PROTO_NO_FRAME
			      : simulation->options.ids ? number % simulation->options.ids
							: number,
			.slow = (model->slow_every > 0 &&
					number % (uint64_t)model->slow_every == 0) ||
				chance(simulation) < model->slow_chance};
		if (simulation->options.kind == SIMULATE_PIPELINE) {
			run_pipeline(simulation, &iteration);
		} else if (simulation->options.kind >= SIMULATE_TASKS) {
			run_task(simulation, &iteration);
		} else {
			run_loop(simulation, &iteration);
		}
	}
}

/* The daemon reads what was published, thread by thread. */
static void drain(struct simulation *simulation, uint64_t now_ns)
{
	size_t left = 0;
	for (uint32_t slot = 0; slot < SIMULATION_THREADS; slot++) {
		for (size_t i = 0; i < simulation->pending; i++) {
			const struct simulation_pending *pending = &simulation->record[i];
			if (pending->slot == slot && pending->t_ns <= now_ns) {
				simulation->process->accounting.sent++;
				simulation->process->accounting.received++;
				apps_record(simulation->core.apps, simulation->process, slot,
					&pending->record, now_ns);
			}
		}
	}
	for (size_t i = 0; i < simulation->pending; i++) {
		if (simulation->record[i].t_ns > now_ns) {
			simulation->record[left++] = simulation->record[i];
		}
	}
	simulation->pending = left;
	simulation->process->frame_state.pass_ns = now_ns;
	apps_drained(simulation->core.apps, simulation->process);
}

void simulation_set(struct simulation *simulation, enum unit unit, const char *path, double value,
	const char *reason)
{
	struct metric *metric = NULL;
	ck_assert_int_eq(
		metrics_add(simulation->core.metrics, simulation->sensors, path, unit, &metric), 0);
	metric_set_or_null(metric, value, reason);
}

static void sense(struct simulation *simulation)
{
	if (simulation->options.sense) {
		simulation->options.sense(
			simulation, (double)(simulation->now_ns - SIMULATION_T0) / 1e9);
	}
	metrics_commit(simulation->core.metrics, simulation->sensors, simulation->now_ns);
	const struct metric *active = metrics_find(simulation->core.metrics, "throttle/active");
	if (active) {
		throttle_times_sample(&simulation->throttle.times, simulation->now_ns,
			isnan(active->value) ? THROTTLE_UNKNOWN
			: active->value > 0  ? THROTTLE_YES
					     : THROTTLE_NO);
	}
}

void simulation_run(struct simulation *simulation, double seconds)
{
	uint64_t until_ns = simulation->now_ns + (uint64_t)(seconds * 1e9);
	uint64_t step_ns = (uint64_t)(simulation->options.interval_s * 1e9) / DRAINS;
	for (size_t i = 1; simulation->now_ns + step_ns <= until_ns; i++) {
		simulation->now_ns += step_ns;
		run_frames(simulation, simulation->now_ns);
		if (i % DRAINS == 0) {
			sense(simulation);
		}
		drain(simulation, simulation->now_ns);
		if (i % DRAINS == 0) {
			apps_sample(simulation->core.apps, simulation->now_ns);
		}
	}
}

struct app *simulation_app(const struct simulation *simulation)
{
	return apps_find(simulation->core.apps, SIMULATION_APP);
}

void simulation_gather(struct simulation *simulation, struct facts *ret)
{
	const struct app *app = simulation_app(simulation);
	facts_read_frames(simulation->gatherer, &simulation->core, app, simulation->now_ns);
	facts_measure(simulation->gatherer, &simulation->core, app, simulation->now_ns, ret);
}
