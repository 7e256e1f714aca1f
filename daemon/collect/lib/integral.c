/* Between the commits of power/total and the metric energy/total. */
#include "daemon/collect/lib/integral.h"

#include <math.h>

void integral_add(struct integral *integral, uint64_t t_ns, double milliwatts, uint64_t longest_ns)
{
	bool have = isfinite(milliwatts);
	if (integral->seen && t_ns <= integral->last_ns) {
		return;
	}
	if (integral->seen) {
		uint64_t step_ns = t_ns - integral->last_ns;
		if (have && integral->have && step_ns <= longest_ns) {
			integral->millijoules += (integral->last_milliwatts + milliwatts) / 2 *
						 ((double)step_ns / 1e9);
		} else {
			integral->gap_ns += step_ns;
		}
	}
	integral->seen = true;
	integral->have = have;
	integral->last_ns = t_ns;
	integral->last_milliwatts = have ? milliwatts : 0;
}
