/* SPDX-License-Identifier: Apache-2.0 */
/* registry.h: declares the collectors' tables, one for each line of the list in
 * daemon/collect/meson.build. registry.c lists them in that order, which is that of their names. */
#pragma once

#include "daemon/collect/sched/collector.h"

#define COLLECTOR(name) extern const struct collector_ops collector_##name;
#include "daemon/collect/collectors.h"
#undef COLLECTOR
