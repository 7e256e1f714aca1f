/* Watched processes, from proc/<pid>/stat and status: process/<name>/{rss,vms,peak_rss,…} as sums
 * over the processes of a watched name, and a row for each process. CPU in percent of one core over
 * the time since the last sample. A process is (pid, start time): a reused pid starts anew. The
 * daemon itself and attached apps are read from the machine's own proc, names and configured pids
 * below --root. No own keys; what is watched comes from [process NAME] and from the apps. */
#include "daemon/collect/registry.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/collect/group.h"
#include "daemon/collect/procfs.h"
#include "daemon/collect/scan.h"
#include "daemon/util/seam.h"

/* New processes of a pattern are found within this time. A pass over 200 processes costs about
 * 2 ms. */
#define SCAN_EVERY_NS UINT64_C(2000000000)

/* What is remembered of a process for the rates. */
struct track {
	pid_t pid;
	bool real; /* of the machine's own proc */
	uint64_t start_ticks;
	uint64_t t_ns; /* of the counters; the entry is dropped when a sample leaves it behind */
	uint64_t user_ticks, system_ticks, minor_faults, major_faults;
	double user, system, minor, major; /* rates as of t_ns; NAN = first sample */
};

struct process_state {
	long ticks_per_second;
	double memory_total[2]; /* [real] */
	bool serial_known;
	uint32_t serial;
	uint64_t scanned_ns; /* 0 = never */
	bool patterns;
	size_t groups;
	struct group group[WATCHES_MAX];
	size_t tracks;
	struct track track[PROCESS_ROWS_MAX];
	struct scan scan;
};

static void process_close(void *state)
{
	struct process_state *process = state;
	if (process) {
		scan_finish(&process->scan);
	}
	free(process);
}

static int process_open(
	const struct collector_context *ctx, void **state, char reason[SOURCE_REASON_SIZE])
{
	(void)reason;
	struct process_state *process = mem_zalloc(sizeof(*process));
	if (!process) {
		return -ENOMEM;
	}
	process->ticks_per_second = sysconf(_SC_CLK_TCK);
	process->memory_total[false] = proc_memory_total(ctx->root);
	process->memory_total[true] = proc_memory_total(ctx->real_root);
	scan_init(&process->scan);
	*state = process;
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

/* Brings the groups in line with the watches: one for each name, those without a watch go. */
static int follow_watches(const struct collector_context *ctx, struct process_state *process)
{
	const struct processes *processes = ctx->core->processes;
	for (size_t i = 0; i < process->groups; i++) {
		process->group[i].wanted = false;
	}
	process->patterns = false;
	for (size_t i = 0; i < processes->watches; i++) {
		struct group *group = find_group(process, processes->watch[i].name);
		process->patterns |= processes->watch[i].kind == WATCH_PATTERN;
		if (group) {
			group->wanted = true;
		}
	}
	size_t kept = 0;
	for (size_t i = 0; i < process->groups; i++) {
		if (!process->group[i].wanted) {
			group_retire(&process->group[i], ctx->core->metrics);
		} else if (kept++ != i) {
			process->group[kept - 1] = process->group[i];
		}
	}
	process->groups = kept;
	for (size_t i = 0; i < processes->watches; i++) {
		if (find_group(process, processes->watch[i].name)) {
			continue;
		}
		struct group *group = &process->group[process->groups];
		memset(group, 0, sizeof(*group));
		memcpy(group->name, processes->watch[i].name, sizeof(group->name));
		int r = group_open(group, ctx->core->metrics, ctx->source);
		if (r < 0) {
			group_retire(group, ctx->core->metrics);
			return r;
		}
		process->groups++;
	}
	process->serial = processes->serial;
	process->serial_known = true;
	process->scanned_ns = 0;
	return 0;
}

static struct track *find_track(
	struct process_state *process, pid_t pid, bool real, uint64_t start_ticks)
{
	for (size_t i = 0; i < process->tracks; i++) {
		struct track *track = &process->track[i];
		if (track->pid == pid && track->real == real && track->start_ticks == start_ticks) {
			return track;
		}
	}
	if (process->tracks == PROCESS_ROWS_MAX) {
		return NULL;
	}
	struct track *track = &process->track[process->tracks++];
	*track = (struct track){.pid = pid, .real = real, .start_ticks = start_ticks};
	return track;
}

static double rate(uint64_t now, uint64_t before, double seconds)
{
	return now > before ? (double)(now - before) / seconds : 0;
}

static void update_track(
	struct track *track, const struct proc_stat *stat, uint64_t now_ns, double ticks_per_second)
{
	if (track->t_ns == now_ns) {
		return; /* a second name of the same process */
	}
	track->user = track->system = track->minor = track->major = NAN;
	if (track->t_ns != 0 && now_ns > track->t_ns) {
		double seconds = (double)(now_ns - track->t_ns) / 1e9;
		double percent = 100 / ticks_per_second;
		track->user = rate(stat->user_ticks, track->user_ticks, seconds) * percent;
		track->system = rate(stat->system_ticks, track->system_ticks, seconds) * percent;
		track->minor = rate(stat->minor_faults, track->minor_faults, seconds);
		track->major = rate(stat->major_faults, track->major_faults, seconds);
	}
	track->t_ns = now_ns;
	track->user_ticks = stat->user_ticks;
	track->system_ticks = stat->system_ticks;
	track->minor_faults = stat->minor_faults;
	track->major_faults = stat->major_faults;
}

static bool has_row(const struct processes *processes, const char *name, pid_t pid, uint64_t start)
{
	for (size_t i = 0; i < processes->rows; i++) {
		const struct process_row *row = &processes->row[i];
		if (row->pid == pid && row->start_ticks == start && strcmp(row->watch, name) == 0) {
			return true;
		}
	}
	return false;
}

static void add_row(struct processes *processes, const struct watch *watch,
	const struct track *track, const struct proc_stat *stat, const struct proc_status *status)
{
	if (processes->rows == PROCESS_ROWS_MAX) {
		processes->refused++;
		return;
	}
	struct process_row *row = &processes->row[processes->rows++];
	*row = (struct process_row){
		.pid = track->pid,
		.start_ticks = track->start_ticks,
		.uid = status->uid,
		.state = stat->state,
		.cpu_percent = track->user + track->system,
		.user_percent = track->user,
		.system_percent = track->system,
		.rss_bytes = status->rss_bytes,
		.vms_bytes = status->vms_bytes,
		.peak_rss_bytes = status->peak_rss_bytes,
		.threads = stat->threads < UINT32_MAX ? (uint32_t)stat->threads : UINT32_MAX,
		.t_ns = track->t_ns,
	};
	memcpy(row->watch, watch->name, sizeof(row->watch));
	memcpy(row->comm, stat->comm, sizeof(row->comm) - 1);
}

/* One process of one watch; what is gone or has become another process is left out. */
static void add_process(const struct collector_context *ctx, struct process_state *process,
	const struct watch *watch, pid_t pid, uint64_t start_ticks, uint64_t now_ns)
{
	bool real = watch->kind == WATCH_SELF || watch->kind == WATCH_APP || !ctx->root->fixture;
	const struct root *root = real ? ctx->real_root : ctx->root;
	struct processes *processes = ctx->core->processes;
	struct group *group = find_group(process, watch->name);
	struct proc_stat stat;
	if (!group || pid <= 0 || proc_stat_read(root, pid, &stat) < 0 ||
		(start_ticks != 0 && stat.start_ticks != start_ticks) ||
		has_row(processes, watch->name, pid, stat.start_ticks)) {
		return;
	}
	struct proc_status status;
	struct track *track = find_track(process, pid, real, stat.start_ticks);
	if (!track || proc_status_read(root, pid, &status) < 0) {
		processes->refused += track == NULL;
		return;
	}
	update_track(track, &stat, now_ns, (double)process->ticks_per_second);
	add_row(processes, watch, track, &stat, &status);
	const double value[PROCESS_VALUES] = {
		[PROCESS_RSS] = status.rss_bytes,
		[PROCESS_VMS] = status.vms_bytes,
		[PROCESS_PEAK_RSS] = status.peak_rss_bytes,
		[PROCESS_CPU] = track->user + track->system,
		[PROCESS_USER] = track->user,
		[PROCESS_SYSTEM] = track->system,
		[PROCESS_THREADS] = (double)stat.threads,
		[PROCESS_MEM_PERCENT] = status.rss_bytes / process->memory_total[real] * 100,
		[PROCESS_MINOR_FAULTS] = track->minor,
		[PROCESS_MAJOR_FAULTS] = track->major,
	};
	group_add(group, value);
}

static void forget_gone(struct process_state *process, uint64_t now_ns)
{
	size_t kept = 0;
	for (size_t i = 0; i < process->tracks; i++) {
		if (process->track[i].t_ns == now_ns) {
			process->track[kept++] = process->track[i];
		}
	}
	process->tracks = kept;
}

static int process_sample(const struct collector_context *ctx, void *state, uint64_t now_ns,
	char reason[SOURCE_REASON_SIZE])
{
	struct process_state *process = state;
	struct processes *processes = ctx->core->processes;
	if (!process->serial_known || process->serial != processes->serial) {
		int r = follow_watches(ctx, process);
		if (r < 0) {
			snprintf(reason, SOURCE_REASON_SIZE, "watches: %s", errno_reason(r));
			return r;
		}
	}
	int scanned = 0;
	if (!process->patterns) {
		process->scan.matches = 0;
	} else if (process->scanned_ns == 0 || now_ns - process->scanned_ns >= SCAN_EVERY_NS) {
		scanned = scan_run(&process->scan, ctx->root, processes);
		process->scanned_ns = now_ns;
		processes->refused += process->scan.refused;
	}
	processes->rows = 0;
	for (size_t i = 0; i < process->groups; i++) {
		group_reset(&process->group[i]);
	}
	for (size_t i = 0; i < processes->watches; i++) {
		const struct watch *watch = &processes->watch[i];
		if (watch->kind == WATCH_SELF) {
			add_process(ctx, process, watch, getpid(), 0, now_ns);
		} else if (watch->kind != WATCH_PATTERN) {
			add_process(ctx, process, watch, watch->pid, watch->start_ticks, now_ns);
		}
	}
	for (size_t i = 0; i < process->scan.matches; i++) {
		const struct scan_match *match = &process->scan.match[i];
		add_process(ctx, process, &processes->watch[match->watch], match->pid,
			match->start_ticks, now_ns);
	}
	forget_gone(process, now_ns);
	for (size_t i = 0; i < process->groups; i++) {
		group_commit(&process->group[i]);
	}
	if (scanned < 0) {
		snprintf(reason, SOURCE_REASON_SIZE, "proc: %s", errno_reason(scanned));
	}
	return scanned;
}

const struct collector_ops collector_process = {
	.name = "process",
	.open = process_open,
	.sample = process_sample,
	.close = process_close,
};
