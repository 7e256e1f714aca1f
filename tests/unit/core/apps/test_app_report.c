/* SPDX-License-Identifier: Apache-2.0 */
/* The report's text: the golden one, what it is cut to, and that hints come only with evidence. */
#include "daemon/core/report/report.h"

#include <errno.h>
#include <stdlib.h>

#include "daemon/core/apps/apps.h"
#include "daemon/core/frames/settings.h"
#include "daemon/core/core.h"
#include "daemon/core/metrics/metrics.h"
#include "daemon/core/metrics/processes.h"
#include "daemon/core/metrics/wallclock.h"
#include "daemon/core/status/facts.h"
#include "tests/unit/alloc_faults.h"
#include "tests/unit/core/apps/apps_fixture.h"
#include "tests/unit/unit.h"

static struct wallclock wall;
static struct machine_facts facts;
static struct processes processes;
static struct core core;
static char text[APP_REPORT_SIZE];

static void report_setup(void)
{
	setenv("TZ", "EET-2", 1); /* times are local */
	setup();
	wallclock_init(&wall);
	wallclock_note(&wall, T0, INT64_C(1763703625) * 1000000000, true);
	facts = (struct machine_facts){.cpus = 4};
	processes = (struct processes){.rows = 0};
	core = (struct core){.apps = apps,
		.metrics = metrics,
		.timeline = timeline,
		.wall = &wall,
		.facts = &facts,
		.processes = &processes};
}

static void declare_as(struct app_process *process, uint32_t index, const char *name,
	const char *category, const char *unit, uint64_t deadline_ns)
{
	struct proto_declaration d = {.deadline_ns = deadline_ns};
	snprintf(d.name, sizeof(d.name), "%s", name);
	snprintf(d.category, sizeof(d.category), "%s", category);
	snprintf(d.unit, sizeof(d.unit), "%s", unit);
	apps_declare(apps, process, index, &d);
}

static void tick(struct app_process *process, uint64_t t_ns)
{
	const struct proto_record r = {
		.kind = PROTO_KIND_FRAME, .start_ns = t_ns, .frame = PROTO_NO_FRAME};
	put(process, &r);
}

static const char *report_of(const char *name, uint64_t now_ns)
{
	ck_assert_int_gt(
		app_report_write(&core, apps_find(apps, name), now_ns, text, sizeof(text)), 0);
	return text;
}

static void has(const char *part)
{
	ck_assert_msg(strstr(text, part) != NULL, "%s\nis not in\n%s", part, text);
}

static void has_not(const char *part)
{
	ck_assert_msg(strstr(text, part) == NULL, "%s\nis in\n%s", part, text);
}

/* Golden vector C as operations, golden vector A as frames. */
static struct app_process *golden(void)
{
	static const uint64_t deltas_ms[] = {33, 34, 33, 50, 33, 35, 100, 33, 34, 33};
	struct app_process *p = attach_as("cam", 1000, 12, T0);
	uint64_t t_ns = T0 + 1 * S;
	declare_as(p, 0, "decode", "io", "cpu", 0);
	declare_as(p, 1, "detect", "inference", "gpu", 0);
	declare_as(p, 2, "pose", "inference", "gpu", 40 * S);
	declare_as(p, 3, "classify", "inference", "cpu", 50 * S);
	tick(p, t_ns);
	put_run(p, 0, T0, 37244 * MS);
	put_run(p, 1, T0, 112345 * MS);
	put_run(p, 2, T0, 24336 * MS);
	put_run(p, 2, T0, 24336 * MS);
	put_run(p, 3, T0, 37217 * MS);
	for (size_t i = 0; i < 10; i++) {
		t_ns += deltas_ms[i] * MS;
		tick(p, t_ns);
	}
	p->accounting = (struct app_accounting){.sent = 18, .received = 16, .dropped = 2};
	return p;
}

static const char golden_text[] =
	"REPORT OF cam\n"
	"User        1000\n"
	"State       ended (2025-11-21 07:45:25 +0200)\n"
	"Began       2025-11-21 07:40:25 +0200, 300.0 s before, 1 start\n"
	"Frames      11; 23.92 fps (frames over time), 26.89 fps (mean of 1/dt)\n"
	"Frame time  mean 41.8, P95 77.5, P99 95.5, jitter 20.0 ms\n"
	"Events      18 sent, 16 received, 2 dropped\n"
	"\n"
	"PIPELINE PROFILING REPORT\n"
	"Stage               Mean ms     P95 ms     P99 ms      Count\n"
	"decode@cpu          37244.0    37244.0    37244.0          1\n"
	"detect@gpu         112345.0   112345.0   112345.0          1\n"
	"pose@gpu            24336.0    24336.0    24336.0          2\n"
	"classify@cpu        37217.0    37217.0    37217.0          1\n"
	"TOTAL               23547.8\n" /* in the first of ten intervals */
	"MAX FPS                 0.0\n"
	"\n"
	"Total Profiled Time: 235.478 s\n"
	"\n"
	"inference: 198.234 s, 84.2 % of total\n"
	"  Operation             Count    Total s    Avg ms    Min ms    Max ms   % cat.  % total\n"
	"  detect@gpu                1    112.345 112345.00 112345.00 112345.00    56.67    47.71\n"
	"  pose@gpu                  2     48.672  24336.00  24336.00  24336.00    24.55    20.67\n"
	"  classify@cpu              1     37.217  37217.00  37217.00  37217.00    18.77    15.80\n"
	"\n"
	"io: 37.244 s, 15.8 % of total\n"
	"  Operation             Count    Total s    Avg ms    Min ms    Max ms   % cat.  % total\n"
	"  decode@cpu                1     37.244  37244.00  37244.00  37244.00   100.00    15.82\n"
	"\n"
	"By compute unit\n"
	"Unit             Stages      Count    Total s   Mean ms    P99 ms  % total\n"
	"gpu                   2          3    161.017  53672.33 110584.82    68.38\n"
	"cpu                   2          2     74.461  37230.50  37243.73    31.62\n"
	"\n"
	"Most time in\n"
	"1. detect@gpu: 112.345 s, 47.7 % of total\n"
	"2. pose@gpu: 48.672 s, 20.7 % of total\n"
	"3. decode@cpu: 37.244 s, 15.8 % of total\n"
	"\n"
	"Deadlines\n"
	"pose@gpu (40000 ms, declared): 0 of 2 missed (0.00 %)\n"
	"classify@cpu (50000 ms, declared): 0 of 1 missed (0.00 %)\n"
	"\n"
	"Keep in mind\n"
	"- only 11 frames: percentiles want 100 or more\n"
	"- 2 of 18 events were dropped: counts and sums are too low\n";

FIXTURE(report_setup, teardown);

/* covers G0.5 G1.16 G3.1 G3.2 G3.3 G4.5 */
START_TEST(golden_report_of_an_app_that_ended)
{
	struct app_process *p = golden();
	apps_detach(apps, p, PROCESS_ENDED, T0 + 300 * S);
	ck_assert_str_eq(report_of("cam", T0 + 999 * S), golden_text);
	char summary[APP_REPORT_SUMMARY];
	app_report_summary(apps_find(apps, "cam"), T0 + 999 * S, summary);
	ck_assert_str_eq(summary, "11 frames at 23.9 fps, 0 missed deadlines, in a run of 300.0 s");
}
END_TEST

START_TEST(one_that_died_tells_its_last_words_and_one_that_runs_its_time)
{
	struct app_process *p = golden();
	report_of("cam", T0 + 4 * S);
	has("State       running (2025-11-21 07:40:29 +0200)");
	has("Began       2025-11-21 07:40:25 +0200, 4.0 s before, 1 start\n");
	report_of("cam", T0 + 400 * S);
	has("State       idle (");
	const struct proto_open_stage open = {.stage = 1, .frame = 8841, .start_ns = T0};
	apps_open_add(p, &open, 0, 0);
	apps_detach(apps, p, PROCESS_DIED, T0 + 5 * S);
	report_of("cam", T0 + 10 * S);
	has("State       died in `detect`, frame 8841 (2025-11-21 07:40:30 +0200)");
	apps_detach(apps, attach_as("cam", 1000, 13, T0 + 20 * S), PROCESS_ENDED, T0 + 21 * S);
	report_of("cam", T0 + 30 * S);
	has("State       ended (2025-11-21 07:40:46 +0200)");
	has(", 1.0 s before, 1 start, run 2\n");
	setenv("TZ", "NST3:30", 1); /* the system's zone was changed */
	report_of("cam", T0 + 30 * S);
	has("State       ended (2025-11-21 02:10:46 -0330)");
}
END_TEST

START_TEST(missed_deadlines_say_whose_deadline_it_is)
{
	struct app_process *p = attach_as("cam", 1000, 12, T0);
	declare_as(p, 0, "infer", "", "", 10 * MS);
	declare_as(p, 1, "free", "", "", 0);
	for (uint64_t i = 0; i < 200; i++) {
		put_run(p, 0, T0 + i * 20 * MS, (i % 50 < 2 ? 12 + i : 9) * MS);
		put_run(p, 1, T0 + i * 20 * MS, MS);
	}
	report_of("cam", T0 + 60 * S);
	has("\nDeadlines\ninfer (10 ms, declared): 8 of 200 missed (4.00 %)\n"
	    "    worst 163.0 ms, up to 2 in a row\n");
	has_not("free (");
	apps_find(apps, "cam")->stage[0]->settings.deadline_ns = 10 * MS;
	report_of("cam", T0 + 60 * S);
	has("infer (10 ms, configured)");
}
END_TEST

/* covers G3.15 */
START_TEST(hints_come_only_with_evidence)
{
	struct app_process *p = attach_as("cam", 1000, 12, T0);
	declare_as(p, 0, "infer", "", "", 0);
	put_run(p, 0, T0, MS);
	report_of("cam", T0 + 10 * S);
	has("- only 1 run of a stage: percentiles want 100 or more\n");
	for (uint64_t i = 1; i < 100; i++) {
		put_run(p, 0, T0 + i * MS, MS);
	}
	report_of("cam", T0 + 10 * S);
	has_not("Keep in mind");
	p->accounting = (struct app_accounting){.sent = 100, .received = 93, .dropped = 7};
	facts.virtual_machine = true;
	report_of("cam", T0 + 9 * S);
	has("\nKeep in mind\n- only 9.0 s: ");
	has("- 7 of 100 events were dropped: ");
	has("- a virtual machine: ");
	has_not("other processes");
	has_not("percentiles want");
	for (uint64_t i = 0; i < 99; i++) {
		tick(p, T0 + i * MS);
	}
	apps_detach(apps, p, PROCESS_ENDED, T0 + 20 * S);
	report_of("cam", T0 + 20 * S);
	has("- only 99 frames: percentiles want 100 or more\n");
	has_not("- only 20");
}
END_TEST

/* covers G3.15 */
START_TEST(other_busy_processes_are_told_when_the_app_s_own_share_is_known)
{
	struct metric *busy = NULL;
	struct app_process *p = attach_as("cam", 1000, 12, T0);
	declare_as(p, 0, "infer", "", "", 0);
	put_run(p, 0, T0, MS);
	ck_assert_int_eq(metrics_add(metrics, source, "cpu/utilization", UNIT_PERCENT, &busy), 0);
	metric_set(busy, 90);
	report_of("cam", T0 + 10 * S);
	has_not("other processes");
	processes.rows = 2;
	processes.row[0] = (struct process_row){
		.pid = 12, .watch = "cam", .cpu_percent = 120, .t_ns = T0 + 9 * S};
	processes.row[1] = (struct process_row){
		.pid = 14, .watch = "edgeprofd", .cpu_percent = 5, .t_ns = T0 + 9 * S};
	report_of("cam", T0 + 10 * S);
	has("- other processes used 2.4 of 4 cores at its end\n");
	processes.row[0].t_ns = T0 + 16 * S;
	report_of("cam", T0 + 10 * S);
	has_not("other processes");
	processes.row[0].t_ns = T0 + 9 * S;
	processes.row[0].cpu_percent = 300;
	report_of("cam", T0 + 10 * S);
	has_not("other processes");
}
END_TEST

/* covers G3.15 */
START_TEST(throttled_runs_are_told)
{
	struct throttle_times times = {.count = 0};
	throttle_times_sample(&times, T0, THROTTLE_NO);
	throttle_times_sample(&times, T0 + 3 * S, THROTTLE_YES);
	throttle_times_sample(&times, T0 + 4 * S, THROTTLE_NO);
	apps_set_throttle_times(apps, &times);
	struct app_process *p = attach_as("cam", 1000, 12, T0);
	declare_as(p, 0, "infer", "", "", 0);
	for (uint64_t i = 0; i < 8; i++) {
		put_run(p, 0, T0 + i * S / 2 + 1, MS);
	}
	report_of("cam", T0 + 10 * S);
	has("- the hardware throttled in 25.0 % of the runs of stages\n");
	apps_set_throttle_times(apps, NULL);
}
END_TEST

START_TEST(slow_frames_say_where_their_time_went)
{
	static struct app_settings settings;
	struct app_section *of_cam = NULL;
	ck_assert_int_eq(app_settings_section(&settings, SECTION_FRAME, "cam", &of_cam), 0);
	of_cam->frames.deadline_ns = 50 * MS;
	apps_configure(apps, &(struct apps_config){.settings = &settings});
	struct app_process *p = attach_as("cam", 1000, 12, T0);
	declare_as(p, 0, "capture", "", "", 0);
	declare_as(p, 1, "infer", "", "", 0);
	for (uint64_t i = 0; i < 30; i++) {
		uint64_t start_ns = T0 + i * 200 * MS;
		uint64_t infer_ms = i == 7 ? 80 : i == 11 ? 60 : 20;
		struct proto_record r = {.kind = PROTO_KIND_COMPLETE,
			.cpu_us = PROTO_CPU_NOT_MEASURED,
			.start_ns = start_ns,
			.value = 5 * MS,
			.frame = i};
		put(p, &r);
		r.stage = 1;
		r.start_ns += 5 * MS;
		r.value = infer_ms * MS;
		put(p, &r);
		r = (struct proto_record){.kind = PROTO_KIND_FRAME,
			.start_ns = start_ns,
			.value = (infer_ms + (i == 15 ? 60 : 5)) * MS,
			.frame = i};
		put(p, &r);
	}
	apps_detach(apps, p, PROCESS_ENDED, T0 + 20 * S);
	report_of("cam", T0 + 20 * S);
	has("\nframes (50 ms, configured): 3 of 30 missed (10.00 %)\n    worst 85.0 ms, up to 1 in "
	    "a row\n");
	has("\nSlowest of the last 3 slow frames (3 in all)\n"
	    "frame 7: 85.0 ms, most in infer (80.0 ms)\n"
	    "frame 15: 80.0 ms, most outside of stages (55.0 ms)\n"
	    "frame 11: 65.0 ms, most in infer (60.0 ms)\n");
	has("End to end  mean 30.2, P95 ");
}
END_TEST

/* covers G3.7 */
START_TEST(energy_is_told_where_it_is_known)
{
	struct app_process *p = attach_as("cam", 1000, 12, T0);
	declare_as(p, 0, "infer", "", "", 0);
	put_run(p, 0, T0, MS);
	tick(p, T0 + MS);
	report_of("cam", T0 + S);
	has_not("Energy");
	p->app->energy = (struct app_energy){.begun = true, .frame_mj = 12.5};
	p->app->stage[0]->energy.share = 0.5;
	report_of("cam", T0 + S);
	has("\nEnergy in the last interval (estimate: energy of the whole board / frames)\n"
	    "a frame: 12.50 mJ\n    infer: 6.25 mJ\n");
}
END_TEST

START_TEST(long_runs_say_that_percentiles_are_estimates)
{
	struct app_process *p = attach_as("cam", 1000, 12, T0);
	declare_as(p, 0, "infer", "", "", 0);
	for (uint64_t i = 0; i < 1024; i++) {
		put_run(p, 0, T0 + i * MS, MS);
		tick(p, T0 + i * MS);
	}
	report_of("cam", T0 + 10 * S);
	has("; 1000.00 fps (frames over time)\n");
	has_not("nan"); /* the mean of 1/dt is not kept so long */
	put_run(p, 0, T0 + 2000 * MS, MS);
	report_of("cam", T0 + 10 * S);
	has("(percentiles of the whole run: within 1 %)");
	has("infer                   1.0        1.0        1.0       1025\n");
}
END_TEST

START_TEST(many_full_windows_are_not_all_sorted)
{
	struct app_process *p = attach_as("cam", 1000, 12, T0);
	for (uint32_t i = 0; i <= APP_REPORT_SORTED / 1024; i++) {
		char name[16];
		snprintf(name, sizeof(name), "s%u", i);
		declare_as(p, i, name, "", "", 0);
		report_of("cam", T0 + 10 * S);
		has_not("within 1 %");
		for (uint64_t k = 0; k < 1024; k++) {
			put_run(p, (uint16_t)i, T0 + k * MS, MS);
		}
	}
	report_of("cam", T0 + 10 * S);
	has("(percentiles of the whole run: within 1 %)");
}
END_TEST

START_TEST(report_with_every_stage_fits_and_a_small_one_ends_at_a_line)
{
	struct app_process *p = attach_as("cam", 1000, 12, T0);
	for (uint32_t i = 0; i < PROTO_DECLARATIONS; i++) {
		char name[PROTO_NAME_SIZE], category[PROTO_LABEL_SIZE];
		snprintf(name, sizeof(name), "stage-%042u", i);
		snprintf(category, sizeof(category), "category-%014u", i);
		declare_as(p, i, name, category, "accelerator-0123456789", 1);
		put_run(p, (uint16_t)i, T0, MS);
	}
	const char *whole = report_of("cam", T0 + S);
	size_t length = strlen(whole);
	ck_assert_uint_lt(length, sizeof(text));
	ck_assert_int_eq(whole[length - 1], '\n');
	for (size_t size = 1024; size < 9000; size += 977) {
		int n = app_report_write(&core, apps_find(apps, "cam"), T0 + S, text, size);
		ck_assert_int_gt(n, 0);
		ck_assert_uint_eq((size_t)n, strlen(text));
		ck_assert_uint_lt((size_t)n, size);
		ck_assert_ptr_nonnull(strstr(text, "\n(cut: the report would be longer)\n"));
		ck_assert_int_eq(text[n - 1], '\n');
	}
}
END_TEST

START_TEST(no_memory_is_enomem_and_leaves_nothing)
{
	struct app_process *p = golden();
	for (size_t fail_at = 1; fail_at <= 2; fail_at++) {
		alloc_faults_start(fail_at);
		int r = app_report_write(&core, p->app, T0 + S, text, sizeof(text));
		alloc_faults_stop();
		ck_assert_int_eq(r, -ENOMEM);
	}
}
END_TEST

START_TEST(frames_at_one_time_have_no_rate)
{
	struct app_process *p = attach_as("cam", 1000, 12, T0);
	for (int i = 0; i < 5; i++) {
		tick(p, T0 + S);
	}
	apps_detach(apps, p, PROCESS_ENDED, T0 + 2 * S);
	report_of("cam", T0 + 2 * S);
	has("Frames      5; - fps (frames over time)");
}
END_TEST

START_TEST(app_that_told_nothing_is_worth_no_report)
{
	struct app_process *p = attach_as("cam", 1000, 12, T0);
	declare_as(p, 0, "infer", "", "", 0);
	ck_assert(!app_report_worth(p->app));
	report_of("cam", T0 + S);
	has("Frames      none were reported");
	put_run(p, 0, T0, MS);
	ck_assert(app_report_worth(p->app));
	char summary[APP_REPORT_SUMMARY];
	app_report_summary(p->app, T0 + S, summary);
	ck_assert_str_eq(summary, "1 execution, 0 missed deadlines, in a run of 1.0 s");
}
END_TEST
