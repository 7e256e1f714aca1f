/* The listening events socket in the run directory. */
#pragma once

#include <sys/types.h>

struct listener {
	int fd;
	dev_t dev; /* of the path, so that only our own is removed */
	ino_t ino;
	uid_t owner; /* of the folder it is in */
	char path[108];
};

/* Binds a SOCK_SEQPACKET socket. A stale one is replaced. 0; -EADDRINUSE: somebody answers there;
 * -EEXIST: the path is something else; -ENOENT: no such group or folder; -ENAMETOOLONG; other
 * -errno. group NULL: mode 0666, else 0660. */
int listener_open(struct listener *listener, const char *path, const char *group);

/* Closes and removes the path if it is still ours. Idempotent. */
void listener_close(struct listener *listener);
