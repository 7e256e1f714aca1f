/* SPDX-License-Identifier: Apache-2.0 */
/* stages.c: shows the report of each app's pipeline: its stages in the order in which they were
 * first seen. The other views of the same reply are in stage_views.c. */
#include "client/edgeprofctl/stages/stage_views.h"

#include <math.h>
#include <string.h>

#include "client/edgeprofctl/term/format.h"
#include "client/edgeprofctl/verb.h"
#include "proto/text.h"

/* The numbers of a pipeline whose latest event is older say how old they are. */
static const double OLD_MS = 2000;

/* What else there is to report about a stage, only when there is something. */
static const char note_template[] =
	"{~dim}[{deadline_ms:is}{?misses}{~warn}][{?cpu_fallback}running on CPU fallback]"
	"[{, }[{?misses}{misses:0} of the run ({miss_rate:share})|{misses:0}|0] "
	"over the deadline of {deadline_ms:g4} ms]"
	"[{?orphan_end}{, }{orphan_end:0} [{?orphan_end>=2}ends|end] without a begin]"
	"[{?abandoned}{, }{abandoned:0} [{?abandoned>=2}begins|begin] without an end]";

static void add_total(struct table *table, const char *name, double value)
{
	table_add(table, TONE_BOLD, "%s", name);
	table_add_number(table, value, 1);
	for (int i = 0; i < 4; i++) {
		table_add(table, TONE_NONE, "%s", "");
	}
}

/* The name of the row, with what it is of where the other rows are of all executions. */
static void total_name(const cJSON *total, bool lifetime, char *ret, size_t size)
{
	const char *iteration = json_word(total, "iteration");
	int64_t iterations = lifetime ? json_integer(total, "iterations") : 0;
	struct text name = text_in(ret, size);
	text_add(&name, "TOTAL%s", json_true(total, "total_is_sequential") ? " (sequential" : "");
	if (iterations > 0) {
		text_add(&name, "%slast %lld %ss", name.length > strlen("TOTAL") ? ", " : " (",
			(long long)iterations,
			strcmp(iteration, "stage") == 0 ? "iteration" : iteration);
	}
	text_add(&name, "%s", name.length > strlen("TOTAL") ? ")" : "");
}

/* What a restart of the daemon has cost. */
static void show_cover(struct ctl *ctl, const cJSON *total)
{
	listing_text(ctl,
		"[{?covers_since_us}(statistics since {covers_since_us:time}, after a restart of "
		"the daemon)\n]",
		total);
	int64_t missing = json_integer(total, "missing");
	if (missing > 0) {
		fprintf(ctl->output.stream,
			"(up to %lld event%s from before a restart of the daemon missing)\n",
			(long long)missing, missing == 1 ? "" : "s");
	}
}

/* Which run it is, where that was asked for. */
static void run_title(const struct run_options *runs, const cJSON *total, char *ret, size_t size)
{
	ret[0] = '\0';
	if (runs->all_runs) {
		snprintf(ret, size, ", all runs since %s",
			format_time(json_integer(total, "since_us")).text);
	} else if (total && runs->run) {
		snprintf(ret, size, ", run %lld (%s) since %s",
			(long long)json_integer(total, "run"), json_word(total, "state"),
			format_time(json_integer(total, "since_us")).text);
	}
}

/* Of what the numbers are, where that is not the recent window of all runs up to now. */
static void show_title(
	struct ctl *ctl, const char *app, const cJSON *stage, const cJSON *total, double age_ms)
{
	char old[80];
	snprintf(old, sizeof(old), " (%s)", format_ago(age_ms).text);
	FILE *out = ctl->output.stream;
	const char *throttle = json_word(stage, "throttle");
	bool lifetime = strcmp(json_word(stage, "span"), "lifetime") == 0;
	bool nearest = strcmp(json_word(stage, "percentile_method"), "nearest") == 0;
	bool filtered = throttle[0] != '\0' && strcmp(throttle, "all") != 0;
	char run[96];
	run_title(&ctl->options.runs, total, run, sizeof(run));
	fprintf(out, "%sPIPELINE PROFILING REPORT: %s%s%s%s%s%s%s%s\n",
		style_on(&ctl->style, TONE_BOLD), app, run,
		lifetime ? ", lifetime (percentiles within 1 %)" : "",
		nearest ? ", percentiles by nearest rank" : "", filtered ? ", " : "",
		filtered ? throttle : "", age_ms >= OLD_MS ? old : "",
		style_off(&ctl->style, TONE_BOLD));
}

/* What is in no frame and not in TOTAL. */
static void show_outside(struct ctl *ctl, const cJSON *reply, const char *app)
{
	const char *title = "Outside frames: ";
	const cJSON *stage = stage_first(reply, "stages", app);
	for (; stage; stage = stage_next(stage)) {
		const cJSON *outside = json_get(stage, "outside_frames");
		if (outside) {
			fputs(title, ctl->output.stream);
			listing_text(ctl, STAGE_NAME, stage);
			listing_text(ctl, " {count:0} x {mean_ms:1} ms", outside);
			title = ", ";
		}
	}
	fputs(title[0] == ',' ? "\n" : "", ctl->output.stream);
}

static void show_app(struct ctl *ctl, const cJSON *reply, const char *app)
{
	static const struct field fields[] = {
		{"Stage", FIELD_LONG, STAGE_NAME},
		{"Mean ms", FIELD_NUMBER, "{mean_ms:1}"},
		{"P95 ms", FIELD_NUMBER, "{p95_ms:1}"},
		{"P99 ms", FIELD_NUMBER, "{p99_ms:1}"},
		{"Count", FIELD_NUMBER, "{count:0}"},
		{"", FIELD_LONG, note_template},
	};
	const cJSON *first = stage_first(reply, "stages", app);
	const cJSON *total = stage_first(reply, "totals", app);
	bool any = false;
	double age_ms = NAN;
	struct listing listing;
	for (const cJSON *stage = first; stage; stage = stage_next(stage)) {
		age_ms = fmin(age_ms, json_number(stage, "age_ms"));
		any = any || !isnan(json_number(stage, "mean_ms"));
	}
	listing_begin(&listing, ctl, fields, sizeof(fields) / sizeof(fields[0]));
	stage_tree_add(&listing, reply, app);
	if (total) {
		/* without a measurement, the reply's 0 has no meaning */
		char name[64];
		bool lifetime = strcmp(json_word(first, "span"), "lifetime") == 0;
		total_name(total, lifetime, name, sizeof(name));
		add_total(&listing.table, name, any ? json_number(total, "mean_ms") : (double)NAN);
		add_total(&listing.table, "MAX FPS",
			any ? json_number(total, "max_fps") : (double)NAN);
	}
	show_title(ctl, app, first, total, age_ms);
	show_cover(ctl, total);
	listing_end(&listing);
	show_outside(ctl, reply, app);
}

/* view NULL: the report. */
static void show_apps(struct ctl *ctl, const cJSON *reply, stage_view *view)
{
	bool first = true;
	for (const cJSON *stage = json_first(reply, "stages"); stage; stage = stage->next) {
		if (stage_first(reply, "stages", json_word(stage, "app")) == stage) {
			fputs(first ? "" : "\n", ctl->output.stream);
			if (view) {
				view(ctl, reply, json_word(stage, "app"));
			} else {
				show_app(ctl, reply, json_word(stage, "app"));
			}
			first = false;
		}
	}
}

void show_stages(struct ctl *ctl, const cJSON *reply)
{
	show_apps(ctl, reply, NULL);
}

static stage_view *view_of(const struct options *options)
{
	if (options->by) {
		return strcmp(options->by, "unit") == 0 ? stage_view_units : stage_view_categories;
	}
	if (options->tree) {
		return stage_view_tree;
	}
	return options->wide ? stage_view_wide : NULL;
}

/* Why there are no numbers, once for all stages that share the reason. */
static void show_reason(struct ctl *ctl, const cJSON *reply)
{
	const cJSON *first = NULL;
	int count = 0;
	for (const cJSON *stage = json_first(reply, "stages"); stage; stage = stage->next) {
		if (json_text(stage, "reason")) {
			first = !first ? stage : first;
			count++;
		}
	}
	if (count == 1) {
		listing_text(ctl, "\nNo numbers of " STAGE_NAME ": {reason}.\n", first);
	} else if (count > 1) {
		fprintf(ctl->output.stream, "\nNo numbers of %d stages: %s.\n", count,
			json_word(first, "reason"));
	}
}

static void show_views(struct ctl *ctl, const cJSON *reply)
{
	show_apps(ctl, reply, view_of(&ctl->options));
	show_reason(ctl, reply);
}

static int run(struct ctl *ctl)
{
	struct options *options = &ctl->options;
	const char *app = ctl_word(ctl, 0);
	if (options->tree + (options->by != NULL) + options->wide > 1) {
		return ctl_fail(ctl, CTL_USAGE, "--tree, --by and --wide exclude each other");
	}
	if (!options->window.span && (options->tree || options->by)) {
		options->window.span = "lifetime"; /* as the shares next to the numbers */
	}
	return ctl_list(ctl, "ListStages", ctl_window_parameters(ctl, app), "stages", show_views,
		"no stages of %s%s", app ? app : "", ctl_window_nothing(ctl, app));
}

static const struct option_spec options[] = {
	{"tree", 0, NULL, "show nested stages below their parent", option_flag,
		offsetof(struct options, tree)},
	{"by", 0, "category|unit", "sum up by category or by compute unit", option_word,
		offsetof(struct options, by)},
	{"wide", 0, NULL, "show every statistic, a column each", option_flag,
		offsetof(struct options, wide)},
	CTL_WINDOW_OPTIONS,
	{.name = NULL},
};

const struct verb verb_stages = {"stages", "[APP]",
	"Show the pipeline report: mean, p95 and p99 of each stage.", "stages cam --tree", options,
	run};
