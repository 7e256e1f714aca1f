/* Rules by what is cheap to see of a name. A set is a bit for each rule, in the rules' order. */
#include "daemon/core/alerts/match.h"

#include <string.h>

static size_t bucket_of(const char *name)
{
	uint64_t hash = UINT64_C(14695981039346656037);
	for (; *name != '\0' && *name != '/'; name++) {
		hash = (hash ^ (uint8_t)*name) * UINT64_C(1099511628211);
	}
	return (size_t)(hash ^ hash >> 32) % ALERT_MATCH_BUCKETS;
}

/* More than a glob can have count as one more. */
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

static void add_rule(struct alerts_match *match, const char *glob, size_t rule)
{
	const char *last = strrchr(glob, '/');
	const bool rest = strcmp(last ? last + 1 : glob, "**") == 0;
	const size_t depth = depth_of(glob);
	const bool plain = strcspn(glob, "*?") >= strcspn(glob, "/");
	for (size_t i = depth; i <= (rest ? PROTO_GLOB_SEGMENTS + 1 : depth); i++) {
		add(&match->depth[i], rule);
	}
	for (size_t i = 0; i < ALERT_MATCH_BUCKETS; i++) {
		if (!plain || i == bucket_of(glob)) {
			add(&match->first[i], rule);
		}
	}
}

void alerts_match_set(struct alerts_match *match, struct alert_rule *const *rules, size_t count)
{
	memset(match, 0, sizeof(*match));
	for (size_t i = 0; i < count; i++) {
		if (rules[i]->enabled) {
			add_rule(match, rules[i]->metric, i);
		}
	}
}

struct alert_rule_set alerts_match_find(const struct alerts_match *match, const char *name)
{
	struct alert_rule_set set = match->first[bucket_of(name)];
	const struct alert_rule_set *depth = &match->depth[depth_of(name)];
	for (size_t i = 0; i < ALERT_MATCH_WORDS; i++) {
		set.bit[i] &= depth->bit[i];
	}
	return set;
}
