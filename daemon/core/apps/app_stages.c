/* SPDX-License-Identifier: Apache-2.0 */
/*
 * app_stages.c: makes the stages of an app: a declaration becomes a stage at its first event,
 * within the limits. How a record becomes one of its runs is in records.c.
 */
#include "daemon/core/apps/apps_private.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#define RSS_LOG_INTERVAL_NS UINT64_C(60000000000)

/* Labels are words for people: printable ASCII of the client's text. */
static void label_copy(char ret[PROTO_LABEL_SIZE], const char text[PROTO_LABEL_SIZE])
{
	size_t length = strnlen(text, PROTO_LABEL_SIZE - 1);
	for (size_t i = 0; i < length; i++) {
		ret[i] = text[i] > ' ' && text[i] < 0x7f ? text[i] : '_';
	}
	ret[length] = '\0';
}

/* What a name says in addition to the stage: infer@gpu runs on the GPU, and so on. */
struct stage_name {
	char base[PROTO_NAME_SIZE];  /* clean */
	char shown[PROTO_NAME_SIZE]; /* the same without a suffix that names the unit */
	char unit[PROTO_LABEL_SIZE];
	bool split; /* the unit is not part of base */
};

static bool has_tail(const char *text, size_t length, const char *tail)
{
	size_t size = strlen(tail);
	return length > size && memcmp(text + length - size, tail, size) == 0;
}

/* How long the name is without its unit: in front of '@', which clients may have cleaned to '_'. */
static size_t base_length(const char *name, size_t length, const char *unit)
{
	const char *at = memrchr(name, '@', length);
	if (at && at > name && at + 1 < name + length) {
		return (size_t)(at - name);
	}
	char tail[PROTO_LABEL_SIZE + 1];
	snprintf(tail, sizeof(tail), "_%s", unit);
	return unit[0] && has_tail(name, length, tail) ? length - strlen(tail) : length;
}

static void name_read(const struct proto_declaration *declaration, struct stage_name *ret)
{
	const char *name = declaration->name;
	char unit[PROTO_LABEL_SIZE];
	label_copy(unit, declaration->unit);
	size_t length = strnlen(name, PROTO_NAME_MAX);
	size_t base = base_length(name, length, unit);
	const char *named = unit;
	if (proto_name_without_unit(name, length, &named) < length) { /* part of metrics' names */
		base = length;
		snprintf(unit, sizeof(unit), "%s", unit[0] ? declaration->unit : named);
	}
	*ret = (struct stage_name){.split = base < length};
	proto_name_clean(name, base, ret->base);
	proto_name_clean(name, proto_name_without_unit(name, base, NULL), ret->shown);
	if (ret->split && !unit[0]) {
		snprintf(unit, sizeof(unit), "%.*s", (int)(length - base - 1), name + base + 1);
	}
	label_copy(ret->unit, unit);
}

static void stage_describe(struct stage *stage, const struct proto_declaration *declaration,
	const struct stage_name *name)
{
	char category[PROTO_LABEL_SIZE];
	label_copy(category, declaration->category);
	stage_set_labels(stage, category, name->unit);
	if (declaration->deadline_ns) {
		stage_set_deadline(stage, declaration->deadline_ns);
	}
}

/* A name is taken when another declaration of the same process has its stage. */
static bool taken_in_process(void *ctx, const char *name)
{
	const struct app_process *process = ctx;
	for (size_t i = 0; i < PROTO_DECLARATIONS; i++) {
		if (process->stages[i] && strcmp(process->stages[i]->name, name) == 0) {
			return true;
		}
	}
	return false;
}

struct stage *app_stage_find(const struct app *app, const char *name)
{
	for (size_t i = 0; i < app->stages; i++) {
		if (strcmp(app->stage[i]->name, name) == 0) {
			return app->stage[i];
		}
	}
	return NULL;
}

static void configure(const struct apps *apps, const struct app *app, struct stage *stage)
{
	const struct stage_settings settings =
		app_settings_of_stage(apps->config.settings, app->name, stage);
	stage_configure(stage, &settings);
}

static void stage_join(struct apps *apps, struct app *app, struct stage *stage)
{
	stage->serial = ++apps->stage_serial;
	stage_set_budget(stage, &apps->counts.stage_budget);
	configure(apps, app, stage);
	app->stage[app->stages++] = stage;
	apps->counts.stages++;
	app_metrics_add_stage(apps, app, stage);
}

/* Two rows of one name and one unit could not be distinguished. */
static bool looks_like_another(const struct app *app, const struct stage *stage)
{
	for (size_t i = 0; i < app->stages; i++) {
		const struct stage *other = app->stage[i];
		if (other != stage && strcmp(other->base, stage->base) == 0 &&
			strcmp(stage_unit(other), stage_unit(stage)) == 0) {
			return true;
		}
	}
	return false;
}

static struct stage *stage_add(
	struct apps *apps, struct app *app, const char *name, const struct stage_name *parsed)
{
	struct stage *stage;
	if (app->stages == APP_STAGES_MAX ||
		stage_create(name, apps->options.stage_window, &stage) < 0) {
		return NULL;
	}
	app_loop_init(&app->loop, &apps->options);
	if (parsed) {
		memcpy(stage->base, parsed->shown, sizeof(stage->base));
		stage_set_labels(stage, "", parsed->unit);
	}
	stage_join(apps, app, stage);
	if (looks_like_another(app, stage)) {
		memcpy(stage->base, stage->name, sizeof(stage->base));
	}
	return stage;
}

void app_stage_restore(struct apps *apps, struct app *app, struct stage *stage)
{
	stage->resumed = true;
	stage_join(apps, app, stage);
}

static bool has_memory(const struct apps *apps)
{
	const struct stage_budget *budget = &apps->counts.stage_budget;
	return budget->used + budget->past + stage_bytes(apps->options.stage_window) <=
	       budget->limit;
}

static bool has_room(const struct apps *apps)
{
	return apps->counts.stages < STAGES_MAX && has_memory(apps);
}

/* One slot of an app is kept for APP_STAGE_OTHER, which is over no limit but the table's. */
static bool stage_fits(struct apps *apps, struct app *app)
{
	if (app->stages >= APP_STAGES_MAX - 1 && !apps_retire_stage(apps, app)) {
		return false;
	}
	/* a loop: slots used by APP_STAGE_OTHER beyond the limit are freed here */
	while (!has_memory(apps) && apps_retire_run(apps)) {
	}
	while (!has_room(apps) && apps_retire_stage(apps, NULL)) {
	}
	return has_room(apps);
}

/* infer@gpu next to an infer on another unit is infer_gpu. */
static int name_choose(
	struct app_process *process, const struct stage_name *name, char ret[PROTO_NAME_SIZE])
{
	const char *text = name->base;
	char both[PROTO_NAME_SIZE + PROTO_LABEL_SIZE];
	if (name->split || name->unit[0]) {
		const struct stage *other = app_stage_find(process->app, name->base);
		bool used = other && (stage_unit(other)[0] || other->count > 0);
		bool differs = used && strcmp(stage_unit(other), name->unit) != 0;
		if (differs || (name->split && taken_in_process(process, name->base))) {
			snprintf(both, sizeof(both), "%.*s_%s",
				PROTO_NAME_MAX - 1 - (int)strlen(name->unit), name->base,
				name->unit);
			text = both;
		}
	}
	return proto_name_unique(text, strlen(text), taken_in_process, process, ret);
}

const char *app_expected_unit(const struct app *app, const struct stage *stage)
{
	if (stage->settings.unit[0]) {
		return stage->settings.unit;
	}
	for (size_t i = 0; i < app->stages; i++) {
		const struct stage *other = app->stage[i];
		if (other->unit[0] && strcmp(other->base, stage->base) == 0) {
			return other->unit;
		}
	}
	return "";
}

static bool is_cpu(const char *unit)
{
	size_t length = strlen(unit);
	return strncasecmp(unit, "cpu", 3) == 0 ||
	       (length > 3 && strcasecmp(unit + length - 3, "cpu") == 0);
}

bool app_is_cpu_fallback(const char *unit, const char *expected)
{
	return expected[0] && is_cpu(unit) && !is_cpu(expected);
}

/* The first stage of that base name. */
static struct stage *sibling_of(const struct app *app, const char *base)
{
	for (size_t i = 0; i < app->stages; i++) {
		if (strcmp(app->stage[i]->base, base) == 0) {
			return app->stage[i];
		}
	}
	return NULL;
}

/* A name that only got a deadline, without a unit: it is the stage of the first unit that comes. */
static struct stage *stage_unused(const struct app *app, const struct stage_name *name)
{
	struct stage *stage = sibling_of(app, name->base);
	bool unused = stage && name->unit[0] && !stage->unit[0] && stage->count == 0 &&
		      stage->warmup_skipped == 0 && !stage->open;
	return unused ? stage : NULL;
}

/* What the app demands of a stage holds wherever it runs. */
static void inherit_deadline(const struct app *app, struct stage *stage)
{
	const struct stage *first = sibling_of(app, stage->base);
	if (first && first != stage && first->declared_ns && !stage->declared_ns) {
		stage_set_deadline(stage, first->declared_ns);
	}
}

struct stage *app_stage_of(struct apps *apps, struct app_process *process, uint32_t index)
{
	if (process->stages[index]) {
		return process->stages[index];
	}
	apps_fold_stages(apps);
	const struct proto_declaration *declaration = process->declaration[index];
	struct stage_name parsed;
	char name[PROTO_NAME_SIZE];
	name_read(declaration, &parsed);
	struct app *app = process->app;
	struct stage *stage = stage_unused(app, &parsed);
	if (!stage && name_choose(process, &parsed, name) < 0) {
		return NULL;
	}
	stage = stage ? stage : app_stage_find(app, name);
	if (!stage && stage_fits(apps, app)) {
		stage = stage_add(apps, app, name, &parsed);
		if (!stage) {
			return NULL;
		}
	}
	if (stage) {
		stage_describe(stage, declaration, &parsed);
		inherit_deadline(app, stage);
	} else {
		stage = app_stage_find(app, APP_STAGE_OTHER);
		if (!stage) {
			stage = stage_add(apps, app, APP_STAGE_OTHER, NULL);
		}
		if (!stage) {
			return NULL;
		}
		process->other[index] = true;
		apps->counts.stages_refused++;
		apps_note_other(apps, app, name);
	}
	process->stages[index] = stage;
	if (stage->interval_from_ns < process->attached_ns) {
		stage->interval_from_ns = process->attached_ns;
	}
	if (stage->users++ == 0 && !stage->resumed) {
		stage_warm_up(stage);
	}
	stage->resumed = false;
	return stage;
}

/* A process's first execution of a stage may allocate what the stage needs, and one of the category
 * memory is there to be measured: neither is a leak. */
void app_log_growth(struct apps *apps, struct app_process *process, uint32_t index, uint64_t end_ns,
	int64_t growth)
{
	const struct app *app = process->app;
	struct stage *stage = process->stages[index];
	uint64_t now_ns = process->frame_state.pass_ns;
	bool counts = process->grew[index] && strcmp(stage->category, "memory") != 0;
	bool over = counts && growth > stage->settings.rss_growth_limit;
	process->grew[index] = true;
	stage->rss_seen = true;
	if (over && growth > stage->rss_over_max) {
		stage->rss_over_max = growth;
	}
	if (over && !stage->rss_over &&
		(stage->rss_logged_ns == 0 ||
			now_ns > stage->rss_logged_ns + RSS_LOG_INTERVAL_NS) &&
		apps_may_log(apps, app->uid, TIMELINE_WARNING, now_ns)) {
		stage->rss_logged_ns = now_ns;
		timeline_add(apps->timeline, end_ns, TIMELINE_APP, TIMELINE_WARNING, app->name,
			"High memory usage in %s: %.1fMB", stage->name, (double)growth / (1 << 20));
	}
	stage->rss_over = over;
}

bool app_on_deadline(struct apps *apps, struct app_process *process, uint32_t slot,
	const struct proto_record *record)
{
	(void)slot;
	struct stage *stage = app_stage_of(apps, process, record->stage);
	if (stage) {
		stage_set_deadline(stage, record->value);
	}
	return stage != NULL;
}

void apps_set_throttle_times(struct apps *apps, const struct throttle_times *times)
{
	apps->throttle_times = times;
}

void apps_configure(struct apps *apps, const struct apps_config *config)
{
	apps->config = *config;
	for (size_t a = 0; a < apps->count; a++) {
		struct app *app = apps->app[a];
		for (size_t i = 0; i < app->stages; i++) {
			configure(apps, app, app->stage[i]);
		}
		if (app->frames) {
			app_configure_frames(apps, app);
		}
	}
}
