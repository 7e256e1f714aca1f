/* SPDX-License-Identifier: Apache-2.0 */
/* listing.c: makes tables of replies. Verbs describe a table's columns; the cells follow. */
#include "client/edgeprofctl/listing.h"

#include <stdio.h>
#include <string.h>

#include "client/edgeprofctl/template.h"

enum { TEXT_SIZE = 4096, NUMBER_SIZE = 49 /* of a column that does not shrink */ };

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

static void add_cell(struct table *table, char *cell, enum tone usual)
{
	enum tone tone = style_take(cell, strcmp(cell, "-") == 0 ? TONE_DIM : usual);
	table_add(table, tone, "%s", cell);
}

void listing_cell(
	const struct ctl *ctl, struct table *table, const char *template, const cJSON *object)
{
	char cell[TEXT_SIZE];
	struct text text = TEXT_IN(cell);
	template_add(&text, template, object, ctl->style.utf8);
	add_cell(table, cell, TONE_NONE);
}

void listing_add(struct listing *listing, const cJSON *row)
{
	for (size_t i = 0; i < listing->count; i++) {
		char cell[TEXT_SIZE];
		bool number = listing->fields[i].kind == FIELD_NUMBER;
		struct text text = text_in(cell, number ? NUMBER_SIZE : TEXT_SIZE);
		text_add(&text, "%*s", i == 0 ? 2 * listing->depth : 0, "");
		template_add(&text, listing->fields[i].template, row, listing->ctl->style.utf8);
		add_cell(&listing->table, cell, TONE_NONE);
	}
}

static void add_line(const struct ctl *ctl, struct table *table, const cJSON *object,
	const char *name, const char *values)
{
	char first[TEXT_SIZE], bytes[TEXT_SIZE], empty[1] = "", *rest = bytes;
	struct text text = TEXT_IN(first);
	template_add(&text, name, object, ctl->style.utf8);
	text = TEXT_IN(bytes);
	template_add(&text, values ? values : "", object, ctl->style.utf8);
	if (values ? style_is_blank(bytes) || bytes[0] == '\t' : first[0] == '\0') {
		return;
	}
	add_cell(table, first, TONE_DIM);
	for (size_t i = 1; i < table->column_count; i++) {
		char *cell = strsep(&rest, "\t");
		add_cell(table, cell ? cell : empty, i > 1 ? TONE_DIM : TONE_NONE);
	}
}

void listing_lines(const struct ctl *ctl, struct table *table, const cJSON *object,
	const struct line *lines, size_t count)
{
	for (size_t group; count > 0; count -= group, lines += group) {
		char array[64];
		group = 1;
		if (sscanf(lines->name, "{*%63[a-z_]}", array) != 1) {
			add_line(ctl, table, object, lines->name, lines->values);
			continue;
		}
		size_t skip = strcspn(lines->name, "}") + 1;
		while (group < count && strncmp(lines[group].name, lines->name, skip) == 0) {
			group++;
		}
		const cJSON *first = json_first(object, array);
		for (const cJSON *row = first; row; row = row->next) {
			for (size_t i = 0; i < group; i++) {
				const char *name = lines[i].name + skip;
				bool shown = row == first || group > 1 || strchr(name, '{');
				add_line(ctl, table, row, shown ? name : "", lines[i].values);
			}
		}
	}
}

void listing_facts(struct ctl *ctl, const cJSON *object, const struct line *lines, size_t count)
{
	static const struct column columns[] = {{NULL, false, false}, {NULL, false, false}};
	struct table table;
	table_init(&table, columns, 2);
	listing_lines(ctl, &table, object, lines, count);
	ctl_table(ctl, &table);
}

void listing_text(const struct ctl *ctl, const char *template, const cJSON *object)
{
	char bytes[TEXT_SIZE];
	struct text text = TEXT_IN(bytes);
	template_add(&text, template, object, ctl->style.utf8);
	style_write(&ctl->style, ctl->output.stream, bytes);
	if (text.truncated && strchr(template, '\n')) {
		fputc('\n', ctl->output.stream); /* what comes next has a line of its own */
	}
}

void listing_texts(
	const struct ctl *ctl, const char *template, const cJSON *reply, const char *array)
{
	for (const cJSON *row = json_first(reply, array); row; row = row->next) {
		listing_text(ctl, template, row);
	}
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
