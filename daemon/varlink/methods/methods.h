/* SPDX-License-Identifier: Apache-2.0 */
/*
 * methods.h: declares the methods of io.edgeprof, and how each answers: a function writes the
 * reply's fields into call->out and returns API_LAST, or replaces them by an error (reply_*), or
 * starts a stream. A new method is its description in proto/io.edgeprof.varlink, one function, and
 * one row in methods.def.
 */
#pragma once

#include "daemon/varlink/server/api.h"

/* For api_options. */
extern const struct api_methods edgeprof_methods;

#define METHOD(function, ...) enum api_result method_##function(struct api_call *call);
#include "daemon/varlink/methods/methods.def"
#undef METHOD

/* Observe metrics and timeline for the subscriptions of a server (subscribe.c). 0, or -ENOSPC. */
int subscribe_open(struct api *api);
void subscribe_close(struct api *api);

/* file_answer.c: answers by the text of a file, in parts. The file DIR/NAME.jsonl; what:
 * "recording" or "session", for NotFound. begins: it may not be there yet, and is empty then. Only
 * names of a table may come here. */
enum api_result file_answer(
	struct api_call *call, const char *what, const char *dir, const char *name, bool begins);
