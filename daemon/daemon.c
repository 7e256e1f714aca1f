/* SPDX-License-Identifier: Apache-2.0 */
/*
 * daemon.c: wires the layers together: what opens, in which order, and what stops when. Data flows
 *
 *     collect, ingest -> core/metrics -> history, alerts -> varlink, publish
 */
#include "daemon/wiring.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/core/archive/boots.h"
#include "daemon/core/status/recordings.h"
#include "daemon/host/bootmark.h"
#include "daemon/host/notify.h"
#include "daemon/host/refusal.h"
#include "daemon/host/rundir.h"
#include "daemon/persist/persist.h"
#include "daemon/persist/statedir.h"
#include "daemon/util/log.h"
#include "daemon/util/sysops.h"
#include "daemon/varlink/methods/methods.h"

enum { STATE_QUICK_MS = 50 };

static void on_watchdog(uv_timer_t *timer)
{
	struct daemon *daemon = timer->data;
	if (!daemon->scheduler || scheduler_healthy(daemon->scheduler, sysops()->now_ns())) {
		notify_state("WATCHDOG=1");
	}
}

static void refresh(void *ctx, uint64_t now_ns)
{
	(void)now_ns;
	ingest_drain(((struct daemon *)ctx)->ingest);
}

static int reload(void *ctx, char *error, size_t size)
{
	return daemon_reload(ctx, error, size);
}

static int record(void *ctx, struct api_record *request)
{
	return recorder_now(((struct daemon *)ctx)->recorder, request);
}

static int session(void *ctx, struct api_session *request)
{
	return session_recorder_request(((struct daemon *)ctx)->sessions, request);
}

static void on_recorded(void *ctx, const struct recording *recording)
{
	struct daemon *daemon = ctx;
	if (daemon->mqtt && !daemon->mqtt_closing) {
		mqtt_recording(daemon->mqtt, recording);
	}
}

/* Before the sockets: it takes its place among the observers, and the list is there. */
static int open_recorder(struct daemon *daemon)
{
	daemon_open_run_file(daemon, RUN_RECORDER, sizeof(struct record_memory));
	/* with persist=yes they survive a reboot, too */
	const char *dir = daemon->run_dir;
	if (daemon->persist && daemon->persist_status.state != PERSIST_DEGRADED &&
		daemon->state_dir[0] != '\0') {
		/* what is there is looked at now */
		if (statedir_answers(daemon->loop, daemon->state_dir, STATE_QUICK_MS)) {
			dir = daemon->state_dir;
		} else {
			log_warning("recordings do not survive a reboot: %s does not respond",
				daemon->state_dir);
		}
	}
	return recorder_open(daemon->loop, &daemon->core, dir, &daemon->config->recorder,
		daemon->file[RUN_RECORDER].data, daemon->boot_id, on_recorded, daemon,
		&daemon->recorder);
}

/* The state directory if it responds, whatever is kept there; else "". */
static void find_state(struct daemon *daemon, char *ret, size_t size)
{
	bool parents;
	if (statedir_choose(daemon->config->history_path, ret, size, &parents) < 0 ||
		!statedir_answers(daemon->loop, ret, STATE_QUICK_MS)) {
		ret[0] = '\0';
	}
}

/* Their files survive a reboot where the state directory exists and can be written. */
static int open_sessions(struct daemon *daemon)
{
	char state[192];
	const char *dir = daemon->run_dir;
	find_state(daemon, state, sizeof(state));
	if (state[0] != '\0' && access(state, W_OK) == 0) {
		dir = state;
	}
	return session_recorder_open(
		daemon->loop, &daemon->core, dir, &daemon->config->sessions, &daemon->sessions);
}

/* Who connects now is answered when the layers behind the sockets are open. */
static int bind_sockets(struct daemon *daemon)
{
	int r = daemon_bind(daemon, "events", SOCK_SEQPACKET, &daemon->events_socket);
	r = r == 0 && listen(daemon->events_socket.fd, SOMAXCONN) < 0 ? -errno : r;
	if (r < 0) {
		log_error("cannot listen on %s/events: %s", daemon->run_dir, strerror(-r));
		return r;
	}
	daemon->varlink_socket.fd = notify_listen_fd();
	if (daemon->varlink_socket.fd < 0) {
		r = daemon_bind(daemon, "io.edgeprof", SOCK_STREAM, &daemon->varlink_socket);
		r = r == 0 && listen(daemon->varlink_socket.fd, SOMAXCONN) < 0 ? -errno : r;
	}
	if (r < 0) {
		log_error("cannot listen on %s/io.edgeprof: %s", daemon->run_dir, strerror(-r));
	} else if (daemon->config->statsd) {
		/* A failure is logged by the layer, which tries again. */
		(void)daemon_bind(daemon, "statsd", SOCK_DGRAM, &daemon->statsd_socket);
	}
	return r;
}

static int open_sockets(struct daemon *daemon)
{
	const struct config *config = daemon->config;
	const struct ingest_options ingest = {
		.fd = daemon->events_socket.fd,
		.owner = daemon->events_socket.owner,
		.sample_interval_ns = config->interval_ns,
		.max_connections = config->max_event_connections,
		.max_mapping_bytes = config->max_mapping_bytes,
	};
	int r = ingest_open(daemon->loop, &daemon->core, &ingest, &daemon->ingest);
	if (r < 0) {
		log_error("cannot listen on %s/events: %s", daemon->run_dir, strerror(-r));
		return r;
	}
	const struct api_options api = {
		.listen_fd = daemon->varlink_socket.fd,
		.admin_group = config->admin_group,
		.methods = &edgeprof_methods,
		.max_connections = config->max_connections,
		.max_per_uid = config->max_connections_per_uid,
		.first_frame_timeout_ns = 5000000000u,
		.refresh = refresh,
		.reload = reload,
		.record = record,
		.session = session,
		.ctx = daemon,
	};
	r = api_open(daemon->loop, &daemon->core, &api, &daemon->api);
	if (r < 0) {
		log_error("cannot listen on %s/io.edgeprof: %s", daemon->run_dir, strerror(-r));
	}
	return r;
}

/* Whatever hinders it, the daemon profiles, and says what it was. */
static void open_persist(struct daemon *daemon, const struct daemon_options *given)
{
	const struct config *config = daemon->config;
	struct persist_options options = {
		.path = config->history_path,
		.size = config->history_persist_bytes,
		.day_bytes = config->history_daily_bytes,
		.period_ns = given->history_period_ns,
		.retry_ns = given->history_retry_ns,
	};
	daemon->core.persist = &daemon->persist_status;
	if (!config->history_persist) {
		return;
	}
	memcpy(options.boot_id, daemon->boot_id, sizeof(options.boot_id));
	int r = persist_open(
		daemon->loop, &daemon->core, &daemon->persist_status, &options, &daemon->persist);
	if (r < 0) {
		daemon->persist_status.state = PERSIST_DEGRADED;
		snprintf(daemon->persist_status.reason, sizeof(daemon->persist_status.reason), "%s",
			strerror(-r));
		log_error("history is not persistent: %s", strerror(-r));
		persist_close(daemon->persist);
		return;
	}
	char dir[192];
	bool parents;
	r = statedir_choose(config->history_path, dir, sizeof(dir), &parents);
	r = r < 0 ? r
		  : alerts_writer_open(daemon->loop, &daemon->core, dir, daemon->persist,
			    &daemon->alerts_writer);
	if (r < 0) {
		log_error("alerts do not survive a reboot: %s", strerror(-r));
	}
}

static void open_watchdog(struct daemon *daemon)
{
	uint64_t period = notify_watchdog_ms();
	if (period > 0) {
		uv_timer_init(daemon->loop, &daemon->watchdog);
		daemon->watchdog.data = daemon;
		daemon->watchdog_open = true;
		uv_timer_start(&daemon->watchdog, on_watchdog, period, period);
	}
}

int daemon_open_layers(struct daemon *daemon)
{
	struct scheduler_options options = daemon_scheduling(daemon->config);
	options.pdeath_exec = daemon->options.pdeath_exec;
	clock_watch_open(daemon->loop, &daemon->core, &daemon->wall, daemon->file[RUN_CLOCK].data,
		&daemon->clock);
	daemon->clock_open = true;
	loopwatch_open(daemon->loop, &daemon->counters, &daemon->loopwatch);
	daemon->loopwatch_open = true;
	daemon_watch_run_files(daemon);
	int r = journal_create(&daemon->core, &daemon->journal);
	if (r == 0) {
		open_persist(daemon, &daemon->options);
	}
	r = r < 0 ? r : reports_open(daemon->loop, &daemon->core, &daemon->reports);
	r = r < 0 ? r : open_recorder(daemon);
	r = r < 0 ? r : open_sessions(daemon);
	r = r < 0 ? r : open_sockets(daemon);
	if (r < 0) {
		return r;
	}
	char state[192];
	find_state(daemon, state, sizeof(state));
	bootmark_begin(daemon->loop, state, &daemon->root, &daemon->facts);
	recorder_set_api(daemon->recorder, daemon->api);
	session_recorder_set_api(daemon->sessions, daemon->api);
	/* before the first sample: it may raise alerts that MQTT is to hear of */
	daemon_open_mqtt(daemon);
	daemon_open_statsd(daemon);
	r = scheduler_open(daemon->loop, &daemon->core, &daemon->root, &daemon->real_root, &options,
		&daemon->scheduler);
	if (r == 0) {
		timeline_add(daemon->core.timeline, sysops()->now_ns(), TIMELINE_DAEMON,
			TIMELINE_INFO, "edgeprofd", "started, version %s", EDGEPROF_VERSION);
		daemon_report_ready(daemon);
	}
	return r;
}

static int no_memory(void)
{
	log_error("cannot start: %s", strerror(ENOMEM));
	return -ENOMEM;
}

/* A client whose connection started the service learns why it ends. */
static int load_config(struct daemon *daemon)
{
	char error[512] = "";
	int r = daemon_load_config(daemon->config_path, &daemon->config, error, sizeof(error));
	if (r == -EINVAL) {
		refusal_answer(notify_listen_fd(), error);
	}
	return r;
}

int daemon_open(uv_loop_t *loop, const struct daemon_options *options, struct daemon **ret)
{
	struct daemon *daemon = mem_zalloc(sizeof(*daemon));
	if (!daemon) {
		return no_memory();
	}
	*ret = daemon;
	daemon->loop = loop;
	daemon->options = *options;
	daemon->root.fd = daemon->real_root.fd = -1;
	daemon->varlink_socket.fd = daemon->events_socket.fd = daemon->statsd_socket.fd = -1;
	if (options->config_path) {
		daemon->config_path = mem_strdup(options->config_path);
		if (!daemon->config_path) {
			return no_memory();
		}
	}
	int r = load_config(daemon);
	if (r < 0) {
		return r;
	}
	log_max_level = daemon->config->log_level;
	r = root_init(&daemon->real_root, NULL);
	r = r < 0 ? r : root_init(&daemon->root, options->root);
	if (r < 0) {
		log_error("cannot open the root directory %s: %s",
			options->root ? options->root : "/", strerror(-r));
		return r;
	}
	r = rundir_make(daemon->run_dir, sizeof(daemon->run_dir));
	if (r < 0) {
		log_error("cannot use the run directory %s: %s",
			daemon->run_dir[0] ? daemon->run_dir
					   : "(none: set EDGEPROF_RUNTIME_DIR or XDG_RUNTIME_DIR)",
			strerror(-r));
		return r == -EINVAL ? -ENOTDIR : r;
	}
	r = daemon_assemble(daemon);
	if (r == 0) {
		daemon_watch_configured(daemon, daemon->config);
		open_watchdog(daemon);
		r = bind_sockets(daemon);
	}
	if (r == 0 && daemon->recovering) {
		daemon_begin_recovery(daemon);
		return 0;
	}
	r = r < 0 ? r : daemon_open_layers(daemon);
	return r < 0 ? daemon_give_up(daemon, r) : 0;
}

void daemon_stop(struct daemon *daemon)
{
	if (daemon->stopping) {
		return;
	}
	daemon->stopping = true;
	notify_state("STOPPING=1");
	if (daemon->scheduler) {
		/* the last word of a boot that ended well */
		timeline_add(daemon->core.timeline, sysops()->now_ns(), TIMELINE_DAEMON,
			TIMELINE_INFO, "edgeprofd", TIMELINE_STOPPED);
		char state[192];
		find_state(daemon, state, sizeof(state));
		bootmark_end(daemon->loop, state, &daemon->facts);
	}
	if (daemon->recovery_open) {
		daemon->recovery_open = false;
		uv_close((uv_handle_t *)&daemon->recovery, NULL);
	}
	if (daemon->run_watch_open) {
		uv_close((uv_handle_t *)&daemon->run_watch, NULL);
	}
	if (daemon->watchdog_open) {
		uv_close((uv_handle_t *)&daemon->watchdog, NULL);
	}
	scheduler_close(daemon->scheduler, NULL, NULL);
	api_close(daemon->api);
	ingest_close(daemon->ingest);
	run_socket_close(&daemon->varlink_socket);
	run_socket_close(&daemon->events_socket);
	alerts_reader_close(daemon->alerts_reader);
	daemon->alerts_reader = NULL;
	alerts_writer_close(daemon->alerts_writer);
	persist_close(daemon->persist);
	statsd_close(daemon->statsd, PROCESS_RELEASED);
	run_socket_close(&daemon->statsd_socket);
	reports_close(daemon->reports);
	session_recorder_close(daemon->sessions);
	recorder_close(daemon->recorder);
	if (daemon->mqtt && !daemon->mqtt_closing) {
		daemon->mqtt_closing = true; /* a recording may still be written */
		mqtt_close(daemon->mqtt, NULL, NULL);
	}
	if (daemon->clock_open) {
		clock_watch_close(&daemon->clock);
	}
	if (daemon->loopwatch_open) {
		loopwatch_close(&daemon->loopwatch);
	}
}

void daemon_destroy(struct daemon *daemon)
{
	if (!daemon) {
		return;
	}
	mqtt_thread_destroy(daemon->mqtt_thread);
	session_recorder_destroy(daemon->sessions);
	recorder_destroy(daemon->recorder);
	reports_destroy(daemon->reports);
	persist_destroy(daemon->persist);
	journal_destroy(daemon->journal);
	daemon_disassemble(daemon);
	root_finish(&daemon->root);
	root_finish(&daemon->real_root);
	free(daemon->config);
	free(daemon->config_path);
	free(daemon);
}
