/* SPDX-License-Identifier: Apache-2.0 */
/* cpufreq.c: reads the clock of each core, cpu/<n>/frequency in hertz, from scaling_cur_freq (kHz)
 * of sys/devices/system/cpu/cpufreq/policy*: one read a policy, for each of its related_cpus that
 * is online. No own keys. */
#include "daemon/collect/sched/registry.h"

#include <errno.h>
#include <stdio.h>

#include "daemon/collect/lib/gauge.h"
#include "daemon/collect/lib/kernel_text.h"
#include "proto/text.h"

enum { CPU_MAX = 1024, ONLINE_SIZE = 1024 };

#define FOLDER "sys/devices/system/cpu/cpufreq"

struct core_clock {
	struct metric *metric;
	uint16_t cpu, policy;
};

struct cpufreq {
	/* Two elements a policy: what the governor asked for, and what the hardware does, which
	 * has no file where it cannot be read. */
	struct gauges policies;
	bool hidden; /* the machine has other clocks than those that the governors asked for */
	struct device_file online;
	bool hot_plug; /* the last read of online gave text */
	char text[ONLINE_SIZE];
	uint64_t known[CPU_MAX / 64]; /* the cores of the probe's policies */
	size_t cores;
	struct core_clock core[CPU_MAX];
};

/* A driver that does not know writes "<unknown>", nothing or 0. */
static const char *clock_reason(int error)
{
	switch (-error) {
	case EBADMSG:
	case ENODATA:
		return "not known";
	case ENOENT:
	case ENODEV:
	case EBUSY:
	case EAGAIN:
		return "offline";
	default:
		return errno_reason(error);
	}
}

static const struct gauge_kind clock_kind = {
	.unit = UNIT_HERTZ, .scale = 1000, .min = 1000, .max = 1e12, .reason = clock_reason};

static void cpufreq_close(void *state)
{
	struct cpufreq *cpufreq = state;
	device_file_close(&cpufreq->online);
	gauges_close(state);
}

/* The cores of a policy: related_cpus also names those that are offline now. */
static void add_cores(struct cpufreq *cpufreq, const struct root *root, const char *policy)
{
	uint64_t bits[CPU_MAX / 64] = {0};
	char text[4096];
	if (device_text(root, text, sizeof(text), "%s/related_cpus", policy) ||
		device_text(root, text, sizeof(text), "%s/affected_cpus", policy)) {
		(void)kernel_cpu_list(text, bits, CPU_MAX);
	}
	for (size_t cpu = 0; cpu < CPU_MAX && cpufreq->cores < CPU_MAX; cpu++) {
		if (!cpu_list_has(bits, cpu) || cpu_list_has(cpufreq->known, cpu)) {
			continue;
		}
		struct core_clock *core = &cpufreq->core[cpufreq->cores++];
		cpufreq->known[cpu / 64] |= UINT64_C(1) << (cpu % 64);
		core->cpu = (uint16_t)cpu;
		core->policy = (uint16_t)(cpufreq->policies.count / 2);
	}
}

/* The firmware of a Raspberry Pi 5 lowers the clock without a sign in sysfs but the measured one.
 * Boards where another file says so (throttle) show what the governor set, as their tools do. */
static bool hides_its_clock(const struct root *root)
{
	char model[64];
	return device_text(root, model, sizeof(model), "proc/device-tree/model") &&
	       (text_starts_with(model, "Raspberry Pi 5") ||
		       text_starts_with(model, "Raspberry Pi Compute Module 5"));
}

static void add_policy(void *ctx, const struct root *root, const char *path, const char *name)
{
	/* The first asks the hardware, often for root only; the second counts cycles. */
	static const char *const files[] = {"cpuinfo_cur_freq", "cpuinfo_avg_freq"};
	struct cpufreq *cpufreq = ctx;
	struct gauges *policies = &cpufreq->policies;
	struct gauge *measured = NULL;
	long long khz;
	(void)name;
	add_cores(cpufreq, root, path);
	(void)gauges_add(policies, &clock_kind, "", "%s/scaling_cur_freq", path);
	for (size_t i = 0; i < 2 && cpufreq->hidden && !measured; i++) {
		if (device_number(root, &khz, "%s/%s", path, files[i]) == 0 && khz > 0) {
			measured = gauges_add(policies, &clock_kind, "", "%s/%s", path, files[i]);
		}
	}
	if (!measured) {
		(void)gauges_add(policies, &clock_kind, "", "%s", "");
	}
}

static int cpufreq_probe(const struct collector_context *ctx, void *state)
{
	struct cpufreq *cpufreq = state;
	gauges_init(&cpufreq->policies, ctx->root, sizeof(struct gauge), 0);
	device_file_init(&cpufreq->online, true, "sys/devices/system/cpu/online");
	cpufreq->hidden = hides_its_clock(ctx->root);
	int r = device_each(ctx->root, FOLDER, "policy", add_policy, cpufreq);
	if (r >= 0 && cpufreq->cores == 0) {
		r = -ENOENT;
	}
	if (r < 0 && r != -ENOENT) {
		return collector_fail(ctx, r, "/" FOLDER ": %s", errno_reason(r));
	}
	return gauges_found(ctx, &cpufreq->policies, r, "/" FOLDER ": no policy there");
}

static int cpufreq_open(const struct collector_context *ctx, void *state)
{
	struct cpufreq *cpufreq = state;
	size_t cores = cpufreq->cores;
	cpufreq->cores = 0;
	for (size_t i = 0; i < cores; i++) {
		char name[PROTO_PATH_SIZE];
		struct core_clock *core = &cpufreq->core[i];
		snprintf(name, sizeof(name), "cpu/%u/frequency", core->cpu);
		int r = metrics_add(
			ctx->core->metrics, ctx->source, name, UNIT_HERTZ, &core->metric);
		if (r == 0) {
			cpufreq->core[cpufreq->cores++] = *core;
		} else if (r != -ENOSPC) {
			return r;
		}
	}
	return cpufreq->cores > 0 ? 0 : -ENOSPC;
}

/* On a worker: scaling_cur_freq may ask the firmware. */
static int cpufreq_fetch(const struct collector_context *ctx, void *state)
{
	struct cpufreq *cpufreq = state;
	cpufreq->hot_plug = device_file_read(&cpufreq->online, ctx->root, cpufreq->text,
				    sizeof(cpufreq->text)) > 0;
	gauges_read(&cpufreq->policies, ctx->root);
	return 0;
}

static void set_core(const struct cpufreq *cpufreq, const struct core_clock *core)
{
	const struct gauge *policy = gauges_at(&cpufreq->policies, (size_t)2 * core->policy);
	const struct gauge *hardware = gauges_at(&cpufreq->policies, (size_t)2 * core->policy + 1);
	double hertz = 0;
	bool measured = !gauge_value(hardware, &hertz);
	const char *reason = measured ? NULL : gauge_value(policy, &hertz);
	if (reason && policy->result == 0) {
		reason = "not known";
	} else if (!reason) {
		core->metric->origin =
			measured ? "measured by the hardware" : "set by the governor";
	}
	metric_set_or_null(core->metric, hertz, reason);
}

static int cpufreq_sample(const struct collector_context *ctx, void *state)
{
	(void)ctx;
	struct cpufreq *cpufreq = state;
	uint64_t online[CPU_MAX / 64] = {0};
	/* Kernels without hot-plug write no such file: then all cores are on. */
	bool all = !cpufreq->hot_plug || kernel_cpu_list(cpufreq->text, online, CPU_MAX) < 0;
	for (size_t i = 0; i < cpufreq->cores; i++) {
		const struct core_clock *core = &cpufreq->core[i];
		if (all || cpu_list_has(online, core->cpu)) {
			set_core(cpufreq, core);
		} else {
			metric_set_null(core->metric, "offline");
		}
	}
	return 0;
}

const struct collector_ops collector_cpufreq = {
	.name = "cpufreq",
	.state_size = sizeof(struct cpufreq),
	.probe = cpufreq_probe,
	.open = cpufreq_open,
	.fetch = cpufreq_fetch,
	.sample = cpufreq_sample,
	.close = cpufreq_close,
};
