/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hash.c: identifies a configuration, so that a fleet's operator finds the devices that have
 * another one. The last value of each key that is set counts; order, comments, file and white space
 * do not, nor what is a device's own or says who it is.
 */
#include <string.h>

#include "daemon/config/private.h"
#include "proto/fnv.h"

static bool is_own(const char *section, const char *key)
{
	static const char *const keys[] = {"device_id", "username", "password_file"};
	for (size_t i = 0; strcmp(section, "mqtt") == 0 && i < sizeof(keys) / sizeof(keys[0]);
		i++) {
		if (strcmp(key, keys[i]) == 0) {
			return true;
		}
	}
	return false;
}

/* With the NUL: it separates. */
static uint64_t add(uint64_t hash, const char *text)
{
	return fnv64(hash, text, strlen(text) + 1);
}

void config_hash_pair(
	struct config *config, const char *section, const char *key, const char *value)
{
	const uint64_t name = add(add(FNV64_BASIS, section), key);
	size_t at = 0;
	if (is_own(section, key)) {
		return;
	}
	while (at < config->pairs && config->pair[at].key != name) {
		at++;
	}
	if (at == CONFIG_PAIRS_MAX) { /* the order counts then */
		config->rest_hash = add(config->rest_hash ^ name, value);
		return;
	}
	config->pairs = at == config->pairs ? at + 1 : config->pairs;
	config->pair[at].key = name;
	config->pair[at].hash = add(name, value);
}

uint64_t config_hash(const struct config *config)
{
	uint64_t hash = FNV64_BASIS + config->rest_hash;
	for (size_t i = 0; i < config->pairs; i++) {
		hash += config->pair[i].hash;
	}
	return hash;
}
