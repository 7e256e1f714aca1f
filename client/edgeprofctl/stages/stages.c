/* stages: the report of each app's pipeline, stages in the order in which they were first seen; the
 * other views of the same answer are in stage_tree.c, stage_groups.c, stage_wide.c. */
#include "client/edgeprofctl/stages/stage_views.h"

#include <math.h>
#include <string.h>

#include "client/edgeprofctl/link/json.h"
#include "client/edgeprofctl/term/format.h"
#include "client/edgeprofctl/term/table.h"
#include "client/edgeprofctl/verb.h"

/* The numbers of a pipeline whose latest event is older say how old they are. */
static const double OLD_MS = 2000;

static const struct column columns[] = {
	{"Stage", false, true},
	{"Mean ms", true, false},
	{"P95 ms", true, false},
	{"P99 ms", true, false},
	{"Count", true, false},
	{"", false, true},
};

/* What else there is to say about a stage, only when there is something. */
static void add_note(struct table *table, const cJSON *stage)
{
	char note[160] = "";
	size_t at = 0;
	double deadline = json_number(stage, "deadline_ms");
	int64_t misses = json_integer(stage, "misses");
	static const struct {
		const char *member, *text;
	} odd[] = {{"orphan_end", "ends without a begin"}, {"abandoned", "begins without an end"}};
	if (json_true(stage, "cpu_fallback")) {
		at += (size_t)snprintf(note, sizeof(note), "running on CPU fallback");
	}
	if (!isnan(deadline)) {
		at += at > 0 ? (size_t)snprintf(note + at, sizeof(note) - at, ", ") : 0;
		at += (size_t)snprintf(note + at, sizeof(note) - at,
			"%lld over the deadline of %.4g ms", (long long)misses, deadline);
	}
	for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]) && at < sizeof(note); i++) {
		int64_t count = json_integer(stage, odd[i].member);
		if (count > 0) {
			at += (size_t)snprintf(note + at, sizeof(note) - at, "%s%lld %s",
				at > 0 ? ", " : "", (long long)count, odd[i].text);
		}
	}
	table_add(table, misses > 0 && !isnan(deadline) ? TONE_WARN : TONE_DIM, "%s", note);
}

static void add_stage(void *ctx, const cJSON *stage, int depth)
{
	struct table *table = ctx;
	stage_tree_name(table, stage, depth);
	table_add_number(table, json_number(stage, "mean_ms"), 1);
	table_add_number(table, json_number(stage, "p95_ms"), 1);
	table_add_number(table, json_number(stage, "p99_ms"), 1);
	table_add_number(table, json_number(stage, "count"), 0);
	add_note(table, stage);
}

static void add_total(struct table *table, const char *name, double value)
{
	table_add(table, TONE_BOLD, "%s", name);
	table_add_number(table, value, 1);
	for (int i = 0; i < 4; i++) {
		table_add(table, TONE_NONE, "%s", "");
	}
}

static const cJSON *total_of(const cJSON *reply, const char *app)
{
	const cJSON *total = json_first(reply, "totals");
	while (total && strcmp(json_word(total, "app"), app) != 0) {
		total = total->next;
	}
	return total;
}

/* What a restart of the daemon has cost. */
static void show_cover(struct ctl *ctl, const cJSON *total)
{
	int64_t since_us = json_integer(total, "covers_since_us");
	int64_t missing = json_integer(total, "missing");
	if (since_us > 0) {
		fprintf(ctl->output.stream,
			"(statistics since %s, after a restart of the daemon)\n",
			format_time(since_us).text);
	}
	if (missing > 0) {
		fprintf(ctl->output.stream,
			"(up to %lld event%s from before a restart of the daemon missing)\n",
			(long long)missing, missing == 1 ? "" : "s");
	}
}

struct stages_options {
	struct run_options runs;
	const char *by, *span, *method, *throttle;
	bool all, tree, wide;
};

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
static void show_title(struct ctl *ctl, const char *app, const struct run_options *runs,
	const cJSON *stage, const cJSON *total, double age_ms)
{
	char old[80];
	snprintf(old, sizeof(old), " (%s)", format_ago(age_ms).text);
	FILE *out = ctl->output.stream;
	const char *throttle = json_word(stage, "throttle");
	bool lifetime = strcmp(json_word(stage, "span"), "lifetime") == 0;
	bool filtered = throttle[0] != '\0' && strcmp(throttle, "all") != 0;
	char run[96];
	run_title(runs, total, run, sizeof(run));
	fprintf(out, "%sPIPELINE PROFILING REPORT: %s%s%s%s%s%s%s\n",
		style_on(&ctl->style, TONE_BOLD), app, run,
		lifetime ? ", lifetime (percentiles within 1 %)" : "", filtered ? ", " : "",
		filtered ? throttle : "", age_ms >= OLD_MS ? old : "",
		style_off(&ctl->style, TONE_BOLD));
}

/* What is in no frame and not in TOTAL. */
static void show_outside(struct ctl *ctl, const cJSON *reply, const char *app)
{
	const char *title = "Outside frames: ";
	for (const cJSON *stage = json_first(reply, "stages"); stage; stage = stage->next) {
		const cJSON *outside = json_get(stage, "outside_frames");
		if (!outside || strcmp(json_word(stage, "app"), app) != 0) {
			continue;
		}
		fprintf(ctl->output.stream, "%s%s %lld x %.1f ms", title, stage_name(stage).text,
			(long long)json_integer(outside, "count"), json_number(outside, "mean_ms"));
		title = ", ";
	}
	fputs(title[0] == ',' ? "\n" : "", ctl->output.stream);
}

static void show_app(
	struct ctl *ctl, const cJSON *reply, const char *app, const struct run_options *runs)
{
	FILE *out = ctl->output.stream;
	const cJSON *first = NULL;
	bool any = false;
	double age_ms = NAN;
	struct table table;
	table_init(&table, columns, sizeof(columns) / sizeof(columns[0]));
	for (const cJSON *stage = json_first(reply, "stages"); stage; stage = stage->next) {
		if (strcmp(json_word(stage, "app"), app) == 0) {
			first = !first ? stage : first;
			age_ms = fmin(age_ms, json_number(stage, "age_ms"));
			any = any || !isnan(json_number(stage, "mean_ms"));
		}
	}
	stage_tree_walk(reply, app, add_stage, &table);
	const cJSON *total = total_of(reply, app);
	if (total) {
		/* the answer's 0 is that of the guides; nothing of it was measured */
		add_total(&table,
			json_true(total, "total_is_sequential") ? "TOTAL (sequential)" : "TOTAL",
			any ? json_number(total, "mean_ms") : (double)NAN);
		add_total(&table, "MAX FPS", any ? json_number(total, "max_fps") : (double)NAN);
	}
	show_title(ctl, app, runs, first, total, age_ms);
	show_cover(ctl, total);
	table_print(&table, &ctl->style, out, 0);
	table_finish(&table);
	show_outside(ctl, reply, app);
}

/* True when no stage in front of this one is of the same app. */
static bool first_of_app(const cJSON *reply, const cJSON *stage)
{
	const cJSON *other = json_first(reply, "stages");
	while (other != stage && strcmp(json_word(other, "app"), json_word(stage, "app")) != 0) {
		other = other->next;
	}
	return other == stage;
}

/* view NULL: the report. */
static void show_apps(
	struct ctl *ctl, const cJSON *reply, stage_view *view, const struct run_options *runs)
{
	bool first = true;
	for (const cJSON *stage = json_first(reply, "stages"); stage; stage = stage->next) {
		if (first_of_app(reply, stage)) {
			fputs(first ? "" : "\n", ctl->output.stream);
			if (view) {
				view(ctl, reply, json_word(stage, "app"));
			} else {
				show_app(ctl, reply, json_word(stage, "app"), runs);
			}
			first = false;
		}
	}
}

void show_stages(struct ctl *ctl, const cJSON *reply)
{
	static const struct run_options latest = {NULL, false};
	show_apps(ctl, reply, NULL, &latest);
}

static cJSON *parameters_of(const struct ctl *ctl, const char *app)
{
	const struct stages_options *options = ctl->verb_options;
	/* shares are of the lifetime: the other numbers beside them as well */
	bool shares = options->tree || options->by;
	const struct {
		const char *name, *word;
	} words[] = {
		{"span", !options->span && shares ? "lifetime" : options->span},
		{"percentile_method", options->method},
		{"throttle", options->throttle},
	};
	cJSON *parameters = ctl_run_parameters(&options->runs, app);
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (words[i].word) {
			cJSON_AddStringToObject(parameters, words[i].name, words[i].word);
		}
	}
	return ctl_all(options->all, parameters);
}

static stage_view *view_of(const struct stages_options *options)
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
		fprintf(ctl->output.stream, "\nNo numbers of %s: %s.\n", stage_name(first).text,
			json_word(first, "reason"));
	} else if (count > 1) {
		fprintf(ctl->output.stream, "\nNo numbers of %d stages: %s.\n", count,
			json_word(first, "reason"));
	}
}

static int run(struct ctl *ctl)
{
	const struct stages_options *options = ctl->verb_options;
	const char *app = ctl->word_count > 0 ? ctl->words[0] : NULL;
	cJSON *reply;
	if (options->tree + (options->by != NULL) + options->wide > 1) {
		return ctl_fail(ctl, CTL_USAGE, "--tree, --by and --wide exclude each other");
	}
	int status = ctl_call(ctl, "ListStages", parameters_of(ctl, app), true, &reply);
	if (status != CTL_FINE) {
		return status;
	}
	if (!ctl_json(ctl, reply)) {
		show_apps(ctl, reply, view_of(options), &options->runs);
		show_reason(ctl, reply);
	}
	if (json_count(reply, "stages") == 0) {
		status = ctl_fail(ctl, CTL_NO_DATA,
			"no stages of %s yet; 'edgeprofctl apps' lists the apps",
			!app ? "any app" : app);
	}
	cJSON_Delete(reply);
	return status;
}

static const struct option_spec options[] = {
	{"tree", 0, NULL, "show nested stages below their parent", option_flag,
		offsetof(struct stages_options, tree)},
	{"by", 0, "category|unit", "sum up by category or by compute unit", option_word,
		offsetof(struct stages_options, by)},
	{"wide", 0, NULL, "show every statistic, a column each", option_flag,
		offsetof(struct stages_options, wide)},
	{"span", 0, "recent|lifetime", "cover the recent window, or the run from its start",
		option_word, offsetof(struct stages_options, span)},
	{"method", 0, "linear|nearest", "how to take percentiles", option_word,
		offsetof(struct stages_options, method)},
	{"throttle", 0, "all|throttled|unthrottled",
		"count only what ended while the hardware throttled, or did not", option_word,
		offsetof(struct stages_options, throttle)},
	{"run", 0, "0|-1|-2", "show the current or latest run (0), or an earlier one (-1 to -8)",
		option_run, offsetof(struct stages_options, runs.run)},
	{"all-runs", 0, NULL, "combine all runs that are kept", option_flag,
		offsetof(struct stages_options, runs.all_runs)},
	{"all", 'a', NULL, "include apps that ended more than 10 s ago", option_flag,
		offsetof(struct stages_options, all)},
	{.name = NULL},
};

const struct verb verb_stages = {"stages", "[APP]",
	"Show the pipeline report: mean, p95 and p99 of each stage.", "stages cam --tree", options,
	sizeof(struct stages_options), run};
