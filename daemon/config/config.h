/* SPDX-License-Identifier: Apache-2.0 */
/* config.h: reads the configuration: INI through libinih, /etc/edgeprofd/edgeprofd.conf and
 * drop-ins, into one plain struct. Everything is parsed into a new struct; nothing changes unless
 * all of it is valid. */
#pragma once

#include "daemon/collect/sched/adaptive.h"
#include "daemon/collect/sched/collector.h"
#include "daemon/core/alerts/alerts.h"
#include "daemon/core/apps/advice.h"
#include "daemon/core/core.h"
#include "daemon/core/diagnose/advise.h"
#include "daemon/core/frames/settings.h"
#include "daemon/core/history/history.h"
#include "daemon/core/metrics/processes.h"
#include "daemon/publish/mqtt/options.h"
#include "daemon/recorder/recorder.h"
#include "daemon/recorder/sessions.h"
#include "daemon/util/log.h"

enum {
	CONFIG_SOURCES_MAX = 32,
	CONFIG_PROCESSES_MAX = 32,
	CONFIG_ERRORS_MAX = 16,
	CONFIG_PAIRS_MAX = 512,
};

struct config {
	/* [daemon] */
	char socket_group[64]; /* "" = sockets are 0666 */
	char admin_group[64];
	enum log_level log_level;
	uint64_t max_connections, max_connections_per_uid, max_event_connections;
	uint64_t max_mapping_bytes;
	/* [sampling] */
	uint64_t interval_ns;
	struct adaptive_options adaptive;
	/* [statistics] */
	uint64_t stage_window, frame_window;
	bool nearest; /* percentile_method */
	/* [stages], [recorder] */
	uint64_t stage_bytes, recorder_bytes;
	struct recorder_options recorder;
	/* [sessions] */
	struct session_options sessions;
	/* [stage APP/STAGE], [frame APP] */
	struct app_settings apps;
	/* [history] */
	uint64_t history_bytes; /* 0: by the memory of the machine */
	bool history_persist;
	char history_path[160]; /* of the state directory; "" = the usual one */
	uint64_t history_persist_bytes;
	uint64_t history_daily_bytes; /* that may be written in 24 h */
	/* [source NAME] */
	size_t sources;
	struct source_options source[CONFIG_SOURCES_MAX];
	/* [process NAME] */
	size_t processes;
	struct watch process[CONFIG_PROCESSES_MAX];
	/* [alert NAME] */
	size_t alerts;
	struct alert_rule alert[ALERT_RULES_MAX];
	bool alert_has_kind[ALERT_RULES_MAX];	   /* above, below, equals or absent was given */
	unsigned alert_kind_file[ALERT_RULES_MAX]; /* in which of them, from 1 on */
	unsigned files;				   /* that were read */
	bool alert_has_clear[ALERT_RULES_MAX];	   /* clear was given */
	/* [advice]; critical_celsius is made of [alert temperature] */
	struct advice_options advice;
	/* [diagnosis] */
	struct diagnosis_limits diagnosis;
	/* [gauge] */
	uint64_t gauge_expire_ns;
	/* [mqtt] */
	struct mqtt_options mqtt;
	char mqtt_secret_at[512]; /* FILE:LINE of its username or password_file */
	/* [statsd] */
	bool statsd;
	char statsd_udp[96]; /* as statsd_address_parse reads it; "" = no UDP */
	/* what config_hash() is made of: the last value of each key, and of those beyond */
	size_t pairs;
	struct {
		uint64_t key, hash;
	} pair[CONFIG_PAIRS_MAX];
	uint64_t rest_hash;
};

/* What is wrong, each "FILE:LINE: what; what was expected". */
struct config_errors {
	size_t count; /* may exceed CONFIG_ERRORS_MAX: the rest is only counted */
	char text[CONFIG_ERRORS_MAX][512];
};

/* Every key at its default, with the built-in alert rules. */
void config_defaults(struct config *config);

/* Defaults, then FILE (path NULL = /etc/edgeprofd/edgeprofd.conf, absent is fine), then drop-ins in
 * the order of their names: those of FILE.d, or with path NULL those of edgeprofd.conf.d in
 * /etc/edgeprofd, /run/edgeprofd and /usr/lib/edgeprofd (a name masks the same name of a later
 * folder). 0, -EINVAL with errors filled, -ENOENT for an explicit path that is not there; another
 * -errno when reading failed for a reason that may pass (-EIO, -EMFILE, -ENOMEM). */
int config_load(const char *path, struct config *config, struct config_errors *errors);

/* The part that config_load applies to each pair; also for tests. Section and key as in the file.
 * 0, or -EINVAL with what is wrong in error. */
int config_set(struct config *config, const char *section, const char *key, const char *value,
	char *error, size_t size);

/* Equal for equal values of the keys that are set, in whatever order and files, on any machine and
 * after any restart; FNV-1a, against accidents. Without [mqtt] device_id, username and
 * password_file. */
uint64_t config_hash(const struct config *config);

/* The keys that differ and take effect only at the next start, as "[history] memory, …" in text
 * (cut when size is short); their number. */
size_t config_restart_keys(
	const struct config *old, const struct config *new, char *text, size_t size);
