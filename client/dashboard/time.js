// SPDX-License-Identifier: Apache-2.0
// time.js: dates what a device has sent by the receiver's clock: the code of docs/fleet.md, which a test compares.

// offsets: a Map for each device, by boot_id, in microseconds
export function timeUs({boot_id: boot, mono_us: mono}, receivedUs, retained, offsets) {
    if (boot === undefined || mono === undefined) return null; // of a previous boot
    if (!retained) offsets.set(boot, Math.min(receivedUs - mono, offsets.get(boot) ?? Infinity));
    return offsets.has(boot) ? mono + offsets.get(boot) : null;
}
