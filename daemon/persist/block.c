/* What goes into a block, and what it costs: the account is asked before, and charged with what was
 * handed to the kernel whatever comes of it. */
#include <errno.h>
#include <math.h>

#include "daemon/persist/private.h"
#include "daemon/util/sysops.h"

#define S_NS UINT64_C(1000000000)

static void tell_account(struct persist *persist, const struct archive_pace *pace, uint64_t now_ns)
{
	struct persist_status *status = persist->status;
	status->day_bytes = archive_account_day(&persist->account, now_ns);
	status->day_limit_bytes = persist->account.limit;
	status->bucket_ns = pace->bucket_ns;
	status->period_ns = pace->period_ns;
	status->loss_ns = pace->loss_ns;
}

static size_t values_now(const struct core *core)
{
	size_t count = 0;
	uint32_t cursor = 0;
	const struct metric *metric;
	while ((metric = metrics_next(core->metrics, &cursor))) {
		count += !isnan(metric->value);
	}
	return count;
}

struct archive_pace persist_pace(struct persist *persist, uint64_t now_ns)
{
	struct archive_pace pace =
		archive_account_pace(&persist->account, now_ns, values_now(persist->core));
	archive_set_bucket(persist->archive, pace.bucket_ns, now_ns);
	if (persist->options.period_ns) {
		pace.period_ns = persist->options.period_ns;
	}
	tell_account(persist, &pace, now_ns);
	return pace;
}

bool persist_is_open(const struct persist *persist)
{
	return persist && persist->open;
}

bool persist_charge(struct persist *persist, size_t bytes, bool last)
{
	uint64_t now_ns = sysops()->now_ns();
	if (!persist->remembered ||
		!archive_account_allows(&persist->account, now_ns, bytes, last)) {
		return false;
	}
	archive_account_wrote(&persist->account, now_ns, bytes, 0, 0);
	persist->status->written_bytes += archive_account_cost(&persist->account, bytes);
	return true;
}

bool persist_write(struct persist *persist, uint64_t now_ns, bool last)
{
	const struct core *core = persist->core;
	const int64_t wall_us = wallclock_us(core->wall, now_ns);
	const bool synced = wallclock_synced(core->wall);
	struct archive_account_memory memory;
	struct archive_pending pending;
	const uint8_t *bytes;
	uint32_t page;
	archive_pending(persist->archive, &pending);
	/* Buckets that are still open may be in it; what the next process learns is never less than
	 * what this one wrote. */
	size_t most = pending.bytes + 8 * values_now(core) + ARCHIVE_PAGE;
	archive_account_keep(&persist->account, now_ns, wall_us, synced, most, &memory);
	/* Blocks of a test's pace hold what there is. */
	bool all =
		last || (persist->options.period_ns > 0 && persist->options.period_ns < 10 * S_NS);
	size_t size =
		archive_seal(persist->archive, now_ns, core->wall, &memory, all, &bytes, &page);
	if (size == 0) {
		return false;
	}
	int r = archive_account_allows(&persist->account, now_ns, size, last) ? 0 : -EDQUOT;
	r = r < 0 ? r : archive_file_write(persist->file, page, bytes, size);
	if (r < 0) {
		archive_written(persist->archive, r);
		return false;
	}
	archive_account_wrote(&persist->account, now_ns, size, pending.bytes, pending.rows);
	persist->status->written_bytes += archive_account_cost(&persist->account, size);
	persist->writing = size;
	return true;
}
