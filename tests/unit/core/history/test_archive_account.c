/* SPDX-License-Identifier: Apache-2.0 */
/* The account: no window of 24 hours ever costs more than the limit, whatever happens meanwhile. */
#include "daemon/core/archive/account.h"

#include <stdlib.h>
#include <string.h>

#include "tests/unit/unit.h"

#define S UINT64_C(1000000000)
#define HOUR (3600 * S)

enum { PAGE = 4096, DAYS = 60 };

/* What a period's values come to. */
static size_t payload_bytes(size_t values, const struct archive_pace *pace, double each)
{
	double rows = (double)pace->period_ns / (double)pace->bucket_ns;
	return 256 + (size_t)((double)values * rows * each);
}

static struct archive_pace pace_within(
	uint64_t limit, uint32_t overhead, uint32_t unit, size_t values)
{
	struct archive_account account;
	archive_account_init(&account, limit, overhead, unit, 0);
	return archive_account_pace(&account, 0, values);
}

static struct archive_pace pace_of(uint32_t overhead, uint32_t unit, size_t values)
{
	return pace_within(ARCHIVE_DAY_LIMIT, overhead, unit, values);
}

TEST_TIMEOUT(100);

START_TEST(where_a_write_costs_only_itself_a_minute_is_lost)
{
	struct archive_pace pace = pace_of(0, 4096, 256);
	ck_assert_uint_eq(pace.bucket_ns, 10 * S);
	ck_assert_uint_eq(pace.period_ns, 50 * S);
	ck_assert_uint_eq(pace.loss_ns, 52 * S);
	ck_assert(!pace.paused);
}
END_TEST

START_TEST(where_the_journal_costs_more_the_pace_gives_way)
{
	struct archive_pace pace = pace_of(4 * 4096, 4096, 256);
	ck_assert_uint_eq(pace.bucket_ns, 60 * S);
	ck_assert_uint_eq(pace.period_ns, 120 * S);
	ck_assert_uint_eq(pace.loss_ns, 122 * S);
	/* Who may write more loses less: [history] daily_writes. */
	pace = pace_within(UINT64_C(40) << 20, 4 * 4096, 4096, 256);
	ck_assert_uint_le(pace.loss_ns, 62 * S);
	/* Few metrics fit into a page: the finer buckets cost nothing then. */
	pace = pace_of(4 * 4096, 4096, 16);
	ck_assert_uint_eq(pace.bucket_ns, 10 * S);
	ck_assert_uint_le(pace.loss_ns, 130 * S);
	/* With blocks of 1 KiB 256 metrics lose two minutes. */
	pace = pace_of(4 * 1024, 1024, 256);
	ck_assert_uint_le(pace.loss_ns, 120 * S);
	/* Beyond ten minutes only where it must be: copy-on-write file systems. */
	ck_assert_uint_le(pace_of(4 * 4096, 4096, 1024).period_ns, 600 * S);
	ck_assert_uint_gt(pace_of(300 * 1024, 4096, 256).period_ns, 600 * S);
	ck_assert_uint_le(pace_of(300 * 1024, 4096, 256).period_ns, 3600 * S);
}
END_TEST

START_TEST(a_full_day_pauses_and_time_relieves_it)
{
	struct archive_account account;
	archive_account_init(&account, ARCHIVE_DAY_LIMIT, 0, 4096, 0);
	archive_account_wrote(&account, 0, ARCHIVE_DAY_LIMIT - 4096, 0, 0);
	ck_assert(!archive_account_allows(&account, 1, 4096, false)); /* the reserve stays */
	ck_assert(archive_account_allows(&account, 1, 4096, true));
	ck_assert(!archive_account_allows(&account, 1, 4097, true));
	struct archive_pace pace = archive_account_pace(&account, 23 * HOUR, 256);
	ck_assert(pace.paused);
	ck_assert_uint_eq(pace.resume_ns, 25 * HOUR);
	ck_assert_uint_ge(pace.loss_ns, 2 * HOUR);
	ck_assert(archive_account_pace(&account, 25 * HOUR - 1, 256).paused);
	ck_assert(!archive_account_pace(&account, 25 * HOUR, 256).paused);
	ck_assert_uint_eq(archive_account_day(&account, 25 * HOUR), 0);
}
END_TEST

START_TEST(what_blocks_really_need_is_learnt)
{
	struct archive_account account;
	archive_account_init(&account, ARCHIVE_DAY_LIMIT, 0, 4096, 0);
	for (uint64_t i = 0; i < 50; i++) {
		archive_account_wrote(&account, i * S, 4096, 256 + 2560, 2560);
	}
	ck_assert_double_eq_tol(account.value_bytes[ARCHIVE_TENS], 1, 0.1);
	/* A block of names says nothing about values. */
	archive_account_wrote(&account, 50 * S, 65536, 65000, 10);
	ck_assert_double_le(account.value_bytes[ARCHIVE_TENS], 4);
}
END_TEST

START_TEST(a_memory_is_aged_by_what_certainly_passed)
{
	struct archive_account account, next;
	struct archive_account_memory memory;
	archive_account_init(&account, ARCHIVE_DAY_LIMIT, 0, 4096, 100 * HOUR);
	archive_account_wrote(&account, 100 * HOUR, 8192, 0, 0);
	archive_account_save(&account, 101 * HOUR, 7200000000, true, 100, &memory);
	ck_assert_uint_eq(memory.bytes[0], 4096); /* the block that carries it */
	ck_assert_uint_eq(memory.bytes[1], 8192);
	static const struct {
		uint64_t t_ns;
		int64_t wall_s;
		bool synced;
		uint64_t day;
	} cases[] = {
		{101 * HOUR + 1, 7200, true, 12288}, {110 * HOUR, 7200 + 9 * 3600, true, 12288},
		{125 * HOUR, 7200 + 24 * 3600, true, 4096}, /* the first is 25 hours old */
		{126 * HOUR, 7200 + 25 * 3600, true, 0},
		{126 * HOUR, 0, false, 0},		  /* the same boot */
		{1 * HOUR, 7200 + 24 * 3600, true, 4096}, /* another, two clocks to be believed */
		{1 * HOUR, 7200 + 24 * 3600, false, 12288},
		{1 * HOUR, 0, true, 12288}, /* set back */
		{25 * HOUR, 0, false, 0},   /* this boot alone is longer than a day */
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		archive_account_init(&next, ARCHIVE_DAY_LIMIT, 0, 4096, cases[i].t_ns);
		archive_account_restore(
			&next, &memory, cases[i].t_ns, cases[i].wall_s * 1000000, cases[i].synced);
		ck_assert_msg(archive_account_day(&next, cases[i].t_ns) == cases[i].day,
			"case %zu: %llu", i,
			(unsigned long long)archive_account_day(&next, cases[i].t_ns));
	}
	memory.hour_s = UINT32_MAX; /* from a file: any value is survived */
	archive_account_restore(&next, &memory, 5, INT64_MIN, true);
	ck_assert_uint_le(archive_account_day(&next, 5), 12288);
}
END_TEST

/* A machine that lives for some time: what it really wrote, by its own true time. */
struct life {
	struct archive_account account;
	struct archive_account_memory kept; /* of the newest block */
	uint64_t true_ns, boot_ns;	    /* since the beginning; true time of this boot */
	int64_t wall_off_s;		    /* error of the wall clock */
	bool synced;
	uint32_t overhead, unit;
	size_t values;
	double each; /* real bytes of a value */
	size_t writes, paused;
	struct {
		uint64_t true_ns, bytes;
	} * log;
};

static uint64_t mono(const struct life *life)
{
	return life->true_ns - life->boot_ns;
}

static int64_t wall_us(const struct life *life)
{
	int64_t true_s = (int64_t)(life->true_ns / S) + 1700000000;
	return (true_s + (life->synced ? 0 : life->wall_off_s)) * 1000000;
}

static void start(struct life *life)
{
	archive_account_init(
		&life->account, ARCHIVE_DAY_LIMIT, life->overhead, life->unit, mono(life));
	archive_account_restore(
		&life->account, &life->kept, mono(life), wall_us(life), life->synced);
}

static void attempt(struct life *life, size_t payload, bool last)
{
	size_t bytes = (payload + PAGE - 1) / PAGE * PAGE;
	if (!archive_account_allows(&life->account, mono(life), bytes, last)) {
		life->paused++;
		return;
	}
	archive_account_save(
		&life->account, mono(life), wall_us(life), life->synced, bytes, &life->kept);
	archive_account_wrote(&life->account, mono(life), bytes, payload,
		(size_t)((double)(payload - 256) / life->each));
	life->log[life->writes].true_ns = life->true_ns;
	life->log[life->writes++].bytes = archive_account_cost(&life->account, bytes);
}

static void something_happens(struct life *life)
{
	int what = rand() % 1000;
	if (what < 3) { /* a restart, clean or killed; the clock may have been set before */
		if (what > 0) {
			attempt(life, 256 + (size_t)(rand() % 9000), true);
		}
		life->true_ns += (uint64_t)(rand() % 100) * S;
		start(life);
	} else if (what == 3) { /* a reboot; without a battery the clock is anywhere */
		life->true_ns += (uint64_t)(rand() % 36000) * S;
		life->boot_ns = life->true_ns;
		life->synced = rand() % 2;
		life->true_ns += (uint64_t)(5 + rand() % 50) * S;
		start(life);
	} else if (what == 4) {
		life->wall_off_s = (rand() % 2000 - 1000) * 3600L;
		life->synced = false;
	} else if (what == 5) {
		life->synced = true;
	} else if (what == 6) {
		life->values = (size_t)(1 + rand() % 2000);
	} else if (what == 7) {
		life->each = 1 + rand() % 8;
	}
}

static uint64_t worst_window(const struct life *life)
{
	uint64_t sum = 0, worst = 0;
	for (size_t i = 0, first = 0; i < life->writes; i++) {
		sum += life->log[i].bytes;
		while (life->log[first].true_ns + 24 * HOUR <= life->log[i].true_ns) {
			sum -= life->log[first++].bytes;
		}
		worst = sum > worst ? sum : worst;
	}
	return worst;
}

START_LOOP_TEST(sixty_days_of_anything_stay_within_the_limit, 0, 24)
{
	static const uint32_t overheads[] = {0, 4096, 16384, 65536, 262144, 16384};
	struct life life = {.synced = true, .unit = 4096, .values = 256, .each = 5};
	srand((unsigned)_i + 1);
	life.overhead = overheads[(size_t)_i % 6];
	life.log = calloc(1000000, sizeof(*life.log));
	ck_assert_ptr_nonnull(life.log);
	start(&life);
	while (life.true_ns < DAYS * 24 * HOUR && life.writes < 999998) {
		struct archive_pace pace =
			archive_account_pace(&life.account, mono(&life), life.values);
		life.true_ns += pace.period_ns;
		attempt(&life, payload_bytes(life.values, &pace, life.each), false);
		something_happens(&life);
	}
	ck_assert_uint_le(worst_window(&life), ARCHIVE_DAY_LIMIT);
	ck_assert_uint_gt(life.writes, DAYS * 4); /* and it was used */
	free(life.log);
}
END_TEST

/* Without trouble the day is used to the full and nothing ever pauses. */
START_TEST(a_steady_machine_never_pauses)
{
	struct life life = {.synced = true,
		.unit = 4096,
		.overhead = 16384,
		.values = 256,
		.each = 5,
		.log = calloc(100000, sizeof(*life.log))};
	ck_assert_ptr_nonnull(life.log);
	start(&life);
	uint64_t longest = 0;
	while (life.true_ns < 10 * 24 * HOUR) {
		struct archive_pace pace = archive_account_pace(&life.account, mono(&life), 256);
		longest = pace.loss_ns > longest ? pace.loss_ns : longest;
		life.true_ns += pace.period_ns;
		attempt(&life, payload_bytes(256, &pace, life.each), false);
	}
	ck_assert_uint_eq(life.paused, 0);
	ck_assert_uint_le(longest, 240 * S);
	uint64_t worst = worst_window(&life);
	ck_assert_uint_le(worst, ARCHIVE_DAY_LIMIT);
	ck_assert_uint_ge(worst, ARCHIVE_DAY_LIMIT * 8 / 10);
	free(life.log);
}
END_TEST
