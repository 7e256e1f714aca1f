/* SPDX-License-Identifier: Apache-2.0 */
/* methods.c: holds the table of methods that the server dispatches calls by. */
#include "daemon/varlink/methods/methods.h"

#define SERVICE "org.varlink.service."
#define OWN PROTO_INTERFACE_NAME "."

/* clang-format off */
#define REQUIRED(type, name) {name, PARAM_##type, true}
#define STRING(name) {name, PARAM_STRING, false}
#define BOOL(name) {name, PARAM_BOOL, false}
#define INT(name) {name, PARAM_INT, false}
#define FLOAT(name) {name, PARAM_FLOAT, false}
#define RUN_PARAMS INT("run"), BOOL("all_runs") /* read by run_choose() */
#define NO_PARAMS {NULL, 0, false}
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
