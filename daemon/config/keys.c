/* SPDX-License-Identifier: Apache-2.0 */
/* keys.c: says what each key of the configuration means: one table per section, and setters for
 * special values. */
#include "daemon/config/private.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "daemon/core/archive/archive.h"
#include "daemon/core/status/recordings.h"
#include "daemon/ingest/statsd/udp.h"
#include "daemon/util/parse.h"

#define SECOND UINT64_C(1000000000)
#define LEAST_INTERVAL UINT64_C(50000000)
#define HOUR (3600 * SECOND)
#define DAY (24 * HOUR)

static int set_log_level(void *instance, const char *value)
{
	return log_level_parse(value, &((struct config *)instance)->log_level);
}

static int set_tls(void *instance, const char *value)
{
	return proto_tls_mode_parse(value, &((struct config *)instance)->mqtt.tls);
}

static bool is_device_id(const char *text)
{
	static const char allowed[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
	return text[0] != '\0' && text[strspn(text, allowed)] == '\0';
}

static bool is_absolute_path(const char *text)
{
	return text[0] == '\0' || text[0] == '/';
}

static bool is_udp_address(const char *text)
{
	struct statsd_address address;
	return text[0] == '\0' || statsd_address_parse(text, &address) == 0;
}

static int set_mqtt_enabled(void *instance, const char *value)
{
	struct mqtt_options *mqtt = &((struct config *)instance)->mqtt;
	int r = parse_bool(value, &mqtt->enabled);
	mqtt->off = r == 0 && !mqtt->enabled;
	return r;
}

/* A host enables MQTT, unless it is off, in whatever order they are written. */
static int set_host(void *instance, const char *value)
{
	struct mqtt_options *mqtt = &((struct config *)instance)->mqtt;
	struct proto_address list[PROTO_BROKERS_MAX] = {{.port = 0}};
	char error[1];
	int count = proto_brokers_parse(value, list, error, sizeof(error));
	if (count < 0) {
		return count;
	}
	memcpy(mqtt->broker, list, sizeof(list));
	mqtt->brokers = (unsigned)count;
	mqtt->enabled = !mqtt->off;
	return 0;
}

static int explain_host(const char *value, struct text *error)
{
	struct proto_address list[PROTO_BROKERS_MAX];
	char what[300] = "";
	proto_brokers_parse(value, list, what, sizeof(what));
	return config_refuse(error, "%s", what);
}

static int set_watch(
	struct watch *watch, enum watch_kind kind, const char *value, const char *suffix)
{
	struct text pattern = TEXT_IN(watch->pattern);
	text_add(&pattern, "%s%s", value, suffix);
	watch->kind = kind;
	return value[0] == '\0' || pattern.truncated ? -EINVAL : 0;
}

static int set_match(void *instance, const char *value)
{
	return set_watch(instance, WATCH_PATTERN, value, "");
}

/* A name without a suffix is that of a service, as for systemctl. */
static int set_unit(void *instance, const char *value)
{
	const char *suffix = strchr(value, '.') ? "" : ".service";
	return strpbrk(value, "/ \t") ? -EINVAL : set_watch(instance, WATCH_UNIT, value, suffix);
}

static int set_pid(void *instance, const char *value)
{
	struct watch *watch = instance;
	uint64_t pid;
	if (parse_u64(value, &pid) < 0 || pid < 1 || pid > 4194304) {
		return -EINVAL;
	}
	watch->pid = (pid_t)pid;
	watch->kind = WATCH_PID;
	return 0;
}

static int set_percentile_method(void *instance, const char *value)
{
	bool nearest = strcmp(value, "nearest") == 0;
	((struct config *)instance)->nearest = nearest;
	return nearest || strcmp(value, "linear") == 0 ? 0 : -EINVAL;
}

/* Words with blanks between them; `none` alone, too. */
static int set_triggers(void *instance, const char *value)
{
	static const struct {
		const char *word;
		unsigned triggers;
	} words[] = {{"alerts", RECORDER_ALERTS}, {"misses", RECORDER_MISSES},
		{"hangs", RECORDER_HANGS}, {"none", 0}};
	enum { WORDS = sizeof(words) / sizeof(words[0]) };
	unsigned triggers = 0;
	size_t count = 0;
	for (const char *at = value + strspn(value, " \t"); *at; at += strspn(at, " \t")) {
		size_t length = strcspn(at, " \t"), i = 0;
		while (i < WORDS && (strlen(words[i].word) != length ||
					    strncmp(words[i].word, at, length) != 0)) {
			i++;
		}
		if (i == WORDS) {
			return -EINVAL;
		}
		triggers |= words[i].triggers;
		at += length;
		count++;
	}
	((struct config *)instance)->recorder.triggers = triggers;
	return count > 0 ? 0 : -EINVAL;
}

static void *find_source(struct config *config, const char *name, struct text *error)
{
	const struct config_list list = {config->source, sizeof(config->source[0]),
		offsetof(struct source_options, name), CONFIG_SOURCES_MAX, &config->sources};
	bool added;
	struct source_options *source = config_list_find(&list, "source", name, &added, error);
	if (source && !collector_find(name)) {
		config_refuse(error, "unknown source; expected one of");
		for (size_t i = 0; collectors[i]; i++) {
			text_add(error, " %s", collectors[i]->name);
		}
		return NULL;
	}
	if (source && added) {
		source->enabled = true;
	}
	return source;
}

static void *find_process(struct config *config, const char *name, struct text *error)
{
	const struct config_list list = {config->process, sizeof(config->process[0]),
		offsetof(struct watch, name), CONFIG_PROCESSES_MAX, &config->processes};
	bool added;
	struct watch *watch = config_list_find(&list, "process", name, &added, error);
	if (watch && added) {
		watch->kind = WATCH_PATTERN;
	}
	return watch;
}

/* A field of struct config, and of the entry of an instance. */
#define AT(member) .offset = offsetof(struct config, member)
#define TEXT_AT(member) AT(member), .size = sizeof(((struct config *)0)->member)
#define IN(type, member) .offset = offsetof(struct type, member)

static const struct config_key daemon_keys[] = {
	{"socket_group", CONFIG_TEXT, TEXT_AT(socket_group), .restart = true},
	{"admin_group", CONFIG_TEXT, TEXT_AT(admin_group), .restart = true},
	CONFIG_SPECIAL_KEY("log_level", "error, warning, notice, info or debug", set_log_level),
	{"max_connections", CONFIG_COUNT, AT(max_connections), .min = 1, .max = 512,
		.restart = true},
	{"max_connections_per_uid", CONFIG_COUNT, AT(max_connections_per_uid), .min = 1, .max = 512,
		.restart = true},
	{"max_event_connections", CONFIG_COUNT, AT(max_event_connections), .min = 1, .max = 256,
		.restart = true},
	{"max_mapping_memory", CONFIG_SIZE, AT(max_mapping_bytes), .min = 64 * 1024,
		.max = 1u << 30, .restart = true},
};

static const struct config_key sampling_keys[] = {
	{"interval", CONFIG_DURATION, AT(interval_ns), .min = LEAST_INTERVAL, .max = HOUR},
	{"adaptive", CONFIG_BOOL, AT(adaptive.enabled)},
	{"min_interval", CONFIG_DURATION, AT(adaptive.min_interval_ns), .min = LEAST_INTERVAL,
		.max = HOUR},
	{"max_interval", CONFIG_DURATION, AT(adaptive.max_interval_ns), .min = LEAST_INTERVAL,
		.max = HOUR},
	{"busy_cpu", CONFIG_NUMBER, AT(adaptive.busy_cpu_percent)},
	{"busy_temperature", CONFIG_NUMBER, AT(adaptive.busy_celsius)},
	{"busy_factor", CONFIG_NUMBER, AT(adaptive.busy_factor)},
	{"calm_cpu", CONFIG_NUMBER, AT(adaptive.calm_cpu_percent)},
	{"calm_temperature", CONFIG_NUMBER, AT(adaptive.calm_celsius)},
	{"calm_factor", CONFIG_NUMBER, AT(adaptive.calm_factor)},
};

static const struct config_key statistics_keys[] = {
	{"stage_window", CONFIG_COUNT, AT(stage_window), .min = 16, .max = 16384, .restart = true},
	{"frame_window", CONFIG_COUNT, AT(frame_window), .min = 16, .max = 16384, .restart = true},
	CONFIG_SPECIAL_KEY("percentile_method", "linear or nearest", set_percentile_method),
};

static const struct config_key stages_keys[] = {
	{"memory", CONFIG_SIZE, AT(stage_bytes), .min = 1u << 20, .max = 1u << 30, .restart = true},
};

static const struct config_key recorder_keys[] = {
	{"memory", CONFIG_SIZE, AT(recorder_bytes), .min = 64 * 1024, .max = 1u << 30,
		.restart = true},
	{"before", CONFIG_DURATION, AT(recorder.before_ns), .max = 600 * SECOND},
	{"after", CONFIG_DURATION, AT(recorder.after_ns), .max = 600 * SECOND},
	{"max_size", CONFIG_SIZE, AT(recorder.max_size), .min = 256 * 1024, .max = 256u << 20},
	{"total_size", CONFIG_SIZE, AT(recorder.total_size), .min = 256 * 1024,
		.max = UINT64_C(1) << 34},
	{"keep", CONFIG_COUNT, AT(recorder.keep), .max = RECORDINGS_MAX},
	CONFIG_SPECIAL_KEY("triggers", "some of alerts, misses and hangs, or none", set_triggers),
};

static const struct config_key sessions_keys[] = {
	{"max_size", CONFIG_SIZE, AT(sessions.max_size), .min = 256 * 1024, .max = 256u << 20},
	{"total_size", CONFIG_SIZE, AT(sessions.total_size), .min = 256 * 1024,
		.max = UINT64_C(1) << 34},
	{"automatic", CONFIG_BOOL, AT(sessions.automatic)},
	{"ttl", CONFIG_DURATION, AT(sessions.ttl_ns), .min = SECOND, .max = 366 * DAY},
	{"baseline", CONFIG_TEXT, TEXT_AT(sessions.baseline), .valid = is_absolute_path,
		.expected = "an absolute path"},
	{"targets", CONFIG_TEXT, TEXT_AT(sessions.targets), .valid = is_absolute_path,
		.expected = "an absolute path"},
};

static const struct config_key history_keys[] = {
	{"memory", CONFIG_SIZE, AT(history_bytes), .min = HISTORY_MIN_POOL, .max = 1u << 30,
		.automatic = true, .restart = true},
	{"persist", CONFIG_BOOL, AT(history_persist), .restart = true},
	{"path", CONFIG_TEXT, TEXT_AT(history_path), .valid = is_absolute_path,
		.expected = "an absolute path", .restart = true},
	{"persist_size", CONFIG_SIZE, AT(history_persist_bytes), .min = ARCHIVE_SIZE_MIN,
		.max = 1u << 30, .restart = true},
	{"daily_writes", CONFIG_SIZE, AT(history_daily_bytes), .min = 1u << 20, .max = 1u << 30,
		.restart = true},
};

static const struct config_key advice_keys[] = {
	{"enabled", CONFIG_BOOL, AT(advice.enabled)},
	{"reduce_headroom", CONFIG_NUMBER, AT(advice.reduce_headroom)},
	{"minimal_headroom", CONFIG_NUMBER, AT(advice.minimal_headroom)},
	{"miss_share", CONFIG_NUMBER, AT(advice.miss_share), .min = 1, .max = 100,
		.expected = "percent of frames, from 1 to 100"},
	{"recover_after", CONFIG_DURATION, AT(advice.recover_after_ns), .min = SECOND, .max = HOUR},
};

#define SHARE_AT(member) AT(diagnosis.member), .max = 100, .expected = "percent, from 0 to 100"

static const struct config_key diagnosis_keys[] = {
	{"cpu_bound", CONFIG_NUMBER, SHARE_AT(cpu_bound)},
	{"memory_bound", CONFIG_NUMBER, SHARE_AT(memory_bound)},
	{"thermal", CONFIG_NUMBER, AT(diagnosis.thermal)},
	{"high_priority", CONFIG_NUMBER, SHARE_AT(high_priority)},
	{"medium_priority", CONFIG_NUMBER, SHARE_AT(medium_priority)},
	{"category_share", CONFIG_NUMBER, SHARE_AT(category_share)},
	{"infer_share", CONFIG_NUMBER, SHARE_AT(infer_share)},
	{"preprocess_share", CONFIG_NUMBER, SHARE_AT(preprocess_share)},
	{"memory_share", CONFIG_NUMBER, SHARE_AT(memory_share)},
};

static const struct config_key gauge_keys[] = {
	{"expire", CONFIG_DURATION, AT(gauge_expire_ns), .min = SECOND, .max = DAY},
};

#define TOPIC_LEVELS "topic levels of A-Z a-z 0-9 _ . - joined by /"

static const struct config_key mqtt_keys[] = {
	CONFIG_SPECIAL_KEY("enabled", "yes or no", set_mqtt_enabled),
	{"host", CONFIG_SPECIAL, .set = set_host, .explain = explain_host},
	{"port", CONFIG_COUNT32, AT(mqtt.port), .min = 1, .max = 65535,
		.expected = "a number from 1 to 65535"},
	CONFIG_SPECIAL_KEY("tls", "yes, no or auto", set_tls),
	{"device_id", CONFIG_TEXT, TEXT_AT(mqtt.device_id), .valid = is_device_id,
		.expected = "1 to 63 of A-Z a-z 0-9 _ -"},
	{"topic_prefix", CONFIG_TEXT, TEXT_AT(mqtt.topic_prefix), .valid = proto_path_valid,
		.expected = TOPIC_LEVELS},
	{"summary_interval", CONFIG_DURATION, AT(mqtt.summary_interval_ns), .min = SECOND,
		.max = DAY},
	{"username", CONFIG_TEXT, TEXT_AT(mqtt.username)},
	{"password_file", CONFIG_TEXT, TEXT_AT(mqtt.password_file)},
	{"ca_file", CONFIG_TEXT, TEXT_AT(mqtt.ca_file)},
	{"cert_file", CONFIG_TEXT, TEXT_AT(mqtt.cert_file)},
	{"key_file", CONFIG_TEXT, TEXT_AT(mqtt.key_file)},
	{"home_assistant", CONFIG_BOOL, AT(mqtt.home_assistant)},
	{"home_assistant_prefix", CONFIG_TEXT, TEXT_AT(mqtt.home_assistant_prefix),
		.valid = proto_path_valid, .expected = TOPIC_LEVELS},
};

static const struct config_key statsd_keys[] = {
	{"enabled", CONFIG_BOOL, AT(statsd)},
	{"udp", CONFIG_TEXT, TEXT_AT(statsd_udp), .valid = is_udp_address,
		.expected = "127.0.0.1:8125 or [::1]:8125 (any other address must be followed by "
			    "\"anyone\")"},
};

static const struct config_key source_keys[] = {
	{"enabled", CONFIG_BOOL, IN(source_options, enabled)},
	{"interval", CONFIG_DURATION, IN(source_options, interval_ns), .min = LEAST_INTERVAL,
		.max = HOUR},
};

static const struct config_key process_keys[] = {
	CONFIG_SPECIAL_KEY("match",
		"a glob on the command name, the program, or the complete command line", set_match),
	CONFIG_SPECIAL_KEY("pid", "a process id from 1 to 4194304", set_pid),
	CONFIG_SPECIAL_KEY("unit", "the name of a systemd unit such as camera.service", set_unit),
	{"memory_limit", CONFIG_SIZE, IN(watch, memory_limit_bytes), .min = 4096,
		.max = UINT64_C(1) << 50},
};

#define KEYS(table) table, sizeof(table) / sizeof(table[0])

const struct config_section config_sections[] = {
	{"daemon", KEYS(daemon_keys), NULL},
	{"sampling", KEYS(sampling_keys), NULL},
	{"statistics", KEYS(statistics_keys), NULL},
	{"stages", KEYS(stages_keys), NULL},
	{"recorder", KEYS(recorder_keys), NULL},
	{"sessions", KEYS(sessions_keys), NULL},
	{"history", KEYS(history_keys), NULL},
	{"advice", KEYS(advice_keys), NULL},
	{"diagnosis", KEYS(diagnosis_keys), NULL},
	{"gauge", KEYS(gauge_keys), NULL},
	{"mqtt", KEYS(mqtt_keys), NULL},
	{"statsd", KEYS(statsd_keys), NULL},
	{"source", KEYS(source_keys), find_source},
	{"process", KEYS(process_keys), find_process},
	{"alert", KEYS(config_alert_keys), config_alert_find},
	{"stage", KEYS(config_stage_keys), config_stage_find},
	{"frame", KEYS(config_frame_keys), config_frame_find},
	{"app", KEYS(config_app_keys), config_app_find},
};

const size_t config_section_count = sizeof(config_sections) / sizeof(config_sections[0]);
