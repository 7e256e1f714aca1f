/* Between the throttle collector, which knows the files, and everybody who wants to know: the
 * meaning of the Raspberry Pi's word, what joins several sources, and the edges for the timeline.
 */
#include "daemon/core/metrics/throttle.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "daemon/core/timeline/timeline.h"

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
	return flag < THROTTLE_FLAGS ? flag_names[flag] : "unknown";
}

const char *throttle_value_name(enum throttle_value value)
{
	switch (value) {
	case THROTTLE_UNKNOWN:
		break;
	case THROTTLE_NO:
		return "no";
	case THROTTLE_YES:
		return "yes";
	}
	return "unknown";
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

void throttle_take_word(struct throttle_status *status, uint32_t word, enum throttle_sticky sticky)
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
	size_t length = strlen(status->source);
	snprintf(status->source + length, sizeof(status->source) - length, "%s%s",
		length > 0 ? ", " : "", source);
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

static void tell(const struct throttle_status *status, struct timeline *timeline,
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

/* What the timeline says last of the flag in this boot: the level of the entry tells. It outlives
 * the process and the collector. */
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

/* The first time that the flag is known: nobody saw it begin. */
static void meet(struct throttle_edges *edges, const struct throttle_status *status,
	struct timeline *timeline, enum throttle_flag flag, uint64_t now_ns)
{
	edges->flag[flag].known = true;
	edges->flag[flag].told = was_on(timeline, flag);
	if (!edges->flag[flag].told && status->flag[flag].value == THROTTLE_YES) {
		edges->flag[flag].told = true;
		tell(status, timeline, flag, "is active", now_ns);
	}
}

void throttle_edges_update(struct throttle_edges *edges, struct throttle_status *status,
	struct timeline *timeline, uint64_t now_ns)
{
	throttle_times_sample(&status->times, now_ns, status->flag[THROTTLE_ACTIVE].value);
	static const enum throttle_flag told[] = {THROTTLE_ACTIVE, THROTTLE_UNDER_VOLTAGE,
		THROTTLE_FREQ_CAPPED, THROTTLE_THROTTLED, THROTTLE_SOFT_TEMP_LIMIT};
	for (size_t i = 0; i < sizeof(told) / sizeof(told[0]); i++) {
		enum throttle_flag flag = told[i];
		if (!edges->flag[flag].known && status->flag[flag].value != THROTTLE_UNKNOWN) {
			meet(edges, status, timeline, flag, now_ns);
		}
		switch (status->flag[flag].value) {
		case THROTTLE_YES:
			edges->flag[flag].quiet_ns = 0;
			if (!edges->flag[flag].told) {
				edges->flag[flag].told = true;
				tell(status, timeline, flag, "began", now_ns);
			}
			break;
		case THROTTLE_NO:
			if (!edges->flag[flag].told) {
				break;
			}
			if (edges->flag[flag].quiet_ns == 0) {
				edges->flag[flag].quiet_ns = now_ns;
			} else if (now_ns - edges->flag[flag].quiet_ns >= THROTTLE_QUIET_NS) {
				edges->flag[flag].told = false;
				tell(status, timeline, flag, "ended", now_ns);
			}
			break;
		case THROTTLE_UNKNOWN:
			edges->flag[flag].quiet_ns = 0; /* no proof of an end */
			break;
		}
	}
}
