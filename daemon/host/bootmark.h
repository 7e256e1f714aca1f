/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bootmark.h: finds out how the previous boot ended, from the file "boot" of the state directory:
 * this boot's id, and whether the daemon runs, was stopped, or was stopped because the system shuts
 * down. What it cannot know is "unknown", with the reason.
 */
#pragma once

#include <uv.h>

#include "daemon/core/status/facts.h"
#include "daemon/util/root.h"

/* At the start: fills boot_reason, boot_reason_detail and reset_reason of facts (its boot_id is
 * there), and marks the boot as running. dir: "" = there is none. Both write on a thread of their
 * own and wait for it at most 0.7 s: a disk may hang. */
void bootmark_begin(
	uv_loop_t *loop, const char *dir, const struct root *root, struct machine_facts *facts);

/* The daemon was asked to stop; asks the service manager why. */
void bootmark_end(uv_loop_t *loop, const char *dir, const struct machine_facts *facts);
