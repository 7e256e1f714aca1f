/* SPDX-License-Identifier: Apache-2.0 */
/* rules.c: names and compares alert rules, and filters them for a metric. */
#include "daemon/core/alerts/rules.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "proto/fnv.h"

static const char *const kind_names[] = {[ALERT_ABOVE] = "above",
	[ALERT_BELOW] = "below",
	[ALERT_EQUALS] = "equals",
	[ALERT_ABSENT] = "absent",
	[ALERT_SLOPE] = "slope_above"};

static const char *const severity_names[] = {
	[ALERT_INFO] = "info", [ALERT_WARNING] = "warning", [ALERT_CRITICAL] = "critical"};

const char *alert_kind_name(enum alert_kind kind)
{
	return kind_names[kind];
}

const char *alert_severity_name(enum alert_severity severity)
{
	return severity_names[severity];
}

int alert_kind_parse(const char *text, enum alert_kind *ret)
{
	for (enum alert_kind kind = ALERT_ABOVE; kind <= ALERT_SLOPE; kind++) {
		if (kind != ALERT_ABSENT && strcmp(text, kind_names[kind]) == 0) {
			*ret = kind;
			return 0;
		}
	}
	return -EINVAL;
}

int alert_severity_parse(const char *text, enum alert_severity *ret)
{
	for (enum alert_severity severity = ALERT_INFO; severity <= ALERT_CRITICAL; severity++) {
		if (strcmp(text, severity_names[severity]) == 0) {
			*ret = severity;
			return 0;
		}
	}
	return -EINVAL;
}

static bool same_number(double a, double b)
{
	return a == b || (isnan(a) && isnan(b));
}

bool alert_rule_equal(const struct alert_rule *a, const struct alert_rule *b)
{
	return strcmp(a->name, b->name) == 0 && strcmp(a->metric, b->metric) == 0 &&
	       a->kind == b->kind && same_number(a->threshold, b->threshold) &&
	       same_number(a->critical, b->critical) && same_number(a->clear, b->clear) &&
	       a->for_ns == b->for_ns && a->clear_for_ns == b->clear_for_ns &&
	       a->over_ns == b->over_ns && a->max_per_hour == b->max_per_hour &&
	       a->severity == b->severity && a->enabled == b->enabled &&
	       strcmp(a->message, b->message) == 0;
}

static const char *last_segment(const char *name)
{
	const char *slash = strrchr(name, '/');
	return slash ? slash + 1 : name;
}

static size_t bucket_of(const char *segment)
{
	const uint64_t hash = fnv64(FNV64_BASIS, segment, strcspn(segment, "/"));
	return (size_t)(hash ^ hash >> 32) % ALERT_MATCH_BUCKETS;
}

/* All numbers of segments above what a glob can have count as one. */
static size_t depth_of(const char *name)
{
	size_t depth = 1;
	for (; (name = strchr(name, '/')) && depth <= PROTO_GLOB_SEGMENTS; name++) {
		depth++;
	}
	return depth;
}

static void add(struct alert_rule_set *set, size_t rule)
{
	set->bit[rule / 64] |= UINT64_C(1) << rule % 64;
}

static void add_segment(struct alert_rule_set *bucket, const char *segment, size_t rule)
{
	const bool plain = strcspn(segment, "*?") >= strcspn(segment, "/");
	for (size_t i = 0; i < ALERT_MATCH_BUCKETS; i++) {
		if (!plain || i == bucket_of(segment)) {
			add(&bucket[i], rule);
		}
	}
}

static void add_rule(struct alert_match *match, const char *glob, size_t rule)
{
	const char *last = last_segment(glob);
	const bool rest = strcmp(last, "**") == 0;
	const size_t depth = depth_of(glob);
	for (size_t i = depth; i <= (rest ? PROTO_GLOB_SEGMENTS + 1 : depth); i++) {
		add(&match->depth[i], rule);
	}
	add_segment(match->first, glob, rule);
	add_segment(match->last, last, rule);
}

void alert_match_set(struct alert_match *match, const struct alert_rule *rules, size_t count)
{
	memset(match, 0, sizeof(*match));
	for (size_t i = 0; i < count; i++) {
		if (rules[i].enabled) {
			add_rule(match, rules[i].metric, i);
		}
	}
}

struct alert_rule_set alert_match_find(const struct alert_match *match, const char *name)
{
	struct alert_rule_set set = match->first[bucket_of(name)];
	const struct alert_rule_set *last = &match->last[bucket_of(last_segment(name))];
	const struct alert_rule_set *depth = &match->depth[depth_of(name)];
	for (size_t i = 0; i < ALERT_MATCH_WORDS; i++) {
		set.bit[i] &= last->bit[i] & depth->bit[i];
	}
	return set;
}
