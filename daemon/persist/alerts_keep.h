/* Alerts across reboots ([history] persist): the file `alerts` of the state directory. */
#pragma once

#include <uv.h>

#include "daemon/core/core.h"
#include "daemon/persist/persist.h"

struct alerts_keep;

/* Looks once a minute whether what alerts remember has changed and writes it, as far as the account
 * of persist allows. -ENOMEM, -ENAMETOOLONG. */
int alerts_keep_open(uv_loop_t *loop, struct core *core, const char *dir, struct persist *persist,
	struct alerts_keep **ret);

/* What changed is written once more, for at most 2 s; finishes while the loop runs empty. Before
 * persist_close. NULL is fine. */
void alerts_keep_close(struct alerts_keep *keep);
