/* SPDX-License-Identifier: Apache-2.0 */
/* sessions.c: answers StartSession, StopSession, ListSessions, GetSession and DeleteSession. An
 * ordinary user's sessions are the user's own. */
#include "daemon/core/status/sessions.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "daemon/varlink/methods/list.h"
#include "daemon/varlink/methods/methods.h"

enum { NAME, APP, TAGS, WARMUP, FRAMES, SECONDS, ENVIRONMENT };
enum { STOP_ERROR = 1 };

static bool may_see(const struct session *row, uid_t uid, bool permitted)
{
	return permitted || row->uid == uid;
}

static enum api_result answer(struct api_call *call, struct api_session *request)
{
	const struct api_options *options = &call->api->options;
	request->uid = call->connection->uid;
	request->privileged = call_permitted(call);
	request->now_ns = call->now_ns;
	int r = options->session ? options->session(options->ctx, request) : -ENOTSUP;
	if (r == 0) {
		return API_LAST;
	}
	if (r == -ENOENT) {
		return reply_not_found(call->out, "session", request->name);
	}
	if (r == -ENOSPC) {
		return reply_limit(call->out, request->reason, request->limit);
	}
	if (r == -EPERM) {
		reply_error(call->out, PROTO_INTERFACE_NAME ".NotPermitted");
		json_string(call->out, "method", strrchr(call->method, '.') + 1);
		json_string(call->out, "group", call->api->admin_name);
		return API_LAST;
	}
	reply_error(call->out, PROTO_INTERFACE_NAME ".SessionFailed");
	json_string(call->out, "text", request->reason[0] ? request->reason : strerror(-r));
	return API_LAST;
}

static enum api_result answer_row(struct api_call *call, struct api_session *request)
{
	enum api_result result = answer(call, request);
	if (request->row) {
		session_write(call->out, "session", request->row);
	}
	return result;
}

/* 0; -EINVAL: a name or value is not clean, or is there twice; -ENOSPC; -ENOMEM. */
static int read_pairs(const struct value *value, struct session_tags *ret)
{
	const char *name, *text;
	int r = 0;
	for (size_t i = 0; r == 0 && pair_at(value, i, &name, &text); i++) {
		r = i == SESSION_TAGS ? -ENOSPC : session_tags_add(ret, name, text);
	}
	return r == -EEXIST ? -EINVAL : r;
}

enum api_result method_start_session(struct api_call *call)
{
	static const char *const names[] = {"tags", "environment"};
	const struct value *value = call->value, *pairs[] = {&value[TAGS], &value[ENVIRONMENT]};
	struct session_tags read[2] = {{NULL, 0, 0, 0}, {NULL, 0, 0, 0}};
	struct api_session request = {.action = API_SESSION_START,
		.name = value[NAME].string,
		.app = value[APP].present ? value[APP].string : NULL,
		.tags = &read[0],
		.environment = &read[1],
		.warmup = (uint32_t)value[WARMUP].integer,
		.frames = value[FRAMES].present ? value[FRAMES].number : (double)NAN,
		.seconds = value[SECONDS].present ? value[SECONDS].number : (double)NAN};
	if (!proto_name_valid(request.name)) {
		return reply_invalid_parameter(call->out, "name");
	}
	if (request.app && !proto_name_valid(request.app)) {
		return reply_invalid_parameter(call->out, "app");
	}
	size_t at = 0;
	int r = read_pairs(pairs[0], &read[0]);
	if (r == 0) {
		r = read_pairs(pairs[++at], &read[1]);
	}
	enum api_result result = r == -ENOSPC
					 ? reply_limit(call->out, "tags of a session", SESSION_TAGS)
				 : r < 0 ? reply_invalid_parameter(call->out, names[at])
					 : answer_row(call, &request);
	session_tags_clear(&read[0]);
	session_tags_clear(&read[1]);
	return result;
}

enum api_result method_stop_session(struct api_call *call)
{
	const struct value *value = call->value;
	struct api_session request = {.action = API_SESSION_STOP,
		.name = value[NAME].string,
		.error = value[STOP_ERROR].present ? value[STOP_ERROR].string : NULL};
	return answer_row(call, &request);
}

enum api_result method_delete_session(struct api_call *call)
{
	struct api_session request = {
		.action = API_SESSION_DELETE, .name = call->value[NAME].string};
	return answer(call, &request);
}

static bool session_item(struct list_cursor *cursor, struct json *out)
{
	const struct sessions *sessions = cursor->core->sessions;
	if (!sessions || cursor->first >= sessions->count) {
		return false;
	}
	const struct session *row = sessions->row[cursor->first++];
	const bool named = !cursor->pattern[0] || proto_query_match(cursor->pattern, row->name);
	if (named && may_see(row, cursor->uid, cursor->permitted)) {
		session_write(out, NULL, row);
	}
	return true;
}

static void session_tail(const struct list_cursor *cursor, struct json *out, bool last)
{
#define FIELD(name) JSON_FIELD(struct sessions, #name, name)
	static const struct json_field fields[] = {FIELD(dir), FIELD(bytes), FIELD(limit_bytes),
		FIELD(evictions), FIELD(expired), FIELD(hits), FIELD(misses),
		JSON_FIELD_AS(JSON_STRING_OPT, struct sessions, "baseline", baseline),
		JSON_FIELD_AS(JSON_STRING_OPT, struct sessions, "targets", targets)};
#undef FIELD
	const struct sessions *sessions = cursor->core->sessions;
	if (sessions && last) {
		JSON_FIELDS(out, fields, sessions);
	}
}

enum api_result method_list_sessions(struct api_call *call)
{
	static const struct list_ops ops = {
		.field = "sessions", .item = session_item, .tail = session_tail};
	struct list_cursor cursor;
	list_cursor_init(&cursor, call);
	if (call->value[NAME].present) {
		if (strlen(call->value[NAME].string) >= sizeof(cursor.pattern)) {
			return reply_invalid_parameter(call->out, "name");
		}
		strncpy(cursor.pattern, call->value[NAME].string, sizeof(cursor.pattern) - 1);
	}
	return list_start(call, &ops, &cursor);
}

enum api_result method_get_session(struct api_call *call)
{
	const struct sessions *sessions = call->core->sessions;
	const char *name = call->value[NAME].string;
	/* only what is in the table: no name of a path gets any further */
	const struct session *row = sessions ? sessions_find(sessions, name) : NULL;
	return row && may_see(row, call->connection->uid, call_permitted(call))
		       ? file_answer(call, "session", sessions->dir, row->name,
				 row->writing && row->bytes == 0)
		       : reply_not_found(call->out, "session", name);
}
