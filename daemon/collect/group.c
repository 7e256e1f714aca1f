/* Part of the process collector: from processes to metrics. A sum covers the processes of which the
 * number is known; with none it is null, only the count is 0. */
#include "daemon/collect/group.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>

static const struct {
	const char *name;
	enum unit unit;
	const char *missing; /* why it is null though there are processes */
} table[PROCESS_VALUES] = {
	[PROCESS_RSS] = {"rss", UNIT_BYTES, "no memory of its own"},
	[PROCESS_VMS] = {"vms", UNIT_BYTES, "no memory of its own"},
	[PROCESS_PEAK_RSS] = {"peak_rss", UNIT_BYTES, "no memory of its own"},
	[PROCESS_CPU] = {"cpu", UNIT_PERCENT, "needs two samples"},
	[PROCESS_USER] = {"user", UNIT_PERCENT, "needs two samples"},
	[PROCESS_SYSTEM] = {"system", UNIT_PERCENT, "needs two samples"},
	[PROCESS_THREADS] = {"threads", UNIT_COUNT, "not told"},
	[PROCESS_MEM_PERCENT] = {"mem_percent", UNIT_PERCENT, "no memory of its own"},
	[PROCESS_MINOR_FAULTS] = {"minor_faults", UNIT_PER_SECOND, "needs two samples"},
	[PROCESS_MAJOR_FAULTS] = {"major_faults", UNIT_PER_SECOND, "needs two samples"},
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

void group_retire(struct group *group, struct metrics *metrics)
{
	if (group->count_metric) {
		metrics_retire(metrics, group->count_metric);
		group->count_metric = NULL;
	}
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
	for (size_t i = 0; i < PROCESS_VALUES; i++) {
		group->sum[i] = NAN;
	}
}

void group_add(struct group *group, const double value[PROCESS_VALUES])
{
	group->count++;
	for (size_t i = 0; i < PROCESS_VALUES; i++) {
		if (!isnan(value[i])) {
			group->sum[i] = isnan(group->sum[i]) ? value[i] : group->sum[i] + value[i];
		}
	}
}

void group_commit(struct group *group)
{
	if (group->count_metric) {
		metric_set(group->count_metric, group->count);
	}
	for (size_t i = 0; i < PROCESS_VALUES; i++) {
		if (!group->metric[i]) {
			continue;
		}
		if (isnan(group->sum[i])) {
			metric_set_null(group->metric[i],
				group->count == 0 ? "no process" : table[i].missing);
		} else {
			metric_set(group->metric[i], group->sum[i]);
		}
	}
}
