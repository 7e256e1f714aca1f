/* What must be there before anything opens, because libuv aborts without it. */
#pragma once

#include <uv.h>

/* An event loop that never allocates for a further descriptor. -EMFILE, -ENOMEM; ends the process
 * with a line in the log when libuv itself finds no memory. */
int startup_loop(uv_loop_t *loop);
