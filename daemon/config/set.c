/* One pair of the configuration: finds section, instance and key, and stores the value. */
#include "daemon/config/keys.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "daemon/core/alerts/actions.h"
#include "daemon/util/parse.h"

static const uint64_t MS = 1000000u;
static const uint64_t S = 1000000000u;

static int out_of_range(const struct config_key *key, uint64_t value, char *error, size_t size)
{
	double scale = 1;
	const char *unit = "";
	if (key->type == CONFIG_DURATION) {
		bool small = key->min < S && key->min > 0;
		scale = small ? (double)MS : (double)S;
		unit = small ? "ms" : "s";
	} else if (key->type == CONFIG_SIZE) {
		scale = 1024;
		unit = "K";
	}
	(void)value;
	snprintf(error, size, "out of range; expected %.0f%s to %.0f%s", (double)key->min / scale,
		unit, (double)key->max / scale, unit);
	return -EINVAL;
}

static int set_value(
	const struct config_key *key, void *instance, const char *value, char *error, size_t size)
{
	char *field = (char *)instance + key->offset;
	uint64_t number = 0;
	double real;
	bool on;
	switch (key->type) {
	case CONFIG_BOOL:
		if (parse_bool(value, &on) < 0) {
			snprintf(error, size, "expected yes or no");
			return -EINVAL;
		}
		memcpy(field, &on, sizeof(on));
		return 0;
	case CONFIG_DURATION:
		if (parse_duration_ns(value, &number) < 0) {
			snprintf(error, size, "expected a duration such as 500ms, 5s, 10min, 24h");
			return -EINVAL;
		}
		break;
	case CONFIG_SIZE:
		if (parse_size(value, &number) < 0) {
			snprintf(error, size, "expected a size such as 64K, 16M");
			return -EINVAL;
		}
		break;
	case CONFIG_COUNT:
		if (parse_u64(value, &number) < 0) {
			snprintf(error, size, "expected a whole number");
			return -EINVAL;
		}
		break;
	case CONFIG_NUMBER:
		if (parse_double(value, &real) < 0) {
			snprintf(error, size, "expected a number");
			return -EINVAL;
		}
		memcpy(field, &real, sizeof(real));
		return 0;
	case CONFIG_TEXT:
		if (strlen(value) >= key->size) {
			snprintf(
				error, size, "too long; expected at most %zu bytes", key->size - 1);
			return -EINVAL;
		}
		memcpy(field, value, strlen(value) + 1);
		return 0;
	case CONFIG_SPECIAL:
		if (key->set(instance, key->name, value) < 0) {
			snprintf(error, size, "expected %s", key->expected);
			return -EINVAL;
		}
		return 0;
	}
	if (number < key->min || number > key->max) {
		return out_of_range(key, number, error, size);
	}
	memcpy(field, &number, sizeof(number));
	return 0;
}

static bool is_of_apps(const char *section)
{
	return strcmp(section, "stage") == 0 || strcmp(section, "frame") == 0 ||
	       strcmp(section, "app") == 0;
}

/* The settings of [stage APP/STAGE], [frame APP] or [app APP]. */
static void *find_settings(
	struct config *config, const char *section, const char *glob, char *error, size_t size)
{
	struct stage_settings *of_stage = NULL;
	struct frames_settings *of_frames = NULL;
	struct app_rules *of_app = NULL;
	int r = section[0] == 's'   ? app_settings_stage(&config->apps, glob, &of_stage)
		: section[0] == 'f' ? app_settings_frame(&config->apps, glob, &of_frames)
				    : app_settings_app(&config->apps, glob, &of_app);
	if (r == -ENOSPC) {
		snprintf(error, size, "too many [%s …] sections; expected at most %d", section,
			APP_SETTINGS_MAX);
	} else if (r < 0) {
		snprintf(error, size,
			"bad name of a section; expected [%s %s] with names or globs of A-Z a-z "
			"0-9 _ . - * ?",
			section, section[0] == 's' ? "APP/STAGE" : "APP");
	}
	return r < 0	  ? NULL
	       : of_stage ? (void *)of_stage
	       : of_app	  ? (void *)of_app
			  : (void *)of_frames;
}

/* The entry of an instance section, made when it is new. NULL with error when there is no room. */
static void *find_instance(struct config *config, const struct config_section *section,
	const char *name, char *error, size_t size)
{
	if (strcmp(section->name, "source") == 0) {
		for (size_t i = 0; i < config->sources; i++) {
			if (strcmp(config->source[i].name, name) == 0) {
				return &config->source[i];
			}
		}
		if (!collector_find(name)) {
			size_t used =
				(size_t)snprintf(error, size, "unknown source; expected one of");
			for (size_t i = 0; collectors[i] && used < size; i++) {
				used += (size_t)snprintf(
					error + used, size - used, " %s", collectors[i]->name);
			}
			return NULL;
		}
		if (config->sources < CONFIG_SOURCES_MAX) {
			struct source_options *added = &config->source[config->sources++];
			*added = (struct source_options){.enabled = true};
			memcpy(added->name, name, strlen(name) + 1);
			return added;
		}
	} else if (strcmp(section->name, "process") == 0) {
		for (size_t i = 0; i < config->processes; i++) {
			if (strcmp(config->process[i].name, name) == 0) {
				return &config->process[i];
			}
		}
		if (config->processes < CONFIG_PROCESSES_MAX) {
			struct watch *added = &config->process[config->processes++];
			*added = (struct watch){.kind = WATCH_PATTERN};
			memcpy(added->name, name, strlen(name) + 1);
			return added;
		}
	} else {
		for (size_t i = 0; i < config->alerts; i++) {
			if (strcmp(config->alert[i].name, name) == 0) {
				return &config->alert[i];
			}
		}
		if (strcmp(name, ALERT_TEST_RULE) == 0) {
			snprintf(error, size,
				"the name \"%s\" is that of edgeprofctl test-alert; expected "
				"another one",
				name);
			return NULL;
		}
		if (config->alerts < ALERT_RULES_MAX) {
			struct alert_rule *added = &config->alert[config->alerts++];
			*added = config_alert_plain(name);
			return added;
		}
	}
	snprintf(error, size, "too many [%s …] sections", section->name);
	return NULL;
}

/* A collector's own key: kept as text, the collector reads it. */
static int set_source_key(
	struct source_options *source, const char *key, const char *value, char *error, size_t size)
{
	const struct collector_ops *ops = collector_find(source->name);
	for (size_t i = 0; ops->config_keys && ops->config_keys[i]; i++) {
		if (strcmp(ops->config_keys[i], key) != 0) {
			continue;
		}
		size_t at = 0;
		while (at < source->keys && strcmp(source->key[at].key, key) != 0) {
			at++;
		}
		if (at == COLLECTOR_KEYS || strlen(key) >= sizeof(source->key[at].key) ||
			strlen(value) >= sizeof(source->key[at].value)) {
			snprintf(error, size, "too long");
			return -EINVAL;
		}
		const char *why = ops->refuse ? ops->refuse(key, value) : NULL;
		if (why) {
			snprintf(error, size, "%s", why);
			return -EINVAL;
		}
		memcpy(source->key[at].key, key, strlen(key) + 1);
		memcpy(source->key[at].value, value, strlen(value) + 1);
		source->keys = at == source->keys ? at + 1 : source->keys;
		return 0;
	}
	return -ENOENT;
}

static int unknown_key(
	const struct config_section *section, const void *instance, char *error, size_t size)
{
	size_t used = (size_t)snprintf(error, size, "unknown key; expected one of");
	for (size_t i = 0; i < section->count && used < size; i++) {
		used += (size_t)snprintf(error + used, size - used, " %s", section->keys[i].name);
	}
	if (strcmp(section->name, "source") == 0 && instance) {
		const struct collector_ops *ops =
			collector_find(((const struct source_options *)instance)->name);
		for (size_t i = 0; ops->config_keys && ops->config_keys[i] && used < size; i++) {
			used += (size_t)snprintf(
				error + used, size - used, " %s", ops->config_keys[i]);
		}
	}
	return -EINVAL;
}

static int unknown_section(char *error, size_t size)
{
	size_t used = (size_t)snprintf(error, size, "unknown section; expected one of");
	for (size_t i = 0; i < config_section_count && used < size; i++) {
		used += (size_t)snprintf(error + used, size - used, " [%s%s]",
			config_sections[i].name, config_sections[i].instances ? " NAME" : "");
	}
	return -EINVAL;
}

static const struct config_section *find_section(const char *name, size_t length)
{
	for (size_t i = 0; i < config_section_count; i++) {
		if (strlen(config_sections[i].name) == length &&
			memcmp(config_sections[i].name, name, length) == 0) {
			return &config_sections[i];
		}
	}
	return NULL;
}

/* After a key of an alert was set from what `old` was. A new limit takes the clear value of a
 * built-in rule along, at its distance, until somebody sets clear. */
static void settle_alert(struct config *config, const struct config_key *key,
	struct alert_rule *rule, const struct alert_rule *old)
{
	size_t index = (size_t)(rule - config->alert);
	rule->configured = true;
	if (strcmp(key->name, "clear") == 0) {
		config->alert_has_clear[index] = true;
	}
	if (!key->kind) {
		return;
	}
	config->alert_has_kind[index] = true;
	if (!config->alert_has_clear[index]) {
		rule->clear = rule->kind == old->kind
				      ? old->clear + rule->threshold - old->threshold
				      : NAN;
	}
}

static int set_key(struct config *config, const struct config_section *section, void *instance,
	const char *name, const char *value, char *error, size_t size)
{
	for (size_t i = 0; i < section->count; i++) {
		const struct config_key *key = &section->keys[i];
		if (strcmp(key->name, name) != 0) {
			continue;
		}
		bool alert = strcmp(section->name, "alert") == 0;
		struct alert_rule old =
			alert ? *(struct alert_rule *)instance : (struct alert_rule){.name = ""};
		int r = set_value(key, instance, value, error, size);
		if (r == 0 && alert) {
			settle_alert(config, key, instance, &old);
		}
		return r;
	}
	int r = -ENOENT;
	if (strcmp(section->name, "source") == 0) {
		r = set_source_key(instance, name, value, error, size);
	}
	return r == -ENOENT ? unknown_key(section, instance, error, size) : r;
}

int config_set(struct config *config, const char *section_name, const char *key, const char *value,
	char *error, size_t size)
{
	if (section_name[0] == '\0') {
		snprintf(error, size,
			"stands before any section; expected [daemon] or another first");
		return -EINVAL;
	}
	size_t word = strcspn(section_name, " \t");
	const char *name = section_name + word + strspn(section_name + word, " \t");
	const struct config_section *section = find_section(section_name, word);
	if (!section || (!section->instances && *name)) {
		return unknown_section(error, size);
	}
	void *instance = config;
	if (is_of_apps(section->name)) {
		instance = find_settings(config, section->name, name, error, size);
		if (!instance) {
			return -EINVAL;
		}
	} else if (section->instances) {
		if (!proto_name_valid(name)) {
			snprintf(error, size,
				"bad name of a section; expected [%s NAME] with 1 to 48 of A-Z a-z "
				"0-9 _ . -",
				section->name);
			return -EINVAL;
		}
		instance = find_instance(config, section, name, error, size);
		if (!instance) {
			return -EINVAL;
		}
	}
	return set_key(config, section, instance, key, value, error, size);
}

bool config_key_at(size_t index, const char **section, const char **key)
{
	for (size_t i = 0; i < config_section_count; i++) {
		if (index < config_sections[i].count) {
			*section = config_sections[i].name;
			*key = config_sections[i].keys[index].name;
			return true;
		}
		index -= config_sections[i].count;
	}
	return false;
}
