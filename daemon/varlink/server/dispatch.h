/* From a frame to the method's function: one table row a method. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/varlink/server/params.h"
#include "daemon/varlink/server/reply.h"

struct api;
struct api_connection;
struct core;

/* What a method's function gets. */
struct api_call {
	struct api *api;
	struct api_connection *connection;
	struct core *core;
	const char *method; /* full name */
	bool more;
	uint64_t now_ns;
	struct value value[PARAMS_MAX]; /* in the order of the method's table */
	struct json *out;		/* reply_begin has been */
};

/* Handles one message and sends its answer. 0, or -EBADMSG with *reason when the peer is to be
 * closed (what it sent is no Varlink call), -ENOMEM. */
int dispatch_frame(
	struct api_connection *connection, const char *text, size_t length, const char **reason);

/* Root, the daemon's own user, or a member of the admin group. */
bool call_permitted(const struct api_call *call);
enum api_result call_not_permitted(const struct api_call *call);
