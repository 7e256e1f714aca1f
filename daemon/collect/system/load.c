/* Load averages from proc/loadavg: cpu/load1, cpu/load5, cpu/load15, bare numbers. No own keys. */
#include "daemon/collect/sched/registry.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/collect/lib/device_file.h"
#include "daemon/collect/lib/text.h"
#include "daemon/core/metrics/metrics.h"
#include "daemon/util/sysops.h"

struct load_state {
	struct device_file file;
	struct metric *metric[3];
};

static void load_close(void *state)
{
	struct load_state *load = state;
	if (load) {
		device_file_close(&load->file);
	}
	free(load);
}

static int load_open(
	const struct collector_context *ctx, void **state, char reason[SOURCE_REASON_SIZE])
{
	static const char *const names[] = {"cpu/load1", "cpu/load5", "cpu/load15"};
	struct load_state *load = mem_zalloc(sizeof(*load));
	if (!load) {
		return -ENOMEM;
	}
	char buf[128];
	int r = device_file_init(&load->file, true, "proc/loadavg");
	if (r == 0) {
		ssize_t n = device_file_read(&load->file, ctx->root, buf, sizeof(buf));
		r = n < 0 ? (int)n : 0;
	}
	if (r < 0) {
		snprintf(reason, SOURCE_REASON_SIZE, "/proc/loadavg: %s", errno_reason(r));
	}
	for (size_t i = 0; i < 3 && r == 0; i++) {
		r = metrics_add(
			ctx->core->metrics, ctx->source, names[i], UNIT_NONE, &load->metric[i]);
	}
	if (r < 0) {
		load_close(load);
		return r;
	}
	*state = load;
	return 0;
}

/* "0.52": digits, a dot, digits. strtod would also take "inf" and hexadecimal. */
static bool read_average(const char **cursor, double *ret)
{
	const char *p = *cursor;
	uint64_t whole, fraction;
	if (!text_u64(&p, &whole) || *p++ != '.') {
		return false;
	}
	const char *digits = p;
	if (*p < '0' || *p > '9' || !text_u64(&p, &fraction)) {
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

static int load_sample(const struct collector_context *ctx, void *state, uint64_t now_ns,
	char reason[SOURCE_REASON_SIZE])
{
	(void)now_ns;
	struct load_state *load = state;
	char buf[128];
	ssize_t n = device_file_read(&load->file, ctx->root, buf, sizeof(buf));
	if (n < 0) {
		snprintf(reason, SOURCE_REASON_SIZE, "/proc/loadavg: %s", errno_reason((int)n));
		return (int)n;
	}
	const char *p = buf;
	bool fine = true;
	for (size_t i = 0; i < 3; i++) {
		double value;
		fine = fine && read_average(&p, &value);
		if (fine) {
			metric_set(load->metric[i], value);
		} else {
			metric_set_null(load->metric[i], "malformed");
		}
	}
	return 0;
}

const struct collector_ops collector_load = {
	.name = "load",
	.open = load_open,
	.sample = load_sample,
	.close = load_close,
};
