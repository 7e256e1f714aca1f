/* SPDX-License-Identifier: Apache-2.0 */
/* pressure.c: reads pressure stall information: proc/pressure/{cpu,memory,io}, avg10 of the lines
 * some and full, in percent of time. Kernels before 5.13 write no full line for cpu: null. No own
 * keys. */
#include "daemon/collect/sched/registry.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "daemon/collect/lib/device_file.h"
#include "daemon/core/metrics/metrics.h"
#include "daemon/util/parse.h"

enum { RESOURCES = 3, LINES = 2 };

static const char *const resources[RESOURCES] = {"cpu", "memory", "io"};
static const char *const lines[LINES] = {"some", "full"};

struct pressure_state {
	struct device_file file[RESOURCES];
	struct metric *metric[RESOURCES][LINES];
};

static void pressure_close(void *state)
{
	struct pressure_state *pressure = state;
	for (size_t i = 0; i < RESOURCES; i++) {
		device_file_close(&pressure->file[i]);
	}
}

/* How many of the three can be read; the last error when none. EOPNOTSUPP is what kernels before
 * 5.16 answer when PSI is built in but off. */
static int probe(struct pressure_state *pressure, const struct root *root)
{
	int found = 0, error = -ENOENT;
	char buf[256];
	for (size_t i = 0; i < RESOURCES; i++) {
		ssize_t n = device_file_read(&pressure->file[i], root, buf, sizeof(buf));
		if (n >= 0) {
			found++;
		} else {
			error = (int)n;
		}
	}
	return found > 0 ? found : error;
}

static int pressure_open(const struct collector_context *ctx, void *state)
{
	struct pressure_state *pressure = state;
	for (size_t i = 0; i < RESOURCES; i++) {
		device_file_init(&pressure->file[i], true, "proc/pressure/%s", resources[i]);
	}
	int r = probe(pressure, ctx->root);
	if (r == -ENOENT || r == -EOPNOTSUPP || r == -ENOTDIR) {
		return collector_fail(ctx, -ENOENT,
			"no proc/pressure: the kernel's PSI is off (boot with psi=1) or not built "
			"in (CONFIG_PSI)");
	}
	if (r < 0) {
		return collector_fail(ctx, r, "/proc/pressure: %s", errno_reason(r));
	}
	for (size_t i = 0; i < RESOURCES && r >= 0; i++) {
		for (size_t j = 0; j < LINES && r >= 0; j++) {
			char name[PROTO_PATH_SIZE];
			snprintf(name, sizeof(name), "pressure/%s/%s", resources[i], lines[j]);
			r = metrics_add(ctx->core->metrics, ctx->source, name, UNIT_PERCENT,
				&pressure->metric[i][j]);
		}
	}
	return r < 0 ? r : 0;
}

/* "some avg10=3.10 avg60=…": the number, -ENODATA without the line, -EBADMSG. */
static int read_line(const char *text, const char *line, double *ret)
{
	const char *p = strstr(text, line);
	if (!p || (p != text && p[-1] != '\n')) {
		return -ENODATA;
	}
	p += strlen(line);
	if (strncmp(p, " avg10=", 7) != 0) {
		return -EBADMSG;
	}
	p += 7;
	char number[32];
	size_t length = strcspn(p, " \n");
	if (length >= sizeof(number)) {
		return -EBADMSG;
	}
	memcpy(number, p, length);
	number[length] = '\0';
	double value;
	if (parse_double(number, &value) < 0 || value < 0 || value > 100) {
		return -EBADMSG;
	}
	*ret = value;
	return 0;
}

static int pressure_sample(const struct collector_context *ctx, void *state)
{
	struct pressure_state *pressure = state;
	int error = 0;
	bool any = false;
	for (size_t i = 0; i < RESOURCES; i++) {
		char buf[256];
		ssize_t n = device_file_read(&pressure->file[i], ctx->root, buf, sizeof(buf));
		error = n < 0 ? (int)n : error;
		any = any || n >= 0;
		for (size_t j = 0; j < LINES; j++) {
			double value = 0;
			int r = n < 0 ? (int)n : read_line(buf, lines[j], &value);
			const char *why = r == 0	  ? NULL
					  : n < 0	  ? errno_reason(r)
					  : r == -ENODATA ? "not reported by the kernel"
							  : "malformed";
			metric_set_or_null(pressure->metric[i][j], value, why);
		}
	}
	return any ? 0 : collector_fail(ctx, error, "/proc/pressure: %s", errno_reason(error));
}

const struct collector_ops collector_pressure = {
	.name = "pressure",
	.state_size = sizeof(struct pressure_state),
	.open = pressure_open,
	.sample = pressure_sample,
	.close = pressure_close,
};
