/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verb.h: describes the commands of edgeprofctl. A verb is one file with a
 * `const struct verb verb_NAME` and a line in meson.build.
 */
#pragma once

#include "client/edgeprofctl/ctl.h"
#include "client/edgeprofctl/options.h"

struct verb {
	const char *name;
	/* "[list] | enable SOURCE": forms separated by " | ", from which the number of arguments
	 * follows. Words in capitals stand for something;
	 * completion knows APP, COMMAND, FILE, GLOB (of metrics), RECORDING, RULE and SOURCE. */
	const char *synopsis;
	const char *summary;		   /* one sentence */
	const char *example;		   /* without "edgeprofctl" */
	const struct option_spec *options; /* NULL: only the common ones */
	/* Queries the daemon, writes the answer to ctl->output and returns the exit status. */
	int (*run)(struct ctl *ctl);
};

/* Renderers that watch shares with other verbs: `reply` is the answer of ListMetrics, ListStages,
 * GetFrames, ListAlerts. zones adds the column of thermal zones. */
void show_metrics(
	struct ctl *ctl, const cJSON *reply, bool (*wanted)(const char *name), bool zones);
void show_stages(struct ctl *ctl, const cJSON *reply);
void show_frames(struct ctl *ctl, const cJSON *reply);
void show_alerts(struct ctl *ctl, const cJSON *reply);
