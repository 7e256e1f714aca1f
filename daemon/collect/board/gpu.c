/* Load and clock of the GPU, of NPUs and other engines, and of the memory controller:
 * gpu/utilization, gpu/frequency, engine/<name>/utilization, clock/<name>, emc/utilization. Which
 * files those are is found by gpu_devices.c. No own keys. */
#include "daemon/collect/sched/registry.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/collect/board/gpu_devices.h"
#include "daemon/util/sysops.h"

#define HERTZ_MAX 1e12
#define NOTHING "no load or clock of a GPU in /sys/class/devfreq, /sys/devices, /sys/class/drm"

static void gpu_close(void *state)
{
	struct gpu_values *values = state;
	for (size_t i = 0; values && i < values->count; i++) {
		device_file_close(&values->value[i].file);
	}
	free(values);
}

static int gpu_probe(
	const struct collector_context *ctx, void **state, char reason[SOURCE_REASON_SIZE])
{
	struct gpu_values *values = mem_zalloc(sizeof(*values));
	if (!values) {
		return -ENOMEM;
	}
	int r = gpu_devices_probe(values, ctx->root);
	if (r == 0) {
		snprintf(reason, SOURCE_REASON_SIZE, NOTHING);
		r = -ENOENT;
	}
	if (r < 0) {
		gpu_close(values);
		return r;
	}
	*state = values;
	return 0;
}

static int gpu_open(
	const struct collector_context *ctx, void **state, char reason[SOURCE_REASON_SIZE])
{
	struct gpu_values *values = *state;
	struct naming naming;
	naming_init(&naming, ctx->core->metrics, ctx->source);
	int r = gpu_devices_name(values, &naming);
	if (r == 0 && values->count == 0) {
		snprintf(reason, SOURCE_REASON_SIZE, NOTHING);
		r = -ENOENT;
	}
	if (r == 0) {
		naming_retire_rest(&naming);
	}
	return r;
}

/* On a worker: what a gated GPU's driver does in a read is not known. */
static int gpu_fetch(const struct collector_context *ctx, void *state)
{
	struct gpu_values *values = state;
	for (size_t i = 0; i < values->count; i++) {
		struct gpu_value *value = &values->value[i];
		if (value->activity || value->factor > 0) {
			value->result =
				device_file_read_i64(&value->file, ctx->root, &value->number);
		} else {
			ssize_t n = device_file_read(
				&value->file, ctx->root, value->text, sizeof(value->text));
			value->result = n < 0 ? (int)n : 0;
			if (n > 0 && strlen(value->text) != (size_t)n) {
				value->result = -EBADMSG; /* a NUL within */
			}
		}
	}
	return 0;
}

static void sample_load(const struct gpu_value *value)
{
	double percent;
	int r = value->result;
	r = r < 0 ? r : gpu_load_parse(value->text, value->scale, &percent);
	if (r < 0) {
		metric_set_null(value->metric, device_file_reason(r));
	} else {
		metric_set(value->metric, percent);
	}
}

static void sample_clock(const struct gpu_value *value)
{
	double hertz = value->result < 0 ? 0 : (double)value->number * value->factor;
	if (value->result < 0) {
		metric_set_null(value->metric, device_file_reason(value->result));
	} else if (hertz < 0 || hertz > HERTZ_MAX) {
		metric_set_null(value->metric, "out of range");
	} else {
		metric_set(value->metric, hertz);
	}
}

/* mc_all is the clock, in kHz, that the present traffic would fill. */
static void sample_activity(const struct gpu_value *value, struct metrics *metrics)
{
	const struct metric *clock = metrics_find(metrics, "clock/emc");
	if (value->result < 0) {
		metric_set_null(value->metric, device_file_reason(value->result));
	} else if (!clock || !(clock->value > 0)) {
		metric_set_null(value->metric, "no clock to relate to");
	} else if (value->number < 0) {
		metric_set_null(value->metric, "out of range");
	} else {
		metric_set(value->metric, fmin(100, (double)value->number * 1e5 / clock->value));
	}
}

static int gpu_sample(const struct collector_context *ctx, void *state, uint64_t now_ns,
	char reason[SOURCE_REASON_SIZE])
{
	(void)now_ns;
	(void)reason;
	struct gpu_values *values = state;
	for (size_t i = 0; i < values->count; i++) {
		const struct gpu_value *value = &values->value[i];
		if (value->activity) {
			sample_activity(value, ctx->core->metrics);
		} else if (value->factor > 0) {
			sample_clock(value);
		} else {
			sample_load(value);
		}
	}
	return 0;
}

const struct collector_ops collector_gpu = {
	.name = "gpu",
	.probe = gpu_probe,
	.open = gpu_open,
	.fetch = gpu_fetch,
	.sample = gpu_sample,
	.close = gpu_close,
};
