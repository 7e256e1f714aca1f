/* What the operator says about an app: whose its name is, and how long it may take to come back. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct apps;

#define APP_RESTART_WITHIN_NS UINT64_C(30000000000)

/* Zeroed = nothing said. */
struct app_rules {
	bool reserved; /* for the user */
	uid_t user;
	bool has_restart_within;
	uint64_t restart_within_ns; /* after its death it is expected back */
};

/* The rules of an app; NULL = none. */
typedef const struct app_rules *app_rules_lookup(void *ctx, const char *app);
/* Asked for each app that attaches, and at each sample. NULL: no rules any more. */
void apps_configure_rules(struct apps *apps, app_rules_lookup *lookup, void *ctx);
