/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exposition.h: collects samples and writes them as Prometheus text (the text exposition format,
 * version 0.0.4): each family once, with HELP and TYPE, sorted by name and labels.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "proto/text.h"

enum { LABELS_SIZE = 1024 };

/* The labels of a sample: `char bytes[LABELS_SIZE]; struct text labels = TEXT_IN(bytes);` */
void exposition_label(struct text *labels, const char *name, const char *value);

struct sample;

struct exposition {
	struct sample *samples;
	size_t count, capacity;
	bool out_of_memory;
};

/* A family ending in "_total" is a counter, others are gauges. What is not finite is absent. `help`
 * is static. */
void exposition_add(struct exposition *exposition, const char *family, const char *help,
	const struct text *labels, double value);

/* A part of a summary: a quantile ("0.5"), or "sum" or "count". */
void exposition_add_summary(struct exposition *exposition, const char *family, const char *help,
	const struct text *labels, const char *part, double value);

/* Writes everything; of two samples with one name and the same labels only the first. -ENOMEM when
 * some could not be stored; then nothing is written. */
int exposition_write(struct exposition *exposition, FILE *out);
void exposition_finish(struct exposition *exposition);
