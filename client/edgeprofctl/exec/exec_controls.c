/* SPDX-License-Identifier: Apache-2.0 */
/* exec_controls.c: reads the options of exec, and applies affinity, scheduling policy, niceness and
 * environment to the process that will run the command. */
#include "client/edgeprofctl/exec/exec.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { RT_PRIORITY_MAX = 99, QUOTA_MAX = 100000, NICE_MIN = -20, NICE_MAX = 19 };

static int read_number(const char **text, int *ret)
{
	size_t digits = strspn(*text, "0123456789");
	if (digits == 0 || digits > 6) {
		return -EINVAL;
	}
	*ret = (int)strtol(*text, NULL, 10);
	*text += digits;
	return 0;
}

int exec_parse_cpus(const char *text, cpu_set_t *ret)
{
	CPU_ZERO(ret);
	for (;; text++) {
		int first, last;
		if (read_number(&text, &first) < 0) {
			return -EINVAL;
		}
		last = first;
		if (*text == '-') {
			text++;
			if (read_number(&text, &last) < 0) {
				return -EINVAL;
			}
		}
		if (last < first || last >= CPU_SETSIZE) {
			return -EINVAL;
		}
		for (; first <= last; first++) {
			CPU_SET((size_t)first, ret);
		}
		if (*text != ',') {
			return *text == '\0' ? 0 : -EINVAL;
		}
	}
}

static int option_cpus(const struct option_spec *spec, const char *text, void *value)
{
	cpu_set_t cpus;
	return exec_parse_cpus(text, &cpus) < 0 ? -EINVAL : option_text(spec, text, value);
}

static int option_nice(const struct option_spec *spec, const char *text, void *value)
{
	int nice;
	const char *at = text + (text[0] == '-');
	if (read_number(&at, &nice) < 0 || *at != '\0' ||
		nice > (text[0] == '-' ? -NICE_MIN : NICE_MAX)) {
		return -EINVAL;
	}
	return option_text(spec, text, value);
}

static int option_priority(const struct option_spec *spec, const char *text, void *value)
{
	return option_count(spec, text, value) < 0 || *(long *)value > RT_PRIORITY_MAX ? -EINVAL
										       : 0;
}

static int option_quota(const struct option_spec *spec, const char *text, void *value)
{
	char *end;
	double percent = strtod(text, &end);
	(void)spec;
	end += *end == '%';
	if (strspn(text, "0123456789.%") != strlen(text) || *end != '\0' || !(percent >= 1) ||
		percent > QUOTA_MAX) {
		return -EINVAL;
	}
	*(double *)value = percent;
	return 0;
}

static int option_perf(const struct option_spec *spec, const char *text, void *value)
{
	return option_text(spec, text && text[0] != '\0' ? text : "perf.data", value);
}

const struct option_spec exec_options[] = {
	{"cpus", 0, "LIST", "run on these CPUs only, such as 0-3,6", option_cpus,
		offsetof(struct options, exec.cpus)},
	{"nice", 0, "N", "niceness, -20 to 19", option_nice, offsetof(struct options, exec.nice)},
	{"rr", 0, "PRIORITY", "real-time policy SCHED_RR, priority 1 to 99", option_priority,
		offsetof(struct options, exec.rr)},
	{"fifo", 0, "PRIORITY", "real-time policy SCHED_FIFO, priority 1 to 99", option_priority,
		offsetof(struct options, exec.fifo)},
	{"batch", 0, NULL, "policy SCHED_BATCH", option_flag, offsetof(struct options, exec.batch)},
	{"idle", 0, NULL, "policy SCHED_IDLE", option_flag, offsetof(struct options, exec.idle)},
	{"quota", 0, "PERCENT", "CPU time at most, in percent of one CPU: 50%, 200%", option_quota,
		offsetof(struct options, exec.quota_percent)},
	{"env", 0, "NAME=VALUE", "set an environment variable; may be repeated", option_pair,
		offsetof(struct options, exec.env)},
	{"limit", 0, "SPAN", "end the command after this time: SIGTERM, 2 s later SIGKILL",
		option_ms, offsetof(struct options, exec.limit_ms)},
	{"perf-record", 0, "[FILE]", "record call stacks with perf; default: perf.data",
		option_perf, offsetof(struct options, exec.perf_record)},
	{"output", 'o', "FILE", "write the result as JSON to FILE", option_nonempty,
		offsetof(struct options, output)},
	{.name = NULL},
};

int exec_controls_of(struct ctl *ctl, struct exec_controls *ret)
{
	const struct exec_options *options = &ctl->options.exec;
	int policies = (options->rr > 0) + (options->fifo > 0) + options->batch + options->idle;
	if (policies > 1) {
		return ctl_fail(
			ctl, CTL_USAGE, "--rr, --fifo, --batch and --idle exclude each other");
	}
	*ret = (struct exec_controls){
		.has_cpus = options->cpus,
		.has_nice = options->nice,
		.nice = options->nice ? (int)strtol(options->nice, NULL, 10) : 0,
		.policy = options->rr > 0     ? SCHED_RR
			  : options->fifo > 0 ? SCHED_FIFO
			  : options->batch    ? SCHED_BATCH
			  : options->idle     ? SCHED_IDLE
					      : -1,
		.priority = (int)(options->rr > 0 ? options->rr : options->fifo),
		.env = &options->env,
	};
	return options->cpus && exec_parse_cpus(options->cpus, &ret->cpus) < 0 ? CTL_USAGE
									       : CTL_FINE;
}

/* The kernel ignores CPUs that are not available as long as one is: -EINVAL here. */
static int set_cpus(const cpu_set_t *cpus)
{
	cpu_set_t now;
	if (sched_setaffinity(0, sizeof(*cpus), cpus) < 0 ||
		sched_getaffinity(0, sizeof(now), &now) < 0) {
		return errno;
	}
	return CPU_EQUAL(&now, cpus) ? 0 : EINVAL;
}

static int set_environment(const struct option_list *env)
{
	for (size_t i = 0; i < env->count; i++) {
		char *name = strndup(env->items[i], strcspn(env->items[i], "="));
		int r = name ? setenv(name, strchr(env->items[i], '=') + 1, 1) : -1;
		free(name);
		if (r < 0) {
			return ENOMEM;
		}
	}
	return 0;
}

struct exec_failure exec_controls_apply(const struct exec_controls *controls)
{
	struct exec_failure failure = {
		EXEC_CPUS, controls->has_cpus ? set_cpus(&controls->cpus) : 0};
	if (failure.error == 0 && controls->policy >= 0) {
		struct sched_param parameters = {.sched_priority = controls->priority};
		failure.step = EXEC_POLICY;
		failure.error =
			sched_setscheduler(0, controls->policy, &parameters) < 0 ? errno : 0;
	}
	if (failure.error == 0 && controls->has_nice) {
		failure.step = EXEC_NICE;
		failure.error = setpriority(PRIO_PROCESS, 0, controls->nice) < 0 ? errno : 0;
	}
	if (failure.error == 0) {
		failure.step = EXEC_ENV;
		failure.error = set_environment(controls->env);
	}
	return failure.error != 0 ? failure : (struct exec_failure){EXEC_READY, 0};
}
