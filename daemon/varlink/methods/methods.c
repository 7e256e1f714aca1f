/* SPDX-License-Identifier: Apache-2.0 */
/* methods.c: holds the table of methods that the server dispatches calls by. */
#include "daemon/varlink/methods/methods.h"

#include "daemon/core/alerts/actions.h"
#include "daemon/core/status/sessions.h"

#define SERVICE "org.varlink.service."
#define OWN PROTO_INTERFACE_NAME "."

/* clang-format off */
#define ANY 0, 0
#define NOT_NEGATIVE 0, 9007199254740992.0F /* 2^53 */
#define REQUIRED(type, name) {name, PARAM_##type, true, ANY}
#define STRING(name) {name, PARAM_STRING, false, ANY}
#define BOOL(name) {name, PARAM_BOOL, false, ANY}
#define INT(name, ...) {name, PARAM_INT, false, __VA_ARGS__}
#define FLOAT(name, ...) {name, PARAM_FLOAT, false, __VA_ARGS__}
#define PAIRS(name) {name, PARAM_PAIRS, false, ANY}
#define RUN_PARAMS INT("run", ANY), BOOL("all_runs") /* read by run_choose() */
#define NO_PARAMS {NULL, 0, false, ANY}
#define METHOD(function, name, flags, ...) {name, method_##function, flags, {__VA_ARGS__}},
/* clang-format on */

static const struct api_method rows[] = {
#include "daemon/varlink/methods/methods.def"
};

const struct api_methods edgeprof_methods = {
	.row = rows,
	.count = sizeof(rows) / sizeof(rows[0]),
	.open = subscribe_open,
	.close = subscribe_close,
};
