/* SPDX-License-Identifier: Apache-2.0 */
/*
 * measured.h: holds what is compared of one run: series of durations and sensors in the order of
 * time, and tags. It is made of a session, recording or live app, or of a baseline file, and is all
 * that a baseline file keeps.
 */
#pragma once

#include <stddef.h>

#include <cjson/cJSON.h>

#include "client/edgeprofctl/ctl.h"
#include "proto/name.h"

enum { MEASURED_NAME_SIZE = PROTO_PATH_SIZE, MEASURED_SERIES_MAX = 1024, MEASURED_RUNS_MAX = 64 };

/* Temperature and clock at the time of a value; CONDITION_NONE: of the run as a whole. */
enum { CONDITION_UNKNOWN = -1, CONDITION_NONE = 0, CONDITIONS = 1 << 16 };

/* "frames" (the time between frames), "total" (of a frame), "stages/NAME", "power", "energy", and
 * with one value "memory/peak_bytes", "model/size_mb", "accuracy". */
struct measured_series {
	char name[MEASURED_NAME_SIZE];
	size_t count;
	double *value, *at_s; /* at_s is 0 in a baseline file */
	int *condition;
};

struct measured {
	char name[MEASURED_NAME_SIZE]; /* of the session, file or app */
	char *error;		       /* of a session that failed; NULL */
	char *incomplete;	       /* why its values are not all; NULL: they are */
	size_t warmup;		       /* slower values at the start that were skipped */
	size_t series_count;
	struct measured_series *series;
	cJSON *tags; /* object of texts: the environment and the tags */
};

/* An exit status after a message; *ret is the caller's to measured_finish() in any case. */
int measured_read(struct ctl *ctl, const char *what, struct measured *ret);
void measured_finish(struct measured *run);

/* The next series, empty; NULL: too many. */
struct measured_series *measured_add(struct measured *run, const char *name, size_t count);
const struct measured_series *measured_series(const struct measured *run, const char *name);

/* Reads a baseline file: up to MEASURED_RUNS_MAX runs. An exit status after a message, CTL_NO_DATA
 * where the file does not exist. The runs are the caller's to measured_finish() in any case. */
int baseline_read(struct ctl *ctl, const char *path, struct measured *ret, size_t *ret_count);

/* Writes one, atomically: of longer series blocks of values only. */
int baseline_write(struct ctl *ctl, const char *path, const struct measured *runs, size_t count);
