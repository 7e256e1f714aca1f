/* SPDX-License-Identifier: Apache-2.0 */
/* throttle.c: shows what the hardware reports about throttling, now and since boot, and which
 * sources were tried. */
#include "client/edgeprofctl/verb.h"

#include <string.h>

#include "client/edgeprofctl/link/json.h"
#include "client/edgeprofctl/listing.h"

static const char *reason_of(const cJSON *reply, const char *field)
{
	for (const cJSON *item = json_first(reply, "unknown"); item; item = item->next) {
		if (strcmp(json_word(item, "field"), field) == 0) {
			return json_word(item, "reason");
		}
	}
	return "";
}

static void add_state(struct table *table, const cJSON *reply, const char *field)
{
	const cJSON *value = json_get(reply, field);
	if (cJSON_IsBool(value)) {
		bool yes = cJSON_IsTrue(value);
		table_add(table, yes ? TONE_WARN : TONE_NONE, yes ? "yes" : "no");
	} else {
		table_add(table, TONE_DIM, "unknown");
	}
}

static void show_flags(struct ctl *ctl, const cJSON *reply)
{
	static const struct column columns[] = {{"Flag", false, false}, {"Now", false, false},
		{"Since boot", false, false}, {"Why unknown", false, true}};
	static const char *const rows[][3] = {
		{"Throttling", "is_throttling", NULL},
		{"Under-voltage", "currently_under_voltage", "under_voltage_occurred"},
		{"Frequency capped", "currently_freq_capped", "freq_capped_occurred"},
		{"Throttled", "currently_throttled", "throttled_occurred"},
		{"Soft temperature limit", "currently_soft_temp_limit", "soft_temp_limit_occurred"},
		{"Over-current", "over_current", NULL},
		{"Over critical temperature", "over_critical", NULL},
	};
	struct table table;
	table_init(&table, columns, sizeof(columns) / sizeof(columns[0]));
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		table_add(&table, TONE_NONE, "%s", rows[i][0]);
		add_state(&table, reply, rows[i][1]);
		if (rows[i][2]) {
			add_state(&table, reply, rows[i][2]);
		} else {
			table_add(&table, TONE_NONE, "%s", "");
		}
		const char *reason = reason_of(reply, rows[i][1]);
		if (reason[0] == '\0' && rows[i][2]) {
			reason = reason_of(reply, rows[i][2]);
		}
		table_add(&table, TONE_DIM, "%s", reason);
	}
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
		"\n[Word:   {raw}\n][Hottest: {temperature_celsius:1} C, critical at "
		"[{critical_celsius:0}|-] C\n]\n",
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
	"throttle", "", "Show whether the hardware throttles, and why.", "throttle", NULL, 0, run};
