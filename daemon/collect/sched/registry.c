/* All collectors, sorted by name. A new sensor is one line here. */
#include "daemon/collect/sched/registry.h"

#include <string.h>

const struct collector_ops *const collectors[] = {
	&collector_collector,
	&collector_cpu,
	&collector_cpufreq,
	&collector_energy,
	&collector_fan,
	&collector_gpu,
	&collector_hwmon,
	&collector_load,
	&collector_memory,
	&collector_modes,
	&collector_pi,
	&collector_power,
	&collector_pressure,
	&collector_process,
	&collector_self,
	&collector_tegrastats,
	&collector_thermal,
	&collector_throttle,
	NULL,
};

const char *source_option(const struct source_options *options, const char *key)
{
	for (size_t i = 0; options && i < options->keys; i++) {
		if (strcmp(options->key[i].key, key) == 0) {
			return options->key[i].value;
		}
	}
	return "";
}

const struct collector_ops *collector_find(const char *name)
{
	for (size_t i = 0; collectors[i]; i++) {
		if (strcmp(collectors[i]->name, name) == 0) {
			return collectors[i];
		}
	}
	return NULL;
}
