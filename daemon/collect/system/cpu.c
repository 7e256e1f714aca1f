/* SPDX-License-Identifier: Apache-2.0 */
/* cpu.c: reads busy time from proc/stat: cpu/utilization and cpu/<n>/utilization in percent over
 * the time since the last sample, (total - (idle+iowait)) / total over user..steal; cpu/iowait and
 * cpu/steal, each / total. A counter that goes backwards (idle and iowait do) counts as 0. Cores
 * that are present but not in proc/stat are offline. No own keys. */
#include "daemon/collect/sched/registry.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/collect/lib/device_file.h"
#include "daemon/collect/lib/kernel_text.h"
#include "daemon/core/metrics/metrics.h"
#include "daemon/util/sysops.h"

enum {
	CPU_MAX = 1024,
	COLUMNS = 8, /* user nice system idle iowait irq softirq steal */
	IDLE = 3,
	IOWAIT = 4,
	STEAL = 7,
	LINE_SIZE = 128, /* "cpuN" and ten counters of a machine that is up for a year */
};

#define ABSENT UINT64_MAX /* a column that the kernel does not write */

/* Of all cores together. */
static const char *const part_names[] = {"cpu/iowait", "cpu/steal"};

struct core_time {
	struct metric *metric; /* NULL = not present */
	uint64_t tick[COLUMNS];
	bool known; /* tick holds a sample */
	bool seen;  /* in the present sample */
};

struct cpu_state {
	struct device_file file;
	struct core_time all;
	struct metric *part[2]; /* NULL: no capacity */
	size_t cores;		/* slots of core[] */
	struct core_time *core;
	size_t size;
	char *text;
};

static void cpu_close(void *state)
{
	struct cpu_state *cpu = state;
	device_file_close(&cpu->file);
	free(cpu->core);
	free(cpu->text);
}

/* Complete "cpu…" lines of the text; false at the first other or torn line. index -1 = the sum. */
static bool next_line(const char **cursor, long *index, uint64_t tick[COLUMNS])
{
	const char *p = *cursor;
	if (strncmp(p, "cpu", 3) != 0) {
		return false;
	}
	p += 3;
	*index = -1;
	uint64_t value;
	if (*p != ' ') {
		if (!kernel_u64(&p, &value)) {
			return false;
		}
		*index = value < CPU_MAX ? (long)value : CPU_MAX;
	}
	/* Old kernels write fewer columns; the first four always. */
	for (size_t i = 0; i < COLUMNS; i++) {
		if (kernel_u64(&p, &tick[i])) {
			continue;
		}
		if (i <= IDLE || *p != '\n') {
			return false;
		}
		tick[i] = ABSENT;
	}
	p = strchr(p, '\n');
	if (!p) {
		return false;
	}
	*cursor = p + 1;
	return true;
}

static int add_core(const struct collector_context *ctx, struct cpu_state *cpu, size_t index)
{
	char name[PROTO_PATH_SIZE];
	snprintf(name, sizeof(name), "cpu/%zu/utilization", index);
	return metrics_add(
		ctx->core->metrics, ctx->source, name, UNIT_PERCENT, &cpu->core[index].metric);
}

/* Slots for every core that may ever appear, and metrics for those that are present. */
static int find_cores(const struct collector_context *ctx, struct cpu_state *cpu)
{
	static const char *const lists[] = {
		"sys/devices/system/cpu/possible", "sys/devices/system/cpu/present"};
	uint64_t bits[2][CPU_MAX / 64] = {{0}};
	char text[1024];
	cpu->cores = 1;
	for (size_t i = 0; i < 2; i++) {
		if (root_read(ctx->root, lists[i], text, sizeof(text)) > 0) {
			(void)kernel_cpu_list(text, bits[i], CPU_MAX);
		}
		for (size_t core = 0; core < CPU_MAX; core++) {
			if (cpu_list_has(bits[i], core) && core >= cpu->cores) {
				cpu->cores = core + 1;
			}
		}
	}
	if (cpu->cores == 1) {
		cpu->cores = CPU_MAX; /* no list: proc/stat alone says */
	}
	cpu->core = mem_calloc(cpu->cores, sizeof(cpu->core[0]));
	cpu->size = 1024 + (cpu->cores + 1) * LINE_SIZE;
	cpu->text = mem_calloc(1, cpu->size);
	if (!cpu->core || !cpu->text) {
		return -ENOMEM;
	}
	int r = 0;
	for (size_t core = 0; core < cpu->cores && r >= 0; core++) {
		if (cpu_list_has(bits[1], core)) {
			r = add_core(ctx, cpu, core);
		}
	}
	return r == -ENOSPC ? 0 : r;
}

static int cpu_open(const struct collector_context *ctx, void *state)
{
	struct cpu_state *cpu = state;
	device_file_init(&cpu->file, true, "proc/stat");
	int r = metrics_add(
		ctx->core->metrics, ctx->source, "cpu/utilization", UNIT_PERCENT, &cpu->all.metric);
	for (size_t i = 0; i < 2 && r == 0; i++) {
		r = metrics_add(ctx->core->metrics, ctx->source, part_names[i], UNIT_PERCENT,
			&cpu->part[i]);
		r = r == -ENOSPC ? 0 : r;
	}
	r = r < 0 ? r : find_cores(ctx, cpu);
	return r < 0 ? r : device_file_read_or_fail(ctx, &cpu->file, cpu->text, cpu->size);
}

static void set_share(
	const struct core_time *core, struct metric *metric, uint64_t part, uint64_t total)
{
	const char *why = part == ABSENT ? "not reported by the kernel"
			  : !core->known ? "needs two samples"
			  : total == 0	 ? "no time passed in proc/stat"
					 : NULL;
	metric_set_or_null(metric, why ? 0 : (double)part / (double)total * 100, why);
}

/* part: their metrics; NULL = none. */
static void account(
	struct core_time *core, const uint64_t tick[COLUMNS], struct metric *const *part)
{
	uint64_t total = 0, delta[COLUMNS];
	for (size_t i = 0; i < COLUMNS; i++) {
		delta[i] = tick[i] > core->tick[i] ? tick[i] - core->tick[i] : 0;
		total += delta[i];
	}
	set_share(core, core->metric, total - delta[IDLE] - delta[IOWAIT], total);
	if (part) {
		set_share(core, part[0], delta[IOWAIT], total);
		set_share(core, part[1], tick[STEAL] == ABSENT ? ABSENT : delta[STEAL], total);
	}
	memcpy(core->tick, tick, sizeof(core->tick));
	core->known = true;
	core->seen = true;
}

static void unseen(struct core_time *core, const char *reason)
{
	/* The counters of a core that went offline are not a base for the time when it is back. */
	if (!core->seen && core->metric) {
		metric_set_null(core->metric, reason);
		core->known = false;
	}
	core->seen = false;
}

static int cpu_sample(const struct collector_context *ctx, void *state)
{
	struct cpu_state *cpu = state;
	int r = device_file_read_or_fail(ctx, &cpu->file, cpu->text, cpu->size);
	if (r < 0) {
		return r;
	}
	const char *p = cpu->text;
	long index;
	uint64_t tick[COLUMNS];
	while (next_line(&p, &index, tick)) {
		if (index < 0) {
			account(&cpu->all, tick, cpu->part);
		} else if ((size_t)index < cpu->cores) {
			/* A core over the limit of metrics stays without one; the core counts it.
			 */
			if (!cpu->core[index].metric) {
				(void)add_core(ctx, cpu, (size_t)index);
			}
			account(&cpu->core[index], tick, NULL);
		}
	}
	bool any = cpu->all.seen;
	for (size_t i = 0; i < 2 && !any; i++) {
		metric_set_or_null(cpu->part[i], 0, "malformed");
	}
	unseen(&cpu->all, "malformed");
	for (size_t i = 0; i < cpu->cores; i++) {
		unseen(&cpu->core[i], "offline");
	}
	return any ? 0 : collector_fail(ctx, -EBADMSG, "/proc/stat: no line for cpu");
}

const struct collector_ops collector_cpu = {
	.name = "cpu",
	.state_size = sizeof(struct cpu_state),
	.open = cpu_open,
	.sample = cpu_sample,
	.close = cpu_close,
};
