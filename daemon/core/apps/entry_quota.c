/* SPDX-License-Identifier: Apache-2.0 */
/* entry_quota.c: applies one rate limit per user and kind of entry. The app registry and ingest ask
 * before they log anything that an app can cause. */
#include "daemon/core/apps/entry_quota.h"

#include <inttypes.h>

#include "daemon/core/apps/apps_private.h"
#include "daemon/util/ratelimit.h"

static const uint64_t REPORT_INTERVAL_NS = UINT64_C(60000000000);

static const struct ratelimit limits[ENTRY_QUOTA_KINDS] = {
	[ENTRY_QUOTA_INFO] = {ENTRY_QUOTA_INTERVAL_S * UINT64_C(1000000000), ENTRY_QUOTA_BURST},
	[ENTRY_QUOTA_WARNING] = {ENTRY_QUOTA_INTERVAL_S * UINT64_C(1000000000), ENTRY_QUOTA_BURST},
	[ENTRY_QUOTA_MARK] = {ENTRY_QUOTA_MARK_INTERVAL_MS * UINT64_C(1000000),
		ENTRY_QUOTA_MARKS_BURST},
};

static struct entry_quota_account *account_of(struct entry_quota *quota, uid_t uid)
{
	struct entry_quota_account *oldest = &quota->account[0];
	for (size_t i = 0; i < quota->count; i++) {
		if (quota->account[i].uid == uid) {
			return &quota->account[i];
		}
		if (quota->account[i].used_ns < oldest->used_ns) {
			oldest = &quota->account[i];
		}
	}
	if (quota->count < ENTRY_QUOTA_UIDS) {
		oldest = &quota->account[quota->count++];
	}
	*oldest = (struct entry_quota_account){.uid = uid};
	return oldest;
}

bool entry_quota_allows(struct apps *apps, uid_t uid, enum entry_quota_kind kind, uint64_t now_ns)
{
	struct entry_quota_account *account = account_of(&apps->entry_quota, uid);
	account->used_ns = now_ns;
	bool allowed = ratelimit_take(&limits[kind], &account->due_ns[kind], now_ns);
	account->suppressed += !allowed;
	apps->counts.suppressed += !allowed;
	return allowed;
}

bool apps_may_log(struct apps *apps, uid_t uid, enum timeline_level level, uint64_t now_ns)
{
	return entry_quota_allows(
		apps, uid, level == TIMELINE_INFO ? ENTRY_QUOTA_INFO : ENTRY_QUOTA_WARNING, now_ns);
}

void apps_log_suppressed(struct apps *apps, uint64_t now_ns)
{
	struct entry_quota *quota = &apps->entry_quota;
	for (size_t i = 0; i < quota->count; i++) {
		struct entry_quota_account *account = &quota->account[i];
		if (account->suppressed > 0 &&
			now_ns >= account->suppressed_reported_ns + REPORT_INTERVAL_NS) {
			timeline_add(apps->timeline, now_ns, TIMELINE_APP, TIMELINE_WARNING, "",
				"suppressed %" PRIu64 " more entries about apps of uid %u",
				account->suppressed, (unsigned)account->uid);
			account->suppressed = 0;
			account->suppressed_reported_ns = now_ns;
			return;
		}
	}
}
