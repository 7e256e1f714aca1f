/* Who is at the other end of a connection, as the kernel tells it. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

struct peer {
	pid_t pid; /* 0 = not visible from here */
	uid_t uid;
	gid_t gid;
};

/* SO_PEERCRED: who called connect(). 0 or -errno. */
int peer_of(int fd, struct peer *ret);

/* A pidfd of the peer (of exactly that process where the kernel has SO_PEERPIDFD); -ESRCH when it
 * is not visible or gone. */
int peer_open(int fd, pid_t pid);

/* How the process of a readable pidfd ended, as wait() would report it. 0; -EAGAIN: the kernel
 * reports it when its parent has waited for it (the pidfd hangs up); -ENODATA: never. */
int peer_exit(int pidfd, const struct peer *peer, int *ret_status);

/* Field 22 of the text of /proc/<pid>/stat; the command in it may hold spaces and parentheses.
 * 0 when there is none. */
uint64_t peer_parse_start(const char *stat);

/* Start time of a process in clock ticks since boot; 0 = unknown. */
uint64_t peer_start_ticks(pid_t pid);
