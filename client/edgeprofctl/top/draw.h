/* SPDX-License-Identifier: Apache-2.0 */
/* draw.h: declares the functions that draw parts of the picture into boxes. */
#pragma once

#include "client/edgeprofctl/top/view.h"

/* A cursor NULL: nothing is selected. */
void draw_header(const struct view *view, const char *note, int ink);
/* The lines that all sensors take. */
int sensors_count(const struct view *view);
void draw_sensors(struct view *view, struct box box, struct cursor *cursor);
int tiles_count(const struct view *view);
void draw_tiles(const struct view *view, struct box box);
void draw_apps(struct view *view, struct box box, struct cursor *cursor);
void draw_app_tab(struct view *view, struct box box);
/* The processes, alerts or events. */
void draw_list(struct view *view, struct box box, enum part part, struct cursor *cursor);
/* All between header and status line. */
void draw_tab(struct view *view, struct box area);
enum { APP_LINES = 3 }; /* of an app */
