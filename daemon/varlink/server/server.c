/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server.c: accepts peers, and decides which connection runs next. Descriptors are accepted here,
 * not by libuv, so that a peer over a limit gets an error and is closed before anything is
 * allocated for it.
 */
#include "daemon/varlink/server/server.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/core/metrics/metrics.h"
#include "daemon/core/status/counters.h"
#include "daemon/util/deferred_close.h"
#include "daemon/util/log.h"
#include "daemon/util/parse.h"
#include "daemon/util/sysops.h"
#include "daemon/varlink/server/peer.h"
#include "daemon/varlink/server/private.h"

enum {
	ACCEPTS_PER_TURN = 16,
	BACKLOG = 128,
	RESERVED = 8, /* connections for root and the admin group */
	RETRY_MS = 1000,
};

/* Of calls in an iteration of the loop; the last of them may go beyond. */
#define TURN_NS UINT64_C(500000)

double *api_scratch(struct api *api, size_t count)
{
	if (count > api->scratch_count) {
		double *scratch = mem_calloc(count, sizeof(*scratch));
		if (!scratch) {
			return NULL;
		}
		free(api->scratch);
		api->scratch = scratch;
		api->scratch_count = count;
	}
	return api->scratch;
}

/* Of the user who had least of the loop lately, the connection that has waited for longest. */
static struct api_connection *next_ready(const struct api *api)
{
	struct api_connection *c, *next = NULL;
	uint64_t least_ns = 0;
	LIST_FOREACH(c, &api->list, link)
	{
		uint64_t served_ns = accounts_served(c->account, uv_now(api->loop));
		if (c->ready && !c->closing &&
			(!next || served_ns < least_ns ||
				(served_ns == least_ns && c->served < next->served))) {
			next = c;
			least_ns = served_ns;
		}
	}
	return next;
}

static bool has_time(struct api *api)
{
	iteration_update(&api->used, api->core->counters->iterations, uv_now(api->loop));
	return api->used.used < TURN_NS;
}

static void serve(struct api *api, struct api_connection *connection)
{
	uint64_t from_ns = sysops()->now_ns();
	connection->served = ++api->served;
	connection_run(connection);
	uint64_t took_ns = sysops()->now_ns() - from_ns;
	api->used.used += took_ns;
	accounts_charge(connection->account, uv_now(api->loop), took_ns);
}

static void on_turn(uv_idle_t *idle)
{
	struct api *api = idle->data;
	struct api_connection *c;
	uv_idle_stop(idle);
	if (api->some_blocked) {
		api->some_blocked = false;
		LIST_FOREACH(c, &api->list, link)
		{
			c->ready = c->ready || c->blocked;
		}
	}
	while (has_time(api) && (c = next_ready(api))) {
		serve(api, c);
	}
	if (next_ready(api)) {
		api_wake(api);
	}
}

void api_serve(struct api *api, struct api_connection *connection)
{
	if (has_time(api) && !uv_is_active((uv_handle_t *)&api->turn)) {
		serve(api, connection);
	} else {
		connection_wake(connection);
	}
}

void api_wake(struct api *api)
{
	if (!api->closing) {
		uv_idle_start(&api->turn, on_turn);
	}
}

/* What the peer has sent already may carry descriptors, where the kernel lets them through. */
static void reject(struct api *api, struct account *account, int fd)
{
	if (api->descriptors_refused) {
		close(fd);
	} else {
		deferred_close_socket(api->core->deferred_close, account, fd);
	}
}

static void refuse(
	struct api *api, int fd, struct account *account, uid_t uid, const char *what, size_t limit)
{
	char buffer[512];
	struct json out;
	json_init(&out, buffer, sizeof(buffer));
	reply_limit(&out, what, limit);
	reply_finish(&out, false);
	/* a new socket takes this much; if not, the peer just sees the end */
	ssize_t n = send(fd, out.buffer, out.length, MSG_DONTWAIT | MSG_NOSIGNAL);
	reject(api, account, fd);
	api->core->counters->api_refused++;
	log_debug("varlink: connection of uid %u refused: %s (%zu)%s", (unsigned)uid, what, limit,
		n < 0 ? ", without a reply" : "");
}

/* Some connections are reserved for administrators. */
static bool is_admin(const struct api *api, int fd, uid_t uid)
{
	return uid == 0 || uid == geteuid() ||
	       (api->has_admin_gid && peer_in_group(fd, api->admin_gid));
}

static bool has_slot(const struct api *api, const struct account *account, int fd)
{
	size_t max = api->options.max_connections, own = account->api_connections;
	size_t reserved = max > RESERVED ? RESERVED : 0;
	if (api->connections >= max) {
		return false;
	}
	return account->uid == 0 || accounts_fair(max - reserved, own, api->connections, 1) ||
	       (own < RESERVED && is_admin(api, fd, account->uid));
}

static void admit(struct api *api, int fd)
{
	const struct api_options *options = &api->options;
	struct account *account = NULL;
	uid_t uid;
	if (peer_uid(fd, &uid) == 0) {
		account = accounts_of(api->core->accounts, uid, sysops()->now_ns());
	}
	if (!account) {
		reject(api, NULL, fd);
		api->core->counters->api_refused++;
		return;
	}
	if (uid != 0 && account->api_connections >= options->max_per_uid) {
		refuse(api, fd, account, uid, "connections of this user", options->max_per_uid);
		return;
	}
	if (!has_slot(api, account, fd)) {
		refuse(api, fd, account, uid, "connections", options->max_connections);
		return;
	}
	if (!api->descriptors_refused &&
		deferred_close_is_over(api->core->deferred_close, account)) {
		refuse(api, fd, account, uid, "descriptors of this user", DEFERRED_CLOSE_UID_MAX);
		return;
	}
	int r = connection_open(api, fd, uid, account, api->options.first_frame_timeout_ns);
	if (r < 0) {
		api->core->counters->api_refused++;
		log_debug("varlink: connection of uid %u failed: %s", (unsigned)uid, strerror(-r));
	}
}

/* A local connection counts as none. */
static void count_connection(struct api *api, const struct api_connection *connection, int change)
{
	struct counters *counters = api->core->counters;
	if (!connection->local) {
		connection->account->api_connections += (size_t)change;
		api->connections += (size_t)change;
		counters->api_connections = api->connections;
		limit_use(&counters->limits[LIMIT_CONNECTIONS], api->connections);
	}
}

void api_connection_opened(struct api *api, struct api_connection *connection)
{
	LIST_INSERT_HEAD(&api->list, connection, link);
	count_connection(api, connection, 1);
}

static void api_handle_closed(struct api *api)
{
	if (--api->handles > 0 || !LIST_EMPTY(&api->list)) {
		return;
	}
	free(api->scratch);
	free(api->metric_serial);
	free(api);
}

void api_connection_closed(struct api *api, struct api_connection *connection)
{
	LIST_REMOVE(connection, link);
	count_connection(api, connection, -1);
	if (api->closing) {
		/* one handle stands for all connections while the server closes */
		api->handles++;
		api_handle_closed(api);
	}
}

static void on_acceptable(uv_poll_t *poll, int status, int events);

static void on_retry(uv_timer_t *timer)
{
	struct api *api = timer->data;
	uv_poll_start(&api->listener, UV_READABLE, on_acceptable);
}

/* No descriptor left: the spare one lets us close one peer instead of being woken for ever. */
static void shortage(struct api *api)
{
	if (!api->short_of_descriptors) {
		log_warning("varlink: connection refused: out of file descriptors");
		api->short_of_descriptors = true;
	}
	api->core->counters->api_refused++;
	if (api->spare_fd >= 0) {
		close(api->spare_fd);
		int fd = accept4(api->options.listen_fd, NULL, NULL, SOCK_CLOEXEC);
		if (fd >= 0) {
			reject(api, NULL, fd);
		}
		api->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
		return;
	}
	uv_poll_stop(&api->listener);
	uv_timer_start(&api->retry, on_retry, RETRY_MS, 0);
}

static void on_acceptable(uv_poll_t *poll, int status, int events)
{
	struct api *api = poll->data;
	(void)events;
	if (status < 0) {
		return;
	}
	if (!api->descriptors_refused && deferred_close_is_full(api->core->deferred_close)) {
		uv_poll_stop(&api->listener);
		uv_timer_start(&api->retry, on_retry, RETRY_MS, 0);
		return;
	}
	for (int i = 0; i < ACCEPTS_PER_TURN; i++) {
		int fd = accept4(api->options.listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (fd >= 0) {
			api->short_of_descriptors = false;
			admit(api, fd);
			continue;
		}
		if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
			shortage(api);
			return;
		}
		if (errno != EINTR && errno != ECONNABORTED) {
			return;
		}
	}
}

static void options_fill(struct api *api, const struct api_options *options)
{
	struct api_options *o = &api->options;
	*o = *options;
	o->frame_timeout_ns = o->frame_timeout_ns > 0 ? o->frame_timeout_ns : 30000000000u;
	o->idle_timeout_ns = o->idle_timeout_ns > 0 ? o->idle_timeout_ns : 600000000000u;
	o->stall_timeout_ns = o->stall_timeout_ns > 0 ? o->stall_timeout_ns : 10000000000u;
	const char *admin = options->admin_group ? options->admin_group : "";
	size_t length = strnlen(admin, sizeof(api->admin_name) - 1);
	memcpy(api->admin_name, admin, length);
	o->admin_group = NULL;
	api->has_admin_gid = length > 0 && parse_group(api->admin_name, &api->admin_gid) == 0;
}

/* Also one from socket activation. */
static int start_listening(int fd, bool *refuses_descriptors)
{
	int flags = fcntl(fd, F_GETFL);
	*refuses_descriptors = socket_refuse_fds(fd);
	if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0 ||
		fcntl(fd, F_SETFD, FD_CLOEXEC) < 0 || listen(fd, BACKLOG) < 0) {
		return -errno;
	}
	return 0;
}

int api_open(
	uv_loop_t *loop, struct core *core, const struct api_options *options, struct api **ret)
{
	struct api *api = mem_zalloc(sizeof(*api));
	if (!api) {
		return -ENOMEM;
	}
	api->loop = loop;
	api->core = core;
	api->spare_fd = -1;
	api->own.uid = geteuid();
	LIST_INIT(&api->list);
	options_fill(api, options);
	json_init(&api->out, api->out_buffer, sizeof(api->out_buffer));

	int r = -ENOMEM;
	struct limit *limits = api->core->counters->limits;
	limits[LIMIT_CONNECTIONS].max = api->options.max_connections;
	limits[LIMIT_ANSWERS].max = QUEUE_TOTAL_MAX + QUEUE_UID_MAX;
	api->metric_serial = mem_calloc(METRICS_MAX, sizeof(*api->metric_serial));
	if (!api->metric_serial) {
		goto error;
	}
	r = start_listening(options->listen_fd, &api->descriptors_refused);
	r = r < 0 ? r : options->methods->open(api);
	/* uv_poll_init leaves nothing behind when it fails; the others cannot fail */
	r = r < 0 ? r : uv_poll_init(loop, &api->listener, options->listen_fd);
	if (r < 0) {
		goto error;
	}
	uv_timer_init(loop, &api->retry);
	uv_idle_init(loop, &api->turn);
	api->listener.data = api->retry.data = api->turn.data = api;
	api->handles = 3;
	api->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	r = uv_poll_start(&api->listener, UV_READABLE, on_acceptable);
	if (r < 0) {
		api_close(api);
		return r;
	}
	*ret = api;
	return 0;

error:
	api->options.methods->close(api);
	free(api->metric_serial);
	free(api);
	return r;
}

static void on_closed(uv_handle_t *handle)
{
	api_handle_closed(handle->data);
}

void api_close(struct api *api)
{
	if (!api || api->closing) {
		return;
	}
	api->closing = true;
	api->options.methods->close(api);
	uv_close((uv_handle_t *)&api->listener, on_closed);
	uv_close((uv_handle_t *)&api->retry, on_closed);
	uv_close((uv_handle_t *)&api->turn, on_closed);
	if (api->spare_fd >= 0) {
		close(api->spare_fd);
	}
	struct api_connection *c;
	LIST_FOREACH(c, &api->list, link)
	{
		connection_close(c);
	}
}
