/* The columns of ExportTrace: one function a column, and the table of their names. */
#include "daemon/varlink/methods/apps/trace_rows.h"

#include <math.h>
#include <string.h>

#include "daemon/core/metrics/throttle_times.h"
#include "daemon/core/runs/runs.h"
#include "daemon/core/stages/relations.h"
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
		return NULL; /* not told */
	}
	return NULL;
}

bool trace_lasts(const struct proto_record *record)
{
	return record->kind == PROTO_KIND_COMPLETE || record->kind == PROTO_KIND_FRAME;
}

/* The chunk's number of a name of the log, -1 for none. */
static int place_of(struct trace_batch *batch, uint16_t number)
{
	if (number >= TRACE_NAMES_MAX) {
		return -1;
	}
	if (batch->place[number] < 0) {
		batch->place[number] = (int16_t)batch->names;
		batch->name[batch->names++] = number;
	}
	return batch->place[number];
}

typedef void column_writer(struct json *out, struct trace_batch *batch, const struct event *event);

static void put_kind(struct json *out, struct trace_batch *batch, const struct event *event)
{
	(void)batch;
	json_string(out, NULL, trace_kind_name((enum proto_kind)event->record.kind));
}

static void put_name(struct json *out, struct trace_batch *batch, const struct event *event)
{
	json_integer(out, NULL, place_of(batch, event->record.stage));
}

static void put_of(struct json *out, struct trace_batch *batch, const struct event *event)
{
	bool has = event->record.kind == PROTO_KIND_ATTRIBUTE;
	uint16_t number = has ? (uint16_t)event->record.cpu_us : TRACE_NO_NAME;
	json_integer(out, NULL, place_of(batch, number));
}

static void put_pid(struct json *out, struct trace_batch *batch, const struct event *event)
{
	(void)batch;
	json_unsigned(out, NULL, event->pid);
}

static void put_process(struct json *out, struct trace_batch *batch, const struct event *event)
{
	(void)batch;
	json_unsigned(out, NULL, event->process);
}

static void put_thread(struct json *out, struct trace_batch *batch, const struct event *event)
{
	(void)batch;
	json_unsigned(out, NULL, event->slot);
}

static void put_mono_us(struct json *out, struct trace_batch *batch, const struct event *event)
{
	(void)batch;
	json_unsigned(out, NULL, event->record.start_ns / 1000);
}

static void put_mono_ns(struct json *out, struct trace_batch *batch, const struct event *event)
{
	(void)batch;
	json_unsigned(out, NULL, event->record.start_ns % 1000);
}

static void put_duration_us(struct json *out, struct trace_batch *batch, const struct event *event)
{
	(void)batch;
	json_unsigned(out, NULL, trace_lasts(&event->record) ? event->record.value / 1000 : 0);
}

static void put_duration_ns(struct json *out, struct trace_batch *batch, const struct event *event)
{
	(void)batch;
	json_unsigned(out, NULL, trace_lasts(&event->record) ? event->record.value % 1000 : 0);
}

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

static void put_frame(struct json *out, struct trace_batch *batch, const struct event *event)
{
	(void)batch;
	put_wide(out, event->record.frame != PROTO_NO_FRAME, event->record.frame);
}

static void put_id(struct json *out, struct trace_batch *batch, const struct event *event)
{
	(void)batch;
	bool has = event->record.kind == PROTO_KIND_BEGIN || event->record.kind == PROTO_KIND_END;
	put_wide(out, has, event->record.value);
}

static void put_value(struct json *out, struct trace_batch *batch, const struct event *event)
{
	(void)batch;
	const struct proto_record *record = &event->record;
	double value = 0;
	if (record->kind == PROTO_KIND_MARK) {
		value = (double)record->value;
	} else if (record->kind == PROTO_KIND_GAUGE || record->kind == PROTO_KIND_COUNTER ||
		   record->kind == PROTO_KIND_ATTRIBUTE) {
		memcpy(&value, &record->value, sizeof(value));
	}
	json_number(out, NULL, isfinite(value) ? value : 0);
}

static void put_cpu_us(struct json *out, struct trace_batch *batch, const struct event *event)
{
	(void)batch;
	const struct proto_record *record = &event->record;
	bool has = record->kind == PROTO_KIND_COMPLETE && record->cpu_us != PROTO_CPU_NOT_MEASURED;
	json_integer(out, NULL, has ? (int64_t)record->cpu_us : -1);
}

static void put_depth(struct json *out, struct trace_batch *batch, const struct event *event)
{
	(void)batch;
	json_unsigned(out, NULL, event->record.flags >> PROTO_RECORD_DEPTH_SHIFT);
}

static void put_failed(struct json *out, struct trace_batch *batch, const struct event *event)
{
	(void)batch;
	json_bool(out, NULL, event->record.flags & PROTO_RECORD_FAILED);
}

static void put_throttled(struct json *out, struct trace_batch *batch, const struct event *event)
{
	(void)batch;
	enum throttle_value value = (enum throttle_value)event->throttled;
	json_integer(out, NULL, value == THROTTLE_UNKNOWN ? -1 : value == THROTTLE_YES);
}

static const struct {
	const char *name;
	column_writer *write;
} columns[] = {
	{"kind", put_kind},
	{"name", put_name},
	{"of", put_of},
	{"pid", put_pid},
	{"process", put_process},
	{"thread", put_thread},
	{"mono_us", put_mono_us},
	{"mono_ns", put_mono_ns},
	{"duration_us", put_duration_us},
	{"duration_ns", put_duration_ns},
	{"frame", put_frame},
	{"id", put_id},
	{"value", put_value},
	{"cpu_us", put_cpu_us},
	{"depth", put_depth},
	{"failed", put_failed},
	{"throttled", put_throttled},
};

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
	memset(batch->place, 0xff, sizeof(batch->place));
	json_open(out, "records", '{');
	for (size_t c = 0; c < sizeof(columns) / sizeof(columns[0]); c++) {
		json_open(out, columns[c].name, '[');
		for (size_t i = 0; i < batch->rows; i++) {
			columns[c].write(out, batch, &batch->row[i]);
		}
		json_close(out, ']');
	}
	json_close(out, '}');
	put_names(out, batch, app);
	batch->rows = 0;
}
