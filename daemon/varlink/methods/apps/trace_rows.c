/* SPDX-License-Identifier: Apache-2.0 */
/* trace_rows.c: writes raw records as the columns of ExportTrace. */
#include "daemon/varlink/methods/apps/trace_rows.h"

#include <math.h>
#include <string.h>

#include "daemon/core/metrics/throttle.h"
#include "daemon/core/runs/relations.h"
#include "daemon/core/runs/runs.h"
#include "proto/json_write.h"

const char *trace_kind_name(enum proto_kind kind)
{
	static const char *const names[PROTO_KIND_COUNT] = {
		[PROTO_KIND_COMPLETE] = "complete",
		[PROTO_KIND_BEGIN] = "begin",
		[PROTO_KIND_END] = "end",
		[PROTO_KIND_FRAME] = "frame",
		[PROTO_KIND_MARK] = "mark",
		[PROTO_KIND_GAUGE] = "gauge",
		[PROTO_KIND_COUNTER] = "counter",
		[PROTO_KIND_ATTRIBUTE] = "attribute",
	};
	return kind < PROTO_KIND_COUNT ? names[kind] : NULL;
}

bool trace_lasts(const struct proto_record *record)
{
	return record->kind == PROTO_KIND_COMPLETE || record->kind == PROTO_KIND_FRAME;
}

/* The chunk's number of a name of the log, -1 for none. */
static int index_of(struct trace_batch *batch, uint16_t number)
{
	if (number >= TRACE_NAMES_MAX) {
		return -1;
	}
	if (batch->index[number] < 0) {
		batch->index[number] = (int16_t)batch->names;
		batch->name[batch->names++] = number;
	}
	return batch->index[number];
}

enum { WIDE = 24 /* 64 bits as decimals */ };

/* A record as the columns have it. */
struct cells {
	const char *kind;
	int name, of; /* -1 = none */
	uint32_t pid, process, thread;
	uint64_t mono_us, mono_ns, duration_us, duration_ns;
	char frame[WIDE], id[WIDE]; /* "" = none */
	double value;
	int64_t cpu_us; /* -1 = not measured */
	uint32_t depth;
	bool failed;
	int throttled; /* -1 = not known */
};

/* 64 bits as text; "" = has none. */
static void write_wide(char ret[WIDE], bool has, uint64_t value)
{
	char text[WIDE];
	size_t at = sizeof(text) - 1;
	text[at] = '\0';
	for (; has && (value > 0 || text[at] == '\0'); value /= 10) {
		text[--at] = (char)('0' + value % 10);
	}
	memcpy(ret, text + at, sizeof(text) - at);
}

static double value_of(const struct proto_record *record)
{
	double value = 0;
	if (record->kind == PROTO_KIND_MARK) {
		value = (double)record->value;
	} else if (record->kind == PROTO_KIND_GAUGE || record->kind == PROTO_KIND_COUNTER ||
		   record->kind == PROTO_KIND_ATTRIBUTE) {
		memcpy(&value, &record->value, sizeof(value));
	}
	return isfinite(value) ? value : 0;
}

static struct cells cells_of(const struct event *event)
{
	const struct proto_record *record = &event->record;
	const uint64_t duration_ns = trace_lasts(record) ? record->value : 0;
	const bool by_id = record->kind == PROTO_KIND_BEGIN || record->kind == PROTO_KIND_END;
	const bool timed =
		record->kind == PROTO_KIND_COMPLETE && record->cpu_us != PROTO_CPU_NOT_MEASURED;
	struct cells cells = {
		.kind = trace_kind_name((enum proto_kind)record->kind),
		.pid = event->pid,
		.process = event->process,
		.thread = event->slot,
		.mono_us = record->start_ns / 1000,
		.mono_ns = record->start_ns % 1000,
		.duration_us = duration_ns / 1000,
		.duration_ns = duration_ns % 1000,
		.value = value_of(record),
		.cpu_us = timed ? (int64_t)record->cpu_us : -1,
		.depth = record->flags >> PROTO_RECORD_DEPTH_SHIFT,
		.failed = record->flags & PROTO_RECORD_FAILED,
		.throttled = event->throttled == THROTTLE_UNKNOWN
				     ? -1
				     : event->throttled == THROTTLE_YES,
	};
	write_wide(cells.frame, record->frame != PROTO_NO_FRAME, record->frame);
	write_wide(cells.id, by_id, record->value);
	return cells;
}

/* In the order of the reply. */
#define FIELD(name) JSON_FIELD(struct cells, #name, name)
static const struct json_field columns[] = {FIELD(kind), FIELD(name), FIELD(of), FIELD(pid),
	FIELD(process), FIELD(thread), FIELD(mono_us), FIELD(mono_ns), FIELD(duration_us),
	FIELD(duration_ns), FIELD(frame), FIELD(id), FIELD(value), FIELD(cpu_us), FIELD(depth),
	FIELD(failed), FIELD(throttled)};
#undef FIELD

/* Names have their numbers in the order in which the columns use them. */
static void make_cells(struct trace_batch *batch, struct cells cells[TRACE_ROWS])
{
	for (size_t i = 0; i < batch->rows; i++) {
		cells[i] = cells_of(&batch->row[i]);
		const struct proto_record *record = &batch->row[i].record;
		const bool none = record->kind == PROTO_KIND_FRAME; /* its stage means nothing */
		cells[i].name = index_of(batch, none ? TRACE_NO_NAME : record->stage);
	}
	for (size_t i = 0; i < batch->rows; i++) {
		const struct proto_record *record = &batch->row[i].record;
		const bool has = record->kind == PROTO_KIND_ATTRIBUTE;
		cells[i].of = index_of(batch, has ? (uint16_t)record->cpu_us : TRACE_NO_NAME);
	}
}

struct labels {
	const char *unit, *category; /* "" = none */
};

/* Of the batch's names that have none yet and are stages of this run. How many still have none. */
static size_t find_labels(const struct trace_batch *batch, const struct trace_log *log,
	const struct app *run, struct labels ret[TRACE_NAMES_MAX])
{
	struct app_relations relations;
	size_t left = 0;
	app_relate(run, &relations);
	for (size_t i = 0; i < batch->names; i++) {
		const char *name = trace_log_name_of(log, batch->name[i]);
		for (size_t k = 0; !ret[i].unit && k < run->stages; k++) {
			if (strcmp(run->stage[k]->name, name) == 0) {
				ret[i].unit = relations.unit_name[k];
				ret[i].category = run->stage[k]->category;
			}
		}
		left += !ret[i].unit;
	}
	return left;
}

static void put_names(struct json *out, const struct trace_batch *batch, const struct app *app)
{
	static const char *const fields[] = {"names", "units", "categories"};
	struct labels labels[TRACE_NAMES_MAX] = {{NULL, NULL}};
	const struct app *run;
	for (int i = 0; (run = app_run(app, i)) && find_labels(batch, app->log, run, labels) > 0;) {
		i--;
	}
	for (size_t f = 0; f < 3; f++) {
		json_open(out, fields[f], '[');
		for (size_t i = 0; i < batch->names; i++) {
			const char *text = f == 0   ? trace_log_name_of(app->log, batch->name[i])
					   : f == 1 ? labels[i].unit
						    : labels[i].category;
			json_string(out, NULL, text ? text : "");
		}
		json_close(out, ']');
	}
}

void trace_rows_write(struct json *out, struct trace_batch *batch, const struct app *app)
{
	struct cells cells[TRACE_ROWS];
	batch->names = 0;
	memset(batch->index, 0xff, sizeof(batch->index));
	make_cells(batch, cells);
	json_open(out, "records", '{');
	for (size_t c = 0; c < sizeof(columns) / sizeof(columns[0]); c++) {
		const struct json_field cell = {
			.type = columns[c].type, .offset = columns[c].offset};
		json_open(out, columns[c].name, '[');
		for (size_t i = 0; i < batch->rows; i++) {
			json_fields(out, &cell, 1, &cells[i]);
		}
		json_close(out, ']');
	}
	json_close(out, '}');
	put_names(out, batch, app);
	batch->rows = 0;
}
