/* self: what the daemon itself costs, and how much of its limits is used. */
#include "client/edgeprofctl/verbs.h"

#include <math.h>
#include <string.h>

#include "client/edgeprofctl/link/json.h"
#include "client/edgeprofctl/term/format.h"
#include "client/edgeprofctl/term/table.h"

static void add(struct table *table, const char *name, const char *value, const char *note)
{
	table_add(table, TONE_DIM, "%s", name);
	table_add(table, TONE_NONE, "%s", value);
	table_add(table, TONE_DIM, "%s", note);
}

static void add_used(struct table *table, const char *name, const cJSON *self, const char *used,
	const char *limit, const char *refused)
{
	char value[160];
	char note[96] = "";
	int64_t turned_away = refused == NULL ? 0 : json_integer(self, refused);
	snprintf(value, sizeof(value), "%s of %s", format_count(json_integer(self, used)).text,
		format_count(json_integer(self, limit)).text);
	if (turned_away > 0) {
		snprintf(note, sizeof(note), "%s refused", format_count(turned_away).text);
	}
	add(table, name, value, note);
}

static void add_counts(struct table *table, const cJSON *self)
{
	static const struct {
		const char *name, *member, *refused, *verb;
	} rows[] = {
		{"Events", "events_received", "events_dropped", "dropped"},
		{"Bad events", "events_invalid", NULL, NULL},
		{"Attaches", "attaches", "attaches_refused", "refused"},
		{"Datagrams", "statsd_datagrams", "statsd_lost", "lost"},
		{"  lines", "statsd_lines", "statsd_refused", "refused"},
		{"  bad lines", "statsd_bad_lines", "statsd_unsupported", "not supported"},
		{"  cut", "statsd_truncated", NULL, NULL},
		{"Connections", "api_connections", "api_refused", "refused"},
		{"Calls", "api_calls", "api_errors", "failed"},
		{"Clock steps", "clock_steps", NULL, NULL},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char note[96] = "";
		int64_t refused = rows[i].refused == NULL ? 0 : json_integer(self, rows[i].refused);
		if (refused > 0) {
			snprintf(note, sizeof(note), "%s %s", format_count(refused).text,
				rows[i].verb);
		}
		add(table, rows[i].name, format_count(json_integer(self, rows[i].member)).text,
			note);
	}
}

static void add_history(struct table *table, const cJSON *self)
{
	char value[160], note[160];
	snprintf(value, sizeof(value), "%s of %s",
		format_bytes(json_number(self, "history_used_bytes")).text,
		format_bytes(json_number(self, "history_bytes")).text);
	add(table, "History", value, "");
	for (const cJSON *tier = json_first(self, "history_tiers"); tier != NULL;
		tier = tier->next) {
		double step_s = json_number(tier, "step_s");
		double bytes_each = json_number(tier, "bytes_per_sample");
		snprintf(value, sizeof(value), step_s > 0 ? "  buckets of %g s" : "  every sample",
			step_s);
		note[0] = '\0';
		if (!isnan(bytes_each)) {
			snprintf(note, sizeof(note), "%.2f bytes each", bytes_each);
		}
		add(table, value, format_span(json_number(tier, "span_s")).text, note);
	}
	add(table, "  samples", format_count(json_integer(self, "history_samples")).text,
		json_word(self, "history_reason"));
}

/* How far back after a power cut, and what that costs the medium. */
static void add_persistence(struct table *table, const cJSON *self)
{
	char value[160], note[320];
	const char *state = json_word(self, "history_persist_state");
	if (state[0] == '\0' || strcmp(state, "off") == 0) {
		return;
	}
	add(table, "Persistence", state, json_word(self, "history_persist_reason"));
	add(table, "  file", format_bytes(json_number(self, "history_persist_bytes")).text,
		json_word(self, "history_persist_path"));
	double loss_s = json_number(self, "history_persist_loss_s");
	snprintf(note, sizeof(note), "buckets of %g s, written every %s",
		json_number(self, "history_persist_bucket_s"),
		format_span(json_number(self, "history_persist_period_s")).text);
	add(table, "  a power cut costs", isnan(loss_s) ? "-" : format_span(loss_s).text,
		isnan(loss_s) ? "" : note);
	snprintf(value, sizeof(value), "%s of %s",
		format_bytes(json_number(self, "history_persist_day_bytes")).text,
		format_bytes(json_number(self, "history_persist_day_limit_bytes")).text);
	add(table, "  written in 24 h", value, "with what the file system writes");
	int64_t damaged = json_integer(self, "history_persist_damaged_pages");
	snprintf(note, sizeof(note), "%s damaged pages", format_count(damaged).text);
	add(table, "  boots", format_count(json_integer(self, "history_persist_boots")).text,
		damaged > 0 ? note : "");
	int64_t dropped = json_integer(self, "history_persist_dropped");
	if (dropped > 0) {
		add(table, "  dropped", format_count(dropped).text,
			"nothing could be written for too long");
	}
}

static void add_degraded(struct table *table, const cJSON *self)
{
	for (const cJSON *row = json_first(self, "degraded"); row != NULL; row = row->next) {
		add(table, row == json_first(self, "degraded") ? "Degraded" : "",
			json_word(row, "file"), json_word(row, "reason"));
	}
}

static void add_records(struct table *table, const cJSON *self)
{
	char value[160], note[160];
	snprintf(value, sizeof(value), "%s of %s",
		format_bytes(json_number(self, "records_used_bytes")).text,
		format_bytes(json_number(self, "records_bytes")).text);
	double span = json_number(self, "records_span_s");
	snprintf(note, sizeof(note), "%s%s", isnan(span) ? "" : "the last ",
		isnan(span) ? "" : format_span(span).text);
	add(table, "Raw records", value, note);
}

static const char *amount(const cJSON *pool, const char *member, char text[64])
{
	bool bytes = strcmp(json_word(pool, "unit"), "bytes") == 0;
	snprintf(text, 64, "%s",
		bytes ? format_bytes(json_number(pool, member)).text
		      : format_count(json_integer(pool, member)).text);
	return text;
}

/* What has a limit: used, the limit, and the most it ever was. */
static void add_pools(struct table *table, const cJSON *self)
{
	char name[80], value[160], note[96], used[64], limit[64], most[64];
	add(table, "Limits", "", "");
	for (const cJSON *pool = json_first(self, "pools"); pool != NULL; pool = pool->next) {
		snprintf(name, sizeof(name), "  %.70s", json_word(pool, "name"));
		snprintf(value, sizeof(value), "%s of %s", amount(pool, "used", used),
			amount(pool, "limit", limit));
		snprintf(note, sizeof(note), "at most %s so far", amount(pool, "high_water", most));
		add(table, name, value, note);
	}
}

/* How long the daemon was away from its sockets. */
static void add_turns(struct table *table, const cJSON *self)
{
	char text[96], minute[96];
	double longest_us = json_number(self, "turn_max_us");
	snprintf(text, sizeof(text), "%.1f ms", longest_us / 1000);
	snprintf(minute, sizeof(minute), "%.1f ms in the last minute",
		json_number(self, "turn_max_minute_us") / 1000);
	bool known = !isnan(longest_us);
	add(table, "Slowest turn", known ? text : "-", known ? minute : "");
}

static void show_self(struct ctl *ctl, const cJSON *self)
{
	static const struct column columns[] = {
		{NULL, false, false}, {NULL, false, false}, {NULL, false, true}};
	struct table table;
	char text[96];
	table_init(&table, columns, sizeof(columns) / sizeof(columns[0]));
	snprintf(text, sizeof(text), "%lld", (long long)json_integer(self, "pid"));
	add(&table, "Process", text, "");
	add(&table, "Up", format_span(json_number(self, "uptime_s")).text, "");
	snprintf(text, sizeof(text), "%s anonymous",
		format_bytes(json_number(self, "anonymous_bytes")).text);
	add(&table, "Memory", format_bytes(json_number(self, "rss_bytes")).text, text);
	double cpu = json_number(self, "cpu_percent");
	snprintf(text, sizeof(text), "%.2f %%", cpu);
	add(&table, "CPU", isnan(cpu) ? "-" : text, "");
	add_turns(&table, self);
	add_history(&table, self);
	add_persistence(&table, self);
	add_degraded(&table, self);
	add_records(&table, self);
	add_used(&table, "Metrics", self, "metrics", "metrics_max", "metrics_refused");
	add_used(&table, "Stages", self, "stages", "stages_max", "stages_refused");
	add_counts(&table, self);
	add_pools(&table, self);
	const char *bad = json_word(self, "statsd_bad_reason");
	if (bad[0] != '\0') {
		add(&table, "Last bad line", bad, "");
	}
	const char *no_datagrams = json_word(self, "statsd_reason");
	if (no_datagrams[0] != '\0') {
		add(&table, "No datagrams", no_datagrams, "");
	}
	const char *reason = json_word(self, "attach_refused_reason");
	if (reason[0] != '\0') {
		add(&table, "Last refusal", reason, "");
	}
	int64_t refused = json_integer(self, "alerts_refused");
	if (refused > 0) {
		add(&table, "Alerts refused", format_count(refused).text, "");
	}
	table_print(&table, &ctl->style, ctl->output.stream, 0);
	table_finish(&table);
}

int verb_self(struct ctl *ctl)
{
	cJSON *reply;
	int status = ctl_call(ctl, "GetSelf", NULL, false, &reply);
	if (status != CTL_FINE) {
		return status;
	}
	if (!ctl_json(ctl, reply)) {
		show_self(ctl, reply);
	}
	cJSON_Delete(reply);
	return CTL_FINE;
}
