/* What starts a recording by itself. Alerts come as transitions; missed deadlines and hangs are
 * looked at once an interval, at the commit of the source `stages`. */
#include "daemon/recorder_private.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static void on_alert(void *ctx, const struct alert_transition *transition)
{
	struct recorder *recorder = ctx;
	const struct alert *alert = transition->alert;
	char text[RECORDING_TRIGGER];
	if ((recorder->options.triggers & RECORDER_ALERTS) == 0 || transition->to != ALERT_FIRING ||
		transition->from == ALERT_FIRING || transition->test || transition->late ||
		alert->severity < ALERT_WARNING) {
		return;
	}
	snprintf(text, sizeof(text), "alert %s:%.64s (%s): %.60s", alert->rule->name,
		alert->instance, alert_severity_name(alert->severity), alert->text);
	recorder_trigger(recorder, RECORD_ALERT, alert->rule->name, text, transition->t_ns, NULL);
}

static uint64_t hash(const char *text, uint64_t seed)
{
	for (; *text; text++) {
		seed = (seed ^ (unsigned char)*text) * UINT64_C(1099511628211); /* FNV-1a */
	}
	return seed;
}

/* The misses of the interval that was just committed; NAN: none told. */
static double misses_of(const struct recorder *recorder, const char *app, const char *stage)
{
	char path[PROTO_PATH_SIZE];
	snprintf(path, sizeof(path), "%s/%s%s%s/misses", stage ? "stage" : "frame", app,
		stage ? "/" : "", stage ? stage : "");
	const struct metric *metric = metrics_find(recorder->core->metrics, path);
	return metric ? metric->value : (double)NAN;
}

static void look_at_misses(struct recorder *recorder, const struct app *app, const char *stage,
	uint64_t consecutive, uint64_t t_ns)
{
	double misses = misses_of(recorder, app->name, stage);
	uint64_t key = hash(app->name, UINT64_C(14695981039346656037));
	key = stage ? hash(stage, hash("/", key)) : key;
	if (!record_burst(&recorder->bursts, key, misses, consecutive, t_ns)) {
		return;
	}
	char text[RECORDING_TRIGGER], subject[2 * PROTO_NAME_SIZE];
	snprintf(subject, sizeof(subject), "%s%s%s", app->name, stage ? "-" : "",
		stage ? stage : "");
	snprintf(text, sizeof(text), "misses %s/%s: %.0f in one interval, %" PRIu64 " consecutive",
		app->name, stage ? stage : "(frames)", misses, consecutive);
	recorder_trigger(recorder, RECORD_MISSES, subject, text, t_ns, NULL);
}

/* The innermost hang that was told last. */
static const char *hung_stage(const struct app *app)
{
	for (size_t i = app->hangs.count; i-- > 0;) {
		if (app->hangs.hang[i].told) {
			return app->hangs.hang[i].stage->name;
		}
	}
	return app->hangs.count > 0 ? app->hangs.hang[app->hangs.count - 1].stage->name : "?";
}

static void look_at_hangs(
	struct recorder *recorder, size_t index, const struct app *app, uint64_t t_ns)
{
	bool same = recorder->seen[index].since_ns == app->since_ns &&
		    strcmp(recorder->seen[index].name, app->name) == 0;
	uint64_t before = same ? recorder->seen[index].hangs : 0;
	/* apps move up when one goes: then the total is an old one, and nothing hangs anew */
	bool begins = app->hangs.total > before && app->hangs.count > 0;
	recorder->seen[index].since_ns = app->since_ns;
	recorder->seen[index].hangs = app->hangs.total;
	memcpy(recorder->seen[index].name, app->name, sizeof(app->name));
	if (begins && (recorder->options.triggers & RECORDER_HANGS) != 0) {
		char text[RECORDING_TRIGGER], subject[2 * PROTO_NAME_SIZE];
		snprintf(subject, sizeof(subject), "%s-%s", app->name, hung_stage(app));
		snprintf(text, sizeof(text), "hang %s: in %s", app->name, hung_stage(app));
		recorder_trigger(recorder, RECORD_HANG, subject, text, t_ns, NULL);
	}
}

static void on_commit(void *ctx, const struct source *source, uint64_t t_ns)
{
	struct recorder *recorder = ctx;
	const struct app *app;
	if (strcmp(source->name, "stages") != 0) {
		return;
	}
	for (size_t i = 0; i < APPS_MAX && (app = apps_at(recorder->core->apps, i)); i++) {
		look_at_hangs(recorder, i, app, t_ns);
		if ((recorder->options.triggers & RECORDER_MISSES) == 0) {
			continue;
		}
		/* most stages have never missed anything */
		for (size_t s = 0; s < app->stages; s++) {
			const struct stage *stage = app->stage[s];
			if (stage->misses > 0) {
				look_at_misses(recorder, app, stage->name,
					stage->consecutive_misses, t_ns);
			}
		}
		if (app->frames && app->frames->misses > 0) {
			look_at_misses(recorder, app, NULL, app->frames->consecutive_misses, t_ns);
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
