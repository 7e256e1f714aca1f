/* SPDX-License-Identifier: Apache-2.0 */
/* replay.c: answers calls from a recording. Lines are only found at first, and parsed when they are
 * asked for: a recording may be large. */
#include "client/edgeprofctl/trace/replay.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "client/edgeprofctl/listing.h"
#include "proto/name.h"
#include "proto/varlink.h"

enum { LINES_MAX = 1 << 20, METHOD_SIZE = 64 };

struct replay_line {
	const char *text;
	size_t length;
};

struct replay {
	char *text;
	struct replay_line *line; /* without the first and the last */
	size_t lines;
	cJSON *header, *end;
	/* the present call */
	char method[METHOD_SIZE];
	char glob[PROTO_PATH_SIZE];
	int64_t from_serial;
	size_t *order, count, next; /* lines of it */
};

static bool starts(const struct replay_line *line, const char *with)
{
	size_t length = strlen(with);
	return line->length >= length && memcmp(line->text, with, length) == 0;
}

static bool is_of(const struct replay_line *line, const char *method, const char *then)
{
	char head[METHOD_SIZE + 64];
	int n = snprintf(head, sizeof(head), "{\"call\":\"%s\",%s", method, then);
	return n > 0 && (size_t)n < sizeof(head) && starts(line, head);
}

static cJSON *parse(const struct replay_line *line, const char **reason)
{
	cJSON *ret = NULL;
	return proto_json_parse_reply(line->text, line->length, &ret, reason) == 0 ? ret : NULL;
}

static int find_lines(struct replay *replay, size_t length)
{
	size_t capacity = 0;
	const char *at = replay->text, *stop = replay->text + length, *end;
	while (at < stop && replay->lines < LINES_MAX &&
		(end = memchr(at, '\n', (size_t)(stop - at)))) {
		if (replay->lines == capacity) {
			capacity = capacity == 0 ? 256 : 2 * capacity;
			struct replay_line *lines =
				realloc(replay->line, capacity * sizeof(*lines));
			if (!lines) {
				return -ENOMEM;
			}
			replay->line = lines;
		}
		replay->line[replay->lines++] = (struct replay_line){at, (size_t)(end - at)};
		at = end + 1;
	}
	return 0;
}

int replay_create(char *text, size_t length, struct replay **ret, const char **reason)
{
	struct replay *replay = calloc(1, sizeof(*replay));
	if (!replay) {
		free(text);
		return -ENOMEM;
	}
	replay->text = text;
	int r = find_lines(replay, length);
	*reason = "it does not begin as one";
	if (r == 0 && (replay->lines == 0 ||
			      !starts(replay->line, "{\"schema\":\"edgeprof.recording/1\""))) {
		r = -EBADMSG;
	}
	if (r == 0) {
		replay->header = parse(&replay->line[0], reason);
		replay->order = calloc(replay->lines + 1, sizeof(*replay->order));
		r = !replay->header ? -EBADMSG : !replay->order ? -ENOMEM : 0;
	}
	if (r < 0) {
		replay_destroy(replay);
		return r;
	}
	const char *ignored;
	cJSON *last = parse(&replay->line[replay->lines - 1], &ignored);
	replay->end = cJSON_DetachItemFromObjectCaseSensitive(last, "end");
	cJSON_Delete(last);
	if (!replay->end) {
		*reason = "it breaks off";
		replay_destroy(replay);
		return -EBADMSG;
	}
	*ret = replay;
	return 0;
}

void replay_destroy(struct replay *replay)
{
	if (!replay) {
		return;
	}
	cJSON_Delete(replay->header);
	cJSON_Delete(replay->end);
	free(replay->order);
	free(replay->line);
	free(replay->text);
	free(replay);
}

const cJSON *replay_header(const struct replay *replay)
{
	return replay->header;
}

const cJSON *replay_end(const struct replay *replay)
{
	return replay->end;
}

/* The app of a chunk of records: the text of its name with its quotes; NULL: none. */
static struct replay_line app_of(const struct replay_line *line)
{
	static const char head[] = "{\"call\":\"ExportTrace\",\"parameters\":{\"app\":";
	struct replay_line app = {NULL, 0};
	if (starts(line, head)) {
		const char *from = line->text + sizeof(head) - 1;
		const char *to = memchr(from, ',', line->length - (sizeof(head) - 1));
		app = (struct replay_line){from, !to ? 0 : (size_t)(to - from)};
	}
	return app;
}

static bool same(const struct replay_line *a, const struct replay_line *b)
{
	return a->length == b->length && memcmp(a->text, b->text, a->length) == 0;
}

/* A chunk of records. */
struct chunk {
	struct replay_line app;
	size_t line, first; /* first: the app's first line */
};

static int by_line(const void *a, const void *b)
{
	const struct chunk *left = a, *right = b;
	return (left->line > right->line) - (left->line < right->line);
}

static int by_app(const void *a, const void *b)
{
	const struct chunk *left = a, *right = b;
	if (left->app.length != right->app.length) {
		return left->app.length < right->app.length ? -1 : 1;
	}
	int r = memcmp(left->app.text, right->app.text, left->app.length);
	return r != 0 ? r : by_line(a, b);
}

static int by_first(const void *a, const void *b)
{
	const struct chunk *left = a, *right = b;
	return left->first != right->first ? (left->first > right->first ? 1 : -1) : by_line(a, b);
}

/* The daemon sends a little of each app in turn; here the chunks of an app follow each other, in
 * the order in which they came. Sorted twice: a hostile file may have a million apps. */
static int order_records(struct replay *replay)
{
	size_t count = 0;
	struct chunk *chunks = calloc(replay->lines + 1, sizeof(*chunks));
	if (!chunks) {
		return -ENOMEM;
	}
	for (size_t i = 1; i < replay->lines; i++) {
		struct replay_line app = app_of(&replay->line[i]);
		if (app.length > 0) {
			chunks[count++] = (struct chunk){app, i, i};
		}
	}
	qsort(chunks, count, sizeof(*chunks), by_app);
	for (size_t i = 1; i < count; i++) {
		if (same(&chunks[i].app, &chunks[i - 1].app)) {
			chunks[i].first = chunks[i - 1].first;
		}
	}
	qsort(chunks, count, sizeof(*chunks), by_first);
	for (size_t i = 0; i < count; i++) {
		replay->order[replay->count++] = chunks[i].line;
	}
	free(chunks);
	return 0;
}

/* The last start, which knows all apps; the records; how many were lost. */
static int order_trace(struct replay *replay)
{
	static const char start[] = "\"parameters\":{\"start\":";
	for (size_t i = replay->lines; i-- > 1 && replay->count == 0;) {
		if (is_of(&replay->line[i], "ExportTrace", start)) {
			replay->order[replay->count++] = i;
		}
	}
	int r = order_records(replay);
	for (size_t i = 1; r == 0 && i < replay->lines; i++) {
		if (is_of(&replay->line[i], "ExportTrace", "\"parameters\":{\"lost\":")) {
			replay->order[replay->count++] = i;
		}
	}
	return r;
}

int replay_send(struct replay *replay, const char *method, const cJSON *parameters)
{
	snprintf(replay->method, sizeof(replay->method), "%s", method);
	snprintf(replay->glob, sizeof(replay->glob), "%s", json_word(parameters, "glob"));
	const cJSON *serial = json_get(parameters, "from_serial");
	/* integers for output are raw text */
	replay->from_serial = serial && serial->valuestring
				      ? strtoll(serial->valuestring, NULL, 10)
				      : json_integer(parameters, "from_serial");
	replay->count = replay->next = 0;
	if (strcmp(method, "ExportTrace") == 0) {
		return order_trace(replay);
	}
	for (size_t i = 1; i < replay->lines; i++) {
		if (is_of(&replay->line[i], method, "")) {
			replay->order[replay->count++] = i;
		}
	}
	return 0;
}

static bool matches(const cJSON *series, const char *glob)
{
	return proto_glob_match(glob, json_word(series, "name"));
}

/* Entries from the wanted serial on? */
static bool has_events(const struct replay *replay, const cJSON *parameters)
{
	int64_t last = 0;
	for (const cJSON *e = json_first(parameters, "events"); e; e = e->next) {
		last = json_integer(e, "serial");
	}
	return last >= replay->from_serial;
}

static bool wanted(const struct replay *replay, cJSON *parameters)
{
	if (strcmp(replay->method, "GetHistory") == 0) {
		return listing_narrow(parameters, "series", matches, replay->glob) > 0;
	}
	return strcmp(replay->method, "ListEvents") != 0 || has_events(replay, parameters);
}

int replay_receive(struct replay *replay, struct reply *ret)
{
	bool trace = strcmp(replay->method, "ExportTrace") == 0;
	bool pages = strcmp(replay->method, "ListEvents") == 0;
	while (replay->next < replay->count) {
		const char *reason;
		cJSON *envelope = parse(&replay->line[replay->order[replay->next++]], &reason);
		cJSON *parameters = cJSON_DetachItemFromObjectCaseSensitive(envelope, "parameters");
		cJSON_Delete(envelope);
		if (!cJSON_IsObject(parameters)) {
			cJSON_Delete(parameters);
			return -EBADMSG;
		}
		if (wanted(replay, parameters)) {
			bool more = !pages && (!trace || replay->next < replay->count);
			*ret = (struct reply){.parameters = parameters, .continues = more};
			return 0;
		}
		cJSON_Delete(parameters);
	}
	if (replay->next++ > replay->count) {
		return -ECONNRESET;
	}
	/* the end of a reply that may have been empty */
	*ret = (struct reply){.parameters = cJSON_CreateObject()};
	return !ret->parameters ? -ENOMEM : 0;
}
