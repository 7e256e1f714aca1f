/* SPDX-License-Identifier: Apache-2.0 */
/* gauge.c: reads tables of device files and sets one metric for each. The probe and the reads run
 * on a worker of the framework, the rest on the loop; a value that cannot be read is null alone. */
#include "daemon/collect/lib/gauge.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/util/sysops.h"

enum { TEXT_SIZE = 128 };

void gauges_init(struct gauges *gauges, const struct root *root, size_t size, size_t max)
{
	memset(gauges, 0, sizeof(*gauges));
	gauges->root = root;
	gauges->size = size;
	gauges->max = max;
	gauges->kept = GAUGES_KEPT;
}

void gauges_finish(struct gauges *gauges)
{
	for (size_t i = 0; i < gauges->count; i++) {
		struct gauge *gauge = gauges_at(gauges, i);
		device_file_close(&gauge->file);
		device_file_close(&gauge->factor);
	}
	free(gauges->element);
	gauges->element = NULL;
	gauges->count = gauges->capacity = 0;
}

static bool grow(struct gauges *gauges)
{
	size_t capacity = gauges->capacity > 0 ? 2 * gauges->capacity : 16;
	void *element = mem_calloc(capacity, gauges->size);
	if (!element) {
		gauges->no_memory = true;
		return false;
	}
	if (gauges->count > 0) {
		memcpy(element, gauges->element, gauges->count * gauges->size);
	}
	free(gauges->element);
	gauges->element = element;
	gauges->capacity = capacity;
	return true;
}

static void *add(
	struct gauges *gauges, const struct gauge_kind *kind, const char *name, const char *path)
{
	if ((gauges->max > 0 && gauges->count == gauges->max) ||
		(gauges->count == gauges->capacity && !grow(gauges))) {
		return NULL;
	}
	struct gauge *gauge = gauges_at(gauges, gauges->count);
	gauge->kind = kind;
	gauge->result = -ENODATA;
	(void)device_file_init(&gauge->file, gauges->count < gauges->kept, "%s", path);
	(void)device_file_init(&gauge->factor, false, "%s", "");
	snprintf(gauge->name, sizeof(gauge->name), "%s", name);
	gauges->count++;
	return gauge;
}

void *gauges_add(struct gauges *gauges, const struct gauge_kind *kind, const char *name,
	const char *format, ...)
{
	char path[2 * DEVICE_FILE_PATH];
	va_list ap;
	va_start(ap, format);
	vsnprintf(path, sizeof(path), format, ap);
	va_end(ap);
	return add(gauges, kind, name, path);
}

void *gauges_add_existing(struct gauges *gauges, const struct gauge_kind *kind, const char *name,
	const char *format, ...)
{
	char path[2 * DEVICE_FILE_PATH];
	va_list ap;
	va_start(ap, format);
	vsnprintf(path, sizeof(path), format, ap);
	va_end(ap);
	return device_exists(gauges->root, "%s", path) ? add(gauges, kind, name, path) : NULL;
}

bool gauges_may_have(struct gauges *gauges, const struct root *root, const char *folder,
	const char *const *prefixes)
{
	int r = device_has(root, folder, prefixes);
	gauges->no_memory = gauges->no_memory || r == -ENOMEM;
	return r > 0;
}

int gauges_name(struct gauges *gauges, struct naming *naming)
{
	size_t count = gauges->count;
	gauges->count = 0;
	for (size_t i = 0; i < count; i++) {
		struct gauge *gauge = gauges_at(gauges, i);
		const struct gauge_kind *kind = gauge->kind;
		if (kind->is_wanted && !kind->is_wanted(naming)) {
			continue; /* the file was never opened */
		}
		int r = kind->prefix
				? naming_add(naming, kind->prefix, gauge->name, kind->unit,
					  &gauge->metric)
				: naming_add_exact(naming, gauge->name, kind->unit, &gauge->metric);
		if (r == -ENOSPC || r == -EEXIST) {
			continue;
		}
		if (r < 0) {
			return r;
		}
		if (kind->origin) {
			gauge->metric->origin = kind->origin;
		}
		memmove(gauges_at(gauges, gauges->count++), gauge, gauges->size);
	}
	return 0;
}

static int read_text(struct gauge *gauge, const struct root *root)
{
	char text[TEXT_SIZE];
	ssize_t n = device_file_read(&gauge->file, root, text, sizeof(text));
	if (n < 0) {
		return (int)n;
	}
	/* The kernel writes no NUL into a text. */
	return strlen(text) == (size_t)n ? gauge->kind->parse(text, &gauge->number) : -EBADMSG;
}

static int read_gauge(struct gauge *gauge, const struct root *root)
{
	long long number, factor = 1;
	if (gauge->kind->parse) {
		return read_text(gauge, root);
	}
	int r = device_file_read_i64(&gauge->file, root, &number);
	if (r == 0 && gauge->factor.path[0]) {
		r = device_file_read_i64(&gauge->factor, root, &factor);
	}
	if (r == 0) {
		gauge->number = (double)number * (double)factor;
	}
	return r;
}

void gauges_read(struct gauges *gauges, const struct root *root)
{
	for (size_t i = 0; i < gauges->count; i++) {
		struct gauge *gauge = gauges_at(gauges, i);
		gauge->result = read_gauge(gauge, root);
	}
}

const char *gauge_value(const struct gauge *gauge, double *ret)
{
	const struct gauge_kind *kind = gauge->kind;
	if (gauge->result < 0) {
		return kind->reason ? kind->reason(gauge->result)
				    : device_file_reason(gauge->result);
	}
	*ret = gauge->number * (kind->scale != 0 ? kind->scale : 1) /
	       (kind->divisor != 0 ? kind->divisor : 1);
	if (*ret < kind->min && kind->below) {
		return kind->below;
	}
	return *ret < kind->min || *ret > kind->max ? "out of range" : NULL;
}

bool gauge_set(const struct gauge *gauge)
{
	double value = 0;
	const char *reason = gauge_value(gauge, &value);
	metric_set_or_null(gauge->metric, value, reason);
	return !reason;
}

int gauges_found(
	const struct collector_context *ctx, const struct gauges *gauges, int r, const char *absent)
{
	if (r < 0 && r != -ENOENT) {
		return r;
	}
	if (r >= 0 && gauges->no_memory) {
		return -ENOMEM;
	}
	bool found = r >= 0 && gauges->count > 0;
	return found ? 0 : collector_fail(ctx, -ENOENT, "%s", absent);
}

int gauges_open(const struct collector_context *ctx, void *state)
{
	struct naming naming;
	naming_init(&naming, ctx->core->metrics, ctx->source);
	return naming_finish(&naming, gauges_name(state, &naming));
}

int gauges_fetch(const struct collector_context *ctx, void *state)
{
	gauges_read(state, ctx->root);
	return 0;
}

int gauges_sample(const struct collector_context *ctx, void *state)
{
	(void)ctx;
	const struct gauges *gauges = state;
	for (size_t i = 0; i < gauges->count; i++) {
		(void)gauge_set(gauges_at(gauges, i));
	}
	return 0;
}

void gauges_close(void *state)
{
	gauges_finish(state);
}
