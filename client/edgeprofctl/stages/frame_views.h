/* Views of the answer of GetFrames, beside the table of all apps in frames.c. */
#pragma once

#include "client/edgeprofctl/ctl.h"

/* What there is to say about one app's frames, line by line. */
void frame_view_detail(struct ctl *ctl, const cJSON *frames);

/* The reply's list of single frames: a row each, their stages in columns. */
void frame_view_list(struct ctl *ctl, const cJSON *reply);

/* The same frame by frame: its stages as bars over time, and what kept it from running. */
void frame_view_waterfall(struct ctl *ctl, const cJSON *reply);
