/* SPDX-License-Identifier: Apache-2.0 */
/* account.c: decides how often a block may be written. Bytes are summed by hours of
 * CLOCK_MONOTONIC; the sum of the running hour and 24 before it covers any window of 24 h, so
 * keeping it within the limit keeps each of them. Times that cannot be known count as not passed.
 */
#include "daemon/core/archive/account.h"

#include <string.h>

#define SECOND_NS UINT64_C(1000000000)

enum {
	HOUR_S = 3600,
	PAGE = 4096,
	FIXED_BYTES = 256,    /* of a block, whatever it holds */
	VALUE_MOST = 24,      /* bytes; more is names, which do not come with each block */
	RESERVE_BYTES = 8192, /* the last block of a process */
	LONGEST_S = 3600,
	LATE_S = 2,	    /* from the end of a bucket to its being on the medium */
	ROWS_KEPT = 8,	    /* buckets of each metric that the archive keeps at least … */
	VALUES_KEPT = 8192, /* … and values of all of them */
};

#define HOUR_NS (HOUR_S * SECOND_NS)

/* Bytes of a value before any block was made; tests/bench/bench_persist.py measures them. */
static const double value_bytes_guess[ARCHIVE_BUCKETS] = {5, 6};

static const struct {
	unsigned bucket_s, first_s, step_s;
} periods[ARCHIVE_BUCKETS] = {
	[ARCHIVE_TENS] = {10, 50, 10},
	[ARCHIVE_MINUTES] = {60, 60, 60},
};

void archive_account_init(struct archive_account *account, uint64_t limit, uint32_t overhead,
	uint32_t unit, uint64_t t_ns)
{
	*account = (struct archive_account){
		.hour_ns = (int64_t)t_ns, .limit = limit, .overhead = overhead, .unit = unit};
	memcpy(account->value_bytes, value_bytes_guess, sizeof(value_bytes_guess));
}

/* Ages the hourly counters by that many hours. */
static void shift(uint64_t bytes[ARCHIVE_HOURS], uint64_t hours)
{
	size_t gone = hours < ARCHIVE_HOURS ? (size_t)hours : ARCHIVE_HOURS;
	memmove(bytes + gone, bytes, (ARCHIVE_HOURS - gone) * sizeof(*bytes));
	memset(bytes, 0, gone * sizeof(*bytes));
}

static void advance(struct archive_account *account, uint64_t t_ns)
{
	int64_t passed_ns = (int64_t)t_ns - account->hour_ns;
	if (passed_ns > 0) {
		uint64_t hours = (uint64_t)passed_ns / HOUR_NS;
		shift(account->bytes, hours);
		account->hour_ns += (int64_t)(hours * HOUR_NS);
	}
}

/* Seconds that have passed since the memory was made, at the least. */
static uint64_t passed_s(
	const struct archive_account_memory *found, uint64_t t_ns, int64_t wall_us, bool synced)
{
	/* Its time may be one of an earlier boot: then both differences are less than what passed.
	 */
	uint64_t passed = (t_ns >= found->t_ns ? t_ns - found->t_ns : t_ns) / SECOND_NS;
	int64_t wall_s = wall_us / 1000000;
	if (synced && found->wall_s > 0 && wall_s > found->wall_s) {
		uint64_t walls = (uint64_t)(wall_s - found->wall_s);
		passed = walls > passed ? walls : passed;
	}
	return passed;
}

void archive_account_restore(struct archive_account *account,
	const struct archive_account_memory *found, uint64_t t_ns, int64_t wall_us, bool synced)
{
	uint64_t age_s = found->hour_s % HOUR_S + passed_s(found, t_ns, wall_us, synced);
	for (size_t i = 0; i < ARCHIVE_HOURS; i++) {
		account->bytes[i] = found->bytes[i];
	}
	shift(account->bytes, age_s / HOUR_S);
	account->hour_ns = (int64_t)t_ns - (int64_t)(age_s % HOUR_S * SECOND_NS);
}

void archive_account_save(struct archive_account *account, uint64_t t_ns, int64_t wall_us,
	bool synced, size_t bytes, struct archive_account_memory *ret)
{
	advance(account, t_ns);
	*ret = (struct archive_account_memory){
		.t_ns = t_ns,
		.wall_s = synced ? wall_us / 1000000 : 0,
		.hour_s = (uint32_t)(((int64_t)t_ns - account->hour_ns) / (int64_t)SECOND_NS),
	};
	for (size_t i = 0; i < ARCHIVE_HOURS; i++) {
		uint64_t sum = account->bytes[i];
		sum += i == 0 ? archive_account_cost(account, bytes) : 0;
		ret->bytes[i] = sum < UINT32_MAX ? (uint32_t)sum : UINT32_MAX;
	}
}

void archive_account_wrote(
	struct archive_account *account, uint64_t t_ns, size_t bytes, size_t payload, size_t values)
{
	double *mean = &account->value_bytes[account->bucket];
	advance(account, t_ns);
	account->bytes[0] += archive_account_cost(account, bytes);
	if (values > 0 && payload > 0) {
		double fixed = payload > FIXED_BYTES ? FIXED_BYTES : 0;
		double each = ((double)payload - fixed) / (double)values;
		each = each > VALUE_MOST ? VALUE_MOST : each;
		*mean += (each - *mean) / 8;
	}
}

uint64_t archive_account_cost(const struct archive_account *account, size_t bytes)
{
	uint64_t unit = account->unit;
	return ((uint64_t)bytes + unit - 1) / unit * unit + account->overhead;
}

uint64_t archive_account_day(struct archive_account *account, uint64_t t_ns)
{
	uint64_t sum = 0;
	advance(account, t_ns);
	for (size_t i = 0; i < ARCHIVE_HOURS; i++) {
		sum += account->bytes[i];
	}
	return sum;
}

bool archive_account_allows(struct archive_account *account, uint64_t t_ns, size_t bytes, bool last)
{
	uint64_t more = archive_account_cost(account, bytes);
	more += last ? 0 : archive_account_cost(account, RESERVE_BYTES);
	return archive_account_day(account, t_ns) + more <= account->limit;
}

/* Whether a block of this cost can be written every period_s from now on. At each hour to come, the
 * day holds what remains of the earlier writes, and the new blocks. */
static bool fits(const struct archive_account *account, uint64_t cost, unsigned period_s)
{
	double limit =
		(double)account->limit - (double)archive_account_cost(account, RESERVE_BYTES);
	uint64_t before = 0;
	for (size_t i = 0; i < ARCHIVE_HOURS; i++) {
		unsigned left =
			(unsigned)(ARCHIVE_HOURS - i); /* hours until only i are in the day */
		double new_bytes = (double)cost * left * HOUR_S / period_s;
		if ((double)before + new_bytes > limit) {
			return false;
		}
		before += account->bytes[i];
	}
	return true;
}

/* Whether the archive can hold a period's buckets, of that many values each, until the write. */
static bool waits(enum archive_bucket bucket, unsigned period_s, size_t values)
{
	size_t rows = period_s / periods[bucket].bucket_s;
	return rows <= ROWS_KEPT || rows * values <= VALUES_KEPT;
}

/* False: even the longest period is too short; then it is in *ret. */
static bool shortest(const struct archive_account *account, enum archive_bucket bucket,
	size_t values, unsigned *ret)
{
	unsigned step_s = periods[bucket].step_s;
	for (*ret = periods[bucket].first_s;; *ret += step_s) {
		double rows = (double)*ret / periods[bucket].bucket_s;
		double bytes = FIXED_BYTES + rows * (double)values * account->value_bytes[bucket];
		size_t pages = ((size_t)bytes + PAGE - 1) / PAGE;
		if (fits(account, archive_account_cost(account, pages * PAGE), *ret)) {
			return true;
		}
		if (*ret >= LONGEST_S || !waits(bucket, *ret + step_s, values)) {
			return false;
		}
	}
}

/* When the oldest hour that holds anything leaves the day. */
static uint64_t relief_ns(const struct archive_account *account)
{
	size_t oldest = ARCHIVE_HOURS - 1;
	while (oldest > 0 && account->bytes[oldest] == 0) {
		oldest--;
	}
	int64_t t_ns = account->hour_ns + (int64_t)((ARCHIVE_HOURS - oldest) * HOUR_NS);
	return (uint64_t)t_ns;
}

struct archive_pace archive_account_pace(
	struct archive_account *account, uint64_t t_ns, size_t values)
{
	advance(account, t_ns);
	unsigned tens_s, minutes_s;
	bool fine = shortest(account, ARCHIVE_TENS, values, &tens_s);
	shortest(account, ARCHIVE_MINUTES, values, &minutes_s);
	/* Finer buckets are worth a little; what is in use stays for a little more. */
	unsigned percent = account->bucket == ARCHIVE_TENS ? 140 : 125;
	fine = fine && tens_s * 100 <= minutes_s * percent;
	account->bucket = fine ? ARCHIVE_TENS : ARCHIVE_MINUTES;
	struct archive_pace pace = {
		.bucket_ns = periods[account->bucket].bucket_s * SECOND_NS,
		.period_ns = (fine ? tens_s : minutes_s) * SECOND_NS,
		.paused = !archive_account_allows(account, t_ns, PAGE, false),
	};
	pace.loss_ns = pace.period_ns + LATE_S * SECOND_NS;
	if (pace.paused) {
		pace.resume_ns = relief_ns(account);
		pace.loss_ns += pace.resume_ns > t_ns ? pace.resume_ns - t_ns : 0;
	}
	return pace;
}
