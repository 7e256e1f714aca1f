/* SPDX-License-Identifier: Apache-2.0 */
/*
 * latency_stamp.h: finds the capture time in a payload. By convention, that is the member
 * capture_us of a JSON object (whole µs since the epoch), else capture_ts_ms, else ts_ms (as in
 * edgeprofd's own payloads). With a key (dots lead into objects) only that member is used; its unit
 * follows from its suffix _s, _ms, _us or _ns, else from its magnitude. A payload that is a bare
 * number is that time. Payloads are not trusted.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum stamp {
	STAMP_FOUND,
	STAMP_NONE,	 /* a payload without such a time, or not a finite number */
	STAMP_MALFORMED, /* neither a JSON object nor a number */
	STAMP_TOO_LARGE,
};

enum { STAMP_PAYLOAD_MAX = 64 * 1024 };

/* key NULL: the convention. *us: since the epoch; *unsynchronised: the sender says that its clock
 * is ("clock":"unsynchronised"). */
enum stamp latency_stamp(
	const char *bytes, size_t length, const char *key, double *us, bool *unsynchronised);
