/* SPDX-License-Identifier: Apache-2.0 */
/* The list of watched processes. */
#include "daemon/core/metrics/processes.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>

#include "tests/unit/unit.h"

static struct processes processes;

START_TEST(a_watch_is_added_once)
{
	struct watch watch = {.kind = WATCH_PATTERN, .name = "ffmpeg", .pattern = "ffmpeg*"};
	ck_assert_int_eq(processes_watch(&processes, &watch), 0);
	ck_assert_uint_eq(processes.serial, 1);
	ck_assert_int_eq(processes_watch(&processes, &watch), -EEXIST);
	ck_assert_uint_eq(processes.serial, 1);
	ck_assert_uint_eq(processes.watches, 1);
}
END_TEST

START_TEST(a_reused_pid_is_another_watch)
{
	struct watch watch = {.kind = WATCH_APP, .name = "cam", .pid = 7, .start_ticks = 100};
	ck_assert_int_eq(processes_watch(&processes, &watch), 0);
	watch.start_ticks = 200;
	ck_assert_int_eq(processes_watch(&processes, &watch), 0);
	watch.kind = WATCH_PID;
	ck_assert_int_eq(processes_watch(&processes, &watch), 0);
	ck_assert_uint_eq(processes.watches, 3);
}
END_TEST

START_TEST(removal_takes_kind_name_and_pid)
{
	struct watch watch = {.kind = WATCH_APP, .name = "cam"};
	for (pid_t pid = 1; pid <= 4; pid++) {
		watch.pid = pid;
		ck_assert_int_eq(processes_watch(&processes, &watch), 0);
	}
	uint32_t serial = processes.serial;
	ck_assert_int_eq(processes_unwatch(&processes, WATCH_PID, "cam", 0), 0);
	ck_assert_int_eq(processes_unwatch(&processes, WATCH_APP, "other", 0), 0);
	ck_assert_int_eq(processes_unwatch(&processes, WATCH_APP, "cam", 9), 0);
	ck_assert_uint_eq(processes.serial, serial);
	ck_assert_int_eq(processes_unwatch(&processes, WATCH_APP, "cam", 2), 1);
	ck_assert_uint_eq(processes.serial, serial + 1);
	ck_assert_uint_eq(processes.watches, 3);
	ck_assert_int_eq(processes.watch[1].pid, 3);
	ck_assert_int_eq(processes_unwatch(&processes, WATCH_APP, "cam", 0), 3);
	ck_assert_uint_eq(processes.watches, 0);
}
END_TEST

START_TEST(the_list_ends_at_its_limit_and_counts)
{
	struct watch watch = {.kind = WATCH_PID, .name = "x"};
	for (int i = 0; i < WATCHES_MAX; i++) {
		watch.pid = i + 1;
		ck_assert_int_eq(processes_watch(&processes, &watch), 0);
	}
	watch.pid = WATCHES_MAX + 1;
	ck_assert_int_eq(processes_watch(&processes, &watch), -ENOSPC);
	ck_assert_uint_eq(processes.refused, 1);
	watch.pid = 1;
	ck_assert_int_eq(processes_watch(&processes, &watch), -EEXIST);
	ck_assert_uint_eq(processes.refused, 1);
}
END_TEST

START_TEST(watches_made_at_run_time_go_by_their_own_way)
{
	struct watch watch = {.kind = WATCH_PATTERN, .name = "cam", .pattern = "cam*"};
	ck_assert_int_eq(processes_watch(&processes, &watch), 0);
	struct watch own = {.kind = WATCH_PID, .name = "cam", .pid = 7, .runtime = true};
	ck_assert_int_eq(processes_watch(&processes, &own), 0);
	own = (struct watch){
		.kind = WATCH_UNIT, .name = "x", .pattern = "x.service", .runtime = true};
	ck_assert_int_eq(processes_watch(&processes, &own), 0);
	ck_assert_uint_eq(processes_runtime(&processes), 2);
	ck_assert_int_eq(processes_unwatch(&processes, WATCH_PID, "cam", 0), 0);
	ck_assert_int_eq(processes_unwatch_runtime(&processes, 8, NULL), 0);
	ck_assert_int_eq(processes_unwatch_runtime(&processes, 0, "cam*"), 0);
	ck_assert_int_eq(processes_unwatch_runtime(&processes, 7, NULL), 1);
	ck_assert_int_eq(processes_unwatch_runtime(&processes, 0, "x.service"), 1);
	ck_assert_uint_eq(processes.watches, 1);
}
END_TEST

/* covers G1.5 */
START_TEST(instructions_per_cycle_have_a_verdict)
{
	static const struct {
		double cycles, instructions;
		const char *verdict;
	} cases[] = {{100, 99, "stalled"}, {100, 100, "mixed"}, {100, 150, "mixed"},
		{100, 151, "efficient"}, {0, 5, ""}, {NAN, 5, ""}, {100, NAN, ""}};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const double counter[PROCESS_COUNTERS] = {cases[i].cycles, cases[i].instructions};
		ck_assert_str_eq(process_ipc_verdict(process_ipc(counter)), cases[i].verdict);
	}
	ck_assert_str_eq(process_policy_name(2), "SCHED_RR");
	ck_assert_str_eq(process_policy_name(-1), "");
	ck_assert_str_eq(process_policy_name(99), "");
}
END_TEST
