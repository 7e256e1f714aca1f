/* SPDX-License-Identifier: Apache-2.0 */
/* Alerts and the timeline as journal entries; the journal itself is replaced. */
#include "daemon/publish/journal.h"

#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "daemon/core/alerts/actions.h"
#include "daemon/util/log.h"
#include "tests/unit/publish/fake_core.h"
#include "tests/unit/unit.h"

static struct core core;
static struct journal *journal;
static int sent, sendv_result;
static char fields[4096];

int sd_journal_sendv(const struct iovec *iov, int n);
int sd_journal_sendv(const struct iovec *iov, int n)
{
	size_t used = 0;
	for (int i = 0; i < n; i++) {
		used += (size_t)snprintf(fields + used, sizeof(fields) - used, "%.*s\n",
			(int)iov[i].iov_len, (const char *)iov[i].iov_base);
	}
	sent++;
	return sendv_result;
}

/* stderr becomes a pipe that the test reads. */
static int stderr_pipe[2];
static char lines[4096];

static const char *read_lines(void)
{
	ssize_t n = read(stderr_pipe[0], lines, sizeof(lines) - 1);
	lines[n > 0 ? n : 0] = '\0';
	return lines;
}

static void setup(void)
{
	fake_core_init(&core);
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, stderr_pipe), 0);
	ck_assert_int_ge(dup2(stderr_pipe[1], STDERR_FILENO), 0);
	unsetenv("JOURNAL_STREAM");
}

static void be_a_service(void)
{
	struct stat st;
	char stream[64];
	ck_assert_int_eq(fstat(STDERR_FILENO, &st), 0);
	snprintf(stream, sizeof(stream), "%ju:%ju", (uintmax_t)st.st_dev, (uintmax_t)st.st_ino);
	setenv("JOURNAL_STREAM", stream, 1);
}

static void teardown(void)
{
	journal_destroy(journal);
	fake_core_finish(&core);
}

static bool sent_field(const char *field)
{
	return strstr(fields, field) != NULL;
}

FIXTURE(setup, teardown);

START_TEST(a_transition_is_one_structured_entry)
{
	be_a_service();
	ck_assert_int_eq(journal_create(&core, &journal), 0);
	fake_transition("cpu", ALERT_FIRING, "too hot", 1);
	/* alerts.c puts it on the timeline, too: it is not told twice. */
	timeline_add(core.timeline, 1, TIMELINE_ALERT, TIMELINE_WARNING, "hot:cpu", "too hot");
	ck_assert_int_eq(sent, 1);
	ck_assert(sent_field("MESSAGE_ID=3340108b5e98413b831101baa2d42aad\n"));
	ck_assert(sent_field("EDGEPROF_RULE=hot\n"));
	ck_assert(sent_field("EDGEPROF_INSTANCE=cpu\n"));
	ck_assert(sent_field("EDGEPROF_METRIC=temperature/cpu\n"));
	ck_assert(sent_field("EDGEPROF_VALUE=81.5\n"));
	ck_assert(sent_field("EDGEPROF_STATE=firing\n"));
	ck_assert(sent_field("PRIORITY=4\n"));
	ck_assert(sent_field("too hot\n"));
	ck_assert_str_eq(read_lines(), "");
	fake_transition("cpu", ALERT_FIRING, "hotter", 2);
	ck_assert(sent_field("MESSAGE_ID=c92f7bf94cf54a6fa5799b1d4e7ae21b\n"));
	fake_alert("cpu")->value = NAN;
	fake_transition("cpu", ALERT_OK, "gone", 3);
	ck_assert(sent_field("MESSAGE_ID=6fc1bc99924b4dae9d79666835330845\n"));
	ck_assert(sent_field("EDGEPROF_STATE=ok\n"));
	ck_assert(sent_field("PRIORITY=5\n"));
	ck_assert(!sent_field("EDGEPROF_VALUE"));
}
END_TEST

/* What observers get of an alert that nobody is called for, and of a test. */
static struct alert_transition transition_of(const char *instance)
{
	struct alert *alert = fake_alert(instance);
	alert->phase = ALERT_FIRING;
	return (struct alert_transition){
		.alert = alert, .from = ALERT_OK, .to = ALERT_FIRING, .t_ns = 1};
}

START_TEST(one_that_is_sent_later_says_when_it_happened)
{
	be_a_service();
	ck_assert_int_eq(journal_create(&core, &journal), 0);
	struct alert_transition transition = transition_of("cpu");
	transition.t_ns = 2000000000;
	fake.observer[0](fake.ctx[0], &transition);
	ck_assert(sent_field("EDGEPROF_TIME_US=1709208002250000\n"));
	ck_assert(!sent_field("EDGEPROF_SENT_TIME_US") && !sent_field(" ago)"));
	transition.sent_ns = 406000000000;
	fake.observer[0](fake.ctx[0], &transition);
	ck_assert(sent_field("EDGEPROF_TIME_US=1709208002250000\n"));
	ck_assert(sent_field("EDGEPROF_SENT_TIME_US=1709208406250000\n"));
	ck_assert(sent_field(" (6 min 44 s ago)\n"));
	ck_assert_int_eq(sent, 2);
}
END_TEST

START_TEST(a_silenced_one_is_told_at_info_and_says_so)
{
	be_a_service();
	ck_assert_int_eq(journal_create(&core, &journal), 0);
	struct alert_transition transition = transition_of("cpu");
	transition.quiet = true;
	fake.observer[0](fake.ctx[0], &transition);
	ck_assert_int_eq(sent, 1);
	ck_assert(sent_field("PRIORITY=6\n"));
	ck_assert(sent_field("EDGEPROF_SILENCED=1\n"));
	ck_assert(sent_field("EDGEPROF_FROM_STATE=ok\n"));
	transition.update = true;
	fake.observer[0](fake.ctx[0], &transition);
	timeline_add(core.timeline, 1, TIMELINE_SILENCED, TIMELINE_INFO, "hot:cpu", "too hot");
	ck_assert_int_eq(sent, 1);
	timeline_add(core.timeline, 1, TIMELINE_HOLD, TIMELINE_INFO, "hot", "silenced for 5 s");
	ck_assert_int_eq(sent, 2);
	ck_assert(sent_field("MESSAGE_ID=b0b9a2d3f6c94e05a1c1d4a4c2f0e7d6\n"));
}
END_TEST

START_TEST(a_test_learns_what_the_journal_said)
{
	struct alert_test test = {.journal = ALERT_LINK_NONE};
	be_a_service();
	ck_assert_int_eq(journal_create(&core, &journal), 0);
	struct alert_transition transition = transition_of("cpu");
	transition.test = &test;
	fake.observer[0](fake.ctx[0], &transition);
	ck_assert_int_eq(test.journal, ALERT_LINK_DONE);
	ck_assert(sent_field("EDGEPROF_TEST=1\n"));
	sendv_result = -2;
	fake.observer[0](fake.ctx[0], &transition);
	ck_assert_int_eq(test.journal, ALERT_LINK_FAILED);
	log_max_level = LOG_LEVEL_ERROR;
	fake.observer[0](fake.ctx[0], &transition);
	ck_assert_int_eq(test.journal, ALERT_LINK_FILTERED);
}
END_TEST

START_TEST(outside_systemd_it_is_one_line)
{
	/* Inherited by a shell's child whose stderr is elsewhere. */
	setenv("JOURNAL_STREAM", "1:2", 1);
	ck_assert_int_eq(journal_create(&core, &journal), 0);
	fake_transition("cpu", ALERT_FIRING, "too hot", 1);
	timeline_add(core.timeline, 1, TIMELINE_ALERT, TIMELINE_WARNING, "hot:cpu", "too hot");
	ck_assert_int_eq(sent, 0);
	read_lines();
	ck_assert_ptr_nonnull(strstr(lines, "alert hot of cpu is firing (warning): too hot\n"));
	ck_assert_ptr_eq(strchr(lines, '\n'), strrchr(lines, '\n'));
}
END_TEST

START_TEST(the_timeline_is_told_with_its_level)
{
	be_a_service();
	ck_assert_int_eq(journal_create(&core, &journal), 0);
	timeline_add(core.timeline, 1, TIMELINE_APP, TIMELINE_WARNING, "cam", "died in infer");
	ck_assert(sent_field("MESSAGE_ID=43fd9ea0af3b410eae77e091a197f4b5\n"));
	ck_assert(sent_field("EDGEPROF_KIND=app\n"));
	ck_assert(sent_field("EDGEPROF_SUBJECT=cam\n"));
	ck_assert(sent_field("PRIORITY=4\n"));
	ck_assert(sent_field("MESSAGE=cam: died in infer\n"));
	log_max_level = LOG_LEVEL_WARNING;
	timeline_add(core.timeline, 2, TIMELINE_MARK, TIMELINE_INFO, "cam", "lap");
	ck_assert_int_eq(sent, 1);
}
END_TEST

START_TEST(without_a_journal_socket_the_line_goes_to_stderr)
{
	be_a_service();
	sendv_result = -2; /* ENOENT */
	ck_assert_int_eq(journal_create(&core, &journal), 0);
	timeline_add(core.timeline, 1, TIMELINE_DAEMON, TIMELINE_INFO, "edgeprofd", "started");
	ck_assert_ptr_nonnull(strstr(read_lines(), "started\n"));
}
END_TEST

START_TEST(an_empty_subject_leaves_no_colon)
{
	ck_assert_int_eq(journal_create(&core, &journal), 0);
	timeline_add(core.timeline, 1, TIMELINE_MARK, TIMELINE_INFO, "", "lap 3");
	ck_assert_ptr_nonnull(strstr(read_lines(), "info: lap 3\n"));
}
END_TEST

START_TEST(an_alert_without_an_instance_is_told_by_its_rule)
{
	ck_assert_int_eq(journal_create(&core, &journal), 0);
	fake_transition("_", ALERT_FIRING, "load above 4", 1);
	ck_assert_ptr_nonnull(strstr(read_lines(), "alert hot is firing (warning): load above 4"));
}
END_TEST

START_TEST(nothing_is_told_after_it_is_gone)
{
	be_a_service();
	ck_assert_int_eq(journal_create(&core, &journal), 0);
	journal_destroy(journal);
	journal = NULL;
	fake_transition("cpu", ALERT_FIRING, "too hot", 1);
	timeline_add(core.timeline, 1, TIMELINE_APP, TIMELINE_INFO, "cam", "attached");
	ck_assert_int_eq(sent, 0);
}
END_TEST

START_TEST(every_message_id_is_in_the_catalog)
{
	static const char *const files[] = {
		"daemon/publish/journal.c", "systemd/edgeprofd.catalog"};
	char text[2][32768];
	for (int i = 0; i < 2; i++) {
		char path[512];
		const char *source = getenv("EDGEPROF_SOURCE");
		snprintf(path, sizeof(path), "%s/%s", source ? source : ".", files[i]);
		FILE *file = fopen(path, "r");
		ck_assert_ptr_nonnull(file);
		text[i][fread(text[i], 1, sizeof(text[i]) - 1, file)] = '\0';
		fclose(file);
	}
	int ids = 0;
	for (const char *at = text[0]; (at = strchr(at, '"')); at++) {
		if (strspn(at + 1, "0123456789abcdef") == 32) {
			char id[40];
			memcpy(id, "\n-- ", 4);
			memcpy(id + 4, at + 1, 32);
			id[36] = '\0';
			ck_assert_msg(strstr(text[1], id), "%s", id);
			ids++;
		}
	}
	ck_assert_int_eq(ids, 10);
	/* and nothing is explained that nobody says */
	for (const char *at = text[1]; (at = strstr(at, "\n-- ")); at++, ids--) {
		char id[40];
		snprintf(id, sizeof(id), "\"%.32s\"", at + 4);
		ck_assert_msg(strstr(text[0], id), "%s", id);
	}
	ck_assert_int_eq(ids, 0);
}
END_TEST
