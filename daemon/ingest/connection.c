/*
 * Connections on the events socket: a hello within 5 s, then wake-up bytes, never an answer. A
 * closed connection is not a dead process: attachment.c knows better.
 */
#include "daemon/ingest/ingest_private.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/ingest/share.h"
#include "daemon/util/closer.h"
#include "daemon/util/log.h"
#include "daemon/util/seam.h"

static void on_closed(uv_handle_t *handle)
{
	struct connection *connection = handle->data;
	struct ingest *ingest = connection->ingest;
	closer_take_socket(ingest->closer, connection->fd);
	free(connection);
	ingest_handle_closed(ingest);
}

void attachment_close_connection(struct connection *connection)
{
	uv_handle_t *handle = (uv_handle_t *)&connection->poll;
	if (uv_is_closing(handle)) {
		return;
	}
	*connection->prev = connection->next;
	if (connection->next) {
		connection->next->prev = connection->prev;
	}
	connection->ingest->connection_count--;
	uv_close(handle, on_closed);
	struct attachment *attachment = connection->attachment;
	if (attachment) {
		connection->attachment = NULL;
		attachment->connection = NULL;
		attachment_hangup(attachment);
	}
}

static void read_hello(struct connection *connection)
{
	struct ingest *ingest = connection->ingest;
	struct proto_hello hello;
	const char *reason = NULL;
	int memfd;
	int r = hello_receive(connection->fd, ingest->closer, &hello, &memfd, &reason);
	if (r == -EAGAIN) {
		return;
	}
	if (r == 0) {
		r = attachment_create(connection, &hello, memfd, &reason);
		if (r < 0) {
			ingest_refuse(ingest, &connection->peer, hello.app, reason);
		}
	} else if (reason) {
		ingest_refuse(ingest, &connection->peer, NULL, reason);
	}
	if (r < 0) {
		attachment_close_connection(connection);
	}
}

/* Takes wake-up bytes off the socket. False when the connection ended. */
static bool read_wakes(struct connection *connection, bool *woken)
{
	for (unsigned i = 0; i < 16 && !closer_is_full(connection->ingest->closer); i++) {
		struct proto_hello packet;
		const char *reason;
		int memfd;
		int r = hello_receive(
			connection->fd, connection->ingest->closer, &packet, &memfd, &reason);
		if (r == -EAGAIN) {
			return true;
		}
		if (r == -ECONNRESET) {
			return false;
		}
		if (r == 0) { /* a second hello on one connection: not part of the protocol */
			closer_take(connection->ingest->closer, memfd);
		}
		*woken = true;
	}
	return true;
}

static void connection_pause(struct connection *connection)
{
	uv_poll_stop(&connection->poll);
	connection->paused = true;
}

static void on_readable(uv_poll_t *handle, int status, int events)
{
	struct connection *connection = handle->data;
	(void)events;
	if (closer_is_full(connection->ingest->closer)) {
		connection_pause(connection);
		return;
	}
	if (!connection->attachment) {
		if (status < 0) {
			attachment_close_connection(connection);
		} else {
			read_hello(connection);
		}
		return;
	}
	bool woken = false;
	bool alive = status == 0 && read_wakes(connection, &woken);
	uint64_t now_ns = seam()->now_ns();
	if (woken && !ingest_turn(connection->ingest, now_ns)) {
		ingest_drain_soon(connection->ingest);
	} else if (woken && attachment_drain(connection->attachment, now_ns)) {
		ingest_drain_timer(connection->ingest);
	}
	if (!alive) {
		attachment_close_connection(connection);
	} else if (woken && ++connection->wakes > WAKES_MAX) {
		connection_pause(connection);
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

static bool connection_fits(const struct ingest *ingest, uid_t uid)
{
	size_t own = 0;
	for (const struct connection *c = ingest->connections; c; c = c->next) {
		own += c->peer.uid == uid;
	}
	return share_fits(ingest->options.max_connections, own, ingest->connection_count - own, 1,
		ingest_trusts(ingest, uid));
}

static int connection_create(struct ingest *ingest, int fd, const struct peer *peer)
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
	connection->accepted_ns = seam()->now_ns();
	connection->next = ingest->connections;
	connection->prev = &ingest->connections;
	if (connection->next) {
		connection->next->prev = &connection->next;
	}
	ingest->connections = connection;
	ingest->connection_count++;
	r = uv_poll_start(&connection->poll, UV_READABLE | UV_DISCONNECT, on_readable);
	if (r < 0) {
		attachment_close_connection(connection);
	}
	return 0;
}

/* The socket stays readable: don't spin on it. */
static void pause_listening(struct ingest *ingest)
{
	uv_poll_stop(&ingest->listen);
	ingest->listen_paused = true;
}

/* False when no more can be accepted now. */
static bool accept_one(struct ingest *ingest)
{
	int fd = accept4(ingest->listener.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd < 0) {
		if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
			pause_listening(ingest);
			log_warning("events socket: can't accept now: no descriptors or memory");
		}
		return errno == EINTR || errno == ECONNABORTED;
	}
	struct peer peer = {0};
	const char *reason = NULL;
	if (peer_of(fd, &peer) < 0) {
		reason = "the kernel tells no credentials";
	} else if (!connection_fits(ingest, peer.uid)) {
		reason = "too many connections";
	} else if (connection_create(ingest, fd, &peer) < 0) {
		reason = "no memory for the connection";
	}
	if (reason) {
		closer_take_socket(ingest->closer, fd);
		ingest_refuse(ingest, &peer, NULL, reason);
	}
	return true;
}

void connection_accept(struct ingest *ingest)
{
	if (closer_is_full(ingest->closer)) {
		pause_listening(ingest);
		return;
	}
	for (unsigned i = 0; i < 16 && accept_one(ingest); i++) {
	}
}
