/* SPDX-License-Identifier: Apache-2.0 */
/* What is read of a session's file: frames, what belongs to them, warm-up, stages in stages, the
 * numbers; and that damaged files are refused by line, not believed. */
#include "client/edgeprofctl/data/data.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proto/text.h"
#include "tests/unit/unit.h"

enum { T0_US = 1000000000 };

struct row {
	const char *kind;
	int name; /* of the list of names, -1 = none */
	int thread;
	double start_ms, ms;
	int frame; /* -1 = none */
	int depth;
};

static char path[] = "/tmp/edgeprof-data-XXXXXX";
static FILE *file;
static struct data data;

static void begin(const char *session)
{
	snprintf(path, sizeof(path), "/tmp/edgeprof-data-XXXXXX");
	file = fdopen(mkstemp(path), "w");
	fprintf(file,
		"{\"schema\":\"edgeprof.session/"
		"1\",\"session\":{\"name\":\"one\",\"app\":\"cam\"%s}}\n"
		"{\"call\":\"ExportTrace\",\"parameters\":{\"start\":{\"from_mono_us\":%d,"
		"\"to_mono_us\":%d,\"clock_mono_us\":[0],\"clock_time_us\":[1700000000000000],"
		"\"apps\":[{\"app\":\"cam\"}]},\"lost\":0},\"continues\":true}\n",
		session, T0_US, T0_US + 100000000);
}

static void column(const char *name, const struct row *rows, size_t count, int which)
{
	fprintf(file, "%s\"%s\":[", which == 0 ? "" : ",", name);
	for (size_t i = 0; i < count; i++) {
		const struct row *row = &rows[i];
		long start_ns = lround(row->start_ms * 1e6), ns = lround(row->ms * 1e6);
		char frame[16] = "";
		if (row->frame >= 0) {
			snprintf(frame, sizeof(frame), "%d", row->frame);
		}
		fputs(i == 0 ? "" : ",", file);
		switch (which) {
		case 0:
			fprintf(file, "\"%s\"", row->kind);
			break;
		case 1:
			fprintf(file, "%d", row->name);
			break;
		case 5:
			fprintf(file, "%d", row->thread);
			break;
		case 6:
			fprintf(file, "%ld", T0_US + start_ns / 1000);
			break;
		case 7:
			fprintf(file, "%ld", start_ns % 1000);
			break;
		case 8:
			fprintf(file, "%ld", ns / 1000);
			break;
		case 9:
			fprintf(file, "%ld", ns % 1000);
			break;
		case 10:
			fprintf(file, "\"%s\"", frame);
			break;
		case 11:
			fputs("\"\"", file);
			break;
		case 13:
		case 16:
			fputs("-1", file);
			break;
		case 14:
			fprintf(file, "%d", row->depth);
			break;
		case 15:
			fputs("false", file);
			break;
		default:
			fputs("0", file);
			break;
		}
	}
	fputc(']', file);
}

/* The names are capture, infer, total, log, post; infer runs on the GPU. */
static void records(const struct row *rows, size_t count)
{
	static const char *const names[] = {"kind", "name", "of", "pid", "process", "thread",
		"mono_us", "mono_ns", "duration_us", "duration_ns", "frame", "id", "value",
		"cpu_us", "depth", "failed", "throttled"};
	fputs("{\"call\":\"ExportTrace\",\"parameters\":{\"app\":\"cam\",\"records\":{", file);
	for (int i = 0; i < COUNT(names); i++) {
		column(names[i], rows, count, i);
	}
	fputs("},\"names\":[\"capture\",\"infer\",\"total\",\"log\",\"post\"],"
	      "\"units\":[\"\",\"gpu\",\"\",\"\",\"\"],\"categories\":[\"io\",\"\",\"\",\"\",\"\"],"
	      "\"lost\":0},\"continues\":true}\n",
		file);
}

static int finish(const char *end)
{
	struct ctl ctl = {.quiet = true};
	fputs(end, file);
	fclose(file);
	int status = data_read(&ctl, path, NULL, &data);
	unlink(path);
	return status;
}

static void teardown(void)
{
	data_finish(&data);
	memset(&data, 0, sizeof(data));
}

static const char end_line[] = "{\"end\":{\"name\":\"one\",\"app\":\"cam\",\"warmup\":%d}}\n";

TEST_TIMEOUT(60);
FIXTURE(NULL, teardown);

/* covers golden vectors A and B, G4.1 */
START_TEST(numbers_are_those_of_the_contract)
{
	double deltas[] = {33, 34, 33, 50, 33, 35, 100, 33, 34, 33}, ramp[100];
	struct proto_summary a = data_numbers_of(deltas, 10);
	for (int i = 0; i < 100; i++) {
		ramp[i] = 100 - i;
	}
	struct proto_summary b = data_numbers_of(ramp, 100);
	ck_assert_double_eq_tol(a.mean, 41.8, 1e-9);
	ck_assert_double_eq_tol(a.p95, 77.5, 1e-9);
	ck_assert_double_eq_tol(a.p99, 95.5, 1e-9);
	ck_assert_double_eq_tol(a.std, 20.0239856, 1e-6);
	ck_assert_double_eq_tol(b.p50, 50.5, 1e-9);
	ck_assert_double_eq_tol(b.p90, 90.1, 1e-9);
	ck_assert_double_eq_tol(b.p99, 99.01, 1e-9);
	ck_assert_double_eq_tol(b.std, 28.8660700, 1e-6);
	ck_assert_double_eq_tol(b.std_sample, 29.0114920, 1e-6);
	ck_assert(isnan(data_numbers_of(ramp, 0).mean) && data_numbers_of(ramp, 0).count == 0);
}
END_TEST

/* Each frame: capture 2 ms, infer 5 ms on another thread, every second frame post 4 ms inside of
 * infer; a log outside of frames. */
static size_t pipeline(struct row *rows, int frames)
{
	size_t count = 0;
	for (int i = 0; i < frames; i++) {
		double at = 10.0 * i;
		rows[count++] = (struct row){"complete", 0, 0, at, 2, i, 0};
		if (i % 2 == 1) {
			rows[count++] = (struct row){"complete", 4, 1, at + 3, 4, i, 1};
		}
		rows[count++] = (struct row){"complete", 1, 1, at + 2, 5, i, 0};
		rows[count++] = (struct row){"frame", -1, 0, at, 6, i, 0};
		rows[count++] = (struct row){"complete", 3, 2, at + 7, 1, -1, 0};
	}
	return count;
}

/* covers G3.11 G3.12 G0.5 */
START_TEST(runs_belong_to_frames_and_to_stages_around_them)
{
	struct row rows[64];
	char end[128];
	begin("");
	records(rows, pipeline(rows, 10));
	snprintf(end, sizeof(end), end_line, 0);
	ck_assert_int_eq(finish(end), CTL_FINE);
	ck_assert_str_eq(data.app, "cam");
	ck_assert_str_eq(data.name, "one");
	ck_assert_ptr_null(data.incomplete);
	ck_assert_uint_eq(data.frame_count, 10);
	ck_assert_uint_eq(data.stage_count, 4);
	const struct data_stage *infer = data_stage(&data, "infer"),
				*post = data_stage(&data, "post");
	ck_assert_str_eq(infer->unit, "gpu");
	ck_assert_str_eq(data.stage[0].name, "capture"); /* by their first start */
	ck_assert_str_eq(data.stage[3].name, "log");
	ck_assert_str_eq(data_stage(&data, "capture")->category, "io");
	ck_assert(&data.stage[post->parent] == infer && post == infer + 1 && post->depth == 1);
	ck_assert_double_eq_tol(infer->self_ms, 50 - 20, 1e-9);
	ck_assert_double_eq_tol(post->per_frame_ms, 2, 1e-9); /* 4 ms in every second frame */
	ck_assert_double_eq_tol(post->ms.mean, 4, 1e-9);
	ck_assert_double_eq_tol(data_stage(&data, "log")->per_frame_ms, 0, 1e-9);
	ck_assert_uint_eq(data_stage(&data, "log")->count, 10);
	ck_assert(isnan(data.frame[0].time_ms));
	ck_assert_double_eq_tol(data.frame[1].time_ms, 10, 1e-9);
	ck_assert_double_eq_tol(data.frame[3].total_ms, 7, 1e-9); /* infer ends after the record */
	ck_assert_double_eq_tol(data.total_ms.mean, 7, 1e-9);
	ck_assert_int_eq(data.begin_us, 1700000000000000 + T0_US);
	ck_assert_uint_eq(infer->execution[4].frame, 4);
}
END_TEST

START_TEST(warm_up_and_what_follows_the_last_frame_are_cut)
{
	struct row rows[256];
	begin("");
	for (int from = 0; from < 50; from += 10) {
		size_t count = pipeline(rows, 50);
		size_t first = count / 5 * (size_t)from / 10;
		records(rows + first, count / 5);
	}
	rows[0] = (struct row){"complete", 0, 0, 301, 2, 77, 0}; /* its frame did not end */
	records(rows, 1);
	ck_assert_int_eq(finish("{\"end\":{\"name\":\"one\",\"app\":\"cam\",\"warmup\":10,"
				"\"frames\":30}}\n"),
		CTL_FINE);
	ck_assert_uint_eq(data.warmup, 10);
	ck_assert_uint_eq(data.frame_count, 30);
	ck_assert_uint_eq(data.frame[0].id, 10);
	ck_assert_double_eq_tol(data.frame[0].time_ms, 10, 1e-9);
	ck_assert_uint_eq(data.frame_time_ms.count, 30);
	ck_assert_uint_eq(data_stage(&data, "infer")->count, 30);
	ck_assert_uint_eq(data_stage(&data, "capture")->count, 30);
	ck_assert_uint_eq(data_stage(&data, "post")->count, 15);
	/* a log ends after its frame: the one of the last warm-up frame counts, that of the last
	 * frame does not */
	ck_assert_uint_eq(data_stage(&data, "log")->count, 30);
	ck_assert_uint_eq(data_stage(&data, "infer")->execution[0].frame, 0);
}
END_TEST

START_TEST(a_warm_up_longer_than_the_session_leaves_no_frames)
{
	struct row rows[64];
	begin("");
	records(rows, pipeline(rows, 5));
	ck_assert_int_eq(finish("{\"end\":{\"name\":\"one\",\"warmup\":10}}\n"), CTL_FINE);
	ck_assert_uint_eq(data.frame_count, 0);
	ck_assert_uint_eq(data.total_ms.count, 0);
	ck_assert(isnan(data.total_ms.mean));
	ck_assert_ptr_null(data_stage(&data, "infer"));
}
END_TEST

/* covers golden vector A */
START_TEST(bare_ticks_are_frames)
{
	static const double deltas[] = {33, 34, 33, 50, 33, 35, 100, 33, 34, 33};
	struct row rows[32];
	double at = 5;
	size_t count = 0;
	begin("");
	for (int i = 0; i <= 10; i++) {
		rows[count++] = (struct row){"complete", 0, 0, at - 4, 3, -1, 0};
		rows[count++] = (struct row){"frame", -1, 0, at, 0, -1, 0};
		at += i < 10 ? deltas[i] : 0;
	}
	records(rows, count);
	ck_assert_int_eq(finish(""), CTL_FINE);
	ck_assert_str_eq(data.incomplete, "the session was still running or broke off");
	ck_assert_uint_eq(data.frame_count, 11);
	ck_assert(isnan(data.frame[5].total_ms));
	ck_assert_uint_eq(data.frame_time_ms.count, 10);
	ck_assert_double_eq_tol(data.frame_time_ms.p99, 95.5, 1e-9);
	ck_assert_double_eq_tol(data.total_ms.mean, 3, 1e-9); /* the sum of the stages */
	ck_assert_uint_eq(data_stage(&data, "capture")->execution[10].frame, 10);
}
END_TEST

START_TEST(without_frames_the_most_frequent_stage_makes_them)
{
	struct row rows[64];
	size_t count = 0;
	begin("");
	for (int i = 0; i < 10; i++) {
		rows[count++] = (struct row){"complete", 0, 0, 20.0 * i, 5, -1, 0};
		rows[count++] = (struct row){"complete", 4, 0, 20.0 * i + 5, 1, -1, 0};
		if (i % 3 == 0) {
			rows[count++] = (struct row){"complete", 1, 0, 20.0 * i + 6, 6, -1, 0};
		}
	}
	records(rows, count);
	ck_assert_int_eq(finish(""), CTL_FINE);
	ck_assert_uint_eq(data.frame_count, 10);
	ck_assert_double_eq_tol(data.frame_time_ms.mean, 20, 1e-9);
	ck_assert_double_eq_tol(data_stage(&data, "infer")->per_frame_ms, 2.4, 1e-9);
	ck_assert_double_eq_tol(data.total_ms.mean, 5 + 1 + 2.4, 1e-9);
	ck_assert_double_eq_tol(data.total_ms.max, 12, 1e-9);
}
END_TEST

START_TEST(a_stage_total_and_what_is_inside_of_others_count_once)
{
	struct row rows[64];
	size_t count = 0;
	begin("");
	for (int i = 0; i < 4; i++) {
		double at = 50.0 * i;
		rows[count++] = (struct row){"complete", 4, 0, at + 1, 2, i, 2};
		rows[count++] = (struct row){"complete", 1, 0, at + 1, 8, i, 1};
		rows[count++] = (struct row){"complete", 2, 0, at, 10 + i, i, 0};
		rows[count++] = (struct row){"frame", -1, 0, at, 20, i, 0};
	}
	records(rows, count);
	ck_assert_int_eq(finish(""), CTL_FINE);
	ck_assert(data_stage(&data, "total")->left_out && !data_stage(&data, "infer")->left_out);
	ck_assert_uint_eq(data_stage(&data, "post")->depth, 2);
	ck_assert_double_eq_tol(data.total_ms.mean, 11.5, 1e-9);
	ck_assert_double_eq_tol(data.total_ms.max, 13, 1e-9);
}
END_TEST

/* post is inside of infer and on its own; capture in log and in itself. */
START_TEST(executions_are_inside_not_stages)
{
	struct row rows[64];
	size_t count = 0;
	begin("");
	for (int i = 0; i < 4; i++) {
		double at = 100.0 * i;
		rows[count++] = (struct row){"complete", 4, 0, at + 1, 4, i, 1};
		rows[count++] = (struct row){"complete", 1, 0, at, 10, i, 0};
		rows[count++] = (struct row){"complete", 4, 0, at + 10, 4, i, 0};
		rows[count++] = (struct row){"complete", 0, 0, at + 22, 2, i, 2};
		rows[count++] = (struct row){"complete", 0, 0, at + 21, 4, i, 1};
		rows[count++] = (struct row){"complete", 3, 0, at + 20, 6, i, 0};
		rows[count++] = (struct row){"frame", -1, 0, at, 30, i, 0};
	}
	records(rows, count);
	ck_assert_int_eq(finish(""), CTL_FINE);
	const struct data_stage *post = data_stage(&data, "post"), *log = data_stage(&data, "log"),
				*capture = data_stage(&data, "capture");
	double sum_ms = 0;
	for (size_t s = 0; s < data.stage_count; s++) {
		for (size_t i = 0; i < data.stage[s].count; i++) {
			const struct data_execution *one = &data.stage[s].execution[i];
			sum_ms += data_is_outermost(&data.stage[s], one) ? one->ms : 0;
		}
	}
	ck_assert_double_eq_tol(sum_ms / 4, 10 + 4 + 6, 1e-9);
	ck_assert_double_eq_tol(post->per_frame_ms, 8, 1e-9);
	ck_assert(&data.stage[capture->parent] == log && capture->depth == 1);
}
END_TEST

START_TEST(ids_that_are_used_again_are_other_frames)
{
	struct row rows[64];
	size_t count = 0;
	begin("");
	for (int i = 0; i < 12; i++) {
		rows[count++] = (struct row){"complete", 1, 1, 100.0 * i + 1, 5 + i, i % 3, 0};
		rows[count++] = (struct row){"frame", -1, 0, 100.0 * i, 4, i % 3, 0};
	}
	records(rows, count);
	ck_assert_int_eq(finish(""), CTL_FINE);
	ck_assert_uint_eq(data.frame_count, 12);
	for (size_t i = 0; i < 12; i++) {
		ck_assert_uint_eq(data_stage(&data, "infer")->execution[i].frame, i);
		ck_assert_double_eq_tol(data.frame[i].total_ms, 6 + (double)i, 1e-9);
	}
}
END_TEST

/* Four buffers, whose numbers are the ids: capture fills one as soon as infer is done with it, and
 * it waits for the three ahead of it. */
START_TEST(buffers_that_wait_in_a_queue_are_of_the_frame_to_come)
{
	static const double lasts[] = {39.99, 9.99, 0}; /* the record: all, infer, a tick */
	for (int of = 0; of < COUNT(lasts); of++) {
		struct row rows[64];
		size_t count = 0;
		teardown();
		begin("");
		for (int i = 0; i < 12; i++) {
			double at = 10.0 * i;
			rows[count++] = (struct row){"complete", 0, 1, at, 2, i % 4, 0};
			rows[count++] = (struct row){"complete", 1, 2, at + 30, 9.9, i % 4, 0};
			rows[count++] = (struct row){
				"frame", -1, 2, at + 39.99 - lasts[of], lasts[of], i % 4, 0};
		}
		records(rows, count);
		ck_assert_int_eq(finish(""), CTL_FINE);
		ck_assert_uint_eq(data.frame_count, 12);
		for (size_t i = 0; i < 12; i++) {
			ck_assert_uint_eq(data_stage(&data, "capture")->execution[i].frame, i);
			ck_assert_uint_eq(data_stage(&data, "infer")->execution[i].frame, i);
		}
	}
}
END_TEST

/* Two threads, four buffers whose numbers are the ids: while infer works on one, capture fills the
 * next one, in two parts. What has no id is outside. */
START_TEST(without_frames_the_ids_of_stages_make_them)
{
	struct row rows[64];
	size_t count = 0;
	begin("");
	for (int i = 0; i < 12; i++) {
		double at = 10.0 * i;
		rows[count++] = (struct row){"complete", 0, 0, at, 1, i % 4, 0};
		rows[count++] = (struct row){"complete", 0, 0, at + 1.5, 1, i % 4, 0};
		rows[count++] = (struct row){"complete", 1, 1, at + 3, 9, i % 4, 0};
		rows[count++] = (struct row){"complete", 3, 2, at + 1, 9.5, -1, 0};
	}
	rows[count++] = (struct row){"complete", 0, 0, 120, 1, 0, 0}; /* infer has not begun */
	records(rows, count);
	ck_assert_int_eq(finish(""), CTL_FINE);
	ck_assert_uint_eq(data.frame_count, 12);
	ck_assert_double_eq_tol(data.frame_time_ms.mean, 10, 1e-9);
	ck_assert_double_eq_tol(data.total_ms.min, 12, 1e-9);
	ck_assert_double_eq_tol(data.total_ms.max, 12, 1e-9);
	ck_assert_double_eq_tol(data_stage(&data, "capture")->per_frame_ms, 2, 1e-9);
	ck_assert_double_eq_tol(data_stage(&data, "infer")->per_frame_ms, 9, 1e-9);
	ck_assert_double_eq_tol(data_stage(&data, "log")->per_frame_ms, 0, 1e-9);
	ck_assert_uint_eq(data_stage(&data, "infer")->execution[5].frame, 5);
	ck_assert_uint_eq(data.frame[5].id, 1);
}
END_TEST

START_TEST(samples_of_all_blocks_are_one_series)
{
	begin(",\"environment\":[{\"name\":\"kernel\",\"value\":\"6.6\"}],"
	      "\"tags\":[{\"name\":\"model\",\"value\":\"m.tflite\"}]");
	for (int block = 0; block < 3; block++) {
		fprintf(file, "{\"call\":\"GetHistory\",\"parameters\":{\"series\":[{\"name\":"
			      "\"temperature/CPU\",\"unit\":\"celsius\",\"time_us\":[");
		for (int i = 0; i < 5; i++) { /* the last one is in the next block, too */
			fprintf(file, "%s%" PRId64, i == 0 ? "" : ",",
				INT64_C(1700000000000000) + T0_US + (block * 4 + i) * 1000000);
		}
		fprintf(file, "],\"mean\":[%d,null,51,52,53]}]}}\n", 50 + block);
	}
	fputs("{\"call\":\"ListEvents\",\"parameters\":{\"last_serial\":3,\"events\":[{\"serial\":"
	      "3,"
	      "\"kind\":\"throttle\",\"subject\":\"cpu\",\"severity\":\"warning\",\"text\":\"on\","
	      "\"mono_us\":1002000000}]}}\n"
	      "{\"call\":\"ListEvents\",\"parameters\":{\"last_serial\":9,\"events\":[{\"serial\":"
	      "9,"
	      "\"kind\":\"mark\",\"subject\":\"\",\"text\":\"lo\\u001b[31mad\",\"mono_us\":"
	      "1001000000}]}}\n",
		file);
	ck_assert_int_eq(finish(""), CTL_FINE);
	const struct data_series *series = data_series(&data, "temperature/CPU");
	ck_assert_uint_eq(series->count, 10); /* 13 seconds, 3 gaps */
	ck_assert_str_eq(series->unit, "celsius");
	ck_assert_double_eq_tol(data_at(series, 2.5), 51, 1e-9);
	ck_assert_double_eq_tol(data_at(series, 13), 53, 1e-9);
	ck_assert(isnan(data_at(series, -1)) && isnan(data_at(series, 60)));
	ck_assert(isnan(data_at(NULL, 1)));
	ck_assert_uint_eq(data.happening_count, 2);
	ck_assert_str_eq(data.happening[0].text, "lo?[31mad");
	ck_assert_str_eq(data.happening[1].text, "cpu: on");
	ck_assert_double_eq_tol(data.happening[1].at_s, 2, 1e-6);
	ck_assert_str_eq(data_tag(&data, "kernel"), "6.6");
	ck_assert_str_eq(data_tag(&data, "model"), "m.tflite");
	ck_assert_ptr_null(data_tag(&data, "accuracy"));
}
END_TEST

START_TEST(damaged_lines_are_named)
{
	struct ctl ctl = {.quiet = true};
	struct row rows[64];
	begin("");
	records(rows, pipeline(rows, 3));
	fputs("{\"call\":\"ExportTrace\",\"parameters\":{\"app\":\"cam\",\"records\":\n", file);
	fclose(file);
	ck_assert_int_eq(data_read(&ctl, path, NULL, &data), CTL_NO_INPUT);
	ck_assert(text_ends_with(ctl.failure, "', line 4: damaged"));
	unlink(path);
	ck_assert_int_eq(data_read(&ctl, path, NULL, &data), CTL_NO_INPUT);
	ck_assert(text_ends_with(ctl.failure, "No such file or directory"));
}
END_TEST

/* Every byte in turn is another one, and the file ends there: nothing but a status may follow. */
START_TEST(no_byte_breaks_the_reader)
{
	struct ctl ctl = {.quiet = true};
	struct row rows[64];
	char *text = NULL;
	size_t size = 0;
	begin(",\"warmup\":1,\"frames\":2,\"tags\":[{\"name\":\"a\",\"value\":\"b\"}]");
	records(rows, pipeline(rows, 3));
	fprintf(file, end_line, 1);
	fclose(file);
	file = fopen(path, "r");
	ck_assert(getdelim(&text, &size, '\0', file) > 0);
	fclose(file);
	size = strlen(text);
	for (size_t i = 0; i < size; i += 7) {
		char was = text[i];
		text[i] = "0\"{[,x9-\n"[i / 7 % 9];
		size_t length = i % 2 == 0 ? size : i + 1;
		file = fopen(path, "w");
		fwrite(text, 1, length, file);
		fclose(file);
		if (data_read(&ctl, path, NULL, &data) == CTL_FINE) {
			teardown();
		}
		text[i] = was;
	}
	unlink(path);
	free(text);
}
END_TEST
