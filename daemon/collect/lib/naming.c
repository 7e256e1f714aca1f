/* SPDX-License-Identifier: Apache-2.0 */
/* naming.c: turns names of devices into names of metrics. A metric that the source already owns is
 * free until this open claims it: that keeps names stable across a second open. */
#include "daemon/collect/lib/naming.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

int metric_rows_add(const struct collector_context *ctx, const struct metric_row *row, size_t count,
	struct metric **ret)
{
	int r = 0;
	for (size_t i = 0; i < count && r == 0; i++) {
		r = metrics_add(ctx->core->metrics, ctx->source, row[i].name, row[i].unit, &ret[i]);
	}
	return r;
}

void naming_init(struct naming *naming, struct metrics *metrics, struct source *source)
{
	memset(naming, 0, sizeof(*naming));
	naming->metrics = metrics;
	naming->source = source;
}

static bool is_claimed(const struct naming *naming, const struct metric *metric)
{
	return naming->claimed[metric->id / 64] >> (metric->id % 64) & 1;
}

static bool is_taken(void *ctx, const char *name)
{
	const struct naming *naming = ctx;
	char path[PROTO_PATH_SIZE];
	snprintf(path, sizeof(path), "%s/%s", naming->prefix, name);
	const struct metric *metric = metrics_find(naming->metrics, path);
	if (!metric || metric->source == naming->source) {
		return metric && is_claimed(naming, metric);
	}
	return !metric->yields && !metric->source->yields;
}

int naming_add(struct naming *naming, const char *prefix, const char *text, enum unit unit,
	struct metric **ret)
{
	char name[PROTO_NAME_SIZE];
	char path[PROTO_PATH_SIZE];
	naming->prefix = prefix;
	int r = proto_name_unique(text, strlen(text), is_taken, naming, name);
	if (r < 0) {
		return r;
	}
	snprintf(path, sizeof(path), "%s/%s", prefix, name);
	return naming_add_exact(naming, path, unit, ret);
}

int naming_add_exact(struct naming *naming, const char *path, enum unit unit, struct metric **ret)
{
	struct metric *metric;
	int r = metrics_add(naming->metrics, naming->source, path, unit, &metric);
	if (r < 0) {
		return r;
	}
	naming->claimed[metric->id / 64] |= UINT64_C(1) << (metric->id % 64);
	*ret = metric;
	return 0;
}

int naming_add_shared(
	struct naming *naming, const char *path, enum unit unit, bool yields, struct metric **ret)
{
	*ret = NULL;
	int r = naming_add_exact(naming, path, unit, ret);
	if (r < 0) {
		return r == -EEXIST || r == -ENOSPC ? 0 : r;
	}
	(*ret)->yields = yields;
	return 0;
}

int naming_finish(struct naming *naming, int r)
{
	struct metric *metric;
	for (size_t i = 0; r == 0 && (metric = metrics_of(naming->metrics, naming->source, i));) {
		if (is_claimed(naming, metric)) {
			i++;
		} else {
			metrics_retire(naming->metrics, metric);
		}
	}
	return r;
}
