/* SPDX-License-Identifier: Apache-2.0 */
/* replay.c: answers calls from a recording or a session. Lines are only found at first, and parsed
 * when they are asked for: a recording may be large. */
#include "client/edgeprofctl/trace/replay.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "client/edgeprofctl/listing.h"
#include "proto/name.h"
#include "proto/varlink.h"

enum { LINES_MAX = 1 << 20, METHOD_SIZE = 64 };

#define SESSION "{\"schema\":\"edgeprof.session/1\""
static const double TO_MAX_US = 9e15;

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
	size_t *order, count, next;	 /* lines of it */
	size_t damaged;			 /* number of a line, 0 = none */
	size_t page;			 /* the last line of ListEvents that was asked for, */
	int64_t page_serial;		 /* and what it ended with */
	double from_mono_us, to_mono_us; /* of all starts */
	uint64_t *gap_ns;		 /* ends of blocks behind which some were dropped */
	size_t gaps;
};

static bool starts(const struct replay_line *line, const char *with)
{
	size_t length = strlen(with);
	return line->length >= length && memcmp(line->text, with, length) == 0;
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
		if (replay->damaged == 0 && (at[0] != '{' || end[-1] != '}')) {
			replay->damaged = replay->lines;
		}
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
	bool session = replay->lines > 0 && starts(replay->line, SESSION);
	if (r == 0 && !session &&
		(replay->lines == 0 ||
			!starts(replay->line, "{\"schema\":\"edgeprof.recording/1\""))) {
		r = -EBADMSG;
	}
	if (r == 0) {
		replay->header = parse(&replay->line[0], reason);
		replay->order = calloc(replay->lines + 1, sizeof(*replay->order));
		replay->gap_ns = calloc(replay->lines + 1, sizeof(*replay->gap_ns));
		r = !replay->header ? -EBADMSG : !replay->order || !replay->gap_ns ? -ENOMEM : 0;
	}
	if (r < 0) {
		replay_destroy(replay);
		return r;
	}
	const char *ignored;
	cJSON *last = parse(&replay->line[replay->lines - 1], &ignored);
	replay->end = cJSON_DetachItemFromObjectCaseSensitive(last, "end");
	cJSON_Delete(last);
	if (!replay->end && !session) {
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
	free(replay->gap_ns);
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

size_t replay_damaged_line(const struct replay *replay)
{
	return replay->damaged;
}

size_t replay_gaps(const struct replay *replay, const uint64_t **ret)
{
	*ret = replay->gap_ns;
	return replay->gaps;
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

/* The lines from `first` on that begin like that. */
static void order_lines(struct replay *replay, size_t first, const char *head)
{
	for (size_t i = first; i < replay->lines; i++) {
		if (starts(&replay->line[i], head)) {
			replay->order[replay->count++] = i;
		}
	}
}

/* The start of a session is of when it began; how far it went is in its points. */
static void cover_points(struct replay *replay)
{
	double measured_us = NAN, block = 0, mono_us = 0;
	replay->gaps = 0;
	for (size_t i = 1; i < replay->lines; i++) {
		const struct replay_line *line = &replay->line[i];
		const char *ignored;
		if (!starts(line, "{\"part\":{") && !starts(line, "{\"block\":{")) {
			continue;
		}
		cJSON *point = parse(line, &ignored);
		const cJSON *row = point ? point->child : NULL;
		if (json_number(row, "block") > block + 1 && mono_us > 0 && mono_us < TO_MAX_US) {
			replay->gap_ns[replay->gaps++] = (uint64_t)mono_us * 1000;
		}
		block = json_number(row, "block");
		mono_us = json_number(row, "mono_us");
		measured_us = json_number(row, "measured_mono_us");
		replay->to_mono_us = fmax(replay->to_mono_us, mono_us);
		cJSON_Delete(point);
	}
	double elapsed_us = json_number(replay->end, "elapsed_s") * 1e6;
	if (measured_us > 0 && elapsed_us < TO_MAX_US) {
		replay->to_mono_us = fmax(replay->to_mono_us, measured_us + elapsed_us);
	}
	replay->from_mono_us = fmin(replay->from_mono_us, json_number(replay->header, "mono_us"));
}

/* The start of a session of which none is left: it was in a block that was dropped, or the app
 * never came. The header has the clock. NULL: no memory. */
static cJSON *start_of_header(const struct replay *replay)
{
	const double mono_us = json_number(replay->header, "mono_us");
	const double time_us = json_number(replay->header, "time_us");
	const cJSON *about = replay->end ? replay->end : json_get(replay->header, "session");
	cJSON *envelope = cJSON_CreateObject();
	cJSON *start =
		cJSON_AddObjectToObject(cJSON_AddObjectToObject(envelope, "parameters"), "start");
	cJSON_AddNumberToObject(start, "from_mono_us", mono_us);
	cJSON_AddNumberToObject(start, "to_mono_us", mono_us);
	cJSON_AddItemToObject(start, "clock_mono_us", cJSON_CreateDoubleArray(&mono_us, 1));
	cJSON_AddItemToObject(start, "clock_time_us", cJSON_CreateDoubleArray(&time_us, 1));
	cJSON_AddItemToArray(cJSON_AddArrayToObject(start, "apps"),
		ctl_parameters("app", json_word(about, "app")));
	return envelope;
}

/* A session has a start for each start of the daemon: what all of them cover. */
static void cover_starts(struct replay *replay)
{
	replay->from_mono_us = INFINITY;
	replay->to_mono_us = 0;
	for (size_t i = 0; i < replay->count; i++) {
		const char *ignored;
		cJSON *line = parse(&replay->line[replay->order[i]], &ignored);
		const cJSON *start = json_get(json_get(line, "parameters"), "start");
		replay->from_mono_us =
			fmin(replay->from_mono_us, json_number(start, "from_mono_us"));
		replay->to_mono_us = fmax(replay->to_mono_us, json_number(start, "to_mono_us"));
		cJSON_Delete(line);
	}
}

/* The last start, which knows all apps; the records; how many were lost. */
static int order_trace(struct replay *replay)
{
	order_lines(replay, 1, "{\"call\":\"ExportTrace\",\"parameters\":{\"start\":");
	cover_starts(replay);
	if (starts(replay->line, SESSION)) {
		cover_points(replay);
		replay->order[replay->count] = 0; /* the header */
		replay->count += replay->count == 0;
	}
	if (replay->count > 0) {
		replay->order[0] = replay->order[replay->count - 1];
		replay->count = 1;
	}
	int r = order_records(replay);
	order_lines(replay, 1, "{\"call\":\"ExportTrace\",\"parameters\":{\"lost\":");
	return r;
}

int replay_send(struct replay *replay, const char *method, const cJSON *parameters)
{
	char head[METHOD_SIZE + 16];
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
	bool goes_on = strcmp(method, "ListEvents") == 0 && replay->page > 0 &&
		       replay->from_serial > replay->page_serial;
	snprintf(head, sizeof(head), "{\"call\":\"%s\",", replay->method);
	order_lines(replay, goes_on ? replay->page + 1 : 1, head);
	return 0;
}

static bool matches(const cJSON *series, const char *glob)
{
	return proto_glob_match(glob, json_word(series, "name"));
}

/* Entries from the wanted serial on? Those of a session come in further pages: none is the last. */
static bool has_events(struct replay *replay, cJSON *parameters)
{
	cJSON *newest = cJSON_GetObjectItemCaseSensitive(parameters, "last_serial");
	replay->page = replay->order[replay->next - 1];
	replay->page_serial = 0;
	for (const cJSON *e = json_first(parameters, "events"); e; e = e->next) {
		replay->page_serial = json_integer(e, "serial");
	}
	if (newest) {
		cJSON_SetNumberHelper(newest, 9e15);
	}
	return replay->page_serial >= replay->from_serial;
}

static void cover_all(const struct replay *replay, const cJSON *parameters)
{
	static const char *const names[] = {"from_mono_us", "to_mono_us"};
	const double values[] = {replay->from_mono_us, replay->to_mono_us};
	const cJSON *start = json_get(parameters, "start");
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		cJSON *item = cJSON_GetObjectItemCaseSensitive(start, names[i]);
		if (cJSON_IsNumber(item)) {
			cJSON_SetNumberHelper(item, values[i]);
		}
	}
}

static bool wanted(struct replay *replay, cJSON *parameters)
{
	cover_all(replay, parameters);
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
		size_t at = replay->order[replay->next++];
		cJSON *envelope =
			at == 0 ? start_of_header(replay) : parse(&replay->line[at], &reason);
		cJSON *parameters = cJSON_DetachItemFromObjectCaseSensitive(envelope, "parameters");
		cJSON_Delete(envelope);
		if (!cJSON_IsObject(parameters)) {
			cJSON_Delete(parameters);
			replay->damaged = replay->order[replay->next - 1] + 1;
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
