/*
 * What the files of this layer share: the server's state. Made and ended by server.c. Everything
 * runs on the loop's thread.
 */
#pragma once

#include <stdbool.h>
#include <uv.h>

#include "daemon/util/accounts.h"
#include "daemon/varlink/server/server.h"
#include "proto/json_write.h"
#include "proto/varlink.h"

struct api_connection;

struct api {
	uv_loop_t *loop;
	struct core *core;
	struct api_options options;
	char path[108];	  /* "" = the socket came from outside */
	ino_t path_inode; /* of the socket we bound: another's is not unlinked */
	char admin_name[64];
	gid_t admin_gid;
	bool has_admin_gid;

	int listen_fd;
	int spare_fd; /* given up for a moment to refuse when descriptors are short */
	uv_poll_t listener;
	uv_timer_t retry; /* accepts again after a shortage */
	uv_idle_t turn;	  /* runs while a connection has work left for the next turn */
	int handles;	  /* of ours that are not closed yet */
	bool closing, short_of_descriptors;
	bool descriptors_refused; /* by the kernel */
	bool some_blocked;	  /* a connection waits for room in a queue */
	void (*done)(void *ctx);
	void *done_ctx;

	struct api_connection *first; /* all connections, also those that close */
	size_t connections;	      /* that are open */
	struct account own;	      /* of api_connect() */
	struct iteration used;	      /* of the loop: nanoseconds of work */
	uint64_t served;	      /* runs of all connections */
	size_t bytes;		      /* sum over accounts */

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

/* At least count doubles that live until the next call; NULL: no memory. */
double *api_scratch(struct api *api, size_t count);

/* There is something to do for the connection: at once, if this turn of the loop has time for it
 * and nobody waits, else in the order of users who had least. */
void api_serve(struct api *api, struct api_connection *connection);

/* Asks for api_connection_run of this connection (or of all that wait) in the loop's next turn. */
void api_wake(struct api *api);

/* The connection's handles exist; all of them are closed. The latter frees nothing. */
void api_connection_opened(struct api *api, struct api_connection *connection);
void api_connection_closed(struct api *api, struct api_connection *connection);
