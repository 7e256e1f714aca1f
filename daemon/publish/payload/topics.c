/* SPDX-License-Identifier: Apache-2.0 */
/* topics.c: makes the names of topics. The name rule itself is in proto/name.h. */
#include "daemon/publish/payload/topics.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "proto/name.h"

/* Cleans each piece of text between separators and joins them with the separator; at most size - 1
 * bytes, whole pieces only. skip_empty: empty pieces are skipped, else they become "_".
 */
static void clean_joined(const char *text, char separator, bool skip_empty, char *ret, size_t size)
{
	size_t used = 0;
	ret[0] = '\0';
	for (const char *piece = text; piece;) {
		const char *end = strchr(piece, separator);
		size_t length = end ? (size_t)(end - piece) : strlen(piece);
		if (length > 0 || !skip_empty) {
			char clean[PROTO_NAME_SIZE];
			proto_name_clean(piece, length, clean);
			size_t need = strlen(clean) + (used > 0);
			if (used + need >= size) {
				return;
			}
			if (used > 0) {
				ret[used++] = separator;
			}
			memcpy(ret + used, clean, strlen(clean) + 1);
			used += strlen(clean);
		}
		piece = end ? end + 1 : NULL;
	}
}

void topics_init(
	struct topics *topics, const char *prefix, const char *device_id, const char *hostname)
{
	const char *id = device_id[0] ? device_id : hostname;
	char clean[PROTO_NAME_SIZE];
	proto_name_clean(id, strlen(id), clean);
	for (char *byte = clean; *byte; byte++) {
		if (*byte == '.') {
			*byte = '_'; /* fine in a name, not in an id: Home Assistant refuses it */
		}
	}
	snprintf(topics->id, sizeof(topics->id), "%s", clean);
	char base[TOPICS_BASE - PROTO_NAME_SIZE];
	clean_joined(prefix, '/', true, base, sizeof(base));
	snprintf(topics->base, sizeof(topics->base), "%s/%s", base[0] ? base : "edgeprof", clean);
}

void topic_plain(const struct topics *topics, const char *leaf, char ret[TOPIC_SIZE])
{
	snprintf(ret, TOPIC_SIZE, "%s/%s", topics->base, leaf);
}

void topic_stage(
	const struct topics *topics, const char *app, const char *stage, char ret[TOPIC_SIZE])
{
	char clean_app[PROTO_NAME_SIZE], clean_stage[PROTO_NAME_SIZE];
	proto_name_clean(app, strlen(app), clean_app);
	proto_name_clean(stage, strlen(stage), clean_stage);
	snprintf(ret, TOPIC_SIZE, "%s/stage/%s/%s", topics->base, clean_app, clean_stage);
}

void topic_diagnosis(const struct topics *topics, const char *app, char ret[TOPIC_SIZE])
{
	char clean[PROTO_NAME_SIZE];
	proto_name_clean(app, strlen(app), clean);
	snprintf(ret, TOPIC_SIZE, "%s/diagnosis/%s", topics->base, clean);
}

void topic_alert(
	const struct topics *topics, const char *rule, const char *instance, char ret[TOPIC_SIZE])
{
	char clean_rule[PROTO_NAME_SIZE], clean_instance[PROTO_PATH_SIZE];
	proto_name_clean(rule, strlen(rule), clean_rule);
	clean_joined(instance, ':', false, clean_instance, sizeof(clean_instance));
	snprintf(ret, TOPIC_SIZE, "%s/alert/%s/%s", topics->base, clean_rule, clean_instance);
}
