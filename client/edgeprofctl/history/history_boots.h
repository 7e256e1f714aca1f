/* Boots in the answers of GetHistory: which there are, and one series out of the parts of several.
 */
#pragma once

#include <stdint.h>

#include "client/edgeprofctl/ctl.h"

enum { BOOTS_SHOWN = 64 };

/* Where one boot's rows end and the next one's begin. */
struct boots {
	struct {
		uint32_t seq;
		int64_t from_us; /* its first row */
	} boot[BOOTS_SHOWN];	 /* in order; the oldest go when there are more */
	size_t count;
};

/* Makes one series of all entries of the same name and unit, in place, and tells the boots that
 * they are of; none without [history] persist. 0 or -ENOMEM. */
int boots_join(cJSON *reply, struct boots *ret);

/* Lines about where the boots after the first begin. */
void boots_show(struct ctl *ctl, const struct boots *boots);

/* Them as an array of {"boot_seq", "from_us"}. */
cJSON *boots_json(const struct boots *boots);

/* "boot_seq" of a series; 0 = none. */
uint32_t boots_of(const cJSON *series);

/* The boots that the daemon knows, oldest first. An exit status. */
int history_boots(struct ctl *ctl);
