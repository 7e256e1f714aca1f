/* What a socket's path in the run directory needs before bind, the same for every kind of socket.
 */
#pragma once

#include <sys/types.h>
#include <sys/un.h>

/* Removes a socket of this type (SOCK_STREAM …) that nobody answers on. 0 when the path is free
 * now, -EEXIST: something else is there, -EADDRINUSE: somebody answers; other -errno. */
int socket_path_free(const struct sockaddr_un *address, int type);
