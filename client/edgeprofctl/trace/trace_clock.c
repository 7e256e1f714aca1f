/* From one clock to the other, as the daemon's table says: the newest entry that holds. */
#include "client/edgeprofctl/trace/trace.h"

#include <stdlib.h>

#include "client/edgeprofctl/link/json.h"

enum { ENTRIES_MAX = 4096 };

static void read_column(const cJSON *start, const char *name, int64_t *ret, size_t count)
{
	const cJSON *item = json_first(start, name);
	for (size_t i = 0; i < count && item; i++, item = item->next) {
		double value = cJSON_IsNumber(item) ? item->valuedouble : 0;
		ret[i] = fabs(value) < 9e15 ? (int64_t)value : 0;
	}
}

bool trace_clock_read(struct trace_clock *clock, const cJSON *start)
{
	int mono = json_count(start, "clock_mono_us"), wall = json_count(start, "clock_time_us");
	int count = mono < wall ? mono : wall;
	count = count < ENTRIES_MAX ? count : ENTRIES_MAX;
	*clock = (struct trace_clock){0};
	if (count == 0) {
		return true;
	}
	clock->mono_us = calloc((size_t)count, sizeof(*clock->mono_us));
	clock->time_us = calloc((size_t)count, sizeof(*clock->time_us));
	if (!clock->mono_us || !clock->time_us) {
		trace_clock_finish(clock);
		return false;
	}
	clock->count = (size_t)count;
	read_column(start, "clock_mono_us", clock->mono_us, clock->count);
	read_column(start, "clock_time_us", clock->time_us, clock->count);
	return true;
}

void trace_clock_finish(struct trace_clock *clock)
{
	free(clock->mono_us);
	free(clock->time_us);
	*clock = (struct trace_clock){0};
}

int64_t trace_clock_time_us(const struct trace_clock *clock, uint64_t mono_ns)
{
	int64_t mono_us = (int64_t)(mono_ns / 1000);
	if (clock->count == 0) {
		return 0;
	}
	size_t at = clock->count - 1;
	while (at > 0 && clock->mono_us[at] > mono_us) {
		at--;
	}
	return mono_us + (clock->time_us[at] - clock->mono_us[at]);
}

/* A wall time may have been twice, or never: the newest entry that held then. */
uint64_t trace_clock_mono_ns(const struct trace_clock *clock, int64_t time_us, uint64_t until_ns)
{
	if (clock->count == 0) {
		return 0;
	}
	int64_t until_us = (int64_t)(until_ns / 1000) + 1;
	size_t at = clock->count - 1;
	int64_t mono_us = time_us - (clock->time_us[at] - clock->mono_us[at]);
	while (at > 0 && (mono_us < clock->mono_us[at] || mono_us > until_us)) {
		until_us = clock->mono_us[at];
		at--;
		mono_us = time_us - (clock->time_us[at] - clock->mono_us[at]);
	}
	return mono_us > 0 ? (uint64_t)mono_us * 1000 : 0;
}
