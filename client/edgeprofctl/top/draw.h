/* SPDX-License-Identifier: Apache-2.0 */
/* draw.h: declares the functions that draw parts of the picture into boxes. */
#pragma once

#include "client/edgeprofctl/top/view.h"
#include "proto/name.h"

/* A cursor NULL: nothing is selected. */
void draw_header(const struct view *view, const char *note, int ink);
int sensors_count(const struct view *view);
void draw_sensors(struct view *view, struct box box, struct cursor *cursor);
int tiles_count(const struct view *view);
void draw_tiles(const struct view *view, struct box box);
int apps_lines(const struct view *view);
void draw_apps(struct view *view, struct box box, struct cursor *cursor);
void draw_app_tab(struct view *view, struct box box);
void draw_processes(struct view *view, struct box box, struct cursor *cursor);
void draw_alerts(struct view *view, struct box box, struct cursor *cursor);
void draw_events(struct view *view, struct box box, struct cursor *cursor);
void draw_detail(const struct view *view, struct box area);
void draw_help(const struct view *view, struct box area);
/* All between header and status line. */
void draw_tab(struct view *view, struct box area);
