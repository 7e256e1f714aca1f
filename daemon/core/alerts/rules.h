/* The set of alert rules as plain data: copies, comparison, and the words of their fields. */
#pragma once

#include <stddef.h>

#include "daemon/core/alerts/alerts.h"

/* Copies the rules, each its own allocation. -ENOSPC over ALERT_RULES_MAX, -ENOMEM. */
int alert_rules_copy(const struct alert_rule *rules, size_t count, struct alert_rule ***ret);

/* Replaces each fresh rule that equals an old one by the old one, which leaves NULL in its place:
 * what points to an unchanged rule stays right. */
void alert_rules_keep(
	struct alert_rule **fresh, size_t count, struct alert_rule **old, size_t olds);

void alert_rules_free(struct alert_rule **rules, size_t count);
