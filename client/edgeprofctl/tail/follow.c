/* SPDX-License-Identifier: Apache-2.0 */
/*
 * follow.c: waits for a file to grow. inotify only shortens the wait: whether the file was replaced
 * or truncated is looked at twice a second, which also works where inotify does not (NFS, FUSE).
 */
#include "client/edgeprofctl/tail/follow.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/edgeprofctl/term/screen.h"

enum { LOOK_MS = 500 };

/* Opens what has the name now. */
static int open_path(struct follow *follow)
{
	struct stat status;
	follow->fd = open(follow->path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
	if (follow->fd < 0) {
		return -errno;
	}
	if (fstat(follow->fd, &status) < 0 || !S_ISREG(status.st_mode)) {
		follow_close(follow);
		return -EINVAL;
	}
	follow->changes = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	if (follow->changes >= 0) {
		inotify_add_watch(
			follow->changes, follow->path, IN_MODIFY | IN_MOVE_SELF | IN_ATTRIB);
	}
	return 0;
}

int follow_open(struct follow *follow, const char *path, bool from_start, struct screen *signals)
{
	*follow = (struct follow){.path = path, .signals = signals, .fd = -1, .changes = -1};
	if (!path) {
		follow->fd = STDIN_FILENO;
		return 0;
	}
	int r = open_path(follow);
	if (r == 0 && !from_start) {
		lseek(follow->fd, 0, SEEK_END);
	}
	return r == -ENOENT ? 0 : r;
}

void follow_close(struct follow *follow)
{
	if (follow->path && follow->fd >= 0) {
		close(follow->fd);
	}
	if (follow->changes >= 0) {
		close(follow->changes);
	}
	follow->fd = follow->changes = -1;
}

/* Until there is something to read, at most that long for a file. False: an ending signal came. */
static bool wait_for(struct follow *follow, int milliseconds)
{
	char events[4096];
	struct pollfd polls[] = {{.fd = screen_fd(follow->signals), .events = POLLIN},
		{.fd = follow->path ? follow->changes : follow->fd, .events = POLLIN}};
	poll(polls, 2, follow->path ? milliseconds : -1);
	if (follow->path && polls[1].revents) {
		(void)!read(follow->changes, events, sizeof(events));
	}
	enum screen_event event = polls[0].revents ? screen_next(follow->signals) : SCREEN_UPDATE;
	if (event == SCREEN_STOP) {
		raise(SIGSTOP);
	}
	return event != SCREEN_QUIT;
}

/* At the end of the file: has another one its name, is this one shorter now? True: read again. */
static bool look(struct follow *follow, bool *restarted)
{
	struct stat named, opened;
	if (follow->fd < 0 || fstat(follow->fd, &opened) < 0) {
		return false;
	}
	if (follow->replaced) { /* this was the rest of it */
		follow->replaced = false;
		follow_close(follow);
		return true;
	}
	if (opened.st_size < lseek(follow->fd, 0, SEEK_CUR)) {
		lseek(follow->fd, 0, SEEK_SET);
		*restarted = true;
		return true;
	}
	follow->replaced = stat(follow->path, &named) == 0 &&
			   (named.st_ino != opened.st_ino || named.st_dev != opened.st_dev);
	return follow->replaced;
}

ssize_t follow_read(struct follow *follow, char *bytes, size_t size, bool *restarted)
{
	*restarted = false;
	for (int wait_ms = 0; wait_for(follow, wait_ms);) {
		if (follow->fd < 0 && open_path(follow) == 0) {
			*restarted = true;
		}
		ssize_t got = follow->fd < 0 ? 0 : read(follow->fd, bytes, size);
		if (got > 0 || (got == 0 && !follow->path)) {
			return got;
		}
		if (got < 0 && errno != EINTR && errno != EAGAIN) {
			return -errno;
		}
		wait_ms = follow->path && look(follow, restarted) ? 0 : LOOK_MS;
	}
	return 0;
}
