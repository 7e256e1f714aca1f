/* SPDX-License-Identifier: Apache-2.0 */
/* set.c: stores one pair of the configuration: finds section, instance and key, and reads the
 * value. */
#include "daemon/config/private.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "daemon/util/parse.h"

static const uint64_t MS = 1000000u;
static const uint64_t S = 1000000000u;

int config_refuse(struct text *error, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	text_vadd(error, format, arguments);
	va_end(arguments);
	return -EINVAL;
}

void *config_list_find(const struct config_list *list, const char *section, const char *name,
	bool *added, struct text *error)
{
	char *entry = list->entries;
	*added = false;
	if (!proto_name_valid(name)) {
		config_refuse(error,
			"invalid name of a section; expected [%s NAME] with 1 to 48 of A-Z a-z 0-9 "
			"_ . -",
			section);
		return NULL;
	}
	for (size_t i = 0; i < *list->count; i++, entry += list->entry_size) {
		if (strcmp(entry + list->name_offset, name) == 0) {
			return entry;
		}
	}
	if (*list->count == list->max) {
		config_refuse(error, "too many [%s …] sections", section);
		return NULL;
	}
	++*list->count;
	memset(entry, 0, list->entry_size);
	memcpy(entry + list->name_offset, name, strlen(name) + 1);
	*added = true;
	return entry;
}

static int refuse_range(const struct config_key *key, struct text *error)
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
	return config_refuse(error, "out of range; expected %.0f%s to %.0f%s",
		(double)key->min / scale, unit, (double)key->max / scale, unit);
}

/* What each type takes, and the bytes of its member. */
static const struct {
	const char *taken;
	size_t size;
} types[] = {
	[CONFIG_BOOL] = {"yes or no", sizeof(bool)},
	[CONFIG_DURATION] = {"a duration such as 500ms, 5s, 10min, 24h", sizeof(uint64_t)},
	[CONFIG_SIZE] = {"a size such as 64K, 16M", sizeof(uint64_t)},
	[CONFIG_COUNT] = {"a whole number", sizeof(uint64_t)},
	[CONFIG_COUNT32] = {"a whole number", sizeof(uint32_t)},
	[CONFIG_NUMBER] = {"a number", sizeof(double)},
	[CONFIG_TEXT] = {NULL, 0},
	[CONFIG_SPECIAL] = {NULL, 0},
};

/* 0, -EINVAL: not of the type; -ERANGE. */
static int read_value(const struct config_key *key, void *instance, const char *value)
{
	char *field = (char *)instance + key->offset;
	uint64_t number = 0;
	double real;
	int r = 0;
	switch (key->type) {
	case CONFIG_BOOL:
		return parse_bool(value, (bool *)field);
	case CONFIG_NUMBER:
		r = parse_double(value, &real);
		if (r < 0 ||
			(key->max > 0 && !(real >= (double)key->min && real <= (double)key->max))) {
			return -EINVAL;
		}
		memcpy(field, &real, sizeof(real));
		return 0;
	case CONFIG_SPECIAL:
		return key->set(instance, value);
	case CONFIG_TEXT:
		if (strlen(value) >= key->size || (key->valid && !key->valid(value))) {
			return -EINVAL;
		}
		memcpy(field, value, strlen(value) + 1);
		return 0;
	case CONFIG_DURATION:
		r = parse_duration_ns(value, &number);
		break;
	case CONFIG_SIZE:
		if (key->automatic && strcmp(value, "auto") == 0) {
			memset(field, 0, sizeof(number));
			return 0;
		}
		r = parse_size(value, &number);
		break;
	case CONFIG_COUNT:
	case CONFIG_COUNT32:
		r = parse_u64(value, &number);
		break;
	}
	if (r < 0) {
		return -EINVAL;
	}
	if (number < key->min || number > key->max) {
		return -ERANGE;
	}
	if (key->type == CONFIG_COUNT32) {
		const uint32_t small = (uint32_t)number;
		memcpy(field, &small, sizeof(small));
	} else {
		memcpy(field, &number, sizeof(number));
	}
	return 0;
}

static int set_value(
	const struct config_key *key, void *instance, const char *value, struct text *error)
{
	int r = read_value(key, instance, value);
	if (r == 0) {
		return 0;
	}
	if (key->explain) {
		return key->explain(value, error);
	}
	if (key->expected) {
		return config_refuse(error, "expected %s", key->expected);
	}
	if (r == -ERANGE && key->max > 0) {
		return refuse_range(key, error);
	}
	if (key->type == CONFIG_TEXT) {
		return config_refuse(error, "too long; expected at most %d bytes", key->size - 1);
	}
	return config_refuse(error, "expected %s", types[key->type].taken);
}

/* A collector's own key: kept as text, the collector reads it. -ENOENT: it has no such key. */
static int set_source_key(
	struct source_options *source, const char *key, const char *value, struct text *error)
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
			return config_refuse(error, "too long");
		}
		const char *why = ops->refuse ? ops->refuse(key, value) : NULL;
		if (why) {
			return config_refuse(error, "%s", why);
		}
		memcpy(source->key[at].key, key, strlen(key) + 1);
		memcpy(source->key[at].value, value, strlen(value) + 1);
		source->keys = at == source->keys ? at + 1 : source->keys;
		return 0;
	}
	return -ENOENT;
}

static int unknown_key(
	const struct config_section *section, const void *instance, struct text *error)
{
	text_add(error, "unknown key; expected one of");
	for (size_t i = 0; i < section->count; i++) {
		text_add(error, " %s", section->keys[i].name);
	}
	if (strcmp(section->name, "source") == 0) {
		const struct source_options *source = instance;
		const char *const *keys = collector_find(source->name)->config_keys;
		for (size_t i = 0; keys && keys[i]; i++) {
			text_add(error, " %s", keys[i]);
		}
	}
	return -EINVAL;
}

static int unknown_section(struct text *error)
{
	text_add(error, "unknown section; expected one of");
	for (size_t i = 0; i < config_section_count; i++) {
		text_add(error, " [%s%s]", config_sections[i].name,
			config_sections[i].find ? " NAME" : "");
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

/* After a key of an alert was set from what `old` was. A new limit moves the clear value of a
 * built-in rule, at its distance, unless clear is configured. */
static int settle_alert(struct config *config, const struct config_key *key,
	struct alert_rule *rule, const struct alert_rule *old, struct text *error)
{
	size_t index = (size_t)(rule - config->alert);
	rule->configured = true;
	if (strcmp(key->name, "clear") == 0) {
		config->alert_has_clear[index] = true;
	}
	if (!key->kind) {
		return 0;
	}
	if (alert_kind_parse(key->name, &rule->kind) < 0) {
		rule->kind = ALERT_ABSENT;
	}
	/* A drop-in may replace the limit by one of another kind. */
	if (config->alert_kind_file[index] == config->files + 1 && rule->kind != old->kind) {
		return config_refuse(error, "a rule has one limit, and this one has %s already",
			alert_kind_name(old->kind));
	}
	config->alert_kind_file[index] = config->files + 1;
	config->alert_has_kind[index] = true;
	if (!config->alert_has_clear[index]) {
		rule->clear = rule->kind == old->kind
				      ? old->clear + rule->threshold - old->threshold
				      : NAN;
	}
	return 0;
}

static int set_key(struct config *config, const struct config_section *section, void *instance,
	const char *name, const char *value, struct text *error)
{
	for (size_t i = 0; i < section->count; i++) {
		const struct config_key *key = &section->keys[i];
		if (strcmp(key->name, name) != 0) {
			continue;
		}
		bool alert = section->find == config_alert_find;
		struct alert_rule old =
			alert ? *(struct alert_rule *)instance : (struct alert_rule){.name = ""};
		int r = set_value(key, instance, value, error);
		if (r == 0 && alert) {
			r = settle_alert(config, key, instance, &old, error);
		}
		return r;
	}
	int r = strcmp(section->name, "source") == 0 ? set_source_key(instance, name, value, error)
						     : -ENOENT;
	return r == -ENOENT ? unknown_key(section, instance, error) : r;
}

int config_set(struct config *config, const char *section_name, const char *key, const char *value,
	char *error, size_t size)
{
	struct text text = text_in(error, size);
	if (section_name[0] == '\0') {
		return config_refuse(
			&text, "stands before any section; expected [daemon] or another first");
	}
	size_t word = strcspn(section_name, " \t");
	const char *name = section_name + word + strspn(section_name + word, " \t");
	const struct config_section *section = find_section(section_name, word);
	if (!section || (!section->find && *name)) {
		return unknown_section(&text);
	}
	void *instance = section->find ? section->find(config, name, &text) : config;
	return instance ? set_key(config, section, instance, key, value, &text) : -EINVAL;
}

static bool same_value(const struct config_key *key, const struct config *a, const struct config *b)
{
	const char *one = (const char *)a + key->offset, *other = (const char *)b + key->offset;
	return key->type == CONFIG_TEXT ? strcmp(one, other) == 0
					: memcmp(one, other, types[key->type].size) == 0;
}

size_t config_restart_keys(
	const struct config *old, const struct config *new, char *text, size_t size)
{
	struct text list = text_in(text, size);
	size_t count = 0;
	for (size_t i = 0; i < config_section_count; i++) {
		const struct config_section *section = &config_sections[i];
		for (size_t k = 0; k < section->count; k++) {
			const struct config_key *key = &section->keys[k];
			if (key->restart && !same_value(key, old, new)) {
				text_join(&list, ", ", "[%s] %s", section->name, key->name);
				count++;
			}
		}
	}
	return count;
}
