/* SPDX-License-Identifier: Apache-2.0 */
/* journal.h: writes alert transitions and the timeline as structured journal entries (MESSAGE_ID)
 * when the daemon runs under systemd, as log lines on stderr otherwise. */
#pragma once

#include "daemon/core/core.h"

struct journal;

int journal_create(struct core *core, struct journal **ret); /* -ENOMEM, -ENOSPC (no place) */
void journal_destroy(struct journal *journal);
