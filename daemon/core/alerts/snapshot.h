/* SPDX-License-Identifier: Apache-2.0 */
/*
 * snapshot.h: saves the state of alerts across a reboot ([history] persist) as bytes for a file:
 * phases, since when by the wall clock, acknowledgements. A new boot's mapped files (store.h,
 * overrides.h) are filled from them before the first rules. Hold times and limits start from zero,
 * silences have ended.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "daemon/core/alerts/alerts.h"
#include "daemon/core/metrics/wallclock.h"

/* The most that alerts_snapshot writes. */
size_t alerts_snapshot_bytes(void);

/* Writes what is pending, fires, was not sent to be ok yet or is acknowledged. The number of bytes;
 * the same state makes the same bytes as long as the clock is not set. 0: there is no store. */
size_t alerts_snapshot(const struct alerts *alerts, const struct wallclock *wall, uint8_t *bytes);

/* The same of no alerts at all: that many bytes. */
enum { ALERTS_SNAPSHOT_EMPTY = 32 };
size_t alerts_snapshot_empty(uint8_t *bytes);

/* Fills the two memories (those of alerts_attach_store and alerts_attach_overrides, before these
 * are called) unless they are of this boot already. 0; -EALREADY: they are; -EBADMSG: the bytes are
 * damaged or another version's. Nothing in the bytes is trusted beyond their checksum. */
int alerts_snapshot_restore(void *store, void *overrides, const uint8_t boot_id[16],
	const uint8_t *bytes, size_t size, uint64_t now_ns);
