/* The collectors' tables, one a file; registry.c lists them sorted by name. */
#pragma once

#include "daemon/collect/sched/collector.h"

extern const struct collector_ops collector_collector;
extern const struct collector_ops collector_cpu;
extern const struct collector_ops collector_cpufreq;
extern const struct collector_ops collector_energy;
extern const struct collector_ops collector_fan;
extern const struct collector_ops collector_gpu;
extern const struct collector_ops collector_hwmon;
extern const struct collector_ops collector_load;
extern const struct collector_ops collector_memory;
extern const struct collector_ops collector_modes;
extern const struct collector_ops collector_pi;
extern const struct collector_ops collector_power;
extern const struct collector_ops collector_pressure;
extern const struct collector_ops collector_process;
extern const struct collector_ops collector_self;
extern const struct collector_ops collector_tegrastats;
extern const struct collector_ops collector_thermal;
extern const struct collector_ops collector_throttle;
