/* SPDX-License-Identifier: Apache-2.0 */
/* session_views.c: shows sessions as text, with what the file of one says of stages. */
#include "client/edgeprofctl/sessions/sessions.h"

#include <math.h>

#include "client/edgeprofctl/data/data.h"
#include "client/edgeprofctl/link/json.h"
#include "client/edgeprofctl/listing.h"

/* Adds to a row what its text has in addition: span_s, of what was measured so far. */
static void add_span(cJSON *session)
{
	double from_us = json_number(session, "measured_us");
	double span_s = (json_number(session, "ended_us") - from_us) / 1e6;
	if (session_is_active(session)) {
		span_s = isnan(from_us) ? NAN : json_number(session, "elapsed_s");
	}
	json_add_number(session, "span_s", span_s >= 0 ? span_s : NAN);
}

void session_show_list(struct ctl *ctl, const cJSON *reply)
{
	static const struct field fields[] = {
		{"NAME", FIELD_LONG, "{name}"},
		{"APP", FIELD_TEXT, "[{app}|-]"},
		{"STATE", FIELD_TEXT, "{~:state}{state}"},
		{"FRAMES", FIELD_NUMBER, "{frames_done:count}"},
		{"SPAN", FIELD_NUMBER, "{span_s:s}"},
		{"FPS", FIELD_NUMBER, "{fps:1}"},
		{"TAGS", FIELD_LONG, "[{?error}{~bad}{error}][{, }{*tags,, }{name}={value}{/}]"},
		{"STARTED", FIELD_TEXT, "{~dim}{started_us:time}"},
		{"SIZE", FIELD_NUMBER, "{bytes:bytes}"},
	};
	cJSON *row;
	ctl->style.fit = true;
	cJSON_ArrayForEach(row, cJSON_GetObjectItemCaseSensitive(reply, "sessions"))
	{
		add_span(row);
	}
	listing_show(ctl, reply, "sessions", fields, sizeof(fields) / sizeof(fields[0]));
	if (json_count(reply, "sessions") > 0) {
		listing_text(ctl,
			"{~dim}{bytes:bytes} of {limit_bytes:bytes} used[ in {dir}]"
			"[{?evictions}; {evictions:count} evicted][{?expired}; {expired:count} "
			"expired][{?hits}; {hits:count} repeated "
			"[{?hits>=2}earlier ones|an earlier one]]{~none}\n",
			reply);
	}
}

void session_show_start(struct ctl *ctl, const cJSON *reply)
{
	listing_text(ctl,
		"Session '{name}'[ of {app}] started[{?warmup}; the first "
		"[{?warmup>=2}{warmup:count} "
		"frames are|frame is] not counted].\n"
		"[{?frames}It ends after {frames:count} frames; 'edgeprofctl session show {name}' "
		"shows how far it is|{?seconds}It ends after {seconds:s}; 'edgeprofctl session "
		"show "
		"{name}' shows how far it is|'edgeprofctl session stop {name}' ends it].\n",
		json_get(reply, "session"));
}

void session_show_end(struct ctl *ctl, const cJSON *reply)
{
	cJSON *session = cJSON_GetObjectItemCaseSensitive(reply, "session");
	add_span(session);
	listing_text(ctl,
		"Session '{name}' [{?state=finished}finished|{?state=failed}{~bad}failed{~none}"
		"[: {error}]|{?frames}ended early|{?seconds}ended early|stopped]: "
		"{frames_done:count}[{?frames} of {frames:count}] "
		"[{?frames>=2}frames|{?frames_done>=2}frames|{?frames_done}frame|frames][ in "
		"{span_s:s}][, {fps:1} "
		"fps]"
		".\n",
		session);
	listing_text(ctl,
		"[{!kept_share>=1}{kept_share:share} of the time was kept, to stay below the size "
		"limit.\n][{?lost}{lost:count} records were lost.\n][{?cut}The file is cut: "
		"{cut}.\n]",
		session);
}

void session_show_one(struct ctl *ctl, const cJSON *reply)
{
	static const struct field fields[] = {
		{"STAGE", FIELD_LONG, "{stage}[@{unit}]"},
		{"MEAN ms", FIELD_NUMBER, "{mean_ms:2}"},
		{"P95 ms", FIELD_NUMBER, "{p95_ms:2}"},
		{"P99 ms", FIELD_NUMBER, "{p99_ms:2}"},
		{"MAX ms", FIELD_NUMBER, "{max_ms:2}"},
		{"COUNT", FIELD_NUMBER, "{count:count}"},
	};
	static const struct line lines[] = {
		{"Session", "{~bold}{name}"},
		{"State", "{~:state}{state}[: {error}]"},
		{"App", "[{app}|none: the device alone][ (uid {uid:0})]"},
		{"Started", "{started_us:time}"},
		{"Ended", "[{?ended_us}{ended_us:time}]"},
		{"Warm-up", "[{?warmup}{warmup:count} frames]"},
		{"Frames", "{frames_done:count}[{?frames} of {frames:count}][ in {span_s:s}][, "
			   "{fps:1} "
			   "fps]"},
		{"Last 50 frames", "[{recent_mean_ms:2} ms each]"},
		{"Left", "[{!ended_us}{left_s:s}]"},
		{"File", "{bytes:bytes}[{!kept_share>=1}, {kept_share:share} of the time kept]"},
		{"Lost", "[{?lost}{lost:count} records]"},
		{"Cut", "[{?cut}{cut}]"},
		{"[{?tags}Tags]", NULL},
		{"{*tags}  {name}", "{value}"},
		{"[{?environment}Environment]", NULL},
		{"{*environment}  {name}", "{value}"},
		{"Fingerprint", "[{fingerprint}]"},
	};
	cJSON *session = cJSON_GetObjectItemCaseSensitive(reply, "session");
	char digits[13] = ""; /* that many identify it for people */
	snprintf(digits, sizeof(digits), "%s", json_word(reply, "fingerprint"));
	add_span(session);
	cJSON_AddStringToObject(session, "fingerprint", digits);
	listing_facts(ctl, session, lines, sizeof(lines) / sizeof(lines[0]));
	if (json_count(reply, "stages") > 0) {
		fputc('\n', ctl->output.stream);
		listing_show(ctl, reply, "stages", fields, sizeof(fields) / sizeof(fields[0]));
	}
}

static void add_row(
	cJSON *stages, const char *name, const char *unit, const struct proto_summary *ms)
{
	cJSON *row = cJSON_CreateObject();
	cJSON_AddStringToObject(row, "stage", name);
	if (unit[0] != '\0') {
		cJSON_AddStringToObject(row, "unit", unit);
	}
	json_add_number(row, "count", (double)ms->count);
	json_add_number(row, "mean_ms", ms->mean);
	json_add_number(row, "median_ms", ms->p50);
	json_add_number(row, "p95_ms", ms->p95);
	json_add_number(row, "p99_ms", ms->p99);
	json_add_number(row, "min_ms", ms->min);
	json_add_number(row, "max_ms", ms->max);
	cJSON_AddItemToArray(stages, row);
}

void session_add_stages(struct ctl *ctl, const char *name, cJSON *reply)
{
	struct data data;
	ctl->quiet = true;
	int status = data_is_file(name) ? CTL_NO_DATA : data_read(ctl, name, NULL, &data);
	ctl->quiet = false;
	if (status != CTL_FINE) {
		return; /* not written yet, or gone by now: the row is all there is */
	}
	/* without a row it is an app of that name that was read */
	cJSON *stages = data.about ? cJSON_AddArrayToObject(reply, "stages") : NULL;
	for (size_t i = 0; stages && i < data.stage_count; i++) {
		if (!data.stage[i].left_out) {
			add_row(stages, data.stage[i].shown, data.stage[i].unit, &data.stage[i].ms);
		}
	}
	if (stages) {
		add_row(stages, "total", "", &data.total_ms);
	}
	data_finish(&data);
}
