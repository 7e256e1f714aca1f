/*
 * What alerts remember across a reboot ([history] persist): phases, since when by the wall clock,
 * acknowledgements; as bytes for a file. A new boot's memory (alerts_memory.h, alerts_holds.h) is
 * filled from them before the first rules. Hold times and limits begin anew, silences are over.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "daemon/core/alerts/alerts.h"
#include "daemon/core/metrics/wallclock.h"

/* The most that alerts_save writes. */
size_t alerts_saved_bytes(void);

/* Writes what is pending, fires, was not told yet to be ok or is acknowledged. The number of bytes;
 * the same state makes the same bytes as long as the clock is not set. */
size_t alerts_save(const struct alerts *alerts, const struct wallclock *wall, uint8_t *bytes);

/* The same of alerts that have nothing to remember: that many bytes. */
enum { ALERTS_SNAPSHOT_EMPTY = 32 };
size_t alerts_save_nothing(uint8_t *bytes);

/* Fills the two memories (those of alerts_remember and alerts_remember_holds, before these are
 * called) unless they are of this boot already. 0; -EALREADY: they are; -EBADMSG: the bytes are
 * damaged or another version's. Nothing in the bytes is trusted beyond their checksum. */
int alerts_load(void *memory, void *holds, const uint8_t boot_id[16], const uint8_t *bytes,
	size_t size, uint64_t now_ns);
