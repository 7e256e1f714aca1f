/* SPDX-License-Identifier: Apache-2.0 */
/* bystanders.c: finds the processes that use a busy machine, for diagnoses: proc/<pid>/stat of all
 * of them every 5 s, compared with the pass before by (pid, start time). Where there are many, a
 * part of them at a time, and those that used most. Passes run in the background, and only while
 * cpu/, pressure/ or memory/ metrics say that the machine is busy; at rest nothing is read. Kernel
 * threads work for processes and are skipped. What lives for less than a pass counts for the
 * process that started it. Has no metrics. No own keys. */
#include "daemon/core/status/bystanders.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "daemon/collect/process/procfs.h"
#include "daemon/collect/sched/fetch.h"
#include "daemon/collect/sched/registry.h"
#include "daemon/core/metrics/metrics.h"
#include "daemon/util/sysops.h"
#include "proto/text.h"
#include "proto/utf8.h"

enum { SEEN_MAX = 1024, IO_READS_MAX = 32 /* of io, in a pass */ };
enum { PART = SEEN_MAX * 3 / 4 /* processes of which a pass looks at all */ };

#define EVERY_NS UINT64_C(4500000000) /* 5 s of samples that may come early */
#define PAIR_NS UINT64_C(500000000)   /* the second pass, with which there are first values */

/* Below that a process is none of the most. */
static const double use_min[BYSTANDER_USES] = {[USE_CPU] = 5, [USE_MEMORY] = 1, [USE_IO] = 1 << 20};

struct seen {
	pid_t pid;
	uint64_t start_ticks, ticks, busy_ns;
	uint64_t child_ticks;
	double child_growth; /* of them since the pass before */
	double io_bytes;     /* since its start; NAN = not read */
};

struct table {
	uint64_t t_ns; /* 0 = never */
	size_t count, next;
	struct seen seen[SEEN_MAX];
};

/* A thread's while it reads. */
struct pass {
	struct proc_folder proc;
	double seconds; /* since the pass before */
	unsigned current, io_reads;
	unsigned parts, part; /* of more processes, those whose pid modulo parts is part */
	size_t total;
	bool newcomers;	       /* processes run that the pass before has not seen */
	struct table table[2]; /* of this pass and the one before */
	struct bystanders result, before;
};

struct bystanders_state {
	struct background pass;
	uint64_t asked_ns;
	bool compared; /* the last pass had one before it */
	bool early;    /* the next pass does not wait; never two after another */
};

/* Most are found at once, where the last one was followed. NULL: it was not there. */
static const struct seen *find_before(struct table *before, const struct proc_stat *stat, pid_t pid)
{
	for (size_t i = 0; i < before->count; i++) {
		const struct seen *seen = &before->seen[before->next++ % before->count];
		if (seen->pid == pid) {
			return seen->start_ticks == stat->start_ticks ? seen : NULL;
		}
	}
	return NULL;
}

/* Puts it where it belongs in the list of each use. */
static void rank(struct bystanders *result, const struct bystander *process)
{
	for (size_t use = 0; use < BYSTANDER_USES; use++) {
		struct bystander *most = result->most[use];
		size_t at = BYSTANDERS_MAX;
		while (at > 0 && !(most[at - 1].use[use] >= process->use[use])) {
			at--;
		}
		if (at < BYSTANDERS_MAX && process->use[use] >= use_min[use]) {
			memmove(&most[at + 1], &most[at],
				(BYSTANDERS_MAX - 1 - at) * sizeof(*most));
			most[at] = *process;
		}
	}
}

/* The kernel refuses io of other users' processes without CAP_SYS_PTRACE. */
static double read_io(struct pass *pass, const struct root *root, pid_t pid)
{
	struct proc_io io;
	bool known = pass->io_reads++ < IO_READS_MAX && proc_io_read(root, pid, &io) == 0;
	return known ? (double)io.read_bytes + (double)io.write_bytes : (double)NAN;
}

/* Those that used most are followed, whichever part it is. */
static bool is_wanted(const struct pass *pass, pid_t pid)
{
	const struct bystander *most = pass->before.most[0];
	bool wanted = (unsigned)pid % pass->parts == pass->part;
	for (size_t i = 0; i < (size_t)BYSTANDER_USES * BYSTANDERS_MAX && !wanted; i++) {
		wanted = most[i].pid == pid;
	}
	return wanted;
}

/* Ticks of children that ended, as make has them all the time. One child that ends after an hour
 * adds an hour once: so it is the lesser of two passes, and no more than there are processors. */
static double ticks_of_children(const struct pass *pass, struct seen *seen, const struct seen *was)
{
	seen->child_growth = fmax(0, (double)seen->child_ticks - (double)was->child_ticks);
	double ticks = fmin(seen->child_growth, was->child_growth);
	double most = ticks > 0 ? pass->seconds * (double)sysconf(_SC_NPROCESSORS_ONLN) : 0;
	return fmin(ticks, most * (double)sysconf(_SC_CLK_TCK));
}

static void look_at(void *ctx, const struct root *root, pid_t pid)
{
	struct pass *pass = ctx;
	struct table *now = &pass->table[pass->current];
	struct proc_stat stat;
	pass->total++;
	if (now->count == SEEN_MAX || !is_wanted(pass, pid)) {
		pass->result.skipped++;
		return;
	}
	if ((pid == getpid() && !root->fixture) || proc_stat_read(root, pid, &stat) < 0 ||
		(stat.flags & PROC_KERNEL_THREAD)) {
		return;
	}
	struct seen *seen = &now->seen[now->count++];
	*seen = (struct seen){pid, stat.start_ticks, stat.user_ticks + stat.system_ticks, 0,
		stat.child_ticks, 0, NAN};
	struct bystander process = {.pid = pid,
		.use = {NAN, (double)stat.rss_pages * (double)sysconf(_SC_PAGESIZE), NAN}};
	const struct seen *was = find_before(&pass->table[!pass->current], &stat, pid);
	pass->newcomers |= !was && stat.state == 'R';
	if (was && seen->ticks >= was->ticks) {
		double ticks =
			(double)(seen->ticks - was->ticks) + ticks_of_children(pass, seen, was);
		seen->io_bytes = ticks > 0 || stat.state == 'D' ? read_io(pass, root, pid) : NAN;
		process.use[USE_CPU] = ticks * 100 / (double)sysconf(_SC_CLK_TCK) / pass->seconds;
		process.use[USE_IO] = (seen->io_bytes - was->io_bytes) / pass->seconds;
		bool busy = process.use[USE_CPU] >= BYSTANDER_BUSY;
		uint64_t before_ns = pass->table[!pass->current].t_ns;
		seen->busy_ns = process.busy_ns = !busy		 ? 0
						  : was->busy_ns ? was->busy_ns
								 : before_ns;
	}
	memcpy(process.name, stat.comm, sizeof(process.name) - 1);
	process.name[proto_utf8_complete(process.name, strlen(process.name))] = '\0';
	proto_utf8_clean(process.name);
	if (!process.name[0]) { /* what was cut may follow */
		memcpy(process.name, "?", sizeof("?"));
	}
	rank(&pass->result, &process);
}

static int run(const struct collector_context *ctx, void *state)
{
	struct pass *pass = state;
	struct table *before = &pass->table[pass->current], *now = &pass->table[!pass->current];
	uint64_t now_ns = sysops()->now_ns(), before_ns = before->t_ns;
	bool recent =
		before_ns != 0 && now_ns > before_ns && now_ns - before_ns <= BYSTANDERS_VALID_NS;
	before->count = recent ? before->count : 0;
	pass->seconds = (double)(now_ns - before_ns) / 1e9;
	pass->current ^= 1;
	if (pass->current == 1) { /* two passes for a part: only then there is a difference */
		pass->parts = 1 + (unsigned)(pass->total / PART);
		pass->part = (pass->part + 1) % pass->parts;
	}
	pass->total = pass->io_reads = 0;
	pass->newcomers = false;
	pass->before = pass->result;
	pass->result = (struct bystanders){.t_ns = recent ? now_ns : 0};
	now->t_ns = now_ns;
	now->count = now->next = 0;
	return proc_each(&pass->proc, ctx->root, look_at, pass);
}

static void finish(void *state)
{
	proc_folder_close(&((struct pass *)state)->proc);
}

static const struct collector_ops runner = {
	.name = "bystanders", .state_size = sizeof(struct pass), .fetch = run, .close = finish};

static bool is_busy(struct metrics *metrics)
{
	static const struct {
		const char *metric;
		double least;
	} signs[] = {{"cpu/utilization", 50}, {"pressure/cpu/some", 5}, {"pressure/memory/some", 5},
		{"pressure/io/some", 5}, {"memory/used_percent", 80}};
	const struct metric *metric, *cpu = metrics_find(metrics, signs[0].metric);
	for (size_t i = 0; i < sizeof(signs) / sizeof(signs[0]); i++) {
		metric = metrics_find(metrics, signs[i].metric);
		if (metric && metric->value >= signs[i].least) {
			return true;
		}
	}
	for (size_t i = 0; cpu && (metric = metrics_of(metrics, cpu->source, i)); i++) {
		if (metric->value >= 90 && text_starts_with(metric->name, "cpu/") &&
			text_ends_with(metric->name, "/utilization")) {
			return true;
		}
	}
	return false;
}

static int bystanders_sample(const struct collector_context *ctx, void *state)
{
	struct bystanders_state *own = state;
	int r = 0;
	uint64_t every_ns = own->compared && !own->early ? EVERY_NS : PAIR_NS;
	if ((own->asked_ns == 0 || ctx->now_ns - own->asked_ns >= every_ns) &&
		background_ready(&own->pass, ctx->now_ns) && is_busy(ctx->core->metrics)) {
		own->asked_ns = ctx->now_ns;
		background_ask(&own->pass, ctx->now_ns, !own->compared || own->early);
	}
	if (background_accept(&own->pass, &r)) {
		const struct pass *pass = own->pass.state;
		own->compared = r == 0 && pass->result.t_ns != 0;
		own->early = own->compared && pass->newcomers && !own->early;
		if (own->compared) {
			*ctx->core->bystanders = pass->result;
		}
	}
	const char *late = background_late(&own->pass, ctx->now_ns);
	r = late ? -ETIMEDOUT : r;
	return r == 0 ? 0 : collector_fail(ctx, r, "proc: %s", late ? late : errno_reason(r));
}

static int bystanders_open(const struct collector_context *ctx, void *state)
{
	struct bystanders_state *own = state;
	return ctx->core->bystanders ? background_open(&own->pass, ctx, &runner, 0) : -ENOENT;
}

static void bystanders_close(void *state)
{
	background_close(&((struct bystanders_state *)state)->pass);
}

const struct collector_ops collector_bystanders = {
	.name = "bystanders",
	.state_size = sizeof(struct bystanders_state),
	.interval_ns = UINT64_C(1000000000),
	.open = bystanders_open,
	.sample = bystanders_sample,
	.close = bystanders_close,
};
