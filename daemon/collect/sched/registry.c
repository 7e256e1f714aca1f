/* SPDX-License-Identifier: Apache-2.0 */
/* registry.c: lists all collectors, sorted by name, and finds one. */
#include "daemon/collect/sched/registry.h"

#include <string.h>

const struct collector_ops *const collectors[] = {
#define COLLECTOR(name) &collector_##name,
#include "daemon/collect/collectors.h"
#undef COLLECTOR
	NULL,
};

const char *source_option(const struct source_options *options, const char *key)
{
	for (size_t i = 0; options && i < options->keys; i++) {
		if (strcmp(options->key[i].key, key) == 0) {
			return options->key[i].value;
		}
	}
	return "";
}

const struct collector_ops *collector_find(const char *name)
{
	for (size_t i = 0; collectors[i]; i++) {
		if (strcmp(collectors[i]->name, name) == 0) {
			return collectors[i];
		}
	}
	return NULL;
}
