/* SPDX-License-Identifier: Apache-2.0 */
/* Lines on stderr, caught in a pipe. */
#include "daemon/util/log.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/unit.h"

static int ends[2];
static char line[4096];

static void setup(void)
{
	ck_assert_int_eq(pipe(ends), 0);
	ck_assert_int_eq(dup2(ends[1], STDERR_FILENO), STDERR_FILENO);
	log_max_level = LOG_LEVEL_INFO;
	unsetenv("JOURNAL_STREAM");
}

static void teardown(void)
{
	close(ends[0]);
	close(ends[1]);
}

static const char *caught(void)
{
	ssize_t n = read(ends[0], line, sizeof(line) - 1);
	line[n > 0 ? n : 0] = '\0';
	return line;
}

FIXTURE(setup, teardown);

START_TEST(a_line_has_its_level_and_no_control_bytes)
{
	log_warning("zone %s", "a\x1b[2J\nb\x7f\u202e°\xff");
	ck_assert_str_eq(caught(), "edgeprofd: warning: zone a?[2J?b??°?\n");
}
END_TEST

START_TEST(lines_above_the_level_are_dropped)
{
	log_debug("hidden");
	log_max_level = LOG_LEVEL_DEBUG;
	log_debug("shown");
	ck_assert_str_eq(caught(), "edgeprofd: debug: shown\n");
}
END_TEST

START_TEST(the_journal_gets_priorities_and_only_the_journal)
{
	char stream[64];
	struct stat st;
	ck_assert_int_eq(fstat(STDERR_FILENO, &st), 0);
	setenv("JOURNAL_STREAM", "1:2", 1);
	log_info("elsewhere");
	ck_assert_str_eq(caught(), "edgeprofd: info: elsewhere\n");
	snprintf(stream, sizeof(stream), "%llu:%llu", (unsigned long long)st.st_dev,
		(unsigned long long)st.st_ino);
	setenv("JOURNAL_STREAM", stream, 1);
	log_error("here");
	ck_assert_str_eq(caught(), "<3>here\n");
}
END_TEST

START_TEST(a_long_line_is_cut_and_errno_kept)
{
	char text[3000];
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	errno = ENOTTY;
	log_info("%s", text);
	ck_assert_int_eq(errno, ENOTTY);
	size_t length = strlen(caught());
	ck_assert_uint_le(length, 1024);
	ck_assert_uint_gt(length, 900);
	ck_assert_int_eq(line[length - 1], '\n');
}
END_TEST

START_TEST(level_names_are_read_back)
{
	enum log_level level = LOG_LEVEL_ERROR;
	log_max_level = LOG_LEVEL_DEBUG;
	for (int i = LOG_LEVEL_ERROR; i <= LOG_LEVEL_DEBUG; i++) {
		char name[32] = "";
		log_write((enum log_level)i, "it");
		ck_assert_int_eq(sscanf(caught(), "edgeprofd: %31[a-z]: it\n", name), 1);
		ck_assert_int_eq(log_level_parse(name, &level), 0);
		ck_assert_int_eq(level, i);
	}
	ck_assert_int_eq(log_level_parse("loud", &level), -EINVAL);
	ck_assert_int_eq(level, LOG_LEVEL_DEBUG);
}
END_TEST
