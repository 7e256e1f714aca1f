/* Who is at the other end of a connection, and whether he may change things. */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

/* uid of the peer when it connected (SO_PEERCRED). 0 or -errno. */
int access_peer_uid(int fd, uid_t *ret);

/* True when the peer's group or one of its supplementary groups is gid. */
bool access_peer_in_group(int fd, gid_t gid);
