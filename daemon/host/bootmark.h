/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bootmark.h: finds out how the previous boot ended, from the file "boot" of the state directory:
 * this boot's id, and whether the daemon runs, was stopped, or was stopped because the system shuts
 * down. What it cannot know is "unknown", with the reason.
 */
#pragma once

#include "daemon/core/status/facts.h"
#include "daemon/util/root.h"

/* At the start: fills boot_reason, boot_reason_detail and reset_reason of facts (its boot_id is
 * there), and marks the boot as running. dir: "" or one that cannot be written: there is none. */
void bootmark_begin(const char *dir, const struct root *root, struct machine_facts *facts);

/* The daemon was asked to stop; asks the service manager why, for at most half a second. */
void bootmark_end(const char *dir, const struct machine_facts *facts);
