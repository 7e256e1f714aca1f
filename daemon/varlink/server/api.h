/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api.h: declares what methods see of the server: their rows, a call, a stream of replies, the
 * connection, and the server's state. Everything runs on the loop's thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>
#include <uv.h>

#include "daemon/core/core.h"
#include "daemon/util/accounts.h"
#include "daemon/varlink/server/options.h"
#include "daemon/varlink/server/reply.h"
#include "proto/json_write.h"
#include "proto/varlink.h"

enum { PARAMS_MAX = 9 };

enum param_type {
	PARAM_STRING,
	PARAM_BOOL,
	PARAM_INT,   /* a whole number up to 2^53 */
	PARAM_FLOAT, /* finite */
	PARAM_PAIRS, /* an array of objects {name, value}, both strings */
};

struct cJSON;

struct param {
	const char *name;
	enum param_type type;
	bool required;
	float min, max; /* of a number; both 0: any. As doubles the table takes 3 KB more */
};

/* A parameter's value; what was absent or null is not present. */
struct value {
	bool present;
	bool boolean;
	int64_t integer;
	double number;
	const char *string;	   /* lives as long as the parsed call */
	const struct cJSON *pairs; /* likewise: pair_at() */
};

/* The index-th pair of an array; false past its end. */
bool pair_at(const struct value *value, size_t index, const char **name, const char **text);

/* What a method's function gets. */
struct api_call {
	struct api *api;
	struct api_connection *connection;
	struct core *core;
	const char *method; /* full name */
	bool more;
	uint64_t now_ns;
	struct value value[PARAMS_MAX]; /* in the order of the method's row */
	struct json *out;		/* reply_begin has been called */
};

enum {
	METHOD_CHANGES = 1,    /* carried out also without an answer */
	METHOD_NEEDS_MORE = 2, /* a call without more is refused */
	METHOD_FRESH = 4,      /* wants the newest stage events first */
	METHOD_ADMIN = 8,      /* refused unless call_permitted() */
};

/* One method. The function writes the reply's fields into call->out and returns API_LAST, or
 * replaces them by an error (reply_*), or starts a stream. */
struct api_method {
	const char *name;
	enum api_result (*function)(struct api_call *call);
	unsigned flags;
	struct param params[PARAMS_MAX]; /* name NULL ends */
};

/* The interface that a server offers. */
struct api_methods {
	const struct api_method *row;
	size_t count;
	int (*open)(struct api *api);	/* before the first call; 0 or -errno */
	void (*close)(struct api *api); /* also after a failed open */
};

/* A call that answers in several replies or turns. */
struct api_stream {
	const struct api_stream_ops *ops;
	struct api_connection *connection;
	size_t charged; /* bytes on the user's account */
};

struct api_stream_ops {
	/* Writes the next reply into out, where reply_begin has been called. Called only when the
	 * output queue has room. */
	enum api_result (*next)(struct api_stream *stream, struct json *out);
	/* Frees the stream; no handle of its own may be left. */
	void (*destroy)(struct api_stream *stream);
	bool endless; /* ends when the peer closes its side */
};

/* The owner of a local connection: the daemon itself, which makes calls without a socket. They are
 * carried out in the same slices, with the same limits, as those of any user, on an account of
 * their own, and count as no connection. */
struct api_local_ops {
	/* The next call: a message as on the wire, without its NUL and shorter than size. Its
	 * length, 0 for none now. Asked when the connection is woken and no call is open. */
	size_t (*next)(void *ctx, char *message, size_t size);
	/* Whether a stream may go on: the owner can hold one more frame. */
	bool (*has_room)(void *ctx);
	/* One reply, without its NUL; it lives until the function returns, which may close the
	 * connection. failed: it is an error. */
	void (*reply)(void *ctx, const char *text, size_t length, bool continues, bool failed);
};

/* One peer: its frames are dispatched in order, requests behind a call that still answers wait. */
struct api_connection {
	struct api *api;
	LIST_ENTRY(api_connection) link;
	struct account *account;
	const struct api_local_ops *local; /* a connection of the daemon itself; NULL = a socket */
	void *local_ctx;
	int fd;
	uid_t uid;

	uv_pipe_t pipe;
	uv_timer_t deadline; /* the nearest of the times below */
	uv_timer_t tick;     /* of the present stream */
	/* uv_now() times; 0 = none */
	uint64_t first_frame_ms, partial_ms, stall_ms, idle_ms;
	size_t stall_size; /* queue size when stall_ms was set */
	int handles;
	bool closing, end_of_input, reading;
	bool unsolicited_fds; /* the peer sent descriptors */
	bool ready;	      /* wants to run */
	bool blocked;	      /* waits for room in a queue */

	/* input: owned, or for the length of a read callback the server's read buffer */
	char *input;
	size_t input_length, input_at, input_scanned;
	bool borrowed;

	size_t queued;	 /* bytes of write requests in flight */
	uint64_t served; /* when it last ran, counted in runs of all */
	struct api_stream *stream;
};

struct api {
	uv_loop_t *loop;
	struct core *core;
	struct api_options options;
	char admin_name[64];
	gid_t admin_gid;
	bool has_admin_gid;

	int spare_fd; /* closed for a moment to refuse when descriptors are short */
	uv_poll_t listener;
	uv_timer_t retry; /* accepts again after a shortage */
	uv_idle_t turn;	  /* active while a connection has work left for the next iteration */
	int handles;	  /* of ours that are not closed yet */
	bool closing, short_of_descriptors;
	bool descriptors_refused; /* by the kernel */
	bool some_blocked;	  /* a connection waits for room in a queue */

	LIST_HEAD(, api_connection) list; /* all connections, also those that close */
	size_t connections;		  /* of sockets, that are open */
	struct account own;		  /* of local connections */
	struct iteration used;		  /* of the loop: nanoseconds of work */
	uint64_t served;		  /* runs of all connections */
	size_t bytes, queued;		  /* sums over accounts */

	/* subscriptions: when each metric was last committed, by slot */
	uint64_t *metric_serial;
	uint64_t commit_serial;
	size_t subscriptions;

	double *scratch;
	size_t scratch_count;
	struct json out;
	char out_buffer[PROTO_FRAME_MAX];
	char read_buffer[PROTO_FRAME_MAX];
};

/* Root, the daemon's own user, or a member of the admin group. */
bool call_permitted(const struct api_call *call);

/* A zeroed structure of size bytes that begins with a struct api_stream, whose ops, connection and
 * charge are set; held: further bytes that it may come to hold. The caller fills in the rest and
 * hands it over by connection_set_stream. NULL: refused, and the error is in call->out (answer
 * API_LAST). */
void *stream_create(
	struct api_call *call, const struct api_stream_ops *ops, size_t size, size_t held);
/* Makes *stream the connection's present call. */
void connection_set_stream(struct api_connection *connection, struct api_stream *stream);
/* Runs the connection in the loop's next iteration. */
void connection_wake(struct api_connection *connection);
/* Starts to close; the pointer is dead then. Idempotent. */
void connection_close(struct api_connection *connection);
/* A local connection; it closes with the server, too. -ENOMEM, -ESHUTDOWN. */
int connection_open_local(
	struct api *api, const struct api_local_ops *ops, void *ctx, struct api_connection **ret);

/* At least count doubles that live until the next call; NULL: no memory. */
double *api_scratch(struct api *api, size_t count);
