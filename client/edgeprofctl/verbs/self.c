/* SPDX-License-Identifier: Apache-2.0 */
/* self.c: shows what the daemon itself costs, and how much of its limits is used. */
#include "client/edgeprofctl/verb.h"

#include <string.h>

#include "client/edgeprofctl/link/json.h"
#include "client/edgeprofctl/listing.h"

static const struct line process_lines[] = {
	{"Process", "{pid}", "", TONE_NONE},
	{"Up", "{uptime_s:s}", "", TONE_NONE},
	{"Memory", "{rss_bytes:bytes}", "{anonymous_bytes:bytes} anonymous", TONE_NONE},
	{"CPU", "[{cpu_percent:2} %|-]", "", TONE_NONE},
	/* how long the daemon was away from its sockets */
	{"Slowest iteration", "{turn_max_us:us}", "[{turn_max_minute_us:us} in the last minute]",
		TONE_NONE},
	{"History", "{history_used_bytes:bytes} of {history_bytes:bytes}", "", TONE_NONE},
};

static const struct line tier_lines[] = {
	{"[{?step_s}  buckets of {step_s:g} s|  every sample]", "{span_s:s}",
		"[{bytes_per_sample:2} bytes each]", TONE_NONE},
};

static const struct line sample_lines[] = {
	{"  samples", "{history_samples:count}", "{history_reason}", TONE_NONE},
};

/* How far back after a power cut, and what that costs the medium. */
static const struct line persistence_lines[] = {
	{"Persistence", "{history_persist_state}", "{history_persist_reason}", TONE_NONE},
	{"  file", "{history_persist_bytes:bytes}", "{history_persist_path}", TONE_NONE},
	{"  a power cut costs", "{history_persist_loss_s:s}",
		"[{history_persist_loss_s:is}buckets of {history_persist_bucket_s:g} s, written "
		"every {history_persist_period_s:s}]",
		TONE_NONE},
	{"  written in 24 h",
		"{history_persist_day_bytes:bytes} of {history_persist_day_limit_bytes:bytes}",
		"including what the file system writes", TONE_NONE},
	{"  boots", "{history_persist_boots:count}",
		"[{?history_persist_damaged_pages}{history_persist_damaged_pages:count} damaged "
		"pages]",
		TONE_NONE},
	{"  dropped", "[{?history_persist_dropped}{history_persist_dropped:count}]",
		"nothing could be written for too long", TONE_NONE},
};

static const struct line count_lines[] = {
	{"Raw records", "{records_used_bytes:bytes} of {records_bytes:bytes}",
		"[the last {records_span_s:s}]", TONE_NONE},
	{"Metrics", "{metrics:count} of {metrics_max:count}",
		"[{?metrics_refused}{metrics_refused:count} refused]", TONE_NONE},
	{"Stages", "{stages:count} of {stages_max:count}",
		"[{?stages_refused}{stages_refused:count} refused]", TONE_NONE},
	{"Events", "{events_received:count}", "[{?events_dropped}{events_dropped:count} dropped]",
		TONE_NONE},
	{"Bad events", "{events_invalid:count}", "", TONE_NONE},
	{"Attaches", "{attaches:count}", "[{?attaches_refused}{attaches_refused:count} refused]",
		TONE_NONE},
	{"Datagrams", "{statsd_datagrams:count}", "[{?statsd_lost}{statsd_lost:count} lost]",
		TONE_NONE},
	{"  lines", "{statsd_lines:count}", "[{?statsd_refused}{statsd_refused:count} refused]",
		TONE_NONE},
	{"  bad lines", "{statsd_bad_lines:count}",
		"[{?statsd_unsupported}{statsd_unsupported:count} not supported]", TONE_NONE},
	{"  truncated", "{statsd_truncated:count}", "", TONE_NONE},
	{"Connections", "{api_connections:count}", "[{?api_refused}{api_refused:count} refused]",
		TONE_NONE},
	{"Calls", "{api_calls:count}", "[{?api_errors}{api_errors:count} failed]", TONE_NONE},
	{"Clock steps", "{clock_steps:count}", "", TONE_NONE},
	{"Limits", NULL, NULL, TONE_NONE},
};

/* What has a limit: used, the limit, and the maximum so far. */
static const struct line pool_lines[] = {
	{"  {name}", "{used:amount} of {limit:amount}", "at most {high_water:amount} so far",
		TONE_NONE},
};

static const struct line reason_lines[] = {
	{"Last bad line", "{statsd_bad_reason}", "", TONE_NONE},
	{"No datagrams", "{statsd_reason}", "", TONE_NONE},
	{"Last refusal", "{attach_refused_reason}", "", TONE_NONE},
	{"Alerts refused", "[{?alerts_refused}{alerts_refused:count}]", "", TONE_NONE},
};

enum {
	PROCESS_LINES = sizeof(process_lines) / sizeof(process_lines[0]),
	PERSISTENCE_LINES = sizeof(persistence_lines) / sizeof(persistence_lines[0]),
	COUNT_LINES = sizeof(count_lines) / sizeof(count_lines[0]),
	REASON_LINES = sizeof(reason_lines) / sizeof(reason_lines[0]),
};

static void show_self(struct ctl *ctl, const cJSON *self)
{
	static const struct column columns[] = {
		{NULL, false, false}, {NULL, false, false}, {NULL, false, true}};
	const char *persistence = json_word(self, "history_persist_state");
	struct table table;
	table_init(&table, columns, sizeof(columns) / sizeof(columns[0]));
	listing_lines(ctl, &table, self, process_lines, PROCESS_LINES);
	for (const cJSON *tier = json_first(self, "history_tiers"); tier; tier = tier->next) {
		listing_lines(ctl, &table, tier, tier_lines, 1);
	}
	listing_lines(ctl, &table, self, sample_lines, 1);
	if (persistence[0] != '\0' && strcmp(persistence, "off") != 0) {
		listing_lines(ctl, &table, self, persistence_lines, PERSISTENCE_LINES);
	}
	const char *title = "Degraded";
	for (const cJSON *row = json_first(self, "degraded"); row; row = row->next, title = "") {
		const struct line line = {title, "{file}", "{reason}", TONE_NONE};
		listing_lines(ctl, &table, row, &line, 1);
	}
	listing_lines(ctl, &table, self, count_lines, COUNT_LINES);
	for (const cJSON *pool = json_first(self, "pools"); pool; pool = pool->next) {
		listing_lines(ctl, &table, pool, pool_lines, 1);
	}
	listing_lines(ctl, &table, self, reason_lines, REASON_LINES);
	ctl_table(ctl, &table);
}

static int run(struct ctl *ctl)
{
	return ctl_show(ctl, "GetSelf", NULL, false, show_self);
}

const struct verb verb_self = {
	"self", "", "Show what the daemon itself costs.", "self", NULL, 0, run};
