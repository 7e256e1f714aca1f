/* SPDX-License-Identifier: Apache-2.0 */
/* layout.c: stacks panels into one column or two, by the width of the screen. */
#include "client/edgeprofctl/top/layout.h"

enum { TWO_COLUMNS = 100, FRAME = 2, EVENTS_MIN = 8 };

/* The minimum of each panel with its frame. */
static const int minimum[PANELS] = {5, 5, 5, 3, 3};

static int min_of(int a, int b)
{
	return a < b ? a : b;
}

/* Stacks the panels of a column: each gets its minimum while there is space, then what it wants, in
 * that order. The second one, which can use it best, has the rest, else the first. */
static void stack(struct box column, const enum panel *panels, int count, const struct wants *wants,
	struct layout *layout)
{
	int left = column.height, heights[PANELS] = {0};
	for (int i = 0; i < count; i++) {
		int wanted = wants->lines[panels[i]] + FRAME;
		int least = min_of(wanted, minimum[panels[i]]);
		heights[i] = wanted > FRAME && left >= least ? least : 0;
		left -= heights[i];
	}
	for (int i = 0; i < count; i++) {
		int more = wants->lines[panels[i]] + FRAME - heights[i];
		more = heights[i] > 0 && more > 0 ? min_of(more, left) : 0;
		heights[i] += more;
		left -= more;
	}
	heights[heights[1] > 0] += left;
	for (int i = 0, y = column.y; i < count; y += heights[i++]) {
		layout->panels[panels[i]] = (struct box){y, column.x, heights[i], column.width};
	}
}

/* What the first panels of a column want. */
static int height_of(const struct wants *wants, const enum panel *panels, int count)
{
	int sum = 0;
	for (int i = 0; i < count; i++) {
		int lines = wants->lines[panels[i]];
		sum += lines > 0 ? lines + FRAME : 0;
	}
	return sum;
}

void layout_overview(struct box area, const struct wants *wants, struct layout *ret)
{
	static const enum panel one[] = {
		PANEL_SENSORS, PANEL_APPS, PANEL_ALERTS, PANEL_EVENTS, PANEL_PROCESSES};
	static const enum panel sensors[] = {PANEL_SENSORS, PANEL_EVENTS};
	static const enum panel apps[] = {PANEL_APPS, PANEL_PROCESSES, PANEL_ALERTS};
	bool two = area.width >= TWO_COLUMNS;
	int left = height_of(wants, sensors, 1) + EVENTS_MIN, right = height_of(wants, apps, 3);
	int needed = !two ? area.height : left > right ? left : right;
	/* the tiles have their share of the area, and what the panels do not need */
	int strip = area.height >= 44 ? 9 : area.height >= 32 ? 7 : area.height >= 27 ? 5 : 0;
	if (strip > 0) {
		int spare = area.height - needed;
		strip = wants->tiles > 0 ? min_of(spare > strip ? spare : strip, area.height / 2)
					 : 0;
	}
	*ret = (struct layout){.tiles = {area.y, area.x, strip, area.width}};
	area.y += strip;
	area.height -= strip;
	if (!two) {
		stack(area, one, PANELS, wants, ret);
		return;
	}
	struct box half = {area.y, area.x, area.height, area.width / 2};
	stack(half, sensors, 2, wants, ret);
	half.x += half.width;
	half.width = area.width - half.width;
	stack(half, apps, 3, wants, ret);
}
