/* SPDX-License-Identifier: Apache-2.0 */
/* assert.c: checks conditions about a running app, the device, or what was recorded, for scripts
 * and CI: once, during a time, or until they hold. */
#include <errno.h>
#include <math.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "client/edgeprofctl/assert/values.h"
#include "client/edgeprofctl/data/data.h"
#include "client/edgeprofctl/compare/document.h"
#include "client/edgeprofctl/link/json.h"
#include "client/edgeprofctl/term/when.h"
#include "client/edgeprofctl/verb.h"
#include "proto/text.h"

enum { POLL_MS = 1000, MESSAGE_SIZE = 1024 };

enum result { RESULT_OPEN, RESULT_PASSED, RESULT_FAILED, RESULT_UNKNOWN };

struct check {
	const char *text;
	struct expression expression;
	enum result result;
	double since_ms; /* when it began to hold; below 0: it does not */
	char message[MESSAGE_SIZE];
};

static int parse(struct ctl *ctl, struct check *check, const char *text)
{
	const char *expected;
	size_t at;
	check->text = text;
	check->since_ms = -1;
	if (expression_parse(text, &check->expression, &expected, &at) == 0) {
		return CTL_FINE;
	}
	ctl_fail(ctl, CTL_USAGE, "expected %s at character %zu:", expected, at + 1);
	if (strcspn(text, "\n\t") == strlen(text)) {
		ctl_fail(ctl, CTL_USAGE, "  %s", text);
		ctl_fail(ctl, CTL_USAGE, "  %*s^", (int)at, "");
	}
	return CTL_USAGE;
}

/* Adds what the term found to the message, where that is the truth looked for. */
static void add_term(
	struct text *message, const struct term *term, const struct value *value, enum truth truth)
{
	if (truth == TRUTH_UNKNOWN) {
		text_join(message, "; ", "%s: %s", term->path, value->reason);
	} else {
		text_join(message, "; ", "%s = %.6g%s", term->path, value->number,
			truth == TRUTH_NO ? ", expected " : "");
		text_add(message, "%s", truth == TRUTH_NO ? term->text : "");
	}
}

/* Looks once. */
static int look(struct values *values, struct check *check, enum truth *ret)
{
	const struct expression *expression = &check->expression;
	enum truth truths[EXPRESSION_TERMS];
	struct value found[EXPRESSION_TERMS];
	for (size_t i = 0; i < expression->term_count; i++) {
		const struct term *term = &expression->term[i];
		int status = value_of(values, term, &found[i]);
		if (status != CTL_FINE) {
			return status;
		}
		bool known = isfinite(found[i].number);
		double factor = known ? unit_factor(term->unit, found[i].unit) : 1;
		if (isnan(factor)) {
			return ctl_fail(values->ctl, CTL_USAGE, "%s is not in '%s'%s%s", term->path,
				term->unit, found[i].unit[0] ? ", but in " : "", found[i].unit);
		}
		truths[i] = term_truth(term, factor, found[i].number);
	}
	*ret = expression_truth(expression, truths);
	struct text message = TEXT_IN(check->message);
	for (size_t i = 0; i < expression->term_count; i++) {
		if (truths[i] == *ret) {
			add_term(&message, &expression->term[i], &found[i], truths[i]);
		}
	}
	return CTL_FINE;
}

static void judge(struct check *check, enum truth truth, double now_ms, double within_ms)
{
	double for_ms = check->expression.for_s * 1000;
	if (truth == TRUTH_YES) {
		check->since_ms = check->since_ms < 0 ? now_ms : check->since_ms;
		if (now_ms - check->since_ms >= for_ms) {
			check->result = RESULT_PASSED;
		}
		return;
	}
	if (check->since_ms >= 0 && for_ms > 0) {
		struct text message = {check->message, MESSAGE_SIZE, strlen(check->message), false};
		text_add(&message, " after %.0f s", (now_ms - check->since_ms) / 1000);
	}
	check->since_ms = -1;
	if (now_ms >= within_ms) {
		check->result = truth == TRUTH_NO ? RESULT_FAILED : RESULT_UNKNOWN;
	}
}

/* Until all are judged. */
static int watch(struct values *values, struct check *checks, size_t count)
{
	double start_ms = when_mono_ms();
	for (size_t open = count; open > 0;) {
		double now_ms = when_mono_ms() - start_ms;
		open = 0;
		for (size_t i = 0; i < count; i++) {
			enum truth truth;
			if (checks[i].result != RESULT_OPEN) {
				continue;
			}
			int status = look(values, &checks[i], &truth);
			if (status != CTL_FINE) {
				return status;
			}
			judge(&checks[i], truth, now_ms, values->ctl->options.within_ms);
			open += checks[i].result == RESULT_OPEN;
		}
		if (!values->data) {
			values_forget(values);
		}
		if (open > 0) {
			poll(NULL, 0, POLL_MS);
		}
	}
	return CTL_FINE;
}

static cJSON *cases_of(const struct check *checks, size_t count)
{
	static const char *const results[] = {"open", "passed", "failed", "unknown"};
	cJSON *cases = cJSON_CreateArray();
	for (size_t i = 0; i < count; i++) {
		cJSON *item = ctl_parameters("name", checks[i].text);
		cJSON_AddStringToObject(item, "result", results[checks[i].result]);
		cJSON_AddStringToObject(item, "message", checks[i].message);
		cJSON_AddItemToArray(cases, item);
	}
	return cases;
}

/* Writes the results; what did not pass also goes to stderr. */
static int show(struct ctl *ctl, const struct check *checks, size_t count)
{
	const char *format = ctl->options.format ? ctl->options.format : "text";
	int status = CTL_FINE;
	cJSON *reply = cJSON_CreateObject(), *cases = cases_of(checks, count);
	cJSON_AddItemToObject(reply, "assertions", cases);
	document_begin(ctl);
	if (strcmp(format, "junit") == 0) {
		document_junit(ctl->output.stream, "assert", cases);
	} else if (strcmp(format, "json") == 0 && ctl->options.json == JSON_OFF) {
		json_write(ctl->output.stream, reply, true);
	} else if (!ctl_json(ctl, reply)) {
		for (size_t i = 0; i < count; i++) {
			if (checks[i].result == RESULT_PASSED) {
				fprintf(ctl->output.stream, "passed: %s\n", checks[i].message);
			}
		}
	}
	for (size_t i = 0; i < count; i++) {
		if (checks[i].result != RESULT_PASSED) {
			bool failed = checks[i].result == RESULT_FAILED;
			int own = ctl_fail(
				ctl, failed ? CTL_BAD_NEWS : CTL_NO_DATA, "%s", checks[i].message);
			status = status == CTL_BAD_NEWS ? status : own;
		}
	}
	cJSON_Delete(reply);
	return document_end(ctl, status);
}

static int check_options(struct ctl *ctl, const struct check *checks, size_t count)
{
	const struct options *options = &ctl->options;
	bool recorded = options->session || options->file;
	if (options->session && options->file) {
		return ctl_fail(ctl, CTL_USAGE, "--session cannot be combined with --file");
	}
	if (recorded && options->within_ms > 0) {
		return ctl_fail(ctl, CTL_USAGE, "--within requires a running app");
	}
	for (size_t i = 0; i < count; i++) {
		if (recorded && checks[i].expression.for_s > 0) {
			return ctl_fail(ctl, CTL_USAGE, "'for' requires a running app");
		}
	}
	return CTL_FINE;
}

static int run_checks(struct ctl *ctl, struct check *checks, size_t count)
{
	struct data data;
	struct values values = {.ctl = ctl, .app = ctl->options.app};
	int status = CTL_FINE;
	for (size_t i = 0; i < count && status == CTL_FINE; i++) {
		status = parse(ctl, &checks[i], ctl->words[i]);
	}
	status = status == CTL_FINE ? check_options(ctl, checks, count) : status;
	if (status == CTL_FINE && (ctl->options.session || ctl->options.file)) {
		const char *what = ctl->options.file ? ctl->options.file : ctl->options.session;
		status = data_read(ctl, what, ctl->options.app, &data);
		values.data = status == CTL_FINE ? &data : NULL;
	} else if (status == CTL_FINE) {
		status = ctl_connect(ctl);
	}
	status = status == CTL_FINE ? watch(&values, checks, count) : status;
	status = status == CTL_FINE ? show(ctl, checks, count) : status;
	values_forget(&values);
	if (values.data) {
		data_finish(&data);
	}
	return status;
}

static int run(struct ctl *ctl)
{
	size_t count = (size_t)ctl->word_count;
	struct check *checks = calloc(count, sizeof(*checks));
	int status = checks ? run_checks(ctl, checks, count)
			    : ctl_fail(ctl, CTL_OUTPUT, "out of memory");
	free(checks);
	return status;
}

static const struct option_spec options[] = {
	{"app", 0, "APP", "check this app; default: the only one", option_nonempty,
		offsetof(struct options, app)},
	{"session", 0, "SESSION", "check what this session or recording measured", option_nonempty,
		offsetof(struct options, session)},
	{"file", 0, "FILE", "check what the session or recording in this file measured",
		option_nonempty, offsetof(struct options, file)},
	{"within", 0, "SPAN", "wait at most this long for the condition to become true", option_ms,
		offsetof(struct options, within_ms)},
	{"format", 0, "text|json|junit", "write the results in this format", option_word,
		offsetof(struct options, format)},
	{"output", 'o', "FILE", "write the results to FILE", option_nonempty,
		offsetof(struct options, output)},
	{.name = NULL},
};

const struct verb verb_assert = {"assert", "EXPRESSION...",
	"Check conditions and exit with 1 when one does not hold.",
	"assert 'frames.fps > 30 && stages.infer.p99_ms < 50 for 30s'", options, run};
