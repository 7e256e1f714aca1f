/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gauge.h: exposes one number of a device file as one metric, with a scale, a range and a reason
 * for null. A collector of such files is a table of gauges: its probe names the files, and its
 * other ops are the functions at the end of this header (thermal/fan.c is the shortest example). A
 * collector that needs more puts `struct gauges` first in its state and `struct gauge` first in its
 * elements.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "daemon/collect/lib/device_file.h"
#include "daemon/collect/lib/naming.h"
#include "daemon/collect/sched/collector.h"

enum {
	GAUGE_NAME_SIZE = 128,
	GAUGES_KEPT = 128,
};

/* What the gauges of one sort have in common; static. */
struct gauge_kind {
	const char *prefix; /* the metric is prefix/<cleaned name>; NULL = the name is its path */
	enum unit unit;
	double scale, divisor; /* value = number * scale / divisor; 0 = 1 */
	double min, max;       /* of the value, both included; beyond it is "out of range" */
	const char *below;     /* the reason below min, where that has a meaning */
	const char *origin;    /* of the metric; NULL = none */
	/* For a file of more than an integer: its number, or -errno. */
	int (*parse)(const char *text, double *ret);
	const char *(*reason)(int error); /* of a failed read; NULL = device_file_reason */
	bool (*is_wanted)(const struct naming *naming); /* asked by open; NULL = always */
};

struct gauge {
	const struct gauge_kind *kind;
	struct device_file file;
	struct device_file factor; /* multiplies the number (current by voltage); path "" = none */
	char name[GAUGE_NAME_SIZE];
	bool counts;   /* for the collector: part of its total or maximum */
	int result;    /* of the last read: 0 or -errno */
	double number; /* that it gave */
	struct metric *metric;
};

struct gauges {
	const struct root *root; /* during the probe */
	size_t count, capacity, max;
	size_t kept; /* descriptors stay open; further files are opened for each read */
	size_t size; /* of an element, which begins with its gauge */
	void *element;
	bool no_memory; /* an element was refused for want of memory */
};

/* max: elements; 0 = no limit. Finish with gauges_finish. */
void gauges_init(struct gauges *gauges, const struct root *root, size_t size, size_t max);
void gauges_finish(struct gauges *gauges); /* idempotent; zeroed storage is fine */

/* The element, zeroed but for its gauge; valid until the next one is added. NULL when the table is
 * full or memory is short. The format names the file; no file is touched. */
__attribute__((format(printf, 4, 5))) void *gauges_add(struct gauges *gauges,
	const struct gauge_kind *kind, const char *name, const char *format, ...);
/* The same, NULL when the machine has no such file. */
__attribute__((format(printf, 4, 5))) void *gauges_add_existing(struct gauges *gauges,
	const struct gauge_kind *kind, const char *name, const char *format, ...);

/* Whether the folder has files that start with one of the prefixes, as of device_has(). */
bool gauges_may_have(struct gauges *gauges, const struct root *root, const char *folder,
	const char *const *prefixes);

/* Adds the metrics. An element is dropped when there is no capacity for its metric, or another
 * source has it. 0 or -ENOMEM, -EINVAL. */
int gauges_name(struct gauges *gauges, struct naming *naming);

/* Reads each file once; may hang, sets no metric. */
void gauges_read(struct gauges *gauges, const struct root *root);

/* What was read last: NULL and the value, or the reason why there is none. */
const char *gauge_value(const struct gauge *gauge, double *ret);
/* Sets the metric to what was read last, or to null with a reason. Whether there is a value. */
bool gauge_set(const struct gauge *gauge);

static inline void *gauges_at(const struct gauges *gauges, size_t index)
{
	return (char *)gauges->element + index * gauges->size;
}

/* The result of a collector's probe: r where the search failed; -ENOMEM where memory was short;
 * -ENOENT, and the reason, where nothing was found or r is -ENOENT. */
int gauges_found(const struct collector_context *ctx, const struct gauges *gauges, int r,
	const char *absent);

/* open, fetch, sample and close of a collector's ops. */
int gauges_open(const struct collector_context *ctx, void *state);
int gauges_fetch(const struct collector_context *ctx, void *state);
int gauges_sample(const struct collector_context *ctx, void *state);
void gauges_close(void *state);
