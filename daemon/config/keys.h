/* The table of keys: which sections there are, what each key takes and where it goes. */
#pragma once

#include "daemon/config/config.h"

enum config_type {
	CONFIG_BOOL,
	CONFIG_DURATION,
	CONFIG_SIZE,
	CONFIG_COUNT,
	CONFIG_NUMBER,
	CONFIG_TEXT,
	CONFIG_SPECIAL, /* the setter reads it */
};

/* instance: struct config, or the struct source_options, watch, alert_rule, stage_settings,
 * frames_settings, app_rules of the section. */
typedef int config_setter(void *instance, const char *key, const char *value);

struct config_key {
	const char *name;
	enum config_type type;
	size_t offset;
	size_t size;	   /* of a text */
	uint64_t min, max; /* of a duration (ns), size or count */
	const char *expected;
	config_setter *set;
	bool kind; /* an alert's kind: one of them must be given */
};

struct config_section {
	const char *name;
	bool instances; /* [name INSTANCE] */
	const struct config_key *keys;
	size_t count;
};

extern const struct config_section config_sections[];
extern const size_t config_section_count;

/* A key whose setter reads it; what = what it takes. */
#define CONFIG_SPECIAL_KEY(key, what, setter)                                        \
	{                                                                            \
		.name = key, .type = CONFIG_SPECIAL, .expected = what, .set = setter \
	}

/* Of [alert NAME], in config_alerts.c; its built-in rules, a new one's defaults, and whether all
 * rules are whole: 0, or -EINVAL with what is wrong. */
extern const struct config_key config_alert_keys[15];
void config_alert_defaults(struct config *config);
struct alert_rule config_alert_plain(const char *name);
int config_alerts_check(const struct config *config, char *error, size_t size);

/* Of [recorder], in config_recorder.c. */
extern const struct config_key config_recorder_keys[7];

/* Of [stage APP/STAGE], [frame APP] and [app APP], in config_apps.c. */
extern const struct config_key config_stage_keys[5];
extern const struct config_key config_frame_keys[3];
extern const struct config_key config_app_keys[2];
