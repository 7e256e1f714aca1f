/* What a socket's path in the run directory needs before bind, the same for every kind of socket.
 */
#pragma once

#include <sys/types.h>
#include <sys/un.h>

/* The number of a group. -ENOENT when there is none, other -errno of getgrnam_r(3). */
int socket_path_group(const char *name, gid_t *ret);

/* Removes a socket of this type (SOCK_STREAM …) that nobody answers on. 0 when the path is free
 * now, -EEXIST: something else is there, -EADDRINUSE: somebody answers; other -errno. */
int socket_path_free(const struct sockaddr_un *address, int type);
