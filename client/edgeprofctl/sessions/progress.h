/* SPDX-License-Identifier: Apache-2.0 */
/* progress.h: shows how far a session is: a line each 50 frames, and a bar for a terminal.
 * `session` is a row of ListSessions. */
#pragma once

#include <stdint.h>
#include <stdio.h>

#include <cjson/cJSON.h>

#include "client/edgeprofctl/term/style.h"

enum { PROGRESS_FRAMES = 50, PROGRESS_SIZE = 512 };

/* Writes "Frame i/N: x.x fps" for each 50 frames from *shown on; x = 1000 / mean of the last 50. A
 * session without a number of frames has no "/N". */
void progress_lines(const cJSON *session, int64_t *shown, FILE *out);

/* The bar: state, share, time elapsed and left, in less than style->width columns (0: 80). Before
 * the end of the warm-up only the time since the start. */
void progress_bar(
	const cJSON *session, const struct style *style, int64_t now_us, char ret[PROGRESS_SIZE]);

/* Milliseconds until the next line or bar is due. */
uint64_t progress_pause_ms(const cJSON *session);
