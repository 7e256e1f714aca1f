/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/core/status/sessions.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/core/status/session_frames.h"
#include "daemon/recorder/session_file.h"
#include "proto/json_write.h"
#include "tests/unit/unit.h"

#define DAY_US INT64_C(86400000000)

static struct sessions sessions;
static const struct session_limits limits = {1000, 4000, DAY_US, 500};

static void teardown(void)
{
	while (sessions.count > 0) {
		struct session *row = sessions.row[0];
		sessions_remove(&sessions, row);
		session_destroy(row);
	}
	memset(&sessions, 0, sizeof(sessions));
}

FIXTURE(NULL, teardown);

static struct session *put(const char *name, uint32_t uid, enum session_state state, uint64_t bytes)
{
	struct session *row = calloc(1, sizeof(*row));
	snprintf(row->name, sizeof(row->name), "%s", name);
	row->uid = uid;
	row->state = state;
	row->bytes = bytes;
	row->started_us = (int64_t)sessions.count + 1;
	row->ended_us = 2;
	ck_assert_int_eq(sessions_append(&sessions, row), 0);
	return row;
}

static struct session *victim(int64_t now_us)
{
	bool expired;
	return sessions_victim(&sessions, &limits, now_us, &expired);
}

/* covers G2.19 */
START_TEST(the_oldest_finished_one_goes_automatic_ones_first)
{
	put("active", 0, SESSION_RUNNING, 3000);
	struct session *old = put("old", 0, SESSION_FINISHED, 500);
	struct session *automatic = put("auto", 0, SESSION_STOPPED, 500);
	ck_assert_ptr_null(victim(10));
	old->bytes++;
	automatic->automatic = true;
	ck_assert_ptr_eq(victim(10), automatic);
	automatic->automatic = false;
	ck_assert_ptr_eq(victim(10), old);
	old->writing = true;
	ck_assert_ptr_eq(victim(10), automatic);
}
END_TEST

/* covers G2.18 */
START_TEST(automatic_ones_expire)
{
	bool expired;
	put("old", 0, SESSION_FINISHED, 1);
	struct session *automatic = put("auto", 0, SESSION_FINISHED, 1);
	automatic->automatic = true;
	ck_assert_ptr_null(victim(DAY_US + 2));
	ck_assert_ptr_eq(sessions_victim(&sessions, &limits, DAY_US + 3, &expired), automatic);
	ck_assert(expired);
}
END_TEST

/* covers G2.18 */
START_TEST(those_of_a_known_fingerprint_are_hits)
{
	static const char *const pairs[][2] = {{"threads", "4"}, {"delegate", "gpu"}};
	struct session *row[4];
	for (int i = 0; i < 4; i++) { /* in any order; the first failed, the last is another */
		row[i] = put("one", 0, SESSION_FINISHED, 1);
		for (int k = 0; k < 2; k++) {
			const char *const *pair = pairs[(i + k) % 2];
			session_tags_add(&row[i]->tags, pair[0], i < 3 ? pair[1] : "x");
		}
		session_tags_add(&row[i]->environment, "kernel", "6.1");
		row[i]->state = i == 0 ? SESSION_FAILED : SESSION_FINISHED;
		sessions_on_end(&sessions, row[i]);
		ck_assert_uint_eq(sessions.hits, i < 2 ? 0 : 1);
		ck_assert_uint_eq(sessions.hits + sessions.misses, i + 1);
	}
	session_tags_clear(&row[2]->environment);
	sessions_on_end(&sessions, row[2]);
	ck_assert_uint_eq(sessions.hits, 1);
}
END_TEST

/* 256 rows of equal pairs but one took 18 ms of the loop: unequal ones differ before any is read */
START_TEST(pairs_that_differ_have_another_hash)
{
	struct session_tags tags = {NULL, 0, 0, 0}, others = {NULL, 0, 0, 0};
	session_tags_add(&tags, "a", "1");
	session_tags_add(&tags, "b", "2");
	session_tags_add(&others, "b", "2");
	ck_assert_uint_ne(tags.hash, others.hash);
	session_tags_add(&others, "a", "1");
	ck_assert_uint_eq(tags.hash, others.hash);
	session_tags_clear(&others);
	session_tags_add(&others, "a", "2");
	session_tags_add(&others, "b", "1");
	ck_assert_uint_ne(tags.hash, others.hash);
	session_tags_clear(&tags);
	session_tags_clear(&others);
}
END_TEST

START_TEST(an_ordinary_user_has_half)
{
	put("roots", 0, SESSION_FINISHED, 1);
	put("daemons", 500, SESSION_FINISHED, 1999);
	struct session *mine = put("mine", 7, SESSION_FINISHED, 2000);
	ck_assert_ptr_null(victim(10));
	mine->bytes++;
	ck_assert_ptr_eq(victim(10), mine);
}
END_TEST

/* covers D6: as apps do, who holds most gives first */
START_TEST(a_full_table_takes_from_the_user_with_most)
{
	put("roots", 0, SESSION_FINISHED, 1);
	put("theirs", 8, SESSION_FINISHED, 1);
	struct session *mine = put("mine", 7, SESSION_FINISHED, 1);
	while (sessions.count < SESSIONS_MAX) {
		ck_assert_ptr_null(victim(10));
		put("mine", 7, SESSION_FINISHED, 1);
	}
	ck_assert_ptr_eq(victim(10), mine);
}
END_TEST

START_TEST(active_ones_share_the_size)
{
	struct session *one = put("one", 0, SESSION_RUNNING, 0);
	ck_assert_uint_eq(sessions_file_limit(&sessions, one, &limits), 1000);
	for (int i = 0; i < 4; i++) {
		put("more", 0, SESSION_WARMUP, 0);
	}
	ck_assert_uint_eq(sessions_file_limit(&sessions, one, &limits), 800);
	one->uid = 7;
	put("again", 7, SESSION_RUNNING, 0);
	put("again", 7, SESSION_RUNNING, 0);
	ck_assert_uint_eq(sessions_file_limit(&sessions, one, &limits), 4000 / 7);
}
END_TEST

START_TEST(few_start_of_a_user_and_some_are_for_the_admin)
{
	size_t limit;
	put("a", 7, SESSION_RUNNING, 0);
	ck_assert_ptr_null(sessions_refusal(&sessions, 7, false, false, &limit));
	put("b", 7, SESSION_WARMUP, 0);
	ck_assert_str_eq(
		sessions_refusal(&sessions, 7, false, false, &limit), "active sessions of a user");
	ck_assert_uint_eq(limit, SESSIONS_OF_USER);
	ck_assert_ptr_null(sessions_refusal(&sessions, 7, false, true, &limit));
	for (int i = 0; i < 4; i++) {
		ck_assert_ptr_null(sessions_refusal(&sessions, 8, false, false, &limit));
		put("c", (uint32_t)(9 + i), SESSION_RUNNING, 0);
	}
	ck_assert_str_eq(sessions_refusal(&sessions, 8, false, false, &limit), "active sessions");
	ck_assert_ptr_null(sessions_refusal(&sessions, 0, true, false, &limit));
	put("d", 0, SESSION_RUNNING, 0);
	put("e", 0, SESSION_RUNNING, 0);
	ck_assert_str_eq(sessions_refusal(&sessions, 0, true, false, &limit), "active sessions");
}
END_TEST

START_TEST(every_second_block_goes_from_the_oldest_on)
{
	struct session_block blocks[8];
	char kept[9] = "";
	for (int i = 0; i < 8; i++) {
		blocks[i] = (struct session_block){0, 10, i * 10, i * 10 + 10, false};
	}
	ck_assert_uint_eq(session_thin(blocks, 8, 60), 60);
	ck_assert_uint_eq(session_thin(blocks, 0, 60), 0);
	for (int i = 0; i < 8; i++) {
		kept[i] = blocks[i].dropped ? '-' : '#';
	}
	ck_assert_str_eq(kept, "-#-#####");
	for (int i = 0; i < 8; i++) {
		blocks[i].dropped = false;
	}
	ck_assert_uint_eq(session_thin(blocks, 8, 0), 10); /* the last one stays */
	ck_assert(!blocks[7].dropped);
}
END_TEST

START_TEST(a_row_is_read_as_it_was_written)
{
	char line[4096];
	struct json json;
	struct session read, row = {.name = "run.2",
				     .app = "cam",
				     .uid = 7,
				     .state = SESSION_FAILED,
				     .warmup = 10,
				     .frames = 300,
				     .seconds = (double)NAN,
				     .started_us = INT64_C(1795386856186822),
				     .measured_us = 1795386857186822.0,
				     .ended_us = (double)NAN,
				     .frames_done = 12,
				     .elapsed_s = 1.25,
				     .left_s = 0,
				     .recent_mean_ms = (double)NAN,
				     .error = "it's broken",
				     .bytes = 5,
				     .kept_share = 0.5,
				     .lost = 3,
				     .cut = "thinned",
				     .automatic = true};
	ck_assert_int_eq(
		session_tags_add(&row.tags, "state", "a \"b\",\"state\":\"running\" \\"), 0);
	ck_assert_int_eq(session_tags_add(&row.tags, "größe", ""), 0);
	ck_assert_int_eq(session_tags_add(&row.tags, "state", "x"), -EEXIST);
	ck_assert_int_eq(session_tags_add(&row.tags, "", "x"), -EINVAL);
	ck_assert_int_eq(session_tags_add(&row.tags, "esc", "\x1b[2J"), -EINVAL);
	ck_assert_int_eq(session_tags_add(&row.tags, "bytes", "\xff"), -EINVAL);
	json_init(&json, line, sizeof(line));
	session_write(&json, NULL, &row);
	line[json.length] = '\0';
	ck_assert_int_eq(session_read(line, &read), 0);
	ck_assert_str_eq(read.name, "run.2");
	ck_assert_str_eq(read.app, "cam");
	ck_assert_uint_eq(read.uid, 7);
	ck_assert_int_eq(read.state, SESSION_FAILED);
	ck_assert(read.frames == 300 && isnan(read.seconds) && isnan(read.ended_us));
	ck_assert(read.measured_us == row.measured_us && read.started_us == row.started_us);
	ck_assert(read.elapsed_s == 1.25 && read.kept_share == 0.5 && read.automatic);
	ck_assert_uint_eq(read.frames_done, 12);
	ck_assert_uint_eq(read.lost, 3);
	ck_assert_str_eq(read.error, row.error);
	ck_assert_str_eq(read.cut, row.cut);
	ck_assert_uint_eq(read.tags.count, 2);
	ck_assert_str_eq(
		session_tags_find(&read.tags, "state"), "a \"b\",\"state\":\"running\" \\");
	ck_assert_str_eq(session_tags_find(&read.tags, "größe"), "");
	session_tags_clear(&read.tags);
	session_tags_clear(&row.tags);
}
END_TEST

START_TEST(other_lines_are_no_row)
{
	static const char *const lines[] = {"", "{}",
		"{\"name\":\"a/b\",\"state\":\"failed\",\"tags\":[]}",
		"{\"name\":\"a\",\"state\":\"odd\",\"tags\":[],\"environment\":[]}",
		"{\"name\":\"a\",\"state\":\"failed\",\"tags\":[{\"name\":\"x\",\"value\":",
		"{\"name\":\"a\",\"state\":\"failed\",\"tags\":[{\"name\":\"x\",\"value\":\"y\"}"};
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		struct session read;
		ck_assert_int_eq(session_read(lines[i], &read), -EBADMSG);
	}
}
END_TEST

static struct proto_record record(
	enum proto_kind kind, uint16_t stage, uint64_t end_ns, uint64_t frame)
{
	return (struct proto_record){.kind = (uint8_t)kind,
		.stage = stage,
		.frame = frame,
		.start_ns = end_ns - 10,
		.value = 10};
}

/* The frames that ended in count rounds of two stages, the record that ends or follows each. */
static unsigned count(
	struct session_frames *frames, uint64_t first, unsigned rounds, bool ids, bool ticks)
{
	unsigned ended = 0;
	for (uint64_t i = first; i < first + rounds; i++) {
		const uint64_t id = ids ? i : PROTO_NO_FRAME;
		const struct proto_record records[] = {
			record(PROTO_KIND_COMPLETE, 0, i * 100 + 20, id),
			record(PROTO_KIND_COMPLETE, 1, i * 100 + 40, id),
			record(PROTO_KIND_FRAME, TRACE_NO_NAME, i * 100 + 50, id)};
		for (int k = 0; k < (ticks ? 3 : 2); k++) {
			ended += session_frames_add(frames, &records[k]) != SESSION_GOES_ON;
		}
	}
	return ended;
}

START_TEST(frames_are_counted_by_the_best_that_there_is)
{
	struct session_frames frames = {.begun = false};
	ck_assert_uint_eq(count(&frames, 1, 10, false, false), 9); /* the last one goes on */
	ck_assert_uint_eq(frames.end_ns, 940);
	ck_assert(session_frames_finish(&frames));
	ck_assert_uint_eq(frames.end_ns, 1040);
	ck_assert(!session_frames_finish(&frames));
	ck_assert_double_eq_tol(session_frames_mean_ms(&frames), 30e-6, 1e-12);
	frames = (struct session_frames){.begun = false};
	ck_assert_uint_eq(count(&frames, 1, 10, true, false), 9);
	ck_assert_uint_eq(count(&frames, 1, 1, true, false), 0); /* a late one of an old frame */
	ck_assert_uint_eq(count(&frames, 5000, 2, true, false), 2);
	frames = (struct session_frames){.begun = false};
	ck_assert_uint_eq(count(&frames, 1, 10, true, true), 10);
	ck_assert_uint_eq(frames.end_ns, 1050);
	ck_assert_double_eq_tol(session_frames_mean_ms(&frames), 10e-6, 1e-12);
	ck_assert(!session_frames_finish(&frames));
	session_frames_forget(&frames);
	ck_assert(isnan(session_frames_mean_ms(&frames)));
}
END_TEST

static char dir[] = "/tmp/test-sessions.XXXXXX";
static struct session_found found;
static unsigned founds;

static void on_found(void *ctx, struct session_found *one)
{
	(void)ctx;
	found = *one;
	founds++;
}

static size_t block(struct session_file *file, struct session_point *point, int fill)
{
	char text[512];
	point->to_us -= 3600000000; /* the clock is set again and again */
	point->from_mono_us = point->mono_us;
	point->mono_us += 1000000;
	point->total_s += 1;
	int n = snprintf(
		text, sizeof(text), "{\"call\":\"GetHistory\",\"parameters\":\"%0*d\"}\n", fill, 0);
	size_t length =
		(size_t)n + session_point_write(point, true, text + n, sizeof(text) - (size_t)n);
	file->block_s = 1;
	point->block++;
	ck_assert_int_eq(session_file_write(file, text, length), 0);
	return length;
}

START_TEST(a_file_is_thinned_and_what_was_torn_is_cut)
{
	static const char header[] =
		"{\"schema\":\"edgeprof.session/1\",\"session\":{\"name\":\"one\",\"uid\":0,"
		"\"state\":\"running\",\"tags\":[],\"environment\":[]},\"boot_id\":\"b\",\"mono_"
		"us\":77,"
		"\"privileged\":true}\n{\"block\":{\"block\":0,\"from_us\":0,\"to_us\":0}}\n";
	char path[64], torn[] = "{\"call\":\"ListEv";
	memcpy(dir + sizeof(dir) - 7, "XXXXXX", 6);
	ck_assert_ptr_nonnull(mkdtemp(dir));
	struct session_file file = {.folder = -1, .fd = -1, .name = "one", .max_bytes = 4000};
	struct session_point point = {.block = 1, .frames_done = 42, .kept_s = 7};
	snprintf(file.dir, sizeof(file.dir), "%s/sessions", dir);
	ck_assert_int_eq(session_file_write(&file, header, sizeof(header) - 1), 0);
	for (int i = 0; i < 40; i++) {
		block(&file, &point, 100);
		ck_assert_uint_le(file.bytes, 4000);
	}
	ck_assert(file.thinned && file.kept_s < 20 && file.kept_s > 5);
	uint64_t good = file.bytes;
	ck_assert_int_eq(write(file.fd, torn, sizeof(torn)), (int)sizeof(torn));
	session_file_close(&file);
	founds = 0;
	session_folder_scan(file.dir, on_found, NULL);
	ck_assert_uint_eq(founds, 1);
	ck_assert(!found.ended && found.privileged && found.begin_mono_us == 77);
	ck_assert_uint_eq(found.row.bytes, good);
	ck_assert_uint_eq(found.last.block, 41);
	ck_assert_uint_eq(found.last.frames_done, 42);
	ck_assert_double_eq_tol(found.last.kept_s, 7, 1e-6);
	ck_assert_uint_eq(found.last.from_mono_us, found.last.mono_us); /* of the next block */
	char part[512];
	const size_t length = session_point_write(&point, false, part, sizeof(part));
	ck_assert_int_eq(session_file_write(&file, part, length), 0); /* killed inside block 41 */
	good = file.bytes;
	session_file_close(&file);
	session_folder_scan(file.dir, on_found, NULL);
	ck_assert_uint_eq(found.row.bytes, good);
	ck_assert_uint_eq(found.last.block, 41);
	found.row.state = SESSION_INTERRUPTED;
	ck_assert_int_eq(session_folder_end(file.dir, &found.row), 0);
	session_folder_scan(file.dir, on_found, NULL);
	ck_assert(found.ended && founds == 3 && found.row.state == SESSION_INTERRUPTED);
	ck_assert_uint_gt(found.row.bytes, good);
	ck_assert_int_eq(session_folder_remove(file.dir, "one"), 0);
	ck_assert_int_eq(session_folder_remove(file.dir, "one"), -ENOENT);
	snprintf(path, sizeof(path), "%s/sessions", dir);
	ck_assert_int_eq(rmdir(path), 0);
	rmdir(dir);
}
END_TEST

static long peak_kib(void)
{
	struct rusage usage;
	ck_assert_int_eq(getrusage(RUSAGE_SELF, &usage), 0);
	return usage.ru_maxrss;
}

/* As a power cut or a broken disk leaves it: zeros, or one line without an end. The unit may have
 * 64 MiB. */
START_TEST(a_file_without_lines_is_not_read_into_memory)
{
	static const char *const begin[] = {"", "{\"schema\":\"edgeprof.session/1\"", "x"};
	enum { MIB = 1 << 20 };
	memcpy(dir + sizeof(dir) - 7, "XXXXXX", 6);
	ck_assert_ptr_nonnull(mkdtemp(dir));
	int folder = open(dir, O_RDONLY | O_DIRECTORY);
	const long before = peak_kib();
	founds = 0;
	for (size_t i = 0; i < sizeof(begin) / sizeof(begin[0]); i++) {
		int fd = openat(folder, "one.jsonl", O_WRONLY | O_CREAT | O_TRUNC, 0600);
		ck_assert_int_eq(write(fd, begin[i], strlen(begin[i])), (int)strlen(begin[i]));
		ck_assert_int_eq(ftruncate(fd, 256 * MIB), 0);
		close(fd);
		session_folder_scan(dir, on_found, NULL);
		/* what is left of ours would keep the name from being used */
		ck_assert_int_eq(unlinkat(folder, "one.jsonl", 0), i < 2 ? -1 : 0);
	}
	ck_assert_uint_eq(founds, 0);
	ck_assert_int_lt(peak_kib() - before, 64 * 1024);
	close(folder);
	rmdir(dir);
}
END_TEST
