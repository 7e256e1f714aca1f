/* SPDX-License-Identifier: Apache-2.0 */
/* Frame context: measured while frames are few, with descriptors that nobody notices. The clock is
 * the test's: it replaces clock_gettime, so that frames take as long as it says, and no time passes
 * between. */
#include <dirent.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "tests/unit/libedgeprof/edgeprof_case.h"
#include "tests/unit/unit.h"

enum { FRAME_60 = 16666667, FRAME_120 = 8333333, FRAME_125 = 8000000, FRAME_200 = 5000000 };

#define BEGIN_NS 1000000000000ull

static atomic_ullong ahead_ns;

int clock_gettime(clockid_t clock, struct timespec *ret)
{
#ifdef SYS_clock_gettime64 /* of 32-bit machines; their time_t has 64 bits, see meson.build */
	const long number = SYS_clock_gettime64;
#else
	const long number = SYS_clock_gettime;
#endif
	if (syscall(number, clock, ret) < 0) {
		return -1;
	}
	if (clock == CLOCK_MONOTONIC) {
		const unsigned long long ns = BEGIN_NS + ahead_ns;
		*ret = (struct timespec){
			.tv_sec = (time_t)(ns / 1000000000u), .tv_nsec = (long)(ns % 1000000000u)};
	}
	return 0;
}

struct contexts {
	uint64_t count, frames;
	struct proto_record last, frame;
};

static void note(void *ctx, uint32_t slot, const struct proto_record *record)
{
	struct contexts *c = ctx;
	(void)slot;
	if (record->kind == PROTO_KIND_CONTEXT) {
		c->last = *record;
		c->count++;
	} else if (record->kind == PROTO_KIND_FRAME) {
		c->frame = *record;
		c->frames++;
	}
}

static struct contexts drain(void)
{
	struct contexts c = {.count = 0};
	fake_drain(&fake, note, &c);
	return c;
}

static void frame(uint64_t id, uint64_t ns)
{
	edgeprof_frame_begin(id);
	ahead_ns += ns;
	edgeprof_frame_end();
}

static uint64_t frames(int count, uint64_t ns)
{
	for (int i = 0; i < count; i++) {
		frame((uint64_t)i, ns);
	}
	return drain().count;
}

/* Descriptors of /proc/…/schedstat that are open here. */
static int open_schedstats(int *which)
{
	int count = 0;
	DIR *d = opendir("/proc/self/fd");
	ck_assert_ptr_nonnull(d);
	for (struct dirent *e = readdir(d); e; e = readdir(d)) {
		char path[300], target[256];
		snprintf(path, sizeof(path), "/proc/self/fd/%s", e->d_name);
		ssize_t n = readlink(path, target, sizeof(target) - 1);
		target[n > 0 ? n : 0] = '\0';
		if (strstr(target, "schedstat")) {
			*which = atoi(e->d_name);
			count++;
		}
	}
	closedir(d);
	return count;
}

enum { PAGES = 50 };

static void fault_pages(void)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *fresh = mmap(
		NULL, PAGES * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ck_assert_ptr_ne(fresh, MAP_FAILED);
	madvise(fresh, PAGES * page, MADV_NOHUGEPAGE);
	for (size_t i = 0; i < PAGES; i++) {
		*(volatile char *)(fresh + i * page) = 1;
	}
	munmap(fresh, PAGES * page);
}

static long voluntary_switches(void)
{
	struct rusage usage;
	ck_assert_int_eq(getrusage(RUSAGE_THREAD, &usage), 0);
	return usage.ru_nvcsw;
}

/* A short sleep that ends before the thread has left its core is no switch. */
static void wait_switches(long count)
{
	long end = voluntary_switches() + count;
	while (voluntary_switches() < end) {
		nanosleep(&(struct timespec){.tv_nsec = 1000}, NULL);
	}
}

TEST_TIMEOUT(60);
FIXTURE(NULL, finish);

START_TEST(a_frame_says_what_happened_to_its_thread)
{
	attach();
	frames(3, FRAME_60);
	edgeprof_frame_begin(42);
	ahead_ns += FRAME_60;
	fault_pages();
	wait_switches(3);
	errno = 4711;
	edgeprof_frame_end();
	ck_assert_int_eq(errno, 4711);
	struct contexts c = drain();
	ck_assert_uint_eq(c.count, 1);
	ck_assert_uint_eq(c.last.frame, 42);
	ck_assert_uint_eq(c.last.start_ns, c.frame.start_ns + c.frame.value);
	ck_assert_uint_ge(c.last.value & 0xffff, 3);	       /* voluntary switches */
	ck_assert_uint_ge(c.last.value >> 32 & 0xffff, PAGES); /* minor faults */
	int fd;
	if (open_schedstats(&fd) == 1) {
		ck_assert_uint_ne(c.last.cpu_us, PROTO_CPU_NOT_MEASURED);
		ck_assert_int_eq(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
		ck_assert_int_gt(fd, 2);
	}
	check_identity();
}
END_TEST

START_TEST(many_frames_a_second_have_none)
{
	attach();
	ck_assert_uint_eq(frames(100, FRAME_200), 0);
	/* the rate is smoothed over eight frames */
	ck_assert_uint_gt(frames(100, FRAME_120), 60);
	ck_assert_uint_eq(frames(100, FRAME_120), 100);
	ck_assert_uint_eq(frames(100, FRAME_125), 100); /* hysteresis */
	frames(10, FRAME_200);
	ck_assert_uint_eq(frames(100, FRAME_200), 0);
	/* a pause is not a reason for a burst of system calls */
	ahead_ns += 60000000000u;
	ck_assert_uint_lt(frames(100, FRAME_200), 30);
	ck_assert_uint_eq(frames(100, FRAME_125), 0); /* hysteresis */
	check_identity();
}
END_TEST

START_TEST(what_happened_while_it_was_off_is_no_frame_s)
{
	attach();
	frames(20, FRAME_60);
	frames(100, FRAME_200);
	fault_pages();
	struct contexts c = {.count = 0};
	for (int i = 0; i < 100 && c.count == 0; i++) {
		frame(1, FRAME_60);
		c = drain();
	}
	ck_assert_uint_eq(c.count, 1);
	ck_assert_uint_lt(c.last.value >> 32 & 0xffff, PAGES);
}
END_TEST

START_TEST(frames_from_elsewhere_and_ticks_have_none)
{
	attach();
	for (int i = 0; i < 10; i++) {
		ahead_ns += FRAME_60;
		edgeprof_frame(1, 1);
		edgeprof_tick();
	}
	struct contexts c = drain();
	ck_assert_uint_eq(c.frames, 20);
	ck_assert_uint_eq(c.count, 0);
}
END_TEST

START_TEST(context_can_be_switched_off)
{
	int fd;
	setenv("EDGEPROF_CONTEXT", "0", 1);
	attach();
	ck_assert_uint_eq(frames(100, FRAME_60), 0);
	ck_assert_int_eq(open_schedstats(&fd), 0);
}
END_TEST

START_TEST(a_daemon_that_left_gets_none)
{
	attach();
	ck_assert_uint_gt(frames(10, FRAME_60), 0);
	void *map = fake.map;
	close(fake.connection);
	fake.connection = -1;
	close(fake.listener);
	ahead_ns += 2000000000u; /* the next event looks whether it is there */
	frame(0, FRAME_60);
	drain();
	ck_assert_uint_eq(frames(10, FRAME_60), 0);
	ck_assert_ptr_eq(map, fake.map);
}
END_TEST

static void *some_frames(void *arg)
{
	frames(5, FRAME_60);
	ck_assert_int_eq(open_schedstats(arg), 1);
	return NULL;
}

START_TEST(the_descriptor_ends_with_its_thread_and_its_process)
{
	int fd;
	if (access("/proc/thread-self/schedstat", R_OK) != 0) {
		printf("no schedstat here: skipped\n");
		return;
	}
	attach();
	pthread_t thread;
	pthread_create(&thread, NULL, some_frames, &fd);
	pthread_join(thread, NULL);
	ck_assert_int_eq(open_schedstats(&fd), 0);
	frames(5, FRAME_60);
	ck_assert_int_eq(open_schedstats(&fd), 1);
	pid_t pid = fork();
	if (pid == 0) {
		_exit(open_schedstats(&fd));
	}
	int status;
	waitpid(pid, &status, 0);
	ck_assert_int_eq(status, 0);
	ck_assert_uint_eq(frames(5, FRAME_60), 5);
}
END_TEST

START_TEST(an_app_that_takes_the_number_keeps_it)
{
	int fd, pipes[2];
	attach();
	frames(5, FRAME_60);
	if (open_schedstats(&fd) != 1) {
		printf("no schedstat here: skipped\n");
		return;
	}
	ck_assert_int_eq(pipe(pipes), 0);
	ck_assert_int_eq(dup2(pipes[0], fd), fd);
	errno = 4711;
	frame(9, FRAME_60);
	frame(10, FRAME_60);
	ck_assert_int_eq(errno, 4711);
	struct contexts c = drain();
	ck_assert_uint_eq(c.count, 2);
	ck_assert_uint_eq(c.last.cpu_us, PROTO_CPU_NOT_MEASURED);
	ck_assert_int_ge(fcntl(fd, F_GETFD), 0);
}
END_TEST
