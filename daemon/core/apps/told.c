/* apps.c and ingest ask before they tell. Each entry costs its user an interval of time; the burst
 * is how far that may reach into the future. */
#include "daemon/core/apps/told.h"

static const uint64_t COST_NS = TOLD_INTERVAL_S * 1000000000ull;
static const uint64_t MARK_COST_NS = TOLD_MARK_INTERVAL_MS * 1000000ull;

static struct told_account *account_of(struct app_told *told, uid_t uid)
{
	struct told_account *quiet = &told->account[0];
	for (size_t i = 0; i < told->count; i++) {
		if (told->account[i].uid == uid) {
			return &told->account[i];
		}
		if (told->account[i].last_ns < quiet->last_ns) {
			quiet = &told->account[i];
		}
	}
	if (told->count < TOLD_UIDS) {
		quiet = &told->account[told->count++];
	}
	*quiet = (struct told_account){.uid = uid};
	return quiet;
}

static bool owe(struct app_told *told, struct told_account *account, uint64_t *debt_ns,
	uint64_t cost_ns, unsigned burst, uint64_t now_ns)
{
	account->last_ns = now_ns;
	uint64_t from_ns = *debt_ns > now_ns ? *debt_ns : now_ns;
	if (from_ns + cost_ns > now_ns + burst * cost_ns) {
		account->untold++;
		told->untold++;
		return false;
	}
	*debt_ns = from_ns + cost_ns;
	return true;
}

bool app_told_may(struct app_told *told, uid_t uid, enum timeline_level level, uint64_t now_ns)
{
	struct told_account *account = account_of(told, uid);
	uint64_t *debt_ns = &account->debt_ns[level != TIMELINE_INFO];
	return owe(told, account, debt_ns, COST_NS, TOLD_BURST, now_ns);
}

bool app_told_may_mark(struct app_told *told, uid_t uid, uint64_t now_ns)
{
	struct told_account *account = account_of(told, uid);
	return owe(told, account, &account->marks_debt_ns, MARK_COST_NS, TOLD_MARKS_BURST, now_ns);
}

uint64_t app_told_untold(struct app_told *told, uint64_t now_ns, uid_t *uid)
{
	for (size_t i = 0; i < told->count; i++) {
		struct told_account *account = &told->account[i];
		uint64_t untold = account->untold;
		/* one line a minute at most while it goes on */
		if (untold > 0 && now_ns >= account->last_told_ns + 60 * 1000000000ull) {
			account->untold = 0;
			account->last_told_ns = now_ns;
			*uid = account->uid;
			return untold;
		}
	}
	return 0;
}
