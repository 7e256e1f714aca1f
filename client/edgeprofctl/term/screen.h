/* SPDX-License-Identifier: Apache-2.0 */
/*
 * screen.h: manages the terminal while watch runs (alternate screen, no echo, no cursor), and waits
 * for the next update, a key or a signal. Without a terminal only the waiting works. screen_close
 * restores everything, also when a signal ended the program.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct screen;

enum screen_event { SCREEN_UPDATE, SCREEN_REDRAW, SCREEN_QUIT };

int screen_open(bool tty, struct screen **ret); /* -ENOMEM or of signalfd(2) */
void screen_close(struct screen *screen);

/* Waits until the time is over (SCREEN_UPDATE), the size changed or the process was continued
 * (SCREEN_REDRAW), or q, Ctrl-C or an ending signal came (SCREEN_QUIT). */
enum screen_event screen_wait(struct screen *screen, uint64_t milliseconds);

/* The lines of the text, none wider or more than that (0 = no limit); the last says how many do not
 * fit. `end` follows each line. */
void screen_print(FILE *out, const char *text, unsigned width, unsigned height, const char *end);

/* Shows the text as the whole screen. 0 or of write(2). */
int screen_draw(const char *text, unsigned width, unsigned height);
