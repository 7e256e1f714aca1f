/* SPDX-License-Identifier: Apache-2.0 */
/* why.c: shows what was different in a slow frame: where it spent more time than usual frames, and
 * what may have made it do so. */
#include "client/edgeprofctl/verb.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/edgeprofctl/listing.h"
#include "proto/text.h"
#include "proto/varlink.h"

/* Parts of the frame; all else is a cause. */
static bool is_part(const cJSON *difference)
{
	static const char *const parts[] = {"stage ", "between ", "before ", "outside "};
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		if (text_starts_with(json_word(difference, "what"), parts[i])) {
			return true;
		}
	}
	return false;
}

static void show_table(struct ctl *ctl, const cJSON *reply, const char *title, bool parts)
{
	const struct field fields[] = {
		{title, FIELD_LONG, "{what}"},
		{"VALUE", FIELD_NUMBER, "{value:value}"},
		{"USUAL", FIELD_NUMBER, "{usual:value}"},
		{"EXPLAINED ms", FIELD_NUMBER, "{explained_ms:+1}"},
		{"", FIELD_LONG, "{~dim}[{value:is}|{text}]"},
	};
	struct listing listing;
	listing_begin(&listing, ctl, fields, sizeof(fields) / sizeof(fields[0]));
	for (const cJSON *row = json_first(reply, "differences"); row; row = row->next) {
		if (is_part(row) == parts) {
			listing_add(&listing, row);
		}
	}
	fputs(listing.table.cell_count > 0 ? "\n" : "", ctl->output.stream);
	listing_end(&listing);
}

static void show(struct ctl *ctl, const cJSON *reply)
{
	listing_text(ctl,
		"{~bold}[{app}|-]{~none}: [{summary}|frame [{frame:0}|-] took [{took_ms:1}|-] "
		"ms]\n{~dim}at [{start_us:time}|-][{?compared_frames}, compared with "
		"{compared_frames:0} frames around it]{~none}\n",
		reply);
	show_table(ctl, reply, "WHERE", true);
	show_table(ctl, reply, "WHY", false);
}

/* "8841" is a frame's id, "worst" or nothing the slowest one, all else a time. */
static int add_moment(struct ctl *ctl, cJSON *parameters, const char *word)
{
	int64_t time_us = 0;
	if (!word || strcmp(word, "worst") == 0) {
		return CTL_FINE;
	}
	if (word[0] != '\0' && word[strspn(word, "0123456789")] == '\0') {
		errno = 0;
		long long id = strtoll(word, NULL, 10);
		cJSON_AddItemToObject(parameters, "frame", proto_json_integer(id));
		return errno == 0 ? CTL_FINE
				  : ctl_fail(ctl, CTL_USAGE, "frame id '%s' is too large", word);
	}
	int status = ctl_time(ctl, word, &time_us);
	cJSON_AddItemToObject(parameters, "time_us", proto_json_integer(time_us));
	return status;
}

static int run(struct ctl *ctl)
{
	cJSON *reply, *parameters = ctl_parameters("app", ctl_word(ctl, 0));
	int status = add_moment(ctl, parameters, ctl_word(ctl, 1));
	if (status != CTL_FINE) {
		cJSON_Delete(parameters);
		return status;
	}
	status = ctl_call(ctl, "Explain", parameters, false, &reply);
	if (status != CTL_FINE) {
		return status;
	}
	if (!ctl_json(ctl, reply)) {
		show(ctl, reply);
	}
	const char *reason = json_text(reply, "reason");
	status = reason ? ctl_fail(ctl, CTL_NO_DATA, "%s", reason) : CTL_FINE;
	cJSON_Delete(reply);
	return status;
}

const struct verb verb_why = {"why", "APP [FRAME|TIME|worst]",
	"Explain why a frame was slow: the slowest, one by its id, or that of a time.",
	"why cam worst", NULL, run};
