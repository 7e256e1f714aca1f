/* SPDX-License-Identifier: Apache-2.0 */
/* topics.h: makes topic names: <prefix>/<id>/… Every segment passes the name rule here, so whatever
 * an app, a rule or a configuration is called, a topic never holds '+', '#', a control byte or a
 * '/' that is not ours. An instance (segments joined with ':') stays one topic level. */
#pragma once

enum { TOPICS_BASE = 160, TOPIC_SIZE = 512 };

struct topics {
	char base[TOPICS_BASE]; /* "edgeprof/<id>" */
	char id[64];		/* [A-Za-z0-9_-], never empty */
};

/* prefix may have several levels. An empty device_id takes the host name, an empty prefix
 * "edgeprof". */
void topics_init(
	struct topics *topics, const char *prefix, const char *device_id, const char *hostname);

/* leaf: "status", "info", "summary", "event/alert". */
void topic_plain(const struct topics *topics, const char *leaf, char ret[TOPIC_SIZE]);
void topic_stage(
	const struct topics *topics, const char *app, const char *stage, char ret[TOPIC_SIZE]);
void topic_diagnosis(const struct topics *topics, const char *app, char ret[TOPIC_SIZE]);
void topic_alert(
	const struct topics *topics, const char *rule, const char *instance, char ret[TOPIC_SIZE]);
