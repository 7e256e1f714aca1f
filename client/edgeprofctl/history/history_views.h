/* SPDX-License-Identifier: Apache-2.0 */
/* history_views.h: declares the views in which `history` shows a GetHistory reply, and the boots in
 * it. */
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

/* A plot of several rows' height for each series, with a line where a boot begins. */
void history_plot(struct ctl *ctl, const cJSON *reply, const struct boots *boots);

/* One line for each time, boot by boot, one column for each series, as many as there is room for.
 */
void history_table(struct ctl *ctl, const cJSON *reply);

/* What happened around a moment: events, and what left the range it had before. */
int history_around(struct ctl *ctl);

/* Prints the note of the reply, if any, on stderr. */
void history_note(struct ctl *ctl, const cJSON *reply);

/* Makes one series of all entries of the same name and unit, in place, and lists the boots that
 * they are from; none without [history] persist. */
void boots_join(cJSON *reply, struct boots *ret);

/* Lines about where the boots after the first begin. */
void boots_show(struct ctl *ctl, const struct boots *boots);

/* The boots as an array of {"boot_seq", "from_us"}. */
cJSON *boots_json(const struct boots *boots);

/* "boot_seq" of a series; 0 = none. */
uint32_t boots_of(const cJSON *series);

/* The boots that the daemon knows, oldest first. An exit status. */
int history_boots(struct ctl *ctl);
