/*
 * power/total has one teller at a time, so that nothing counts twice: power (what measures the
 * supply or the board's rails) before pi (what the PMIC feeds) before tegrastats, whichever opens
 * first.
 */
#pragma once

#include <stdbool.h>

#include "daemon/collect/lib/naming.h"

/* Adds power/total, or finds it when it is the source's already. origin: static text. yields: a
 * better teller may come and take it, which retires the metric: ask again before each use. 0 and
 * *ret, NULL when another source tells it or there is no room; or -ENOMEM. */
int power_total_add(struct naming *naming, const char *origin, bool yields, struct metric **ret);
