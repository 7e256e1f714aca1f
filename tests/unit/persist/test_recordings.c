/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/core/status/recordings.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/recorder/recording_folder.h"
#include "daemon/util/file.h"
#include "tests/unit/unit.h"

#define S UINT64_C(1000000000)
#define HOUR (3600 * S)

static char dir[] = "/tmp/test-recordings.XXXXXX";
static struct recordings recordings;
static int folder;
static uint8_t put_flags;

static void setup(void)
{
	memcpy(dir + sizeof(dir) - 7, "XXXXXX", 6);
	ck_assert_ptr_nonnull(mkdtemp(dir));
	memset(&recordings, 0, sizeof(recordings));
	put_flags = RECORD_OF_APP;
	folder = folder_open(dir, 0);
	ck_assert_int_ge(folder, 0);
}

static void teardown(void)
{
	for (size_t i = 0; i < recordings.count; i++) {
		char file[80];
		snprintf(file, sizeof(file), "%s.jsonl", recordings.row[i].name);
		unlinkat(folder, file, 0);
	}
	unlinkat(folder, "20251122-010002-half.jsonl", 0);
	close(folder);
	ck_assert_int_eq(rmdir(dir), 0);
}

/* A file with a last line as the recorder writes it; second: its modification time. */
static void put(const char *name, size_t padding, time_t second)
{
	char file[80], line[RECORDING_END_MAX];
	const struct recording row = {.time_us = 1700000000000000 + second,
		.trigger = "alert hot:_ (critical): 85 °C",
		.span_s = 40,
		.before_s = 30,
		.after_s = 10,
		.records = 17,
		.lost = 3,
		.triggers = 2,
		.flags = put_flags,
		.cut = "records over max_size"};
	int n = recording_row_write(&row, "end", "", line, sizeof(line));
	ck_assert_int_gt(n, 0);
	snprintf(file, sizeof(file), "%s.jsonl", name);
	int fd = openat(folder, file, O_WRONLY | O_CREAT | O_EXCL, 0640);
	ck_assert_int_ge(fd, 0);
	for (size_t i = 0; i < padding; i++) {
		ck_assert_int_eq(write(fd, i + 1 == padding ? "\n" : "x", 1), 1);
	}
	ck_assert_int_eq(write(fd, line, (size_t)n), n);
	const struct timespec times[2] = {{second, 0}, {second, 0}};
	ck_assert_int_eq(futimens(fd, times), 0);
	close(fd);
}

FIXTURE(setup, teardown);

START_TEST(twelve_in_any_24_hours)
{
	struct record_memory memory = {.started = {0}};
	for (unsigned i = 0; i < RECORDINGS_A_DAY; i++) {
		ck_assert(record_memory_start(&memory, i * HOUR, RECORD_OF_PERSON));
	}
	ck_assert(!record_memory_start(&memory, 12 * HOUR, RECORD_OF_PERSON));
	ck_assert(!record_memory_start(&memory, 24 * HOUR - 1, RECORD_OF_PERSON));
	ck_assert(!record_memory_start(&memory, 24 * HOUR - 1, RECORD_CRITICAL));
	/* the first is a day old */
	ck_assert(record_memory_start(&memory, 24 * HOUR, RECORD_OF_PERSON));
	ck_assert(!record_memory_start(&memory, 24 * HOUR + S, RECORD_OF_PERSON));
	ck_assert(record_memory_start(&memory, 25 * HOUR, 0));
}
END_TEST

static unsigned start_all(struct record_memory *memory, uint64_t now_ns, uint8_t flags)
{
	unsigned started = 0;
	while (started < 100 && record_memory_start(memory, now_ns + started, flags)) {
		started++;
	}
	return started;
}

START_TEST(warnings_leave_some_for_critical_alerts_and_both_for_people)
{
	struct record_memory memory = {.started = {0}};
	ck_assert_uint_eq(start_all(&memory, HOUR, 0), RECORDINGS_MINOR);
	ck_assert_uint_eq(start_all(&memory, 2 * HOUR, RECORD_CRITICAL),
		RECORDINGS_AUTOMATIC - RECORDINGS_MINOR);
	ck_assert_uint_eq(start_all(&memory, 3 * HOUR, 0), 0);
	/* two are free, the others take the places of the automatic ones */
	ck_assert_uint_eq(start_all(&memory, 4 * HOUR, RECORD_OF_PERSON), RECORDINGS_A_DAY);
	ck_assert_uint_eq(start_all(&memory, 5 * HOUR, 0), 0);
}
END_TEST

START_TEST(a_request_takes_the_place_of_the_oldest_automatic_one)
{
	struct record_memory memory = {.started = {0}};
	ck_assert(record_memory_start(&memory, HOUR, RECORD_CRITICAL));
	ck_assert_uint_eq(start_all(&memory, 2 * HOUR, 0), RECORDINGS_MINOR);
	ck_assert_uint_eq(start_all(&memory, 3 * HOUR, RECORD_CRITICAL), 1);
	for (unsigned i = 0; i < 3; i++) {
		ck_assert(record_memory_start(&memory, 4 * HOUR + i, RECORD_OF_PERSON));
	}
	/* warnings first: of them the oldest */
	ck_assert_uint_eq(memory.started[0], HOUR + 1);
	ck_assert_uint_eq(memory.started[1], 4 * HOUR + 2 + 1);
	ck_assert_uint_eq(memory.started[2], 2 * HOUR + 1 + 1);
	/* that gave nobody a slot more than there are */
	ck_assert_uint_eq(start_all(&memory, 5 * HOUR, 0), 0);
	ck_assert_uint_eq(start_all(&memory, 5 * HOUR, RECORD_CRITICAL), 0);
}
END_TEST

START_TEST(what_is_reserved_for_critical_alerts_is_there_also_when_people_have_taken_the_rest)
{
	struct record_memory memory = {.started = {0}};
	ck_assert_uint_eq(start_all(&memory, HOUR, 0), RECORDINGS_MINOR);
	for (unsigned i = 0; i < 4; i++) {
		ck_assert(record_memory_start(&memory, 2 * HOUR + i, RECORD_OF_PERSON));
	}
	ck_assert_uint_eq(start_all(&memory, 3 * HOUR, RECORD_CRITICAL), 2);
}
END_TEST

START_TEST(apps_leave_some_for_the_device)
{
	struct record_memory memory = {.started = {0}};
	/* of their warnings some for what is critical of theirs */
	ck_assert_uint_eq(start_all(&memory, HOUR, RECORD_OF_APP), RECORDINGS_OF_APPS_MINOR);
	ck_assert_uint_eq(start_all(&memory, 2 * HOUR, RECORD_OF_APP | RECORD_CRITICAL),
		RECORDINGS_OF_APPS - RECORDINGS_OF_APPS_MINOR);
	ck_assert_uint_eq(start_all(&memory, 3 * HOUR, RECORD_CRITICAL),
		RECORDINGS_AUTOMATIC - RECORDINGS_OF_APPS);
	ck_assert(record_memory_start(&memory, 26 * HOUR, RECORD_OF_APP)); /* they are a day old */
	memory = (struct record_memory){.started = {0}};
	ck_assert_uint_eq(
		start_all(&memory, HOUR, RECORD_OF_APP | RECORD_CRITICAL), RECORDINGS_OF_APPS);
	static const char *const of_apps[] = {"app/cam/hung", "stage/cam/infer/misses",
		"frame/x/fps", "gauge/cam/x", "counter/cam/x", "process/cam/rss"};
	static const char *const of_device[] = {
		"temperature/soc", "throttle/active", "application", "cpu/app/x", "", "stage"};
	for (size_t i = 0; i < sizeof(of_apps) / sizeof(of_apps[0]); i++) {
		ck_assert_msg(record_metric_of_app(of_apps[i]), "%s", of_apps[i]);
		ck_assert_msg(!record_metric_of_app(of_device[i]), "%s", of_device[i]);
	}
}
END_TEST

START_TEST(memory_of_another_boot_is_forgotten)
{
	const uint8_t one[16] = {1}, other[16] = {2};
	struct record_memory memory = {.started = {0}};
	ck_assert(!record_memory_adopt(&memory, one));
	ck_assert(record_memory_start(&memory, 5 * S, 0));
	ck_assert(record_memory_adopt(&memory, one));
	ck_assert_uint_eq(memory.started[0], 5 * S + 1);
	ck_assert(!record_memory_adopt(&memory, other));
	ck_assert_uint_eq(memory.started[0], 0);
}
END_TEST

START_TEST(names_are_one_segment_and_unique)
{
	char name[PROTO_NAME_SIZE];
	const int64_t time_us = 1763773200123456; /* 2025-11-22 01:00:00 UTC */
	ck_assert_int_eq(record_name(&recordings, time_us, RECORD_ALERT, "hot", name), 0);
	ck_assert_str_eq(name, "20251122-010000-alert-hot");
	memcpy(recordings.row[recordings.count++].name, name, sizeof(name));
	ck_assert_int_eq(record_name(&recordings, time_us, RECORD_ALERT, "hot", name), 0);
	ck_assert_str_eq(name, "20251122-010000-alert-hot.2");
	memcpy(recordings.open, name, sizeof(name)); /* one that is being made */
	ck_assert_int_eq(record_name(&recordings, time_us, RECORD_ALERT, "hot", name), 0);
	ck_assert_str_eq(name, "20251122-010000-alert-hot.3");
	recordings.open[0] = '\0';
	recordings.count = 0;
	ck_assert_int_eq(
		record_name(&recordings, INT64_C(4102444799000000), RECORD_NOW, "", name), 0);
	ck_assert_str_eq(name, "20991231-235959-now");
	static const char *const hostile[] = {
		"../../etc/passwd", "a\nb", "", "\xff\xfe", "/", "x y", "%s%n"};
	for (size_t i = 0; i < sizeof(hostile) / sizeof(hostile[0]); i++) {
		ck_assert_int_eq(record_name(&recordings, 0, RECORD_NOW, hostile[i], name), 0);
		ck_assert_msg(proto_name_valid(name) && !strchr(name, '/'), "%s", name);
		ck_assert_int_eq(strncmp(name, "19700101-000000-now", 19), 0);
	}
}
END_TEST

START_TEST(texts_stand_in_json_as_they_are)
{
	char text[] = "a\"b\\c\nd\x7f \xc3\xa4 \xc3";
	record_text_clean(text);
	ck_assert_str_eq(text, "a_b_c_d_ \xc3\xa4 _");
}
END_TEST

START_TEST(a_burst_begins_once)
{
	static struct record_bursts bursts;
	memset(&bursts, 0, sizeof(bursts));
	ck_assert(!record_burst(&bursts, 7, 4, 4, S));
	ck_assert(record_burst(&bursts, 7, 5, 5, 2 * S));
	ck_assert(!record_burst(&bursts, 7, 30, 35, 3 * S));
	ck_assert(record_burst(&bursts, 8, 5, 0, 3 * S));		   /* another stage */
	ck_assert(!record_burst(&bursts, 7, 5, 0, 3 * S + BURST_CALM_NS)); /* still the same */
	ck_assert(record_burst(&bursts, 7, 5, 0, 5 * S + 2 * BURST_CALM_NS));
}
END_TEST

START_TEST(a_slow_stream_bursts_by_misses_in_a_row)
{
	static struct record_bursts bursts;
	memset(&bursts, 0, sizeof(bursts));
	ck_assert(!record_burst(&bursts, 1, 1, 9, S));
	ck_assert(record_burst(&bursts, 1, 1, 10, 2 * S));
	ck_assert(!record_burst(&bursts, 2, (double)__builtin_nan(""), 50, S)); /* none told */
}
END_TEST

START_TEST(rows_come_from_the_files_oldest_first)
{
	put("20251122-010001-now", 10000, 200);
	put("20251122-010000-hang-cam", 0, 100);
	int fd = openat(folder, "20251122-010002-half.jsonl", O_WRONLY | O_CREAT, 0640);
	ck_assert_int_eq(write(fd, "{\"schema\":1}\n", 13), 13);
	close(fd);
	fd = openat(folder, "20251122-010003-x.jsonl.new", O_WRONLY | O_CREAT, 0640);
	close(fd);
	ck_assert_int_eq(
		symlinkat("20251122-010001-now.jsonl", folder, "20251122-010004-link.jsonl"), 0);
	recording_folder_scan(folder, 12, 1 << 20, &recordings);
	ck_assert_uint_eq(recordings.count, 2);
	const struct recording *row = &recordings.row[0];
	ck_assert_str_eq(row->name, "20251122-010000-hang-cam");
	ck_assert_str_eq(row->trigger, "alert hot:_ (critical): 85 °C");
	ck_assert_str_eq(row->cut, "records over max_size");
	ck_assert(row->span_s == 40 && row->before_s == 30 && row->after_s == 10);
	ck_assert_int_eq(row->flags, RECORD_OF_APP);
	ck_assert(row->records == 17 && row->lost == 3 && row->triggers == 2);
	ck_assert_int_eq(row->time_us, 1700000000000100);
	ck_assert_uint_gt(recordings.row[1].bytes, 10000);
	ck_assert_int_eq(
		faccessat(folder, "20251122-010003-x.jsonl.new", F_OK, 0), -1); /* of a crash */
	ck_assert_int_eq(
		unlinkat(folder, "20251122-010004-link.jsonl", 0), 0); /* not ours to touch */
}
END_TEST

/* As a user may leave them there, or somebody who wants the recorder to lose sight of its own. */
START_TEST(files_of_others_hide_nothing_and_stay)
{
	char name[40];
	close(openat(folder, "kept-0.jsonl", O_WRONLY | O_CREAT, 0640));
	for (int i = 1; i < 10000; i++) {
		snprintf(name, sizeof(name), "kept-%d.jsonl", i);
		ck_assert_int_eq(linkat(folder, "kept-0.jsonl", folder, name, 0), 0);
	}
	put("mine", 0, 50); /* a copy under another name */
	ck_assert_int_eq(mkfifoat(folder, "20251122-000009-fifo.jsonl", 0600), 0);
	close(openat(folder, "notes.new", O_WRONLY | O_CREAT, 0640));
	put("20251122-000001-now", 0, 100);
	put("20251122-000002-now", 0, 200);
	recording_folder_scan(folder, 1, 1 << 20, &recordings);
	ck_assert_uint_eq(recordings.count, 1);
	ck_assert_str_eq(recordings.row[0].name, "20251122-000002-now");
	ck_assert_int_eq(faccessat(folder, "20251122-000001-now.jsonl", F_OK, 0), -1);
	ck_assert_int_eq(unlinkat(folder, "mine.jsonl", 0), 0);
	ck_assert_int_eq(unlinkat(folder, "notes.new", 0), 0);
	ck_assert_int_eq(unlinkat(folder, "20251122-000009-fifo.jsonl", 0), 0);
	for (int i = 0; i < 10000; i++) {
		snprintf(name, sizeof(name), "kept-%d.jsonl", i);
		ck_assert_int_eq(unlinkat(folder, name, 0), 0);
	}
}
END_TEST

START_TEST(the_oldest_go_past_keep_and_past_total_size)
{
	for (int i = 0; i < 6; i++) {
		char name[40];
		snprintf(
			name, sizeof(name), "20251122-00000%d-now", (i * 5) % 6); /* not in order */
		put(name, 1000, 100 + (i * 5) % 6);
	}
	recording_folder_scan(folder, 4, 1 << 20, &recordings);
	ck_assert_uint_eq(recordings.count, 4);
	ck_assert_str_eq(recordings.row[0].name, "20251122-000002-now");
	ck_assert_str_eq(recordings.row[3].name, "20251122-000005-now");
	ck_assert_int_eq(faccessat(folder, "20251122-000001-now.jsonl", F_OK, 0), -1);
	recording_folder_scan(folder, 4, 3000, &recordings);
	ck_assert_uint_eq(recordings.count, 2);
	ck_assert_int_eq(faccessat(folder, "20251122-000003-now.jsonl", F_OK, 0), -1);
	recording_folder_scan(folder, 4, 1, &recordings); /* the newest always stays */
	ck_assert_uint_eq(recordings.count, 1);
	ck_assert_str_eq(recordings.row[0].name, "20251122-000005-now");
}
END_TEST

START_TEST(minor_ones_go_before_those_of_critical_alerts_and_people)
{
	static const struct {
		const char *name;
		uint8_t flags;
	} files[] = {{"20251122-000000-now", RECORD_OF_PERSON}, {"20251122-000001-alert", 0},
		{"20251122-000002-alert", RECORD_CRITICAL}, {"20251122-000003-alert", 0},
		{"20251122-000004-misses", RECORD_OF_APP}};
	for (size_t i = 0; i < 5; i++) {
		put_flags = files[i].flags;
		put(files[i].name, 1000, 100 + (time_t)i);
	}
	recording_folder_scan(folder, 4, 1 << 20, &recordings);
	ck_assert_uint_eq(recordings.count, 4);
	ck_assert_int_eq(faccessat(folder, "20251122-000001-alert.jsonl", F_OK, 0), -1);
	recording_folder_scan(folder, 3, 1 << 20, &recordings);
	ck_assert_int_eq(faccessat(folder, "20251122-000003-alert.jsonl", F_OK, 0), -1);
	/* the newest stays whatever it is */
	recording_folder_scan(folder, 2, 1 << 20, &recordings);
	ck_assert_uint_eq(recordings.count, 2);
	ck_assert_str_eq(recordings.row[0].name, files[2].name);
	ck_assert_str_eq(recordings.row[1].name, files[4].name);
}
END_TEST

static void leave(const char *name, const char *text, time_t second)
{
	int fd = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL, 0640);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	const struct timespec times[2] = {{second, 0}, {second, 0}};
	ck_assert_int_eq(futimens(fd, times), 0);
	close(fd);
}

#define HEADER                                                                                 \
	"{\"schema\":\"edgeprof.recording/1\",\"name\":\"x\",\"trigger\":{\"kind\":\"alert\"," \
	"\"subject\":\"hot\",\"text\":\"alert hot:_ (critical): 85\"},\"flags\":2,"            \
	"\"time_us\":1700000000000000,\"mono_us\":50000000,\"from_mono_us\":20000000,"         \
	"\"to_mono_us\":60000000}\n"
#define ROWS \
	"{\"call\":\"ExportTrace\",\"parameters\":{\"records\":{\"kind\":[1,2,3]},\"lost\":4}}\n"
#define PART                                                                                   \
	"{\"part\":{\"time_us\":1700000000000000,\"trigger\":\"alert hot:_ (critical): 85\","  \
	"\"triggers\":1,\"span_s\":34,\"before_s\":30,\"after_s\":4,\"records\":6,\"lost\":4," \
	"\"flags\":2,\"joined\":[]}}\n"

/* As kill -9 leaves it: all lines but the last, and half of one. */
START_TEST(what_a_killed_daemon_had_written_is_a_recording)
{
	static const char name[] = "20251122-010003-alert-hot.jsonl";
	struct recording row;
	char file[8192];
	leave("20251122-010003-alert-hot.jsonl.new",
		HEADER "{\"call\":\"GetStatus\",\"parameters\":{}}\n" ROWS ROWS PART ROWS
		       "{\"call\":\"ListE",
		1700000004);
	recording_folder_recover(folder);
	recording_folder_scan(folder, 4, 1 << 20, &recordings);
	ck_assert_uint_eq(recordings.count, 1);
	row = recordings.row[0];
	ck_assert_str_eq(row.name, "20251122-010003-alert-hot");
	ck_assert_str_eq(row.trigger, "alert hot:_ (critical): 85");
	ck_assert_str_eq(row.cut, "the daemon was killed");
	ck_assert_int_eq(row.flags, RECORD_CRITICAL);
	ck_assert_int_eq(row.time_us, 1700000000000000);
	ck_assert(row.before_s == 30 && row.after_s == 4 && row.span_s == 34);
	ck_assert(row.records == 6 && row.lost == 4 && row.triggers == 1);
	int fd = openat(folder, name, O_RDONLY);
	ssize_t n = read(fd, file, sizeof(file) - 1);
	ck_assert_int_gt(n, 0);
	file[n] = '\0';
	close(fd);
	ck_assert_ptr_null(strstr(file, "ListE"));
	ck_assert_ptr_nonnull(strstr(file, ROWS PART "{\"end\":{"));
}
END_TEST

START_TEST(what_is_no_recording_is_not_made_one)
{
	static const char *const texts[] = {"", "{", HEADER, HEADER ROWS, "x" HEADER ROWS PART,
		"{}\n" HEADER ROWS PART, HEADER "{\"part\":{\"time_us\":1",
		HEADER "{\"part\":{}}\n", "{\"end\":{}}\n"};
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		leave("20251122-010003-x.jsonl.new", texts[i], 100);
		recording_folder_recover(folder);
		recording_folder_scan(folder, 4, 1 << 20, &recordings);
		ck_assert_msg(recordings.count == 0, "%s", texts[i]);
		ck_assert_int_eq(faccessat(folder, "20251122-010003-x.jsonl.new", F_OK, 0), -1);
	}
	ck_assert_int_eq(symlinkat("/etc/passwd", folder, "20251122-010004-x.jsonl.new"), 0);
	recording_folder_recover(folder); /* not followed */
	recording_folder_scan(folder, 4, 1 << 20, &recordings);
	ck_assert_uint_eq(recordings.count, 0);
}
END_TEST

START_TEST(a_folder_that_others_may_write_is_refused)
{
	ck_assert_int_eq(fchmod(folder, 0770), 0);
	ck_assert_int_eq(folder_open(dir, 0750), -EPERM);
	ck_assert_int_eq(fchmod(folder, 0707), 0);
	ck_assert_int_eq(folder_open(dir, 0750), -EPERM);
	ck_assert_int_eq(folder_open("/tmp/test-recordings/none/none", 0750), -ENOENT);
}
END_TEST

START_TEST(most_of_the_size_is_for_what_was_before)
{
	const size_t size = 4u << 20, records = size / 8 * 5;
	ck_assert_uint_eq(recording_before_bytes(size, 30 * S, 10 * S), records / 4 * 3);
	ck_assert_uint_eq(recording_before_bytes(size, 1 * S, 9 * S), records / 2);
	ck_assert_uint_eq(recording_before_bytes(size, 30 * S, 0), records);
	ck_assert_uint_eq(recording_before_bytes(size, 0, 0), records);
}
END_TEST
