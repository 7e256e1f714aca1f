/*
 * When was it captured? The convention of payloads: a JSON object with capture_us (whole µs since
 * the epoch), else capture_ts_ms, else ts_ms (what edgeprofd's own payloads hold). With a key (dots
 * lead into objects) only that one: its unit is its ending _s, _ms, _us, _ns, else what its size
 * says. A payload that is nothing but a number is that time. Payloads are a stranger's.
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
