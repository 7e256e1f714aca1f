/* SPDX-License-Identifier: Apache-2.0 */
/* listing.c: makes tables of replies. Verbs describe a table's columns; the cells follow. */
#include "client/edgeprofctl/listing.h"

#include <string.h>

#include "client/edgeprofctl/template.h"

enum { CELL_SIZE = 1024 };

void listing_begin(
	struct listing *listing, struct ctl *ctl, const struct field *fields, size_t count)
{
	listing->ctl = ctl;
	listing->depth = 0;
	listing->fields = fields;
	listing->count = count < LISTING_FIELDS ? count : LISTING_FIELDS;
	for (size_t i = 0; i < listing->count; i++) {
		listing->columns[i] = (struct column){fields[i].title,
			fields[i].kind == FIELD_NUMBER, fields[i].kind == FIELD_LONG};
	}
	table_init(&listing->table, listing->columns, listing->count);
}

static void add_cell(const struct ctl *ctl, struct table *table, const char *template,
	const cJSON *object, enum tone tone, int depth)
{
	char cell[CELL_SIZE];
	struct text text = TEXT_IN(cell);
	text_add(&text, "%*s", 2 * depth, "");
	template_add(&text, template, object, ctl->style.utf8);
	table_add(table, strcmp(cell, "-") == 0 ? TONE_DIM : tone, "%s", cell);
}

void listing_cell(const struct ctl *ctl, struct table *table, const char *template,
	const cJSON *object, enum tone tone)
{
	add_cell(ctl, table, template, object, tone, 0);
}

void listing_add(struct listing *listing, const cJSON *row)
{
	for (size_t i = 0; i < listing->count; i++) {
		const struct field *field = &listing->fields[i];
		if (field->add) {
			field->add(&listing->table, row);
		} else {
			add_cell(listing->ctl, &listing->table, field->template, row,
				field->tone_of ? field->tone_of(row) : field->tone,
				i == 0 ? listing->depth : 0);
		}
	}
}

void listing_lines(const struct ctl *ctl, struct table *table, const cJSON *object,
	const struct line *lines, size_t count)
{
	for (; count > 0; count--, lines++) {
		char value[CELL_SIZE];
		struct text text = TEXT_IN(value);
		template_add(&text, lines->value ? lines->value : "", object, ctl->style.utf8);
		if (text.length == 0 && lines->value) {
			continue;
		}
		listing_cell(ctl, table, lines->name, object, TONE_DIM);
		listing_cell(ctl, table, lines->value ? lines->value : "", object, lines->tone);
		if (table->column_count > 2) {
			listing_cell(ctl, table, lines->note ? lines->note : "", object, TONE_DIM);
		}
	}
}

void listing_text(const struct ctl *ctl, enum tone tone, const char *template, const cJSON *object)
{
	char bytes[CELL_SIZE];
	struct text text = TEXT_IN(bytes);
	template_add(&text, template, object, ctl->style.utf8);
	fprintf(ctl->output.stream, "%s%s%s", style_on(&ctl->style, tone), bytes,
		style_off(&ctl->style, tone));
}

enum tone listing_state(const cJSON *row)
{
	return style_of_state(json_word(row, "state"));
}

void listing_end(struct listing *listing)
{
	ctl_table(listing->ctl, &listing->table);
}

void listing_show(struct ctl *ctl, const cJSON *reply, const char *array,
	const struct field *fields, size_t count)
{
	struct listing listing;
	listing_begin(&listing, ctl, fields, count);
	for (const cJSON *row = json_first(reply, array); row; row = row->next) {
		listing_add(&listing, row);
	}
	listing_end(&listing);
}

int listing_narrow(cJSON *reply, const char *array,
	bool (*wanted)(const cJSON *item, const char *glob), const char *glob)
{
	cJSON *items = cJSON_GetObjectItemCaseSensitive(reply, array), *next;
	int left = 0;
	for (cJSON *item = cJSON_IsArray(items) ? items->child : NULL; item; item = next) {
		next = item->next;
		if (wanted(item, glob)) {
			left++;
		} else {
			cJSON_Delete(cJSON_DetachItemViaPointer(items, item));
		}
	}
	return left;
}
