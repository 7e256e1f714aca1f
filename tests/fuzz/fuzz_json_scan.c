/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libFuzzer target: what the scan lets through, cJSON must read, and print as something that the
 * scan lets through again.
 */
#include "proto/varlink.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cJSON *object = NULL;
	const char *reason = NULL;
	int r = proto_json_parse((const char *)data, size, &object, &reason);
	if (r < 0) {
		if (r != -EBADMSG || !reason || object) {
			abort();
		}
		return 0;
	}
	char *text = cJSON_PrintUnformatted(object);
	if (!text || proto_json_scan(text, strlen(text), PROTO_JSON_DEPTH, 0, &reason) < 0) {
		abort();
	}
	free(text);
	cJSON_Delete(object);
	return 0;
}
