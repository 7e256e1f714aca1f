/* SPDX-License-Identifier: Apache-2.0 */
/* proc_track.c: turns counters into rates, and reads the costly values in turns: each tick reads
 * the extras of 32 processes at most, so that thousands of matches never hold up the loop. */
#include "daemon/collect/process/proc_track.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "daemon/core/metrics/metrics.h"
#include "daemon/util/sysops.h"

/* PSS and the control group's numbers are kept for this long. */
#define PSS_EVERY_NS UINT64_C(10000000000)
#define OWN_PSS_EVERY_NS UINT64_C(60000000000) /* the daemon's, which has its history mapped */
#define GROUP_EVERY_NS UINT64_C(5000000000)

static const char two_samples[] = "needs two samples";

void tracks_init(struct tracks *tracks, const struct root *root)
{
	perf_counters_init(&tracks->perf, root);
	tracks->page_bytes = (double)sysconf(_SC_PAGESIZE);
	tracks->self = getpid();
}

void tracks_finish(struct tracks *tracks)
{
	perf_counters_finish(&tracks->perf);
}

void tracks_begin(struct tracks *tracks, struct pss_reads *pss, const char *pss_late)
{
	tracks->tick++;
	tracks->pss = pss;
	tracks->pss_late = pss_late;
	for (size_t i = 0; i < tracks->count; i++) {
		memcpy(tracks->track[i].before, tracks->track[i].now,
			sizeof(tracks->track[i].before));
		memset(tracks->track[i].now, 0, sizeof(tracks->track[i].now));
	}
}

struct track *tracks_find(struct tracks *tracks, const struct thread_owner *owner)
{
	for (size_t i = 0; i < tracks->count; i++) {
		size_t at = (tracks->next + i) % tracks->count;
		if (same_owner(&tracks->track[at].owner, owner)) {
			tracks->next = at + 1;
			return &tracks->track[at];
		}
	}
	if (tracks->count == TRACKS_MAX) {
		return NULL;
	}
	struct track *track = &tracks->track[tracks->count++];
	memset(track, 0, sizeof(*track));
	track->owner = *owner;
	return track;
}

static double rate(uint64_t now, uint64_t before, double seconds)
{
	return now > before ? (double)(now - before) / seconds : 0;
}

void track_update(struct track *track, const struct proc_stat *stat, uint64_t now_ns,
	double ticks_per_second, const char *no_delays)
{
	const uint64_t count[RATES] = {stat->user_ticks, stat->system_ticks, stat->guest_ticks,
		stat->iodelay_ticks, stat->minor_faults, stat->major_faults};
	if (track->t_ns == now_ns) {
		return; /* a second name of the same process */
	}
	bool first = track->t_ns == 0 || now_ns <= track->t_ns;
	double seconds = (double)(now_ns - track->t_ns) / 1e9;
	for (size_t i = 0; i < RATES; i++) {
		bool unknown = (i == RATE_IODELAY && no_delays) ||
			       ((i == RATE_GUEST || i == RATE_IODELAY) && !stat->scheduling_known);
		double unit = i <= RATE_IODELAY ? 100 / ticks_per_second : 1;
		track->rate[i] = first || unknown ? (double)NAN
						  : rate(count[i], track->count[i], seconds) * unit;
		track->count[i] = count[i];
	}
	track->iodelay_reason = no_delays;
	track->t_ns = now_ns;
}

static void read_io(struct track *track, const struct root *root, uint64_t now_ns)
{
	struct process_extra *extra = &track->extra;
	struct proc_io io;
	int r = proc_io_read(root, track->owner.pid, &io);
	extra->read_bytes = extra->write_bytes = extra->cancelled_bytes = NAN;
	extra->io_reason = r < 0 ? errno_reason(r) : two_samples;
	if (r == 0 && track->has_io && now_ns > track->extra_ns) {
		double seconds = (double)(now_ns - track->extra_ns) / 1e9;
		extra->read_bytes = rate(io.read_bytes, track->io.read_bytes, seconds);
		extra->write_bytes = rate(io.write_bytes, track->io.write_bytes, seconds);
		extra->cancelled_bytes =
			rate(io.cancelled_bytes, track->io.cancelled_bytes, seconds);
		extra->io_reason = NULL;
	}
	track->has_io = r == 0;
	if (r == 0) {
		track->io = io;
	}
}

/* The pid may belong to another process by now. */
static int read_pss(const struct root *root, const struct thread_owner *owner, double *ret_bytes)
{
	struct proc_stat stat;
	int r = proc_pss_read(root, owner->pid, ret_bytes);
	r = r < 0 ? r : proc_stat_read(root, owner->pid, &stat);
	return r == 0 && stat.start_ticks != owner->start_ticks ? -ENOENT : r;
}

static int fetch_pss(const struct collector_context *ctx, void *state)
{
	struct pss_reads *reads = state;
	if (reads->counters && reads->first_counter <= 0) {
		reads->first_counter = perf_counters_first();
	}
	for (size_t i = 0; i < reads->count; i++) {
		const struct thread_owner *owner = &reads->read[i].owner;
		reads->read[i].result = read_pss(
			owner->real ? ctx->real_root : ctx->root, owner, &reads->read[i].bytes);
		reads->read[i].t_ns = sysops()->now_ns();
	}
	return 0;
}

static void close_pss(void *state)
{
	const struct pss_reads *reads = state;
	if (reads->first_counter > 0) {
		close(reads->first_counter);
	}
}

const struct collector_ops proc_pss_reader = {.name = "pss",
	.state_size = sizeof(struct pss_reads),
	.fetch = fetch_pss,
	.close = close_pss};

static void no_pss(struct track *track, const char *reason)
{
	track->extra.pss_bytes = NAN;
	track->extra.pss_reason = reason;
	track->pss_ns = 0;
}

static void ask_pss(struct tracks *tracks, struct track *track, uint64_t now_ns)
{
	bool own = track->owner.real && track->owner.pid == tracks->self;
	uint64_t every_ns = own ? OWN_PSS_EVERY_NS : PSS_EVERY_NS;
	bool due = track->pss_asked_ns == 0 || now_ns - track->pss_asked_ns >= every_ns;
	if (tracks->pss_late && (due || track->pss_waits)) {
		no_pss(track, tracks->pss_late);
	} else if (due && !track->pss_waits && tracks->pss && tracks->pss->count < PSS_PER_TICK) {
		tracks->pss->read[tracks->pss->count++].owner = track->owner;
		track->pss_asked_ns = now_ns;
		track->pss_waits = true;
		if (track->pss_ns == 0) {
			no_pss(track, "is being read");
		}
	} else if (due && !track->pss_waits && (tracks->pss || track->pss_ns == 0)) {
		no_pss(track, "waits for its turn");
	}
}

void tracks_on_pss(struct tracks *tracks, const struct pss_reads *reads, uint64_t now_ns)
{
	tracks->counters_ready = reads->first_counter != 0;
	for (size_t i = 0; i < reads->count; i++) {
		const struct thread_owner *owner = &reads->read[i].owner;
		size_t at = 0;
		while (at < tracks->count && !same_owner(&tracks->track[at].owner, owner)) {
			at++;
		}
		if (at == tracks->count) {
			continue; /* gone meanwhile */
		}
		struct track *track = &tracks->track[at];
		int r = reads->read[i].result;
		uint64_t t_ns = reads->read[i].t_ns;
		track->pss_waits = false;
		track->pss_ns = t_ns < now_ns ? t_ns : now_ns;
		track->extra.pss_bytes = r == 0 ? reads->read[i].bytes : (double)NAN;
		track->extra.pss_reason = r == 0 ? NULL : errno_reason(r);
	}
}

static void read_group(
	struct tracks *tracks, struct track *track, const struct root *root, uint64_t now_ns)
{
	struct process_extra *extra = &track->extra;
	struct cgroup_cpu cpu = {NAN, NAN, NAN};
	bool v1;
	if (track->group_ns != 0 && now_ns - track->group_ns < GROUP_EVERY_NS) {
		return;
	}
	double seconds = (double)(now_ns - track->group_ns) / 1e9, before_us = extra->throttled_us;
	bool before = track->group_ns != 0;
	char group[PROCESS_CGROUP_SIZE];
	memcpy(group, extra->cgroup, sizeof(group));
	track->group_ns = now_ns;
	if (cgroup_of(root, track->owner.pid, extra->cgroup, &v1) == 0) {
		if (tracks->cgroup.tick != tracks->tick ||
			tracks->cgroup.fixture != root->fixture ||
			strcmp(tracks->cgroup.path, extra->cgroup) != 0) {
			cgroup_cpu_read(root, extra->cgroup, v1, &tracks->cgroup.cpu);
			memcpy(tracks->cgroup.path, extra->cgroup, sizeof(extra->cgroup));
			tracks->cgroup.tick = tracks->tick;
			tracks->cgroup.fixture = root->fixture;
		}
		cpu = tracks->cgroup.cpu;
	} else {
		extra->cgroup[0] = '\0';
	}
	extra->quota_percent = cpu.quota_percent;
	extra->nr_throttled = cpu.nr_throttled;
	extra->throttled_us = cpu.throttled_us;
	double share = (cpu.throttled_us - before_us) / 1e6 / seconds;
	bool same = before && share >= 0 && strcmp(group, extra->cgroup) == 0;
	extra->throttled_share = !same ? (double)NAN : share < 1 ? share : 1; /* a sum over cores */
}

static void no_counters(struct process_extra *extra, const char *reason)
{
	for (size_t i = 0; i < PROCESS_COUNTERS; i++) {
		extra->counter[i] = NAN;
		extra->counter_reason[i] = reason;
	}
}

/* Not before its second look: what lives for a moment costs no descriptors, and the first one is
 * open by then. */
static void read_counters(struct tracks *tracks, struct track *track, const struct root *root,
	bool counters, const pid_t *tids, size_t threads, uint64_t now_ns)
{
	if (root->fixture) {
		no_counters(&track->extra, "not of this machine");
	} else if (!counters) {
		no_counters(&track->extra, "only for watched processes and apps");
	} else if (track->extra_ns == 0 || !tracks->counters_ready) {
		no_counters(&track->extra, two_samples);
		if (tracks->pss) {
			tracks->pss->counters = true;
		}
	} else {
		perf_counters_read(&tracks->perf, track->owner.pid, track->owner.start_ticks, tids,
			threads, now_ns, &track->extra);
	}
}

static void nothing_yet(struct process_extra *extra)
{
	static const char waits[] = "waits for its turn";
	*extra = (struct process_extra){.read_bytes = NAN,
		.write_bytes = NAN,
		.cancelled_bytes = NAN,
		.voluntary = NAN,
		.involuntary = NAN,
		.wait_percent = NAN,
		.run_delay_ms = NAN,
		.fds = NAN,
		.pss_bytes = NAN,
		.io_reason = waits,
		.wait_reason = waits,
		.switches_reason = waits,
		.fds_reason = waits,
		.pss_reason = waits,
		.quota_percent = NAN,
		.nr_throttled = NAN,
		.throttled_us = NAN,
		.throttled_share = NAN};
	no_counters(extra, waits);
}

/* With more processes than one tick can sample, each is sampled every few ticks, in rotation. */
static bool has_turn(const struct tracks *tracks, const struct track *track, uint64_t now_ns)
{
	size_t index = (size_t)(track - tracks->track);
	size_t rounds = (tracks->count + EXTRAS_PER_TICK - 1) / EXTRAS_PER_TICK;
	return track->extra_ns != now_ns && (index + tracks->tick) % rounds == 0;
}

int tracks_status(struct tracks *tracks, struct track *track, const struct root *root,
	const struct proc_stat *stat, uint64_t now_ns)
{
	struct proc_status *status = &track->status;
	if (track->status_ns == now_ns) {
		return 0;
	}
	if (track->status_ns == 0 || has_turn(tracks, track, now_ns)) {
		int r = proc_status_read(root, track->owner.pid, status);
		track->status_ns = r < 0 ? track->status_ns : now_ns;
		return r;
	}
	bool memory = stat->vms_bytes != 0;
	status->vms_bytes = memory ? (double)stat->vms_bytes : (double)NAN;
	status->rss_bytes = memory ? (double)stat->rss_pages * tracks->page_bytes : (double)NAN;
	status->peak_rss_bytes =
		memory ? fmax(status->peak_rss_bytes, status->rss_bytes) : (double)NAN;
	return 0;
}

void tracks_read_extra(struct tracks *tracks, struct track *track, const struct root *root,
	const struct proc_stat *stat, bool counters, uint64_t now_ns)
{
	const struct thread_main process = {.threads = stat->threads,
		.comm = stat->comm,
		.voluntary = track->status.voluntary,
		.involuntary = track->status.involuntary};
	pid_t tids[THREADS_OF_PROCESS];
	size_t threads;
	struct process_extra *extra = &track->extra;
	if (!has_turn(tracks, track, now_ns)) {
		if (track->extra_ns == 0) {
			nothing_yet(extra);
		}
		return;
	}
	read_io(track, root, now_ns);
	int r = proc_fds_count(root, track->owner.pid, &extra->fds);
	extra->fds_reason = r == 0	  ? NULL
			    : r == -EFBIG ? "too many to count before Linux 6.2"
					  : errno_reason(r);
	if (r < 0) {
		extra->fds = NAN;
	}
	ask_pss(tracks, track, now_ns);
	read_group(tracks, track, root, now_ns);
	proc_threads_read(
		&tracks->threads, root, &track->owner, &process, now_ns, extra, tids, &threads);
	read_counters(tracks, track, root, counters, tids, threads, now_ns);
	track->extra_ns = now_ns;
}

void track_row(const struct track *track, const struct watch *watch, const struct proc_stat *stat,
	double memory_total, struct process_row *ret)
{
	const struct proc_status *status = &track->status;
	*ret = (struct process_row){
		.pid = track->owner.pid,
		.start_ticks = track->owner.start_ticks,
		.uid = status->uid,
		.state = stat->state,
		.cpu_percent = track->rate[RATE_USER] + track->rate[RATE_SYSTEM],
		.user_percent = track->rate[RATE_USER],
		.system_percent = track->rate[RATE_SYSTEM],
		.guest_percent = track->rate[RATE_GUEST],
		.iodelay_percent = track->rate[RATE_IODELAY],
		.minor_faults = track->rate[RATE_MINOR_FAULTS],
		.major_faults = track->rate[RATE_MAJOR_FAULTS],
		.rss_bytes = status->rss_bytes,
		.vms_bytes = status->vms_bytes,
		.peak_rss_bytes = status->peak_rss_bytes,
		.mem_percent = status->rss_bytes / memory_total * 100,
		.iodelay_ticks = stat->scheduling_known && !track->iodelay_reason
					 ? (double)stat->iodelay_ticks
					 : (double)NAN,
		.iodelay_reason = track->iodelay_reason,
		.memory_limit_bytes = watch->memory_limit_bytes,
		.threads = stat->threads < UINT32_MAX ? (uint32_t)stat->threads : UINT32_MAX,
		.scheduling_known = stat->scheduling_known,
		.last_core = stat->last_core,
		.priority = stat->priority,
		.nice = stat->nice,
		.rt_priority = stat->rt_priority,
		.policy = stat->policy,
		.extra = track->extra,
		.t_ns = track->t_ns,
	};
	ret->extra.t_ns = track->extra_ns;
	ret->extra.pss_ns = track->pss_ns;
	ret->extra.group_ns = track->group_ns;
	memcpy(ret->watch, watch->name, sizeof(ret->watch));
	memcpy(ret->comm, stat->comm, sizeof(ret->comm) - 1);
	memcpy(ret->cpus, status->cpus, sizeof(ret->cpus));
}

void tracks_drop(struct tracks *tracks, struct track *track)
{
	proc_threads_forget(&tracks->threads, &track->owner, 0);
	if (track->owner.real) {
		perf_counters_drop(&tracks->perf, track->owner.pid, track->owner.start_ticks);
	}
	struct track *last = &tracks->track[--tracks->count];
	if (track != last) {
		*track = *last;
	}
}
