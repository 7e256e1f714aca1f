/* SPDX-License-Identifier: Apache-2.0 */
/* throttle.c: shows what the hardware reports about throttling, now and since boot, and which
 * sources were tried. */
#include "client/edgeprofctl/verb.h"

#include "client/edgeprofctl/link/json.h"
#include "client/edgeprofctl/listing.h"

/* A flag, and why it is unknown. */
#define FLAG(name) "[{?" name "}{~warn}yes|{" name ":is}{~none}no|{~dim}unknown]"
#define WHY(name) "{*unknown}[{?field=" name "}{reason}]{/}"

/* A line about a flag that is of now only, and about one that has another since boot. */
#define NOW(now) FLAG(now) "\t{~none}\t" WHY(now)
#define NOW_SINCE(now, since) FLAG(now) "\t" FLAG(since) "\t[" WHY(now) "|" WHY(since) "]"

static void show_flags(struct ctl *ctl, const cJSON *reply)
{
	static const struct column columns[] = {{"Flag", false, false}, {"Now", false, false},
		{"Since boot", false, false}, {"Why unknown", false, true}};
	static const struct line rows[] = {
		{"{~none}Throttling", NOW("is_throttling")},
		{"{~none}Under-voltage",
			NOW_SINCE("currently_under_voltage", "under_voltage_occurred")},
		{"{~none}Frequency capped",
			NOW_SINCE("currently_freq_capped", "freq_capped_occurred")},
		{"{~none}Throttled", NOW_SINCE("currently_throttled", "throttled_occurred")},
		{"{~none}Soft temperature limit",
			NOW_SINCE("currently_soft_temp_limit", "soft_temp_limit_occurred")},
		{"{~none}Over-current", NOW("over_current")},
		{"{~none}Over critical temperature", NOW("over_critical")},
	};
	struct table table;
	table_init(&table, columns, sizeof(columns) / sizeof(columns[0]));
	listing_lines(ctl, &table, reply, rows, sizeof(rows) / sizeof(rows[0]));
	ctl_table(ctl, &table);
}

static void show_tried(struct ctl *ctl, const cJSON *reply)
{
	static const struct field fields[] = {
		{"Tried", FIELD_TEXT, "{source}"},
		{"Result", FIELD_LONG, "{~dim}{result}"},
	};
	listing_show(ctl, reply, "tried", fields, sizeof(fields) / sizeof(fields[0]));
}

/* A reading that is older says how old it is. */
static const double OLD_MS = 5000;

static void show_throttle(struct ctl *ctl, const cJSON *reply)
{
	FILE *out = ctl->output.stream;
	listing_text(ctl, "Source: [{source}|none]", reply);
	if (json_number(reply, "age_ms") >= OLD_MS) {
		listing_text(ctl, " ({age_ms:ago})", reply);
	}
	listing_text(ctl,
		"\n[Word:   {raw}\n][Hottest: {temperature_celsius:celsius}, critical at "
		"{critical_celsius:celsius}\n]\n",
		reply);
	show_flags(ctl, reply);
	fputc('\n', out);
	show_tried(ctl, reply);
}

static int run(struct ctl *ctl)
{
	return ctl_show(ctl, "GetThrottle", NULL, false, show_throttle);
}

const struct verb verb_throttle = {
	"throttle", "", "Show whether the hardware throttles, and why.", "throttle", NULL, run};
