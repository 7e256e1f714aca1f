/* SPDX-License-Identifier: Apache-2.0 */
/* config.c: finds the configuration files, orders them, and reads each line by line through libinih
 * into config_set. */
#include "daemon/config/config.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ini.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/config/private.h"
#include "daemon/core/apps/values.h"
#include "daemon/core/archive/account.h"
#include "daemon/publish/mqtt/options.h"
#include "daemon/util/sysops.h"
#include "proto/utf8.h"

#define DEFAULT_FILE "/etc/edgeprofd/edgeprofd.conf"

enum { DROPINS_MAX = 256 };

void config_defaults(struct config *config)
{
	*config = (struct config){
		.admin_group = "edgeprof",
		.log_level = LOG_LEVEL_INFO,
		.max_connections = 128,
		.max_connections_per_uid = 32,
		.max_event_connections = 64,
		.max_mapping_bytes = 16u << 20,
		.interval_ns = 1000000000u,
		.stage_window = 1024,
		.frame_window = 300,
		.stage_bytes = 8u << 20,
		.recorder_bytes = 4u << 20,
		.sessions = {.max_size = 16u << 20,
			.total_size = 100u << 20,
			.ttl_ns = UINT64_C(86400000000000)},
		.recorder = {.before_ns = 30000000000u,
			.after_ns = 10000000000u,
			.max_size = 4u << 20,
			.total_size = 8u << 20,
			.keep = 12,
			.triggers = RECORDER_ALERTS | RECORDER_MISSES | RECORDER_HANGS},
		.history_persist_bytes = 32u << 20,
		.history_daily_bytes = ARCHIVE_DAY_LIMIT,
		.statsd = true,
		.mqtt =
			{
				.port = 0,
				.topic_prefix = "edgeprof",
				.home_assistant_prefix = "homeassistant",
				.summary_interval_ns = 10000000000u,
				.max_messages = 512,
				.max_bytes = 768u << 10,
			},
	};
	adaptive_defaults(&config->adaptive);
	advice_defaults(&config->advice);
	config->diagnosis = diagnosis_limits_default;
	config->gauge_expire_ns = GAUGE_EXPIRE_NS;
	config_alert_defaults(config);
}

struct reader {
	FILE *stream;
	const char *path;
	unsigned line;
	int fault;	   /* errno of a read that failed; 0: none */
	char section[256]; /* whole: libinih keeps 49 bytes of it */
	struct config *config;
	struct config_errors *errors;
};

static void add_error(struct config_errors *errors, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static void add_error(struct config_errors *errors, const char *format, ...)
{
	if (errors->count < CONFIG_ERRORS_MAX) {
		va_list ap;
		va_start(ap, format);
		vsnprintf(errors->text[errors->count], sizeof(errors->text[0]), format, ap);
		va_end(ap);
		proto_utf8_clean(errors->text[errors->count]);
	}
	errors->count++;
}

/* getc that remembers why there are no more. */
static int next_byte(struct reader *reader)
{
	errno = 0;
	int c = getc(reader->stream);
	if (c == EOF && ferror(reader->stream)) {
		reader->fault = errno ? errno : EIO;
	}
	return c;
}

/* fgets that refuses zero bytes: a file that a power cut left full of them is not an empty one. */
static size_t get_line(struct reader *reader, char *buf, size_t size)
{
	size_t length = 0;
	int c = '\0';
	while (length + 1 < size && c != '\n' && (c = next_byte(reader)) != EOF) {
		if (c == '\0') {
			add_error(reader->errors, "%s:%u: a zero byte; expected text", reader->path,
				reader->line + 1);
			return 0; /* what follows is not worth reading */
		}
		buf[length++] = (char)c;
	}
	buf[length] = '\0';
	return length;
}

/* libinih's fgets: counts lines, refuses long ones instead of splitting them, and takes away the
 * indentation that libinih would read as the continuation of the line before. */
static char *read_line(char *buf, int size, void *ctx)
{
	struct reader *reader = ctx;
	size_t length = get_line(reader, buf, (size_t)size);
	if (length == 0) {
		return NULL;
	}
	reader->line++;
	if (buf[length - 1] != '\n' && !feof(reader->stream)) {
		add_error(reader->errors, "%s:%u: line too long; expected at most %d bytes",
			reader->path, reader->line, size - 2);
		for (int c = next_byte(reader); c != EOF && c != '\n';) {
			c = next_byte(reader);
		}
		snprintf(buf, (size_t)size, "#\n");
		return buf;
	}
	size_t indent = strspn(buf, " \t");
	memmove(buf, buf + indent, length - indent + 1);
	if (buf[0] == '[') {
		snprintf(reader->section, sizeof(reader->section), "%.*s",
			(int)strcspn(buf + 1, "]"), buf + 1);
	}
	return buf;
}

static int handle_pair(void *ctx, const char *section, const char *key, const char *value)
{
	struct reader *reader = ctx;
	char error[320];
	if (strncmp(section, reader->section, strlen(section)) == 0) {
		section = reader->section;
	}
	if (config_set(reader->config, section, key, value ? value : "", error, sizeof(error)) <
		0) {
		add_error(reader->errors, "%s:%u: [%s] %s = %s: %s", reader->path, reader->line,
			section, key, value ? value : "", error);
	} else {
		config_hash_pair(reader->config, section, key, value ? value : "");
	}
	if (strcmp(section, "mqtt") == 0 &&
		(strcmp(key, "username") == 0 || strcmp(key, "password_file") == 0)) {
		snprintf(reader->config->mqtt_secret_at, sizeof(reader->config->mqtt_secret_at),
			"%s:%u: [mqtt] %s", reader->path, reader->line, key);
	}
	return 1;
}

/* 0, or -errno when the file cannot be read at all. */
static int load_file(const char *path, struct config *config, struct config_errors *errors)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0) {
		return -errno;
	}
	struct stat st;
	int r = fstat(fd, &st) < 0 ? -errno : 0;
	if (r == 0 && !S_ISREG(st.st_mode) && !S_ISCHR(st.st_mode)) {
		r = S_ISDIR(st.st_mode) ? -EISDIR : -EINVAL;
	}
	if (r < 0) {
		close(fd);
		return r;
	}
	struct reader reader = {
		.stream = fdopen(fd, "r"), .path = path, .config = config, .errors = errors};
	if (!reader.stream) {
		r = -errno;
		close(fd);
		return r;
	}
	config->files++;
	int line = ini_parse_stream(read_line, &reader, handle_pair, &reader);
	fclose(reader.stream);
	if (reader.fault != 0 || line < 0) {
		return reader.fault != 0 ? -reader.fault : -ENOMEM;
	}
	if (line > 0) {
		add_error(errors, "%s:%d: not understood; expected [section] or key = value", path,
			line);
	}
	return 0;
}

struct dropin {
	char path[768];
	size_t name; /* where it begins in path */
};

static int compare_dropins(const void *a, const void *b)
{
	const struct dropin *one = a, *other = b;
	return strcmp(one->path + one->name, other->path + other->name);
}

/* What will be the same when it is tried again: somebody has to change something. */
static bool is_lasting(int error)
{
	static const int lasting[] = {
		ENOENT, ENOTDIR, EISDIR, EACCES, EPERM, ELOOP, ENAMETOOLONG, EINVAL};
	for (size_t i = 0; i < sizeof(lasting) / sizeof(lasting[0]); i++) {
		if (error == lasting[i]) {
			return true;
		}
	}
	return false;
}

/* r: -errno of reading path. What is lasting is one of the errors, and 0 then. */
static int cannot_read(struct config_errors *errors, const char *path, int r)
{
	add_error(errors, "%s: cannot be read: %s", path,
		r == -EINVAL ? "Not a regular file" : strerror(-r));
	return is_lasting(-r) ? 0 : r;
}

/* Adds the *.conf files of a folder whose names are not there yet. 0 or -errno. */
static int collect_dropins(const char *folder, struct dropin *dropins, size_t *ret)
{
	size_t count = *ret;
	DIR *dir = opendir(folder);
	if (!dir) {
		return errno == ENOENT || errno == ENOTDIR ? 0 : -errno;
	}
	struct dirent *entry;
	while (count < DROPINS_MAX && (errno = 0, entry = readdir(dir))) {
		bool wanted = entry->d_name[0] != '.' && text_ends_with(entry->d_name, ".conf");
		for (size_t i = 0; i < count && wanted; i++) {
			wanted = strcmp(dropins[i].path + dropins[i].name, entry->d_name) != 0;
		}
		struct text path = TEXT_IN(dropins[count].path);
		text_add(&path, "%s/%s", folder, entry->d_name);
		dropins[count].name = strlen(folder) + 1;
		count += wanted && !path.truncated;
	}
	int r = count < DROPINS_MAX ? -errno : 0;
	closedir(dir);
	*ret = count;
	return r;
}

static int load_dropins(const char *path, struct config *config, struct config_errors *errors)
{
	const char *folders[] = {"/etc/edgeprofd/edgeprofd.conf.d",
		"/run/edgeprofd/edgeprofd.conf.d", "/usr/lib/edgeprofd/edgeprofd.conf.d"};
	size_t count = 0, folder_count = sizeof(folders) / sizeof(folders[0]);
	char own[512];
	int r = 0;
	struct dropin *dropins = mem_calloc(DROPINS_MAX, sizeof(*dropins));
	if (!dropins) {
		return -ENOMEM;
	}
	if (path) {
		folders[0] = own;
		folder_count =
			(size_t)snprintf(own, sizeof(own), "%s.d", path) < sizeof(own) ? 1 : 0;
	}
	for (size_t i = 0; r == 0 && i < folder_count; i++) {
		r = collect_dropins(folders[i], dropins, &count);
		r = r < 0 ? cannot_read(errors, folders[i], r) : 0;
	}
	qsort(dropins, count, sizeof(*dropins), compare_dropins);
	for (size_t i = 0; r == 0 && i < count; i++) {
		r = load_file(dropins[i].path, config, errors);
		r = r < 0 ? cannot_read(errors, dropins[i].path, r) : 0;
	}
	free(dropins);
	return r;
}

static int check_adaptive(const struct adaptive_options *adaptive, struct text *error)
{
	const struct {
		bool right;
		const char *wrong;
	} checks[] = {
		{adaptive->min_interval_ns <= adaptive->max_interval_ns,
			"min_interval is longer than max_interval"},
		{adaptive->calm_cpu_percent < adaptive->busy_cpu_percent,
			"calm_cpu is not below busy_cpu"},
		{adaptive->calm_celsius < adaptive->busy_celsius,
			"calm_temperature is not below busy_temperature"},
		{adaptive->busy_factor >= 1 && adaptive->busy_factor <= 100,
			"busy_factor is not from 1 to 100"},
		{adaptive->calm_factor >= 0.01 && adaptive->calm_factor <= 1,
			"calm_factor is not from 0.01 to 1"},
	};
	for (size_t i = 0; i < sizeof(checks) / sizeof(checks[0]); i++) {
		if (!checks[i].right) {
			return config_refuse(error, "[sampling] %s", checks[i].wrong);
		}
	}
	return 0;
}

/* Checks what only the whole can tell: an alert without a limit, a process without a pattern. */
static int check_all(const struct config *config, struct text *error)
{
	const struct advice_options *advice = &config->advice;
	int r = check_adaptive(&config->adaptive, error);
	if (r == 0 && !(advice->minimal_headroom <= advice->reduce_headroom)) {
		r = config_refuse(error,
			"[advice] minimal_headroom = %g; expected at most reduce_headroom = %g",
			advice->minimal_headroom, advice->reduce_headroom);
	}
	r = r < 0 ? r : config_alerts_check(config, error);
	for (size_t i = 0; r == 0 && i < config->processes; i++) {
		const struct watch *watch = &config->process[i];
		if (watch->pattern[0] == '\0' && watch->pid == 0) {
			r = config_refuse(error,
				"[process %s] names no process; expected match = GLOB, unit = NAME "
				"or pid = N",
				watch->name);
		}
	}
	if (r == 0 && config->mqtt.enabled && config->mqtt.brokers == 0) {
		r = config_refuse(
			error, "[mqtt] enabled = yes without a host; expected host = NAME");
	}
	return r;
}

int config_load(const char *path, struct config *config, struct config_errors *errors)
{
	config_defaults(config);
	errors->count = 0;
	int r = load_file(path ? path : DEFAULT_FILE, config, errors);
	if (r < 0 && (path || r != -ENOENT)) {
		int passing = cannot_read(errors, path ? path : DEFAULT_FILE, r);
		return r == -ENOENT || passing < 0 ? r : -EINVAL;
	}
	r = load_dropins(path, config, errors);
	if (r < 0) {
		return r;
	}
	char error[320];
	struct text text = TEXT_IN(error);
	if (errors->count == 0 && check_all(config, &text) < 0) {
		add_error(errors, "%s: %s", path ? path : DEFAULT_FILE, error);
	}
	const char *exposed = config->mqtt.enabled ? mqtt_exposes(&config->mqtt) : NULL;
	if (exposed) {
		add_error(errors,
			"%s: would go to %s as clear text; expected tls = yes in [mqtt], or tls = "
			"no to send it all the same",
			config->mqtt_secret_at, exposed);
	}
	for (unsigned i = 0; i < config->mqtt.brokers; i++) {
		config->mqtt.broker[i].port = mqtt_broker(&config->mqtt, i).port;
	}
	return errors->count > 0 ? -EINVAL : 0;
}
