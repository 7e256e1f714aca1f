/* SPDX-License-Identifier: Apache-2.0 */
/* triggers.c: starts recordings automatically. Alerts arrive as transitions; missed deadlines and
 * hangs are checked once an interval, at the commit of the source `stages`. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "daemon/core/alerts/alerts.h"
#include "daemon/core/core.h"
#include "daemon/recorder/private.h"
#include "proto/fnv.h"

/* Fills in the rest. */
static void trigger(struct recorder *recorder, struct record_cause *cause)
{
	bool joined;
	cause->before_ns = recorder->options.before_ns;
	cause->after_ns = recorder->options.after_ns;
	recorder_trigger(recorder, cause, &joined);
}

static void on_alert(void *ctx, const struct alert_transition *transition)
{
	struct recorder *recorder = ctx;
	const struct alert *alert = transition->alert;
	struct record_cause cause = {.kind = RECORD_ALERT, .t_ns = transition->t_ns};
	const bool critical = alert->severity == ALERT_CRITICAL;
	const bool begins = transition->from != ALERT_FIRING ||
			    (critical && transition->from_severity != ALERT_CRITICAL);
	if ((recorder->options.triggers & RECORDER_ALERTS) == 0 || transition->to != ALERT_FIRING ||
		!begins || transition->test || transition->sent_ns != 0 || transition->update ||
		alert->severity < ALERT_WARNING) {
		return;
	}
	cause.flags = (uint8_t)((critical ? RECORD_CRITICAL : 0) |
				(record_metric_of_app(alert->metric) ? RECORD_OF_APP : 0));
	snprintf(cause.subject, sizeof(cause.subject), "%s", alert->rule->name);
	const bool single = strcmp(alert->instance, "_") == 0;
	snprintf(cause.text, sizeof(cause.text), "alert %s%s%.64s (%s): %.90s", alert->rule->name,
		single ? "" : ":", single ? "" : alert->instance,
		alert_severity_name(alert->severity), alert->text);
	trigger(recorder, &cause);
}

/* The misses of the interval that was just committed; NAN: there is none. */
static double misses_of(const struct recorder *recorder, const char *app, const char *stage)
{
	char path[PROTO_PATH_SIZE];
	snprintf(path, sizeof(path), "%s/%s%s%s/misses", stage ? "stage" : "frame", app,
		stage ? "/" : "", stage ? stage : "");
	return metrics_value(recorder->core->metrics, path);
}

static void check_misses(struct recorder *recorder, const struct app *app, const char *stage,
	uint64_t consecutive, uint64_t t_ns)
{
	double misses = misses_of(recorder, app->name, stage);
	uint64_t key = fnv64_text(FNV64_BASIS, app->name);
	key = stage ? fnv64_text(fnv64_text(key, "/"), stage) : key;
	if (!record_burst(&recorder->bursts, key, misses, consecutive, t_ns)) {
		return;
	}
	struct record_cause cause = {.kind = RECORD_MISSES, .flags = RECORD_OF_APP, .t_ns = t_ns};
	snprintf(cause.subject, sizeof(cause.subject), "%s%s%s", app->name, stage ? "-" : "",
		stage ? stage : "");
	snprintf(cause.text, sizeof(cause.text),
		"misses %s/%s: %.0f in one interval, %" PRIu64 " consecutive", app->name,
		stage ? stage : "(frames)", misses, consecutive);
	trigger(recorder, &cause);
}

/* The innermost hang that was reported last. */
static const char *hung_stage(const struct app *app)
{
	for (size_t i = app->hangs.count; i-- > 0;) {
		if (app->hangs.hang[i].logged) {
			return app->hangs.hang[i].stage->name;
		}
	}
	return app->hangs.count > 0 ? app->hangs.hang[app->hangs.count - 1].stage->name : "?";
}

static void check_hangs(struct recorder *recorder, struct app *app, uint64_t t_ns)
{
	bool begins = app->hangs.count > 0 && app->hangs.total > app->hangs.recorded;
	app->hangs.recorded = app->hangs.total;
	if (begins && (recorder->options.triggers & RECORDER_HANGS) != 0) {
		struct record_cause cause = {
			.kind = RECORD_HANG, .flags = RECORD_OF_APP, .t_ns = t_ns};
		snprintf(cause.subject, sizeof(cause.subject), "%s-%s", app->name, hung_stage(app));
		snprintf(cause.text, sizeof(cause.text), "hang %s: in %s", app->name,
			hung_stage(app));
		trigger(recorder, &cause);
	}
}

static void on_commit(void *ctx, const struct source *source, uint64_t t_ns)
{
	struct recorder *recorder = ctx;
	struct app *app;
	if (recorder->capture) {
		capture_update_clock(recorder->capture);
	}
	if (strcmp(source->name, "stages") != 0) {
		return;
	}
	for (size_t i = 0; i < APPS_MAX && (app = apps_at(recorder->core->apps, i)); i++) {
		check_hangs(recorder, app, t_ns);
		if ((recorder->options.triggers & RECORDER_MISSES) == 0) {
			continue;
		}
		/* most stages have never missed anything */
		for (size_t s = 0; s < app->stages; s++) {
			const struct stage *stage = app->stage[s];
			if (stage->misses > 0) {
				check_misses(recorder, app, stage->name, stage->consecutive_misses,
					t_ns);
			}
		}
		if (app->frames && app->frames->misses > 0) {
			check_misses(recorder, app, NULL, app->frames->consecutive_misses, t_ns);
		}
	}
}

int recorder_observe(struct recorder *recorder)
{
	const struct metrics_observer observer = {on_commit, NULL, recorder};
	int r = metrics_observe(recorder->core->metrics, observer);
	return r < 0 ? r : alerts_observe(recorder->core->alerts, on_alert, recorder);
}

void recorder_unobserve(struct recorder *recorder)
{
	metrics_unobserve(recorder->core->metrics, recorder);
	alerts_unobserve(recorder->core->alerts, recorder);
}
