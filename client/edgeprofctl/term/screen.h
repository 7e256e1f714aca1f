/* SPDX-License-Identifier: Apache-2.0 */
/*
 * screen.h: waits for the next update or a signal, for what goes on until it is ended. Signals are
 * read from a descriptor: ordinary code ends the program, whatever ended it.
 */
#pragma once

#include <stdint.h>

struct screen;

enum screen_event { SCREEN_UPDATE, SCREEN_REDRAW, SCREEN_STOP, SCREEN_QUIT };

int screen_open(struct screen **ret); /* -ENOMEM or of signalfd(2) */
void screen_close(struct screen *screen);

/* The descriptor that can be read when there is a signal. */
int screen_fd(const struct screen *screen);
/* The next signal: the size of the terminal changed (SCREEN_REDRAW), the process is to stop
 * (SCREEN_STOP) or to end (SCREEN_QUIT); SCREEN_UPDATE: none. */
enum screen_event screen_next(struct screen *screen);

/* Waits until the time is over (SCREEN_UPDATE), the size changed or the process was continued
 * (SCREEN_REDRAW), or an ending signal came (SCREEN_QUIT). */
enum screen_event screen_wait(struct screen *screen, uint64_t milliseconds);
