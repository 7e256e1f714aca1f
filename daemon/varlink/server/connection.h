/*
 * One peer: reads frames, hands them to dispatch in order, sends what comes back, and keeps the
 * limits. Requests behind a call that still answers wait their turn.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>
#include <uv.h>

#include "daemon/varlink/server/reply.h"
#include "proto/json_write.h"

struct api;
struct account;
struct api_connection;

/* A call that answers in several replies or turns. */
struct api_stream {
	const struct api_stream_ops *ops;
	struct api_connection *connection;
	size_t charged; /* bytes on the user's account */
};

struct api_stream_ops {
	/* Writes the next reply into out, where reply_begin has been. Called only when the output
	 * queue has room. */
	enum api_result (*next)(struct api_stream *stream, struct json *out);
	/* Frees the stream; no handle of its own may be left. */
	void (*destroy)(struct api_stream *stream);
	bool endless; /* ends when the peer closes its side */
};

struct api_connection {
	struct api *api;
	struct api_connection *next_connection;
	struct account *account;
	int fd;
	uid_t uid;

	uv_pipe_t pipe;
	uv_timer_t deadline; /* the nearest of the times below */
	uv_timer_t tick;     /* of a subscription */
	/* uv_now() times; 0 = none */
	uint64_t first_frame_ms, partial_ms, stall_ms, idle_ms;
	size_t stall_size; /* queue size when stall_ms was set */
	int handles;
	bool closing, end_of_input, reading;
	bool stranger; /* sent descriptors */
	bool ready;    /* wants a turn */
	bool blocked;  /* waits for room in a queue */

	/* input: owned, or for the length of a read callback the server's read buffer */
	char *input;
	size_t input_length, input_at, input_scanned;
	bool borrowed;

	size_t queued;	 /* bytes of write requests in flight */
	uint64_t served; /* when it was last, counted in runs of all */
	struct api_stream *stream;
};

/* Takes the connected descriptor over (also on failure) and starts to read; without a message
 * within first_ns, and later without an open call for long, it is closed (0: no limits). -ENOMEM or
 * -errno. */
int connection_open(struct api *api, int fd, uid_t uid, struct account *account, uint64_t first_ns);

/* Starts to close; api hears of the end by api_connection_closed. Idempotent. */
void connection_close(struct api_connection *connection);

/* One turn of work: frames or a stream's next reply. */
void connection_run(struct api_connection *connection);

/* Wants connection_run in the loop's next turn. */
void connection_wake(struct api_connection *connection);

/* Makes *stream the connection's present call. */
void connection_set_stream(struct api_connection *connection, struct api_stream *stream);

/* uv_now() of so many nanoseconds from now, rounded up. */
uint64_t connection_time(struct api_connection *connection, uint64_t after_ns);
/* Sets the timer to the nearest of the times. */
void connection_arm(struct api_connection *connection);
