/* SPDX-License-Identifier: Apache-2.0 */
/* self.c: shows what the daemon itself costs, and how much of its limits is used. */
#include "client/edgeprofctl/verb.h"

#include <string.h>

#include "client/edgeprofctl/link/json.h"
#include "client/edgeprofctl/listing.h"

static const struct line before[] = {
	{"Process", "{pid}"},
	{"Up", "{uptime_s:s}"},
	{"Memory", "{rss_bytes:bytes}\t{anonymous_bytes:bytes} anonymous"},
	{"CPU", "[{cpu_percent:2} %|-]"},
	/* how long the daemon was away from its sockets */
	{"Slowest iteration", "{turn_max_us:us}\t[{turn_max_minute_us:us} in the last minute]"},
	{"History", "{history_used_bytes:bytes} of {history_bytes:bytes}"},
	{"{*history_tiers}[{?step_s}  buckets of {step_s:g} s|  every sample]",
		"{span_s:s}\t[{bytes_per_sample:2} bytes each]"},
	{"  samples", "{history_samples:count}\t{history_reason}"},
};

/* How far back after a power cut, and what that costs the medium. */
static const struct line persistence[] = {
	{"Persistence", "{history_persist_state}\t{history_persist_reason}"},
	{"  file", "{history_persist_bytes:bytes}\t{history_persist_path}"},
	{"  a power cut costs", "{history_persist_loss_s:s}\t[{history_persist_loss_s:is}buckets "
				"of {history_persist_bucket_s:g} s, written "
				"every {history_persist_period_s:s}]"},
	{"  written in 24 h",
		"{history_persist_day_bytes:bytes} of "
		"{history_persist_day_limit_bytes:bytes}\tincluding what the file system writes"},
	{"  boots", "{history_persist_boots:count}\t[{?history_persist_damaged_pages}{history_"
		    "persist_damaged_pages:count} damaged "
		    "pages]"},
	{"  dropped", "[{?history_persist_dropped}{history_persist_dropped:count}]\tnothing could "
		      "be written for too long"},
};

static const struct line after[] = {
	{"{*degraded}Degraded", "{file}\t{reason}"},
	{"Raw records", "{records_used_bytes:bytes} of {records_bytes:bytes}\t[the last "
			"{records_span_s:s}]"},
	{"Metrics", "{metrics:count} of "
		    "{metrics_max:count}\t[{?metrics_refused}{metrics_refused:count} refused]"},
	{"Stages", "{stages:count} of {stages_max:count}\t[{?stages_refused}{stages_refused:count} "
		   "refused]"},
	{"Events", "{events_received:count}\t[{?events_dropped}{events_dropped:count} dropped]"},
	{"Bad events", "{events_invalid:count}"},
	{"Attaches", "{attaches:count}\t[{?attaches_refused}{attaches_refused:count} refused]"},
	{"Datagrams", "{statsd_datagrams:count}\t[{?statsd_lost}{statsd_lost:count} lost]"},
	{"  lines", "{statsd_lines:count}\t[{?statsd_refused}{statsd_refused:count} refused]"},
	{"  bad lines", "{statsd_bad_lines:count}\t[{?statsd_unsupported}{statsd_unsupported:count}"
			" not supported]"},
	{"  truncated", "{statsd_truncated:count}"},
	{"Connections", "{api_connections:count}\t[{?api_refused}{api_refused:count} refused]"},
	{"Calls", "{api_calls:count}\t[{?api_errors}{api_errors:count} failed]"},
	{"Clock steps", "{clock_steps:count}"},
	{"Limits", NULL},
	/* used, the limit, and the maximum so far */
	{"{*pools}  {name}", "{used:amount} of {limit:amount}\tat most {high_water:amount} so far"},
	{"Last bad line", "{statsd_bad_reason}"},
	{"No datagrams", "{statsd_reason}"},
	{"Last refusal", "{attach_refused_reason}"},
	{"Alerts refused", "[{?alerts_refused}{alerts_refused:count}]"},
};

enum {
	BEFORE = sizeof(before) / sizeof(before[0]),
	PERSISTENCE = sizeof(persistence) / sizeof(persistence[0]),
	AFTER = sizeof(after) / sizeof(after[0]),
};

static void show_self(struct ctl *ctl, const cJSON *self)
{
	static const struct column columns[] = {
		{NULL, false, false}, {NULL, false, false}, {NULL, false, false}};
	const char *state = json_word(self, "history_persist_state");
	struct table table;
	table_init(&table, columns, sizeof(columns) / sizeof(columns[0]));
	listing_lines(ctl, &table, self, before, BEFORE);
	if (state[0] != '\0' && strcmp(state, "off") != 0) {
		listing_lines(ctl, &table, self, persistence, PERSISTENCE);
	}
	listing_lines(ctl, &table, self, after, AFTER);
	ctl_table(ctl, &table);
}

static int run(struct ctl *ctl)
{
	return ctl_show(ctl, "GetSelf", NULL, false, show_self);
}

const struct verb verb_self = {"self", "", "Show what the daemon itself costs.", "self", NULL, run};
