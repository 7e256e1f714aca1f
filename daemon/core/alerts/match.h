/*
 * Which rules may match a name: by the first segment of their globs and by the number of segments,
 * so a new metric is compared with few globs. And how much of this work one commit does: with
 * METRICS_MAX new metrics and ALERT_RULES_MAX rules that may all match every one of them, the
 * last metric is judged from the 33rd commit of its source on; when the globs begin with plain
 * segments that differ, from the second.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "daemon/core/alerts/alerts.h"

/* Work of one commit, in globs compared: a metric costs 1 beside its globs, a new instance 8. */
enum { ALERT_WORK_COMMIT = 16384, ALERT_WORK_INSTANCE = 8 };

enum { ALERT_MATCH_BUCKETS = 64, ALERT_MATCH_WORDS = ALERT_RULES_MAX / 64 };

struct alert_rule_set {
	uint64_t bit[ALERT_MATCH_WORDS];
};

struct alerts_match {
	struct alert_rule_set first[ALERT_MATCH_BUCKETS];     /* by hash of the first segment */
	struct alert_rule_set depth[PROTO_GLOB_SEGMENTS + 2]; /* by number of segments */
};

/* Of the rules that are enabled. */
void alerts_match_set(struct alerts_match *match, struct alert_rule *const *rules, size_t count);
/* Those whose glob is worth a comparison with the name. */
struct alert_rule_set alerts_match_find(const struct alerts_match *match, const char *name);
