/*
 * Believable records become events of their app: what a record holds of its process, the number of
 * a declaration, is put in terms that last longer than the process.
 */
#include "daemon/core/apps/app_events.h"

#include <string.h>

uint16_t app_event_name(struct app_process *process, uint32_t index)
{
	if (index >= PROTO_DECLARATIONS || !process->declaration[index]) {
		return EVENTS_NO_NAME;
	}
	uint16_t known = process->tied.name[index];
	if (known > 0) {
		return (uint16_t)(known - 1);
	}
	char name[PROTO_NAME_SIZE];
	const struct proto_declaration *declaration = process->declaration[index];
	const char *text = name;
	if (process->stages[index] && !process->other[index]) {
		text = process->stages[index]->name;
	} else {
		proto_name_clean(
			declaration->name, strnlen(declaration->name, PROTO_NAME_MAX), name);
	}
	uint16_t number = events_name(process->app->log, text);
	process->tied.name[index] = (uint16_t)(number + 1); /* also that it has none */
	return number;
}

bool app_event_open(struct apps *apps, struct app *app)
{
	if (!apps->events) {
		size_t memory = apps->options.events_memory;
		events_create(memory > 0 ? memory : EVENTS_DEFAULT, &apps->events);
	}
	return apps->events && events_open(apps->events, &app->log) == 0;
}

void apps_events_usage(const struct apps *apps, struct events_usage *ret)
{
	if (apps->events) {
		events_usage(apps->events, ret);
		return;
	}
	size_t memory = apps->options.events_memory;
	*ret = (struct events_usage){.bytes = memory > 0 ? memory : EVENTS_DEFAULT};
}

int apps_events_since(const struct apps *apps, size_t count, uint64_t *ret)
{
	*ret = 0;
	return apps->events ? events_since(apps->events, count, ret) : 0;
}
