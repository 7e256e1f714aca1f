/* How the places of ingest (connections, mappings, apps) are shared between users. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Whether who holds own of max places, others being held by others, may have want more. An ordinary
 * user may hold half of what the others left; a trusted one all but an eighth of max, which is kept
 * for the others. */
bool share_fits(uint64_t max, uint64_t own, uint64_t others, uint64_t want, bool trusted);
