/* SPDX-License-Identifier: Apache-2.0 */
/*
 * connection.c: accepts connections on the events socket and reads a hello within 5 s, then wake-up
 * bytes; nothing is ever sent back. A closed connection does not mean that its process has ended.
 */
#include "daemon/ingest/ingest_private.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/core/status/counters.h"
#include "daemon/util/deferred_close.h"
#include "daemon/util/file.h"
#include "daemon/util/log.h"
#include "daemon/util/sysops.h"

enum { HELLOS_PER_ITERATION = 4 /* 0.1 ms each: mapping, files of /proc, first records */ };

static const char TOO_MANY[] = "too many descriptors sent by this user are waiting to be closed";

static void on_closed(uv_handle_t *handle)
{
	struct connection *connection = handle->data;
	struct ingest *ingest = connection->ingest;
	deferred_close_socket(ingest->core->deferred_close, connection->account, connection->fd);
	connection->account->closing--;
	free(connection);
	ingest_handle_closed(ingest);
}

static void note_count(struct ingest *ingest, int change)
{
	ingest->connection_count += (size_t)change;
	limit_use(
		&ingest->core->counters->limits[LIMIT_EVENT_CONNECTIONS], ingest->connection_count);
}

void ingest_disconnect(struct connection *connection)
{
	uv_handle_t *handle = (uv_handle_t *)&connection->poll;
	if (uv_is_closing(handle)) {
		return;
	}
	LIST_REMOVE(connection, link);
	note_count(connection->ingest, -1);
	connection->account->event_connections--;
	connection->account->closing++;
	uv_close(handle, on_closed);
	struct attachment *attachment = connection->attachment;
	if (attachment) {
		connection->attachment = NULL;
		attachment->connection = NULL;
		attachment_on_hangup(attachment);
	}
}

/* What an iteration leaves stays readable, and the next ones go on with those that waited. */
static bool may_read_hello(struct ingest *ingest)
{
	iteration_update(&ingest->hellos, ingest->core->counters->iterations, uv_now(ingest->loop));
	return ingest->hellos.used++ < HELLOS_PER_ITERATION;
}

static void read_hello(struct connection *connection)
{
	struct ingest *ingest = connection->ingest;
	if (!may_read_hello(ingest)) {
		return;
	}
	struct proto_hello hello;
	const char *reason = NULL;
	int memfd;
	int r = hello_receive(connection->fd, ingest->core->deferred_close, connection->account,
		&hello, &memfd, &reason);
	if (r == -EAGAIN) {
		return;
	}
	if (r == 0) {
		r = attachment_create(connection, &hello, memfd, &reason);
		if (r < 0 && reason) {
			ingest_refuse(ingest, &connection->peer, hello.app, reason);
		}
	} else if (reason) {
		ingest_refuse(ingest, &connection->peer, NULL, reason);
	}
	if (r < 0) {
		ingest_disconnect(connection);
	}
}

/* Receives wake-up bytes. False when the connection ended, or sends something else. */
static bool read_wakes(struct connection *connection, bool *woken)
{
	int r = 0;
	for (unsigned i = 0; i < 16 && r == 0; i++) {
		r = hello_receive_wake(connection->fd);
		*woken = *woken || r == 0;
	}
	return r == 0 || r == -EAGAIN;
}

static void connection_pause(struct connection *connection)
{
	uv_poll_stop(&connection->poll);
	connection->paused = true;
}

static void read_attached(struct connection *connection, int status)
{
	struct ingest *ingest = connection->ingest;
	bool woken = false;
	bool alive = status == 0 && read_wakes(connection, &woken);
	if (woken) {
		connection->attachment->due = true;
	}
	if (!alive) {
		ingest_disconnect(connection);
	} else if (woken && ++connection->wakes > WAKES_MAX) {
		connection_pause(connection);
	}
	if (woken) {
		ingest_drain_due(ingest); /* may end attachments, and with them connections */
	}
}

static void cut_off(struct connection *connection)
{
	ingest_refuse(connection->ingest, &connection->peer,
		connection->attachment ? connection->attachment->process->app->name : NULL,
		TOO_MANY);
	ingest_disconnect(connection);
}

static void on_readable(uv_poll_t *handle, int status, int events)
{
	struct connection *connection = handle->data;
	struct deferred_close *deferred = connection->ingest->core->deferred_close;
	(void)events;
	if (deferred_close_is_full(deferred)) {
		connection_pause(connection);
	} else if (deferred_close_is_over(deferred, connection->account)) {
		cut_off(connection);
	} else if (status < 0) {
		ingest_disconnect(connection);
	} else if (connection->attachment) {
		read_attached(connection, status);
	} else {
		read_hello(connection);
	}
}

void connection_resume(struct connection *connection)
{
	connection->wakes = 0;
	if (connection->paused) {
		connection->paused = false;
		uv_poll_start(&connection->poll, UV_READABLE | UV_DISCONNECT, on_readable);
	}
}

static bool connection_fits(const struct ingest *ingest, const struct account *account)
{
	return accounts_fits(ingest->options.max_connections, account->event_connections,
		ingest->connection_count, 1, ingest_trusts(ingest, account->uid));
}

static int connection_create(
	struct ingest *ingest, int fd, const struct peer *peer, struct account *account)
{
	struct connection *connection = mem_zalloc(sizeof(*connection));
	if (!connection) {
		return -ENOMEM;
	}
	int r = uv_poll_init(ingest->loop, &connection->poll, fd);
	if (r < 0) {
		free(connection);
		return r;
	}
	ingest->handles++;
	connection->poll.data = connection;
	connection->ingest = ingest;
	connection->fd = fd;
	connection->peer = *peer;
	connection->account = account;
	account->event_connections++;
	connection->accepted_ns = sysops()->now_ns();
	LIST_INSERT_HEAD(&ingest->connections, connection, link);
	note_count(ingest, 1);
	r = file_watch(uv_backend_fd(ingest->loop), fd);
	r = r < 0 ? r : uv_poll_start(&connection->poll, UV_READABLE | UV_DISCONNECT, on_readable);
	if (r < 0) {
		ingest_disconnect(connection);
	}
	return 0;
}

/* The socket stays readable while nothing can be accepted: polling it would spin. */
static void pause_listening(struct ingest *ingest)
{
	uv_poll_stop(&ingest->listen);
	ingest->listen_paused = true;
}

/* False when no more can be accepted now. */
static bool accept_one(struct ingest *ingest)
{
	int fd = accept4(ingest->options.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd < 0) {
		if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
			pause_listening(ingest);
			log_warning("events socket: cannot accept connections: out of file "
				    "descriptors or memory");
		}
		return errno == EINTR || errno == ECONNABORTED;
	}
	struct peer peer = {0};
	struct deferred_close *deferred = ingest->core->deferred_close;
	struct account *account = NULL;
	const char *reason = NULL;
	if (peer_of(fd, &peer) < 0) {
		reason = "the kernel reports no credentials";
	} else if (!(account = accounts_of(ingest->core->accounts, peer.uid, sysops()->now_ns()))) {
		reason = "too many users";
	} else if (deferred_close_is_over(deferred, account)) {
		reason = TOO_MANY;
	} else if (!connection_fits(ingest, account)) {
		reason = "too many connections";
	} else if (connection_create(ingest, fd, &peer, account) < 0) {
		reason = "no memory for the connection";
	}
	if (reason) {
		deferred_close_socket(deferred, account, fd);
		ingest_refuse(ingest, &peer, NULL, reason);
	}
	return true;
}

void connection_accept(struct ingest *ingest)
{
	if (deferred_close_is_full(ingest->core->deferred_close)) {
		pause_listening(ingest);
		return;
	}
	for (unsigned i = 0; i < 16 && accept_one(ingest); i++) {
	}
}
