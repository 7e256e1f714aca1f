/* SPDX-License-Identifier: Apache-2.0 */
/* varlink.h: defines Varlink on the wire: one JSON object per message, terminated by NUL. The
 * daemon and the clients share the frame limit, the strict scan that runs before cJSON sees hostile
 * bytes, and the text of the interface. The only file of proto/ that knows cJSON is varlink.c. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "proto/json_scan.h"

struct cJSON;

enum {
	PROTO_FRAME_MAX = 64 * 1024, /* bytes of a message with its NUL */
	PROTO_JSON_DEPTH = 16,
	PROTO_JSON_TOKENS = 2048,
};

/* Unpacks the text of io.edgeprof.varlink, NUL-terminated, into proto_interface_size bytes. */
extern const size_t proto_interface_size;
void proto_interface(char *ret);
#define PROTO_INTERFACE_NAME "io.edgeprof"

/* proto_json_scan with the limits above, then cJSON. 0 and *ret (cJSON_Delete it), -EBADMSG with
 * *reason, -ENOMEM. */
int proto_json_parse(const char *text, size_t length, struct cJSON **ret, const char **reason);

/* The same without the limit on tokens, for replies of the daemon (client side). */
int proto_json_parse_reply(
	const char *text, size_t length, struct cJSON **ret, const char **reason);

/* A whole number (time_us) with all its digits: cJSON prints 1700000000000000 as 1.7e+15, which
 * strict readers take for a float. For output only: a raw item, which cJSON_IsNumber does not
 * know. */
struct cJSON *proto_json_integer(int64_t value);
