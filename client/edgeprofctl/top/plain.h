/* SPDX-License-Identifier: Apache-2.0 */
/* plain.h: declares top without a terminal: blocks of text, or the replies of a subscription. */
#pragma once

#include "client/edgeprofctl/ctl.h"

/* Prints one block for each interval, with JSON one reply a line. Returns the exit status. */
int plain_run(struct ctl *ctl);
