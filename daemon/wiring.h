/* SPDX-License-Identifier: Apache-2.0 */
/* wiring.h: declares the daemon's insides for the files that wire it: daemon.c (start and stop),
 * assemble.c (core), recover.c (the history that was found), reload.c (what depends on the
 * configuration), runfiles.c (files of the run directory). */
#pragma once

#include <stdbool.h>
#include <uv.h>

#include "daemon/collect/sched/scheduler.h"
#include "daemon/config/config.h"
#include "daemon/core/metrics/wallclock.h"
#include "daemon/core/status/broker_status.h"
#include "daemon/core/status/counters.h"
#include "daemon/core/status/degraded.h"
#include "daemon/core/status/facts.h"
#include "daemon/core/status/bystanders.h"
#include "daemon/core/status/modes.h"
#include "daemon/core/status/persist_status.h"
#include "daemon/daemon.h"
#include "daemon/host/clock.h"
#include "daemon/host/loop.h"
#include "daemon/host/socket.h"
#include "daemon/ingest/ingest.h"
#include "daemon/ingest/statsd/statsd.h"
#include "daemon/persist/alerts_file.h"
#include "daemon/persist/persist.h"
#include "daemon/publish/journal.h"
#include "daemon/publish/mqtt/mqtt.h"
#include "daemon/recorder/recorder.h"
#include "daemon/recorder/reports.h"
#include "daemon/recorder/sessions.h"
#include "daemon/util/runfile.h"
#include "daemon/varlink/server/server.h"

/* The files of the run directory that outlive the process, in the order in which they are opened.
 */
enum run_file {
	RUN_CLOCK,
	RUN_HISTORY,
	RUN_TIMELINE,
	RUN_ALERTS,
	RUN_HOLDS,
	RUN_RUNS,
	RUN_RECORDER,
	RUN_MQTT,
	RUN_FILES
};

struct daemon {
	uv_loop_t *loop;
	struct daemon_options options;
	char *config_path;
	struct config *config;
	struct root root, real_root;
	char run_dir[108];
	char state_dir[192]; /* of what survives a reboot; "" = nothing does */
	struct run_socket varlink_socket, events_socket, statsd_socket;
	uint8_t boot_id[16]; /* that of facts as bytes */

	struct core core;
	struct machine_facts facts;
	struct modes modes;
	struct bystanders bystanders;
	struct broker_status broker;
	struct system_memory memory; /* as it was read last for a mark */
	struct counters counters;
	struct degraded degraded;
	struct throttle_status throttle;
	struct wallclock wall;
	struct processes processes;
	struct runfile file[RUN_FILES];

	struct journal *journal;
	struct ingest *ingest;
	struct statsd *statsd; /* NULL = none: off, or it could not be opened */
	struct api *api;
	struct mqtt *mqtt;
	struct mqtt_thread *mqtt_thread; /* NULL: never needed so far */
	struct reports *reports;
	struct persist *persist; /* NULL = history is not kept over reboots */
	struct persist_status persist_status;
	struct alerts_writer *alerts_writer; /* NULL likewise */
	struct alerts_reader *alerts_reader; /* NULL: the rules are evaluated */
	struct recorder *recorder;
	struct session_recorder *sessions;
	struct scheduler *scheduler;
	struct clock_watch clock;
	struct loopwatch loopwatch;
	uv_timer_t watchdog;
	uv_fs_event_t run_watch; /* of the run directory */
	uv_idle_t recovery; /* of the history that an earlier process left: until it is read, only
			     * the sockets are there */
	bool clock_open, loopwatch_open, watchdog_open, run_watch_open, recovery_open;
	bool recovering;		   /* from the moment that there is something to read */
	bool alerts_loaded, reload_wanted; /* while it was recovered: done afterwards */
	int failure;			   /* of the start after READY; 0: none */
	bool history_refused;		   /* it is degraded because its file cannot grow */
	bool mqtt_closing;		   /* by a reload: opened again when closed */
	bool stopping;
};

/* assemble.c: makes what core consists of and connects it: commits -> history, alerts. 0 or -errno,
 * logged; what was made is in daemon->core either way. */
int daemon_assemble(struct daemon *daemon);
void daemon_disassemble(struct daemon *daemon);
/* The history is complete: logs what was found in it. */
void daemon_on_history(struct daemon *daemon);
/* The state of alerts is read: starts the evaluation of rules. */
void daemon_on_alerts(void *ctx);

/* daemon.c: all that works on the assembled core, but for its sockets. 0 or -errno. */
int daemon_open_layers(struct daemon *daemon);

/* recover.c: reads the history that was found, while the loop runs; then opens the layers. */
void daemon_begin_recovery(struct daemon *daemon);
/* Logs what ends the start and stops. The error for the caller of daemon_open. */
int daemon_give_up(struct daemon *daemon, int error);

/* reload.c */
int daemon_load_config(const char *path, struct config **ret, char *error, size_t size);
void daemon_configure_apps(struct daemon *daemon);
void daemon_watch_configured(struct daemon *daemon, const struct config *config);
struct scheduler_options daemon_scheduling(const struct config *config);
/* Binds NAME of the run directory with the mode that the configuration says. 0 or -errno. */
int daemon_bind(struct daemon *daemon, const char *name, int type, struct run_socket *ret);
/* facts.config_hash follows the configuration. */
void daemon_show_config(struct daemon *daemon);
void daemon_open_mqtt(struct daemon *daemon);
void daemon_open_statsd(struct daemon *daemon);
void daemon_report_ready(struct daemon *daemon);

/* runfiles.c: opens one of size bytes into daemon->file. 0 or -errno of runfile_open; a failure and
 * a damaged header are recorded in daemon->degraded. */
int daemon_open_run_file(struct daemon *daemon, enum run_file id, size_t size);
/* Records that parts of the contents were discarded as damaged; 0 is fine. */
void daemon_report_damage(struct daemon *daemon, enum run_file id, size_t parts);
/* Closes one that cannot be used after all: it is recorded as one that could not be opened. */
void daemon_lose_run_file(struct daemon *daemon, enum run_file id, int error);
/* From now on, also records files that are removed or replaced: the next process would not find
 * what is mapped. */
void daemon_watch_run_files(struct daemon *daemon);
/* history_memory's reserve of RUN_HISTORY; ctx: the daemon. A refusal is recorded while it lasts.
 */
bool daemon_reserve_history(void *ctx, size_t offset, size_t length);
