/* SPDX-License-Identifier: Apache-2.0 */
/* Queries over boots: archive and live history against a plain list of every bucket that was made.
 */
#include "tests/unit/unit.h"
#include "tests/unit/varlink/past_fixture.h"

enum { NOW_S = 1700000000, LIVE_ROWS = 11, BEFORE_S = 3000 };

static uint32_t now_boot;

/* The machine may have been started a moment ago. */
static uint64_t hours_up(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)(now.tv_sec + 2 * BEFORE_S) * FIXTURE_SECOND + (uint64_t)now.tv_nsec;
}

/* Three boots: two hours, one with a stage that never came again, and the one that runs, of which
 * the archive has the last 50 minutes, live history only 10 s. */
static void make(bool ahead)
{
	static struct sysops table;
	sysops_replace(NULL);
	table = *sysops();
	table.now_ns = hours_up;
	sysops_replace(&table);
	fixture_open();
	past_open_file();
	past_boot(1, NOW_S - 40000, 17, 7200, 4, true);
	past_boot(2, NOW_S - 30000, 5, 3605, 3, false);
	if (ahead) {
		past_boot(3, NOW_S + 10000, 5, 905, 2, true);
	}
	past_serve(ahead ? 4 : 3);
	now_boot = archive_boot_seq(past.archive);
	uint64_t now_s = f.now_ns / FIXTURE_SECOND;
	past_event(now_s - BEFORE_S, TIMELINE_DAEMON, "edgeprofd", "started, version 0.1.0");
	past_sample(&f.wall, now_s - BEFORE_S, now_s, 2);
	past_write(f.now_ns, &f.wall, true);
	fixture_serve();
}

static void start(void)
{
	make(false);
}

/* The boot before had a clock that ran hours ahead: its rows lie behind this one's. */
static void start_ahead(void)
{
	make(true);
}

static void end(void)
{
	archive_destroy(past.archive);
	f.core.archive = NULL;
	past_close_file();
	fixture_close();
}

struct sums {
	double count, sum, min, max;
	int rows, entries;
	double last_us[4][8]; /* of each series and boot */
};

static int index_of(const char *name)
{
	for (int i = 0; i < PAST_METRICS; i++) {
		if (strcmp(past_names[i], name) == 0) {
			return i;
		}
	}
	return -1;
}

static double at(const cJSON *series, const char *name, int index)
{
	return cJSON_GetArrayItem(get(series, name), index)->valuedouble;
}

static void add_entry(struct sums *sums, const cJSON *series)
{
	int metric = index_of(string(series, "name"));
	const cJSON *boot = cJSON_GetObjectItem(series, "boot_seq");
	ck_assert_msg(metric >= 0, "%s", string(series, "name"));
	ck_assert_ptr_nonnull(boot);
	double *last_us = &sums->last_us[metric][boot->valueint];
	sums->entries++;
	for (int i = 0; i < count(series, "time_us"); i++) {
		double time_us = at(series, "time_us", i), rows = at(series, "count", i);
		ck_assert_msg(time_us > *last_us, "%s of boot %d: %.0f after %.0f",
			past_names[metric], boot->valueint, time_us, *last_us);
		*last_us = time_us;
		sums->rows++;
		sums->count += rows;
		sums->sum += rows * at(series, "mean", i);
		sums->min = fmin(sums->min, at(series, "min", i));
		sums->max = fmax(sums->max, at(series, "max", i));
	}
}

static struct sums query(const char *parameters, bool more)
{
	struct sums sums = {.min = INFINITY, .max = -INFINITY};
	int fd = client_open();
	bool continues = true;
	cJSON *reply = client_call(fd, "GetHistory", parameters, more ? ",\"more\":true" : "");
	while (continues) {
		const cJSON *series;
		ck_assert_msg(!cJSON_HasObjectItem(reply, "error"), "%s: %s", parameters,
			cJSON_GetStringValue(cJSON_GetObjectItem(reply, "error")));
		ck_assert(!cJSON_HasObjectItem(get(reply, "parameters"), "note"));
		cJSON_ArrayForEach(series, get(get(reply, "parameters"), "series"))
		{
			add_entry(&sums, series);
		}
		continues = cJSON_IsTrue(cJSON_GetObjectItem(reply, "continues"));
		cJSON_Delete(reply);
		reply = continues ? client_reply(fd, "GetHistory") : NULL;
	}
	close(fd);
	return sums;
}

/* Where live history begins, as the archive's buckets see it. */
static int64_t cut_us(uint64_t step_ns)
{
	struct history_usage usage;
	history_usage(f.core.history, &usage);
	uint64_t live_ns = usage.oldest_ns; /* a sample, or the begin of a bucket */
	ck_assert_uint_ge(live_ns, f.now_ns - 71 * (uint64_t)FIXTURE_SECOND);
	uint64_t cut_ns = live_ns - live_ns % 60000000000u;
	if (step_ns > 0 && live_ns - live_ns % step_ns < cut_ns) {
		cut_ns = live_ns - live_ns % step_ns;
	}
	return wallclock_us(&f.wall, cut_ns);
}

static struct sums expect(const char *glob, int64_t from_us, int64_t to_us, uint64_t step_ns)
{
	struct sums sums = {.min = INFINITY, .max = -INFINITY};
	int64_t until_us = cut_us(step_ns);
	for (size_t i = 0; i < past.rows; i++) {
		const struct past_row *row = &past.row[i];
		if (!proto_glob_match(glob, past_names[row->metric]) || row->time_us < from_us ||
			row->time_us > to_us ||
			(row->boot == now_boot && row->time_us >= until_us)) {
			continue;
		}
		sums.rows++;
		sums.count += row->count;
		sums.sum += row->sum;
		sums.min = fmin(sums.min, row->min);
		sums.max = fmax(sums.max, row->max);
	}
	/* live: temperature/max was 50, 49 … 40 in the last 10 s */
	for (int ago = 10; ago >= 0 && proto_glob_match(glob, "temperature/max"); ago--) {
		int64_t time_us = (int64_t)(NOW_S - ago) * 1000000;
		if (time_us >= from_us && time_us <= to_us) {
			sums.rows++;
			sums.count++;
			sums.sum += 40 + ago;
			sums.min = fmin(sums.min, 40 + ago);
			sums.max = fmax(sums.max, 40 + ago);
		}
	}
	return sums;
}

static void compare(const char *text, const struct sums *got, const struct sums *wanted, bool rows)
{
	ck_assert_msg(got->count == wanted->count, "%s: %.0f samples, %.0f were made", text,
		got->count, wanted->count);
	ck_assert_msg(!rows || got->rows == wanted->rows, "%s: %d rows, not %d", text, got->rows,
		wanted->rows);
	ck_assert_msg(fabs(got->sum - wanted->sum) <= 0.02 * wanted->count + 0.01,
		"%s: sum %f, not %f", text, got->sum, wanted->sum);
	if (wanted->count > 0) {
		ck_assert_double_eq_tol(got->min, wanted->min, 0.02);
		ck_assert_double_eq_tol(got->max, wanted->max, 0.02);
	}
}

TEST_TIMEOUT(100);
FIXTURE(start, end);

START_TEST(every_bucket_of_every_boot_is_told_once)
{
	static const char *const globs[] = {
		"**", "temperature/max", "stage/*/*/rate", "stage/gone/x/rate", "cpu/*"};
	for (int round = 0; round < 100; round++) {
		const char *glob = globs[past_random(5)];
		int64_t span_us = (int64_t)past_random(45000) * 1000000;
		int64_t from_us = (NOW_S - 42000 + (int64_t)past_random(42000)) * 1000000;
		int64_t to_us = from_us + span_us;
		char text[256];
		snprintf(text, sizeof(text), "{\"glob\":\"%s\",\"from_us\":%lld,\"to_us\":%lld}",
			glob, (long long)from_us, (long long)to_us);
		struct sums got = query(text, true), wanted = expect(glob, from_us, to_us, 0);
		compare(text, &got, &wanted, true);
	}
}
END_TEST

START_TEST(steps_hold_the_same_samples)
{
	static const int steps[] = {10, 20, 60, 90, 600, 3600, 7200};
	for (int round = 0; round < 80; round++) {
		uint64_t step_ns = (uint64_t)steps[past_random(7)] * FIXTURE_SECOND;
		int64_t from_us = (NOW_S - 42000 + (int64_t)past_random(42000)) * 1000000;
		int64_t to_us = from_us + (int64_t)past_random(45000) * 1000000;
		if (to_us > (NOW_S - 20) * 1000000LL) {
			to_us = NOW_S * 1000000LL; /* live buckets are told whole */
		}
		if (from_us > (NOW_S - 20) * 1000000LL) {
			from_us -= 60000000;
		}
		char text[256];
		snprintf(text, sizeof(text),
			"{\"glob\":\"**\",\"from_us\":%lld,\"to_us\":%lld,\"step_ms\":%llu}",
			(long long)from_us, (long long)to_us,
			(unsigned long long)(step_ns / 1000000));
		struct sums got = query(text, true), wanted = expect("**", from_us, to_us, step_ns);
		compare(text, &got, &wanted, false);
		ck_assert_int_le(got.rows, wanted.rows + got.entries);
	}
}
END_TEST

START_TEST(one_reply_is_thinned_over_all_boots)
{
	static const int limits[] = {20, 100, 500, 1500};
	for (int i = 0; i < 4; i++) {
		char text[256];
		snprintf(text, sizeof(text), "{\"glob\":\"**\",\"from_us\":0,\"max_points\":%d}",
			limits[i]);
		struct sums got = query(text, false);
		ck_assert_msg(got.rows <= limits[i] && got.rows > limits[i] / 20, "%d of %d",
			got.rows, limits[i]);
		/* all of it, but for the step in which live history begins */
		struct sums all = expect("**", 0, INT64_MAX, 0);
		ck_assert_double_le(got.count, all.count);
		ck_assert_double_ge(got.count, all.count - 2 * BEFORE_S);
	}
	ck_assert_str_eq(
		ask_error("GetHistory", "{\"glob\":\"**\",\"from_us\":0,\"max_points\":4}"),
		"TooLarge limit_bytes=65536");
	/* what fits is not thinned */
	char text[256];
	snprintf(text, sizeof(text), "{\"glob\":\"cpu/*\",\"from_us\":%lld,\"to_us\":%lld}",
		(NOW_S - 39000) * 1000000LL, (NOW_S - 38000) * 1000000LL);
	struct sums got = query(text, false);
	struct sums wanted =
		expect("cpu/*", (NOW_S - 39000) * 1000000LL, (NOW_S - 38000) * 1000000LL, 0);
	compare(text, &got, &wanted, true);
}
END_TEST

START_TEST(names_of_the_past_are_known)
{
	cJSON *reply = ask("GetHistory", "{\"glob\":\"stage/gone/x/rate\"}");
	ck_assert_int_eq(count(reply, "series"), 0); /* nothing in the last 5 minutes */
	cJSON_Delete(reply);
	ck_assert_str_eq(ask_error("GetHistory", "{\"glob\":\"stage/never/x/rate\"}"),
		"NotFound what=\"metric\" name=\"stage/never/x/rate\"");
	ck_assert_str_eq(
		ask_error("GetHistory", "{\"glob\":\"**\",\"from_us\":2000,\"to_us\":1000}"),
		"InvalidParameter parameter=\"from_us\"");
}
END_TEST

START_TEST(the_timeline_tells_boots_and_reboots)
{
	timeline_reserve(f.core.timeline); /* too late: the ring has entries, and no room */
	ck_assert_int_eq(timeline_load_past(f.core.timeline, past.archive, &f.wall), 0);
	cJSON *reply = ask("ListEvents", NULL);
	int before = count(reply, "events");
	cJSON_Delete(reply);
	timeline_destroy(f.core.timeline);
	ck_assert_int_eq(timeline_create(64, &f.core.timeline), 0);
	timeline_reserve(f.core.timeline);
	timeline_add(f.core.timeline, f.now_ns - 100 * (uint64_t)FIXTURE_SECOND, TIMELINE_DAEMON,
		TIMELINE_INFO, "edgeprofd", "started");
	ck_assert_int_eq(timeline_load_past(f.core.timeline, past.archive, &f.wall), 0);
	reply = ask("ListEvents", NULL);
	/* boot 1: started, mark, stopped; boot 2: reboot, started, mark; boot 3: reboot, started */
	ck_assert_int_eq(count(reply, "events"), 8);
	ck_assert_int_lt(before, 8);
	const cJSON *events = get(reply, "events");
	const cJSON *first = cJSON_GetArrayItem(events, 0), *reboot = cJSON_GetArrayItem(events, 3),
		    *now = cJSON_GetArrayItem(events, 6);
	ck_assert_double_eq(number(first, "time_us"), (NOW_S - 40000 + 17) * 1e6);
	ck_assert_double_eq(number(first, "boot_seq"), 1);
	ck_assert(!cJSON_HasObjectItem(first, "mono_us"));
	ck_assert_double_eq(number(first, "serial"), TIMELINE_PAST - 6);
	ck_assert_str_eq(string(cJSON_GetArrayItem(events, 2), "text"), TIMELINE_STOPPED);
	/* from the stop of boot 1 to the first event of boot 2: 2805 s */
	ck_assert_str_eq(string(reboot, "text"),
		"reboot: boot 2, the device was off or not recorded for 46 min 45 s");
	ck_assert_str_eq(string(reboot, "severity"), "info");
	ck_assert_double_eq(number(reboot, "time_us"), (NOW_S - 30000 + 5) * 1e6);
	ck_assert_ptr_nonnull(strstr(string(now, "text"), "boot 3, the device was off"));
	ck_assert_ptr_nonnull(strstr(string(now, "text"), "ended without a stop"));
	ck_assert_str_eq(string(now, "severity"), "warning");
	ck_assert(!cJSON_HasObjectItem(now, "boot_seq"));
	cJSON_Delete(reply);
	reply = ask("ListBoots", NULL);
	ck_assert_int_eq(count(reply, "boots"), 3);
	static const char *const ends[] = {"stopped", "cut", "running"};
	for (int i = 0; i < 3; i++) {
		const cJSON *boot = cJSON_GetArrayItem(get(reply, "boots"), i);
		ck_assert_double_eq(number(boot, "boot_seq"), i + 1);
		ck_assert_str_eq(string(boot, "end"), ends[i]);
		ck_assert_double_gt(number(boot, "last_us"), number(boot, "first_us"));
	}
	cJSON_Delete(reply);
}
END_TEST

FIXTURE(start_ahead, end);

TEST_AGAIN(every_bucket_of_every_boot_is_told_once, 0, 1);
