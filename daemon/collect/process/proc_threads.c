/* SPDX-License-Identifier: Apache-2.0 */
/* proc_threads.c: passes over proc/<pid>/task, with schedstat of each thread, and status of those
 * that have run since. About 30 µs a thread, so a process of very many threads is skipped and says
 * so. */
#include "daemon/collect/process/proc_threads.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "daemon/collect/lib/kernel_text.h"
#include "daemon/collect/process/procfs.h"
#include "daemon/core/metrics/metrics.h"
#include "daemon/util/parse.h"

static const char too_many[] = "too many threads";
static const char two_samples[] = "needs two samples";

/* What one pass adds up. */
struct sums {
	double wait, voluntary, involuntary; /* rates */
	double delay_ms;
	bool first; /* no thread has a sample before this one */
};

/* The tids of the process, or -errno; -E2BIG. */
static int list_tids(struct proc_threads *threads, const struct root *root, pid_t pid,
	pid_t tids[THREADS_OF_PROCESS])
{
	char path[PROC_PATH_SIZE];
	proc_path(pid, 0, "task", path);
	int fd = root_borrow(root, path, O_RDONLY | O_DIRECTORY);
	if (fd < 0) {
		return fd;
	}
	int count = 0;
	ssize_t n = lseek(fd, 0, SEEK_SET);
	while ((n = getdents64(fd, threads->buf, sizeof(threads->buf))) > 0) {
		for (ssize_t at = 0; at < n;) {
			const struct dirent64 *entry = (const struct dirent64 *)(threads->buf + at);
			uint64_t tid;
			at += entry->d_reclen;
			if (parse_u64(entry->d_name, &tid) < 0 || tid < 1 || tid > INT32_MAX) {
				continue;
			}
			if (count == THREADS_OF_PROCESS) {
				root_return(root, fd, 0);
				return -E2BIG;
			}
			tids[count++] = (pid_t)tid;
		}
	}
	int r = n < 0 ? -errno : count;
	root_return(root, fd, r);
	return r;
}

static struct thread_track *find_track(
	struct proc_threads *threads, const struct thread_owner *owner, pid_t tid)
{
	for (size_t i = 0; i < threads->count; i++) {
		if (threads->track[i].tid == tid && same_owner(&threads->track[i].owner, owner)) {
			return &threads->track[i];
		}
	}
	if (threads->count == THREADS_MAX) {
		return NULL;
	}
	struct thread_track *track = &threads->track[threads->count++];
	*track = (struct thread_track){.owner = *owner, .tid = tid};
	return track;
}

/* Puts the thread among the busiest. */
static void rank(struct process_extra *extra, const struct process_thread *thread)
{
	size_t at = extra->threads;
	while (at > 0 &&
		(isnan(extra->thread[at - 1].cpu_percent)
				? !isnan(thread->cpu_percent)
				: thread->cpu_percent > extra->thread[at - 1].cpu_percent)) {
		at--;
	}
	if (at == PROCESS_THREADS_TOP) {
		return;
	}
	size_t last =
		extra->threads < PROCESS_THREADS_TOP ? extra->threads++ : PROCESS_THREADS_TOP - 1;
	memmove(&extra->thread[at + 1], &extra->thread[at], (last - at) * sizeof(*thread));
	extra->thread[at] = *thread;
}

static void copy_name(const char *from, char comm[16])
{
	size_t length = from ? strcspn(from, "\n") : 0;
	length = length < 15 ? length : 15;
	memset(comm, 0, 16);
	if (from) {
		memcpy(comm, from, length);
	}
}

/* Name and switches, by the cheapest way there is: what has not run since the last sample has not
 * changed, and the main thread is the process. False when it has ended. */
static bool read_status(const struct root *root, const struct thread_owner *owner,
	const struct thread_main *process, const struct proc_schedstat *sched,
	struct thread_track *track, double switches[2])
{
	char text[4096];
	struct proc_status status;
	switches[0] = track->voluntary;
	switches[1] = track->involuntary;
	if (track->t_ns != 0 && sched->run_ns == track->run_ns &&
		sched->delay_ns == track->delay_ns) {
		return true;
	}
	/* status of the process has the main thread's; without the lines read the thread's own */
	if (process->threads == 1 || (track->tid == owner->pid && !isnan(process->voluntary))) {
		switches[0] = process->voluntary;
		switches[1] = process->involuntary;
		copy_name(process->comm, track->comm);
		return true;
	}
	if (proc_read(root, owner->pid, track->tid, "status", text, sizeof(text)) < 0) {
		return false;
	}
	proc_status_parse(text, &status);
	switches[0] = status.voluntary;
	switches[1] = status.involuntary;
	copy_name(kernel_line(text, "Name:\t"), track->comm);
	return true;
}

/* NAN stays NAN. */
static double grown(double now, double before)
{
	return now < before ? 0 : now - before;
}

/* One thread: its numbers into the sums, once. 0; -ENOENT: it has ended, or the kernel does not
 * report them; -E2BIG: no room. */
static int add_thread(struct proc_threads *threads, const struct root *root,
	const struct thread_owner *owner, const struct thread_main *process, pid_t tid,
	uint64_t now_ns, struct sums *sums, struct process_extra *extra)
{
	char text[128];
	double switches[2];
	struct proc_schedstat sched;
	struct process_thread thread = {.tid = tid, .cpu_percent = NAN};
	struct thread_track *track = find_track(threads, owner, tid);
	if (!track || track->t_ns == now_ns) {
		return track ? 0 : -E2BIG;
	}
	if (proc_read(root, owner->pid, tid, "schedstat", text, sizeof(text)) < 0 ||
		proc_schedstat_parse(text, &sched) < 0 ||
		!read_status(root, owner, process, &sched, track, switches)) {
		return -ENOENT;
	}
	memcpy(thread.comm, track->comm, sizeof(thread.comm));
	sums->delay_ms += (double)sched.delay_ns / 1e6;
	/* a smaller number than before is another thread of the same id */
	if (track->t_ns != 0 && now_ns > track->t_ns && sched.run_ns >= track->run_ns &&
		sched.delay_ns >= track->delay_ns) {
		double ns = (double)(now_ns - track->t_ns);
		thread.cpu_percent = (double)(sched.run_ns - track->run_ns) / ns * 100;
		sums->wait += (double)(sched.delay_ns - track->delay_ns) / ns * 100;
		sums->voluntary += grown(switches[0], track->voluntary) / ns * 1e9;
		sums->involuntary += grown(switches[1], track->involuntary) / ns * 1e9;
		sums->first = false;
	}
	track->t_ns = now_ns;
	track->run_ns = sched.run_ns;
	track->delay_ns = sched.delay_ns;
	track->voluntary = switches[0];
	track->involuntary = switches[1];
	rank(extra, &thread);
	return 0;
}

/* The threads of the sample before, if they are as many as the process has now: when each of them
 * is still there, these are all. */
static int known_tids(const struct proc_threads *threads, const struct thread_owner *owner,
	uint64_t wanted, pid_t tids[THREADS_OF_PROCESS])
{
	size_t count = 0;
	for (size_t i = 0; i < threads->count && count < THREADS_OF_PROCESS; i++) {
		if (same_owner(&threads->track[i].owner, owner)) {
			tids[count++] = threads->track[i].tid;
		}
	}
	return count == wanted ? (int)count : 0;
}

static void no_sums(struct process_extra *extra, const char *reason)
{
	extra->wait_percent = extra->voluntary = extra->involuntary = NAN;
	extra->wait_reason = extra->switches_reason = reason;
}

void proc_threads_read(struct proc_threads *threads, const struct root *root,
	const struct thread_owner *owner, const struct thread_main *process, uint64_t now_ns,
	struct process_extra *extra, pid_t tids[THREADS_OF_PROCESS], size_t *ret_tids)
{
	struct sums sums = {.first = true};
	const uint64_t expected = process->threads;
	tids[0] = owner->pid;
	int count = expected == 1 ? 1 : known_tids(threads, owner, expected, tids);
	extra->threads = 0;
	extra->run_delay_ms = NAN;
	for (bool listed = expected == 1;; listed = true) {
		bool complete = count > 0;
		for (int i = 0; i < count; i++) {
			int r = add_thread(
				threads, root, owner, process, tids[i], now_ns, &sums, extra);
			complete = complete && r == 0;
			count = r == -E2BIG ? r : count;
		}
		if (complete || listed || count < 0) {
			break;
		}
		count = list_tids(threads, root, owner->pid, tids);
	}
	*ret_tids = count > 0 ? (size_t)count : 0;
	if (count < 0) {
		extra->threads = 0;
		no_sums(extra, count == -E2BIG ? too_many : errno_reason(count));
	} else if (extra->threads == 0) {
		no_sums(extra, "no schedstat in this kernel");
	} else if (sums.first) {
		extra->run_delay_ms = sums.delay_ms;
		no_sums(extra, two_samples);
	} else {
		extra->run_delay_ms = sums.delay_ms;
		extra->wait_percent = sums.wait;
		extra->voluntary = sums.voluntary;
		extra->involuntary = sums.involuntary;
		extra->wait_reason = NULL;
		extra->switches_reason =
			isnan(sums.voluntary) ? "not reported by the kernel" : NULL;
	}
	proc_threads_forget(threads, owner, now_ns);
}

void proc_threads_forget(
	struct proc_threads *threads, const struct thread_owner *owner, uint64_t now_ns)
{
	size_t kept = 0;
	for (size_t i = 0; i < threads->count; i++) {
		const struct thread_track *track = &threads->track[i];
		if (same_owner(&track->owner, owner) && (now_ns == 0 || track->t_ns != now_ns)) {
			continue;
		}
		if (kept++ != i) {
			threads->track[kept - 1] = *track;
		}
	}
	threads->count = kept;
}
