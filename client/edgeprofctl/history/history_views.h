/* history_views: the ways in which edgeprofctl shows history. `reply` is GetHistory's. */
#pragma once

#include "client/edgeprofctl/ctl.h"
#include "client/edgeprofctl/history/history_boots.h"

struct history_options {
	const char *since, *until, *aggregate, *around;
	double step_ms, span_ms; /* 0: not given */
	long max_points, lines;
	bool csv, plot, table, boots;
};

/* A plot of several rows' height for each series, with a line where a boot begins. */
void history_plot(struct ctl *ctl, const cJSON *reply, const struct boots *boots);

/* One line for each time, one column for each series, as many as there is room for. */
void history_table(struct ctl *ctl, const cJSON *reply, const struct boots *boots);

/* What happened around a moment: events, and what left the range it had before. */
int history_around(struct ctl *ctl);

/* Says on stderr what the daemon notes about its answer. */
void history_note(struct ctl *ctl, const cJSON *reply);
