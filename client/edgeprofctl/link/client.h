/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client.h: handles one Varlink connection: sends a call and receives its replies in order.
 * Blocking, with a time limit for each reply. Not thread-safe.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct cJSON;
struct client;

struct reply {
	struct cJSON *parameters; /* an object; owned */
	char *error;		  /* name of a Varlink error; owned; NULL = fine */
	bool continues;
};

/* Takes fd (closed also on failure). -ENOMEM. */
int client_create(int fd, struct client **ret);
void client_destroy(struct client *client);

/* The connection's descriptor, to wait for. */
int client_fd(const struct client *client);

/* Sends a call; parameters (may be NULL) stay the caller's. -EPIPE, -ETIMEDOUT, -ENOMEM, -EMSGSIZE.
 */
int client_send(struct client *client, const char *method, const struct cJSON *parameters,
	bool more, uint64_t timeout_ms);

/* The next reply, waiting up to timeout_ms (0: only what is there). *ret is set on success only.
 * -ETIMEDOUT, -ECONNRESET closed by the daemon, -EBADMSG not a reply (client_reason), -EMSGSIZE
 * longer than PROTO_FRAME_MAX, -ENOMEM. After a failure the connection is unusable, except
 * after -ETIMEDOUT. */
int client_receive(struct client *client, uint64_t timeout_ms, struct reply *ret);

/* Why the last receive returned -EBADMSG. Static text. */
const char *client_reason(const struct client *client);

void reply_finish(struct reply *reply);
