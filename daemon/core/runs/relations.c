/* SPDX-License-Identifier: Apache-2.0 */
/*
 * relations.c: computes how the stages of one app relate, from what was seen of each. ListStages
 * shows it, and the shares split a frame's energy.
 */
#include "daemon/core/runs/relations.h"

#include <math.h>
#include <string.h>

enum { ANCESTORS = 16 }; /* as deep as a thread's stack of stages; ends a circle, too */

static int16_t parent_of(const struct app *app, const struct stage *stage)
{
	size_t max = 0;
	if (stage->parents == 0 || !stage_is_nested(stage)) {
		return APP_NO_STAGE; /* it mostly runs on its own */
	}
	for (size_t i = 1; i < stage->parents && i < STAGE_PARENTS; i++) {
		max = stage->parent[i].runs > stage->parent[max].runs ? i : max;
	}
	for (size_t i = 0; i < app->stages; i++) {
		if (app->stage[i]->serial == stage->parent[max].serial) {
			return app->stage[i] != stage ? (int16_t)i : APP_NO_STAGE;
		}
	}
	return APP_NO_STAGE;
}

/* What of_parent says of one of the ancestors of i. */
static bool any_ancestor(const struct app_relations *relations, size_t i,
	bool (*of_parent)(const struct app_relations *relations, size_t i, size_t parent))
{
	int16_t parent = relations->parent[i];
	for (int k = 0; parent != APP_NO_STAGE && k < ANCESTORS; k++) {
		if (of_parent(relations, i, (size_t)parent)) {
			return true;
		}
		parent = relations->parent[parent];
	}
	return false;
}

static bool is_part(const struct app_relations *relations, size_t i, size_t parent)
{
	(void)i;
	return !relations->is_total[parent];
}

/* The part of a stage's time that is not inside of one that is a part of the total. Which runs were
 * in which parent is not known, only how many of the parents' had some. */
static double outermost(const struct app *app, const struct app_relations *relations, size_t i)
{
	const struct stage *stage = app->stage[i];
	uint64_t all = stage->own_runs, inside = stage->own_runs;
	for (size_t k = 0; k < stage->parents && k < STAGE_PARENTS; k++) {
		size_t at = 0;
		while (at < app->stages && app->stage[at]->serial != stage->parent[k].serial) {
			at++;
		}
		bool part = at < app->stages &&
			    (is_part(relations, i, at) || any_ancestor(relations, at, is_part));
		all += stage->parent[k].runs;
		inside += part ? stage->parent[k].runs : 0;
	}
	double nested =
		stage->total_ns > 0 ? (double)stage->nested_ns / (double)stage->total_ns : 0;
	double part = all > 0 ? 1 - nested * (double)inside / (double)all : 1;
	bool root = relations->parent[i] ==
		    APP_NO_STAGE; /* of a circle, inside of what has not ended */
	return part > 0 || !root ? part : 1;
}

static bool is_itself(const struct app_relations *relations, size_t i, size_t parent)
{
	(void)relations;
	return i == parent;
}

/* The index of the first stage that has the i-th one's name of a group. */
static uint8_t first_of(const char *const *names, size_t i)
{
	size_t first = 0;
	while (strcmp(names[first], names[i]) != 0) {
		first++;
	}
	return (uint8_t)first;
}

static const char *unit_of(const struct app *app, const struct app_relations *relations, size_t i)
{
	const char *unit = stage_unit(app->stage[i]);
	int16_t parent = relations->parent[i];
	while (!unit[0] && parent != APP_NO_STAGE) {
		unit = stage_unit(app->stage[parent]);
		parent = relations->parent[parent];
	}
	return unit;
}

void app_relate(const struct app *app, struct app_relations *ret)
{
	const char *categories[APP_STAGES_MAX];
	memset(ret, 0, sizeof(*ret));
	app_loop_window(app, &ret->window);
	for (size_t i = 0; i < app->stages; i++) {
		const struct stage *stage = app->stage[i];
		ret->parent[i] = parent_of(app, stage);
		ret->is_total[i] = !stage_is_work(stage);
		categories[i] = stage->category;
		ret->category[i] = first_of(categories, i);
	}
	for (size_t i = 0; i < app->stages; i++) {
		if (any_ancestor(ret, i, is_itself)) {
			ret->parent[i] = APP_NO_STAGE; /* a in b in a: the tree needs a root */
		}
	}
	for (size_t i = 0; i < app->stages; i++) {
		ret->unit_name[i] = unit_of(app, ret, i);
		ret->unit[i] = first_of(ret->unit_name, i);
	}
	for (size_t i = 0; i < app->stages; i++) {
		if (ret->is_total[i]) {
			continue;
		}
		uint64_t self_ns = app->stage[i]->total_ns - app->stage[i]->children_ns;
		ret->counts[i] = outermost(app, ret, i);
		ret->self_ns[i] = self_ns;
		ret->total_ns += self_ns;
		ret->category_ns[ret->category[i]] += self_ns;
		ret->unit_ns[ret->unit[i]] += self_ns;
	}
}

void app_tree(const struct app *app, const struct app_relations *relations,
	uint8_t order[APP_STAGES_MAX], uint8_t depth[APP_STAGES_MAX])
{
	/* from the last to the first, each in front of what is behind its parent already */
	size_t count = 0;
	for (size_t level = 0, listed = 1; listed > 0; level++) {
		listed = 0;
		for (size_t i = app->stages; i-- > 0;) {
			unsigned deep = 0;
			int16_t parent = relations->parent[i];
			for (int16_t p = parent; p != APP_NO_STAGE && deep < ANCESTORS; deep++) {
				p = relations->parent[p];
			}
			if (deep != level) {
				continue;
			}
			size_t at = 0;
			while (level > 0 && order[at++] != parent) {
			}
			memmove(order + at + 1, order + at, count - at);
			memmove(depth + at + 1, depth + at, count - at);
			order[at] = (uint8_t)i;
			depth[at] = (uint8_t)deep;
			count++;
			listed++;
		}
	}
}

/* While no frame is finished. Frames are on their way: what carries no id is of none of them. */
static double unfinished_ms(
	const struct app *app, const struct stage *stage, const struct window_query *query)
{
	bool framed = app->frame_state && app->frame_state->table;
	return framed && stage->last_frame == PROTO_NO_FRAME ? 0 : stage_mean_ms(stage, query);
}

double app_per_frame_ms(const struct app *app, const struct app_relations *relations,
	const struct stage *stage, const struct window_query *query, double *runs)
{
	const struct loop_window *window = &relations->window;
	bool known = window->iterations > 0;
	struct loop_sum sum = app_loop_cost(app, window, stage);
	double frames = known ? (double)window->iterations : (double)NAN;
	double per_frame = (double)sum.runs / frames;
	if (runs) {
		*runs = per_frame;
	}
	if (stage->count == 0) {
		return (double)NAN;
	}
	if (!known) {
		return unfinished_ms(app, stage, query);
	}
	return query->filter == WINDOW_ALL ? (double)sum.ns / frames / 1e6
					   : stage_mean_ms(stage, query) * per_frame;
}

double app_frame_ms(const struct app *app, const struct app_relations *relations,
	const struct window_query *query)
{
	double sum_ms = 0;
	for (size_t i = 0; i < app->stages; i++) {
		double cost_ms = app_per_frame_ms(app, relations, app->stage[i], query, NULL);
		sum_ms += isnan(cost_ms) ? 0 : relations->counts[i] * cost_ms;
	}
	return sum_ms;
}
