/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions in edgeprofctl: the progress lines and the fingerprint. */
#include "client/edgeprofctl/sessions/fingerprint.h"
#include "client/edgeprofctl/sessions/sessions.h"

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
	session_progress(session, shown, out);
	fclose(out);
	cJSON_Delete(session);
	return printed;
}

/* covers G0.24 */
START_TEST(each_50_frames_are_a_line_with_1000_over_their_mean)
{
	int64_t shown = 0;
	ck_assert_str_eq(
		lines_of("{\"frames\":300,\"frames_done\":49,\"progress_mean_ms\":40}", &shown),
		"");
	ck_assert_str_eq(
		lines_of("{\"frames\":300,\"frames_done\":50,\"progress_mean_ms\":33.5}", &shown),
		"Frame 50/300: 29.9 fps\n");
	ck_assert_str_eq(
		lines_of("{\"frames\":300,\"frames_done\":99,\"progress_mean_ms\":33.5}", &shown),
		"");
	ck_assert_str_eq(
		lines_of("{\"frames\":300,\"frames_done\":212,\"progress_mean_ms\":8}", &shown),
		"Frame 100/300: 125.0 fps\nFrame 150/300: 125.0 fps\nFrame 200/300: 125.0 fps\n");
	ck_assert_str_eq(
		lines_of("{\"frames\":300,\"frames_done\":300,\"progress_mean_ms\":10}", &shown),
		"Frame 250/300: 100.0 fps\nFrame 300/300: 100.0 fps\n");
	shown = 0;
	ck_assert_str_eq(lines_of("{\"frames_done\":50,\"progress_mean_ms\":null}", &shown),
		"Frame 50: - fps\n");
	ck_assert_str_eq(lines_of("[]", &shown), "");
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
