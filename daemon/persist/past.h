/* The boots before this one, for people: queries reach the archive's file, and the timeline tells
 * what happened then. */
#pragma once

#include <uv.h>

#include "daemon/core/core.h"

struct past;

/* core->archive is there. descriptor: of the archive's file as it is now, -1 = none. -ENOMEM,
 * -ENOSPC. */
int past_open(uv_loop_t *loop, struct core *core, int (*descriptor)(void *ctx), void *ctx,
	struct past **ret);

/* How its reads fare. */
struct archive_reads;
void past_look(const struct past *past, struct archive_reads *ret);

/* The archive has adopted a file: its boots come onto the timeline. */
void past_adopted(struct past *past);

/* After the API: nobody asks any more. Finishes while the loop runs empty. NULL is fine. */
void past_close(struct past *past);
