/* SPDX-License-Identifier: Apache-2.0 */
/* stage_pass.c: walks over the stages of all apps and publishes those that had events, with the
 * count of each at the last pass: apps come and go between two passes. */
#include "daemon/publish/payload/stage_pass.h"

#include <stdlib.h>

#include "daemon/core/apps/apps.h"
#include "daemon/publish/payload/payload.h"
#include "daemon/util/sysops.h"

enum { LOOK_AT = 16 };

void stage_pass_init(struct stage_pass *pass, const struct core *core, uint64_t now_ns)
{
	*pass = (struct stage_pass){.core = core, .now_ns = now_ns};
}

void stage_pass_finish(struct stage_pass *pass)
{
	free(pass->scratch);
	pass->scratch = NULL;
	pass->running = false;
}

void stage_pass_begin(struct stage_pass *pass, uint64_t now_ns)
{
	if (pass->running) {
		return;
	}
	pass->before_ns = pass->now_ns;
	pass->now_ns = now_ns;
	pass->app = pass->stage = 0;
	pass->running = true;
}

/* Events since the last pass; the first time, all of them. What was restored, or queued while the
 * daemon was down, is of no interval. */
static uint32_t events_since(struct stage_pass *pass, const struct stage *stage)
{
	size_t i = 0;
	while (i < pass->seen && pass->last[i].serial != stage->serial) {
		i++;
	}
	if (i == pass->seen) {
		if (i == STAGE_PASS_SEEN) {
			/* Twice what can exist: most are of apps that went. */
			pass->seen = i = 0;
		}
		pass->last[i].serial = stage->serial;
		pass->last[i].count = 0;
		pass->seen++;
	}
	uint32_t events = stage->timely - pass->last[i].count;
	pass->last[i].count = stage->timely;
	return events;
}

static bool have_scratch(struct stage_pass *pass, size_t size)
{
	if (pass->scratch_size < size) {
		double *scratch = mem_calloc(size, sizeof(*scratch));
		if (!scratch) {
			return false;
		}
		free(pass->scratch);
		pass->scratch = scratch;
		pass->scratch_size = size;
	}
	return true;
}

char *stage_pass_next(
	struct stage_pass *pass, const struct app **app, const struct stage **stage, size_t *length)
{
	for (int looked = 0; pass->running && looked < LOOK_AT; looked++) {
		*app = apps_at(pass->core->apps, pass->app);
		if (!*app) {
			pass->running = false;
			break;
		}
		if (pass->stage >= (*app)->stages) {
			pass->app++;
			pass->stage = 0;
			continue;
		}
		*stage = (*app)->stage[pass->stage++];
		uint32_t events = events_since(pass, *stage);
		if (events > 0 && have_scratch(pass, (*stage)->window)) {
			double interval_s = (double)(pass->now_ns - pass->before_ns) / 1e9;
			return payload_stage(pass->core, *app, *stage, events, interval_s,
				pass->now_ns, pass->scratch, length);
		}
	}
	return NULL;
}
