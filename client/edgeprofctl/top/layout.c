/* SPDX-License-Identifier: Apache-2.0 */
/* layout.c: stacks panels into one, two or three columns, by the width of the screen. */
#include "client/edgeprofctl/top/layout.h"

enum { TWO_COLUMNS = 100, THREE_COLUMNS = 180, FRAME = 2, EVENTS_NEED = 8 };

/* The minimum of each panel with its frame, and of those that one without content keeps. */
static const int minimum[PANELS] = {5, 5, 5, 3, 3};

static int rank_of(enum panel panel)
{
	return panel == PANEL_EVENTS ? 2 : panel == PANEL_APPS ? 1 : 0;
}

/* Stacks the panels of a column: each gets its minimum while there is space, then what it wants, in
 * that order. Events get the rest, else apps, else the last one. */
static void stack(struct box column, const enum panel *panels, int count, const struct wants *wants,
	struct layout *layout)
{
	int left = column.height, heights[PANELS] = {0}, rest = -1;
	for (int i = 0; i < count; i++) {
		int lines = wants->lines[panels[i]];
		int least = lines + FRAME < minimum[panels[i]] ? lines + FRAME : minimum[panels[i]];
		if (lines > 0 && left >= least) {
			heights[i] = least;
			left -= least;
			rest = rest < 0 || rank_of(panels[i]) >= rank_of(panels[rest]) ? i : rest;
		}
	}
	for (int i = 0; i < count; i++) {
		int more = wants->lines[panels[i]] + FRAME - heights[i];
		more = heights[i] == 0 || more < 0 ? 0 : more < left ? more : left;
		heights[i] += more;
		left -= more;
	}
	int y = column.y;
	for (int i = 0; i < count; i++) {
		int height = heights[i] + (i == rest ? left : 0);
		layout->panels[panels[i]] = (struct box){y, column.x, height, column.width};
		y += height;
	}
}

static struct box part_of(struct box area, int x, int width)
{
	return (struct box){area.y, area.x + x, area.height, width};
}

/* The height of the tiles: their share of the area, and what the panels do not need. */
static int tiles_height(struct box area, int needed)
{
	int strip = area.height >= 44 ? 9 : area.height >= 32 ? 7 : area.height >= 27 ? 5 : 0;
	int spare = area.height - needed, most = area.height / 2;
	strip = strip > 0 && spare > strip ? spare : strip;
	return strip > most ? most : strip;
}

static int need(const struct wants *wants, const enum panel *panels, int count)
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
	static const enum panel apps[] = {PANEL_APPS, PANEL_PROCESSES, PANEL_ALERTS, PANEL_EVENTS};
	static const enum panel lists[] = {PANEL_ALERTS, PANEL_EVENTS};
	bool two = area.width >= TWO_COLUMNS, three = area.width >= THREE_COLUMNS;
	int left_need = need(wants, sensors, 1), right_need = need(wants, apps, three ? 2 : 3);
	bool events_left = left_need <= right_need && !three;
	left_need += events_left ? EVENTS_NEED : 0;
	right_need += events_left || three ? 0 : EVENTS_NEED;
	int needed = left_need > right_need ? left_need : right_need;
	needed = two ? needed : area.height;
	*ret = (struct layout){0};
	int strip = wants->tiles > 0 ? tiles_height(area, needed) : 0;
	ret->tiles = (struct box){area.y, area.x, strip, area.width};
	area.y += strip;
	area.height -= strip;
	if (!two) {
		stack(area, one, PANELS, wants, ret);
		return;
	}
	int first = three ? area.width * 3 / 8 : area.width / 2;
	int second = three ? area.width * 3 / 8 : area.width - first;
	stack(part_of(area, 0, first), sensors, events_left ? 2 : 1, wants, ret);
	stack(part_of(area, first, second), apps, three ? 2 : events_left ? 3 : 4, wants, ret);
	if (three) {
		struct box third = part_of(area, first + second, area.width - first - second);
		stack(third, lists, 2, wants, ret);
	}
}
