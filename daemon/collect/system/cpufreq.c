/* Clock of each core, cpu/<n>/frequency in hertz, from scaling_cur_freq (kHz) of
 * sys/devices/system/cpu/cpufreq/policy*: one read a policy, told for each of its related_cpus that
 * is online. No own keys. */
#include "daemon/collect/sched/registry.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/collect/lib/device_file.h"
#include "daemon/collect/lib/text.h"
#include "daemon/core/metrics/metrics.h"
#include "daemon/util/sysops.h"

enum {
	CPU_MAX = 1024,
	ONLINE_SIZE = 1024,
	POLICIES_MAX = 512,
	POLICIES_KEPT = 64, /* descriptors; further policies are opened for each read */
};

#define FOLDER "sys/devices/system/cpu/cpufreq"

struct policy {
	struct device_file file;     /* what the governor asked for */
	struct device_file measured; /* what the hardware does; not named where it cannot be read */
	bool is_measured;	     /* where the last value came from */
	int result;		     /* of the last read, and what it gave */
	long long khz;
	double hertz; /* of the present sample; NAN = reason */
	const char *reason;
};

struct core_clock {
	struct metric *metric;
	uint16_t cpu, policy;
};

struct cpufreq_state {
	struct device_file online;
	bool hot_plug; /* the last read of online gave text */
	char text[ONLINE_SIZE];
	size_t policies, cores;
	struct policy *policy;
	struct core_clock core[CPU_MAX];
};

static void cpufreq_close(void *state)
{
	struct cpufreq_state *cpufreq = state;
	if (cpufreq) {
		device_file_close(&cpufreq->online);
		for (size_t i = 0; i < cpufreq->policies; i++) {
			device_file_close(&cpufreq->policy[i].file);
			device_file_close(&cpufreq->policy[i].measured);
		}
		free(cpufreq->policy);
	}
	free(cpufreq);
}

/* The cores of a policy: related_cpus also names those that are offline now. */
static void add_cores(
	struct cpufreq_state *cpufreq, const struct root *root, const char *policy, uint64_t *known)
{
	static const char *const lists[] = {"related_cpus", "affected_cpus"};
	uint64_t bits[CPU_MAX / 64] = {0};
	for (size_t i = 0; i < 2; i++) {
		char path[DEVICE_FILE_PATH], text[4096];
		snprintf(path, sizeof(path), FOLDER "/%s/%s", policy, lists[i]);
		if (root_read(root, path, text, sizeof(text)) > 0) {
			(void)text_cpu_list(text, bits, CPU_MAX);
			break;
		}
	}
	for (size_t cpu = 0; cpu < CPU_MAX && cpufreq->cores < CPU_MAX; cpu++) {
		if (!text_bit(bits, cpu) || text_bit(known, cpu)) {
			continue;
		}
		struct core_clock *core = &cpufreq->core[cpufreq->cores++];
		known[cpu / 64] |= UINT64_C(1) << (cpu % 64);
		core->cpu = (uint16_t)cpu;
		core->policy = (uint16_t)cpufreq->policies;
	}
}

/* The firmware of a Raspberry Pi 5 lowers the clock without a sign in sysfs but the measured one.
 * Boards where another file says so (throttle) show what the governor set, as their tools do. */
static bool hides_its_clock(const struct root *root)
{
	static const char *const models[] = {"Raspberry Pi 5", "Raspberry Pi Compute Module 5"};
	struct device_file file;
	char model[64] = "";
	device_file_init(&file, false, "proc/device-tree/model");
	(void)device_file_read(&file, root, model, sizeof(model));
	device_file_close(&file);
	return strncmp(model, models[0], strlen(models[0])) == 0 ||
	       strncmp(model, models[1], strlen(models[1])) == 0;
}

/* cpuinfo_cur_freq asks the hardware, often for root only; cpuinfo_avg_freq counts cycles. */
static void find_measured(
	struct policy *policy, const struct root *root, const char *name, bool keep)
{
	static const char *const files[] = {"cpuinfo_cur_freq", "cpuinfo_avg_freq"};
	long long khz;
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		device_file_init(&policy->measured, keep, FOLDER "/%s/%s", name, files[i]);
		if (device_file_read_i64(&policy->measured, root, &khz) == 0 && khz > 0) {
			return;
		}
		device_file_close(&policy->measured);
		policy->measured.path[0] = '\0';
	}
}

static int add_policies(struct cpufreq_state *cpufreq, const struct root *root,
	const struct root_name *names, size_t count)
{
	uint64_t known[CPU_MAX / 64] = {0};
	const bool hidden = hides_its_clock(root);
	cpufreq->policy = mem_calloc(count, sizeof(cpufreq->policy[0]));
	if (!cpufreq->policy) {
		return -ENOMEM;
	}
	for (size_t i = 0; i < count; i++) {
		if (strncmp(names[i].text, "policy", 6) != 0) {
			continue;
		}
		add_cores(cpufreq, root, names[i].text, known);
		struct policy *policy = &cpufreq->policy[cpufreq->policies];
		device_file_init(&policy->file, cpufreq->policies < POLICIES_KEPT,
			FOLDER "/%s/scaling_cur_freq", names[i].text);
		if (hidden) {
			find_measured(
				policy, root, names[i].text, cpufreq->policies < POLICIES_KEPT);
		}
		cpufreq->policies++;
	}
	return cpufreq->cores > 0 ? 0 : -ENOENT;
}

static int cpufreq_probe(
	const struct collector_context *ctx, void **state, char reason[SOURCE_REASON_SIZE])
{
	struct cpufreq_state *cpufreq = mem_zalloc(sizeof(*cpufreq));
	struct root_name *names = mem_calloc(POLICIES_MAX, sizeof(*names));
	int r = -ENOMEM;
	if (cpufreq) {
		device_file_init(&cpufreq->online, true, "sys/devices/system/cpu/online");
	}
	if (!cpufreq || !names) {
		goto error;
	}
	r = root_list(ctx->root, FOLDER, names, POLICIES_MAX);
	if (r == 0) {
		r = -ENOENT;
	}
	if (r > 0) {
		r = add_policies(cpufreq, ctx->root, names, (size_t)r);
	}
	if (r < 0) {
		snprintf(reason, SOURCE_REASON_SIZE, "/" FOLDER ": %s",
			r == -ENOENT ? "no policy there" : errno_reason(r));
		goto error;
	}
	free(names);
	*state = cpufreq;
	return 0;
error:
	free(names);
	cpufreq_close(cpufreq);
	return r;
}

static int cpufreq_open(
	const struct collector_context *ctx, void **state, char reason[SOURCE_REASON_SIZE])
{
	(void)reason;
	struct cpufreq_state *cpufreq = *state;
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
	struct cpufreq_state *cpufreq = state;
	cpufreq->hot_plug = device_file_read(&cpufreq->online, ctx->root, cpufreq->text,
				    sizeof(cpufreq->text)) > 0;
	for (size_t i = 0; i < cpufreq->policies; i++) {
		struct policy *policy = &cpufreq->policy[i];
		policy->is_measured =
			policy->measured.path[0] != '\0' &&
			device_file_read_i64(&policy->measured, ctx->root, &policy->khz) == 0 &&
			policy->khz > 0;
		policy->result = policy->is_measured ? 0
						     : device_file_read_i64(&policy->file,
							       ctx->root, &policy->khz);
	}
	return 0;
}

static void judge_policy(struct policy *policy)
{
	int r = policy->result;
	policy->hertz = NAN;
	if (r == 0 && policy->khz > 0 && policy->khz < 1000000000) {
		policy->hertz = (double)policy->khz * 1000;
	} else if (r == 0) {
		policy->reason = "not known";
	} else if (r == -EBADMSG || r == -ENODATA) {
		policy->reason = "not known"; /* the driver writes "<unknown>" or nothing */
	} else if (r == -ENOENT || r == -ENODEV || r == -EBUSY || r == -EAGAIN) {
		policy->reason = "offline";
	} else {
		policy->reason = errno_reason(r);
	}
}

static int cpufreq_sample(const struct collector_context *ctx, void *state, uint64_t now_ns,
	char reason[SOURCE_REASON_SIZE])
{
	(void)ctx;
	(void)now_ns;
	(void)reason;
	struct cpufreq_state *cpufreq = state;
	uint64_t online[CPU_MAX / 64] = {0};
	/* Kernels without hot-plug write no such file: then all cores are on. */
	bool all = !cpufreq->hot_plug || text_cpu_list(cpufreq->text, online, CPU_MAX) < 0;
	for (size_t i = 0; i < cpufreq->policies; i++) {
		judge_policy(&cpufreq->policy[i]);
	}
	for (size_t i = 0; i < cpufreq->cores; i++) {
		const struct core_clock *core = &cpufreq->core[i];
		const struct policy *policy = &cpufreq->policy[core->policy];
		if (!all && !text_bit(online, core->cpu)) {
			metric_set_null(core->metric, "offline");
		} else if (isnan(policy->hertz)) {
			metric_set_null(core->metric, policy->reason);
		} else {
			metric_set(core->metric, policy->hertz);
			core->metric->origin = policy->is_measured ? "measured by the hardware"
								   : "set by the governor";
		}
	}
	return 0;
}

const struct collector_ops collector_cpufreq = {
	.name = "cpufreq",
	.probe = cpufreq_probe,
	.open = cpufreq_open,
	.fetch = cpufreq_fetch,
	.sample = cpufreq_sample,
	.close = cpufreq_close,
};
