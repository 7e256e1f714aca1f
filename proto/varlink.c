/* SPDX-License-Identifier: Apache-2.0 */
/* varlink.c: converts Varlink messages from and to text: the scan, then cJSON; and printing. */
#include "proto/varlink.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "proto/varlink_packed.h"

/* A pair is older than the byte that stands for it, so this ends. Returns the end. */
static char *unpack(unsigned char byte, char *ret)
{
	const unsigned char *pair = proto_packed_pairs[byte];
	if (pair[0] == 0) {
		*ret = (char)byte;
		return ret + 1;
	}
	return unpack(pair[1], unpack(pair[0], ret));
}

void proto_interface(char *ret)
{
	for (const unsigned char *byte = proto_packed_interface; *byte != 0; byte++) {
		ret = unpack(*byte, ret);
	}
	*ret = '\0';
}

static int parse(const char *text, size_t length, unsigned max_tokens, struct cJSON **ret,
	const char **reason)
{
	int r = proto_json_scan(text, length, PROTO_JSON_DEPTH, max_tokens, reason);
	if (r < 0) {
		return r;
	}
	/* What passed the scan is JSON that cJSON takes: only memory can fail. */
	struct cJSON *object = cJSON_ParseWithLength(text, length);
	if (!object) {
		return -ENOMEM;
	}
	*ret = object;
	return 0;
}

int proto_json_parse(const char *text, size_t length, struct cJSON **ret, const char **reason)
{
	return parse(text, length, PROTO_JSON_TOKENS, ret, reason);
}

int proto_json_parse_reply(const char *text, size_t length, struct cJSON **ret, const char **reason)
{
	return parse(text, length, 0, ret, reason);
}

struct cJSON *proto_json_integer(int64_t value)
{
	char text[32];
	snprintf(text, sizeof(text), "%" PRId64, value);
	return cJSON_CreateRaw(text);
}
