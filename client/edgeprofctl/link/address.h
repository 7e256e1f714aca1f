/* SPDX-License-Identifier: Apache-2.0 */
/* address.h: finds where the daemon listens, and explains why it cannot be reached. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum { ADDRESS_MAX = 2, ADDRESS_SIZE = 108 /* sun_path */ };

struct address_list {
	struct {
		char path[ADDRESS_SIZE];
		int error; /* why it was not this one; 0 = not tried */
	} entries[ADDRESS_MAX];
	size_t count;
};

/* `explicit_path` alone when it is not NULL ("unix:" in front is fine); EDGEPROF_RUNTIME_DIR alone
 * when it is set; else /run/edgeprofd and $XDG_RUNTIME_DIR/edgeprofd. -ENAMETOOLONG. */
int address_search(const char *explicit_path, struct address_list *ret);

/* Connects to the first that answers: a descriptor, or the most specific negative errno: -EACCES
 * when any was refused by its permissions, else that of the last. Blocks up to timeout_ms. */
int address_connect(struct address_list *list, uint64_t timeout_ms);

/* Connects to a socket of that type: a descriptor or a negative errno. */
int address_open(const char *path, int type, uint64_t timeout_ms);

/* The group that may use the socket where permission was denied; "edgeprof" when nothing was denied
 * or the socket can't be seen; NULL when only root may. */
const char *address_group(const struct address_list *list);

/* Says what was tried and what to do, in a few lines. */
void address_explain(const struct address_list *list, int error, FILE *out);
