/*
 * Frames may end on several threads, whose slots are read one after the other. Their ticks are
 * gathered during a pass and applied in the order of time, else every second one would be late. A
 * process whose frames come from one thread does not come here.
 */
#include "daemon/core/apps_private.h"

#include <errno.h>

#include "daemon/util/seam.h"

void app_ticks_apply(struct app_process *process)
{
	struct app_ticks *ticks = process->ticks;
	if (!ticks) {
		return;
	}
	for (size_t i = 1; i < ticks->count; i++) { /* stable; linear for one thread */
		struct app_tick tick = ticks->tick[i];
		size_t at = i;
		while (at > 0 && ticks->tick[at - 1].t_ns > tick.t_ns) {
			ticks->tick[at] = ticks->tick[at - 1];
			at--;
		}
		ticks->tick[at] = tick;
	}
	for (size_t i = 0; i < ticks->count; i++) {
		const struct app_tick *tick = &ticks->tick[i];
		frames_tick(process->app->frames, tick->t_ns, tick->id, tick->latency_ns);
	}
	ticks->count = 0;
}

int app_ticks_add(struct app_process *process, const struct app_tick *tick)
{
	if (!process->ticks) {
		process->ticks = mem_zalloc(sizeof(*process->ticks));
		if (!process->ticks) {
			return -ENOMEM;
		}
	}
	if (process->ticks->count == APP_TICKS_MAX) {
		app_ticks_apply(process);
	}
	process->ticks->tick[process->ticks->count++] = *tick;
	return 0;
}

bool app_take_frame(struct apps *apps, struct app_process *process, uint32_t slot,
	const struct proto_record *record)
{
	struct app *app = process->app;
	if (!app->frames) {
		if (frames_create(apps->options.frame_window, &app->frames) < 0) {
			return false;
		}
		app_metrics_add_frames(apps, app);
	}
	const struct app_tick tick = {.t_ns = record->start_ns + record->value,
		.id = record->frame,
		.latency_ns = record->value};
	if (!process->ticks && (process->frame_slot == 0 || process->frame_slot == slot + 1)) {
		process->frame_slot = slot + 1; /* one thread's are in order already */
		frames_tick(app->frames, tick.t_ns, tick.id, tick.latency_ns);
		return true;
	}
	return app_ticks_add(process, &tick) == 0;
}
