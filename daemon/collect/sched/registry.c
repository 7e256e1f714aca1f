/* SPDX-License-Identifier: Apache-2.0 */
/* registry.c: lists all collectors, sorted by name, and has what all of them use. */
#include "daemon/collect/sched/registry.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/util/sysops.h"

const struct collector_ops *const collectors[] = {
#define COLLECTOR(name) &collector_##name,
#include "daemon/collect/collectors.h"
#undef COLLECTOR
	NULL,
};

int collector_fail(const struct collector_context *ctx, int error, const char *format, ...)
{
	va_list ap;
	va_start(ap, format);
	vsnprintf(ctx->reason, SOURCE_REASON_SIZE, format, ap);
	va_end(ap);
	return error;
}

void *collector_state(const struct collector_ops *ops)
{
	return mem_zalloc(ops->state_size);
}

void collector_free(const struct collector_ops *ops, void *state)
{
	if (state && ops->close) {
		ops->close(state);
	}
	free(state);
}

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
