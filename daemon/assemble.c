/* SPDX-License-Identifier: Apache-2.0 */
/* assemble.c: builds core and registers the observers of a commit. History comes first, so that
 * whoever reads an alert also finds the value that raised it. */
#include "daemon/wiring.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "daemon/collect/process/procfs.h"
#include "daemon/core/alerts/actions.h"
#include "daemon/core/alerts/store.h"
#include "daemon/core/apps/apps.h"
#include "daemon/core/diagnose/diagnoses.h"
#include "daemon/core/runs/save.h"
#include "daemon/host/facts.h"
#include "daemon/persist/statedir.h"
#include "daemon/util/accounts.h"
#include "daemon/util/deferred_close.h"
#include "daemon/util/log.h"
#include "daemon/util/sysops.h"

static void on_commit(void *ctx, const struct source *source, uint64_t t_ns)
{
	struct daemon *daemon = ctx;
	history_append(daemon->core.history, daemon->core.metrics, source, t_ns);
	alerts_commit(daemon->core.alerts, source, t_ns);
}

static void on_retire(void *ctx, const struct metric *metric)
{
	struct daemon *daemon = ctx;
	history_retire(daemon->core.history, metric);
	alerts_retire(daemon->core.alerts, metric, sysops()->now_ns());
}

static void parse_boot_id(const char *text, uint8_t ret[16])
{
	for (size_t digits = 0; *text && digits < 32; text++) {
		unsigned value;
		if (*text == '-' || sscanf(text, "%1x", &value) != 1) {
			continue;
		}
		ret[digits / 2] = (uint8_t)(ret[digits / 2] << 4 | value);
		digits++;
	}
}

/* The configured limit of the history, or a hundredth of the machine's memory, 16 MiB at most. */
static size_t history_limit(const struct daemon *daemon)
{
	const size_t max = 16u << 20;
	double total, available;
	if (daemon->config->history_bytes > 0) {
		return daemon->config->history_bytes;
	}
	if (proc_memory_read(&daemon->root, &total, &available) < 0 || !(total < 100.0 * max)) {
		return max;
	}
	size_t size = (size_t)(total / 100) / HISTORY_STEP * HISTORY_STEP;
	return size > HISTORY_MIN_POOL ? size : HISTORY_MIN_POOL;
}

/* Opens the live history in the run directory, or in memory when that fails; facts say why. */
static int open_history(struct daemon *daemon)
{
	enum history_found found = HISTORY_FOUND_NOTHING;
	const size_t size = history_limit(daemon);
	struct runfile *file = &daemon->file[RUN_HISTORY];
	int r = daemon_open_run_file(daemon, RUN_HISTORY, size);
	if (r == -EBUSY) {
		log_error("cannot start: another edgeprofd is running in %s", daemon->run_dir);
		return -EADDRINUSE;
	}
	if (r == 0) {
		const struct history_memory memory = {
			file->data, file->size, daemon_reserve_history, daemon};
		r = history_open(&memory, daemon->boot_id, &daemon->core.history, &found);
		if (r < 0) {
			daemon_lose_run_file(daemon, RUN_HISTORY, r);
		}
	}
	if (r < 0) {
		char why[96];
		runfile_why(daemon->run_dir, "history", r, why, sizeof(why));
		snprintf(daemon->facts.history_reason, sizeof(daemon->facts.history_reason),
			"its file: %s", why);
		r = runfile_memory(size, file);
		r = r < 0 ? r
			  : history_create(file->data, file->size, daemon->boot_id,
				    &daemon->core.history, &found);
	}
	daemon->recovering = r == 0 && found == HISTORY_FOUND_OLD;
	return r;
}

void daemon_on_history(struct daemon *daemon)
{
	struct history_usage usage;
	log_info("restored the history recorded before the restart");
	history_usage(daemon->core.history, &usage);
	daemon_report_damage(daemon, RUN_HISTORY, usage.damaged);
}

/* Opens the timeline in the run directory, or in memory when that fails. */
static int open_timeline(struct daemon *daemon)
{
	const size_t entries = TIMELINE_DEFAULT_ENTRIES;
	if (daemon_open_run_file(daemon, RUN_TIMELINE, timeline_bytes(entries)) < 0) {
		return timeline_create(entries, &daemon->core.timeline);
	}
	int r = timeline_adopt(
		daemon->file[RUN_TIMELINE].data, entries, daemon->boot_id, &daemon->core.timeline);
	if (r == 0) {
		daemon_report_damage(daemon, RUN_TIMELINE, timeline_damaged(daemon->core.timeline));
	}
	return r;
}

static void restore_overrides(struct daemon *daemon)
{
	void *holds = daemon->file[RUN_HOLDS].data;
	if (holds) {
		daemon_report_damage(daemon, RUN_HOLDS,
			alerts_attach_overrides(
				daemon->core.alerts, holds, daemon->boot_id, sysops()->now_ns()));
	}
}

/* Starts the evaluation of rules. */
static int judge_alerts(struct daemon *daemon)
{
	const uint64_t now_ns = sysops()->now_ns();
	void *state = daemon->file[RUN_ALERTS].data;
	const bool stored = state && alerts_store_is_of(state, daemon->boot_id);
	if (state) {
		daemon_report_damage(daemon, RUN_ALERTS,
			alerts_attach_store(daemon->core.alerts, state, daemon->boot_id, now_ns));
	}
	if (stored) { /* else the medium added none */
		restore_overrides(daemon);
	}
	return alerts_set_rules(
		daemon->core.alerts, daemon->config->alert, daemon->config->alerts, now_ns);
}

void daemon_on_alerts(void *ctx)
{
	struct daemon *daemon = ctx;
	daemon->alerts_reader = NULL;
	daemon->alerts_loaded = daemon->recovering;
	if (daemon->recovering) {
		return; /* nobody would hear of what changes */
	}
	int r = judge_alerts(daemon);
	if (r < 0) {
		log_error("cannot set the alert rules: %s; no alerts are raised", strerror(-r));
	}
}

/* Restores the state of alerts, acknowledgements and silences; without the files they start empty.
 * After a reboot the state is that of the previous boot. False: it is still being read. */
static bool open_alerts(struct daemon *daemon)
{
	int r = daemon_open_run_file(daemon, RUN_ALERTS, alerts_store_bytes());
	daemon_open_run_file(daemon, RUN_HOLDS, overrides_bytes());
	restore_overrides(daemon); /* silences can be set while the medium is read */
	return r < 0 || daemon->state_dir[0] == '\0' ||
	       alerts_reader_open(daemon->loop, daemon->state_dir, daemon->file[RUN_ALERTS].data,
		       daemon->file[RUN_HOLDS].data, daemon->boot_id, daemon_on_alerts, daemon,
		       &daemon->alerts_reader);
}

/* Reads memory for marks: one reading serves a burst of them, and each mark reports its age. */
static bool read_memory(void *ctx, struct system_memory *ret)
{
	static const uint64_t burst_ns = 10000000;
	struct daemon *daemon = ctx;
	struct system_memory *memory = &daemon->memory;
	uint64_t now_ns = sysops()->now_ns();
	if (memory->t_ns == 0 || now_ns - memory->t_ns > burst_ns) {
		memory->t_ns = now_ns;
		if (proc_memory_read(
			    &daemon->root, &memory->total_bytes, &memory->available_bytes) < 0) {
			memory->t_ns = 0;
			return false;
		}
	}
	*ret = *memory;
	return true;
}

static const char *comment_on(void *ctx, const char *metric, uint64_t t_ns)
{
	struct daemon *daemon = ctx;
	return diagnoses_of_metric(daemon->core.diagnoses, metric, t_ns);
}

static bool reserve_runs(void *ctx, size_t offset, size_t length)
{
	return runfile_reserve(ctx, offset, length) == 0;
}

/* Restores the statistics of current runs; without the file they restart with the daemon. */
static void open_runs(struct daemon *daemon)
{
	struct runfile *file = &daemon->file[RUN_RUNS];
	int r = daemon_open_run_file(daemon, RUN_RUNS, apps_save_size());
	if (r == 0) {
		const struct app_save_memory memory = {.data = file->data,
			.size = file->size,
			.reserve = reserve_runs,
			.ctx = file};
		r = apps_save_into(daemon->core.apps, &memory, daemon->boot_id);
		if (r < 0) {
			log_warning("%s/runs: cannot restore the statistics of current runs: %s",
				daemon->run_dir, strerror(-r));
		}
	}
}

int daemon_assemble(struct daemon *daemon)
{
	struct core *core = &daemon->core;
	struct source *stages;
	core->processes = &daemon->processes;
	core->throttle = &daemon->throttle;
	throttle_clear(core->throttle, "not sampled yet");
	core->wall = &daemon->wall;
	core->facts = &daemon->facts;
	core->modes = &daemon->modes;
	core->bystanders = &daemon->bystanders;
	core->broker = &daemon->broker;
	core->counters = &daemon->counters;
	core->degraded = &daemon->degraded;
	wallclock_init(&daemon->wall);
	facts_read(&daemon->facts, &daemon->root, &daemon->real_root);
	daemon_show_config(daemon);
	parse_boot_id(daemon->facts.boot_id, daemon->boot_id);
	snprintf(daemon->facts.run_dir, sizeof(daemon->facts.run_dir), "%s", daemon->run_dir);
	if (daemon_open_run_file(daemon, RUN_CLOCK, wallclock_bytes()) == 0) {
		daemon_report_damage(daemon, RUN_CLOCK,
			wallclock_restore(
				core->wall, daemon->file[RUN_CLOCK].data, daemon->boot_id));
	}
	int r = accounts_create(&core->accounts);
	r = r < 0 ? r : deferred_close_create(&core->deferred_close);
	r = r < 0 ? r : sources_create(&core->sources);
	r = r < 0 ? r : metrics_create(&core->metrics);
	r = r < 0 ? r : open_history(daemon);
	r = r < 0 ? r : open_timeline(daemon);
	if (r == 0 && daemon->config->history_persist) {
		timeline_reserve(core->timeline);
	}
	r = r < 0 ? r : alerts_create(core->metrics, core->timeline, &core->alerts);
	r = r < 0 ? r : sources_add(core->sources, "stages", daemon->config->interval_ns, &stages);
	if (r < 0) {
		return r;
	}
	stages->guests = true;
	const struct config *config = daemon->config;
	bool parents;
	if (!config->history_persist || statedir_choose(config->history_path, daemon->state_dir,
						sizeof(daemon->state_dir), &parents) < 0) {
		daemon->state_dir[0] = '\0';
	}
	bool judged = open_alerts(daemon);
	const struct apps_options options = {
		.stage_window = daemon->config->stage_window,
		.frame_window = daemon->config->frame_window,
		.stage_memory = daemon->config->stage_bytes,
		.events_memory = daemon->config->recorder_bytes,
		.owner = geteuid(),
	};
	r = apps_create(core->metrics, stages, core->timeline, &options, &core->apps);
	if (r == 0) {
		apps_set_throttle_times(core->apps, &core->throttle->times);
		apps_set_memory_reader(core->apps, read_memory, daemon);
		r = diagnoses_create(core, &core->diagnoses);
		daemon_configure_apps(daemon);
		open_runs(daemon);
	}
	if (r == 0) {
		alerts_set_comment(core->alerts, comment_on, daemon);
	}
	r = r < 0 || !judged ? r : judge_alerts(daemon);
	const struct metrics_observer observer = {on_commit, on_retire, daemon};
	return r < 0 ? r : metrics_observe(core->metrics, observer);
}

void daemon_disassemble(struct daemon *daemon)
{
	struct core *core = &daemon->core;
	if (core->metrics) {
		metrics_unobserve(core->metrics, daemon);
	}
	diagnoses_destroy(core->diagnoses);
	apps_destroy(core->apps);
	alerts_destroy(core->alerts);
	history_destroy(core->history);
	timeline_destroy(core->timeline);
	metrics_destroy(core->metrics);
	sources_destroy(core->sources);
	deferred_close_destroy(core->deferred_close);
	accounts_destroy(core->accounts);
	for (size_t i = RUN_FILES; i-- > 0;) {
		runfile_close(&daemon->file[i]);
	}
}
