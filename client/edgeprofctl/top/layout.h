/* SPDX-License-Identifier: Apache-2.0 */
/* layout.h: divides the screen among the boxes of the overview. */
#pragma once

#include "client/edgeprofctl/top/canvas.h"

enum { SCREEN_WIDTH_MIN = 60, SCREEN_HEIGHT_MIN = 20 };

enum panel { PANEL_SENSORS, PANEL_APPS, PANEL_PROCESSES, PANEL_ALERTS, PANEL_EVENTS, PANELS };

struct layout {
	struct box tiles; /* the strip of large graphs */
	struct box panels[PANELS];
};

/* What the panels show, in lines without their frames; tiles: how many graphs there are. A panel
 * that gets no space, or wants none, has the height 0. */
struct wants {
	int lines[PANELS];
	int tiles;
};

void layout_overview(struct box area, const struct wants *wants, struct layout *ret);
