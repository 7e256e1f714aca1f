/* SPDX-License-Identifier: Apache-2.0 */
/* diagnose.c: shows why apps are slower than they were or should be: the findings of each, what
 * most matters first, with what they rest on and what to do. */
#include "client/edgeprofctl/verb.h"

#include <string.h>

#include "client/edgeprofctl/listing.h"
#include "proto/text.h"

static const char headline[] =
	"{~bold}[{app}|-]{~none}: [{?status=findings}[{!findings>=2}1 finding|{findings} findings]"
	"[ in {frames:count} frames over {span_s:s}]|"
	"[{?status=healthy}{~good}|{~dim}][{summary}|not enough data]{~none}]\n";

static const char finding_text[] =
	"{~bold}{number}. [{cause}|-]{~none}[ ([{?confidence=high}{~bad}|{?confidence=medium}"
	"{~warn}|{~dim}]{confidence}{~none})]"
	"[{?explained_ms>=0.05}  {explained_ms:+1} ms per frame]\n"
	"[   {symptom}\n][   {text}\n]{*evidence}     {~dim}{}{~none}\n{/}{*advice}   do: {}\n{/}";

static const struct line lines[] = {
	{"Bottlenecks", "[{*bottlenecks,, }{}{/}]"},
	{"Throttle tax",
		"[{?throttle_tax.share}{throttle_tax.share:share} of the last frames"
		"[, adding {throttle_tax.lost_ms:1} ms to each]"
		"[; {throttle_tax.unthrottled_fps:1} frames/s without"
		"[ ({throttle_tax.unthrottled_fps_low:1} to {throttle_tax.unthrottled_fps_high:1})]"
		"[, {throttle_tax.fps:1} now]][; {throttle_tax.reason}]]"},
	{"Energy", "[{throttle_tax.throttled_joules_per_frame:2} J a frame while throttled, "
		   "{throttle_tax.unthrottled_joules_per_frame:2} J otherwise]"},
	{"[{?optimization_opportunities}Opportunities]", NULL},
	{"{*optimization_opportunities}  {stage}",
		"{priority}: [{text}|{share_percent:0} % of the time in stages"
		"[, {category_percent:0} % of its category]]"
		"[; may save {gain_low_percent:0} to {gain_high_percent:0} %]"},
	{"[{?performance_trends}Trends]", NULL},
	{"{*performance_trends}  {metric}", "[{text}|{per_hour:g4} per hour]"},
	{"{*recommendations}Note", "{}"},
};

/* A name of the API as words. */
static void spell_out(const cJSON *name)
{
	for (char *at = cJSON_IsString(name) ? name->valuestring : NULL; at && *at; at++) {
		*at = *at == '_' ? ' ' : *at;
	}
}

static bool is_above_low(const cJSON *finding, const char *unused)
{
	const char *confidence = json_word(finding, "confidence");
	(void)unused;
	return strcmp(confidence, "high") == 0 || strcmp(confidence, "medium") == 0;
}

static bool is_worth_while(const cJSON *opportunity, const char *unused)
{
	(void)unused;
	return strcmp(json_word(opportunity, "priority"), "LOW") != 0;
}

/* Removes advice that is shown where it belongs, or belongs to what is not shown: that of findings,
 * and "STAGE: …" of opportunities. The others are notes. */
static void keep_notes(cJSON *diagnosis)
{
	cJSON *notes = cJSON_GetObjectItemCaseSensitive(diagnosis, "recommendations"), *next;
	for (cJSON *note = cJSON_IsArray(notes) ? notes->child : NULL; note; note = next) {
		next = note->next;
		bool given = !cJSON_IsString(note);
		const cJSON *row = json_first(diagnosis, "optimization_opportunities");
		for (; row && !given; row = row->next) {
			const char *stage = json_word(row, "stage");
			given = text_starts_with(note->valuestring, stage) &&
				note->valuestring[strlen(stage)] == ':';
		}
		for (row = json_first(diagnosis, "findings"); row && !given; row = row->next) {
			const cJSON *advice = json_first(row, "advice");
			for (; advice && !given; advice = advice->next) {
				given = cJSON_Compare(advice, note, true);
			}
		}
		if (given) {
			cJSON_Delete(cJSON_DetachItemViaPointer(notes, note));
		}
	}
}

/* Makes of the reply what is shown: with names as words, and numbered. Returns how many findings
 * are not shown. */
static int prepare(cJSON *diagnosis, bool all)
{
	int hidden = json_count(diagnosis, "findings"), number = 0;
	keep_notes(diagnosis);
	if (!all) {
		hidden -= listing_narrow(diagnosis, "findings", is_above_low, NULL);
		listing_narrow(diagnosis, "optimization_opportunities", is_worth_while, NULL);
	}
	cJSON *list = cJSON_GetObjectItemCaseSensitive(diagnosis, "findings");
	for (cJSON *row = cJSON_IsArray(list) ? list->child : NULL; row; row = row->next) {
		cJSON_AddNumberToObject(row, "number", ++number);
		spell_out(json_get(row, "cause"));
	}
	for (const cJSON *row = json_first(diagnosis, "bottlenecks"); row; row = row->next) {
		spell_out(row);
	}
	return all ? 0 : hidden;
}

static void show(struct ctl *ctl, cJSON *diagnosis)
{
	static const struct column columns[] = {{NULL, false, false}, {NULL, false, false}};
	int hidden = prepare(diagnosis, ctl->options.all);
	listing_text(ctl, headline, diagnosis);
	listing_texts(ctl, finding_text, diagnosis, "findings");
	if (hidden > 0) {
		fprintf(ctl->output.stream, "%s(%d of low confidence with --all)%s\n",
			style_on(&ctl->style, TONE_DIM), hidden, style_off(&ctl->style, TONE_DIM));
	}
	/* of several apps only what is wrong */
	if (ctl_word(ctl, 0) || ctl->options.all || json_count(diagnosis, "findings") > 0) {
		struct table table;
		table_init(&table, columns, 2);
		listing_lines(ctl, &table, diagnosis, lines, sizeof(lines) / sizeof(lines[0]));
		ctl_table(ctl, &table);
	}
}

static int status_of(const cJSON *reply)
{
	int status = CTL_NO_DATA;
	for (const cJSON *row = json_first(reply, "diagnoses"); row; row = row->next) {
		const cJSON *finding = json_first(row, "findings");
		for (; finding; finding = finding->next) {
			if (is_above_low(finding, NULL)) {
				return CTL_BAD_NEWS;
			}
		}
		if (strcmp(json_word(row, "status"), "healthy") == 0) {
			status = CTL_FINE;
		}
	}
	return status;
}

static int run(struct ctl *ctl)
{
	cJSON *reply;
	int status =
		ctl_call(ctl, "Diagnose", ctl_parameters("app", ctl_word(ctl, 0)), true, &reply);
	if (status != CTL_FINE) {
		return status;
	}
	status = status_of(reply);
	cJSON *list = cJSON_GetObjectItemCaseSensitive(reply, "diagnoses");
	if (!ctl_json(ctl, reply)) {
		for (cJSON *row = cJSON_IsArray(list) ? list->child : NULL; row; row = row->next) {
			show(ctl, row);
			fputs(row->next ? "\n" : "", ctl->output.stream);
		}
	}
	if (json_count(reply, "diagnoses") == 0) {
		ctl_fail(ctl, status,
			"no app is running; see edgeprof(3), or 'edgeprofctl apps --all'");
	}
	cJSON_Delete(reply);
	return status;
}

static const struct option_spec options[] = {
	{"all", 'a', NULL, "include findings of low confidence, and what is of little gain",
		option_flag, offsetof(struct options, all)},
	{.name = NULL},
};

const struct verb verb_diagnose = {"diagnose", "[APP]",
	"Find what slows apps down; exit status 1 if something does, 2 without enough data.",
	"diagnose cam", options, run};
