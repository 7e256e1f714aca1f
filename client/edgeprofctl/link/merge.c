/* SPDX-License-Identifier: Apache-2.0 */
/* merge.c: joins chunked replies: items are moved, not copied, so that joining a long history is
 * linear in its size. */
#include "client/edgeprofctl/link/merge.h"

#include <string.h>

#include "client/edgeprofctl/link/json.h"

/* Linking an item allocates nothing: its name is its own. */
static void append_items(cJSON *joined, cJSON *part)
{
	while (part->child) {
		cJSON_AddItemToArray(joined, cJSON_DetachItemViaPointer(part, part->child));
	}
}

/* Rows of two boots are two series; without boots both have none. */
static bool same_series(const cJSON *a, const cJSON *b)
{
	return strcmp(json_word(a, "name"), json_word(b, "name")) == 0 &&
	       json_integer(a, "boot_seq") == json_integer(b, "boot_seq");
}

/* A chunk mostly goes on with the series that the one before ended with: that is looked at first.
 * The first item's prev is the last one. */
static cJSON *find_series(cJSON *array, const cJSON *part)
{
	cJSON *item = array->child ? array->child->prev : NULL;
	while (item && !same_series(item, part)) {
		item = item == array->child ? NULL : item->prev;
	}
	return item;
}

void merge_columns(cJSON *joined, cJSON *part)
{
	for (cJSON *column = part->child; column; column = column->next) {
		cJSON *target = cJSON_GetObjectItemCaseSensitive(joined, column->string);
		if (cJSON_IsArray(column) && cJSON_IsArray(target)) {
			append_items(target, column);
		}
	}
}

static void merge_series(cJSON *joined, cJSON *part)
{
	while (part->child) {
		cJSON *item = cJSON_DetachItemViaPointer(part, part->child);
		cJSON *target = json_text(item, "name") ? find_series(joined, item) : NULL;
		if (target) {
			merge_columns(target, item);
			cJSON_Delete(item);
		} else {
			cJSON_AddItemToArray(joined, item);
		}
	}
}

void merge_reply(struct cJSON *joined, struct cJSON *part)
{
	cJSON *next;
	for (cJSON *item = part->child; item; item = next) {
		next = item->next;
		cJSON *target = cJSON_GetObjectItemCaseSensitive(joined, item->string);
		if (cJSON_IsArray(item) && cJSON_IsArray(target)) {
			if (strcmp(item->string, "series") == 0) {
				merge_series(target, item);
			} else {
				append_items(target, item);
			}
		} else if (!target || !cJSON_IsNull(item)) {
			cJSON_DeleteItemFromObjectCaseSensitive(joined, item->string);
			cJSON_AddItemToArray(joined, cJSON_DetachItemViaPointer(part, item));
		}
	}
}
