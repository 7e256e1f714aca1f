/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A core filled with literals, a server on it, and clients, all in one thread: a client that waits
 * runs the loop. Replies are collected and given to the independent validator at the end.
 */
#pragma once

#include <cjson/cJSON.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include <uv.h>

#include "daemon/core/alerts/alerts.h"
#include "daemon/core/apps/apps.h"
#include "daemon/core/core.h"
#include "daemon/core/history/history.h"
#include "daemon/core/metrics/metrics.h"
#include "daemon/core/metrics/processes.h"
#include "daemon/core/metrics/sources.h"
#include "daemon/core/metrics/throttle.h"
#include "daemon/core/metrics/wallclock.h"
#include "daemon/core/status/broker_status.h"
#include "daemon/core/status/counters.h"
#include "daemon/core/status/facts.h"
#include "daemon/core/timeline/timeline.h"
#include "daemon/util/accounts.h"
#include "daemon/util/deferred_close.h"
#include "daemon/host/socket.h"
#include "daemon/util/sysops.h"
#include "daemon/varlink/methods/methods.h"
#include "daemon/varlink/server/server.h"
#include "proto/varlink.h"
#include "tests/unit/unit.h"

#define FIXTURE_SECOND 1000000000u

static struct fixture {
	uv_loop_t loop;
	struct core core;
	struct machine_facts facts;
	struct broker_status broker;
	struct counters counters;
	struct throttle_status throttle;
	struct wallclock wall;
	struct processes processes;
	struct source *thermal, *apps_source, *broken;
	struct metric *zone, *absent;
	void *pool;
	struct api_options options;
	struct api *api;
	struct run_socket socket;
	char folder[64], path[100], replies[100];
	FILE *log;
	uint64_t now_ns;
	int refreshes, reloads, reload_result;
} f;

static void fixture_commit(void *ctx, const struct source *source, uint64_t t_ns)
{
	(void)ctx;
	history_append(f.core.history, f.core.metrics, source, t_ns);
	alerts_commit(f.core.alerts, source, t_ns);
}

static void fixture_refresh(void *ctx, uint64_t now_ns)
{
	(void)ctx;
	(void)now_ns;
	f.refreshes++;
}

static int fixture_reload(void *ctx, char *error, size_t size)
{
	(void)ctx;
	f.reloads++;
	snprintf(error, size, "edgeprofd.conf:3: unknown key");
	return f.reload_result;
}

/* One reading of the thermal source, `ago` seconds before now, or after it if negative. */
static inline void fixture_temperature(double celsius, double ago)
{
	metric_set(f.zone, celsius);
	metric_set_null(f.absent, "Permission denied");
	metrics_commit(f.core.metrics, f.thermal, f.now_ns - (uint64_t)(int64_t)(ago * 1e9));
}

static void fixture_core(void)
{
	static const uint8_t boot[16] = {1, 2, 3};
	struct core *c = &f.core;
	enum history_found found;
	f.now_ns = sysops()->now_ns();
	ck_assert_int_eq(accounts_create(&c->accounts), 0);
	ck_assert_int_eq(deferred_close_create(&c->deferred_close), 0);
	ck_assert_int_eq(sources_create(&c->sources), 0);
	ck_assert_int_eq(metrics_create(&c->metrics), 0);
	f.pool = calloc(1, 1 << 20);
	ck_assert_int_eq(history_create(f.pool, 1 << 20, boot, &c->history, &found), 0);
	ck_assert_int_eq(timeline_create(1024, &c->timeline), 0);
	ck_assert_int_eq(alerts_create(c->metrics, c->timeline, &c->alerts), 0);
	ck_assert_int_eq(sources_add(c->sources, "thermal", FIXTURE_SECOND, &f.thermal), 0);
	ck_assert_int_eq(sources_add(c->sources, "apps", FIXTURE_SECOND, &f.apps_source), 0);
	ck_assert_int_eq(sources_add(c->sources, "broken", FIXTURE_SECOND, &f.broken), 0);
	source_report(f.broken, SOURCE_ERROR, "Input/output error");
	struct apps_options apps = {.stage_window = 1024, .frame_window = 300};
	ck_assert_int_eq(apps_create(c->metrics, f.apps_source, c->timeline, &apps, &c->apps), 0);
	struct metrics_observer observer = {.commit = fixture_commit, .ctx = &f};
	ck_assert_int_eq(metrics_observe(c->metrics, observer), 0);
	wallclock_init(&f.wall);
	wallclock_note(&f.wall, f.now_ns, 1700000000000000000, true);
	f.facts = (struct machine_facts){.version = "0.1.0",
		.hostname = "board",
		.os = "Debian",
		.kernel = "6.1",
		.arch = "aarch64",
		.boot_id = "01020300-0000-0000-0000-000000000000",
		.started_ns = f.now_ns - 60 * (uint64_t)FIXTURE_SECOND,
		.cpus = 4,
		.page_size = 16384,
		.run_dir = "/run/edgeprofd"};
	c->processes = &f.processes;
	c->wall = &f.wall;
	c->facts = &f.facts;
	c->broker = &f.broker;
	c->counters = &f.counters;
	c->throttle = &f.throttle;

	struct alert_rule rule = {.name = "hot",
		.metric = "temperature/*",
		.threshold = 75,
		.critical = (double)NAN,
		.clear = (double)NAN,
		.severity = ALERT_WARNING,
		.enabled = true};
	ck_assert_int_eq(alerts_set_rules(c->alerts, &rule, 1, f.now_ns), 0);
	ck_assert_int_eq(
		metrics_add(c->metrics, f.thermal, "temperature/max", UNIT_CELSIUS, &f.zone), 0);
	ck_assert_int_eq(
		metrics_add(c->metrics, f.thermal, "temperature/soc", UNIT_CELSIUS, &f.absent), 0);
	source_report(f.thermal, SOURCE_OK, NULL);
	f.thermal->last_ok_ns = f.now_ns;
	for (int i = 10; i >= 0; i--) {
		fixture_temperature(40 + i, i);
	}
	struct process_row *row = f.processes.row;
	row[0] = (struct process_row){.pid = 42,
		.uid = geteuid(),
		.watch = "cam",
		.comm = "c\xff\x1b[m",
		.state = 'S',
		.cpu_percent = 12.5,
		.user_percent = (double)NAN,
		.system_percent = (double)NAN,
		.rss_bytes = 4096,
		.vms_bytes = 8192,
		.peak_rss_bytes = (double)NAN,
		.threads = 3,
		.t_ns = f.now_ns};
	row[1] = row[0];
	row[1].pid = 43;
	row[1].uid = 4242;
	f.processes.rows = 2;
}

static inline void fixture_open(void)
{
	struct sigaction ignore = {.sa_handler = SIG_IGN};
	sigaction(SIGPIPE, &ignore, NULL);
	memset(&f, 0, sizeof(f));
	snprintf(f.folder, sizeof(f.folder), "/tmp/test-api-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(f.folder));
	ck_assert_int_eq(chmod(f.folder, 0755), 0);
	snprintf(f.path, sizeof(f.path), "%s/io.edgeprof", f.folder);
	snprintf(f.replies, sizeof(f.replies), "%s/replies", f.folder);
	f.log = fopen(f.replies, "w");
	ck_assert_ptr_nonnull(f.log);
	ck_assert_int_eq(uv_loop_init(&f.loop), 0);
	fixture_core();
	f.socket.fd = -1;
	f.options = (struct api_options){.admin_group = "edgeprof-test-absent",
		.methods = &edgeprof_methods,
		.max_connections = 128,
		.max_per_uid = 32,
		.first_frame_timeout_ns = 60 * (uint64_t)FIXTURE_SECOND,
		.refresh = fixture_refresh,
		.reload = fixture_reload};
}

static inline void fixture_bind(void)
{
	ck_assert_int_eq(run_socket_open(&f.socket, f.path, SOCK_STREAM, NULL), 0);
	f.options.listen_fd = f.socket.fd;
}

static inline void fixture_serve(void)
{
	fixture_bind();
	ck_assert_int_eq(api_open(&f.loop, &f.core, &f.options, &f.api), 0);
}

/* Every reply that was seen against the description, by a parser that shares nothing with ours. */
static void fixture_validate(void)
{
	extern char **environ;
	char tool[4096], text[4096];
	const char *source = getenv("EDGEPROF_SOURCE") ? getenv("EDGEPROF_SOURCE") : ".";
	snprintf(tool, sizeof(tool), "%s/tests/tools/varlink_idl.py", source);
	snprintf(text, sizeof(text), "%s/proto/io.edgeprof.varlink", source);
	char *arguments[] = {"python3", tool, "stream", text, NULL};
	posix_spawn_file_actions_t actions;
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, 0, f.replies, O_RDONLY, 0);
	pid_t pid;
	int status = -1;
	ck_assert_int_eq(posix_spawnp(&pid, "python3", &actions, NULL, arguments, environ), 0);
	posix_spawn_file_actions_destroy(&actions);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_msg(status == 0, "a reply does not match the description");
}

static inline void fixture_close(void)
{
	api_close(f.api);
	run_socket_close(&f.socket);
	ck_assert_int_eq(uv_run(&f.loop, UV_RUN_DEFAULT), 0);
	ck_assert_int_eq(uv_loop_close(&f.loop), 0);
	ck_assert_uint_eq(f.counters.api_connections, 0);
	ck_assert_uint_eq(f.counters.api_bytes_queued, 0);
	apps_destroy(f.core.apps);
	alerts_destroy(f.core.alerts);
	timeline_destroy(f.core.timeline);
	history_destroy(f.core.history);
	metrics_destroy(f.core.metrics);
	sources_destroy(f.core.sources);
	deferred_close_destroy(f.core.deferred_close);
	accounts_destroy(f.core.accounts);
	free(f.pool);
	fclose(f.log);
	fixture_validate();
	unlink(f.replies);
	ck_assert_int_eq(rmdir(f.folder), 0);
}

/* A client's socket. */
static inline int client_open(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	memcpy(address.sun_path, f.path, strlen(f.path) + 1);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	ck_assert_int_ge(fd, 0);
	while (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0) {
		ck_assert_int_eq(errno, EAGAIN);
		uv_run(&f.loop, UV_RUN_ONCE);
	}
	return fd;
}

static inline void client_send(int fd, const char *bytes, size_t length)
{
	while (length > 0) {
		ssize_t n = send(fd, bytes, length, MSG_NOSIGNAL);
		if (n < 0) {
			if (errno != EAGAIN) {
				return; /* the server has closed: what follows shows it */
			}
			uv_run(&f.loop, UV_RUN_ONCE);
			continue;
		}
		bytes += n;
		length -= (size_t)n;
	}
}

/* A message with its NUL. */
static inline void client_say(int fd, const char *text)
{
	client_send(fd, text, strlen(text) + 1);
}

/* Runs the loop until the socket has something or its end. */
static inline void client_wait(int fd)
{
	struct pollfd pollfd = {.fd = fd, .events = POLLIN};
	/* not UV_RUN_ONCE: a thread may close the socket, which is no event of the loop */
	while (poll(&pollfd, 1, 0) == 0) {
		uv_run(&f.loop, UV_RUN_NOWAIT);
		poll(&pollfd, 1, 1);
	}
}

/* The next message, NULL at the end of the stream. free(3) it. */
static inline char *client_hear(int fd)
{
	size_t size = 0;
	char *text = malloc(PROTO_FRAME_MAX);
	for (;;) {
		char *nul;
		client_wait(fd);
		ssize_t n = recv(fd, text + size, PROTO_FRAME_MAX - size, MSG_PEEK);
		if (n <= 0) {
			free(text);
			return NULL;
		}
		nul = memchr(text + size, '\0', (size_t)n);
		size_t take = nul ? (size_t)(nul - text) + 1 - size : (size_t)n;
		ck_assert_int_eq(recv(fd, text + size, take, 0), (ssize_t)take);
		size += take;
		if (nul) {
			return text;
		}
		/* a message longer than a frame may be */
		ck_assert_uint_lt(size, PROTO_FRAME_MAX);
	}
}

/* The next message, parsed and kept for the validator. NULL at the end. */
static inline cJSON *client_reply(int fd, const char *method)
{
	char *text = client_hear(fd);
	if (!text) {
		return NULL;
	}
	cJSON *reply = NULL;
	const char *reason = "";
	int r = proto_json_parse_reply(text, strlen(text), &reply, &reason);
	ck_assert_msg(r == 0, "%s: %s", reason, text);
	if (strncmp(method, "org.", 4) != 0) {
		fprintf(f.log, "%s\t%s\n", method, text);
	}
	free(text);
	return reply;
}

/* Calls a method of ours; extra is ',"more":true' or "". parameters NULL: none. */
static inline cJSON *client_call(
	int fd, const char *method, const char *parameters, const char *extra)
{
	char text[4096];
	snprintf(text, sizeof(text), "{\"method\":\"%s%s\"%s%s%s}",
		strchr(method, '.') ? "" : "io.edgeprof.", method,
		parameters ? ",\"parameters\":" : "", parameters ? parameters : "", extra);
	client_say(fd, text);
	return client_reply(fd, method);
}

/* One call on a connection of its own: its parameters, detached. */
static inline cJSON *ask(const char *method, const char *parameters)
{
	int fd = client_open();
	cJSON *reply = client_call(fd, method, parameters, "");
	ck_assert_ptr_nonnull(reply);
	ck_assert_msg(!cJSON_HasObjectItem(reply, "error"), "%s: %s", method,
		cJSON_GetStringValue(cJSON_GetObjectItem(reply, "error")));
	ck_assert(!cJSON_HasObjectItem(reply, "continues"));
	cJSON *result = cJSON_DetachItemFromObjectCaseSensitive(reply, "parameters");
	cJSON_Delete(reply);
	close(fd);
	return result;
}

/* "error field=text" of a refused call; static storage. */
static inline const char *ask_error(const char *method, const char *parameters)
{
	static char text[1024];
	int fd = client_open();
	cJSON *reply = client_call(fd, method, parameters, "");
	ck_assert_ptr_nonnull(reply);
	const char *error = cJSON_GetStringValue(cJSON_GetObjectItem(reply, "error"));
	ck_assert_ptr_nonnull(error);
	int n = snprintf(text, sizeof(text), "%s", strrchr(error, '.') + 1);
	const cJSON *parameter;
	cJSON_ArrayForEach(parameter, cJSON_GetObjectItem(reply, "parameters"))
	{
		char *value = cJSON_PrintUnformatted(parameter);
		n += snprintf(
			text + n, sizeof(text) - (size_t)n, " %s=%s", parameter->string, value);
		free(value);
	}
	cJSON_Delete(reply);
	close(fd);
	return text;
}

static inline const cJSON *get(const cJSON *object, const char *name)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);
	ck_assert_msg(item != NULL, "no field %s", name);
	return item;
}

static inline double number(const cJSON *object, const char *name)
{
	const cJSON *item = get(object, name);
	ck_assert_msg(cJSON_IsNumber(item), "%s is no number", name);
	return item->valuedouble;
}

static inline const char *string(const cJSON *object, const char *name)
{
	const char *text = cJSON_GetStringValue(get(object, name));
	ck_assert_msg(text != NULL, "%s is no string", name);
	return text;
}

static inline int count(const cJSON *object, const char *name)
{
	return cJSON_GetArraySize(get(object, name));
}

/* The item of an array whose field has this text. */
static inline const cJSON *item_of(
	const cJSON *object, const char *array, const char *field, const char *text)
{
	const cJSON *item;
	cJSON_ArrayForEach(item, get(object, array))
	{
		if (strcmp(string(item, field), text) == 0) {
			return item;
		}
	}
	ck_abort_msg("no %s with %s %s", array, field, text);
	return NULL;
}
