/* SPDX-License-Identifier: Apache-2.0 */
/* rundir.h: finds the run directory, where the sockets and the live history are. */
#pragma once

#include <stddef.h>

/* Chooses it (EDGEPROF_RUNTIME_DIR, else /run/edgeprofd as service or root, else
 * $XDG_RUNTIME_DIR/edgeprofd) and makes it, mode 0755, when it is not there. 0; -ENOENT: none of
 * the three applies; -ENAMETOOLONG: a socket's address could not hold it; -EPERM: it is not ours or
 * others may write to it; other -errno of mkdir. path is filled also on failure where known. */
int rundir_make(char *path, size_t size);
