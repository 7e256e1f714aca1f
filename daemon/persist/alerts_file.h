/* SPDX-License-Identifier: Apache-2.0 */
/* alerts_file.h: keeps alerts across reboots ([history] persist) in DIR/alerts of the state
 * directory. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "daemon/core/core.h"
#include "daemon/persist/persist.h"

struct alerts_reader;
struct alerts_writer;

/* Fills the mapped stores (of alerts_attach_store and alerts_attach_overrides) from DIR/alerts
 * unless they are of this boot already. A thread reads. True: done, or there is nothing to wait
 * for; *ret is NULL. False: the medium takes its time; begin is called on the loop when it has
 * answered, or without an answer after 5 s: the rules are to be evaluated then, not before. */
typedef void alerts_begin(void *ctx);
bool alerts_reader_open(uv_loop_t *loop, const char *dir, void *store, void *overrides,
	const uint8_t boot_id[16], alerts_begin *begin, void *ctx, struct alerts_reader **ret);

/* Stops waiting for the medium: begin is called now. NULL is fine. */
void alerts_reader_give_up(struct alerts_reader *reader);

/* begin is not called; finishes while the loop runs empty. NULL is fine. */
void alerts_reader_close(struct alerts_reader *reader);

/* Checks once a minute whether the state of alerts has changed and writes it, as far as the account
 * of persist permits. -ENOMEM, -ENAMETOOLONG. */
int alerts_writer_open(uv_loop_t *loop, struct core *core, const char *dir, struct persist *persist,
	struct alerts_writer **ret);

/* The last changes are written, for at most 2 s; finishes while the loop runs empty. Before
 * persist_close. NULL is fine. */
void alerts_writer_close(struct alerts_writer *writer);
