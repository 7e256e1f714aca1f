/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libedgeprof in a program that took more thread keys than glibc keeps in a thread, so that arming
 * a destructor would allocate: a thread's first event may come from a handler inside malloc.
 */
#include <pthread.h>
#include <signal.h>

#include "tests/unit/libedgeprof/edgeprof_case.h"
#include "tests/unit/unit.h"

enum { KEYS = 40, THREADS = 200 };

static pthread_key_t keys[KEYS];

/* Ahead of the constructors of libraries, whose keys come behind these. */
__attribute__((no_sanitize("address", "undefined"))) static void take_keys(void)
{
	for (int i = 0; i < KEYS; i++) {
		pthread_key_create(&keys[i], NULL);
	}
}

__attribute__((section(".preinit_array"), used)) static void (*const preinit)(void) = take_keys;

static _Thread_local unsigned long allocations; /* others, of check too, do not count */

#if HAVE_SANITIZER
int __sanitizer_install_malloc_and_free_hooks(void (*malloc_hook)(const volatile void *, size_t),
	void (*free_hook)(const volatile void *));

static void on_malloc(const volatile void *memory, size_t size)
{
	(void)memory;
	(void)size;
	allocations++;
}

static void on_free(const volatile void *memory)
{
	(void)memory;
}

static void count_allocations(void)
{
	ck_assert_int_gt(__sanitizer_install_malloc_and_free_hooks(on_malloc, on_free), 0);
}
#else
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);

void *malloc(size_t size)
{
	allocations++;
	return __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
	allocations++;
	return __libc_calloc(count, size);
}

static void count_allocations(void)
{
}
#endif

static int stage;

static void on_signal(int number)
{
	(void)number;
	edgeprof_end(edgeprof_begin(stage));
	edgeprof_gauge(stage, 1);
	edgeprof_mark("infer");
	edgeprof_tick();
}

static void *first_event_in_a_handler(void *arg)
{
	unsigned long *grew = arg;
	unsigned long before = allocations;
	pthread_kill(pthread_self(), SIGUSR1); /* handled before it returns */
	*grew = allocations - before;
	return NULL;
}

TEST_TIMEOUT(60);
FIXTURE(NULL, finish);

START_TEST(a_first_event_in_a_handler_allocates_nothing)
{
	attach();
	stage = edgeprof_stage("infer");
	count_allocations();
	unsigned long own = allocations;
	void *volatile one = malloc(1); /* volatile: the compiler may drop the pair */
	free(one);
	ck_assert_uint_gt(allocations, own); /* they are seen */
	struct sigaction action = {.sa_handler = on_signal};
	ck_assert_int_eq(sigaction(SIGUSR1, &action, NULL), 0);
	unsigned long grew = 0;
	pthread_t thread;
	ck_assert_int_eq(pthread_create(&thread, NULL, first_event_in_a_handler, &grew), 0);
	pthread_join(thread, NULL);
	ck_assert_uint_eq(grew, 0);
	struct seen s = {0};
	fake_drain(&fake, see, &s);
	ck_assert_uint_eq(s.last_kind[PROTO_KIND_COMPLETE], 1);
	ck_assert_uint_eq(s.last_kind[PROTO_KIND_FRAME], 1);
	check_identity();
}
END_TEST

static void *record_five(void *arg)
{
	(void)arg;
	for (int i = 0; i < 5; i++) {
		edgeprof_end(edgeprof_begin(stage));
	}
	return NULL;
}

static void run_threads(struct seen *s)
{
	for (int i = 0; i < THREADS; i++) {
		pthread_t thread;
		ck_assert_int_eq(pthread_create(&thread, NULL, record_five, NULL), 0);
		pthread_join(thread, NULL);
		if (s && i % 20 == 19) {
			fake_drain(&fake, see, s);
		}
	}
}

START_TEST(threads_that_ended_without_a_destructor_give_their_slots_back)
{
	attach();
	stage = edgeprof_stage("infer");
	struct seen s = {0};
	run_threads(&s);
	ck_assert_uint_eq(s.records, 5 * THREADS);
	ck_assert_uint_eq(fake_count(&fake).dropped, 0);
	check_identity();
}
END_TEST

START_TEST(their_events_without_a_daemon_are_counted_exactly)
{
	ck_assert_int_eq(setenv("EDGEPROF_RUNTIME_DIR", "/nonexistent", 1), 0);
	ck_assert_int_eq(edgeprof_init("unit test"), 0);
	stage = edgeprof_stage("infer");
	run_threads(NULL);
	struct edgeprof_counts c;
	edgeprof_counts(&c);
	ck_assert_uint_eq(c.unattached, 5 * THREADS);
}
END_TEST
