/* SPDX-License-Identifier: Apache-2.0 */
/* load.c: reads load averages from proc/loadavg: cpu/load1, cpu/load5, cpu/load15, bare numbers. No
 * own keys. */
#include "daemon/collect/sched/registry.h"

#include "daemon/collect/lib/device_file.h"
#include "daemon/collect/lib/kernel_text.h"
#include "daemon/collect/lib/naming.h"
#include "daemon/core/metrics/metrics.h"

enum { AVERAGES = 3, TEXT_SIZE = 128 };

static const struct metric_row averages[AVERAGES] = {
	{"cpu/load1", UNIT_NONE}, {"cpu/load5", UNIT_NONE}, {"cpu/load15", UNIT_NONE}};

struct load {
	struct device_file file;
	struct metric *metric[AVERAGES];
};

static int load_open(const struct collector_context *ctx, void *state)
{
	char text[TEXT_SIZE];
	struct load *load = state;
	device_file_init(&load->file, true, "proc/loadavg");
	int r = device_file_read_or_fail(ctx, &load->file, text, sizeof(text));
	return r < 0 ? r : metric_rows_add(ctx, averages, AVERAGES, load->metric);
}

/* "0.52": digits, a dot, digits. strtod would also accept "inf" and hexadecimal. */
static bool read_average(const char **cursor, double *ret)
{
	const char *p = *cursor;
	uint64_t whole, fraction;
	if (!kernel_u64(&p, &whole) || *p++ != '.') {
		return false;
	}
	const char *digits = p;
	if (*p < '0' || *p > '9' || !kernel_u64(&p, &fraction)) {
		return false;
	}
	double value = (double)fraction;
	for (const char *d = digits; d < p; d++) {
		value /= 10;
	}
	*ret = (double)whole + value;
	*cursor = p;
	return true;
}

static int load_sample(const struct collector_context *ctx, void *state)
{
	struct load *load = state;
	char text[TEXT_SIZE];
	int r = device_file_read_or_fail(ctx, &load->file, text, sizeof(text));
	if (r < 0) {
		return r;
	}
	const char *p = text;
	bool fine = true;
	for (size_t i = 0; i < AVERAGES; i++) {
		double value = 0;
		fine = fine && read_average(&p, &value);
		metric_set_or_null(load->metric[i], value, fine ? NULL : "malformed");
	}
	return 0;
}

const struct collector_ops collector_load = {
	.name = "load",
	.state_size = sizeof(struct load),
	.open = load_open,
	.sample = load_sample,
	.close = device_file_close_state,
};
