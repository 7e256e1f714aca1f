/* SPDX-License-Identifier: Apache-2.0 */
/* process.c: samples watched processes from proc/<pid>/stat and status:
 * process/<name>/{rss,vms,peak_rss,…} as sums over the processes of a watched name, and a row for
 * each process. CPU is in percent of one core over the time since the previous sample. A process is
 * identified by (pid, start time): a reused pid is a new process. The daemon itself and attached
 * apps are read from the machine's own proc, names and configured pids below --root. Name lookups
 * and reads of smaps_rollup run in the background, for the next sample. No own keys; what is
 * watched comes from [process NAME] and from the apps. */
#include "daemon/collect/sched/registry.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "daemon/collect/lib/device_file.h"
#include "daemon/collect/process/group.h"
#include "daemon/collect/process/proc_track.h"
#include "daemon/collect/process/procfs.h"
#include "daemon/collect/process/scan.h"
#include "daemon/collect/sched/fetch.h"

/* What one iteration of the loop does: 0.3 ms. */
enum {
	BATCH = 8,	 /* processes that it reads */
	NEW_GROUPS = 12, /* names of which it adds the metrics */
};

struct process_state {
	long ticks_per_second;
	double memory_total[2]; /* [real] */
	bool serial_known;
	uint32_t serial;
	uint64_t scanned_ns; /* when it was asked for; 0 = never */
	bool patterns;
	size_t groups;
	struct group group[WATCHES_MAX];
	struct tracks tracks;
	struct found found;	     /* by the last scan */
	struct background scan, pss; /* of struct scan, struct pss_reads */
	struct root own;	     /* the machine's, which keeps the daemon's own files open */
	struct root_kept kept;
	struct device_file task_delayacct;
	const char *no_delays; /* why the kernel does not count them; NULL = it does */
	/* The sample that goes on: what it reads, of watches as they were when it began, and the
	 * rows so far. */
	bool goes_on;
	size_t jobs, next, rows;
	struct job {
		const struct watch *watch;
		pid_t pid;
		uint64_t start_ticks;
	} job[WATCHES_MAX + SCAN_MATCHES_MAX];
	struct watch watch[WATCHES_MAX];
	struct process_row row[PROCESS_ROWS_MAX];
	struct pss_reads *asked; /* NULL = the reader is busy */
	int scanned;
};

static void process_close(void *state)
{
	struct process_state *process = state;
	device_file_close(&process->task_delayacct);
	background_close(&process->scan);
	background_close(&process->pss);
	tracks_finish(&process->tracks);
	root_kept_finish(&process->kept);
}

static int process_open(const struct collector_context *ctx, void *state)
{
	struct process_state *process = state;
	device_file_init(&process->task_delayacct, true, "proc/sys/kernel/task_delayacct");
	tracks_init(&process->tracks, ctx->real_root);
	process->own = *ctx->real_root;
	process->own.kept = &process->kept;
	if (background_open(&process->scan, ctx, &scan_runner, 0) < 0 ||
		background_open(&process->pss, ctx, &proc_pss_reader, 1) < 0) {
		return -ENOMEM;
	}
	ctx->source->guests = true; /* apps choose the names of their processes' metrics */
	process->ticks_per_second = sysconf(_SC_CLK_TCK);
	process->memory_total[false] = proc_memory_total(ctx->root);
	process->memory_total[true] = proc_memory_total(ctx->real_root);
	return 0;
}

static struct group *find_group(struct process_state *process, const char *name)
{
	for (size_t i = 0; i < process->groups; i++) {
		if (strcmp(process->group[i].name, name) == 0) {
			return &process->group[i];
		}
	}
	return NULL;
}

/* Its bits are free for another group. */
static void retire_group(
	const struct collector_context *ctx, struct process_state *process, struct group *group)
{
	for (size_t i = 0; i < process->tracks.count; i++) {
		struct track *track = &process->tracks.track[i];
		uint64_t bit = UINT64_C(1) << (group->slot % 64);
		track->now[group->slot / 64] &= ~bit;
		track->over[group->slot / 64] &= ~bit;
	}
	group_retire(group, ctx->core->metrics);
}

static unsigned free_slot(const struct process_state *process)
{
	bool used[WATCHES_MAX] = {false};
	unsigned slot = 0;
	for (size_t i = 0; i < process->groups; i++) {
		used[process->group[i].slot] = true;
	}
	while (used[slot]) {
		slot++; /* there are fewer groups than slots here */
	}
	return slot;
}

static int add_group(const struct collector_context *ctx, struct process_state *process,
	const struct watch *watch)
{
	struct group *group = &process->group[process->groups];
	memset(group, 0, sizeof(*group));
	memcpy(group->name, watch->name, sizeof(group->name));
	group->slot = free_slot(process);
	int r = group_open(group, ctx->core->metrics, ctx->source);
	if (r < 0) {
		group_retire(group, ctx->core->metrics);
		return r;
	}
	process->groups++;
	return 0;
}

static bool has_limit(const struct processes *processes, const char *name)
{
	for (size_t i = 0; i < processes->watches; i++) {
		const struct watch *watch = &processes->watch[i];
		if (watch->memory_limit_bytes != 0 && strcmp(watch->name, name) == 0) {
			return true;
		}
	}
	return false;
}

/* Brings the groups in line with the watches: one for each name, those without a watch go.
 * -EINPROGRESS: more names are new than one call adds. */
static int follow_watches(const struct collector_context *ctx, struct process_state *process)
{
	const struct processes *processes = ctx->core->processes;
	for (size_t i = 0; i < process->groups; i++) {
		process->group[i].wanted = false;
		process->group[i].events = true;
	}
	process->patterns = false;
	for (size_t i = 0; i < processes->watches; i++) {
		struct group *group = find_group(process, processes->watch[i].name);
		enum watch_kind kind = processes->watch[i].kind;
		process->patterns |= kind == WATCH_PATTERN || kind == WATCH_UNIT;
		if (group) {
			group->wanted = true;
		}
	}
	size_t kept = 0;
	for (size_t i = 0; i < process->groups; i++) {
		if (!process->group[i].wanted) {
			retire_group(ctx, process, &process->group[i]);
		} else if (kept++ != i) {
			process->group[kept - 1] = process->group[i];
		}
	}
	process->groups = kept;
	for (size_t i = 0; i < processes->watches; i++) {
		const struct watch *watch = &processes->watch[i];
		if (!find_group(process, watch->name)) {
			int r = process->groups < kept + NEW_GROUPS ? add_group(ctx, process, watch)
								    : -EINPROGRESS;
			if (r < 0) {
				return r;
			}
		}
		struct group *group = find_group(process, watch->name);
		group->events = watch->kind != WATCH_SELF && watch->kind != WATCH_APP;
		int r = group_limit(
			group, ctx->core->metrics, ctx->source, has_limit(processes, watch->name));
		if (r < 0) {
			return r;
		}
	}
	process->serial = processes->serial;
	process->serial_known = true;
	process->scanned_ns = 0;
	return 0;
}

/* Notes that the group has the process; what it had not before has started. False when it had it in
 * this sample already: two watches of a name. */
static bool join(struct group *group, struct track *track)
{
	uint64_t bit = UINT64_C(1) << (group->slot % 64);
	if (track->now[group->slot / 64] & bit) {
		return false;
	}
	track->now[group->slot / 64] |= bit;
	if (group->known && group->events && !(track->before[group->slot / 64] & bit)) {
		group_started(group, track->owner.pid);
	}
	return true;
}

static void check_limit(const struct collector_context *ctx, struct group *group,
	struct track *track, const struct watch *watch, double rss_bytes)
{
	uint64_t *bits = &track->over[group->slot / 64];
	uint64_t bit = UINT64_C(1) << (group->slot % 64);
	bool over = *bits & bit;
	group_check_limit(group, &over, track->owner.pid, rss_bytes, watch->memory_limit_bytes,
		ctx->core->timeline, track->t_ns);
	*bits = over ? *bits | bit : *bits & ~bit;
}

/* The process's row of the table, refused when that is full, and its part of the group's sums. */
static void add_row(const struct collector_context *ctx, struct process_state *process,
	struct group *group, const struct watch *watch, const struct track *track,
	const struct proc_stat *stat, double memory_total)
{
	struct process_row refused, *row = &refused;
	if (process->rows < PROCESS_ROWS_MAX) {
		row = &process->row[process->rows++];
	} else {
		ctx->core->processes->refused++;
	}
	track_row(track, watch, stat, memory_total, row);
	group_add(group, row);
}

/* Samples one process of one watch; a process that is gone or whose pid was reused is skipped. */
static void add_process(
	const struct collector_context *ctx, struct process_state *process, const struct job *job)
{
	const struct watch *watch = job->watch;
	uint64_t now_ns = ctx->now_ns;
	bool real = watch->kind == WATCH_SELF || watch->kind == WATCH_APP || !ctx->root->fixture;
	const struct root *root = watch->kind == WATCH_SELF ? &process->own
				  : real		    ? ctx->real_root
							    : ctx->root;
	struct group *group = find_group(process, watch->name);
	struct proc_stat stat;
	if (!group || job->pid <= 0 || proc_stat_read(root, job->pid, &stat) < 0 ||
		(job->start_ticks != 0 && stat.start_ticks != job->start_ticks)) {
		return;
	}
	const struct thread_owner owner = {
		.pid = job->pid, .real = real, .start_ticks = stat.start_ticks};
	struct track *track = tracks_find(&process->tracks, &owner);
	if (!track || tracks_status(&process->tracks, track, root, &stat, now_ns) < 0) {
		ctx->core->processes->refused += track == NULL;
		return;
	}
	track_update(track, &stat, now_ns, (double)process->ticks_per_second, process->no_delays);
	tracks_read_extra(&process->tracks, track, root, &stat, watch->kind != WATCH_SELF, now_ns);
	if (join(group, track)) {
		check_limit(ctx, group, track, watch, track->status.rss_bytes);
		add_row(ctx, process, group, watch, track, &stat, process->memory_total[real]);
	}
}

/* Drops what this sample has not seen; groups that have lost a process hear of it. */
static void forget_gone(struct process_state *process, uint64_t now_ns)
{
	for (size_t i = 0; i < process->groups; i++) {
		struct group *group = &process->group[i];
		for (size_t j = 0; group->events && j < process->tracks.count; j++) {
			const struct track *track = &process->tracks.track[j];
			uint64_t lost =
				track->before[group->slot / 64] & ~track->now[group->slot / 64];
			if (lost >> (group->slot % 64) & 1) {
				group_exited(group, track->owner.pid);
			}
		}
	}
	for (size_t i = process->tracks.count; i-- > 0;) {
		if (process->tracks.track[i].t_ns != now_ns) {
			tracks_drop(&process->tracks, &process->tracks.track[i]);
		}
	}
}

static void add_job(struct process_state *process, size_t watch, pid_t pid, uint64_t start_ticks)
{
	process->job[process->jobs++] = (struct job){&process->watch[watch], pid, start_ticks};
}

/* The processes of names and units. The watches may have changed since the scan was asked for. */
static void plan_found(
	const struct collector_context *ctx, struct process_state *process, uint64_t now_ns)
{
	struct processes *processes = ctx->core->processes;
	const struct found *found = &process->found;
	const char *late = background_late(&process->scan, now_ns);
	struct watch *meant[WATCHES_MAX];
	bool looked_for[WATCHES_MAX] = {false};
	for (size_t i = 0; i < found->watches; i++) {
		meant[i] = processes_find(processes, &found->watch[i]);
		if (meant[i]) {
			looked_for[meant[i] - processes->watch] = true;
		}
	}
	for (size_t i = 0; i < processes->watches; i++) {
		const struct watch *watch = &processes->watch[i];
		bool by_scan = watch->kind == WATCH_PATTERN || watch->kind == WATCH_UNIT;
		if (by_scan && (late || !looked_for[i])) {
			find_group(process, watch->name)->unsure =
				late ? late : "not looked for yet";
		}
	}
	for (size_t i = 0; i < found->matches; i++) {
		const struct scan_match *match = &found->match[i];
		if (meant[match->watch]) {
			add_job(process, (size_t)(meant[match->watch] - processes->watch),
				match->pid, match->start_ticks);
		}
	}
}

/* What this sample may ask for; NULL = the reader is busy. */
static struct pss_reads *begin_tracks(struct process_state *process, uint64_t now_ns)
{
	int r;
	struct pss_reads *pss = process->pss.state;
	if (background_accept(&process->pss, &r)) {
		tracks_on_pss(&process->tracks, pss, now_ns);
	}
	bool ready = background_ready(&process->pss, now_ns);
	const char *late = ready ? NULL : background_late(&process->pss, now_ns);
	if (ready) {
		pss->count = 0;
	}
	tracks_begin(&process->tracks, ready ? pss : NULL, late);
	return ready ? pss : NULL;
}

/* What the sample is to read. */
static int begin(const struct collector_context *ctx, struct process_state *process)
{
	struct processes *processes = ctx->core->processes;
	uint64_t now_ns = ctx->now_ns;
	if (!process->serial_known || process->serial != processes->serial) {
		int r = follow_watches(ctx, process);
		if (r == -EINPROGRESS) {
			return r;
		}
		if (r < 0) {
			return collector_fail(ctx, r, "watches: %s", errno_reason(r));
		}
	}
	process->scanned = 0;
	if (process->patterns) {
		process->scanned = found_update(
			&process->found, &process->scan, processes, &process->scanned_ns, now_ns);
	} else {
		process->found.watches = process->found.matches = 0;
	}
	/* kernels before 5.14 have no such file, and always count */
	long long counted;
	int r = device_file_read_i64(&process->task_delayacct, ctx->root, &counted);
	process->no_delays = r == 0 && counted == 0 ? "kernel.task_delayacct is 0" : NULL;
	for (size_t i = 0; i < process->groups; i++) {
		group_reset(&process->group[i]);
	}
	process->asked = begin_tracks(process, now_ns);
	process->jobs = process->next = process->rows = 0;
	memcpy(process->watch, processes->watch, processes->watches * sizeof(process->watch[0]));
	for (size_t i = 0; i < processes->watches; i++) {
		const struct watch *watch = &processes->watch[i];
		if (watch->kind == WATCH_SELF) {
			add_job(process, i, process->tracks.self, 0);
		} else if (watch->kind == WATCH_PID || watch->kind == WATCH_APP) {
			add_job(process, i, watch->pid, watch->start_ticks);
		}
	}
	plan_found(ctx, process, now_ns);
	return 0;
}

/* A pid of WatchProcess means the process that has it when it is first seen. */
static void pin_all(struct processes *processes)
{
	for (size_t i = 0; i < processes->watches; i++) {
		struct watch *watch = &processes->watch[i];
		bool open = watch->kind == WATCH_PID && watch->runtime;
		for (size_t j = 0; open && j < processes->rows && watch->start_ticks == 0; j++) {
			const struct process_row *row = &processes->row[j];
			if (row->pid == watch->pid && strcmp(row->watch, watch->name) == 0) {
				watch->start_ticks = row->start_ticks;
			}
		}
	}
}

static int process_sample(const struct collector_context *ctx, void *state)
{
	struct process_state *process = state;
	struct processes *processes = ctx->core->processes;
	uint64_t now_ns = ctx->now_ns;
	int r = process->goes_on ? 0 : begin(ctx, process);
	if (r < 0) {
		return r;
	}
	size_t read = 0;
	while (read < BATCH && process->next < process->jobs) {
		add_process(ctx, process, &process->job[process->next++]);
		read++;
	}
	process->goes_on = read == BATCH;
	if (process->goes_on) {
		return -EINPROGRESS;
	}
	memcpy(processes->row, process->row, process->rows * sizeof(process->row[0]));
	processes->rows = process->rows;
	pin_all(processes);
	bool first = process->asked && process->asked->counters && !process->tracks.counters_ready;
	if (first || (process->asked && process->asked->count > 0)) {
		background_ask(&process->pss, now_ns, true);
	}
	forget_gone(process, now_ns);
	for (size_t i = 0; i < process->groups; i++) {
		struct group *group = &process->group[i];
		group_commit(group);
		group_report(group, ctx->core->timeline, now_ns);
		group->known = group->known || !group->unsure;
	}
	r = process->scanned;
	return r == 0 ? 0 : collector_fail(ctx, r, "proc: %s", errno_reason(r));
}

const struct collector_ops collector_process = {
	.name = "process",
	.state_size = sizeof(struct process_state),
	.open = process_open,
	.sample = process_sample,
	.close = process_close,
};
