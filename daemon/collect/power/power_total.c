/* Part of the collectors that know a board's power: who tells the total. */
#include "daemon/collect/power/power_total.h"

#include <errno.h>

int power_total_add(struct naming *naming, const char *origin, bool yields, struct metric **ret)
{
	struct metric *total;
	int r = naming_add_exact(naming, "power/total", UNIT_MILLIWATTS, &total);
	if (r < 0) {
		*ret = NULL;
		return r == -EEXIST || r == -ENOSPC ? 0 : r;
	}
	total->origin = origin;
	total->yields = yields;
	*ret = total;
	return 0;
}
