/* What each key of the configuration means: one table a section, and setters for odd values. */
#include "daemon/config/keys.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "daemon/core/archive/archive.h"
#include "daemon/ingest/statsd/socket.h"
#include "daemon/util/parse.h"

#define AT(type, member) offsetof(struct type, member)
#define SIZE_OF(type, member) sizeof(((struct type *)0)->member)

static int set_log_level(void *instance, const char *key, const char *value)
{
	(void)key;
	return log_level_parse(value, &((struct config *)instance)->log_level);
}

static int set_port(void *instance, const char *key, const char *value)
{
	(void)key;
	uint64_t port;
	if (parse_u64(value, &port) < 0 || port < 1 || port > 65535) {
		return -EINVAL;
	}
	((struct config *)instance)->mqtt.port = (int)port;
	return 0;
}

static int set_tls(void *instance, const char *key, const char *value)
{
	(void)key;
	return proto_tls_mode_parse(value, &((struct config *)instance)->mqtt.tls);
}

static int set_device_id(void *instance, const char *key, const char *value)
{
	(void)key;
	struct mqtt_options *mqtt = &((struct config *)instance)->mqtt;
	size_t length = strlen(value);
	if (length == 0 || length >= sizeof(mqtt->device_id) ||
		strspn(value, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") !=
			length) {
		return -EINVAL;
	}
	memcpy(mqtt->device_id, value, length + 1);
	return 0;
}

static int set_topic_prefix(void *instance, const char *key, const char *value)
{
	(void)key;
	struct mqtt_options *mqtt = &((struct config *)instance)->mqtt;
	size_t length = strlen(value);
	if (length >= sizeof(mqtt->topic_prefix) || !proto_path_valid(value)) {
		return -EINVAL;
	}
	memcpy(mqtt->topic_prefix, value, length + 1);
	return 0;
}

static int set_home_assistant_prefix(void *instance, const char *key, const char *value)
{
	(void)key;
	struct mqtt_options *mqtt = &((struct config *)instance)->mqtt;
	size_t length = strlen(value);
	if (length >= sizeof(mqtt->home_assistant_prefix) || !proto_path_valid(value)) {
		return -EINVAL;
	}
	memcpy(mqtt->home_assistant_prefix, value, length + 1);
	return 0;
}

static int set_host(void *instance, const char *key, const char *value)
{
	(void)key;
	struct mqtt_options *mqtt = &((struct config *)instance)->mqtt;
	size_t length = strlen(value);
	if (length == 0 || length >= sizeof(mqtt->host) || strpbrk(value, " \t/")) {
		return -EINVAL;
	}
	memcpy(mqtt->host, value, length + 1);
	mqtt->enabled = true;
	return 0;
}

static int set_udp(void *instance, const char *key, const char *value)
{
	(void)key;
	struct config *config = instance;
	struct statsd_address address;
	if (strlen(value) >= sizeof(config->statsd_udp) ||
		(value[0] && statsd_address_parse(value, &address) < 0)) {
		return -EINVAL;
	}
	memcpy(config->statsd_udp, value, strlen(value) + 1);
	return 0;
}

static int set_match(void *instance, const char *key, const char *value)
{
	(void)key;
	struct watch *watch = instance;
	if (value[0] == '\0' || strlen(value) >= sizeof(watch->pattern)) {
		return -EINVAL;
	}
	memcpy(watch->pattern, value, strlen(value) + 1);
	watch->kind = WATCH_PATTERN;
	return 0;
}

/* A name without a suffix is a service's, as for systemctl. */
static int set_unit(void *instance, const char *key, const char *value)
{
	(void)key;
	struct watch *watch = instance;
	const char *suffix = strchr(value, '.') ? "" : ".service";
	size_t length = strlen(value), more = strlen(suffix);
	if (length == 0 || strpbrk(value, "/ \t") || length + more >= sizeof(watch->pattern)) {
		return -EINVAL;
	}
	memcpy(watch->pattern, value, length);
	memcpy(watch->pattern + length, suffix, more + 1);
	watch->kind = WATCH_UNIT;
	return 0;
}

static int set_pid(void *instance, const char *key, const char *value)
{
	(void)key;
	struct watch *watch = instance;
	uint64_t pid;
	if (parse_u64(value, &pid) < 0 || pid < 1 || pid > 4194304) {
		return -EINVAL;
	}
	watch->pid = (pid_t)pid;
	watch->kind = WATCH_PID;
	return 0;
}

static int set_miss_share(void *instance, const char *key, const char *value)
{
	(void)key;
	double percent;
	if (parse_double(value, &percent) < 0 || !(percent >= 1 && percent <= 100)) {
		return -EINVAL;
	}
	((struct config *)instance)->advice.miss_share = percent;
	return 0;
}

static int set_history_path(void *instance, const char *key, const char *value)
{
	(void)key;
	struct config *config = instance;
	size_t length = strlen(value);
	if (length >= sizeof(config->history_path) || (length > 0 && value[0] != '/')) {
		return -EINVAL;
	}
	memcpy(config->history_path, value, length + 1);
	return 0;
}

static int set_percentile_method(void *instance, const char *key, const char *value)
{
	(void)key;
	bool nearest = strcmp(value, "nearest") == 0;
	((struct config *)instance)->nearest = nearest;
	return nearest || strcmp(value, "linear") == 0 ? 0 : -EINVAL;
}

#define TEXT_KEY(key, owner, member)                                           \
	{                                                                      \
		.name = key, .type = CONFIG_TEXT, .offset = AT(owner, member), \
		.size = SIZE_OF(owner, member)                                 \
	}
#define RANGE_KEY(key, what, owner, member, least, most)                                          \
	{                                                                                         \
		.name = key, .type = what, .offset = AT(owner, member), .min = least, .max = most \
	}
#define PLAIN_KEY(key, what, owner, member) RANGE_KEY(key, what, owner, member, 0, 0)

static const struct config_key daemon_keys[] = {
	TEXT_KEY("socket_group", config, socket_group),
	TEXT_KEY("admin_group", config, admin_group),
	CONFIG_SPECIAL_KEY("log_level", "error, warning, notice, info or debug", set_log_level),
	RANGE_KEY("max_connections", CONFIG_COUNT, config, max_connections, 1, 512),
	RANGE_KEY("max_connections_per_uid", CONFIG_COUNT, config, max_connections_per_uid, 1, 512),
	RANGE_KEY("max_event_connections", CONFIG_COUNT, config, max_event_connections, 1, 256),
	RANGE_KEY(
		"max_mapping_memory", CONFIG_SIZE, config, max_mapping_bytes, 64 * 1024, 1u << 30),
};

static const struct config_key sampling_keys[] = {
	RANGE_KEY("interval", CONFIG_DURATION, config, interval_ns, 50000000u, 3600000000000u),
	PLAIN_KEY("adaptive", CONFIG_BOOL, config, adaptive.enabled),
	RANGE_KEY("min_interval", CONFIG_DURATION, config, adaptive.min_interval_ns, 50000000u,
		3600000000000u),
	RANGE_KEY("max_interval", CONFIG_DURATION, config, adaptive.max_interval_ns, 50000000u,
		3600000000000u),
	PLAIN_KEY("busy_cpu", CONFIG_NUMBER, config, adaptive.busy_cpu_percent),
	PLAIN_KEY("busy_temperature", CONFIG_NUMBER, config, adaptive.busy_celsius),
	PLAIN_KEY("busy_factor", CONFIG_NUMBER, config, adaptive.busy_factor),
	PLAIN_KEY("calm_cpu", CONFIG_NUMBER, config, adaptive.calm_cpu_percent),
	PLAIN_KEY("calm_temperature", CONFIG_NUMBER, config, adaptive.calm_celsius),
	PLAIN_KEY("calm_factor", CONFIG_NUMBER, config, adaptive.calm_factor),
};

static const struct config_key statistics_keys[] = {
	RANGE_KEY("stage_window", CONFIG_COUNT, config, stage_window, 16, 16384),
	RANGE_KEY("frame_window", CONFIG_COUNT, config, frame_window, 16, 16384),
	CONFIG_SPECIAL_KEY("percentile_method", "linear or nearest", set_percentile_method),
};

static const struct config_key stages_keys[] = {
	RANGE_KEY("memory", CONFIG_SIZE, config, stage_bytes, 1u << 20, 1u << 30),
};

static const struct config_key history_keys[] = {
	RANGE_KEY("memory", CONFIG_SIZE, config, history_bytes, HISTORY_MIN_POOL, 1u << 30),
	PLAIN_KEY("persist", CONFIG_BOOL, config, history_persist),
	CONFIG_SPECIAL_KEY("path", "an absolute path", set_history_path),
	RANGE_KEY("persist_size", CONFIG_SIZE, config, history_persist_bytes, ARCHIVE_SIZE_MIN,
		1u << 30),
	RANGE_KEY("daily_writes", CONFIG_SIZE, config, history_daily_bytes, 1u << 20, 1u << 30),
};

static const struct config_key advice_keys[] = {
	PLAIN_KEY("enabled", CONFIG_BOOL, config, advice.enabled),
	PLAIN_KEY("reduce_headroom", CONFIG_NUMBER, config, advice.reduce_headroom),
	PLAIN_KEY("minimal_headroom", CONFIG_NUMBER, config, advice.minimal_headroom),
	CONFIG_SPECIAL_KEY("miss_share", "percent of frames, from 1 to 100", set_miss_share),
	RANGE_KEY("recover_after", CONFIG_DURATION, config, advice.recover_after_ns, 1000000000u,
		3600000000000u),
};

static const struct config_key gauge_keys[] = {
	RANGE_KEY("expire", CONFIG_DURATION, config, gauge_expire_ns, 1000000000u, 86400000000000u),
};

static const struct config_key mqtt_keys[] = {
	PLAIN_KEY("enabled", CONFIG_BOOL, config, mqtt.enabled),
	CONFIG_SPECIAL_KEY("host", "a host name or address (port is a key of its own)", set_host),
	CONFIG_SPECIAL_KEY("port", "a number from 1 to 65535", set_port),
	CONFIG_SPECIAL_KEY("tls", "yes, no or auto", set_tls),
	CONFIG_SPECIAL_KEY("device_id", "1 to 63 of A-Z a-z 0-9 _ -", set_device_id),
	CONFIG_SPECIAL_KEY(
		"topic_prefix", "topic levels of A-Z a-z 0-9 _ . - joined by /", set_topic_prefix),
	RANGE_KEY("summary_interval", CONFIG_DURATION, config, mqtt.summary_interval_ns,
		1000000000u, 86400000000000u),
	TEXT_KEY("username", config, mqtt.username),
	TEXT_KEY("password_file", config, mqtt.password_file),
	TEXT_KEY("ca_file", config, mqtt.ca_file),
	TEXT_KEY("cert_file", config, mqtt.cert_file),
	TEXT_KEY("key_file", config, mqtt.key_file),
	PLAIN_KEY("home_assistant", CONFIG_BOOL, config, mqtt.home_assistant),
	CONFIG_SPECIAL_KEY("home_assistant_prefix", "topic levels of A-Z a-z 0-9 _ . - joined by /",
		set_home_assistant_prefix),
};

static const struct config_key statsd_keys[] = {
	PLAIN_KEY("enabled", CONFIG_BOOL, config, statsd),
	CONFIG_SPECIAL_KEY("udp",
		"127.0.0.1:8125 or [::1]:8125 (another address only with \"anyone\" behind it)",
		set_udp),
};

static const struct config_key source_keys[] = {
	PLAIN_KEY("enabled", CONFIG_BOOL, source_options, enabled),
	RANGE_KEY("interval", CONFIG_DURATION, source_options, interval_ns, 50000000u,
		3600000000000u),
};

static const struct config_key process_keys[] = {
	CONFIG_SPECIAL_KEY("match",
		"a glob on the command name, the program, or the complete command line", set_match),
	CONFIG_SPECIAL_KEY("pid", "a process id from 1 to 4194304", set_pid),
	CONFIG_SPECIAL_KEY("unit", "the name of a systemd unit such as camera.service", set_unit),
	RANGE_KEY("memory_limit", CONFIG_SIZE, watch, memory_limit_bytes, 4096, UINT64_C(1) << 50),
};

#define KEYS(table) table, sizeof(table) / sizeof(table[0])

const struct config_section config_sections[] = {
	{"daemon", false, KEYS(daemon_keys)},
	{"sampling", false, KEYS(sampling_keys)},
	{"statistics", false, KEYS(statistics_keys)},
	{"stages", false, KEYS(stages_keys)},
	{"recorder", false, KEYS(config_recorder_keys)},
	{"history", false, KEYS(history_keys)},
	{"advice", false, KEYS(advice_keys)},
	{"gauge", false, KEYS(gauge_keys)},
	{"mqtt", false, KEYS(mqtt_keys)},
	{"statsd", false, KEYS(statsd_keys)},
	{"source", true, KEYS(source_keys)},
	{"process", true, KEYS(process_keys)},
	{"alert", true, KEYS(config_alert_keys)},
	{"stage", true, KEYS(config_stage_keys)},
	{"frame", true, KEYS(config_frame_keys)},
	{"app", true, KEYS(config_app_keys)},
};

const size_t config_section_count = sizeof(config_sections) / sizeof(config_sections[0]);
