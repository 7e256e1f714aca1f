/* SPDX-License-Identifier: Apache-2.0 */
/* facts.h: facts about the machine and this run, read once at start. */
#pragma once

#include "daemon/core/core.h"
#include "daemon/util/root.h"

/* Fills every field but run_dir and history_reason; what cannot be read stays empty. */
void facts_read(struct machine_facts *facts, const struct root *root, const struct root *real_root);
