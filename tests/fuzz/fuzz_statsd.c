/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libFuzzer target: whatever a datagram holds, each line is told once, what is told lies inside the
 * datagram, and numbers are finite.
 */
#include "proto/statsd/statsd.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *begin, *end;

static void check_text(struct statsd_text text)
{
	if (text.at &&
		(text.at < begin || text.at > end || text.length > (size_t)(end - text.at))) {
		abort();
	}
}

static void check_line(struct statsd_line *line)
{
	size_t values = 1;
	check_text(line->name);
	check_text(line->app);
	check_text(line->unit);
	check_text(line->category);
	if (line->name.length == 0 || line->name.length > STATSD_NAME_MAX ||
		!(line->rate > 0 && line->rate <= 1) || !isfinite(line->value)) {
		abort();
	}
	while (statsd_next_value(line)) {
		values++;
		if (!isfinite(line->value)) {
			abort();
		}
	}
	if (values > STATSD_VALUES_MAX || line->values.length != 0) {
		abort(); /* every value was looked at before, so none may stop in the middle */
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct statsd_reader reader;
	enum statsd_result result;
	size_t results = 0, lines = 1;
	begin = (const char *)data;
	end = begin + size;
	for (size_t i = 0; i < size; i++) {
		lines += data[i] == '\n';
	}
	statsd_reader_init(&reader, begin, size);
	while ((result = statsd_next(&reader)) != STATSD_END) {
		results++;
		if (result == STATSD_LINE) {
			check_line(&reader.line);
		} else if (!reader.reason) {
			abort();
		}
	}
	if (results > lines || reader.at != end) {
		abort();
	}
	return 0;
}
