/* SPDX-License-Identifier: Apache-2.0 */
/* session_row.c: writes the row of a session as JSON, and reads it back from the first or last line
 * of its file. Only lines of our own are read: they are scanned, not parsed. */
#include "daemon/core/status/sessions.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "proto/json_write.h"

static void write_tags(struct json *out, const char *name, const struct session_tags *tags)
{
	const char *at = tags->text;
	json_open(out, name, '[');
	for (size_t i = 0; i < tags->count; i++) {
		json_open(out, NULL, '{');
		json_string(out, "name", at);
		at += strlen(at) + 1;
		json_string(out, "value", at);
		at += strlen(at) + 1;
		json_close(out, '}');
	}
	json_close(out, ']');
}

#define FIELD(name) JSON_FIELD(struct session, #name, name)
#define OPT(type, name) JSON_FIELD_AS(type, struct session, #name, name)

/* Between the state and the tags. */
static const struct json_field fields[] = {FIELD(warmup), OPT(JSON_WHOLE_OPT, frames),
	FIELD(seconds), FIELD(started_us), OPT(JSON_WHOLE_OPT, measured_us),
	OPT(JSON_WHOLE_OPT, ended_us), FIELD(frames_done), FIELD(elapsed_s), FIELD(left_s),
	FIELD(recent_mean_ms), OPT(JSON_STRING_OPT, error), FIELD(bytes), FIELD(kept_share),
	FIELD(lost), OPT(JSON_STRING_OPT, cut), FIELD(automatic)};

#undef FIELD
#undef OPT

void session_write(struct json *out, const struct session *session)
{
	json_string(out, "name", session->name);
	json_string_opt(out, "app", session->app);
	json_unsigned(out, "uid", session->uid);
	json_string(out, "state", session_state_name(session->state));
	JSON_FIELDS(out, fields, session);
	write_tags(out, "tags", &session->tags);
	write_tags(out, "environment", &session->environment);
}

void session_write_as(struct json *out, const char *name, const struct session *session)
{
	json_open(out, name, '{');
	session_write(out, session);
	json_close(out, '}');
}

static double read_number(const char *line, const char *name)
{
	const char *at = json_member(line, name);
	return at ? strtod(at, NULL) : (double)NAN;
}

static uint64_t read_whole(const char *line, const char *name)
{
	const char *at = json_member(line, name);
	return at ? strtoull(at, NULL, 10) : 0;
}

/* The text in quotes at `at`; what follows it, or NULL. */
static const char *read_quoted(const char *at, char *ret, size_t size)
{
	size_t length = 0;
	ret[0] = '\0';
	if (!at || *at++ != '"') {
		return NULL;
	}
	while (*at && *at != '"') {
		at += *at == '\\' && at[1];
		if (length + 1 < size) {
			ret[length++] = *at;
		}
		at++;
	}
	ret[length] = '\0';
	return *at == '"' ? at + 1 : NULL;
}

static void read_text(const char *line, const char *name, char *ret, size_t size)
{
	read_quoted(json_member(line, name), ret, size);
}

static int read_tags(const char *line, const char *name, struct session_tags *ret)
{
	char key[PROTO_NAME_SIZE], value[SESSION_TAG_VALUE + 1];
	const char *at = json_member(line, name);
	at = at && *at == '[' ? at + 1 : NULL;
	while (at && *at == '{') {
		at = strncmp(at, "{\"name\":", 8) == 0 ? read_quoted(at + 8, key, sizeof(key))
						       : NULL;
		at = at && strncmp(at, ",\"value\":", 9) == 0
			     ? read_quoted(at + 9, value, sizeof(value))
			     : NULL;
		at = at && *at == '}' ? at + 1 : NULL;
		if (at && session_tags_add(ret, key, value) == -ENOMEM) {
			return -ENOMEM;
		}
		at = at && *at == ',' ? at + 1 : at;
	}
	return at && *at == ']' ? 0 : -EBADMSG;
}

static bool read_state(const char *line, enum session_state *ret)
{
	char word[16];
	read_text(line, "state", word, sizeof(word));
	for (int i = 0; i < SESSION_STATES; i++) {
		if (strcmp(word, session_state_name((enum session_state)i)) == 0) {
			*ret = (enum session_state)i;
			return true;
		}
	}
	return false;
}

int session_read(const char *line, struct session *ret)
{
	*ret = (struct session){.uid = (uint32_t)read_whole(line, "uid"),
		.warmup = (uint32_t)read_whole(line, "warmup"),
		.frames = read_number(line, "frames"),
		.seconds = read_number(line, "seconds"),
		.started_us = (int64_t)read_whole(line, "started_us"),
		.measured_us = read_number(line, "measured_us"),
		.ended_us = read_number(line, "ended_us"),
		.frames_done = read_whole(line, "frames_done"),
		.elapsed_s = read_number(line, "elapsed_s"),
		.left_s = read_number(line, "left_s"),
		.recent_mean_ms = read_number(line, "recent_mean_ms"),
		.kept_share = read_number(line, "kept_share"),
		.lost = read_whole(line, "lost")};
	const char *automatic = json_member(line, "automatic");
	ret->automatic = automatic && strncmp(automatic, "true", 4) == 0;
	read_text(line, "name", ret->name, sizeof(ret->name));
	read_text(line, "app", ret->app, sizeof(ret->app));
	read_text(line, "error", ret->error, sizeof(ret->error));
	read_text(line, "cut", ret->cut, sizeof(ret->cut));
	int r = read_tags(line, "tags", &ret->tags);
	r = r < 0 ? r : read_tags(line, "environment", &ret->environment);
	if (r == 0 && (!proto_name_valid(ret->name) || !read_state(line, &ret->state))) {
		r = -EBADMSG;
	}
	if (r < 0) {
		session_tags_clear(&ret->tags);
		session_tags_clear(&ret->environment);
	}
	return r;
}
