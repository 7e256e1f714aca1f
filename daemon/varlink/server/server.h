/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server.h: opens the Varlink server on the run directory's socket io.edgeprof: framing, limits by
 * uid, methods, subscriptions. It reads core, and changes it only through what methods call.
 */
#pragma once

#include <uv.h>

#include "daemon/varlink/server/options.h"

struct api;
struct core;

int api_open(
	uv_loop_t *loop, struct core *core, const struct api_options *options, struct api **ret);
/* Freed with its last handle. Accepts NULL. */
void api_close(struct api *api);
