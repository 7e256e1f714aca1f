/* Part of the process collector: runs on a worker, with the roots and its own buffer. */
#include "daemon/collect/process/proc_pss.h"

#include <errno.h>
#include <stdlib.h>

#include "daemon/collect/process/proc_files.h"
#include "daemon/collect/process/procfs.h"
#include "daemon/util/sysops.h"

/* The pid may belong to another process by now. */
static int read_one(const struct root *root, const struct thread_owner *owner, double *ret_bytes)
{
	struct proc_stat stat;
	int r = proc_pss_read(root, owner->pid, ret_bytes);
	r = r < 0 ? r : proc_stat_read(root, owner->pid, &stat);
	return r == 0 && stat.start_ticks != owner->start_ticks ? -ENOENT : r;
}

static int fetch(const struct collector_context *ctx, void *state)
{
	struct pss_reads *reads = state;
	for (size_t i = 0; i < reads->count; i++) {
		const struct thread_owner *owner = &reads->read[i].owner;
		reads->read[i].result = read_one(
			owner->real ? ctx->real_root : ctx->root, owner, &reads->read[i].bytes);
		reads->read[i].t_ns = sysops()->now_ns();
	}
	return 0;
}

const struct collector_ops proc_pss_reader = {.name = "pss", .fetch = fetch, .close = free};
