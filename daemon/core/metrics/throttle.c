/* SPDX-License-Identifier: Apache-2.0 */
/* throttle.c: interprets the Raspberry Pi's word, joins what several sources report, writes the
 * transitions to the timeline, and keeps the recent ones in a small ring for the stages. */
#include "daemon/core/metrics/throttle.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "daemon/core/timeline/timeline.h"
#include "proto/text.h"

enum { STICKY_SHIFT = 16 };

static const char *const flag_names[THROTTLE_FLAGS] = {
	[THROTTLE_UNDER_VOLTAGE] = "under_voltage",
	[THROTTLE_FREQ_CAPPED] = "freq_capped",
	[THROTTLE_THROTTLED] = "throttled",
	[THROTTLE_SOFT_TEMP_LIMIT] = "soft_temp_limit",
	[THROTTLE_UNDER_VOLTAGE_OCCURRED] = "under_voltage_occurred",
	[THROTTLE_FREQ_CAPPED_OCCURRED] = "freq_capped_occurred",
	[THROTTLE_THROTTLED_OCCURRED] = "throttled_occurred",
	[THROTTLE_SOFT_TEMP_LIMIT_OCCURRED] = "soft_temp_limit_occurred",
	[THROTTLE_OVER_CURRENT] = "over_current",
	[THROTTLE_ACTIVE] = "active",
};

const char *throttle_flag_name(enum throttle_flag flag)
{
	return flag_names[flag];
}

void throttle_clear(struct throttle_status *status, const char *reason)
{
	status->has_raw = false;
	status->raw = 0;
	status->raw_reason = reason;
	status->source[0] = '\0';
	for (size_t i = 0; i < THROTTLE_FLAGS; i++) {
		status->flag[i] = (struct throttle_state){THROTTLE_UNKNOWN, reason};
	}
}

void throttle_set(struct throttle_status *status, enum throttle_flag flag, bool yes)
{
	status->flag[flag] = (struct throttle_state){yes ? THROTTLE_YES : THROTTLE_NO, NULL};
}

void throttle_join(struct throttle_status *status, enum throttle_flag flag, bool yes)
{
	if (status->flag[flag].value != THROTTLE_YES) {
		throttle_set(status, flag, yes);
	}
}

void throttle_on_word(struct throttle_status *status, uint32_t word, enum throttle_sticky sticky)
{
	status->has_raw = true;
	status->raw = word;
	status->raw_reason = NULL;
	for (unsigned i = 0; i < THROTTLE_WORD_FLAGS; i++) {
		enum throttle_flag occurred = (enum throttle_flag)(i + THROTTLE_WORD_FLAGS);
		bool now = word >> i & 1;
		bool since = word >> (i + STICKY_SHIFT) & 1;
		throttle_set(status, (enum throttle_flag)i, now);
		if (since || now || sticky == THROTTLE_SINCE_BOOT) {
			throttle_set(status, occurred, since || now);
		} else {
			status->flag[occurred].value = THROTTLE_UNKNOWN;
			status->flag[occurred].reason = "cleared by the kernel's own polls";
		}
	}
	const uint32_t lowers_clock = 1u << THROTTLE_FREQ_CAPPED | 1u << THROTTLE_THROTTLED |
				      1u << THROTTLE_SOFT_TEMP_LIMIT;
	throttle_set(status, THROTTLE_ACTIVE, (word & lowers_clock) != 0);
}

void throttle_occurred(struct throttle_status *status)
{
	for (unsigned i = 0; i < THROTTLE_WORD_FLAGS; i++) {
		enum throttle_value now = status->flag[i].value;
		struct throttle_state *occurred = &status->flag[i + THROTTLE_WORD_FLAGS];
		status->seen[i] = status->seen[i] || now == THROTTLE_YES;
		if (status->seen[i]) {
			throttle_set(status, (enum throttle_flag)(i + THROTTLE_WORD_FLAGS), true);
		} else if (now == THROTTLE_NO && occurred->value == THROTTLE_UNKNOWN &&
			   !status->has_raw) {
			occurred->reason = "not seen since the daemon started";
		}
	}
}

void throttle_add_source(struct throttle_status *status, const char *source)
{
	struct text text = {status->source, sizeof(status->source), strlen(status->source), false};
	text_join(&text, ", ", "%s", source);
}

void throttle_add_tried(struct throttle_status *status, const char *source, const char *format, ...)
{
	if (status->tried_count == THROTTLE_TRIED_MAX) {
		return;
	}
	size_t i = status->tried_count++;
	snprintf(status->tried[i].source, sizeof(status->tried[i].source), "%s", source);
	va_list args;
	va_start(args, format);
	vsnprintf(status->tried[i].result, sizeof(status->tried[i].result), format, args);
	va_end(args);
}

static void add_edge(struct throttle_times *times, uint64_t t_ns, enum throttle_value value)
{
	if (times->count > 0) {
		times->newest = (times->newest + 1) % THROTTLE_TIMES_EDGES;
	}
	times->count += times->count < THROTTLE_TIMES_EDGES;
	times->edge[times->newest] = (struct throttle_edge){t_ns, value};
}

void throttle_times_sample(struct throttle_times *times, uint64_t now_ns, enum throttle_value value)
{
	if (times->sampled_ns > 0 && now_ns <= times->sampled_ns) {
		return;
	}
	enum throttle_value last =
		times->count > 0 ? times->edge[times->newest].value : THROTTLE_UNKNOWN;
	const uint64_t passed_ns = times->sampled_ns > 0 ? now_ns - times->sampled_ns : 0;
	if (passed_ns > times->hold_ns) { /* samples are missing: in between it is unknown */
		if (last != THROTTLE_UNKNOWN) {
			add_edge(times, times->sampled_ns + times->hold_ns, THROTTLE_UNKNOWN);
			last = THROTTLE_UNKNOWN;
		}
		times->hold_ns = THROTTLE_TIMES_HOLD_NS;
	} else {
		times->hold_ns = 3 * passed_ns > THROTTLE_TIMES_HOLD_NS ? 3 * passed_ns
									: THROTTLE_TIMES_HOLD_NS;
	}
	if (value != last) {
		add_edge(times, now_ns, value);
	}
	times->sampled_ns = now_ns;
}

enum throttle_value throttle_times_search(const struct throttle_times *times, uint64_t t_ns)
{
	for (size_t back = 0; back < times->count; back++) {
		size_t i = (times->newest + THROTTLE_TIMES_EDGES - back) % THROTTLE_TIMES_EDGES;
		if (t_ns >= times->edge[i].t_ns) {
			return times->edge[i].value;
		}
	}
	return THROTTLE_UNKNOWN;
}

static void report_edge(const struct throttle_status *status, struct timeline *timeline,
	enum throttle_flag flag, const char *what, uint64_t t_ns)
{
	const bool on = strcmp(what, "ended") != 0;
	char word[32] = "";
	if (status->has_raw) {
		snprintf(word, sizeof(word), ", word 0x%x", (unsigned)status->raw);
	}
	timeline_add(timeline, t_ns, TIMELINE_THROTTLE, on ? TIMELINE_WARNING : TIMELINE_INFO,
		flag_names[flag], "%s %s (%s%s)",
		flag == THROTTLE_ACTIVE ? "throttling" : flag_names[flag], what, status->source,
		word);
}

/* Whether the last entry of the flag in this boot says that it began, by its level. The timeline
 * outlives the process and the collector. */
static bool was_on(const struct timeline *timeline, enum throttle_flag flag)
{
	const struct timeline_entry *entry;
	for (uint64_t serial = timeline_last_serial(timeline); serial > 0; serial--) {
		entry = timeline_from(timeline, serial);
		if (!entry || entry->serial != serial || entry->boot_seq != 0) {
			break;
		}
		if (entry->kind == TIMELINE_THROTTLE &&
			strcmp(entry->subject, flag_names[flag]) == 0) {
			return entry->level == TIMELINE_WARNING;
		}
	}
	return false;
}

/* The flag is known for the first time: it may have begun earlier. */
static void first_seen(struct throttle_edges *edges, const struct throttle_status *status,
	struct timeline *timeline, enum throttle_flag flag, uint64_t now_ns)
{
	edges->flag[flag].known = true;
	edges->flag[flag].logged = was_on(timeline, flag);
	if (!edges->flag[flag].logged && status->flag[flag].value == THROTTLE_YES) {
		edges->flag[flag].logged = true;
		report_edge(status, timeline, flag, "is active", now_ns);
	}
}

void throttle_edges_update(struct throttle_edges *edges, struct throttle_status *status,
	struct timeline *timeline, uint64_t now_ns)
{
	throttle_times_sample(&status->times, now_ns, status->flag[THROTTLE_ACTIVE].value);
	static const enum throttle_flag edge_flags[] = {THROTTLE_ACTIVE, THROTTLE_UNDER_VOLTAGE,
		THROTTLE_FREQ_CAPPED, THROTTLE_THROTTLED, THROTTLE_SOFT_TEMP_LIMIT};
	for (size_t i = 0; i < sizeof(edge_flags) / sizeof(edge_flags[0]); i++) {
		enum throttle_flag flag = edge_flags[i];
		if (!edges->flag[flag].known && status->flag[flag].value != THROTTLE_UNKNOWN) {
			first_seen(edges, status, timeline, flag, now_ns);
		}
		switch (status->flag[flag].value) {
		case THROTTLE_YES:
			edges->flag[flag].off_ns = 0;
			if (!edges->flag[flag].logged) {
				edges->flag[flag].logged = true;
				report_edge(status, timeline, flag, "began", now_ns);
			}
			break;
		case THROTTLE_NO:
			if (!edges->flag[flag].logged) {
				break;
			}
			if (edges->flag[flag].off_ns == 0) {
				edges->flag[flag].off_ns = now_ns;
			} else if (now_ns - edges->flag[flag].off_ns >= THROTTLE_OFF_NS) {
				edges->flag[flag].logged = false;
				report_edge(status, timeline, flag, "ended", now_ns);
			}
			break;
		case THROTTLE_UNKNOWN:
			edges->flag[flag].off_ns = 0; /* no proof of an end */
			break;
		}
	}
}
