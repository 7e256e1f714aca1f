/* SPDX-License-Identifier: Apache-2.0 */
/*
 * list.h: answers calls with long lists: with more in chunks of a frame, else in one reply; either
 * way in slices that do not hold the loop. Items are written when they are sent, from the state of
 * that moment.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/core/runs/relations.h"
#include "daemon/varlink/methods/runs.h"
#include "daemon/varlink/server/api.h"
#include "proto/name.h"

struct app;
struct core;

enum { LIST_RELATED = 4 }; /* apps whose relations are kept */

/* What the items of one turn share: nothing changes within it. */
struct list_turn {
	struct {
		size_t of; /* the app, by its index; SIZE_MAX = none yet */
		struct app_relations relations;
	} related[LIST_RELATED];
};

/* Where a list stands; plain data, so that an item that did not fit is undone by a copy. */
struct list_cursor {
	struct api *api;
	struct core *core;
	uint64_t now_ns;
	uid_t uid;			/* of the peer */
	bool permitted;			/* may see what belongs to other users */
	bool all;			/* also what has ended */
	uint32_t first, second;		/* indices, as the list defines */
	uint32_t choice;		/* what the call asked for, as the list defines */
	double number[2];		/* likewise */
	struct run_choice run;		/* of lists of apps */
	struct window_query query;	/* of their statistics */
	struct list_turn *turn;		/* the present one */
	char pattern[PROTO_QUERY_SIZE]; /* "" = none */
};

struct list_ops {
	const char *field; /* the reply's array */
	/* Writes at most one item and moves on; false at the end. */
	bool (*item)(struct list_cursor *cursor, struct json *out);
	bool heavy; /* an item may take most of a slice */
	/* Bytes that the items take at least: a single reply that cannot hold them is refused
	 * before any is written. May be NULL. */
	size_t (*least)(const struct list_cursor *cursor);
	/* Writes the reply's other fields; last: the list is complete. May be NULL. */
	void (*tail)(const struct list_cursor *cursor, struct json *out, bool last);
};

/* A cursor for the call; the rest is zero. */
void list_cursor_init(struct list_cursor *cursor, const struct api_call *call);

/* Answers the call by the list. */
enum api_result list_start(
	struct api_call *call, const struct list_ops *ops, const struct list_cursor *cursor);

/* The same from its start; the call's first parameter, if that is a boolean, is cursor->all. */
enum api_result list_answer(struct api_call *call, const struct list_ops *ops);

/* An item of ListApps. processes: list them, with their open stages. (apps.c, as are the rest.) */
void row_app(
	struct json *out, struct api *api, const struct app *app, bool processes, uint64_t now_ns);

/* Answers the call by a list that its first parameter may narrow to one app (NotFound), of one run,
 * or of all of them together, by the two parameters from `run` on; the one after them adds apps
 * that ended long ago. */
enum api_result list_of_run(struct api_call *call, const struct list_ops *ops, uint32_t choice,
	const struct value *run);
/* Narrows the list to the app that the call's first parameter names, if any. False: there is none.
 */
bool list_narrow(struct list_cursor *cursor, const struct api_call *call);
/* The index-th app, in the run that the call asked for. False past the end; *ret NULL: it is not
 * wanted, or has no such run. */
bool list_app_at(const struct list_cursor *cursor, size_t index, const struct app **ret);
