/* SPDX-License-Identifier: Apache-2.0 */
/* set.c: stores one pair of the configuration: finds section, instance and key, and reads the
 * value. */
#include "daemon/config/private.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "daemon/util/parse.h"
#include "proto/text.h"

static const uint64_t MS = 1000000u;
static const uint64_t S = 1000000000u;

void *config_list_find(const struct config_list *list, const char *name, bool *added)
{
	char *entry = list->entries;
	for (size_t i = 0; i < *list->count; i++, entry += list->entry_size) {
		if (strcmp(entry + list->name_offset, name) == 0) {
			*added = false;
			return entry;
		}
	}
	if (*list->count == list->max) {
		return NULL;
	}
	++*list->count;
	memset(entry, 0, list->entry_size);
	memcpy(entry + list->name_offset, name, strlen(name) + 1);
	*added = true;
	return entry;
}

bool config_name_valid(const char *section, const char *name, char *error, size_t size)
{
	if (proto_name_valid(name)) {
		return true;
	}
	snprintf(error, size,
		"invalid name of a section; expected [%s NAME] with 1 to 48 of A-Z a-z 0-9 _ . -",
		section);
	return false;
}

static void say_range(const struct config_key *key, char *error, size_t size)
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
	snprintf(error, size, "out of range; expected %.0f%s to %.0f%s", (double)key->min / scale,
		unit, (double)key->max / scale, unit);
}

/* What the type takes. */
static void say_type(const struct config_key *key, char *error, size_t size)
{
	static const char *const taken[] = {
		[CONFIG_BOOL] = "yes or no",
		[CONFIG_DURATION] = "a duration such as 500ms, 5s, 10min, 24h",
		[CONFIG_SIZE] = "a size such as 64K, 16M",
		[CONFIG_COUNT] = "a whole number",
		[CONFIG_COUNT32] = "a whole number",
		[CONFIG_NUMBER] = "a number",
	};
	if (key->type == CONFIG_TEXT) {
		snprintf(error, size, "too long; expected at most %zu bytes", key->size - 1);
	} else {
		snprintf(error, size, "expected %s", taken[key->type]);
	}
}

/* 0, -EINVAL: not of the type; -ERANGE. */
static int read_value(const struct config_key *key, void *instance, const char *value)
{
	char *field = (char *)instance + key->offset;
	uint64_t number = 0;
	int r = 0;
	switch (key->type) {
	case CONFIG_BOOL:
		return parse_bool(value, (bool *)field);
	case CONFIG_NUMBER:
		return parse_double(value, (double *)field);
	case CONFIG_SPECIAL:
		return key->set(instance, key->name, value);
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
	const struct config_key *key, void *instance, const char *value, char *error, size_t size)
{
	int r = read_value(key, instance, value);
	if (r == 0) {
		return 0;
	}
	if (key->expected) {
		snprintf(error, size, "expected %s", key->expected);
	} else if (r == -ERANGE && key->max > 0) {
		say_range(key, error, size);
	} else {
		say_type(key, error, size);
	}
	return -EINVAL;
}

/* A collector's own key: kept as text, the collector reads it. -ENOENT: it has no such key. */
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

static void unknown_key(
	const struct config_section *section, const void *instance, char *error, size_t size)
{
	struct text text = text_in(error, size);
	text_add(&text, "unknown key; expected one of");
	for (size_t i = 0; i < section->count; i++) {
		text_add(&text, " %s", section->keys[i].name);
	}
	if (strcmp(section->name, "source") == 0) {
		const struct source_options *source = instance;
		const char *const *keys = collector_find(source->name)->config_keys;
		for (size_t i = 0; keys && keys[i]; i++) {
			text_add(&text, " %s", keys[i]);
		}
	}
}

static void unknown_section(char *error, size_t size)
{
	struct text text = text_in(error, size);
	text_add(&text, "unknown section; expected one of");
	for (size_t i = 0; i < config_section_count; i++) {
		text_add(&text, " [%s%s]", config_sections[i].name,
			config_sections[i].find ? " NAME" : "");
	}
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
		bool alert = section->find == config_alert_find;
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
	if (r == -ENOENT) {
		unknown_key(section, instance, error, size);
		r = -EINVAL;
	}
	return r;
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
	if (!section || (!section->find && *name)) {
		unknown_section(error, size);
		return -EINVAL;
	}
	void *instance = section->find ? section->find(config, name, error, size) : config;
	return instance ? set_key(config, section, instance, key, value, error, size) : -EINVAL;
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

static bool same_value(const struct config_key *key, const struct config *a, const struct config *b)
{
	const char *one = (const char *)a + key->offset, *other = (const char *)b + key->offset;
	switch (key->type) {
	case CONFIG_BOOL:
		return memcmp(one, other, sizeof(bool)) == 0;
	case CONFIG_COUNT32:
		return memcmp(one, other, sizeof(uint32_t)) == 0;
	case CONFIG_TEXT:
		return strcmp(one, other) == 0;
	case CONFIG_DURATION:
	case CONFIG_SIZE:
	case CONFIG_COUNT:
	case CONFIG_NUMBER:
		return memcmp(one, other, sizeof(uint64_t)) == 0;
	case CONFIG_SPECIAL:
		break;
	}
	return true;
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
