/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rules.h: declares alert rules as plain data, names their fields, and selects the rules that may
 * match a metric. Globs are filtered by their first segment and their number of segments, so a new
 * metric is compared with few of them. One commit does a bounded part of this work: with
 * METRICS_MAX new metrics and ALERT_RULES_MAX rules that may all match every one of them, the last
 * metric is evaluated from the 37th commit of its source on; when the globs begin with plain
 * segments that differ, from the second.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/name.h"

enum { ALERT_RULES_MAX = 128, ALERT_TEXT = 256 };

enum alert_kind { ALERT_ABOVE, ALERT_BELOW, ALERT_EQUALS, ALERT_ABSENT, ALERT_SLOPE };
enum alert_severity { ALERT_INFO, ALERT_WARNING, ALERT_CRITICAL };

struct alert_rule {
	char name[PROTO_NAME_SIZE];
	char metric[PROTO_PATH_SIZE]; /* glob */
	enum alert_kind kind;
	double threshold; /* unused for absent */
	double critical;  /* second threshold -> severity critical; NAN = none */
	double clear;	  /* value at which it clears; NAN = the threshold itself */
	uint64_t for_ns, clear_for_ns;
	uint64_t over_ns;	      /* of slope: the window */
	uint64_t max_per_hour;	      /* notifications of an instance; 0 = no limit */
	enum alert_severity severity; /* at the first threshold */
	bool enabled;
	bool configured; /* has a section in the configuration; no part of its definition */
	/* {metric} {value} {threshold} {instance} {unit}; "" = standard */
	char message[ALERT_TEXT];
};

const char *alert_kind_name(enum alert_kind kind);	       /* as in the configuration */
const char *alert_severity_name(enum alert_severity severity); /* info warning critical */
/* -EINVAL. A kind is parsed only when it has a threshold: absent is not. */
int alert_kind_parse(const char *text, enum alert_kind *ret);
int alert_severity_parse(const char *text, enum alert_severity *ret);

/* Whether they do the same; where they are configured does not count. */
bool alert_rule_equal(const struct alert_rule *a, const struct alert_rule *b);

/* Work of one commit, in globs compared: a metric costs 1 plus its globs, a new instance 128. */
enum { ALERT_WORK_COMMIT = 8192, ALERT_WORK_INSTANCE = 128 };

enum { ALERT_MATCH_BUCKETS = 64, ALERT_MATCH_WORDS = ALERT_RULES_MAX / 64 };

/* A bit for each rule, in the rules' order. */
struct alert_rule_set {
	uint64_t bit[ALERT_MATCH_WORDS];
};

struct alert_match {
	struct alert_rule_set first[ALERT_MATCH_BUCKETS];     /* by hash of the first segment */
	struct alert_rule_set last[ALERT_MATCH_BUCKETS];      /* and of the last one */
	struct alert_rule_set depth[PROTO_GLOB_SEGMENTS + 2]; /* by number of segments */
};

/* Indexes the rules that are enabled. */
void alert_match_set(struct alert_match *match, const struct alert_rule *rules, size_t count);
/* The rules whose glob is worth a comparison with the name. */
struct alert_rule_set alert_match_find(const struct alert_match *match, const char *name);
