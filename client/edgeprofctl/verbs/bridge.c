/* SPDX-License-Identifier: Apache-2.0 */
/* bridge.c: joins stdin and stdout with the daemon's socket, for -H on another machine. Bytes are
 * passed on as they come; the end of one direction is passed on and the other one continues. */
#include "client/edgeprofctl/verb.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct direction {
	int from, to;
	size_t begin, end; /* of what is in bytes */
	bool closed;	   /* nothing more comes */
	bool shut;	   /* and that has been passed on */
	char bytes[65536];
};

/* Moves what can be moved now, without blocking: to a writable pipe, only PIPE_BUF bytes never do.
 * False: the reader has gone, or another error. */
static bool move(struct direction *direction, short readable, short writable)
{
	if (readable && direction->begin == direction->end) {
		ssize_t length = read(direction->from, direction->bytes, sizeof(direction->bytes));
		direction->closed = length <= 0;
		direction->begin = 0;
		direction->end = length > 0 ? (size_t)length : 0;
	}
	if (writable && direction->begin < direction->end) {
		size_t left = direction->end - direction->begin;
		ssize_t length = write(direction->to, direction->bytes + direction->begin,
			left < PIPE_BUF ? left : PIPE_BUF);
		direction->begin += length > 0 ? (size_t)length : 0;
		return length >= 0;
	}
	return true;
}

/* Until the daemon's end of stream; its status. */
static int join(struct direction *up, struct direction *down)
{
	while (!down->closed || down->begin < down->end) {
		bool up_full = up->begin < up->end, down_full = down->begin < down->end;
		struct pollfd fds[] = {
			{.fd = up_full || up->closed ? -1 : up->from, .events = POLLIN},
			{.fd = up_full ? up->to : -1, .events = POLLOUT},
			{.fd = down_full ? -1 : down->from, .events = POLLIN},
			/* also without events: its reader may go */
			{.fd = down->to, .events = down_full ? POLLOUT : 0},
		};
		if (poll(fds, sizeof(fds) / sizeof(fds[0]), -1) < 0 && errno != EINTR) {
			return -errno;
		}
		if (!move(up, fds[0].revents, fds[1].revents)) {
			up->begin = up->end; /* the daemon hung up; what it sent before counts */
			up->closed = up->shut = true;
		}
		if (!move(down, fds[2].revents, fds[3].revents) ||
			(fds[3].revents & (POLLERR | POLLHUP))) {
			return 0;
		}
		if (up->closed && up->begin == up->end && !up->shut) {
			up->shut = shutdown(up->to, SHUT_WR) == 0 || errno == ENOTCONN;
		}
	}
	return 0;
}

static int run_bridge(struct ctl *ctl)
{
	static struct direction up, down;
	int fd = ctl_open_local(ctl);
	if (fd < 0) {
		return -fd;
	}
	up.from = STDIN_FILENO;
	up.to = down.from = fd;
	down.to = STDOUT_FILENO;
	int r = join(&up, &down);
	close(fd);
	return r < 0 ? ctl_fail(ctl, CTL_OUTPUT, "%s", strerror(-r)) : CTL_FINE;
}

const struct verb verb_bridge = {"bridge", "",
	"Join stdin and stdout with the daemon's socket; -H runs it over ssh.", "bridge", NULL,
	run_bridge};
