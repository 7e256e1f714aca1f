/* SPDX-License-Identifier: Apache-2.0 */
/* compare.c: compares sessions, recordings and apps with each other or with a baseline file, for
 * people and for CI. The first is the baseline. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/edgeprofctl/compare/comparison.h"
#include "client/edgeprofctl/compare/comparison_views.h"
#include "client/edgeprofctl/compare/document.h"
#include "client/edgeprofctl/data/data.h"
#include "client/edgeprofctl/link/json.h"
#include "client/edgeprofctl/verb.h"

enum { RUNS_MAX = 64, THRESHOLD_PERCENT = 15 };

struct compare {
	struct ctl *ctl;
	size_t run_count;
	struct measured run[RUNS_MAX];
	struct measured *old; /* of the baseline file */
	size_t old_count;
	size_t side_count; /* the baseline first */
	struct side side[RUNS_MAX + 1];
};

static int parse_threshold(const struct option_spec *spec, const char *text, void *value)
{
	char *end;
	double percent = strtod(text, &end);
	(void)spec;
	if (end == text || (*end != '\0' && strcmp(end, "%") != 0) || !(percent > 0) ||
		percent > 1000) {
		return -EINVAL;
	}
	*(double *)value = percent;
	return 0;
}

static int read_one(struct compare *compare, const char *what)
{
	if (compare->run_count == RUNS_MAX) {
		return ctl_fail(compare->ctl, CTL_USAGE, "more than %d runs", RUNS_MAX);
	}
	struct measured *run = &compare->run[compare->run_count];
	int status = measured_read(compare->ctl, what, run);
	compare->run_count += status == CTL_FINE;
	return status;
}

/* The sessions whose names match, as the daemon lists them. */
static int read_matching(struct compare *compare, const char *glob)
{
	cJSON *reply;
	int status = ctl_call(compare->ctl, "ListSessions", NULL, true, &reply);
	size_t before = compare->run_count;
	if (status != CTL_FINE) {
		return status;
	}
	const cJSON *row = json_first(reply, "sessions");
	for (; row && status == CTL_FINE; row = row->next) {
		if (proto_glob_match(glob, json_word(row, "name"))) {
			status = read_one(compare, json_word(row, "name"));
		}
	}
	cJSON_Delete(reply);
	return status == CTL_FINE && compare->run_count == before
		       ? ctl_fail(compare->ctl, CTL_NO_DATA,
				 "no session matches '%s'; 'edgeprofctl session list' lists them",
				 glob)
		       : status;
}

static int read_runs(struct compare *compare)
{
	int status = CTL_FINE;
	for (int i = 0; i < compare->ctl->word_count && status == CTL_FINE; i++) {
		const char *word = compare->ctl->words[i];
		bool glob = strpbrk(word, "*?") && !data_is_file(word);
		status = glob ? read_matching(compare, word) : read_one(compare, word);
	}
	return status;
}

static int add_run(struct compare *compare, struct side *side, const struct measured *run)
{
	if (side->count == side->capacity) {
		size_t capacity = side->capacity > 0 ? 2 * side->capacity : 4;
		const struct measured **grown = realloc(side->run, capacity * sizeof(*grown));
		if (!grown) {
			return ctl_fail(compare->ctl, CTL_OUTPUT, "out of memory");
		}
		side->run = grown;
		side->capacity = capacity;
	}
	side->run[side->count++] = run;
	return CTL_FINE;
}

/* The side with that label, new unless it is there and runs are grouped. */
static struct side *side_of(struct compare *compare, const char *label, bool group)
{
	for (size_t i = compare->old_count > 0; group && i < compare->side_count; i++) {
		if (strcmp(compare->side[i].label, label) == 0) {
			return &compare->side[i];
		}
	}
	struct side *side = &compare->side[compare->side_count++];
	snprintf(side->label, sizeof(side->label), "%s", label);
	return side;
}

static int make_sides(struct compare *compare)
{
	const char *tag = compare->ctl->options.by;
	int status = CTL_FINE;
	for (size_t i = 0; i < compare->old_count && status == CTL_FINE; i++) {
		const char *path = compare->ctl->options.baseline;
		struct side *side = i == 0 ? side_of(compare, path, false) : &compare->side[0];
		status = add_run(compare, side, &compare->old[i]);
	}
	for (size_t i = 0; i < compare->run_count && status == CTL_FINE; i++) {
		const struct measured *run = &compare->run[i];
		const char *value = tag ? json_text(run->tags, tag) : NULL;
		value = tag && !value ? json_text(run->environment, tag) : value;
		char label[MEASURED_NAME_SIZE];
		if (tag && !value) {
			return ctl_fail(
				compare->ctl, CTL_NO_DATA, "'%s' has no tag '%s'", run->name, tag);
		}
		snprintf(label, sizeof(label), "%s%s%s", tag ? tag : "", tag ? "=" : "",
			tag ? value : run->name);
		status = add_run(compare, side_of(compare, label, tag != NULL), run);
	}
	return status;
}

/* The rows of the table: with the difference of the means and of the accuracy to the first. */
static int add_variants(struct compare *compare, cJSON *result)
{
	cJSON *list = cJSON_AddArrayToObject(result, "variants");
	double mean = NAN, accuracy = NAN;
	for (size_t i = 0; i < compare->side_count; i++) {
		cJSON *row = describe_side(&compare->side[i]);
		if (!row) {
			return ctl_fail(compare->ctl, CTL_OUTPUT, "out of memory");
		}
		if (i == 0) {
			mean = json_number(row, "mean_ms");
			accuracy = json_number(row, "accuracy");
		} else {
			json_add_number(row, "mean_difference_percent",
				(json_number(row, "mean_ms") / mean - 1) * 100);
			json_add_number(
				row, "accuracy_diff", json_number(row, "accuracy") - accuracy);
		}
		cJSON_AddItemToArray(list, row);
	}
	return CTL_FINE;
}

/* Compares each side with the first: CTL_FINE, CTL_BAD_NEWS, or CTL_NO_DATA after a message. */
static int add_comparisons(struct compare *compare, cJSON *result)
{
	struct ctl *ctl = compare->ctl;
	const struct comparison_options options = {
		.threshold_percent = json_number(result, "threshold_percent"),
		.metric = ctl->options.metric,
		.thermal = ctl->options.thermal};
	cJSON *list = cJSON_AddArrayToObject(result, "comparisons");
	bool regression = false;
	const char *reason = NULL;
	for (size_t i = 1; i < compare->side_count; i++) {
		cJSON *comparison = compare_sides(&compare->side[0], &compare->side[i], &options);
		if (!comparison) {
			return ctl_fail(ctl, CTL_OUTPUT, "out of memory");
		}
		regression =
			regression || strcmp(json_word(comparison, "verdict"), "regression") == 0;
		reason = reason ? reason : json_text(comparison, "reason");
		cJSON_AddItemToArray(list, comparison);
	}
	cJSON_AddStringToObject(result, "verdict",
		regression ? "regression"
		: reason   ? "no data"
			   : "no regression");
	if (!regression && reason && !ctl->options.table) {
		return ctl_fail(ctl, CTL_NO_DATA, "%s", reason);
	}
	return regression && !ctl->options.table ? CTL_BAD_NEWS : CTL_FINE;
}

static int show(struct compare *compare, const cJSON *result, int status)
{
	struct ctl *ctl = compare->ctl;
	const char *format = ctl->options.format ? ctl->options.format : "text";
	document_begin(ctl);
	if (strcmp(format, "markdown") == 0) {
		comparison_markdown(ctl, result);
	} else if (strcmp(format, "junit") == 0) {
		comparison_junit(ctl, result);
	} else if (strcmp(format, "json") == 0 && ctl->options.json == JSON_OFF) {
		json_write(ctl->output.stream, result, true);
	} else if (!ctl_json(ctl, result)) {
		if (ctl->options.table || compare->side_count > 2) {
			comparison_table(ctl, result);
		}
		if (!ctl->options.table) {
			fputs(compare->side_count > 2 ? "\n" : "", ctl->output.stream);
			comparison_text(ctl, result);
		}
	}
	return document_end(ctl, status);
}

static bool has_values(const struct measured *run)
{
	size_t values = 0;
	for (size_t i = 0; i < run->series_count; i++) {
		values += run->series[i].count;
	}
	return values > 0;
}

/* Writes the baseline file where that was asked for. */
static int write_baseline(struct compare *compare, int status)
{
	struct ctl *ctl = compare->ctl;
	bool update = ctl->options.update_baseline, exists = compare->old_count > 0;
	if (!update && (exists || !ctl->options.create_baseline)) {
		return status;
	}
	const struct measured *runs[RUNS_MAX];
	for (size_t i = 0; i < compare->run_count; i++) {
		runs[i] = &compare->run[i];
		if (!has_values(runs[i])) {
			return ctl_fail(
				ctl, CTL_NO_DATA, "'%s' measured nothing to keep", runs[i]->name);
		}
	}
	int written = baseline_write(ctl, ctl->options.baseline, runs, compare->run_count);
	if (written == CTL_FINE && !ctl->options.format && ctl->options.json == JSON_OFF) {
		fprintf(ctl->output.stream, "Baseline %s: %s\n", exists ? "updated" : "created",
			ctl->options.baseline);
	}
	return written != CTL_FINE ? written : CTL_FINE;
}

static int compare_all(struct compare *compare)
{
	struct ctl *ctl = compare->ctl;
	double threshold = ctl->options.threshold > 0 ? ctl->options.threshold : THRESHOLD_PERCENT;
	int status = read_runs(compare);
	status = status == CTL_FINE ? make_sides(compare) : status;
	if (status != CTL_FINE) {
		return status;
	}
	bool creates = ctl->options.create_baseline || ctl->options.update_baseline;
	if (compare->side_count < 2 && creates) {
		return write_baseline(compare, CTL_FINE);
	}
	if (compare->side_count < 2 && !ctl->options.table) {
		return ctl_fail(ctl, CTL_USAGE, "compare requires two sides%s",
			ctl->options.by ? "; all runs have the same tag" : "");
	}
	cJSON *result = ctl_parameters("schema", "edgeprof.compare/1");
	cJSON_AddNumberToObject(result, "threshold_percent", threshold);
	status = add_comparisons(compare, result);
	int described = add_variants(compare, result);
	if (status != CTL_OUTPUT && described == CTL_FINE) {
		status = show(compare, result, status);
		status = status == CTL_OUTPUT ? status : write_baseline(compare, status);
	}
	cJSON_Delete(result);
	return described == CTL_FINE ? status : described;
}

static int check_options(struct ctl *ctl)
{
	const struct options *options = &ctl->options;
	if ((options->create_baseline || options->update_baseline) && !options->baseline) {
		return ctl_fail(ctl, CTL_USAGE, "--%s-baseline requires --baseline FILE",
			options->create_baseline ? "create" : "update");
	}
	return CTL_FINE;
}

/* A file that is not there yet is fine where it is going to be written. */
static int read_baseline(struct compare *compare)
{
	struct ctl *ctl = compare->ctl;
	bool creates = ctl->options.create_baseline || ctl->options.update_baseline;
	if (!ctl->options.baseline ||
		(creates && access(ctl->options.baseline, F_OK) != 0 && errno == ENOENT)) {
		return CTL_FINE;
	}
	return baseline_read(ctl, ctl->options.baseline, &compare->old, &compare->old_count);
}

static int run(struct ctl *ctl)
{
	struct compare *compare = calloc(1, sizeof(*compare));
	if (!compare) {
		return ctl_fail(ctl, CTL_OUTPUT, "out of memory");
	}
	compare->ctl = ctl;
	int status = check_options(ctl);
	status = status == CTL_FINE ? read_baseline(compare) : status;
	status = status == CTL_FINE ? compare_all(compare) : status;
	for (size_t i = 0; i < compare->side_count; i++) {
		free(compare->side[i].run);
	}
	for (size_t i = 0; i < compare->run_count; i++) {
		measured_finish(&compare->run[i]);
	}
	for (size_t i = 0; i < compare->old_count; i++) {
		measured_finish(&compare->old[i]);
	}
	free(compare->old);
	free(compare);
	return status;
}

static const struct option_spec options[] = {
	{"threshold", 0, "PERCENT", "how much worse a regression is at least; default: 15",
		parse_threshold, offsetof(struct options, threshold)},
	{"metric", 0, "GLOB", "compare and judge these rows only, such as stages/infer/p99_ms",
		option_nonempty, offsetof(struct options, metric)},
	{"by", 0, "TAG", "runs with the same value of this tag are one side", option_nonempty,
		offsetof(struct options, by)},
	{"table", 0, NULL, "list one row for each side, without a verdict", option_flag,
		offsetof(struct options, table)},
	{"thermal", 0, NULL, "use only values at temperatures and clocks that both sides have",
		option_flag, offsetof(struct options, thermal)},
	{"baseline", 0, "FILE", "compare with the runs in this file", option_nonempty,
		offsetof(struct options, baseline)},
	{"create-baseline", 0, NULL, "write the file unless it exists", option_flag,
		offsetof(struct options, create_baseline)},
	{"update-baseline", 0, NULL, "compare, then replace the file and exit with 0", option_flag,
		offsetof(struct options, update_baseline)},
	{"app", 0, "APP", "which app, where a recording has several", option_nonempty,
		offsetof(struct options, app)},
	{"format", 0, "text|json|markdown|junit", "write the result in this format", option_word,
		offsetof(struct options, format)},
	{"output", 'o', "FILE", "write the result to FILE", option_nonempty,
		offsetof(struct options, output)},
	{.name = NULL},
};

const struct verb verb_compare = {"compare", "SESSION|FILE|APP...",
	"Compare sessions with each other or with a baseline; exit 1 on a regression.",
	"compare before after --threshold 10", options, run};
