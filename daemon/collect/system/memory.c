/* SPDX-License-Identifier: Apache-2.0 */
/* memory.c: reads memory and swap from proc/meminfo, in bytes; memory/used_percent =
 * (total-available)/total*100. Kernels before 3.14 write no MemAvailable: then what depends on it
 * is null. No own keys. */
#include "daemon/collect/sched/registry.h"

#include <errno.h>

#include "daemon/collect/lib/device_file.h"
#include "daemon/collect/lib/kernel_text.h"
#include "daemon/collect/lib/naming.h"
#include "daemon/core/metrics/metrics.h"

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

static int memory_open(const struct collector_context *ctx, void *state)
{
	struct memory *memory = state;
	device_file_init(&memory->file, true, "proc/meminfo");
	int r = device_file_read_or_fail(ctx, &memory->file, memory->text, sizeof(memory->text));
	return r < 0 ? r : metric_rows_add(ctx, table, METRICS, memory->metric);
}

/* The number behind key: NULL, or why there is none. */
static const char *read_line(const char *text, const char *key, double *ret, const char *absent)
{
	int r = kernel_bytes(text, key, ret);
	return r == 0 ? NULL : r == -ENODATA ? absent : "malformed";
}

static void set_memory(struct memory *memory)
{
	double total = 0, available = 0;
	const char *no_total =
		read_line(memory->text, "MemTotal:", &total, "no MemTotal in proc/meminfo");
	const char *no_available = read_line(memory->text, "MemAvailable:", &available,
		"no MemAvailable in proc/meminfo (kernel before 3.14)");
	const char *no_used = no_total ? no_total : no_available;
	if (!no_used && (available > total || total <= 0)) {
		no_used = "available is more than total";
	}
	metric_set_or_null(memory->metric[TOTAL], total, no_total);
	metric_set_or_null(memory->metric[AVAILABLE], available, no_available);
	metric_set_or_null(memory->metric[USED], total - available, no_used);
	metric_set_or_null(
		memory->metric[USED_PERCENT], (total - available) / total * 100, no_used);
}

static void set_swap(struct memory *memory)
{
	double total = 0, unused = 0;
	const char *no_total = read_line(memory->text, "SwapTotal:", &total, "kernel without swap");
	const char *no_used = read_line(memory->text, "SwapFree:", &unused, "kernel without swap");
	no_used = no_used ? no_used : no_total;
	if (!no_used && unused > total) {
		no_used = "free is more than total";
	}
	metric_set_or_null(memory->metric[SWAP_TOTAL], total, no_total);
	metric_set_or_null(memory->metric[SWAP_USED], total - unused, no_used);
}

static int memory_sample(const struct collector_context *ctx, void *state)
{
	struct memory *memory = state;
	int r = device_file_read_or_fail(ctx, &memory->file, memory->text, sizeof(memory->text));
	if (r < 0) {
		return r;
	}
	set_memory(memory);
	set_swap(memory);
	return 0;
}

const struct collector_ops collector_memory = {
	.name = "memory",
	.state_size = sizeof(struct memory),
	.open = memory_open,
	.sample = memory_sample,
	.close = device_file_close_state,
};
