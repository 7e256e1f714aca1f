/* What several numbers of one line come to: the load of the cores that are on, and the power of the
 * board, where a rail that feeds the others must never be added to them. */
#include "proto/tegrastats/tegrastats.h"

#include <math.h>
#include <string.h>

double tegrastats_cpu_average_percent(const struct tegrastats *stats)
{
	double sum = 0;
	size_t count = 0;
	for (size_t i = 0; i < stats->cpus; i++) {
		if (stats->cpu[i].online && stats->cpu[i].load_percent != TEGRASTATS_NONE) {
			sum += (double)stats->cpu[i].load_percent;
			count++;
		}
	}
	return count == 0 ? NAN : sum / (double)count;
}

/* Not connected, or measured behind another rail. */
static bool is_left_out(const char *name)
{
	static const char *const names[] = {"NC", "VDDQ_VDD2_1V8AO"};
	size_t length = strcspn(name, "#");
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strlen(names[i]) == length && memcmp(name, names[i], length) == 0) {
			return true;
		}
	}
	return false;
}

double tegrastats_total_mw(const struct tegrastats *stats, const char **source)
{
	static const char *const inputs[] = {"POM_5V_IN", "VDD_IN", "VIN"};
	double sum = 0;
	*source = NULL;
	for (size_t i = 0; i < sizeof(inputs) / sizeof(inputs[0]); i++) {
		for (size_t k = 0; k < stats->rails; k++) {
			if (strcmp(stats->rail[k].name, inputs[i]) == 0) {
				*source = inputs[i];
				return (double)stats->rail[k].now_mw;
			}
		}
	}
	for (size_t k = 0; k < stats->rails; k++) {
		if (!is_left_out(stats->rail[k].name)) {
			sum += (double)stats->rail[k].now_mw;
			*source = "sum";
		}
	}
	return *source == NULL ? NAN : sum;
}
