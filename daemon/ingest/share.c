/* Half of what is free converges: no number of users' attempts leaves the next one without. */
#include "daemon/ingest/share.h"

bool share_fits(uint64_t max, uint64_t own, uint64_t others, uint64_t want, bool trusted)
{
	if (others > max) {
		return false;
	}
	uint64_t left = max - others;
	if (!trusted) {
		return own + want <= (left + 1) / 2;
	}
	uint64_t kept = max / 8 > others ? max / 8 - others : 0;
	return own + want + kept <= left;
}
