/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stage_pass.h: publishes the stages that had events since the last interval, a few at a time: the
 * statistics of a full window cost some 60 µs, and the loop may not be held for 256 of them.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/core/core.h"

struct app;
struct stage;

enum { STAGE_PASS_SEEN = 512 };

struct stage_pass {
	const struct core *core;
	uint64_t now_ns, before_ns; /* this interval and the last */
	size_t app, stage;	    /* the next to look at */
	bool running;
	double *scratch;
	size_t scratch_size;
	size_t seen;
	struct {
		uint32_t serial; /* stage->serial */
		uint32_t count;	 /* its timely */
	} last[STAGE_PASS_SEEN];
};

void stage_pass_init(struct stage_pass *pass, const struct core *core, uint64_t now_ns);
void stage_pass_finish(struct stage_pass *pass);

/* Begins a pass, unless one is running still. */
void stage_pass_begin(struct stage_pass *pass, uint64_t now_ns);

/* The next stage with events, its payload to free(3), or NULL: then running says whether to call
 * again. Visits a limited number of stages in one call. */
char *stage_pass_next(struct stage_pass *pass, const struct app **app, const struct stage **stage,
	size_t *length);
