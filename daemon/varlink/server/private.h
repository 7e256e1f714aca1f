/* SPDX-License-Identifier: Apache-2.0 */
/* private.h: declares what connection.c (the life of one peer), dispatch.c (from a frame to its
 * method), input.c and queue.c (bytes in and out, on accounts) and server.c (the listening socket,
 * and which peer runs next) share. */
#pragma once

#include "daemon/varlink/server/api.h"

/* Bytes of queued replies, partial input and streams. One reply always has room, and half of a
 * connection's queue is more than one reply. */
enum {
	QUEUE_CONNECTION_MAX = 256 * 1024,
	QUEUE_UID_MAX = 1024 * 1024,
	QUEUE_TOTAL_MAX = 4 * 1024 * 1024, /* and QUEUE_UID_MAX that is kept for root */
};

/* Owns the connected descriptor (also on failure) and starts to read; without a message within
 * first_ns, and later without an open call for long, it is closed. -ENOMEM or -errno. */
int connection_open(struct api *api, int fd, uid_t uid, struct account *account, uint64_t first_ns);
/* One slice of work: frames, or a stream's next replies. */
void connection_run(struct api_connection *connection);
/* What uv_now() will be that many nanoseconds from now, rounded up. */
uint64_t connection_time(struct api_connection *connection, uint64_t after_ns);
/* Sets the timer to the nearest of the times. */
void connection_arm(struct api_connection *connection);

/* Handles one message and sends its reply. 0, or -EBADMSG with *reason when the peer is to be
 * disconnected (it sent something other than a Varlink call), -ENOMEM. */
int dispatch_frame(
	struct api_connection *connection, const char *text, size_t length, const char **reason);

/* The next complete frame, without its NUL; it lives until the input is copied or dropped. 0,
 * -ENODATA when there is none, -EMSGSIZE when it is longer than a frame may be. */
int input_next(struct api_connection *connection, const char **ret, size_t *length);
size_t input_left(const struct api_connection *connection);
/* What is left was scanned and is the beginning of a frame. */
bool input_partial(const struct api_connection *connection);
/* Makes what is left an owned copy of just its size, with more behind it. -ENOSPC: the user holds
 * too much; -ENOMEM. */
int input_copy(struct api_connection *connection, const char *more, size_t more_length);
void input_drop(struct api_connection *connection);

/* Memory on the user's account. False, and nothing charged, when the user or all hold too much. */
bool queue_charge(struct api_connection *connection, size_t bytes);
void queue_release(struct api_connection *connection, size_t bytes);
/* Room for one more reply of any size in the queues of connection, user and server? */
bool queue_has_room(struct api_connection *connection);
/* Finishes the reply in api->out and sends it: at once what the socket takes, the rest queued.
 * Closes the connection on failure. */
void queue_reply(struct api_connection *connection, bool continues);
/* Sets or clears the time by which the peer must have read something. */
void queue_watch(struct api_connection *connection);

/* The connection has work: it runs at once, if this iteration of the loop has time for it and
 * nobody waits, else in the order of the users who had least. */
void api_serve(struct api *api, struct api_connection *connection);
/* Runs what is ready in the loop's next iteration. */
void api_wake(struct api *api);
/* The connection's handles exist; all of them are closed. The latter frees nothing. */
void api_connection_opened(struct api *api, struct api_connection *connection);
void api_connection_closed(struct api *api, struct api_connection *connection);
