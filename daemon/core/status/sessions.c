/* SPDX-License-Identifier: Apache-2.0 */
/* sessions.c: keeps the table of sessions, decides which may start and which has to go, and writes
 * and reads a row as JSON; pure. */
#include "daemon/core/status/sessions.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/util/index.h"
#include "daemon/util/sysops.h"
#include "proto/json_write.h"
#include "proto/utf8.h"

static const char *session_state_name(enum session_state state)
{
	static const char *const names[SESSION_STATES] = {
		[SESSION_WARMUP] = "warmup",
		[SESSION_RUNNING] = "running",
		[SESSION_FINISHED] = "finished",
		[SESSION_STOPPED] = "stopped",
		[SESSION_FAILED] = "failed",
		[SESSION_INTERRUPTED] = "interrupted",
	};
	return names[state];
}

static bool is_clean(const char *text, size_t max)
{
	char clean[SESSION_TAG_VALUE + 1];
	snprintf(clean, max + 1, "%s", text);
	proto_utf8_clean(clean);
	return strcmp(clean, text) == 0;
}

const char *session_tags_find(const struct session_tags *tags, const char *name)
{
	const char *at = tags->text;
	for (size_t i = 0; i < tags->count; i++) {
		const char *value = at + strlen(at) + 1;
		if (strcmp(at, name) == 0) {
			return value;
		}
		at = value + strlen(value) + 1;
	}
	return NULL;
}

int session_tags_add(struct session_tags *tags, const char *name, const char *value)
{
	const size_t names = strlen(name) + 1, values = strlen(value) + 1;
	if (names == 1 || !is_clean(name, PROTO_NAME_MAX) || !is_clean(value, SESSION_TAG_VALUE)) {
		return -EINVAL;
	}
	if (session_tags_find(tags, name)) {
		return -EEXIST;
	}
	if (tags->length + names + values > SESSION_TAGS_BYTES) {
		return -ENOSPC;
	}
	char *text = mem_zalloc(tags->length + names + values);
	if (!text) {
		return -ENOMEM;
	}
	if (tags->length > 0) {
		memcpy(text, tags->text, tags->length);
	}
	memcpy(text + tags->length, name, names);
	memcpy(text + tags->length + names, value, values);
	tags->hash += hash_bytes(text + tags->length, names + values);
	free(tags->text);
	tags->text = text;
	tags->length += names + values;
	tags->count++;
	return 0;
}

/* The same pairs, in any order: no name is in it twice. */
static bool tags_equal(const struct session_tags *tags, const struct session_tags *others)
{
	const char *at = tags->text;
	bool equal = tags->count == others->count;
	for (size_t i = 0; equal && i < tags->count; i++) {
		const char *value = at + strlen(at) + 1, *other = session_tags_find(others, at);
		equal = other && strcmp(other, value) == 0;
		at = value + strlen(value) + 1;
	}
	return equal;
}

void sessions_on_end(struct sessions *sessions, const struct session *session)
{
	bool hit = false;
	for (size_t i = 0; i < sessions->count && !hit; i++) {
		const struct session *row = sessions->row[i];
		hit = row != session &&
		      (row->state == SESSION_FINISHED || row->state == SESSION_STOPPED) &&
		      row->tags.hash == session->tags.hash &&
		      row->environment.hash == session->environment.hash &&
		      tags_equal(&row->tags, &session->tags) &&
		      tags_equal(&row->environment, &session->environment);
	}
	*(hit ? &sessions->hits : &sessions->misses) += 1;
}

void session_tags_clear(struct session_tags *tags)
{
	free(tags->text);
	*tags = (struct session_tags){NULL, 0, 0, 0};
}

bool session_is_active(const struct session *session)
{
	return session->state == SESSION_WARMUP || session->state == SESSION_RUNNING;
}

struct session *sessions_find(const struct sessions *sessions, const char *name)
{
	for (size_t i = 0; i < sessions->count; i++) {
		if (strcmp(sessions->row[i]->name, name) == 0) {
			return sessions->row[i];
		}
	}
	return NULL;
}

int sessions_append(struct sessions *sessions, struct session *row)
{
	if (sessions->count == SESSIONS_MAX) {
		return -ENOSPC;
	}
	size_t at = sessions->count++;
	for (; at > 0 && sessions->row[at - 1]->started_us > row->started_us; at--) {
		sessions->row[at] = sessions->row[at - 1];
	}
	sessions->row[at] = row;
	return 0;
}

void session_destroy(struct session *session)
{
	if (session) {
		session_tags_clear(&session->tags);
		session_tags_clear(&session->environment);
		free(session);
	}
}

void sessions_remove(struct sessions *sessions, const struct session *row)
{
	size_t at = 0;
	while (at < sessions->count && sessions->row[at] != row) {
		at++;
	}
	if (at < sessions->count) {
		sessions->count--;
		memmove(&sessions->row[at], &sessions->row[at + 1],
			(sessions->count - at) * sizeof(sessions->row[0]));
	}
}

static bool taken(void *ctx, const char *name)
{
	return sessions_find(ctx, name) != NULL;
}

int sessions_name(const struct sessions *sessions, const char *wanted, char ret[PROTO_NAME_SIZE])
{
	/* only compared */
	return proto_name_unique(wanted, strlen(wanted), taken, (void *)(uintptr_t)sessions, ret);
}

const char *sessions_refusal(
	const struct sessions *sessions, uid_t uid, bool privileged, bool automatic, size_t *limit)
{
	size_t active = 0, of_user = 0;
	for (size_t i = 0; i < sessions->count; i++) {
		const struct session *row = sessions->row[i];
		active += session_is_active(row);
		of_user += session_is_active(row) && row->uid == uid && row->automatic == automatic;
	}
	*limit = privileged ? SESSIONS_ACTIVE : SESSIONS_ACTIVE - SESSIONS_RESERVED;
	if (active >= *limit) {
		return "active sessions";
	}
	*limit = SESSIONS_OF_USER;
	return !privileged && of_user >= SESSIONS_OF_USER ? "active sessions of a user" : NULL;
}

static bool is_ordinary(const struct session *session, const struct session_limits *limits)
{
	return session->uid != 0 && session->uid != limits->own;
}

uint64_t sessions_file_limit(const struct sessions *sessions, const struct session *session,
	const struct session_limits *limits)
{
	uint64_t active = 0, of_user = 0;
	for (size_t i = 0; i < sessions->count; i++) {
		const struct session *row = sessions->row[i];
		bool counts = session_is_active(row) || row == session;
		active += counts;
		of_user += counts && row->uid == session->uid;
	}
	uint64_t share = limits->total_size / (active > 0 ? active : 1);
	uint64_t half = limits->total_size / 2 / (of_user > 0 ? of_user : 1);
	if (is_ordinary(session, limits) && half < share) {
		share = half;
	}
	return limits->max_size < share ? limits->max_size : share;
}

/* The oldest finished one, an automatic one if there is any; of that user (NULL = any). */
static struct session *oldest(const struct sessions *sessions, const uint32_t *uid)
{
	struct session *found = NULL;
	for (size_t i = 0; i < sessions->count; i++) {
		struct session *row = sessions->row[i];
		if (session_is_active(row) || row->writing || (uid && row->uid != *uid)) {
			continue;
		}
		if (!found || (row->automatic && !found->automatic)) {
			found = row;
		}
	}
	return found;
}

static uint64_t bytes_of(const struct sessions *sessions, const uint32_t *uid)
{
	uint64_t bytes = 0;
	for (size_t i = 0; i < sessions->count; i++) {
		bytes += uid && sessions->row[i]->uid != *uid ? 0 : sessions->row[i]->bytes;
	}
	return bytes;
}

/* A row of the user who has most of them. */
static const struct session *user_of_most(const struct sessions *sessions)
{
	const struct session *found = NULL;
	size_t most = 0;
	for (size_t i = 0; i < sessions->count; i++) {
		size_t count = 0;
		for (size_t k = 0; k < sessions->count; k++) {
			count += sessions->row[k]->uid == sessions->row[i]->uid;
		}
		found = count > most ? sessions->row[i] : found;
		most = count > most ? count : most;
	}
	return found;
}

struct session *sessions_victim(const struct sessions *sessions,
	const struct session_limits *limits, int64_t now_us, bool *expired)
{
	*expired = true;
	for (size_t i = 0; i < sessions->count; i++) {
		struct session *row = sessions->row[i];
		double ended_us = row->ended_us > 0 ? row->ended_us : (double)row->started_us;
		if (row->automatic && !session_is_active(row) && !row->writing &&
			(double)now_us - ended_us > (double)limits->ttl_us) {
			return row;
		}
	}
	*expired = false;
	for (size_t i = 0; i < sessions->count; i++) {
		const struct session *row = sessions->row[i];
		if (is_ordinary(row, limits) &&
			bytes_of(sessions, &row->uid) > limits->total_size / 2 &&
			oldest(sessions, &row->uid)) {
			return oldest(sessions, &row->uid);
		}
	}
	return bytes_of(sessions, NULL) > limits->total_size ? oldest(sessions, NULL)
	       : sessions->count == SESSIONS_MAX ? oldest(sessions, &user_of_most(sessions)->uid)
						 : NULL;
}

/* The block without which the time between its neighbours is shortest, the oldest of several. */
static struct session_block *densest(struct session_block *blocks, size_t count)
{
	struct session_block *best = NULL, *before = NULL, *at = NULL;
	int64_t best_us = INT64_MAX;
	for (size_t i = 0; i < count; i++) {
		if (blocks[i].dropped) {
			continue;
		}
		if (at) {
			int64_t gap_us =
				blocks[i].from_us - (before ? before->to_us : blocks[0].from_us);
			best = gap_us < best_us ? at : best;
			best_us = gap_us < best_us ? gap_us : best_us;
		}
		before = at;
		at = &blocks[i];
	}
	return best;
}

uint64_t session_thin(struct session_block *blocks, size_t count, uint64_t wanted)
{
	uint64_t bytes = 0;
	for (size_t i = 0; i < count; i++) {
		bytes += blocks[i].length;
	}
	while (bytes > wanted) {
		struct session_block *block = densest(blocks, count);
		if (!block) {
			break;
		}
		block->dropped = true;
		bytes -= block->length;
	}
	return bytes;
}

/* ---- rows as JSON. Only lines of our own are read: they are scanned, not parsed ---- */

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

/* The name first: libedgeprof reads no further. */
static const struct json_field fields[] = {FIELD(name), OPT(JSON_STRING_OPT, app), FIELD(uid),
	FIELD(warmup), OPT(JSON_WHOLE_OPT, frames), FIELD(seconds), FIELD(started_us),
	OPT(JSON_WHOLE_OPT, measured_us), OPT(JSON_WHOLE_OPT, ended_us), FIELD(frames_done),
	FIELD(elapsed_s), FIELD(left_s), FIELD(recent_mean_ms), FIELD(progress_mean_ms), FIELD(fps),
	OPT(JSON_STRING_OPT, error), FIELD(bytes), FIELD(kept_share), FIELD(lost),
	OPT(JSON_STRING_OPT, cut), FIELD(automatic)};

#undef FIELD
#undef OPT

void session_write(struct json *out, const char *name, const struct session *session)
{
	json_open(out, name, '{');
	JSON_FIELDS(out, fields, session);
	json_string(out, "state", session_state_name(session->state));
	write_tags(out, "tags", &session->tags);
	write_tags(out, "environment", &session->environment);
	json_close(out, '}');
}

static int read_tags(const char *line, const char *name, struct session_tags *ret)
{
	char key[PROTO_NAME_SIZE], value[SESSION_TAG_VALUE + 1];
	const char *at = json_member(line, name);
	at = at && *at == '[' ? at + 1 : NULL;
	while (at && *at == '{') {
		at = strncmp(at, "{\"name\":", 8) == 0 ? json_quoted(at + 8, key, sizeof(key))
						       : NULL;
		at = at && strncmp(at, ",\"value\":", 9) == 0
			     ? json_quoted(at + 9, value, sizeof(value))
			     : NULL;
		at = at && *at == '}' ? at + 1 : NULL;
		if (at && session_tags_add(ret, key, value) == -ENOMEM) {
			return -ENOMEM;
		}
		at = at && *at == ',' ? at + 1 : at;
	}
	return at && *at == ']' ? 0 : -EBADMSG;
}

int session_read(const char *line, struct session *ret)
{
	char word[16];
	int state = 0;
	*ret = (struct session){.warmup = 0};
	JSON_FIELDS_READ(line, fields, ret);
	json_quoted(json_member(line, "state"), word, sizeof(word));
	while (state < SESSION_STATES &&
		strcmp(word, session_state_name((enum session_state)state)) != 0) {
		state++;
	}
	ret->state = (enum session_state)state;
	int r = read_tags(line, "tags", &ret->tags);
	r = r < 0 ? r : read_tags(line, "environment", &ret->environment);
	if (r == 0 && (!proto_name_valid(ret->name) || state == SESSION_STATES)) {
		r = -EBADMSG;
	}
	if (r < 0) {
		session_tags_clear(&ret->tags);
		session_tags_clear(&ret->environment);
	}
	return r;
}
