/* SPDX-License-Identifier: Apache-2.0 */
/* reply.c: writes the frame of replies, and errors. */
#include "daemon/varlink/server/reply.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/util/sysops.h"
#include "proto/varlink.h"

enum { ECHO_MAX = 256 /* bytes of a peer's text that an error repeats */ };

static const char error_head[] = "{\"error\"";

void reply_begin(struct json *out)
{
	json_rollback(out, 0);
	json_open(out, NULL, '{');
	json_open(out, "parameters", '{');
}

void reply_error(struct json *out, const char *error)
{
	json_rollback(out, 0);
	json_open(out, NULL, '{');
	json_string(out, "error", error);
	json_open(out, "parameters", '{');
}

bool reply_is_error(const struct json *out)
{
	return out->length >= strlen(error_head) &&
	       memcmp(out->buffer, error_head, strlen(error_head)) == 0;
}

void reply_finish(struct json *out, bool continues)
{
	if (out->overflow) {
		reply_too_large(out);
		continues = false;
	}
	json_raw(out, "}");
	json_raw(out, continues ? ",\"continues\":true}" : "}");
	out->buffer[out->length++] = '\0';
}

enum api_result reply_service_error(
	struct json *out, const char *error, const char *field, const char *text)
{
	reply_error(out, error);
	json_string_cut(out, field, text, ECHO_MAX);
	return API_LAST;
}

enum api_result reply_invalid_parameter(struct json *out, const char *parameter)
{
	/* parameter may be a name inside the parsed call, never inside out */
	return reply_service_error(
		out, "org.varlink.service.InvalidParameter", "parameter", parameter);
}

enum api_result reply_not_found(struct json *out, const char *what, const char *name)
{
	reply_error(out, PROTO_INTERFACE_NAME ".NotFound");
	json_string(out, "what", what);
	json_string_cut(out, "name", name, ECHO_MAX);
	return API_LAST;
}

enum api_result reply_limit(struct json *out, const char *what, size_t limit)
{
	reply_error(out, PROTO_INTERFACE_NAME ".LimitReached");
	json_string(out, "what", what);
	json_unsigned(out, "limit", limit);
	return API_LAST;
}

enum api_result reply_too_large(struct json *out)
{
	reply_error(out, PROTO_INTERFACE_NAME ".TooLarge");
	json_unsigned(out, "limit_bytes", PROTO_FRAME_MAX);
	return API_LAST;
}

enum api_result reply_hold(struct reply_held *held, struct json *out, enum api_result result)
{
	held->text = mem_zalloc(out->length);
	if (!held->text) {
		return reply_limit(out, "memory", 0);
	}
	memcpy(held->text, out->buffer, out->length);
	held->length = out->length;
	return result;
}

void reply_resume(struct reply_held *held, struct json *out, const char *array)
{
	if (!held->text) {
		json_open(out, array, '[');
		return;
	}
	json_rollback(out, 0);
	memcpy(out->buffer, held->text, held->length);
	out->length = held->length;
	free(held->text);
	held->text = NULL;
}
