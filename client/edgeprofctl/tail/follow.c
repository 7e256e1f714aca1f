/* SPDX-License-Identifier: Apache-2.0 */
/*
 * follow.c: waits for a file to grow. A file that was replaced, truncated or created is opened as
 * what it is now: that is looked at before each read, and twice a second. inotify only shortens
 * the wait, where it works (not with NFS, FUSE).
 */
#include "client/edgeprofctl/tail/follow.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/edgeprofctl/term/screen.h"

enum { LOOK_MS = 500 };

/* Opens what has the name now. */
static int open_file(struct follow *follow)
{
	struct stat status;
	if (follow->fd >= 0) {
		close(follow->fd);
	}
	follow->fd = open(follow->path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
	if (follow->fd < 0) {
		return -errno;
	}
	if (fstat(follow->fd, &status) < 0 || !S_ISREG(status.st_mode)) {
		close(follow->fd);
		follow->fd = -1;
		return -EINVAL;
	}
	inotify_add_watch(follow->changes, follow->path, IN_MODIFY | IN_MOVE_SELF | IN_ATTRIB);
	return 0;
}

int follow_open(struct follow *follow, struct ctl *ctl)
{
	follow->fd = follow->path ? -1 : STDIN_FILENO;
	follow->changes = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	if (screen_open(&follow->signals) < 0) {
		return ctl_fail(ctl, CTL_OUTPUT, "cannot wait for signals");
	}
	int r = follow->path ? open_file(follow) : 0;
	if (r == -ENOENT) {
		ctl_fail(ctl, 0, "waiting for '%s'", follow->path);
	} else if (r < 0) {
		return ctl_fail(ctl, CTL_NO_INPUT, "cannot read '%s': %s", follow->path,
			r == -EINVAL ? "not a regular file" : strerror(-r));
	}
	if (r == 0 && follow->path && !ctl->options.from_start) {
		lseek(follow->fd, 0, SEEK_END);
	}
	return CTL_FINE;
}

void follow_close(struct follow *follow)
{
	screen_close(follow->signals);
	if (follow->path && follow->fd >= 0) {
		close(follow->fd);
	}
	if (follow->changes >= 0) {
		close(follow->changes);
	}
}

/* Until there is something to read, at most that long for a file. False: an ending signal came, or
 * the output was closed. */
static bool wait_for(struct follow *follow, int milliseconds)
{
	char events[4096];
	struct pollfd polls[] = {{.fd = screen_fd(follow->signals), .events = POLLIN},
		{.fd = follow->path ? follow->changes : follow->fd, .events = POLLIN},
		{.fd = follow->output}};
	poll(polls, 3, follow->path ? milliseconds : -1);
	if (follow->path && polls[1].revents) {
		(void)!read(follow->changes, events, sizeof(events));
	}
	enum screen_event event = polls[0].revents ? screen_next(follow->signals) : SCREEN_UPDATE;
	if (event == SCREEN_STOP) {
		raise(SIGSTOP);
	}
	return event != SCREEN_QUIT && !polls[2].revents;
}

/* Another file has the name, or this one is shorter than what was read of it. */
static bool is_stale(const struct follow *follow)
{
	struct stat named, opened;
	if (!follow->path || stat(follow->path, &named) < 0) {
		return false;
	}
	return follow->fd < 0 || fstat(follow->fd, &opened) < 0 || named.st_ino != opened.st_ino ||
	       named.st_dev != opened.st_dev || opened.st_size < lseek(follow->fd, 0, SEEK_CUR);
}

ssize_t follow_read(struct follow *follow, char *bytes, size_t size)
{
	for (int wait_ms = 0; wait_for(follow, wait_ms); wait_ms = LOOK_MS) {
		bool stale = is_stale(follow); /* before the read: it is to be the last one */
		ssize_t got = follow->fd < 0 ? 0 : read(follow->fd, bytes, size);
		if (got > 0 || (got == 0 && !follow->path)) {
			return got;
		}
		if (got < 0 && errno != EINTR && errno != EAGAIN) {
			return -errno;
		}
		if (stale && open_file(follow) == 0) {
			return -ESTALE;
		}
	}
	return 0;
}
