/* What others ask about apps: counts, sums and names, none of which change anything. */
#include <stdio.h>

#include "daemon/core/apps/apps_private.h"

size_t apps_of_uid(const struct apps *apps, uid_t uid)
{
	size_t count = 0;
	for (size_t i = 0; i < apps->count; i++) {
		count += apps->app[i]->uid == uid && apps->app[i]->processes > 0;
	}
	return count;
}

size_t apps_running(const struct apps *apps)
{
	size_t count = 0;
	for (size_t i = 0; i < apps->count; i++) {
		count += apps->app[i]->processes > 0;
	}
	return count;
}

void apps_note_other(struct apps *apps, const struct app *app, const char *stage)
{
	size_t place = apps->other_names++ % APP_OTHER_NAMES;
	snprintf(apps->other_name[place], sizeof(apps->other_name[place]), "%s/%s", app->name,
		stage);
}

const char *apps_other_name(const struct apps *apps, size_t index)
{
	if (index >= APP_OTHER_NAMES || index >= apps->other_names) {
		return NULL;
	}
	return apps->other_name[(apps->other_names - 1 - index) % APP_OTHER_NAMES];
}

uint64_t apps_untold(const struct apps *apps)
{
	return apps->told.untold;
}

size_t apps_stages(const struct apps *apps)
{
	return apps->stages;
}

uint64_t apps_stages_refused(const struct apps *apps)
{
	return apps->stages_refused;
}

void app_accounting(const struct app *app, struct app_accounting *ret)
{
	*ret = app->past;
	for (size_t i = 0; i < app->processes; i++) {
		app_accounting_add(ret, &app->process[i]->accounting);
	}
}

uint64_t app_marks_refused(const struct app *app)
{
	uint64_t refused = app->marks_refused;
	for (size_t i = 0; i < app->processes; i++) {
		refused += app->process[i]->marks_refused;
	}
	return refused;
}
