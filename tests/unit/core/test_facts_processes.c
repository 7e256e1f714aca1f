/* SPDX-License-Identifier: Apache-2.0 */
/* What a diagnosis knows of other processes and of how the app's own may run, from literals. */
#include "daemon/core/diagnose/facts/facts_processes.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "daemon/core/apps/apps.h"
#include "daemon/core/metrics/processes.h"
#include "daemon/core/metrics/throttle.h"
#include "daemon/core/status/bystanders.h"
#include "daemon/core/status/modes.h"
#include "tests/unit/unit.h"

#define SECOND UINT64_C(1000000000)
#define NOW (100 * SECOND)

static struct processes processes;
static struct bystanders bystanders;
static struct modes modes;
static struct throttle_status throttle;
static struct app app;
static struct app_process own;
static struct core core;
static struct facts facts;

static void setup(void)
{
	memset(&processes, 0, sizeof(processes));
	memset(&bystanders, 0, sizeof(bystanders));
	memset(&modes, 0, sizeof(modes));
	memset(&throttle, 0, sizeof(throttle));
	memset(&app, 0, sizeof(app));
	snprintf(app.name, sizeof(app.name), "cam");
	own.pid = 10;
	app.process[0] = &own;
	app.processes = 1;
	core = (struct core){.processes = &processes,
		.bystanders = &bystanders,
		.modes = &modes,
		.throttle = &throttle};
	bystanders.t_ns = NOW - 14 * SECOND;
}

static struct process_row *row(const char *watch, pid_t pid, const char *comm, double cpu)
{
	struct process_row *row = &processes.row[processes.rows++];
	*row = (struct process_row){
		.pid = pid, .cpu_percent = cpu, .rss_bytes = pid * 1e6, .t_ns = NOW - SECOND};
	row->extra.read_bytes = row->extra.write_bytes = 1e6;
	row->extra.group_ns = NOW - SECOND;
	row->extra.quota_percent = row->extra.throttled_share = NAN;
	snprintf(row->watch, sizeof(row->watch), "%s", watch);
	snprintf(row->comm, sizeof(row->comm), "%s", comm);
	return row;
}

static struct bystander other(pid_t pid, const char *name, double cpu, double rss, double io)
{
	struct bystander other = {.pid = pid, .use = {cpu, rss, io}};
	snprintf(other.name, sizeof(other.name), "%s", name);
	return other;
}

static void gather(void)
{
	memset(&facts, 0xff, sizeof(facts));
	facts_add_processes(&core, &app, NOW, &facts);
}

FIXTURE(setup, NULL);

START_TEST(nothing_known_is_nothing_said)
{
	core = (struct core){0};
	gather();
	for (int i = 0; i < FACTS_PROCESSES; i++) {
		ck_assert_str_eq(facts.process[i].name, "");
	}
	ck_assert_str_eq(facts.largest.name, "");
	ck_assert_str_eq(facts.governor, "");
	ck_assert_str_eq(facts.power_mode, "");
	ck_assert_str_eq(facts.policy, "");
	ck_assert_int_eq(facts.nice, 0);
	ck_assert(isnan(facts.frequency_limit) && isnan(facts.quota_percent) &&
		  isnan(facts.quota_throttled) && isnan(facts.cpus_allowed));
}
END_TEST

START_TEST(what_is_of_the_app_is_no_other_process)
{
	bystanders.most[USE_CPU][0] = other(20, "stress", 60, 1, 5);
	bystanders.most[USE_CPU][1] = other(10, "cam", 55, 8e9, 5);
	bystanders.most[USE_CPU][2] = other(21, "detector", 50, 1, NAN);
	bystanders.most[USE_CPU][2].busy_ns = NOW - UINT64_C(7000000000);
	bystanders.most[USE_CPU][3] = other(22, "gzip", 40, 1, NAN);
	bystanders.most[USE_CPU][4] = other(23, "fifth", 30, 1, NAN);
	bystanders.most[USE_MEMORY][0] = other(10, "cam", 55, 8e9, NAN);
	bystanders.most[USE_MEMORY][1] = other(24, "chrome", NAN, 7e9, NAN);
	bystanders.most[USE_IO][0] = other(10, "cam", 55, 8e9, 9e9);
	gather();
	ck_assert_str_eq(facts.process[0].name, "stress");
	ck_assert_int_eq(facts.process[0].pid, 20);
	ck_assert_double_eq(facts.process[0].cpu_percent, 60);
	ck_assert_double_eq(facts.process[0].rss_bytes, 1);
	ck_assert_double_eq(facts.process[0].io_bytes, 5);
	ck_assert_str_eq(facts.process[1].name, "detector");
	ck_assert(isnan(facts.process[0].busy_s));
	ck_assert_double_eq(facts.process[1].busy_s, 7);
	ck_assert_str_eq(facts.process[2].name, "gzip");
	ck_assert_str_eq(facts.largest.name, "chrome");
	ck_assert_double_eq(facts.largest.rss_bytes, 7e9);
}
END_TEST

START_TEST(what_uses_storage_has_the_last_slot)
{
	bystanders.most[USE_IO][0] = other(30, "dd", 2, 1, 9e6);
	gather();
	ck_assert_str_eq(facts.process[0].name, "dd");
	ck_assert_str_eq(facts.process[1].name, "");
	for (int i = 0; i < 3; i++) {
		bystanders.most[USE_CPU][i] = other(20 + i, "x", 60 - i, 1, NAN);
	}
	gather();
	ck_assert_int_eq(facts.process[0].pid, 20);
	ck_assert_int_eq(facts.process[1].pid, 21);
	ck_assert_str_eq(facts.process[2].name, "dd");
	ck_assert_double_eq(facts.process[2].io_bytes, 9e6);
	bystanders.most[USE_IO][0] = other(21, "x", 59, 1, 9e6);
	gather();
	ck_assert_double_eq(facts.process[1].io_bytes, 9e6);
	ck_assert_int_eq(facts.process[2].pid, 22);
}
END_TEST

START_TEST(what_is_named_like_the_app_is_no_other_process)
{
	own.pid = 0; /* it sends datagrams */
	row("cam", 20, "cam-app", 99);
	row("camera", 22, "camera", 50);
	bystanders.most[USE_CPU][0] = other(20, "cam-app", 99, 8e9, 5);
	bystanders.most[USE_CPU][1] = other(21, "cam", 60, 1, 5);
	bystanders.most[USE_CPU][2] = other(22, "camera", 50, 1, 5);
	bystanders.most[USE_MEMORY][0] = other(20, "cam-app", 99, 8e9, 5);
	gather();
	ck_assert_str_eq(facts.process[0].name, "camera");
	ck_assert_str_eq(facts.process[1].name, "");
	ck_assert_str_eq(facts.largest.name, "");
}
END_TEST

START_TEST(what_runs_now_is_not_known_of_the_time_of_an_app_that_ended)
{
	bystanders.most[USE_CPU][0] = other(10, "own", 99, 1, 5);
	bystanders.most[USE_MEMORY][0] = other(22, "chrome", NAN, 9e9, NAN);
	app.processes = 0;
	gather();
	ck_assert_str_eq(facts.process[0].name, "");
	ck_assert_str_eq(facts.largest.name, "");
}
END_TEST

START_TEST(bystanders_of_16_s_ago_are_not_known)
{
	bystanders.most[USE_CPU][0] = other(20, "stress", 60, 1, 5);
	bystanders.most[USE_MEMORY][0] = other(22, "chrome", NAN, 9e9, NAN);
	bystanders.t_ns = NOW - 16 * SECOND;
	gather();
	ck_assert_str_eq(facts.process[0].name, "");
	ck_assert_str_eq(facts.largest.name, "");
}
END_TEST

START_TEST(the_process_that_computes_most_is_the_main_one)
{
	static struct app_process second = {.pid = 11};
	app.process[1] = &second;
	app.processes = 2;
	row("cam", 10, "launcher", NAN);
	struct process_row *main_row = row("cam", 11, "cam", 70);
	main_row->scheduling_known = true;
	main_row->nice = 12;
	main_row->policy = 3;
	main_row->extra.quota_percent = 150;
	main_row->extra.throttled_share = 0.25;
	snprintf(main_row->cpus, sizeof(main_row->cpus), "0-3,6");
	gather();
	ck_assert_int_eq(facts.nice, 12);
	ck_assert_str_eq(facts.policy, "SCHED_BATCH");
	ck_assert_double_eq(facts.quota_percent, 150);
	ck_assert_double_eq(facts.quota_throttled, 0.25);
	ck_assert_double_eq(facts.cpus_allowed, 5);
	/* without a quota, whatever the group's counters say */
	main_row->extra.quota_percent = NAN;
	main_row->scheduling_known = false;
	gather();
	ck_assert(isnan(facts.quota_percent) && isnan(facts.quota_throttled));
	ck_assert_str_eq(facts.policy, "");
}
END_TEST

static const char *const bad_lists[] = {"", "x", "3-1", "0-99999", "0-3,...", "1,,2"};

START_LOOP_TEST(a_list_of_cpus_that_is_cut_is_not_counted, 0, COUNT(bad_lists))
{
	struct process_row *main_row = row("cam", 10, "cam", 70);
	snprintf(main_row->cpus, sizeof(main_row->cpus), "%s", bad_lists[_i]);
	gather();
	ck_assert(isnan(facts.cpus_allowed));
}
END_TEST

START_TEST(modes_are_copied)
{
	modes = (struct modes){.have_power_mode = true,
		.power_mode = 2,
		.power_mode_name = "15W",
		.governor = "powersave",
		.frequency_limit = 0.5,
		.limit_ns = NOW - 10 * SECOND};
	gather();
	ck_assert_str_eq(facts.governor, "powersave");
	ck_assert_str_eq(facts.power_mode, "15W");
	ck_assert_double_eq(facts.frequency_limit, 0.5);
	modes.power_mode_name[0] = '\0'; /* nvpmodel.conf is not there or does not have it */
	gather();
	ck_assert_str_eq(facts.power_mode, "2");
	modes.have_power_mode = false;
	gather();
	ck_assert_str_eq(facts.power_mode, "");
}
END_TEST

START_TEST(a_limit_read_when_throttling_began_is_not_known)
{
	throttle.times.hold_ns = 5 * SECOND;
	modes = (struct modes){.frequency_limit = 0.5, .limit_ns = NOW - 10 * SECOND};
	for (uint64_t s = 20; s > 0; s--) {
		throttle_times_sample(
			&throttle.times, NOW - s * SECOND, s <= 9 ? THROTTLE_YES : THROTTLE_NO);
	}
	gather();
	ck_assert(isnan(facts.frequency_limit));
	modes.limit_ns = NOW - 15 * SECOND;
	gather();
	ck_assert_double_eq(facts.frequency_limit, 0.5);
}
END_TEST
