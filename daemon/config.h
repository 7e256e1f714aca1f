/*
 * Configuration: INI through libinih, /etc/edgeprofd/edgeprofd.conf and drop-ins, into one plain
 * struct. Everything is parsed into a new struct; nothing changes unless all of it is right.
 */
#pragma once

#include "daemon/collect/collector.h"
#include "daemon/core/core.h"
#include "daemon/publish/mqtt.h"
#include "daemon/util/log.h"

enum {
	CONFIG_SOURCES_MAX = 32,
	CONFIG_PROCESSES_MAX = 32,
	CONFIG_ERRORS_MAX = 16,
	CONFIG_STAGE_SETTINGS_MAX = 64,
};

struct config {
	/* [daemon] */
	char socket_group[64]; /* "" = sockets are 0666 */
	enum log_level log_level;
	uint64_t max_connections, max_connections_per_uid, max_event_connections;
	uint64_t max_mapping_bytes;
	/* [sampling] */
	uint64_t interval_ns;
	/* [statistics] */
	uint64_t stage_window, frame_window;
	/* [history] */
	uint64_t history_bytes;
	/* [source NAME] */
	size_t sources;
	struct source_options source[CONFIG_SOURCES_MAX];
	/* [process NAME] */
	size_t processes;
	struct watch process[CONFIG_PROCESSES_MAX];
	/* [alert NAME] */
	size_t alerts;
	struct alert_rule alert[ALERT_RULES_MAX];
	/* [mqtt] */
	struct mqtt_options mqtt;
};

struct config_error {
	char text[512]; /* "FILE:LINE: what is wrong; what was expected" */
};

struct config_errors {
	size_t count; /* may exceed CONFIG_ERRORS_MAX: the rest is only counted */
	struct config_error error[CONFIG_ERRORS_MAX];
};

/* Sets every key to its default, with the built-in alert rules. */
void config_defaults(struct config *config);

/* Reads FILE (path NULL = /etc/edgeprofd/edgeprofd.conf, absent is fine) and the drop-ins beside it
 * (FILE.d, and with path NULL also those of /usr/lib and /run; a name masks the same name of a
 * later folder in the order /etc, /run, /usr/lib). 0, -EINVAL with errors filled, -ENOENT for an
 * explicit path. */
int config_load(const char *path, struct config *config, struct config_errors *errors);
