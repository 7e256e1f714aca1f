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
	 * completion knows APP, COMMAND, FILE, GLOB (of metrics), RECORDING, RULE, SESSION, SOURCE
	 * and TARGET. From PROGRAM on, all words are those of another command line. */
	const char *synopsis;
	const char *summary;		   /* one sentence */
	const char *example;		   /* without "edgeprofctl" */
	const struct option_spec *options; /* NULL: only the common ones */
	/* Queries the daemon, writes the answer to ctl->output and returns the exit status. */
	int (*run)(struct ctl *ctl);
};

/* Renderers that top --plain shares with other verbs: `reply` is the answer of ListMetrics,
 * ListStages, GetFrames, ListAlerts. zones adds the column of thermal zones. */
void show_metrics(
	struct ctl *ctl, const cJSON *reply, bool (*wanted)(const char *name), bool zones);
void show_stages(struct ctl *ctl, const cJSON *reply);
void show_frames(struct ctl *ctl, const cJSON *reply);
void show_alerts(struct ctl *ctl, const cJSON *reply);

/* Performance targets: {"targets": [{"target", "fps_min", "fps_max", "latency_min_ms",
 * "latency_max_ms", "note", "source"}]}, of --targets or what is installed. CTL_NO_INPUT after a
 * message that names the line. */
int targets_read(struct ctl *ctl, cJSON **ret);
