/* SPDX-License-Identifier: Apache-2.0 */
/* reload.c: applies what depends on the configuration, at start and at a reload: all of it, or
 * nothing. */
#include "daemon/wiring.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/core/apps/advice.h"
#include "daemon/core/diagnose/diagnoses.h"
#include "daemon/core/apps/apps.h"
#include "daemon/host/notify.h"
#include "daemon/util/log.h"
#include "daemon/util/sysops.h"

void daemon_report_ready(struct daemon *daemon)
{
	size_t ok = 0, sources = sources_count(daemon->core.sources);
	for (size_t i = 0; i < sources; i++) {
		ok += sources_at(daemon->core.sources, i)->state == SOURCE_OK;
	}
	notify_state("READY=1\nSTATUS=%zu of %zu sources, %zu metrics, socket %s/io.edgeprof", ok,
		sources, metrics_count(daemon->core.metrics), daemon->run_dir);
}

int daemon_load_config(const char *path, struct config **ret, char *error, size_t size)
{
	struct config_errors *errors = mem_zalloc(sizeof(*errors));
	struct config *config = mem_zalloc(sizeof(*config));
	int r = errors && config ? config_load(path, config, errors) : -ENOMEM;
	for (size_t i = 0; r < 0 && errors && i < errors->count && i < CONFIG_ERRORS_MAX; i++) {
		log_error("%s", errors->text[i]);
	}
	bool said = errors && errors->count > 0;
	if (r < 0 && !said) {
		log_error("cannot read the configuration: %s", strerror(-r));
	}
	if (r < 0) {
		if (error) {
			snprintf(error, size, "%s", said ? errors->text[0] : strerror(-r));
		}
		free(config);
	} else {
		*ret = config;
	}
	free(errors);
	return r == -ENOENT ? -EINVAL : r;
}

void daemon_watch_configured(struct daemon *daemon, const struct config *config)
{
	const struct watch itself = {.kind = WATCH_SELF, .name = "edgeprofd"};
	processes_watch(&daemon->processes, &itself);
	for (size_t i = 0; i < config->processes; i++) {
		if (processes_watch(&daemon->processes, &config->process[i]) == -ENOSPC) {
			log_warning("[process %s]: not watched: limit of watched processes reached",
				config->process[i].name);
		}
	}
}

/* What a board without trip points must stay below: the operator said so for the alert. */
static double critical_celsius(const struct config *config)
{
	for (size_t i = 0; i < config->alerts; i++) {
		const struct alert_rule *rule = &config->alert[i];
		if (strcmp(rule->name, "temperature") == 0) {
			return isnan(rule->critical) ? rule->threshold : rule->critical;
		}
	}
	return NAN;
}

void daemon_configure_apps(struct daemon *daemon)
{
	struct apps_config config = {.settings = &daemon->config->apps,
		.advice = daemon->config->advice,
		.gauge_expire_ns = daemon->config->gauge_expire_ns};
	config.advice.critical_celsius = critical_celsius(daemon->config);
	daemon->core.nearest = daemon->config->nearest;
	apps_configure(daemon->core.apps, &config);
	diagnoses_configure(daemon->core.diagnoses, &daemon->config->diagnosis);
}

struct scheduler_options daemon_scheduling(const struct config *config)
{
	return (struct scheduler_options){
		.interval_ns = config->interval_ns,
		.adaptive = config->adaptive,
		.sources = config->source,
		.source_count = config->sources,
	};
}

void daemon_show_config(struct daemon *daemon)
{
	snprintf(daemon->facts.config_hash, sizeof(daemon->facts.config_hash), "%016" PRIx64,
		config_hash(daemon->config));
}

int daemon_bind(struct daemon *daemon, const char *name, int type, struct run_socket *ret)
{
	const char *group = daemon->config->socket_group;
	char path[128];
	snprintf(path, sizeof(path), "%s/%s", daemon->run_dir, name);
	return run_socket_open(ret, path, type, group[0] ? group : NULL);
}

/* Without MQTT the daemon still profiles: a failure is logged, and a reload tries again. */
void daemon_open_mqtt(struct daemon *daemon)
{
	if (!daemon->config->mqtt.enabled) {
		daemon->broker.reason[0] = '\0';
		return;
	}
	/* Alerts outlive the process in this file until the broker has them; else they are in
	 * memory. */
	if (!daemon->file[RUN_MQTT].data) {
		daemon_open_run_file(daemon, RUN_MQTT, mqtt_memory_size());
	}
	int r = daemon->mqtt_thread ? 0 : mqtt_thread_create(&daemon->mqtt_thread);
	r = r < 0 ? r
		  : mqtt_open(daemon->loop, &daemon->core, &daemon->config->mqtt,
			    daemon->mqtt_thread, daemon->file[RUN_MQTT].data, &daemon->mqtt);
	if (r < 0) {
		if (r != -EINVAL) {
			snprintf(daemon->broker.reason, sizeof(daemon->broker.reason), "%s",
				r == -EAGAIN ? "cannot start a thread" : strerror(-r));
		}
		log_error("MQTT is disabled until the configuration is reloaded: %s",
			daemon->broker.reason);
	}
}

static void on_mqtt_closed(void *ctx)
{
	struct daemon *daemon = ctx;
	daemon->mqtt = NULL;
	daemon->mqtt_closing = false;
	if (!daemon->stopping) {
		daemon_open_mqtt(daemon);
	}
}

/* Reopens MQTT only when its settings changed; otherwise retained topics and the queue stay. */
static void reload_mqtt(struct daemon *daemon, const struct config *old)
{
	bool same = memcmp(&old->mqtt, &daemon->config->mqtt, sizeof(old->mqtt)) == 0;
	if (daemon->mqtt_closing) {
		return;
	}
	if (daemon->mqtt && same) {
		mqtt_publish_info(daemon->mqtt); /* another hash */
		return;
	}
	if (daemon->mqtt) {
		daemon->mqtt_closing = true;
		mqtt_close(daemon->mqtt, on_mqtt_closed, daemon);
	} else {
		daemon_open_mqtt(daemon);
	}
}

/* Without datagrams the daemon still profiles: a failure is logged, and a reload tries again. */
void daemon_open_statsd(struct daemon *daemon)
{
	const struct config *config = daemon->config;
	daemon->counters.statsd_reason[0] = '\0';
	if (!config->statsd) {
		return;
	}
	int r = daemon->statsd_socket.fd >= 0
			? 0
			: daemon_bind(daemon, "statsd", SOCK_DGRAM, &daemon->statsd_socket);
	const struct statsd_options options = {
		.fd = daemon->statsd_socket.fd, .udp = config->statsd_udp};
	r = r < 0 ? r : statsd_open(daemon->loop, &daemon->core, &options, &daemon->statsd);
	if (r < 0) {
		run_socket_close(&daemon->statsd_socket);
		snprintf(daemon->counters.statsd_reason, sizeof(daemon->counters.statsd_reason),
			"%s", strerror(-r));
		log_error("statsd datagrams are disabled: cannot listen on %s/statsd%s%s: %s",
			daemon->run_dir, config->statsd_udp[0] ? " or UDP " : "",
			config->statsd_udp, strerror(-r));
	}
}

/* Reopens statsd only when its settings changed; otherwise its apps continue. */
static void reload_statsd(struct daemon *daemon, const struct config *old)
{
	bool same = old->statsd == daemon->config->statsd &&
		    strcmp(old->statsd_udp, daemon->config->statsd_udp) == 0;
	if (daemon->statsd && same) {
		return;
	}
	statsd_close(daemon->statsd, PROCESS_ENDED);
	run_socket_close(&daemon->statsd_socket);
	daemon->statsd = NULL;
	daemon_open_statsd(daemon);
}

static void report_restart_keys(
	const struct config *old, const struct config *new, char *text, size_t size)
{
	char keys[512] = "";
	if (config_restart_keys(old, new, keys, sizeof(keys)) > 0) {
		log_notice("changed keys that take effect after a restart only: %s", keys);
	}
	if (text) {
		snprintf(text, size, "%s", keys);
	}
}

int daemon_reload(struct daemon *daemon, char *error, size_t size)
{
	struct config *config;
	struct config *old = daemon->config;
	if (daemon->stopping) {
		if (error) {
			snprintf(error, size, "the daemon is stopping");
		}
		return -ECANCELED;
	}
	if (daemon->recovering) {
		daemon->reload_wanted = true;
		return 0;
	}
	notify_state("RELOADING=1\nMONOTONIC_USEC=%" PRIu64, sysops()->now_ns() / 1000);
	int r = daemon_load_config(daemon->config_path, &config, error, size);
	if (r == 0 && !daemon->alerts_reader) { /* else they are set below */
		r = alerts_set_rules(
			daemon->core.alerts, config->alert, config->alerts, sysops()->now_ns());
		if (r < 0) {
			free(config);
		}
	}
	if (r < 0) {
		log_error("reload rejected: the previous configuration stays in effect");
		daemon_report_ready(daemon);
		return r;
	}
	/* from here on nothing fails */
	daemon->config = config;
	daemon_show_config(daemon);
	struct scheduler_options options = daemon_scheduling(config);
	scheduler_configure(daemon->scheduler, &options);
	ingest_configure(daemon->ingest, config->interval_ns);
	sources_find(daemon->core.sources, "stages")->interval_ns = config->interval_ns;
	alerts_reader_give_up(daemon->alerts_reader);
	log_max_level = config->log_level;
	daemon_configure_apps(daemon);
	for (size_t i = 0; i < old->processes; i++) {
		processes_unwatch(&daemon->processes, old->process[i].kind, old->process[i].name,
			old->process[i].pid);
	}
	daemon_watch_configured(daemon, config);
	report_restart_keys(old, config, error, size);
	reload_mqtt(daemon, old);
	reload_statsd(daemon, old);
	recorder_configure(daemon->recorder, &daemon->config->recorder);
	session_recorder_configure(daemon->sessions, &daemon->config->sessions);
	free(old);
	timeline_add(daemon->core.timeline, sysops()->now_ns(), TIMELINE_DAEMON, TIMELINE_INFO,
		"edgeprofd", "configuration reloaded");
	daemon_report_ready(daemon);
	return 0;
}
