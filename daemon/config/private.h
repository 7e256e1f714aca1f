/* SPDX-License-Identifier: Apache-2.0 */
/* private.h: declares what the files of the configuration share: the tables of keys: which sections
 * there are, what each key takes and where it goes. */
#pragma once

#include "daemon/config/config.h"
#include "proto/text.h"

enum config_type {
	CONFIG_BOOL,
	CONFIG_DURATION, /* uint64_t, ns */
	CONFIG_SIZE,	 /* uint64_t, bytes */
	CONFIG_COUNT,	 /* uint64_t */
	CONFIG_COUNT32,	 /* uint32_t or int */
	CONFIG_NUMBER,	 /* double */
	CONFIG_TEXT,
	CONFIG_SPECIAL, /* the setter reads it */
};

/* instance: struct config, or the struct of the section's instance. 0, or -EINVAL. */
typedef int config_setter(void *instance, const char *value);

/* About a hundred of these exist, of 64 bytes each. */
struct config_key {
	const char *name;
	enum config_type type : 8;
	unsigned offset : 24;
	uint16_t size;	      /* of a text */
	bool automatic : 1;   /* "auto" is a value of the size: 0 */
	bool restart : 1;     /* takes effect at the next start */
	bool kind : 1;	      /* an alert's kind: one of them must be given */
	uint64_t min, max;    /* of a duration (ns), size, count or number; both 0: any */
	const char *expected; /* NULL: said by the type */
	bool (*valid)(const char *text);
	config_setter *set;
	int (*explain)(
		const char *value, struct text *error); /* why it was refused; NULL: expected */
};

/* Where a section's keys go: the entry of [section NAME], created if it is new. NULL with the
 * reason when there is no room or the name is not valid. */
typedef void *config_finder(struct config *config, const char *name, struct text *error);

struct config_section {
	const char *name;
	const struct config_key *keys;
	size_t count;
	config_finder *find; /* NULL: one section without a name */
};

extern const struct config_section config_sections[];
extern const size_t config_section_count;

/* A key whose setter reads it; what = what it takes. */
#define CONFIG_SPECIAL_KEY(key, what, setter)                                        \
	{                                                                            \
		.name = key, .type = CONFIG_SPECIAL, .expected = what, .set = setter \
	}

/* An array of instances that begin their lives with a name. */
struct config_list {
	void *entries;
	size_t entry_size, name_offset, max;
	size_t *count;
};

/* The entry of this name, or a zeroed one with it (*added), or NULL with the reason. */
void *config_list_find(const struct config_list *list, const char *section, const char *name,
	bool *added, struct text *error);

/* Writes what is wrong. -EINVAL. */
int config_refuse(struct text *error, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* A pair was stored. */
void config_hash_pair(
	struct config *config, const char *section, const char *key, const char *value);

/* Of [alert NAME], in alerts.c; its built-in rules, and whether all rules are complete: 0, or
 * -EINVAL with what is wrong. */
extern const struct config_key config_alert_keys[15];
config_finder config_alert_find;
void config_alert_defaults(struct config *config);
int config_alerts_check(const struct config *config, struct text *error);

/* Of [stage APP/STAGE], [frame APP] and [app APP], in apps.c. */
extern const struct config_key config_stage_keys[5];
extern const struct config_key config_frame_keys[3];
extern const struct config_key config_app_keys[2];
config_finder config_stage_find, config_frame_find, config_app_find;
