/* SPDX-License-Identifier: Apache-2.0 */
/* history_boots.c: joins the series of several boots, which the daemon sends one by one, and lists
 * the boots. People want one curve, and to see where a reboot was. */
#include "client/edgeprofctl/history/history_views.h"

#include <string.h>

#include "client/edgeprofctl/link/merge.h"
#include "client/edgeprofctl/listing.h"
#include "client/edgeprofctl/term/format.h"

uint32_t boots_of(const cJSON *series)
{
	double seq = json_number(series, "boot_seq");
	return seq >= 1 && seq <= UINT32_MAX ? (uint32_t)seq : 0;
}

/* Records that the boot has rows from the first of this series on. */
static void note(struct boots *boots, const cJSON *series)
{
	uint32_t seq = boots_of(series);
	const cJSON *first = json_first(series, "time_us");
	if (seq == 0 || !cJSON_IsNumber(first)) {
		return;
	}
	int64_t from_us = json_whole(first->valuedouble);
	size_t at = boots->count;
	while (at > 0 && boots->boot[at - 1].seq >= seq) {
		at--;
	}
	if (at < boots->count && boots->boot[at].seq == seq) {
		if (from_us < boots->boot[at].from_us) {
			boots->boot[at].from_us = from_us;
		}
		return;
	}
	if (boots->count == BOOTS_SHOWN) {
		if (at == 0) {
			return;
		}
		boots->count--;
		at--;
		memmove(boots->boot, boots->boot + 1, boots->count * sizeof(boots->boot[0]));
	}
	memmove(boots->boot + at + 1, boots->boot + at,
		(boots->count - at) * sizeof(boots->boot[0]));
	boots->boot[at].seq = seq;
	boots->boot[at].from_us = from_us;
	boots->count++;
}

/* A column with the boot of each row. */
static void add_column(cJSON *series)
{
	const uint32_t seq = boots_of(series);
	cJSON_DeleteItemFromObjectCaseSensitive(series, "boot");
	cJSON *column = cJSON_AddArrayToObject(series, "boot");
	for (int i = seq > 0 ? json_count(series, "time_us") : 0; i > 0; i--) {
		cJSON_AddItemToArray(column, cJSON_CreateNumber(seq));
	}
}

static bool same(const cJSON *a, const cJSON *b)
{
	return strcmp(json_word(a, "name"), json_word(b, "name")) == 0 &&
	       strcmp(json_word(a, "unit"), json_word(b, "unit")) == 0;
}

void boots_join(cJSON *reply, struct boots *ret)
{
	cJSON *array = cJSON_GetObjectItemCaseSensitive(reply, "series");
	*ret = (struct boots){.count = 0};
	for (cJSON *series = cJSON_IsArray(array) ? array->child : NULL; series;
		series = series->next) {
		note(ret, series);
		add_column(series);
		cJSON *next;
		for (cJSON *part = series->next; part; part = next) {
			next = part->next;
			if (!same(series, part)) {
				continue;
			}
			note(ret, part);
			add_column(part);
			merge_columns(series, part);
			cJSON_Delete(cJSON_DetachItemViaPointer(array, part));
		}
		cJSON_DeleteItemFromObjectCaseSensitive(series, "boot_seq");
	}
}

void boots_show(struct ctl *ctl, const struct boots *boots)
{
	for (size_t i = 1; i < boots->count; i++) {
		fprintf(ctl->output.stream, "%s%s boot %u from %s%s\n",
			style_on(&ctl->style, TONE_DIM), ctl->style.utf8 ? "┆" : "!",
			(unsigned)boots->boot[i].seq, format_time(boots->boot[i].from_us).text,
			style_off(&ctl->style, TONE_DIM));
	}
}

cJSON *boots_json(const struct boots *boots)
{
	cJSON *array = cJSON_CreateArray();
	for (size_t i = 0; i < boots->count; i++) {
		cJSON *boot = cJSON_CreateObject();
		cJSON_AddNumberToObject(boot, "boot_seq", boots->boot[i].seq);
		cJSON_AddNumberToObject(boot, "from_us", (double)boots->boot[i].from_us);
		cJSON_AddItemToArray(array, boot);
	}
	return array;
}

static void show_boots(struct ctl *ctl, cJSON *reply)
{
	static const struct field fields[] = {
		{"IDX", FIELD_NUMBER, "{~dim}[{index:0}]"},
		{"BOOT", FIELD_NUMBER, "{~bold}[{boot_seq:0}|0]"},
		{"FROM", FIELD_TEXT, "{first_us:time}"},
		{"TO", FIELD_TEXT, "{last_us:time}"},
		{"RECORDED", FIELD_NUMBER, "{recorded_s:s}"},
		{"END", FIELD_TEXT, "[{?end=cut}{~warn}without a stop|{end}]"},
		{"", FIELD_TEXT, "{~dim}[{!clock_synced}clock not set]"},
	};
	cJSON *boot = NULL;
	int index = 1 - json_count(reply, "boots");
	cJSON_ArrayForEach(boot, cJSON_GetObjectItemCaseSensitive(reply, "boots"))
	{
		int64_t first_us = json_integer(boot, "first_us");
		int64_t last_us = json_integer(boot, "last_us");
		cJSON_AddNumberToObject(boot, "index", index++);
		if (first_us > 0 && last_us >= first_us) {
			cJSON_AddNumberToObject(
				boot, "recorded_s", (double)(last_us - first_us) / 1e6);
		}
	}
	listing_show(ctl, reply, "boots", fields, sizeof(fields) / sizeof(fields[0]));
}

int history_boots(struct ctl *ctl)
{
	cJSON *reply;
	int status = ctl_call(ctl, "ListBoots", NULL, true, &reply);
	if (status != CTL_FINE) {
		return status;
	}
	if (!ctl_json(ctl, reply)) {
		show_boots(ctl, reply);
	}
	if (json_count(reply, "boots") == 0) {
		const char *reason = json_text(reply, "reason");
		status = ctl_fail(ctl, CTL_NO_DATA, "%s",
			reason ? reason : "no boots are known; [history] persist = yes keeps them");
	}
	cJSON_Delete(reply);
	return status;
}
