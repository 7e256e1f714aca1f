/* SPDX-License-Identifier: Apache-2.0 */
/* daemon.h: creates core and the layers around it, reloads the configuration, and stops. Can be
 * started from a test. */
#pragma once

#include <stdint.h>
#include <uv.h>

struct daemon;

struct daemon_options {
	const char *config_path; /* NULL = the default places */
	const char *root;	 /* NULL = "/" */
	const char *pdeath_exec; /* executable for children (collect/lib/child.h); NULL = none */
	/* Tests only: see persist.h; 0 = the real times. */
	uint64_t history_period_ns, history_retry_ns;
};

/* Loads the configuration (errors logged), makes the run directory, opens everything on the loop.
 * 0; -EINVAL: configuration (exit 78); -EADDRINUSE: another daemon runs; other -errno, logged. */
int daemon_open(uv_loop_t *loop, const struct daemon_options *options, struct daemon **ret);

/* What ended the start after READY, when the history of an earlier process was read; 0: nothing. */
int daemon_failure(const struct daemon *daemon);

/* All or nothing: a wrong configuration is logged and the old one stays. 0 or -EINVAL with the
 * first error in text; with 0 it names the changed keys that need a restart. */
int daemon_reload(struct daemon *daemon, char *error, size_t size);

/* Stops everything; the loop runs empty afterwards. Idempotent. */
void daemon_stop(struct daemon *daemon);

/* After uv_run returned. Accepts NULL. */
void daemon_destroy(struct daemon *daemon);
