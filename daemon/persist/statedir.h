/* SPDX-License-Identifier: Apache-2.0 */
/* statedir.h: finds the directory of all files that survive a reboot. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <uv.h>

/* Chooses it: configured (unless ""), else $STATE_DIRECTORY (of a service), else as root
 * /var/lib/edgeprofd, else $XDG_STATE_HOME/edgeprofd or ~/.local/state/edgeprofd, where parents is
 * true: the folders above it may be made, too. Makes nothing. 0; -ENOENT: none of them applies;
 * -ENAMETOOLONG. */
int statedir_choose(const char *configured, char *path, size_t size, bool *parents);

/* For the start of the process: whether the directory's medium answers within that time, with
 * whatever it has to say. A thread asks. */
bool statedir_answers(uv_loop_t *loop, const char *dir, unsigned ms);
