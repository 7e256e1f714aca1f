/* SPDX-License-Identifier: Apache-2.0 */
/*
 * apps.c: keeps track of who is instrumented: apps by name and uid, their processes, and what
 * remains of those that ended. ingest calls attach and detach; records.c and metrics.c do the work
 * in between.
 */
#include "daemon/core/apps/apps.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/core/apps/apps_private.h"
#include "daemon/core/frames/trace_buffer.h"
#include "daemon/util/sysops.h"
#include "proto/text.h"

/* USER_HZ is 100 wherever Linux runs. */
#define TICK_NS UINT64_C(10000000)

int apps_create(struct metrics *metrics, struct source *source, struct timeline *timeline,
	const struct apps_options *options, struct apps **ret)
{
	struct apps *apps = mem_zalloc(sizeof(*apps));
	if (!apps) {
		return -ENOMEM;
	}
	size_t window = options->stage_window;
	if (window < 2 * options->frame_window) {
		window = 2 * options->frame_window;
	}
	apps->scratch = mem_calloc(window, sizeof(*apps->scratch));
	if (!apps->scratch) {
		apps_destroy(apps);
		return -ENOMEM;
	}
	apps->metrics = metrics;
	apps->source = source;
	apps->timeline = timeline;
	apps->inherited_serial = timeline_last_serial(timeline);
	apps->options = *options;
	apps->counts.stage_budget.limit =
		options->stage_memory ? options->stage_memory : STAGES_MEMORY;
	apps->config.gauge_expire_ns = GAUGE_EXPIRE_NS;
	apps->new_left = SIZE_MAX;
	advice_defaults(&apps->config.advice);
	*ret = apps;
	return 0;
}

void apps_destroy(struct apps *apps)
{
	if (!apps) {
		return;
	}
	for (size_t i = 0; i < apps->count; i++) {
		app_destroy(apps->app[i]);
	}
	apps_forget_sum(apps);
	app_save_destroy(apps);
	free(apps->scratch);
	free(apps->marks);
	trace_buffer_destroy(apps->trace);
	free(apps);
}

static size_t app_index(const struct apps *apps, const char *name)
{
	size_t i = 0;
	while (i < apps->count && strcmp(apps->app[i]->name, name) != 0) {
		i++;
	}
	return i;
}

int apps_observe(struct apps *apps, const struct apps_observer *observer)
{
	for (size_t i = 0; i < APPS_OBSERVERS; i++) {
		struct apps_observer *slot = &apps->observer[i];
		if (!slot->displace && !slot->ended) {
			*slot = *observer;
			return 0;
		}
	}
	return -ENOSPC;
}

void apps_unobserve(struct apps *apps, const void *ctx)
{
	for (size_t i = 0; i < APPS_OBSERVERS; i++) {
		if (apps->observer[i].ctx == ctx) {
			apps->observer[i] = (struct apps_observer){.ctx = NULL};
		}
	}
}

/* The name goes to a user who takes precedence. False: somebody keeps a process. */
static bool displace(struct apps *apps, const struct app *app, uid_t uid, uint64_t now_ns)
{
	if (app->processes > 0) {
		timeline_add(apps->timeline, now_ns, TIMELINE_APP, TIMELINE_WARNING, app->name,
			"detached the app of uid %u: its name now belongs to uid %u",
			(unsigned)app->uid, (unsigned)uid);
	}
	for (size_t i = 0; i < APPS_OBSERVERS; i++) {
		if (apps->observer[i].displace) {
			apps->observer[i].displace(apps->observer[i].ctx, app);
		}
	}
	return app->processes == 0;
}

/* Finds or makes the app of this name and uid. */
static int app_of(struct apps *apps, const char *name, uid_t uid, uint64_t now_ns, struct app **ret,
	bool *is_new)
{
	size_t index = app_index(apps, name);
	const struct app_rules rules = app_settings_of_app(apps->config.settings, name);
	if (rules.reserved && rules.user != uid) {
		return -EPERM;
	}
	if (index < apps->count) {
		struct app *app = apps->app[index];
		if (app->uid == uid) {
			*ret = app;
			return 0;
		}
		bool held = app->processes > 0 ||
			    now_ns < app->last_seen_ns + APP_NAME_HOLD_S * 1000000000ull;
		bool precedes = rules.reserved || uid == 0;
		if (held && !(precedes && displace(apps, app, uid, now_ns))) {
			return -EACCES;
		}
		app_retire(apps, index);
	}
	if (apps->count == APPS_MAX && !apps_retire_gone(apps)) {
		return -ENOSPC;
	}
	struct app *app = mem_zalloc(sizeof(*app));
	if (!app) {
		return -ENOMEM;
	}
	snprintf(app->name, sizeof(app->name), "%s", name);
	app->uid = uid;
	app->known_ns = now_ns;
	app->since_ns = now_ns;
	app->last_seen_ns = now_ns;
	app->run = 1;
	advice_clear(&app->advice, "not judged yet", now_ns);
	apps->app[apps->count++] = app;
	*is_new = true;
	*ret = app;
	return 0;
}

/* The timeline outlives the daemon: what one before this one logged has not started now. A new
 * process of that pid started after the entry. */
static bool has_logged_start(
	const struct apps *apps, const char *name, const char *text, uint64_t start_ticks)
{
	const uint64_t started_ns = start_ticks * TICK_NS;
	for (uint64_t serial = apps->inherited_serial; serial > 0 && start_ticks > 0; serial--) {
		const struct timeline_entry *entry = timeline_from(apps->timeline, serial);
		if (!entry || entry->serial != serial || entry->boot_seq != 0 ||
			entry->t_ns < started_ns) {
			break;
		}
		if (entry->kind == TIMELINE_APP && strcmp(entry->subject, name) == 0 &&
			strcmp(entry->text, text) == 0) {
			return true;
		}
	}
	return false;
}

static void note_entry(struct apps *apps, const struct app *app, enum timeline_level level,
	const char *text, uint64_t now_ns)
{
	if (apps_may_log(apps, app->uid, level, now_ns)) {
		timeline_add(apps->timeline, now_ns, TIMELINE_APP, level, app->name, "%s", text);
	}
}

static void add_start(
	struct apps *apps, const struct app *app, pid_t pid, uint64_t start_ticks, uint64_t now_ns)
{
	char text[40] = "started";
	if (pid > 0) {
		snprintf(text, sizeof(text), "started (pid %d)", (int)pid);
	}
	if (!has_logged_start(apps, app->name, text, start_ticks)) {
		note_entry(apps, app, TIMELINE_INFO, text, now_ns);
	}
}

int apps_attach(struct apps *apps, const char *name, uid_t uid, pid_t pid, uint64_t start_ticks,
	uint32_t mapping_size, uint64_t now_ns, struct app_process **ret)
{
	char clean[PROTO_NAME_SIZE];
	proto_name_clean(name, strlen(name), clean);
	struct app_process *process = mem_zalloc(sizeof(*process));
	if (!process) {
		return -ENOMEM;
	}
	struct app *app;
	bool is_new = false;
	int r = app_of(apps, clean, uid, now_ns, &app, &is_new);
	if (r == 0 && app->processes == APP_PROCESSES_MAX) {
		r = -ENOSPC;
	}
	if (r < 0) {
		free(process);
		return r;
	}
	*process = (struct app_process){
		.app = app,
		.pid = pid,
		.start_ticks = start_ticks,
		.attached_ns = now_ns,
		.mapping_size = mapping_size,
	};
	bool goes_on =
		app->processes > 0 || app->end == PROCESS_RELEASED ||
		(start_ticks > 0 && pid == app->last_pid && start_ticks == app->last_start_ticks);
	if (!is_new && !goes_on) {
		app_run_begin(apps, app, now_ns);
	}
	if (is_new) {
		app_restore(apps, app, pid, start_ticks, now_ns);
	}
	app->last_words[0] = '\0';
	app->last_pid = pid;
	app->last_start_ticks = start_ticks;
	app->starts++;
	app->restarts += !is_new;
	process->frame_state.serial = (uint16_t)app->restarts;
	process->id_key = app->restarts * 0x9e3779b97f4a7c15u; /* 0 for the first */
	app->process[app->processes++] = process;
	add_start(apps, app, pid, start_ticks, now_ns);
	*ret = process;
	return 0;
}

static void report_end(
	struct apps *apps, struct app_process *process, enum process_end how, uint64_t now_ns)
{
	struct app *app = process->app;
	if (how == PROCESS_RELEASED) {
		return;
	}
	if (how == PROCESS_ENDED) {
		const char *cause =
			process->away ? "ended while the daemon was away" : process->cause;
		snprintf(
			app->last_words, sizeof(app->last_words), "%s", process->away ? cause : "");
		note_entry(apps, app, TIMELINE_INFO, cause[0] ? cause : "ended", now_ns);
		return;
	}
	/* the newest open stage is the innermost one */
	const struct app_open_stage *open =
		process->open_count ? &process->open[process->open_count - 1] : NULL;
	struct text words = TEXT_IN(app->last_words);
	text_add(&words, "%s", process->cause[0] ? process->cause : "died");
	if (open) {
		text_add(&words, " in `%s`", open->stage);
	}
	if (open && open->frame != PROTO_NO_FRAME) {
		text_add(&words, ", frame %" PRIu64, open->frame);
	}
	note_entry(apps, app, TIMELINE_WARNING, app->last_words, now_ns);
}

void app_accounting_add(struct app_accounting *sum, const struct app_accounting *add)
{
	sum->sent += add->sent;
	sum->received += add->received;
	sum->dropped += add->dropped;
	sum->in_ring += add->in_ring;
	sum->invalid += add->invalid;
}

void apps_detach(
	struct apps *apps, struct app_process *process, enum process_end how, uint64_t now_ns)
{
	struct app *app = process->app;
	app_by_id_apply(apps, process, true);
	app_frames_gone(process);
	if (how != PROCESS_RELEASED) { /* else the mapping comes back with the same counts */
		app_accounting_add(&app->past, &process->accounting);
	}
	report_end(apps, process, how, now_ns);
	app_hang_forget(app, process, NULL);
	app->marks_refused += process->marks_refused;
	size_t i = 0;
	while (app->process[i] != process) {
		i++;
	}
	app->processes--;
	memmove(&app->process[i], &app->process[i + 1],
		(app->processes - i) * sizeof(struct app_process *));
	app->process[app->processes] = NULL;
	for (i = 0; i < PROTO_DECLARATIONS; i++) {
		if (process->stages[i]) {
			process->stages[i]->users--;
		}
	}
	app_process_destroy(process);
	app->last_seen_ns = now_ns;
	app->end = how;
	if (app->processes > 0) {
		return;
	}
	app->hangs.count = 0;
	app_values_end(app);
	for (i = 0; i < app->stages; i++) {
		stage_abandon(app->stage[i]);
	}
	if (how != PROCESS_RELEASED) {
		app_save_forget_run(apps, app);
	}
	for (i = 0; i < APPS_OBSERVERS && how != PROCESS_RELEASED; i++) {
		if (apps->observer[i].ended) {
			apps->observer[i].ended(apps->observer[i].ctx, app, how, now_ns);
		}
	}
}

struct app *apps_at(struct apps *apps, size_t index)
{
	return index < apps->count ? apps->app[index] : NULL;
}

struct app *apps_find(struct apps *apps, const char *name)
{
	size_t index = app_index(apps, name);
	return index < apps->count ? apps->app[index] : NULL;
}

size_t apps_running(const struct apps *apps, const uid_t *uid)
{
	size_t count = 0;
	for (size_t i = 0; i < apps->count; i++) {
		count += apps->app[i]->processes > 0 && (!uid || apps->app[i]->uid == *uid);
	}
	return count;
}

void apps_note_other(struct apps *apps, const struct app *app, const char *stage)
{
	size_t slot = apps->counts.other_names++ % APP_OTHER_NAMES;
	snprintf(apps->other_name[slot], sizeof(apps->other_name[slot]), "%s/%s", app->name, stage);
}

const char *apps_other_name(const struct apps *apps, size_t index)
{
	if (index >= APP_OTHER_NAMES || index >= apps->counts.other_names) {
		return NULL;
	}
	return apps->other_name[(apps->counts.other_names - 1 - index) % APP_OTHER_NAMES];
}

const struct apps_counts *apps_counts(const struct apps *apps)
{
	return &apps->counts;
}

void app_accounting(const struct app *app, struct app_accounting *ret)
{
	*ret = app->past;
	for (size_t i = 0; i < app->processes; i++) {
		app_accounting_add(ret, &app->process[i]->accounting);
	}
}

uint64_t app_marks_refused(const struct app *app)
{
	uint64_t refused = app->marks_refused;
	for (size_t i = 0; i < app->processes; i++) {
		refused += app->process[i]->marks_refused;
	}
	return refused;
}
