/* Long text on a terminal goes through $PAGER (split at spaces, no shell), or less. */
#pragma once

#include <stddef.h>

struct style;

/* Shows the text and waits for the pager's end. 0, or -ENOENT when no pager is wanted (short text,
 * no terminal, PAGER empty or cat) or none can be started: then nothing was shown. */
int pager_show(const char *bytes, size_t length, const struct style *style);
