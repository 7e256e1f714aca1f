/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions in edgeprofctl: the progress lines, the bar at every width, and the fingerprint. */
#include "client/edgeprofctl/sessions/fingerprint.h"
#include "client/edgeprofctl/sessions/progress.h"
#include "client/edgeprofctl/sessions/sessions.h"
#include "client/edgeprofctl/term/text.h"

#include <errno.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/unit.h"

static void setup(void)
{
	ck_assert_ptr_nonnull(setlocale(LC_CTYPE, "C.UTF-8"));
}

FIXTURE(setup, NULL);

static char printed[4096];

static const char *lines_of(const char *json, int64_t *shown)
{
	cJSON *session = cJSON_Parse(json);
	FILE *out = fmemopen(printed, sizeof(printed), "w");
	memset(printed, 0, sizeof(printed));
	progress_lines(session, shown, out);
	fclose(out);
	cJSON_Delete(session);
	return printed;
}

/* covers G0.24 */
START_TEST(each_50_frames_are_a_line_with_1000_over_their_mean)
{
	int64_t shown = 0;
	ck_assert_str_eq(
		lines_of("{\"frames\":300,\"frames_done\":49,\"recent_mean_ms\":40}", &shown), "");
	ck_assert_str_eq(
		lines_of("{\"frames\":300,\"frames_done\":50,\"recent_mean_ms\":33.5}", &shown),
		"Frame 50/300: 29.9 fps\n");
	ck_assert_str_eq(
		lines_of("{\"frames\":300,\"frames_done\":99,\"recent_mean_ms\":33.5}", &shown),
		"");
	ck_assert_str_eq(
		lines_of("{\"frames\":300,\"frames_done\":212,\"recent_mean_ms\":8}", &shown),
		"Frame 100/300: 125.0 fps\nFrame 150/300: 125.0 fps\nFrame 200/300: 125.0 fps\n");
	ck_assert_str_eq(
		lines_of("{\"frames\":300,\"frames_done\":300,\"recent_mean_ms\":10}", &shown),
		"Frame 250/300: 100.0 fps\nFrame 300/300: 100.0 fps\n");
	shown = 0;
	ck_assert_str_eq(lines_of("{\"frames_done\":50,\"recent_mean_ms\":null}", &shown),
		"Frame 50: - fps\n");
	ck_assert_str_eq(lines_of("[]", &shown), "");
}
END_TEST

static const char *bar_of(const char *json, unsigned width, bool utf8)
{
	static char bar[PROGRESS_SIZE];
	struct style style = {.utf8 = utf8, .width = width};
	cJSON *session = cJSON_Parse(json);
	progress_bar(session, &style, 7500000, bar);
	cJSON_Delete(session);
	return bar;
}

static const char running[] = "{\"state\":\"running\",\"frames\":300,\"frames_done\":150,"
			      "\"elapsed_s\":5.1,\"recent_mean_ms\":33.4}";

START_TEST(the_bar_has_share_elapsed_and_left)
{
	ck_assert_str_eq(bar_of(running, 60, false),
		"running #############.............  50 %  5.1 s, 5.0 s left");
	ck_assert_str_eq(bar_of(running, 60, true),
		"running █████████████░░░░░░░░░░░░░  50 %  5.1 s, 5.0 s left");
	ck_assert_str_eq(bar_of("{\"state\":\"warmup\",\"frames\":300,\"frames_done\":0,"
				"\"started_us\":7000000,\"elapsed_s\":0}",
				 60, true),
		"warm-up  0.5 s");
	ck_assert_str_eq(bar_of("{\"state\":\"running\",\"seconds\":60,\"left_s\":45,"
				"\"frames_done\":7,\"elapsed_s\":15}",
				 60, false),
		"running #######.....................  25 %  15 s, 45 s left");
	ck_assert_str_eq(
		bar_of("{\"state\":\"running\",\"frames_done\":7,\"elapsed_s\":65}", 60, true),
		"running  1 min 5 s");
}
END_TEST

START_TEST(the_bar_fits_every_width_and_survives_every_row)
{
	static const char *const rows[] = {running, "{}", "null", "{\"state\":\"running\"}",
		"{\"state\":\"running\",\"frames\":0,\"frames_done\":0,\"elapsed_s\":1e300}",
		"{\"state\":\"running\",\"frames\":-5,\"frames_done\":9e15,\"elapsed_s\":-1}",
		"{\"state\":\"running\",\"seconds\":1,\"left_s\":-7,\"elapsed_s\":2}"};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		for (unsigned width = 1; width < 130; width++) {
			ck_assert_uint_lt(text_width(bar_of(rows[i], width, true)), width);
		}
		cJSON *session = cJSON_Parse(rows[i]);
		ck_assert_uint_ge(progress_pause_ms(session), 20);
		ck_assert_uint_le(progress_pause_ms(session), 250);
		cJSON_Delete(session);
	}
}
END_TEST

static const char *fingerprint_of(const char *json)
{
	static char digits[FINGERPRINT_SIZE];
	cJSON *session = cJSON_Parse(json);
	ck_assert_int_eq(fingerprint_session(session, digits), 0);
	cJSON_Delete(session);
	return digits;
}

/* The literals are of sha256sum over the sorted lines. covers G2.18 */
START_TEST(the_fingerprint_is_the_sha256_of_the_sorted_lines)
{
	ck_assert_str_eq(
		fingerprint_of("{\"tags\":[{\"name\":\"resolution\",\"value\":\"320x320\"}],"
			       "\"environment\":[{\"name\":\"model\",\"value\":\"Pi 5\"},"
			       "{\"name\":\"kernel\",\"value\":\"6.6.31\"}]}"),
		"e4fbdb8ea4314e6d67d207f79d98d86484bd7a3f98e2c1fd06df4ff5f0f27652");
	ck_assert_str_eq(fingerprint_of("{\"name\":\"other\",\"app\":\"y\",\"environment\":["
					"{\"name\":\"a\",\"value\":\"2\"},"
					"{\"name\":\"a-b\",\"value\":\"1\"}]}"),
		"417a5f142878440fbbbc4c62430b481a350580a3a14e3ec84c2d5d6cc5990749");
	ck_assert_str_eq(fingerprint_of("{\"tags\":7}"),
		"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}
END_TEST

START_TEST(the_digest_of_a_file_is_that_of_its_bytes)
{
	char path[] = "/tmp/edgeprof-test.XXXXXX", digits[FINGERPRINT_SIZE];
	uint64_t bytes = 0;
	int fd = mkstemp(path);
	ck_assert_int_eq(write(fd, "abc", 3), 3);
	close(fd);
	ck_assert_int_eq(fingerprint_file(path, digits, &bytes), 0);
	ck_assert_uint_eq(bytes, 3);
	ck_assert_str_eq(
		digits, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
	unlink(path);
	ck_assert_int_eq(fingerprint_file(path, digits, &bytes), -ENOENT);
	ck_assert_int_eq(fingerprint_file("/tmp", digits, &bytes), -EISDIR);
	ck_assert_int_eq(fingerprint_file("/dev/zero", digits, &bytes), -EINVAL);
}
END_TEST

START_TEST(a_tag_is_found_by_name_and_value)
{
	cJSON *session = cJSON_Parse("{\"tags\":[{\"name\":\"threads\",\"value\":\"4\"},"
				     "{\"name\":\"empty\",\"value\":\"\"}]}");
	ck_assert(session_has_tag(session, "threads=4"));
	ck_assert(!session_has_tag(session, "threads=44"));
	ck_assert(!session_has_tag(session, "thread=4"));
	ck_assert(session_has_tag(session, "empty="));
	ck_assert(!session_has_tag(session, "="));
	cJSON_Delete(session);
}
END_TEST
