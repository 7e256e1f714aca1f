/* SPDX-License-Identifier: Apache-2.0 */
/* view.c: filters, sorts and scrolls the lists of the picture, and draws them as tables. */
#include "client/edgeprofctl/top/view.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/edgeprofctl/link/json.h"
#include "client/edgeprofctl/template.h"
#include "client/edgeprofctl/term/text.h"
#include "proto/name.h"
#include "proto/text.h"

enum { REST_MIN = 12, GAP = 2 };

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

void view_empty(const struct view *view, struct box box, enum tone tone, const char *empty)
{
	bool filtered = view->filter[0] != '\0';
	canvas_text(&view->canvas, box.y, box.x, box.width, filtered ? TONE_DIM : tone,
		filtered ? "nothing here matches the filter" : empty);
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

/* The member by its name, to which a '-' may be appended; "frame.fps" is in another object. */
static const cJSON *member_of(const cJSON *row, const char *by)
{
	char name[64];
	bool inner = text_starts_with(by, "frame.");
	by += inner ? sizeof("frame.") - 1 : 0;
	snprintf(name, sizeof(name), "%s", by);
	name[strcspn(name, "-")] = '\0';
	return json_get(inner ? json_get(row, "frame") : row, name);
}

/* What fires before what is pending, the most severe first. */
static int urgency(const cJSON *alert)
{
	const char *severity = json_word(alert, "severity");
	return 4 * (strcmp(json_word(alert, "state"), "firing") != 0) +
	       (strcmp(severity, "critical") == 0	  ? 0
		       : strcmp(severity, "warning") == 0 ? 1
							  : 2);
}

static int compare_rows(const void *a, const void *b, void *ctx)
{
	const char *by = ctx;
	if (strcmp(by, VIEW_URGENCY) == 0) {
		return urgency(*(const cJSON *const *)a) - urgency(*(const cJSON *const *)b);
	}
	const cJSON *x = member_of(*(const cJSON *const *)a, by);
	const cJSON *y = member_of(*(const cJSON *const *)b, by);
	if (!x || !y) {
		return !x - !y; /* unknown numbers are last */
	}
	int way = text_ends_with(by, "-") ? -1 : 1;
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
	while (sorts[orders]) {
		orders++;
	}
	const char *by = sorts[sort % orders];
	if (by[0] != '\0') {
		qsort_r(ret, count, sizeof(*ret), compare_rows, (void *)by);
	}
	return count;
}

/* Draws a row, NULL: the titles. The column without a width has what the others leave. */
static void draw_row(const struct view *view, int y, struct box box,
	const struct grid_column *columns, size_t count, int rest, const cJSON *row)
{
	int x = box.x;
	for (size_t i = 0; i < count; i++) {
		int width = columns[i].width == 0 ? rest : abs(columns[i].width);
		char bytes[512];
		struct text text = TEXT_IN(bytes);
		if (row) {
			template_add(&text, columns[i].template, row, view->canvas.style.utf8);
		} else {
			text_add(&text, "%s", columns[i].title);
		}
		int ink = !row || strcmp(bytes, "-") == 0 ? TONE_DIM : TONE_NONE;
		if (columns[i].width < 0) {
			canvas_right(&view->canvas, y, x, width, ink, bytes);
		} else {
			canvas_text(&view->canvas, y, x, width, ink, bytes);
		}
		x += width + GAP;
	}
}

void grid_draw(struct view *view, struct box box, const struct grid_column *columns, size_t count,
	const cJSON *const *rows, size_t row_count, struct cursor *cursor)
{
	struct cursor still = {0};
	int rest = box.width, header = box.height > 1;
	size_t fit = 0;
	for (; fit < count; fit++) {
		int more = columns[fit].width == 0 ? 0 : GAP + abs(columns[fit].width);
		if (rest - more < REST_MIN) {
			break;
		}
		rest -= more;
	}
	struct cursor *at = cursor ? cursor : &still;
	cursor_fit(at, (int)row_count, box.height - header);
	if (header) {
		draw_row(view, box.y, box, columns, fit, rest, NULL);
	}
	for (int line = header; line < box.height; line++) {
		int index = at->offset + line - header, y = box.y + line;
		if (index >= (int)row_count) {
			break;
		}
		draw_row(view, y, box, columns, fit, rest, rows[index]);
		if (cursor && index == at->selected) {
			view->selected = rows[index];
			canvas_select(&view->canvas, y, box.x - 1, box.width + 2);
		}
	}
}

void view_parts(const struct view *view, struct box box, bool dots, const char *const *templates,
	size_t count, const cJSON *object)
{
	const struct canvas *canvas = &view->canvas;
	const char *between = !dots ? "  " : canvas->style.utf8 ? " · " : " | ";
	int used = 0, gap = 0;
	for (size_t i = 0; i < count; i++) {
		char bytes[256];
		struct text text = TEXT_IN(bytes);
		template_add(&text, templates[i], object, canvas->style.utf8);
		enum tone tone = style_take(bytes, TONE_NONE);
		int width = (int)text_width(bytes);
		if (width == 0 || (used > 0 && used + gap + width > box.width)) {
			continue;
		}
		canvas_text(canvas, box.y, box.x + used, gap, INK_TRACK, between);
		width = width < box.width ? width : box.width;
		canvas_text(canvas, box.y, box.x + used + gap, width, tone, bytes);
		used += gap + width;
		gap = (int)text_width(between);
	}
}
