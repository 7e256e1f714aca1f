/* SPDX-License-Identifier: Apache-2.0 */
/* Who may attach: what is refused, with which reason, and how limits are shared. */
#include "daemon/core/status/counters.h"
#include "daemon/ingest/hello.h"
#include "tests/unit/ingest/ingest_fixture.h"
#include "tests/unit/unit.h"

enum rubbish {
	SHORT,
	LONG,
	EMPTY_FD,
	MAGIC,
	MAJOR,
	LISTED_SIZE,
	PAGE,
	CLOCK,
	UNSEALED,
	OTHER_SIZE,
	SPARSE,
	PIPE,
	TEN_FDS,
	NO_FD,
	NO_HEADER,
	NO_WRITE,
	RUBBISH_COUNT
};

static void send_rubbish(int fd, enum rubbish what)
{
	struct proto_hello hello = good_hello("bad");
	char bytes[2 * sizeof(hello)] = {0};
	int fds[10], pipes[2];
	size_t size = sizeof(hello), count = 1;
	fds[0] = make_memfd(SIZE, what != SPARSE, what == UNSEALED ? F_SEAL_SHRINK : SEALS);
	if (what == NO_WRITE) {
		close(fds[0]);
		fds[0] = make_memfd(SIZE, true, SEALS | F_SEAL_WRITE);
	}
	switch (what) {
	case SHORT:
		size--;
		break;
	case LONG:
		size++;
		break;
	case EMPTY_FD:
		size = 0;
		break;
	case MAGIC:
		hello.magic++;
		break;
	case MAJOR:
		hello.major++;
		break;
	case LISTED_SIZE:
		hello.mapping_size = 3 * SIZE;
		break;
	case PAGE:
		hello.page_size *= 2;
		break;
	case CLOCK:
		hello.mono_ns += 5000000000u;
		break;
	case OTHER_SIZE:
		hello.mapping_size = 2 * SIZE;
		break;
	case PIPE:
		close(fds[0]);
		ck_assert_int_eq(pipe(pipes), 0);
		close(pipes[1]);
		fds[0] = pipes[0];
		break;
	case TEN_FDS:
		for (; count < 10; count++) {
			fds[count] = fds[0];
		}
		break;
	case NO_FD:
		count = 0;
		break;
	case UNSEALED:
	case SPARSE:
	case NO_HEADER:
	case NO_WRITE:
	case RUBBISH_COUNT:
		break;
	}
	memcpy(bytes, &hello, sizeof(hello));
	send_packet(fd, bytes, size, fds, count);
	close(fds[0]);
}

TEST_TIMEOUT(100);
FIXTURE(setup, teardown);

START_TEST(rubbish_is_refused_with_the_reason)
{
	static const char *const reasons[RUBBISH_COUNT] = {
		[SHORT] = "wrong length",
		[LONG] = "wrong length",
		[EMPTY_FD] = "wrong length",
		[MAGIC] = "not a hello",
		[MAJOR] = "unsupported version",
		[LISTED_SIZE] = "unsupported size",
		[PAGE] = "page size",
		[CLOCK] = "time namespace",
		[UNSEALED] = "not sealed",
		[OTHER_SIZE] = "size of the memfd differs",
		[SPARSE] = "holes",
		[PIPE] = "not a memfd",
		[TEN_FDS] = "more than one",
		[NO_FD] = "no mapping",
		[NO_HEADER] = "no valid header",
		[NO_WRITE] = "not permitted",
	};
	size_t before = open_fds();
	for (int i = 0; i < RUBBISH_COUNT; i++) {
		int fd = dial();
		send_rubbish(fd, (enum rubbish)i);
		run_until(&counters.attaches_refused, (uint64_t)i + 1);
		ck_assert_msg(strstr(counters.attach_refused_reason, reasons[i]), "%d: %s", i,
			counters.attach_refused_reason);
		ck_assert_ptr_nonnull(strstr(
			counters.rejected_attaches.entry[counters.rejected_attaches.count - 1]
				.reason,
			reasons[i]));
		uv_run(&loop, UV_RUN_NOWAIT);
		char byte;
		ck_assert_int_eq(recv(fd, &byte, 1, 0), 0); /* closed, and no answer */
		close(fd);
	}
	ck_assert_uint_eq(counters.attaches, 0);
	while (open_fds() != before) { /* pipes are closed by a thread */
		sched_yield();
	}
	/* told once while it stays the same */
	uint64_t told = timeline_last_serial(core.timeline);
	for (unsigned i = 1; i <= 5; i++) {
		int fd = dial();
		send_rubbish(fd, NO_WRITE);
		run_until(&counters.attaches_refused, RUBBISH_COUNT + i);
		close(fd);
	}
	ck_assert_uint_eq(timeline_last_serial(core.timeline), told);
}
END_TEST

static bool memfd_is_good(int fd, const char *wrong)
{
	const char *reason = NULL;
	struct stat st;
	int r = hello_check_memfd(fd, SIZE, &st, &reason);
	ck_assert_int_eq(r, wrong ? -EBADMSG : 0);
	ck_assert_msg(!wrong || strstr(reason, wrong), "%s", reason);
	close(fd);
	return r == 0;
}

/* Without any one of them the peer could take pages away that are about to be read: SIGBUS. */
START_TEST(each_seal_is_demanded)
{
	static const int seals[] = {F_SEAL_SHRINK, F_SEAL_GROW, F_SEAL_SEAL};
	for (size_t i = 0; i < sizeof(seals) / sizeof(seals[0]); i++) {
		memfd_is_good(make_memfd(SIZE, true, SEALS & ~seals[i]), "not sealed");
	}
	memfd_is_good(make_memfd(SIZE, true, 0), "not sealed");
	ck_assert(memfd_is_good(make_memfd(SIZE, true, SEALS), NULL));
}
END_TEST

START_TEST(one_page_that_is_missing_is_a_hole)
{
	const off_t page = sysconf(_SC_PAGESIZE);
	for (off_t at = 0; at < SIZE; at += page) {
		int fd = make_memfd(SIZE, true, SEALS);
		ck_assert_int_eq(
			fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, at, page), 0);
		memfd_is_good(fd, "holes");
	}
	int fd = make_memfd(SIZE, false, SEALS);
	ck_assert_int_eq(fallocate(fd, 0, 0, SIZE / 2), 0);
	memfd_is_good(fd, "holes");
}
END_TEST

/* Of huge pages none may be left for the next touch after a hole was punched: SIGBUS. */
START_TEST(a_memfd_of_huge_pages_is_refused)
{
	const uint32_t size = 2 * 1024 * 1024;
	const char *reason = NULL;
	struct stat st;
	int fd = memfd_create("huge", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_HUGETLB);
	if (fd >= 0 && ftruncate(fd, size) == 0) {
		ck_assert_int_eq(fcntl(fd, F_ADD_SEALS, SEALS), 0);
		ck_assert_int_eq(hello_check_memfd(fd, size, &st, &reason), -EBADMSG);
		ck_assert_str_eq(reason, "the memfd is of huge pages");
	}
	if (fd >= 0) {
		close(fd);
	}
}
END_TEST

/* The number of descriptors once it is below the limit, at the latest after 10 s: threads close the
 * sockets of peers. */
static size_t open_fds_below(size_t limit)
{
	size_t count = open_fds();
	for (int i = 0; i < 2000 && count >= limit; i++) {
		nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
		count = open_fds();
	}
	return count;
}

START_TEST(a_thousand_attachments_leave_no_descriptor)
{
	struct writer w;
	int memfd = make_mapping(&w);
	const size_t before = open_fds();
	struct app *app = NULL;
	for (unsigned i = 0; i < 1000; i++) {
		if (i % 4 == 0) { /* with too many that wait to be closed it would be refused */
			ck_assert_uint_eq(open_fds_below(before + 1), before);
		}
		w.header->flags = 0;
		int fd = say_hello("cam", memfd);
		run_until(&counters.attaches, i + 1);
		send_packet(fd, "", 1, &memfd, 1); /* a wake-up with something it must not carry */
		w.header->flags = PROTO_MAP_BYE;
		close(fd);
		app = apps_find(core.apps, "cam");
		while (app->processes > 0) {
			uv_run(&loop, UV_RUN_ONCE);
		}
		uv_run(&loop, UV_RUN_NOWAIT);
	}
	ck_assert_uint_eq(open_fds_below(before + 1), before);
	close(memfd);
}
END_TEST

/* A process of another user that attaches so many mappings and dials so many further times. */
static pid_t start_stranger(int mappings, int dials, int ready, const int go[2])
{
	pid_t pid = fork();
	if (pid == 0) {
		char byte;
		struct writer w;
		close(go[1]);
		if (setgid(1001) < 0 || setuid(1001) < 0) {
			_exit(1);
		}
		for (int i = 0; i < mappings; i++) {
			say_hello("stranger", make_mapping(&w));
		}
		for (int i = 0; i < dials; i++) {
			dial();
		}
		_exit(write(ready, "", 1) == 1 && read(go[0], &byte, 1) == 0 ? 0 : 1);
	}
	ck_assert_int_gt(pid, 0);
	return pid;
}

START_TEST(one_uid_gets_half_of_what_is_free)
{
	if (geteuid() != 0) {
		return; /* only root can be another user */
	}
	close_ingest();
	ck_assert_int_eq(chmod(dir, 0755), 0);
	options.max_connections = 8;
	options.max_mapping_bytes = 6 * SIZE;
	open_ingest();
	int ready[2], go[2];
	ck_assert_int_eq(pipe2(ready, O_CLOEXEC), 0);
	ck_assert_int_eq(pipe2(go, O_CLOEXEC), 0);
	pid_t pid = start_stranger(4, 2, ready[1], go);
	run_until(&counters.attaches_refused, 3);
	ck_assert_uint_eq(counters.attaches, 3); /* 3 of 6 mappings, 4 of 8 connections */
	bool room = false, connections = false;
	for (size_t i = 0; i < counters.rejected_attaches.count; i++) {
		const char *reason = counters.rejected_attaches.entry[i].reason;
		room = room || strstr(reason, "mapped memory");
		connections = connections || strstr(reason, "too many connections");
	}
	ck_assert(room && connections);
	/* root has the rest, all but what is kept for others, who have their share already */
	struct writer w[4];
	int fd[4];
	for (int i = 0; i < 4; i++) {
		int memfd = make_mapping(&w[i]);
		fd[i] = say_hello("cam", memfd);
		close(memfd);
	}
	run_until(&counters.attaches_refused, 4);
	ck_assert_uint_eq(counters.attaches, 6);
	close(go[1]);
	int status;
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
	close(ready[0]);
	close(ready[1]);
	close(go[0]);
	for (int i = 0; i < 4; i++) {
		close(fd[i]);
	}
}
END_TEST

START_TEST(who_says_nothing_for_five_seconds_is_closed)
{
	close_ingest();
	options.sample_interval_ns = 10000000;
	open_ingest();
	int fd = dial();
	uint64_t told = timeline_last_serial(core.timeline);
	for (int i = 0; i < 20; i++) {
		uv_run(&loop, UV_RUN_ONCE);
	}
	ck_assert_uint_eq(counters.attaches_refused, 0);
	shift_clock(6000000000);
	run_until(&counters.attaches_refused, 1);
	sysops_replace(NULL);
	ck_assert_ptr_nonnull(strstr(counters.attach_refused_reason, "within 5 s"));
	ck_assert_uint_eq(timeline_last_serial(core.timeline), told + 1);
	close(fd);
}
END_TEST

START_TEST(a_hello_that_came_late_is_as_good)
{
	struct proto_hello hello = good_hello("late");
	struct writer w;
	int memfd = make_mapping(&w), fd = dial();
	hello.mono_ns -= 9000000000;
	send_packet(fd, &hello, sizeof(hello), &memfd, 1);
	run_until(&counters.attaches, 1);
	ck_assert_uint_eq(counters.attaches_refused, 0);
	close(fd);
	close(memfd);
}
END_TEST
