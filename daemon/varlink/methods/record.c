/* SPDX-License-Identifier: Apache-2.0 */
/* record.c: answers RecordNow, ListRecordings and GetRecording. The list is core's. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "daemon/core/status/recordings.h"
#include "daemon/varlink/methods/list.h"
#include "daemon/varlink/methods/methods.h"

enum {
	ARG_LABEL = 0,
	ARG_BEFORE,
	ARG_AFTER,
	LABEL_MAX = 96,
};

static double seconds_of(const struct value *value)
{
	return value->present ? value->number : (double)NAN;
}

enum api_result method_record_now(struct api_call *call)
{
	const struct api_options *options = &call->api->options;
	const struct value *value = call->value;
	if (value[ARG_LABEL].present && strlen(value[ARG_LABEL].string) > LABEL_MAX) {
		return reply_invalid_parameter(call->out, "label");
	}
	struct api_record record = {
		.label = value[ARG_LABEL].present ? value[ARG_LABEL].string : NULL,
		.before_s = seconds_of(&value[ARG_BEFORE]),
		.after_s = seconds_of(&value[ARG_AFTER]),
		.now_ns = call->now_ns,
	};
	int r = options->record ? options->record(options->ctx, &record) : -ENOTSUP;
	if (r == -ENOSPC) {
		return reply_limit(call->out, "recordings in 24 hours", RECORDINGS_A_DAY);
	}
	if (r < 0) {
		reply_error(call->out, PROTO_INTERFACE_NAME ".RecordFailed");
		json_string(call->out, "text", record.reason[0] ? record.reason : strerror(-r));
		return API_LAST;
	}
	json_string(call->out, "name", record.name);
	json_bool(call->out, "joined", record.joined);
	return API_LAST;
}

static bool recording_item(struct list_cursor *cursor, struct json *out)
{
#define FIELD(name) JSON_FIELD(struct recording, #name, name)
	static const struct json_field fields[] = {FIELD(name), FIELD(time_us), FIELD(trigger),
		FIELD(triggers), FIELD(span_s), FIELD(before_s), FIELD(after_s), FIELD(bytes),
		FIELD(records), FIELD(lost),
		JSON_FIELD_AS(JSON_STRING_OPT, struct recording, "cut", cut)};
#undef FIELD
	const struct recordings *recordings = cursor->core->recordings;
	if (!recordings || cursor->first >= recordings->count) {
		return false;
	}
	const struct recording *row = &recordings->row[cursor->first++];
	json_open(out, NULL, '{');
	JSON_FIELDS(out, fields, row);
	json_close(out, '}');
	return true;
}

static void recording_tail(const struct list_cursor *cursor, struct json *out, bool last)
{
#define FIELD(name) JSON_FIELD(struct recordings, #name, name)
#define OPT(name) JSON_FIELD_AS(JSON_STRING_OPT, struct recordings, #name, name)
	static const struct json_field fields[] = {
		FIELD(dir), OPT(open), FIELD(refused), FIELD(failed), OPT(reason)};
#undef FIELD
#undef OPT
	const struct recordings *recordings = cursor->core->recordings;
	if (!recordings || !last) {
		return;
	}
	JSON_FIELDS(out, fields, recordings);
}

enum api_result method_list_recordings(struct api_call *call)
{
	static const struct list_ops ops = {
		.field = "recordings", .item = recording_item, .tail = recording_tail};
	return list_answer(call, &ops);
}

enum api_result method_get_recording(struct api_call *call)
{
	const struct recordings *recordings = call->core->recordings;
	const char *name = call->value[0].string;
	/* only what is in the table: no name of a path gets any further */
	const struct recording *row = recordings ? recordings_find(recordings, name) : NULL;
	return row ? file_answer(call, "recording", recordings->dir, row->name, false)
		   : reply_not_found(call->out, "recording", name);
}
