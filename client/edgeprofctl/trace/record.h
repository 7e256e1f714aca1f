/* What the files of the verb `record` share. */
#pragma once

#include "client/edgeprofctl/ctl.h"
#include "client/edgeprofctl/trace/replay.h"

/* One page about ctl->replay. */
int record_show(struct ctl *ctl);
