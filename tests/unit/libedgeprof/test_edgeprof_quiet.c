/* SPDX-License-Identifier: Apache-2.0 */
/* libedgeprof must not be noticed: no system call, no allocation, no harm from a signal handler. */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "tests/unit/libedgeprof/edgeprof_case.h"
#include "tests/unit/unit.h"

static int handler_stage;
static atomic_ulong handled;

static void on_signal(int number)
{
	(void)number;
	edgeprof_end(edgeprof_begin(handler_stage));
	edgeprof_complete(handler_stage, 1, 1, EDGEPROF_NO_FRAME);
	edgeprof_attribute(handler_stage, handler_stage, 1);
	edgeprof_end_failed(edgeprof_begin(handler_stage));
	handled++;
}

TEST_TIMEOUT(60);
FIXTURE(NULL, finish);

/* Every event of the handler is recorded, or dropped and counted: none is lost, none doubled. */
START_TEST(signal_handler_events_are_recorded_or_counted)
{
	attach();
	handler_stage = edgeprof_stage("handler");
	struct sigaction action = {.sa_handler = on_signal};
	sigaction(SIGALRM, &action, NULL);
	timer_t timer;
	ck_assert_int_eq(timer_create(CLOCK_MONOTONIC, NULL, &timer), 0);
	struct itimerspec every = {{0, 50000}, {0, 50000}};
	timer_settime(timer, 0, &every, NULL);
	uint64_t own = 0, received = 0;
	const struct proto_slot *slot = proto_map_slots(fake.map, &fake.g);
	while (slot->dropped_busy < 5 || handled < 200) {
		for (int i = 0; i < 100; i++) {
			edgeprof_end(edgeprof_begin(handler_stage));
			own++;
		}
		received += fake_drain(&fake, NULL, NULL);
	}
	every = (struct itimerspec){{0, 0}, {0, 0}};
	timer_settime(timer, 0, &every, NULL);
	timer_delete(timer);
	received += fake_drain(&fake, NULL, NULL);
	struct fake_counts n = fake_count(&fake);
	ck_assert_uint_eq(n.sent, own + 4 * handled);
	ck_assert_uint_eq(n.received, received);
	ck_assert_uint_eq(n.sent, n.received + n.dropped);
	ck_assert_uint_eq(slot->depth, 0);
}
END_TEST

enum { FORKS = 100 };
static volatile sig_atomic_t forks, is_child;

static void on_signal_fork(int number)
{
	(void)number;
	if (forks < FORKS && !is_child) {
		pid_t child = fork();
		forks += child > 0;
		is_child = child == 0;
	}
}

static void end_child(int stage)
{
	if (is_child) {
		edgeprof_end(edgeprof_begin(stage));
		_exit(0);
	}
}

/* The child returns into what the handler interrupted, mostly an event of its parent. */
START_TEST(handlers_may_fork_inside_an_event)
{
	attach();
	int stage = edgeprof_stage("infer");
	struct sigaction action = {.sa_handler = on_signal_fork};
	sigaction(SIGALRM, &action, NULL);
	timer_t timer;
	ck_assert_int_eq(timer_create(CLOCK_MONOTONIC, NULL, &timer), 0);
	struct itimerspec every = {{0, 300000}, {0, 300000}};
	timer_settime(timer, 0, &every, NULL);
	uint64_t own = 0, received = 0;
	sigset_t alarm;
	sigemptyset(&alarm);
	sigaddset(&alarm, SIGALRM);
	while (forks < FORKS) {
		for (int i = 0; i < 100; i++) {
			edgeprof_token outer = edgeprof_begin(stage);
			edgeprof_end(edgeprof_begin(stage));
			edgeprof_end(outer);
			end_child(stage);
			own += 2;
		}
		/* the ring is the parent's to drain */
		sigprocmask(SIG_BLOCK, &alarm, NULL);
		end_child(stage);
		received += fake_drain(&fake, NULL, NULL);
		sigprocmask(SIG_UNBLOCK, &alarm, NULL);
		end_child(stage);
	}
	timer_delete(timer);
	signal(SIGALRM, SIG_IGN); /* also one that is pending: it would interrupt wait() */
	for (int i = 0, status; i < FORKS; i++) {
		ck_assert_int_gt(wait(&status), 0);
		ck_assert_int_eq(status, 0);
	}
	received += fake_drain(&fake, NULL, NULL);
	struct fake_counts n = fake_count(&fake);
	ck_assert_uint_eq(n.sent, own);
	ck_assert_uint_eq(n.received, received);
	check_identity();
}
END_TEST

/* Kills at any system call but those of the end and of a look for the daemon that happens to be
 * due. Sanitizers' runtimes make none in this loop either. */
static int forbid_system_calls(void)
{
	static const uint32_t allowed[] = {
		__NR_exit_group,
		__NR_recvfrom,
		__NR_sendto,
		__NR_fstat,
		__NR_clock_gettime,
#ifdef __NR_newfstatat
		__NR_newfstatat,
#else
		__NR_fstat64,
		__NR_fstatat64,
		__NR_statx,
		__NR_clock_gettime64,
#endif
	};
	struct sock_filter filter[2 * sizeof(allowed) / sizeof(allowed[0]) + 2];
	unsigned short n = 0;
	filter[n++] = (struct sock_filter)BPF_STMT(
		BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
	for (size_t i = 0; i < sizeof(allowed) / sizeof(allowed[0]); i++) {
		filter[n++] =
			(struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, allowed[i], 0, 1);
		filter[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	}
	filter[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
	struct sock_fprog program = {.len = n, .filter = filter};
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0) {
		return -1;
	}
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

START_TEST(ten_thousand_events_make_no_system_call)
{
	ck_assert_int_eq(fake_start(&fake), 0);
	pid_t pid = fork();
	if (pid == 0) {
		edgeprof_init("quiet");
		int stage = edgeprof_stage("infer");
		edgeprof_end(edgeprof_begin(stage));
		if (forbid_system_calls() < 0) {
			_exit(77);
		}
		for (int i = 0; i < 10000; i++) {
			edgeprof_frame_begin((uint64_t)i);
			edgeprof_end(edgeprof_begin(stage));
			edgeprof_frame_end();
		}
		syscall(__NR_exit_group, 0);
	}
	ck_assert_int_eq(fake_accept(&fake), 0);
	int status;
	waitpid(pid, &status, 0);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
		printf("no seccomp here: skipped\n");
		return;
	}
	ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	ck_assert_uint_eq(fake_count(&fake).sent, 20001);
}
END_TEST

#if !HAVE_SANITIZER
/* Counts what the library (and everything else here) allocates. */
static atomic_ulong allocations;
void *__libc_malloc(size_t size);
void *malloc(size_t size)
{
	allocations++;
	return __libc_malloc(size);
}

START_TEST(events_allocate_nothing)
{
	attach();
	int stage = edgeprof_stage("infer");
	edgeprof_end(edgeprof_begin(stage));
	unsigned long before = allocations;
	for (int i = 0; i < 20000; i++) {
		edgeprof_end(edgeprof_begin(stage));
	}
	edgeprof_tick();
	unsigned long after = allocations;
	ck_assert_uint_eq(before, after);
	free(malloc(1));
	ck_assert_uint_gt(allocations, after);
}
END_TEST
#endif

START_TEST(app_that_closes_our_descriptors_is_not_written_to)
{
	attach();
	int stage = edgeprof_stage("infer");
	edgeprof_end(edgeprof_begin(stage));
	int pair[2];
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	/* the app's socket takes the number of whatever socket of ours is connected to `events` */
	for (int fd = 3; fd < 64; fd++) {
		if (fd != pair[0] && fd != pair[1] && fd != fake.listener &&
			fd != fake.connection && fd != fake.memfd) {
			dup2(pair[0], fd);
		}
	}
	uint64_t room = (uint64_t)fake.g.chunks * fake.g.chunk_records;
	for (uint64_t i = 0; i < room + 1000; i++) {
		edgeprof_complete(stage, 1, i, EDGEPROF_NO_FRAME);
	}
	char byte;
	ck_assert_int_lt(recv(pair[1], &byte, 1, MSG_DONTWAIT), 0);
	check_identity();
}
END_TEST

/* Growing a file beyond the limit is SIGXFSZ, not an error. */
START_TEST(a_limit_of_file_size_switches_off_instead_of_killing)
{
	struct rlimit limit;
	ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &limit), 0);
	limit.rlim_cur = 1000;
	ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
	ck_assert_int_eq(fake_start(&fake), 0);
	ck_assert_int_eq(edgeprof_init("unit test"), -ENOMEM);
	edgeprof_tick();
}
END_TEST

START_TEST(an_app_without_descriptors_goes_on)
{
	struct rlimit limit;
	struct edgeprof_counts n;
	ck_assert_int_eq(fake_start(&fake), 0);
	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
	struct rlimit none = {.rlim_cur = 3, .rlim_max = limit.rlim_max};
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
	ck_assert_int_eq(edgeprof_init("unit test"), 0);
	for (int i = 0; i < 100; i++) {
		edgeprof_tick();
	}
	edgeprof_counts(&n);
	ck_assert_uint_eq(n.unattached, 100);
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
}
END_TEST
