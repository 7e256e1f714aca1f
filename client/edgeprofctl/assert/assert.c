/* SPDX-License-Identifier: Apache-2.0 */
/* assert.c: checks conditions about a running app, the device, or what was recorded, for scripts
 * and CI: once, during a time, or until they hold. */
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "client/edgeprofctl/assert/values.h"
#include "client/edgeprofctl/data/data.h"
#include "client/edgeprofctl/compare/document.h"
#include "client/edgeprofctl/listing.h"
#include "client/edgeprofctl/term/when.h"
#include "client/edgeprofctl/verb.h"
#include "proto/text.h"

enum { POLL_MS = 1000, MESSAGE_SIZE = 1024 };

struct check {
	const char *text;
	struct expression expression;
	const char *result; /* as of JUnit's cases; NULL: open */
	double since_ms;    /* when it began to hold; below 0: it does not */
	char message[MESSAGE_SIZE];
};

static int parse(struct ctl *ctl, struct check *check, const char *text)
{
	const char *expected;
	size_t at;
	check->text = text;
	check->since_ms = -1;
	if (expression_parse(text, NULL, &check->expression, &expected, &at) < 0) {
		ctl_fail(ctl, CTL_USAGE, "expected %s at character %zu:", expected, at + 1);
		ctl_fail(ctl, CTL_USAGE, "  %s", text);
		return ctl_fail(ctl, CTL_USAGE, "  %*s^", (int)at, "");
	}
	if (check->expression.for_s > 0 && ctl->options.session) {
		return ctl_fail(ctl, CTL_USAGE, "'for' requires a running app");
	}
	return CTL_FINE;
}

/* Adds what the term found to the message. */
static void add_term(
	struct text *message, const struct term *term, const struct value *value, enum truth truth)
{
	if (truth == TRUTH_UNKNOWN) {
		text_join(message, "; ", "%s: %s", term->path, value->reason);
		return;
	}
	const char *space = term->unit[0] ? " " : "";
	text_join(message, "; ", "%s = %.6g%s%s", term->path, value->number, space, term->unit);
	if (truth == TRUTH_NO) {
		text_add(message, ", expected %s %.10g%s%s", term->relation->sign, term->number,
			space, term->unit);
	}
}

/* Looks once: sets the truth of the expression, and the message to the terms that decide it. */
static int look(struct values *values, struct check *check)
{
	struct expression *expression = &check->expression;
	enum truth truths[EXPRESSION_TERMS];
	struct value found[EXPRESSION_TERMS];
	struct text message = TEXT_IN(check->message);
	const char *expected;
	size_t at;
	for (size_t i = 0; i < expression->term_count; i++) {
		int status = value_of(values, &expression->term[i], &found[i]);
		if (status != CTL_FINE) {
			return status;
		}
		truths[i] = term_truth(&expression->term[i], found[i].number);
	}
	expression_parse(check->text, truths, expression, &expected, &at);
	for (size_t i = 0; i < expression->term_count; i++) {
		if (truths[i] == expression->truth) {
			add_term(&message, &expression->term[i], &found[i], truths[i]);
		}
	}
	return CTL_FINE;
}

static void judge(struct check *check, double now_ms, double within_ms)
{
	double for_ms = check->expression.for_s * 1000;
	enum truth truth = check->expression.truth;
	if (truth == TRUTH_YES) {
		check->since_ms = check->since_ms < 0 ? now_ms : check->since_ms;
		check->result = now_ms - check->since_ms >= for_ms ? "passed" : NULL;
		return;
	}
	if (check->since_ms >= 0 && for_ms > 0) {
		struct text message = {check->message, MESSAGE_SIZE, strlen(check->message), false};
		text_add(&message, " after %.0f s", (now_ms - check->since_ms) / 1000);
	}
	check->since_ms = -1;
	if (now_ms >= within_ms) {
		check->result = truth == TRUTH_NO ? "failed" : "unknown";
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
			if (checks[i].result) {
				continue;
			}
			int status = look(values, &checks[i]);
			if (status != CTL_FINE) {
				return status;
			}
			judge(&checks[i], now_ms, values->ctl->options.within_ms);
			open += !checks[i].result;
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

/* Writes the results; what did not pass also goes to stderr. */
static int show(struct ctl *ctl, const struct check *checks, size_t count)
{
	int status = CTL_FINE;
	cJSON *reply = cJSON_CreateObject(), *cases = cJSON_AddArrayToObject(reply, "assertions");
	bool junit = strcmp(document_begin(ctl), "junit") == 0;
	for (size_t i = 0; i < count; i++) {
		const char *message = checks[i].message;
		bool failed = strcmp(checks[i].result, "failed") == 0;
		document_add_case(cases, checks[i].text, checks[i].result, message);
		if (strcmp(checks[i].result, "passed") != 0) {
			int own = ctl_fail(ctl, failed ? CTL_BAD_NEWS : CTL_NO_DATA, "%s", message);
			status = status == CTL_BAD_NEWS ? status : own;
		}
	}
	if (junit) {
		document_junit(ctl->output.stream, "assert", cases);
	} else if (!ctl_json(ctl, reply)) {
		listing_texts(ctl, "[{?result=passed}passed: {message}\n]", reply, "assertions");
	}
	cJSON_Delete(reply);
	return document_end(ctl, status);
}

static int run(struct ctl *ctl)
{
	size_t count = (size_t)ctl->word_count;
	struct check *checks = ctl_memory(count, sizeof(*checks));
	const char *session = ctl->options.session;
	struct data data;
	struct values values = {.ctl = ctl};
	int status = session && ctl->options.within_ms > 0
			     ? ctl_fail(ctl, CTL_USAGE, "--within requires a running app")
			     : CTL_FINE;
	for (size_t i = 0; i < count && status == CTL_FINE; i++) {
		status = parse(ctl, &checks[i], ctl->words[i]);
	}
	if (status == CTL_FINE && session) {
		status = data_read(ctl, session, ctl->options.app, &data);
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
	free(checks);
	return status;
}

static const struct option_spec options[] = {
	{"app", 0, "APP", "check this app; default: the only one", option_nonempty,
		offsetof(struct options, app)},
	{"session", 0, "SESSION|FILE", "check what this session or recording measured",
		option_nonempty, offsetof(struct options, session)},
	{"within", 0, "SPAN", "wait at most this long for the condition to become true", option_ms,
		offsetof(struct options, within_ms)},
	{"format", 0, "text|junit", "write the results in this format", option_word,
		offsetof(struct options, format)},
	{"output", 'o', "FILE", "write the results to FILE", option_nonempty,
		offsetof(struct options, output)},
	{.name = NULL},
};

const struct verb verb_assert = {"assert", "EXPRESSION...",
	"Check conditions and exit with 1 when one does not hold.",
	"assert 'frames.fps > 30 && stages.infer.p99_ms < 50 for 30s'", options, run};
