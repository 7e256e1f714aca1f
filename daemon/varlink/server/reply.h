/* SPDX-License-Identifier: Apache-2.0 */
/* reply.h: writes the frame of replies, and errors, into the server's one reply buffer. */
#pragma once

#include <stdbool.h>

#include "proto/json_write.h"

/* What a method or a stream made of its turn. */
enum api_result {
	API_LAST,  /* a reply is written; it is the last of the call */
	API_CHUNK, /* a reply is written; more follow */
	API_YIELD, /* nothing to send yet: call again in the next turn */
	API_WAIT,  /* nothing to send until the stream is woken */
};

/* Opens the message and its parameters; fields follow. */
void reply_begin(struct json *out);

/* Throws away what was written and begins the error instead; its parameters follow. */
void reply_error(struct json *out, const char *error);

/* Closes the message, NUL included in out->length. A message that did not fit becomes TooLarge. */
void reply_finish(struct json *out, bool continues);
bool reply_is_error(const struct json *out);

/* All return API_LAST. Texts of the peer are cut. */
enum api_result reply_invalid_parameter(struct json *out, const char *parameter);
enum api_result reply_not_found(struct json *out, const char *what, const char *name);
enum api_result reply_limit(struct json *out, const char *what, size_t limit);
enum api_result reply_too_large(struct json *out);

/* What a single reply has so far, between turns: the owner's to free(3). */
struct reply_held {
	char *text; /* NULL: nothing */
	size_t length;
};
/* Returns result; without memory the reply is that error. */
enum api_result reply_hold(struct reply_held *held, struct json *out, enum api_result result);
/* Puts it back; in the first turn opens the array instead. */
void reply_resume(struct reply_held *held, struct json *out, const char *array);

/* The errors of org.varlink.service that name one thing. */
enum api_result reply_service_error(
	struct json *out, const char *error, const char *field, const char *text);
