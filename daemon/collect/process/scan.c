/* SPDX-License-Identifier: Apache-2.0 */
/* scan.c: passes over proc once. It is the costly part of watching by name, so it runs less often
 * than the samples, reads one file a process, and the command line only where the name did not
 * match already. */
#include "daemon/collect/process/scan.h"

#include <fnmatch.h>
#include <stdbool.h>
#include <string.h>

#include "daemon/collect/process/cgroup.h"
#include "daemon/collect/process/procfs.h"

/* New processes of a pattern are found within this time and an interval. A pass over 200 processes
 * costs about 2 ms. */
#define SCAN_EVERY_NS UINT64_C(2000000000)

static void finish(void *state)
{
	proc_folder_close(&((struct scan *)state)->proc);
}

/* One process of the pass; what is costly is read when the first watch asks for it. */
struct candidate {
	const struct root *root;
	pid_t pid;
	struct proc_stat stat;
	bool have_cmdline, have_cgroup;
	char cmdline[4096], argv0[256]; /* "" = none */
	char cgroup[PROCESS_CGROUP_SIZE];
};

static void read_cmdline(struct candidate *candidate)
{
	size_t argv0 = 0;
	candidate->have_cmdline = true;
	if ((candidate->stat.flags & PROC_KERNEL_THREAD) ||
		proc_cmdline_read(candidate->root, candidate->pid, candidate->cmdline,
			sizeof(candidate->cmdline), &argv0) < 0) {
		candidate->cmdline[0] = '\0';
	}
	if (argv0 >= sizeof(candidate->argv0)) {
		argv0 = sizeof(candidate->argv0) - 1;
	}
	memcpy(candidate->argv0, candidate->cmdline, argv0);
	candidate->argv0[argv0] = '\0';
}

/* The command name, the program with and without its folder, or all of the command line. The
 * edgeprofctl that asks for the watch has the pattern on its own command line. */
static bool matches_name(struct candidate *candidate, const char *pattern)
{
	if (fnmatch(pattern, candidate->stat.comm, 0) == 0) {
		return true;
	}
	if (!candidate->have_cmdline) {
		read_cmdline(candidate);
	}
	const char *slash = strrchr(candidate->argv0, '/');
	return candidate->cmdline[0] != '\0' && strcmp(candidate->stat.comm, "edgeprofctl") != 0 &&
	       (fnmatch(pattern, candidate->argv0, 0) == 0 ||
		       (slash && fnmatch(pattern, slash + 1, 0) == 0) ||
		       fnmatch(pattern, candidate->cmdline, 0) == 0);
}

static bool matches_unit(struct candidate *candidate, const char *unit)
{
	if (!candidate->have_cgroup) {
		candidate->have_cgroup = true;
		if (cgroup_systemd(candidate->root, candidate->pid, candidate->cgroup) < 0) {
			candidate->cgroup[0] = '\0';
		}
	}
	return cgroup_has_unit(candidate->cgroup, unit);
}

static bool meant(struct candidate *candidate, const struct watch *watch)
{
	switch (watch->kind) {
	case WATCH_PATTERN:
		return matches_name(candidate, watch->pattern);
	case WATCH_UNIT:
		return matches_unit(candidate, watch->pattern);
	case WATCH_SELF:
	case WATCH_APP:
	case WATCH_PID:
		break;
	}
	return false;
}

static void look_at(void *ctx, const struct root *root, pid_t pid)
{
	struct found *found = ctx;
	struct candidate candidate = {.root = root, .pid = pid};
	if (proc_stat_read(root, pid, &candidate.stat) < 0) {
		return;
	}
	for (size_t i = 0; i < found->watches; i++) {
		if (!meant(&candidate, &found->watch[i])) {
			continue;
		}
		if (found->matches == SCAN_MATCHES_MAX) {
			found->refused++;
		} else {
			found->match[found->matches++] =
				(struct scan_match){pid, candidate.stat.start_ticks, (uint16_t)i};
		}
	}
}

static int run(const struct collector_context *ctx, void *state)
{
	struct scan *scan = state;
	scan->found.matches = 0;
	scan->found.refused = 0;
	return proc_each(&scan->proc, ctx->root, look_at, &scan->found);
}

const struct collector_ops scan_runner = {
	.name = "scan", .state_size = sizeof(struct scan), .fetch = run, .close = finish};

static int take(struct found *found, struct background *scan, struct processes *processes)
{
	int r;
	if (!background_accept(scan, &r)) {
		return 0;
	}
	*found = ((const struct scan *)scan->state)->found;
	processes->refused += found->refused;
	return r;
}

int found_update(struct found *found, struct background *background, struct processes *processes,
	uint64_t *asked_ns, uint64_t now_ns)
{
	int r = take(found, background, processes);
	if ((*asked_ns == 0 || now_ns - *asked_ns >= SCAN_EVERY_NS) &&
		background_ready(background, now_ns)) {
		struct scan *scan = background->state;
		scan->found.watches = processes->watches;
		memcpy(scan->found.watch, processes->watch, sizeof(scan->found.watch));
		*asked_ns = now_ns;
		background_ask(background, now_ns, true);
		r = r < 0 ? r : take(found, background, processes); /* read at once */
	}
	return r;
}
