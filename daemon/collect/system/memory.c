/* SPDX-License-Identifier: Apache-2.0 */
/* memory.c: reads memory and swap from proc/meminfo, in bytes; memory/used_percent =
 * (total-available)/total*100. Kernels before 3.14 write no MemAvailable: then what depends on it
 * is null. No own keys. */
#include "daemon/collect/sched/registry.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "daemon/collect/lib/device_file.h"
#include "daemon/collect/lib/kernel_text.h"
#include "daemon/collect/lib/naming.h"
#include "daemon/core/metrics/metrics.h"
#include "daemon/util/sysops.h"

/* The lines we need are among the first twenty. */
enum { MEMINFO_SIZE = 4096 };

enum { TOTAL, AVAILABLE, USED, USED_PERCENT, SWAP_TOTAL, SWAP_USED, METRICS };

static const struct metric_row table[METRICS] = {
	[TOTAL] = {"memory/total", UNIT_BYTES},
	[AVAILABLE] = {"memory/available", UNIT_BYTES},
	[USED] = {"memory/used", UNIT_BYTES},
	[USED_PERCENT] = {"memory/used_percent", UNIT_PERCENT},
	[SWAP_TOTAL] = {"swap/total", UNIT_BYTES},
	[SWAP_USED] = {"swap/used", UNIT_BYTES},
};

struct memory {
	struct device_file file;
	struct metric *metric[METRICS];
	char text[MEMINFO_SIZE];
};

static int memory_open(
	const struct collector_context *ctx, void **state, char reason[SOURCE_REASON_SIZE])
{
	struct memory *memory = mem_zalloc(sizeof(*memory));
	if (!memory) {
		return -ENOMEM;
	}
	device_file_init(&memory->file, true, "proc/meminfo");
	int r = device_file_read_or_explain(
		&memory->file, ctx->root, memory->text, sizeof(memory->text), reason);
	r = r < 0 ? r : metric_rows_add(ctx, table, METRICS, memory->metric);
	if (r < 0) {
		device_file_free_state(memory);
		return r;
	}
	*state = memory;
	return 0;
}

static const char *why(int error, const char *absent)
{
	return error == -ENODATA ? absent : "malformed";
}

static void set_or_null(struct metric *metric, double value, const char *reason)
{
	if (reason) {
		metric_set_null(metric, reason);
	} else {
		metric_set(metric, value);
	}
}

static void set_memory(struct memory *memory)
{
	double total = 0, available = 0;
	int r = kernel_bytes(memory->text, "MemTotal:", &total);
	const char *no_total = r < 0 ? why(r, "no MemTotal in proc/meminfo") : NULL;
	r = kernel_bytes(memory->text, "MemAvailable:", &available);
	const char *no_available =
		r < 0 ? why(r, "no MemAvailable in proc/meminfo (kernel before 3.14)") : NULL;
	const char *no_used = no_total ? no_total : no_available;
	if (!no_used && (available > total || total <= 0)) {
		no_used = "available is more than total";
	}
	set_or_null(memory->metric[TOTAL], total, no_total);
	set_or_null(memory->metric[AVAILABLE], available, no_available);
	set_or_null(memory->metric[USED], total - available, no_used);
	set_or_null(memory->metric[USED_PERCENT], (total - available) / total * 100, no_used);
}

static void set_swap(struct memory *memory)
{
	double total = 0, unused = 0;
	int r = kernel_bytes(memory->text, "SwapTotal:", &total);
	const char *no_total = r < 0 ? why(r, "kernel without swap") : NULL;
	r = kernel_bytes(memory->text, "SwapFree:", &unused);
	const char *no_used = r < 0 ? why(r, "kernel without swap") : no_total;
	if (!no_used && unused > total) {
		no_used = "free is more than total";
	}
	set_or_null(memory->metric[SWAP_TOTAL], total, no_total);
	set_or_null(memory->metric[SWAP_USED], total - unused, no_used);
}

static int memory_sample(const struct collector_context *ctx, void *state, uint64_t now_ns,
	char reason[SOURCE_REASON_SIZE])
{
	(void)now_ns;
	struct memory *memory = state;
	int r = device_file_read_or_explain(
		&memory->file, ctx->root, memory->text, sizeof(memory->text), reason);
	if (r < 0) {
		return r;
	}
	set_memory(memory);
	set_swap(memory);
	return 0;
}

const struct collector_ops collector_memory = {
	.name = "memory",
	.open = memory_open,
	.sample = memory_sample,
	.close = device_file_free_state,
};
