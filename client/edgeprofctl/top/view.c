/* SPDX-License-Identifier: Apache-2.0 */
/* view.c: filters, sorts and scrolls the lists of the picture, and draws them as tables. */
#include "client/edgeprofctl/top/view.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "client/edgeprofctl/link/json.h"
#include "client/edgeprofctl/template.h"
#include "proto/name.h"

enum { FIRST_MIN = 12, GAP = 2 };

bool view_wants(const struct view *view, const cJSON *object)
{
	if (view->filter[0] == '\0') {
		return true;
	}
	if (strchr(view->filter, '*') &&
		proto_query_match(view->filter, json_word(object, "name"))) {
		return true;
	}
	for (const cJSON *item = object ? object->child : NULL; item; item = item->next) {
		const char *text = cJSON_GetStringValue(item);
		if (text && strcasestr(text, view->filter)) {
			return true;
		}
	}
	return false;
}

void cursor_fit(struct cursor *cursor, int count, int height)
{
	cursor->count = count;
	int last = count > 0 ? count - 1 : 0;
	cursor->selected = cursor->selected > last ? last : cursor->selected;
	cursor->selected = cursor->selected < 0 ? 0 : cursor->selected;
	if (cursor->offset > cursor->selected) {
		cursor->offset = cursor->selected;
	}
	if (height > 0 && cursor->selected >= cursor->offset + height) {
		cursor->offset = cursor->selected - height + 1;
	}
	int most = count > height ? count - height : 0;
	cursor->offset = cursor->offset > most ? most : cursor->offset;
}

struct order {
	char member[64];
	bool down;
};

/* "a.b" is the member b of the member a. */
static const cJSON *member_of(const cJSON *row, const char *path)
{
	char first[64];
	size_t length = strcspn(path, ".");
	if (path[length] == '\0') {
		return json_get(row, path);
	}
	memcpy(first, path, length);
	first[length] = '\0';
	return json_get(json_get(row, first), path + length + 1);
}

static int compare_rows(const void *a, const void *b, void *ctx)
{
	const struct order *order = ctx;
	const cJSON *x = member_of(*(const cJSON *const *)a, order->member);
	const cJSON *y = member_of(*(const cJSON *const *)b, order->member);
	if (!x || !y) {
		return !x - !y; /* unknown numbers are last */
	}
	int way = order->down ? -1 : 1;
	if (cJSON_IsString(x) && cJSON_IsString(y)) {
		return way * strcmp(x->valuestring, y->valuestring);
	}
	return way * ((x->valuedouble > y->valuedouble) - (x->valuedouble < y->valuedouble));
}

size_t view_rows(const struct view *view, enum part part, const char *const *sorts, int sort,
	const cJSON *ret[VIEW_ROWS])
{
	size_t count = 0;
	int orders = 0;
	for (const cJSON *row = model_first(view->model, part); row && count < VIEW_ROWS;
		row = row->next) {
		if (view_wants(view, row)) {
			ret[count++] = row;
		}
	}
	while (sorts && sorts[orders]) {
		orders++;
	}
	const char *by = orders > 0 ? sorts[sort % orders] : "";
	struct order order = {.down = by[0] != '\0' && by[strlen(by) - 1] == '-'};
	if (by[0] != '\0' && strlen(by) < sizeof(order.member)) {
		memcpy(order.member, by, strlen(by) - order.down);
		qsort_r(ret, count, sizeof(*ret), compare_rows, &order);
	}
	return count;
}

/* How many columns fit, and the width of the first. */
static size_t fit_columns(
	const struct grid_column *columns, size_t count, int width, int *ret_first)
{
	int used = 0;
	size_t fit = 1;
	for (; fit < count && used + GAP + abs(columns[fit].width) + FIRST_MIN <= width; fit++) {
		used += GAP + abs(columns[fit].width);
	}
	*ret_first = width - used;
	return fit;
}

static void draw_row(const struct view *view, int y, struct box box,
	const struct grid_column *columns, size_t fit, int first, const cJSON *row)
{
	int x = box.x;
	for (size_t i = 0; i < fit; i++) {
		int width = i == 0 ? first : abs(columns[i].width);
		char bytes[512];
		struct text text = TEXT_IN(bytes);
		if (row) {
			template_add(&text, columns[i].template, row, view->canvas.style.utf8);
		}
		const char *shown = row ? bytes : columns[i].title;
		int ink = row ? (strcmp(shown, "-") == 0 ? TONE_DIM : TONE_NONE) : TONE_DIM;
		if (columns[i].width < 0) {
			canvas_right(&view->canvas, y, x, width, ink, shown);
		} else {
			canvas_text(&view->canvas, y, x, width, ink, shown);
		}
		x += width + GAP;
	}
}

void grid_draw(struct view *view, struct box box, const struct grid_column *columns, size_t count,
	const cJSON *const *rows, size_t row_count, struct cursor *cursor)
{
	struct cursor still = {0};
	int first, header = box.height > 2;
	size_t fit = fit_columns(columns, count, box.width, &first);
	struct cursor *at = cursor ? cursor : &still;
	cursor_fit(at, (int)row_count, box.height - header);
	if (header) {
		draw_row(view, box.y, box, columns, fit, first, NULL);
	}
	for (int line = 0; line < box.height - header; line++) {
		int index = at->offset + line, y = box.y + header + line;
		if (index >= (int)row_count) {
			break;
		}
		draw_row(view, y, box, columns, fit, first, rows[index]);
		if (cursor && index == at->selected) {
			view->selected = rows[index];
			canvas_select(&view->canvas, y, box.x - 1, box.width + 2);
		}
	}
}
