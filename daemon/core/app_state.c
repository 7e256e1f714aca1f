/* Judges the state of a run from its processes, its hangs and how its last process ended. */
#include "daemon/core/app_state.h"

#include "daemon/core/apps.h"

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

enum app_state app_state(const struct app *app, uint64_t now_ns)
{
	(void)now_ns;
	if (app->processes == 0) {
		return ended_state(app->end);
	}
	return app_hung(&app->hangs) > 0 ? APP_HUNG : APP_RUNNING;
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
