/* SPDX-License-Identifier: Apache-2.0 */
/*
 * metrics.h: declares what the files of `metrics` share. Families are a JSON object, in the order
 * of the output: {"name": {"help", "type", "samples": {"_sum{labels}": value}}}.
 */
#pragma once

#include <cjson/cJSON.h>

#include "proto/text.h"

enum { LABELS_SIZE = 1024 };

/* The labels of a sample: `char bytes[LABELS_SIZE]; struct text labels = TEXT_IN(bytes);` */
void metrics_label(struct text *labels, const char *name, const char *value);

/* Adds a sample to a family, unless it is not finite or is there already. The part of a summary is
 * a quantile ("0.5"), or "sum" or "count"; NULL: a counter if the name ends in "_total", else a
 * gauge. Labels may be NULL. */
void metrics_add(cJSON *families, const char *family, const char *help, const struct text *labels,
	const char *part, double value);

/* Adds a metric of ListMetrics in base units; nothing when it has no current value, or is part of a
 * family that is made of another reply. */
void metrics_add_metric(cJSON *families, const cJSON *metric);
