/* SPDX-License-Identifier: Apache-2.0 */
/* view.h: declares what the user chose to see of a picture, and the parts it is made of. */
#pragma once

#include "client/edgeprofctl/top/canvas.h"
#include "client/edgeprofctl/live/model.h"

enum tab { TAB_OVERVIEW, TAB_SENSORS, TAB_APPS, TAB_PROCESSES, TAB_EVENTS, TABS };

/* The position in a list: the lines are redrawn from it, and keep it within their number. */
struct cursor {
	int selected, offset, count, sort;
};

struct view {
	struct canvas canvas;
	const struct model *model;
	enum tab tab;
	struct cursor cursors[TABS];
	char filter[64];
	const cJSON *selected; /* what the cursor of the tab is on; NULL: nothing */
};

/* True when a text of the object contains the filter. */
bool view_wants(const struct view *view, const cJSON *object);

/* Why a list has no lines: what `empty` says, unless a filter is why. */
void view_empty(const struct view *view, struct box box, enum tone tone, const char *empty);

/* Moves the cursor's window such that the selected of `count` lines is visible in `height`. */
void cursor_fit(struct cursor *cursor, int count, int height);

/* The rows of a part that the filter wants, by the member that the cursor sorts by: a name that
 * ends in '-' sorts downwards; NULL ends the list, and "" is the daemon's order. */
enum { VIEW_ROWS = 512 };
#define VIEW_URGENCY "urgency" /* of alerts, which have no such member */
size_t view_rows(const struct view *view, enum part part, const char *const *sorts, int sort,
	const cJSON *ret[VIEW_ROWS]);

/* A table. The column of the width 0 takes what the others leave; those that do not fit are
 * dropped, the last one first. */
struct grid_column {
	const char *title;
	int width; /* negative: to the right */
	const char *template;
};
void grid_draw(struct view *view, struct box box, const struct grid_column *columns, size_t count,
	const cJSON *const *rows, size_t row_count, struct cursor *cursor);

/* Draws templates next to each other that fit into the width, a dot between them if `dots`. The
 * first ones are the most important. */
void view_parts(const struct view *view, struct box box, bool dots, const char *const *templates,
	size_t count, const cJSON *object);

/* A cursor NULL: nothing is selected. */
void draw_header(const struct view *view, const char *note, int ink);
/* The lines that all sensors take. */
int sensors_count(const struct view *view);
void draw_sensors(struct view *view, struct box box, struct cursor *cursor);
/* Draws the last minute of the metric. */
void draw_minute(const struct view *view, struct box box, const struct ring *ring);
int tiles_count(const struct view *view);
void draw_tiles(const struct view *view, struct box box);
void draw_apps(struct view *view, struct box box, struct cursor *cursor);
void draw_app_tab(struct view *view, struct box box);
/* The processes, alerts or events. */
void draw_list(struct view *view, struct box box, enum part part, struct cursor *cursor);
const cJSON *list_first(const struct view *view, enum part part); /* NULL: it is empty */
/* All between header and status line. */
void draw_tab(struct view *view, struct box area);
enum { APP_LINES = 3 };
/* Of each app: one more where any has a diagnosis. */
int apps_lines(const struct view *view);
