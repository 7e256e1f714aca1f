/* Once a sample: the machine's state for all apps together, then each app's frames. */
#include "daemon/core/apps/app_advice.h"

#include <string.h>

#include "daemon/core/apps/apps_private.h"

/* Of a metric that is read again and again; one whose source stopped is not known any more. */
static bool is_fresh(const struct metric *metric, uint64_t now_ns)
{
	const uint64_t least_ns = 5000000000u;
	uint64_t hold_ns = 3 * metric->source->interval_ns;
	hold_ns = hold_ns > least_ns ? hold_ns : least_ns;
	return !isnan(metric->value) && metric->t_ns > 0 && now_ns <= metric->t_ns + hold_ns;
}

/* The least headroom of any zone that tells where its throttling begins; else how far the hottest
 * one is from the temperature that the operator calls critical. */
static void look_at_zones(struct apps *apps, struct advice_input *input, uint64_t now_ns)
{
	static const char prefix[] = "headroom/";
	const struct metric *metric;
	uint32_t cursor = 0;
	input->headroom_celsius = NAN;
	while ((metric = metrics_next(apps->metrics, &cursor))) {
		if (strncmp(metric->name, prefix, sizeof(prefix) - 1) == 0 &&
			is_fresh(metric, now_ns) && !(metric->value >= input->headroom_celsius)) {
			input->headroom_celsius = metric->value;
			input->headroom_of = metric->name + sizeof(prefix) - 1;
		}
	}
	metric = metrics_find(apps->metrics, "temperature/max");
	if (isnan(input->headroom_celsius) && metric && is_fresh(metric, now_ns)) {
		input->headroom_celsius = apps->advice.critical_celsius - metric->value;
		input->headroom_of = metric->name;
	}
}

static void tell(
	struct apps *apps, const struct app *app, enum proto_advice_level before, uint64_t now_ns)
{
	const struct advice *advice = &app->advice;
	bool raised = advice->level > before && advice->level > PROTO_ADVICE_FULL;
	enum timeline_level level = raised ? TIMELINE_WARNING : TIMELINE_INFO;
	if (advice->level == before || (before == PROTO_ADVICE_NONE && !raised) ||
		!apps_may_tell(apps, app->uid, level, now_ns)) {
		return;
	}
	timeline_add(apps->timeline, now_ns, TIMELINE_APP, level, app->name, "advice: %s (%s)",
		advice_level_name(advice->level), advice->reason);
}

static void advise(struct apps *apps, struct app *app, struct advice_input *input, uint64_t now_ns)
{
	const struct frames *frames = app->frames;
	enum proto_advice_level before = app->advice.level;
	bool changed;
	if (app->processes == 0) {
		changed = advice_clear(&app->advice, "app ended", now_ns);
		before = PROTO_ADVICE_NONE; /* its end is told */
	} else {
		input->has_deadline = frames && frames->deadline_ns > 0;
		input->frames = frames ? frames->count : 0;
		input->judged = frames ? frames->judged : 0;
		input->misses = frames ? frames->misses : 0;
		input->target_fps = frames ? frames->settings.target_fps : 0;
		changed = advice_update(&app->advice, &apps->advice, input, now_ns);
		tell(apps, app, before, now_ns);
	}
	if (changed || app->advice.serial == 0) {
		app->advice.serial = ++apps->advice_serial;
	}
}

void apps_advise(struct apps *apps, uint64_t now_ns)
{
	struct advice_input input = {.throttled = app_throttled_at(apps, now_ns)};
	look_at_zones(apps, &input, now_ns);
	for (size_t i = 0; i < apps->count; i++) {
		advise(apps, apps->app[i], &input, now_ns);
	}
}

void apps_configure_advice(struct apps *apps, const struct advice_options *options)
{
	apps->advice = *options;
}

uint64_t apps_advice_serial(const struct apps *apps)
{
	return apps->advice_serial;
}
