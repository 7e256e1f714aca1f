/* SPDX-License-Identifier: Apache-2.0 */
/* compare.c: compares sessions, recordings and apps with each other or with a baseline file, for
 * people and for CI. The first is the baseline. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/edgeprofctl/compare/comparison.h"
#include "client/edgeprofctl/compare/document.h"
#include "client/edgeprofctl/compare/statistics.h"
#include "client/edgeprofctl/data/data.h"
#include "client/edgeprofctl/link/json.h"
#include "client/edgeprofctl/sessions/sessions.h"
#include "client/edgeprofctl/verb.h"

struct compare {
	struct ctl *ctl;
	bool creates;	  /* the baseline file */
	char *configured; /* its path, when it was not given */
	size_t run_count, old_count, side_count;
	struct measured run[MEASURED_RUNS_MAX], old[MEASURED_RUNS_MAX]; /* old: of the file */
	struct side side[MEASURED_RUNS_MAX + 1];			/* the baseline first */
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
	if (compare->run_count == MEASURED_RUNS_MAX) {
		return ctl_fail(compare->ctl, CTL_USAGE, "more than %d runs", MEASURED_RUNS_MAX);
	}
	return measured_read(compare->ctl, what, &compare->run[compare->run_count++]);
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

static bool is_one_side(const struct ctl *ctl)
{
	return ctl->word_count == 1 && !ctl->options.table && !ctl->options.by &&
	       !strpbrk(ctl->words[0], "*?");
}

/* A baseline file that is not there yet is fine where it is going to be written. */
static int read_all(struct compare *compare)
{
	struct ctl *ctl = compare->ctl;
	int status = CTL_FINE;
	if (!ctl->options.baseline && (compare->creates || is_one_side(ctl))) {
		compare->configured = session_setting(ctl, "baseline");
		ctl->options.baseline = compare->configured;
	}
	const char *path = ctl->options.baseline;
	if (compare->creates && !path) {
		return ctl_fail(ctl, CTL_USAGE, "--%s-baseline requires --baseline FILE",
			ctl->options.create_baseline ? "create" : "update");
	}
	if (path && !(compare->creates && access(path, F_OK) != 0 && errno == ENOENT)) {
		status = baseline_read(ctl, path, compare->old, &compare->old_count);
	}
	for (int i = 0; i < ctl->word_count && status == CTL_FINE; i++) {
		bool glob = strpbrk(ctl->words[i], "*?") && !data_is_file(ctl->words[i]);
		status = glob ? read_matching(compare, ctl->words[i])
			      : read_one(compare, ctl->words[i]);
	}
	return status;
}

/* To the side with that label, from the number `from` on, or to a new one. */
static void add_run(
	struct compare *compare, size_t from, const char *label, const struct measured *run)
{
	size_t i = from;
	while (i < compare->side_count && strcmp(compare->side[i].label, label) != 0) {
		i++;
	}
	struct side *side = &compare->side[i];
	snprintf(side->label, sizeof(side->label), "%s", label);
	side->run[side->count++] = run;
	side->failed = side->failed || !run->error ? side->failed : run;
	compare->side_count = i < compare->side_count ? compare->side_count : i + 1;
}

static int make_sides(struct compare *compare)
{
	const char *tag = compare->ctl->options.by;
	for (size_t i = 0; i < compare->old_count; i++) {
		add_run(compare, 0, compare->ctl->options.baseline, &compare->old[i]);
	}
	size_t first = compare->side_count;
	for (size_t i = 0; i < compare->run_count; i++) {
		const struct measured *run = &compare->run[i];
		const char *value = tag ? json_text(run->tags, tag) : run->name;
		char label[MEASURED_NAME_SIZE];
		if (!value) {
			return ctl_fail(
				compare->ctl, CTL_NO_DATA, "'%s' has no tag '%s'", run->name, tag);
		}
		snprintf(label, sizeof(label), "%s%s%s", tag ? tag : "", tag ? "=" : "", value);
		add_run(compare, tag ? first : compare->side_count, label, run);
	}
	for (size_t i = 0; i < compare->side_count; i++) {
		struct side *side = &compare->side[i];
		if (side->count >= 3) { /* the first is cold */
			side->count--;
			memmove(side->run, side->run + 1, side->count * sizeof(side->run[0]));
		}
	}
	return CTL_FINE;
}

/* Compares each side with the first: CTL_FINE, CTL_BAD_NEWS, or CTL_NO_DATA after a message. */
static int add_comparisons(struct compare *compare, cJSON *result)
{
	struct ctl *ctl = compare->ctl;
	cJSON *comparisons = cJSON_AddArrayToObject(result, "comparisons");
	cJSON *variants = cJSON_AddArrayToObject(result, "variants");
	bool regression = false;
	const char *reason = NULL;
	for (size_t i = 0; i < compare->side_count; i++) {
		const struct side *side = &compare->side[i];
		cJSON_AddItemToArray(variants, describe_side(side, variants->child));
		if (i > 0) {
			cJSON *comparison = compare_sides(&ctl->options, &compare->side[0], side);
			regression = regression || json_integer(comparison, "regressions") > 0;
			reason = reason ? reason : json_text(comparison, "reason");
			cJSON_AddItemToArray(comparisons, comparison);
		}
	}
	cJSON_AddStringToObject(result, "verdict",
		regression ? "regression"
		: reason   ? "no data"
			   : "no regression");
	if (ctl->options.table) {
		return CTL_FINE;
	}
	return regression ? CTL_BAD_NEWS
	       : reason	  ? ctl_fail(ctl, CTL_NO_DATA, "%s", reason)
			  : CTL_FINE;
}

static int show(struct compare *compare, const cJSON *result, int status)
{
	struct ctl *ctl = compare->ctl;
	const char *format = document_begin(ctl);
	if (strcmp(format, "markdown") == 0) {
		comparison_markdown(ctl, result);
	} else if (strcmp(format, "junit") == 0) {
		comparison_junit(ctl, result);
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

/* Writes the baseline file where that was asked for. */
static int write_baseline(struct compare *compare, int status)
{
	struct ctl *ctl = compare->ctl;
	bool exists = compare->old_count > 0;
	if (!compare->creates || (exists && !ctl->options.update_baseline)) {
		return status;
	}
	for (size_t i = 0; i < compare->run_count; i++) {
		const struct measured *run = &compare->run[i];
		size_t values = 0;
		for (size_t j = 0; j < run->series_count; j++) {
			values += run->series[j].count;
		}
		if (values < STATISTICS_LEAST) {
			return ctl_fail(
				ctl, CTL_NO_DATA, "'%s' measured nothing to keep", run->name);
		}
	}
	status = baseline_write(ctl, ctl->options.baseline, compare->run, compare->run_count);
	if (status == CTL_FINE && !ctl->options.format && ctl->options.json == JSON_OFF) {
		fprintf(ctl->output.stream, "Baseline %s: %s\n", exists ? "updated" : "created",
			ctl->options.baseline);
	}
	return status;
}

static int compare_all(struct compare *compare)
{
	struct ctl *ctl = compare->ctl;
	if (compare->side_count < 2 && compare->creates) {
		return write_baseline(compare, CTL_FINE);
	}
	if (compare->side_count < 2 && !ctl->options.table) {
		return ctl_fail(ctl, CTL_USAGE, "compare requires two sides%s",
			ctl->options.by ? "; all runs have the same tag" : "");
	}
	cJSON *result = ctl_parameters("schema", "edgeprof.compare/1");
	int status = add_comparisons(compare, result);
	status = show(compare, result, status);
	cJSON_Delete(result);
	return status == CTL_OUTPUT ? status : write_baseline(compare, status);
}

static int run(struct ctl *ctl)
{
	struct compare *compare = ctl_memory(1, sizeof(*compare));
	compare->ctl = ctl;
	compare->creates = ctl->options.create_baseline || ctl->options.update_baseline;
	int status = read_all(compare);
	status = status == CTL_FINE ? make_sides(compare) : status;
	status = status == CTL_FINE ? compare_all(compare) : status;
	for (size_t i = 0; i < MEASURED_RUNS_MAX; i++) {
		measured_finish(&compare->run[i]);
		measured_finish(&compare->old[i]);
	}
	free(compare->configured);
	free(compare);
	return status;
}

static const struct option_spec options[] = {
	{"threshold", 0, "PERCENT", "how much worse a regression is at least; default: 15",
		parse_threshold, offsetof(struct options, threshold)},
	{"metric", 0, "GLOB", "compare and judge these rows only, such as stages/infer/p95_ms",
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
	{"format", 0, "text|markdown|junit", "write the result in this format", option_word,
		offsetof(struct options, format)},
	{"output", 'o', "FILE", "write the result to FILE", option_nonempty,
		offsetof(struct options, output)},
	{.name = NULL},
};

const struct verb verb_compare = {"compare", "SESSION|FILE|APP...",
	"Compare sessions with each other or with a baseline; exit 1 on a regression.",
	"compare before after --threshold 10", options, run};
