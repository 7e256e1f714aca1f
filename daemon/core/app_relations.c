/*
 * How the stages of an app relate to each other. Nothing is kept: the answer follows from who was
 * seen inside whom, each time it is asked for.
 */
#include "daemon/core/app_stages.h"

#include <math.h>
#include <string.h>

#include "daemon/core/apps.h"
#include "daemon/core/stage_stats.h"

enum { ANCESTORS = 16 }; /* as deep as a thread's stack of stages; ends a circle, too */

struct stage *app_stage_parent(const struct app *app, const struct stage *stage)
{
	size_t most = 0;
	for (size_t i = 1; i < stage->parents && i < STAGE_PARENTS; i++) {
		most = stage->parent[i].runs > stage->parent[most].runs ? i : most;
	}
	if (stage->parents == 0 || stage->nested_count * 2 <= stage->count) {
		return NULL; /* it mostly runs on its own */
	}
	for (size_t i = 0; i < app->stages; i++) {
		if (app->stage[i]->serial == stage->parent[most].serial) {
			return app->stage[i] != stage ? app->stage[i] : NULL;
		}
	}
	return NULL;
}

static bool is_total(const struct stage *stage)
{
	return strcmp(stage->name, "total") == 0 || strcmp(stage->category, "total") == 0;
}

bool app_stage_counts(const struct app *app, const struct stage *stage)
{
	if (is_total(stage)) {
		return false;
	}
	const struct stage *parent = app_stage_parent(app, stage);
	for (int i = 0; parent && parent != stage && i < ANCESTORS; i++) {
		if (!is_total(parent)) {
			return false;
		}
		parent = app_stage_parent(app, parent);
	}
	return true;
}

double app_stage_per_frame_ms(const struct app *app, const struct stage *stage, double *runs)
{
	double per_id = 1;
	const struct frames *frames = app->frames;
	if (frames && frames->count > 1 && frames->skipped_ids > 0) {
		per_id = (double)frames->count / (double)(frames->count + frames->skipped_ids);
	}
	double runs_per_frame = stage_runs_per_frame(stage, per_id);
	if (runs) {
		*runs = runs_per_frame;
	}
	double mean_ms = stage_mean_ms(stage);
	return isnan(runs_per_frame) ? mean_ms : mean_ms * runs_per_frame;
}

double app_stage_share(const struct app *app, const struct stage *stage)
{
	double sum = 0;
	for (size_t i = 0; i < app->stages; i++) {
		if (app->stage[i]->filled > 0 && app_stage_counts(app, app->stage[i])) {
			sum += app_stage_per_frame_ms(app, app->stage[i], NULL);
		}
	}
	return sum > 0 ? app_stage_per_frame_ms(app, stage, NULL) / sum : (double)NAN;
}

uint64_t app_total_ns(const struct app *app)
{
	uint64_t sum_ns = 0;
	for (size_t i = 0; i < app->stages; i++) {
		if (app_stage_counts(app, app->stage[i])) {
			sum_ns += app->stage[i]->total_ns;
		}
	}
	return sum_ns;
}

/* Sums over the stages whose label at this offset of struct stage is the text. */
static uint64_t labelled_ns(const struct app *app, size_t offset, const char *text)
{
	uint64_t sum_ns = 0;
	for (size_t i = 0; i < app->stages; i++) {
		const struct stage *stage = app->stage[i];
		bool counts = strcmp((const char *)stage + offset, text) == 0 &&
			      (!is_total(stage) || strcmp(text, "total") == 0);
		const struct stage *parent = app_stage_parent(app, stage);
		for (int k = 0; counts && parent && parent != stage && k < ANCESTORS; k++) {
			counts = strcmp((const char *)parent + offset, text) != 0 ||
				 is_total(parent);
			parent = app_stage_parent(app, parent);
		}
		sum_ns += counts ? stage->total_ns : 0;
	}
	return sum_ns;
}

uint64_t app_category_ns(const struct app *app, const char *category)
{
	return labelled_ns(app, offsetof(struct stage, category), category);
}

uint64_t app_unit_ns(const struct app *app, const char *unit)
{
	return labelled_ns(app, offsetof(struct stage, unit), unit);
}
