/* Alerts across reboots ([history] persist): the file `alerts` of the state directory. */
#pragma once

#include <uv.h>

#include "daemon/core/core.h"
#include "daemon/persist.h"

struct alerts_keep;

/* Fills the memories of a new boot from DIR/alerts, before alerts_remember. Reads a small file, and
 * waits for it: the rules are judged right afterwards. */
void alerts_keep_load(const char *dir, void *memory, void *holds, const uint8_t boot_id[16]);

/* Looks once a minute whether what alerts remember has changed and writes it, as far as the account
 * of persist allows. -ENOMEM, -ENAMETOOLONG. */
int alerts_keep_open(uv_loop_t *loop, struct core *core, const char *dir, struct persist *persist,
	struct alerts_keep **ret);

/* What changed is written once more; finishes while the loop runs empty. Before persist_close. NULL
 * is fine. */
void alerts_keep_close(struct alerts_keep *keep);
