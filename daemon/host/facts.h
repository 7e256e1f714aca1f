/* Facts about the machine and this run, read once at start. */
#pragma once

#include "daemon/core/core.h"
#include "daemon/util/root.h"

/* Fills every field; what cannot be read stays empty. run_dir and history_reason are the caller's.
 */
void facts_read(struct facts *facts, const struct root *root, const struct root *real_root);
