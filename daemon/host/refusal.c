/* SPDX-License-Identifier: Apache-2.0 */
/* refusal.c: replies for a daemon that will not run. A client's connection is what started the
 * service; it must not wait for what never comes. */
#include "daemon/host/refusal.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/util/sysops.h"
#include "proto/json_write.h"

enum {
	REPLY_SIZE = 8192, /* 512 characters of which each is escaped */
	CLIENTS_MAX = 256, /* more than a backlog holds */
	REQUEST_MS = 1000, /* for the requests of all: they are sent at once after connect(2) */
};

static size_t reply(char *buffer, size_t size, const char *text)
{
	struct json out;
	json_init(&out, buffer, size);
	json_open(&out, NULL, '{');
	json_string(&out, "error", "io.edgeprof.ConfigurationInvalid");
	json_open(&out, "parameters", '{');
	json_string_opt(&out, "text", text);
	json_close(&out, '}');
	json_close(&out, '}');
	buffer[out.length++] = '\0';
	return out.length;
}

/* Not before the request is there: a client that cannot send it may not look for a reply. It stays
 * unread; what it carries is nothing to wait for. */
static void answer(int fd, const char *text, int wait_ms)
{
	char buffer[REPLY_SIZE];
	struct ucred peer = {.uid = (uid_t)-1};
	socklen_t size = sizeof(peer);
	getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size);
	bool trusted = peer.uid == 0 || peer.uid == geteuid();
	size_t length = reply(buffer, sizeof(buffer), trusted ? text : "");
	poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, wait_ms);
	(void)!send(fd, buffer, length, MSG_DONTWAIT | MSG_NOSIGNAL);
}

void refusal_answer(int fd, const char *text)
{
	if (fd < 0) {
		return;
	}
	uint64_t end_ns = sysops()->now_ns() + REQUEST_MS * UINT64_C(1000000);
	fcntl(fd, F_SETFL, O_NONBLOCK);
	for (int clients = 0; clients < CLIENTS_MAX; clients++) {
		int client = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
		if (client < 0) {
			break;
		}
		uint64_t now_ns = sysops()->now_ns();
		answer(client, text, now_ns < end_ns ? (int)((end_ns - now_ns) / 1000000) : 0);
		close(client);
	}
	close(fd);
}
