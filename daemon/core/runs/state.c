/* state.c: judges the state of a run from its processes, its hangs and how its last process ended.
 */
#include "daemon/core/runs/state.h"

#include <inttypes.h>
#include <stdio.h>

#include "daemon/core/apps/apps.h"

static enum app_state ended_state(enum process_end end)
{
	switch (end) {
	case PROCESS_DIED:
		return APP_DIED;
	case PROCESS_KILLED:
		return APP_KILLED;
	case PROCESS_ENDED:
	case PROCESS_RELEASED:
		break;
	}
	return APP_ENDED;
}

/* The latest of its frames and stages. */
uint64_t app_last_event_ns(const struct app *app)
{
	uint64_t last_ns = app->frames ? pulse_last_ns(&app->frames->pulse) : 0;
	for (size_t i = 0; i < app->stages; i++) {
		uint64_t t_ns = pulse_last_ns(&app->stage[i]->pulse);
		last_ns = t_ns > last_ns ? t_ns : last_ns;
	}
	return last_ns;
}

static bool goes_on(const struct pulse *pulse, uint64_t now_ns)
{
	return pulse->count > 0 && pulse_idle_ns(pulse, now_ns) == 0;
}

/* Every stream that ever had an event is idle. */
static bool app_idle(const struct app *app, uint64_t now_ns)
{
	if (app_last_event_ns(app) == 0 || (app->frames && goes_on(&app->frames->pulse, now_ns))) {
		return false;
	}
	for (size_t i = 0; i < app->stages; i++) {
		if (goes_on(&app->stage[i]->pulse, now_ns)) {
			return false;
		}
	}
	return true;
}

enum app_state app_state(const struct app *app, uint64_t now_ns)
{
	if (app->processes == 0) {
		return ended_state(app->end);
	}
	if (app_hung(&app->hangs) > 0) {
		return APP_HUNG;
	}
	return app_idle(app, now_ns) ? APP_IDLE : APP_RUNNING;
}

bool app_live(const struct app *app, uint64_t now_ns)
{
	return app->processes > 0 || now_ns < app->last_seen_ns + APP_LIVE_NS;
}

bool app_has_rate(const struct app *app, const struct pulse *pulse, uint64_t now_ns,
	struct app_rate_reason *reason)
{
	uint64_t idle_ns = pulse_idle_ns(pulse, now_ns);
	if (app->processes == 0) {
		snprintf(reason->text, sizeof(reason->text), "app ended");
	} else if (idle_ns > 0) {
		snprintf(reason->text, sizeof(reason->text), "no event for %" PRIu64 " s",
			idle_ns / 1000000000);
	}
	return app->processes > 0 && idle_ns == 0;
}

const char *app_state_name(enum app_state state)
{
	static const char *const names[APP_STATES] = {
		[APP_RUNNING] = "running",
		[APP_IDLE] = "idle",
		[APP_HUNG] = "hung",
		[APP_ENDED] = "ended",
		[APP_DIED] = "died",
		[APP_KILLED] = "killed",
	};
	return names[state];
}
