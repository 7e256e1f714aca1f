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
	switch (kind) {
	case PROTO_KIND_COMPLETE:
		return "complete";
	case PROTO_KIND_BEGIN:
		return "begin";
	case PROTO_KIND_END:
		return "end";
	case PROTO_KIND_FRAME:
		return "frame";
	case PROTO_KIND_MARK:
		return "mark";
	case PROTO_KIND_GAUGE:
		return "gauge";
	case PROTO_KIND_COUNTER:
		return "counter";
	case PROTO_KIND_ATTRIBUTE:
		return "attribute";
	case PROTO_KIND_NONE:
	case PROTO_KIND_CONTEXT:
	case PROTO_KIND_MARK_MEMORY:
	case PROTO_KIND_COST:
	case PROTO_KIND_DEADLINE:
	case PROTO_KIND_COUNT:
		return NULL; /* not exported */
	}
	return NULL;
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

/* In the order of the reply. */
enum column {
	COLUMN_KIND,
	COLUMN_NAME,
	COLUMN_OF,
	COLUMN_PID,
	COLUMN_PROCESS,
	COLUMN_THREAD,
	COLUMN_MONO_US,
	COLUMN_MONO_NS,
	COLUMN_DURATION_US,
	COLUMN_DURATION_NS,
	COLUMN_FRAME,
	COLUMN_ID,
	COLUMN_VALUE,
	COLUMN_CPU_US,
	COLUMN_DEPTH,
	COLUMN_FAILED,
	COLUMN_THROTTLED,
	COLUMNS
};

static const char *const columns[COLUMNS] = {"kind", "name", "of", "pid", "process", "thread",
	"mono_us", "mono_ns", "duration_us", "duration_ns", "frame", "id", "value", "cpu_us",
	"depth", "failed", "throttled"};

/* 64 bits as text; "" = has none. */
static void put_wide(struct json *out, bool has, uint64_t value)
{
	char text[24];
	size_t at = sizeof(text) - 1;
	text[at] = '\0';
	for (; has && (value > 0 || text[at] == '\0'); value /= 10) {
		text[--at] = (char)('0' + value % 10);
	}
	json_string(out, NULL, text + at);
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

static int64_t cpu_of(const struct proto_record *record)
{
	bool has = record->kind == PROTO_KIND_COMPLETE && record->cpu_us != PROTO_CPU_NOT_MEASURED;
	return has ? (int64_t)record->cpu_us : -1;
}

/* Most are integers. */
static void put_cell(
	struct json *out, enum column column, struct trace_batch *batch, const struct event *event)
{
	const struct proto_record *record = &event->record;
	const uint64_t duration_ns = trace_lasts(record) ? record->value : 0;
	const bool by_id = record->kind == PROTO_KIND_BEGIN || record->kind == PROTO_KIND_END;
	const uint16_t of =
		record->kind == PROTO_KIND_ATTRIBUTE ? (uint16_t)record->cpu_us : TRACE_NO_NAME;
	const enum throttle_value throttled = (enum throttle_value)event->throttled;
	int64_t value = 0;
	switch (column) {
	case COLUMN_KIND:
		json_string(out, NULL, trace_kind_name((enum proto_kind)record->kind));
		return;
	case COLUMN_FRAME:
		put_wide(out, record->frame != PROTO_NO_FRAME, record->frame);
		return;
	case COLUMN_ID:
		put_wide(out, by_id, record->value);
		return;
	case COLUMN_VALUE:
		json_number(out, NULL, value_of(record));
		return;
	case COLUMN_FAILED:
		json_bool(out, NULL, record->flags & PROTO_RECORD_FAILED);
		return;
	case COLUMN_NAME:
		value = index_of(batch, record->stage);
		break;
	case COLUMN_OF:
		value = index_of(batch, of);
		break;
	case COLUMN_PID:
		value = event->pid;
		break;
	case COLUMN_PROCESS:
		value = event->process;
		break;
	case COLUMN_THREAD:
		value = event->slot;
		break;
	case COLUMN_MONO_US:
		value = (int64_t)(record->start_ns / 1000);
		break;
	case COLUMN_MONO_NS:
		value = (int64_t)(record->start_ns % 1000);
		break;
	case COLUMN_DURATION_US:
		value = (int64_t)(duration_ns / 1000);
		break;
	case COLUMN_DURATION_NS:
		value = (int64_t)(duration_ns % 1000);
		break;
	case COLUMN_CPU_US:
		value = cpu_of(record);
		break;
	case COLUMN_DEPTH:
		value = record->flags >> PROTO_RECORD_DEPTH_SHIFT;
		break;
	case COLUMN_THROTTLED:
		value = throttled == THROTTLE_UNKNOWN ? -1 : throttled == THROTTLE_YES;
		break;
	case COLUMNS:
		return;
	}
	json_integer(out, NULL, value);
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
	batch->names = 0;
	memset(batch->index, 0xff, sizeof(batch->index));
	json_open(out, "records", '{');
	for (enum column c = 0; c < COLUMNS; c++) {
		json_open(out, columns[c], '[');
		for (size_t i = 0; i < batch->rows; i++) {
			put_cell(out, c, batch, &batch->row[i]);
		}
		json_close(out, ']');
	}
	json_close(out, '}');
	put_names(out, batch, app);
	batch->rows = 0;
}
