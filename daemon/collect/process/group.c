/* SPDX-License-Identifier: Apache-2.0 */
/* group.c: sums processes into metrics. A sum covers the processes whose number is known; with none
 * it is null, only the count is 0. */
#include "daemon/collect/process/group.h"

#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* Without it a process that breathes around its limit would fill the timeline. */
#define BELOW_AGAIN 0.95
#define MIB 1048576.0

/* Between two lines about the same name. */
#define REPORT_EVERY_NS UINT64_C(1000000000)

static const char no_memory[] = "no memory of its own";
static const char two_samples[] = "needs two samples";
static const char unknown[] = "not reported by the kernel";

/* value and reason: where they are in struct process_row; 0 = elsewhere, or no reason. */
#define AT(member) offsetof(struct process_row, member)
#define COUNTER(i) AT(extra.counter[i]), AT(extra.counter_reason[i])

static const struct {
	const char *name;
	enum unit unit;
	const char *missing; /* why it is null though there are processes */
	size_t value, reason;
} table[PROCESS_VALUES] = {
	[PROCESS_RSS] = {"rss", UNIT_BYTES, no_memory, AT(rss_bytes), 0},
	[PROCESS_VMS] = {"vms", UNIT_BYTES, no_memory, AT(vms_bytes), 0},
	[PROCESS_PEAK_RSS] = {"peak_rss", UNIT_BYTES, no_memory, AT(peak_rss_bytes), 0},
	[PROCESS_CPU] = {"cpu", UNIT_PERCENT, two_samples, AT(cpu_percent), 0},
	[PROCESS_USER] = {"user", UNIT_PERCENT, two_samples, AT(user_percent), 0},
	[PROCESS_SYSTEM] = {"system", UNIT_PERCENT, two_samples, AT(system_percent), 0},
	[PROCESS_THREADS] = {"threads", UNIT_COUNT, unknown, 0, 0},
	[PROCESS_STOPPED] = {"stopped", UNIT_COUNT, unknown, 0, 0},
	[PROCESS_MEM_PERCENT] = {"mem_percent", UNIT_PERCENT, no_memory, AT(mem_percent), 0},
	[PROCESS_MINOR_FAULTS] = {"minor_faults", UNIT_PER_SECOND, two_samples, AT(minor_faults),
		0},
	[PROCESS_MAJOR_FAULTS] = {"major_faults", UNIT_PER_SECOND, two_samples, AT(major_faults),
		0},
	[PROCESS_PSS] = {"pss", UNIT_BYTES, unknown, AT(extra.pss_bytes), AT(extra.pss_reason)},
	[PROCESS_FDS] = {"fds", UNIT_COUNT, unknown, AT(extra.fds), AT(extra.fds_reason)},
	[PROCESS_VOLUNTARY] = {"voluntary_switches", UNIT_PER_SECOND, two_samples,
		AT(extra.voluntary), AT(extra.switches_reason)},
	[PROCESS_INVOLUNTARY] = {"involuntary_switches", UNIT_PER_SECOND, two_samples,
		AT(extra.involuntary), AT(extra.switches_reason)},
	[PROCESS_RUN_DELAY] = {"run_delay", UNIT_PERCENT, two_samples, AT(extra.wait_percent),
		AT(extra.wait_reason)},
	[PROCESS_IODELAY] = {"iodelay", UNIT_PERCENT, two_samples, AT(iodelay_percent),
		AT(iodelay_reason)},
	[PROCESS_READ] = {"read_bytes", UNIT_PER_SECOND, two_samples, AT(extra.read_bytes),
		AT(extra.io_reason)},
	[PROCESS_WRITE] = {"write_bytes", UNIT_PER_SECOND, two_samples, AT(extra.write_bytes),
		AT(extra.io_reason)},
	[PROCESS_COUNTER_FIRST +
		PROCESS_CYCLES] = {"cycles", UNIT_PER_SECOND, unknown, COUNTER(PROCESS_CYCLES)},
	[PROCESS_COUNTER_FIRST + PROCESS_INSTRUCTIONS] = {"instructions", UNIT_PER_SECOND, unknown,
		COUNTER(PROCESS_INSTRUCTIONS)},
	[PROCESS_COUNTER_FIRST + PROCESS_CACHE_MISSES] = {"cache_misses", UNIT_PER_SECOND, unknown,
		COUNTER(PROCESS_CACHE_MISSES)},
	[PROCESS_COUNTER_FIRST + PROCESS_MIGRATIONS] = {"migrations", UNIT_PER_SECOND, unknown,
		COUNTER(PROCESS_MIGRATIONS)},
	[PROCESS_IPC] = {"ipc", UNIT_NONE, unknown, 0, 0}, /* of a ratio the sum means nothing */
};

static int add(struct group *group, struct metrics *metrics, struct source *source,
	const char *name, enum unit unit, struct metric **ret)
{
	char path[PROTO_PATH_SIZE];
	snprintf(path, sizeof(path), "process/%s/%s", group->name, name);
	int r = metrics_add(metrics, source, path, unit, ret);
	if (r < 0) {
		*ret = NULL;
	}
	return r == -ENOMEM ? r : 0;
}

int group_open(struct group *group, struct metrics *metrics, struct source *source)
{
	int r = add(group, metrics, source, "count", UNIT_COUNT, &group->count_metric);
	for (size_t i = 0; i < PROCESS_VALUES && r == 0; i++) {
		r = add(group, metrics, source, table[i].name, table[i].unit, &group->metric[i]);
	}
	return r;
}

int group_limit(struct group *group, struct metrics *metrics, struct source *source, bool limited)
{
	if (limited && !group->over_metric) {
		return add(group, metrics, source, "over_limit", UNIT_COUNT, &group->over_metric);
	}
	if (!limited && group->over_metric) {
		metrics_retire(metrics, group->over_metric);
		group->over_metric = NULL;
	}
	return 0;
}

void group_retire(struct group *group, struct metrics *metrics)
{
	if (group->count_metric) {
		metrics_retire(metrics, group->count_metric);
		group->count_metric = NULL;
	}
	(void)group_limit(group, metrics, NULL, false);
	for (size_t i = 0; i < PROCESS_VALUES; i++) {
		if (group->metric[i]) {
			metrics_retire(metrics, group->metric[i]);
			group->metric[i] = NULL;
		}
	}
}

void group_reset(struct group *group)
{
	group->count = 0;
	group->unsure = NULL;
	group->over = 0;
	group->pss_ns = group->extra_ns = 0;
	for (size_t i = 0; i < PROCESS_VALUES; i++) {
		group->sum[i] = NAN;
		group->reason[i] = NULL;
	}
}

static double value_of(const struct process_row *row, size_t value)
{
	double number;
	memcpy(&number, (const char *)row + table[value].value, sizeof(number));
	return value == PROCESS_THREADS	  ? row->threads
	       : value == PROCESS_STOPPED ? row->state == 'T' || row->state == 't'
					  : number;
}

static const char *reason_of(const struct process_row *row, size_t value)
{
	const char *reason = NULL;
	if (table[value].reason != 0) {
		memcpy(&reason, (const char *)row + table[value].reason, sizeof(reason));
	}
	return reason;
}

/* Keeps the older of two times; 0 = none. */
static void keep_oldest(uint64_t *oldest_ns, uint64_t t_ns)
{
	*oldest_ns = *oldest_ns == 0 || (t_ns != 0 && t_ns < *oldest_ns) ? t_ns : *oldest_ns;
}

void group_add(struct group *group, const struct process_row *row)
{
	group->count++;
	for (size_t i = 0; i < PROCESS_IPC; i++) {
		double value = value_of(row, i);
		if (isnan(value)) {
			group->reason[i] = group->reason[i] ? group->reason[i] : reason_of(row, i);
		} else {
			group->sum[i] = isnan(group->sum[i]) ? value : group->sum[i] + value;
		}
	}
	keep_oldest(&group->pss_ns, row->extra.pss_ns);
	keep_oldest(&group->extra_ns, row->extra.t_ns);
}

/* The ratio of the sums. */
static void divide_ipc(struct group *group)
{
	group->sum[PROCESS_IPC] = process_ipc(&group->sum[PROCESS_COUNTER_FIRST]);
	if (!group->reason[PROCESS_IPC]) {
		const char *const *reason = &group->reason[PROCESS_COUNTER_FIRST];
		group->reason[PROCESS_IPC] = reason[PROCESS_CYCLES] ? reason[PROCESS_CYCLES]
					     : reason[PROCESS_INSTRUCTIONS]
						     ? reason[PROCESS_INSTRUCTIONS]
						     : "no cycles";
	}
}

/* When a value was read, where that is less often than the sample; 0 = with it. */
static uint64_t time_of(const struct group *group, size_t value)
{
	return value == PROCESS_PSS				  ? group->pss_ns
	       : value >= PROCESS_FDS && value != PROCESS_IODELAY ? group->extra_ns
								  : 0;
}

void group_commit(struct group *group)
{
	divide_ipc(group);
	const char *none = group->unsure ? group->unsure : "no process";
	metric_set_or_null(group->count_metric, group->count, group->unsure);
	metric_set_or_null(group->over_metric, group->over, group->count == 0 ? none : NULL);
	for (size_t i = 0; i < PROCESS_VALUES; i++) {
		if (!group->metric[i]) {
			continue;
		}
		if (isnan(group->sum[i])) {
			const char *missing =
				group->reason[i] ? group->reason[i] : table[i].missing;
			metric_set_null(group->metric[i], group->count == 0 ? none : missing);
		} else {
			metric_set_at(group->metric[i], group->sum[i], time_of(group, i));
		}
	}
}

void group_started(struct group *group, pid_t pid)
{
	group->started++;
	group->started_pid = pid;
}

void group_exited(struct group *group, pid_t pid)
{
	group->exited++;
	group->exited_pid = pid;
}

void group_check_limit(struct group *group, bool *over, pid_t pid, double rss_bytes,
	uint64_t limit_bytes, struct timeline *timeline, uint64_t now_ns)
{
	double limit = (double)limit_bytes;
	bool above = limit_bytes != 0 && rss_bytes > limit;
	group->over += above;
	if (limit_bytes == 0) {
		*over = false; /* the limit was removed: nothing to report */
	}
	bool crossed = *over ? rss_bytes < limit * BELOW_AGAIN : above;
	if (!crossed || (group->limit_reported_ns != 0 &&
				now_ns - group->limit_reported_ns < REPORT_EVERY_NS)) {
		return;
	}
	*over = !*over;
	group->limit_reported_ns = now_ns;
	timeline_add(timeline, now_ns, TIMELINE_APP, *over ? TIMELINE_WARNING : TIMELINE_INFO,
		group->name, "process %d: %.1f MiB resident, %s its memory limit of %.1f MiB",
		(int)pid, rss_bytes / MIB, *over ? "over" : "below", limit / MIB);
}

/* A start after an exit is a restart, also when the exit was reported long ago. */
void group_report(struct group *group, struct timeline *timeline, uint64_t now_ns)
{
	unsigned started = group->started, exited = group->exited;
	if ((started == 0 && exited == 0) ||
		(group->reported_ns != 0 && now_ns - group->reported_ns < REPORT_EVERY_NS)) {
		return;
	}
	char text[96];
	if (started > 1 && exited == 0) {
		snprintf(text, sizeof(text), "%u processes started", started);
	} else if (started == 0 && exited > 1) {
		snprintf(text, sizeof(text), "%u processes exited", exited);
	} else if (started > 1 || exited > 1) {
		snprintf(text, sizeof(text), "%u processes started, %u exited", started, exited);
	} else if (started == 0) {
		snprintf(text, sizeof(text), "process %d exited", (int)group->exited_pid);
	} else if (group->exited_pid != 0 && group->count == 1) {
		snprintf(text, sizeof(text), "restarted as process %d (previously %d)",
			(int)group->started_pid, (int)group->exited_pid);
	} else {
		snprintf(text, sizeof(text), "process %d started", (int)group->started_pid);
	}
	timeline_add(timeline, now_ns, TIMELINE_APP, TIMELINE_INFO, group->name, "%s", text);
	group->started = group->exited = 0;
	group->reported_ns = now_ns;
}
