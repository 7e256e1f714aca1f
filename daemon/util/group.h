/* group.h: finds groups of users by name. */
#pragma once

#include <sys/types.h>

/* -ENOENT, -ENOMEM, other -errno of reading. May wait for the system's name service when
 * /etc/group has no such group. */
int group_find(const char *name, gid_t *ret);
