/* SPDX-License-Identifier: Apache-2.0 */
/* The calls that start and stop a session: what they send, and what they return for each reply. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/libedgeprof/edgeprof.h"
#include "tests/unit/unit.h"

enum { CALL_SIZE = 65536 };

/* A Varlink socket that gives one canned reply to each call. */
static struct {
	char directory[64], path[96], call[CALL_SIZE];
	const char *reply;
	size_t length;
	int listener;
	bool silent, endless, joined;
	pthread_t thread;
} server;

static void *serve(void *unused)
{
	(void)unused;
	int fd = accept(server.listener, NULL, NULL);
	size_t length = 0;
	do {
		ssize_t n = recv(fd, server.call + length, CALL_SIZE - length, 0);
		if (n <= 0) {
			break;
		}
		length += (size_t)n;
	} while (server.call[length - 1] != '\0');
	if (server.silent) { /* until the client gives up */
		char byte;
		ck_assert_int_eq(recv(fd, &byte, 1, 0), 0);
	} else if (server.endless) {
		while (send(fd, "x", 1, MSG_NOSIGNAL) == 1) {
		}
	} else if (server.reply) {
		for (size_t i = 0; i < server.length; i++) { /* byte by byte */
			send(fd, server.reply + i, 1, MSG_NOSIGNAL);
		}
	}
	close(fd);
	return NULL;
}

static void setup(void)
{
	snprintf(server.directory, sizeof(server.directory), "/tmp/edgeprof-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(server.directory));
	setenv("EDGEPROF_RUNTIME_DIR", server.directory, 1);
	setenv("OMP_NUM_THREADS", "4", 1);
	unsetenv("MKL_NUM_THREADS");
	unsetenv("OPENBLAS_NUM_THREADS");
	unsetenv("NUMEXPR_NUM_THREADS");
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	snprintf(address.sun_path, sizeof(address.sun_path), "%s/io.edgeprof", server.directory);
	memcpy(server.path, address.sun_path, sizeof(server.path));
	server.listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ck_assert_int_eq(bind(server.listener, (struct sockaddr *)&address, sizeof(address)), 0);
	ck_assert_int_eq(listen(server.listener, 4), 0);
	edgeprof_init("cam");
}

static void teardown(void)
{
	close(server.listener);
	unlink(server.path);
	rmdir(server.directory);
}

FIXTURE(setup, teardown);

static void answer(const char *reply)
{
	memset(server.call, 0, sizeof(server.call));
	server.reply = reply;
	server.length = reply ? strlen(reply) + 1 : 0;
	server.joined = false;
	ck_assert_int_eq(pthread_create(&server.thread, NULL, serve, NULL), 0);
}

static const char *called(void)
{
	if (!server.joined) {
		pthread_join(server.thread, NULL);
		server.joined = true;
	}
	return server.call;
}

static const char fine[] = "{\"parameters\":{\"session\":{\"name\":\"day.2\",\"app\":\"cam\"}}}";

/* Again, where a busy machine took longer to answer than the library waits. */
static void start_day(const struct edgeprof_session *options)
{
	int r = -ETIMEDOUT;
	for (int tries = 0; r == -ETIMEDOUT && tries < 5; tries++) {
		answer(fine);
		r = edgeprof_session_start("day", options);
		called();
	}
	ck_assert_int_eq(r, 0);
}

START_TEST(start_sends_app_tags_and_the_number_of_threads)
{
	char name[16] = "";
	const struct edgeprof_tag tags[] = {{"note", "a \"b\"\\\n"}, {"delegate", "XNNPACK"}};
	const struct edgeprof_session options = {.size = sizeof(options),
		.tags = tags,
		.tag_count = 2,
		.warmup = -1,
		.frames = 300,
		.duration_ns = 1500000000,
		.ret_name = name,
		.ret_name_size = sizeof(name)};
	answer(fine);
	errno = 77;
	ck_assert_int_eq(edgeprof_session_start("day", &options), 0);
	ck_assert_int_eq(errno, 77);
	ck_assert_str_eq(called(),
		"{\"method\":\"io.edgeprof.StartSession\",\"parameters\":{\"name\":\"day\","
		"\"app\":\"cam\",\"environment\":[{\"name\":\"OMP_NUM_THREADS\",\"value\":\"4\"}],"
		"\"tags\":[{\"name\":\"note\",\"value\":\"a \\u0022b\\u0022\\u005c\\u000a\"},"
		"{\"name\":\"delegate\",\"value\":\"XNNPACK\"}],\"warmup\":0,\"frames\":300,"
		"\"seconds\":1500000000e-9}}");
	ck_assert_str_eq(name, "day.2");
	answer(fine);
	ck_assert_int_eq(edgeprof_session_stop(NULL, "no \x01 camera"), 0);
	ck_assert_str_eq(called(), "{\"method\":\"io.edgeprof.StopSession\",\"parameters\":{"
				   "\"name\":\"day.2\",\"error\":\"no \\u0001 camera\"}}");
	answer(fine);
	ck_assert_int_eq(edgeprof_session_start("night \"1\"", NULL), 0);
	ck_assert_ptr_nonnull(strstr(called(), "{\"name\":\"night__1_\","));
	answer(fine);
	ck_assert_int_eq(edgeprof_session_stop("dusk", NULL), 0);
	ck_assert_str_eq(called(), "{\"method\":\"io.edgeprof.StopSession\",\"parameters\":{"
				   "\"name\":\"dusk\"}}");
}
END_TEST

START_TEST(each_reply_has_its_error)
{
	static const struct {
		const char *reply;
		int error;
	} cases[] = {
		{"{\"error\":\"io.edgeprof.NotPermitted\",\"parameters\":{}}", -EPERM},
		{"{\"error\":\"io.edgeprof.LimitReached\",\"parameters\":{}}", -EDQUOT},
		{"{\"error\":\"io.edgeprof.NotFound\",\"parameters\":{}}", -ENXIO},
		{"{\"error\":\"io.edgeprof.NotFoundX\",\"parameters\":{}}", -EIO},
		{"{\"error\":\"org.varlink.service.InvalidParameter\"}", -EINVAL},
		{"{\"error\":\"org.varlink.service.MethodNotFound\"}", -ENOSYS},
		{"{\"error\":\"", -EIO},
		{"", -EBADMSG},
		{"[]", -EBADMSG},
		{"{\"parameters\":{\"session\":{\"name\":\"0123456789012345678901234567890123456789"
		 "012345678901234567890123\"}}}",
			-EBADMSG},
		{NULL, -ECONNRESET},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		answer(cases[i].reply);
		ck_assert_int_eq(edgeprof_session_start("day", NULL), cases[i].error);
		called();
	}
}
END_TEST

START_TEST(a_long_reply_is_read_to_its_end)
{
	static char reply[4000];
	snprintf(reply, sizeof(reply), "%.*s,\"tags\":\"%*s\"}}}", (int)sizeof(fine) - 5, fine,
		3800, "x");
	answer(reply);
	ck_assert_int_eq(edgeprof_session_start("day", NULL), 0);
	called();
}
END_TEST

START_TEST(the_largest_call_arrives_complete)
{
	static struct edgeprof_tag tags[32];
	static char value[257];
	memset(value, '\n', 256);
	for (int i = 0; i < 32; i++) {
		tags[i] = (struct edgeprof_tag){"tag", value};
	}
	const struct edgeprof_session options = {
		.size = sizeof(options), .tags = tags, .tag_count = 32};
	answer(fine);
	ck_assert_int_eq(edgeprof_session_start("day", &options), 0);
	ck_assert_uint_gt(strlen(called()), 32 * 256 * 6);
	ck_assert_str_eq(server.call + strlen(server.call) - 4, "10}}");
}
END_TEST

START_TEST(a_daemon_that_does_not_answer_is_given_up_on)
{
	server.silent = true;
	answer(NULL);
	ck_assert_int_eq(edgeprof_session_start("day", NULL), -ETIMEDOUT);
	called();
}
END_TEST

START_TEST(a_reply_without_end_is_given_up_on)
{
	server.endless = true;
	answer(NULL);
	ck_assert_int_eq(edgeprof_session_start("day", NULL), -ETIMEDOUT);
	called();
}
END_TEST

START_TEST(without_a_daemon_or_a_name_nothing_happens)
{
	struct edgeprof_session options = {.size = 1};
	ck_assert_int_eq(edgeprof_session_stop(NULL, NULL), -ENXIO);
	ck_assert_int_eq(edgeprof_session_start(NULL, NULL), -EINVAL);
	ck_assert_int_eq(edgeprof_session_start("day", &options), -EINVAL);
	close(server.listener);
	ck_assert_int_eq(edgeprof_session_start("day", NULL), -ECONNREFUSED);
	unlink(server.path);
	ck_assert_int_eq(edgeprof_session_start("day", NULL), -ENOENT);
	ck_assert_int_eq(edgeprof_session_stop("day", "x"), -ENOENT);
	edgeprof_shutdown();
	ck_assert_int_eq(edgeprof_session_start("day", NULL), -ESHUTDOWN);
}
END_TEST

/* A program that was built with a shorter structure. */
START_TEST(an_older_structure_is_read_as_far_as_it_goes)
{
	const struct edgeprof_tag tags[] = {{"a", "b"}};
	struct edgeprof_session options = {
		.size = offsetof(struct edgeprof_session, warmup), .tags = tags, .tag_count = 1};
	options.frames = 7;
	start_day(&options);
	ck_assert_ptr_nonnull(strstr(called(), "{\"name\":\"a\",\"value\":\"b\"}"));
	ck_assert_ptr_null(strstr(server.call, "frames"));
}
END_TEST

static void *start_in_vain(void *unused)
{
	(void)unused;
	ck_assert_int_eq(edgeprof_session_start("day", NULL), -ETIMEDOUT);
	return NULL;
}

START_TEST(a_child_of_a_fork_meanwhile_has_no_session)
{
	pthread_t thread;
	int status;
	ck_assert_int_eq(pthread_create(&thread, NULL, start_in_vain, NULL), 0);
	int fd = accept(server.listener, NULL, NULL); /* it waits for a reply */
	pid_t child = fork();
	if (child == 0) {
		_exit(-edgeprof_session_stop(NULL, NULL));
	}
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_int_eq(WEXITSTATUS(status), ENXIO);
	pthread_join(thread, NULL);
	close(fd);
	start_day(NULL);
	called();
	child = fork();
	if (child == 0) {
		_exit(-edgeprof_session_stop(NULL, NULL));
	}
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_int_eq(WEXITSTATUS(status), ENXIO);
}
END_TEST
