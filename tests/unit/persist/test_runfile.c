/* SPDX-License-Identifier: Apache-2.0 */
/* The file under the history: who may have it, and what a kill leaves in it. */
#include "daemon/util/runfile.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/core/history/history.h"
#include "tests/unit/alloc_faults.h"
#include "tests/unit/unit.h"

enum { SIZE = 256 * 1024, KILLS = 120 };

static char dir[64], path[96];

static void setup(void)
{
	snprintf(dir, sizeof(dir), "/tmp/test_runfile.XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/history", dir);
}

static void teardown(void)
{
	unlink(path);
	rmdir(path);
	rmdir(dir);
}

TEST_TIMEOUT(100);
FIXTURE(setup, teardown);

START_TEST(a_new_file_is_zero_and_ours_alone)
{
	struct runfile file;
	ck_assert_int_eq(runfile_open(dir, "history", SIZE, &file), 0);
	ck_assert_uint_eq(file.size, SIZE);
	for (size_t i = 0; i < SIZE; i++) {
		ck_assert_int_eq(((uint8_t *)file.data)[i], 0);
	}
	struct stat st;
	ck_assert_int_eq(stat(path, &st), 0);
	ck_assert_int_eq(st.st_mode & 0777, 0600);
	ck_assert_int_eq(st.st_size, SIZE);
	ck_assert_int_ge(st.st_blocks * 512, SIZE);
	ck_assert_int_ne(fcntl(file.fd, F_GETFD) & FD_CLOEXEC, 0);
	runfile_close(&file);
	runfile_close(&file);
	runfile_close(NULL);
}
END_TEST

START_TEST(bytes_stay_and_another_size_starts_empty)
{
	struct runfile file;
	ck_assert_int_eq(runfile_open(dir, "history", SIZE, &file), 0);
	memset(file.data, 0x5a, SIZE);
	runfile_close(&file);
	ck_assert_int_eq(runfile_open(dir, "history", SIZE, &file), 0);
	ck_assert_int_eq(((uint8_t *)file.data)[SIZE - 1], 0x5a);
	runfile_close(&file);
	static const size_t sizes[] = {2 * SIZE, SIZE};
	for (int i = 0; i < 2; i++) {
		ck_assert_int_eq(runfile_open(dir, "history", sizes[i], &file), 0);
		ck_assert_int_eq(((uint8_t *)file.data)[0], 0);
		ck_assert_int_eq(((uint8_t *)file.data)[sizes[i] - 1], 0);
		memset(file.data, 0x5a, sizes[i]);
		runfile_close(&file);
	}
}
END_TEST

START_TEST(a_second_daemon_is_turned_away)
{
	struct runfile file;
	struct runfile second = {.fd = 77};
	ck_assert_int_eq(runfile_open(dir, "history", SIZE, &file), 0);
	ck_assert_int_eq(runfile_open(dir, "history", SIZE, &second), -EBUSY);
	ck_assert_int_eq(runfile_open(dir, "history", 2 * SIZE, &second), -EBUSY);
	ck_assert_int_eq(second.fd, 77);
	runfile_close(&file);
	ck_assert_int_eq(runfile_open(dir, "history", SIZE, &second), 0);
	runfile_close(&second);
}
END_TEST

START_TEST(what_is_not_our_plain_file_is_refused)
{
	struct runfile file = {.fd = 77};
	char target[128];
	snprintf(target, sizeof(target), "%s/target", dir);
	int fd = open(target, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
	ck_assert_int_ge(fd, 0);
	close(fd);
	ck_assert_int_eq(symlink(target, path), 0);
	ck_assert_int_eq(runfile_open(dir, "history", SIZE, &file), -ELOOP);
	unlink(path);
	ck_assert_int_eq(link(target, path), 0);
	ck_assert_int_eq(runfile_open(dir, "history", SIZE, &file), -EPERM);
	unlink(target);
	ck_assert_int_eq(chmod(path, 0666), 0);
	ck_assert_int_eq(runfile_open(dir, "history", SIZE, &file), -EPERM);
	unlink(path);
	ck_assert_int_eq(mkfifo(path, 0600), 0);
	ck_assert_int_eq(runfile_open(dir, "history", SIZE, &file), -EPERM);
	unlink(path);
	ck_assert_int_eq(mkdir(path, 0700), 0);
	ck_assert_int_eq(runfile_open(dir, "history", SIZE, &file), -EPERM);
	rmdir(path);
	if (geteuid() == 0) {
		fd = open(path, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
		ck_assert_int_eq(fchown(fd, 65534, 65534), 0);
		close(fd);
		ck_assert_int_eq(runfile_open(dir, "history", SIZE, &file), -EPERM);
		unlink(path);
	}
	ck_assert_int_eq(file.fd, 77);
}
END_TEST

START_TEST(impossible_wishes_say_so)
{
	struct runfile file = {.fd = 77};
	ck_assert_int_eq(runfile_open(dir, "history", 0, &file), -EINVAL);
	ck_assert_int_eq(runfile_open(dir, "history", SIZE_MAX, &file), -EINVAL);
	ck_assert_int_eq(runfile_open("/nonexistent/dir", "history", SIZE, &file), -ENOENT);
	alloc_faults_start(1);
	ck_assert_int_eq(runfile_memory(SIZE, &file), -ENOMEM);
	alloc_faults_stop();
	ck_assert_int_eq(file.fd, 77);
	ck_assert_int_eq(runfile_memory(SIZE, &file), 0);
	ck_assert_int_eq(file.fd, -1);
	ck_assert_int_eq(((uint8_t *)file.data)[SIZE - 1], 0);
	runfile_close(&file);
}
END_TEST

/* The values of row n: exact in m°C, some null, some constant. */
static double value_of(uint64_t n, unsigned column)
{
	return (double)(20000 + (int64_t)((n * 2654435761u + column * 977) % 60000)) / 1000;
}

enum { COLUMNS = 5 };

struct world {
	struct runfile file;
	struct sources *sources;
	struct metrics *metrics;
	struct source *source;
	struct metric *metric[COLUMNS];
	struct history *history;
	enum history_found found;
};

static void world_open(struct world *world)
{
	static const uint8_t boot[16] = {1};
	ck_assert_int_eq(runfile_open(dir, "history", SIZE, &world->file), 0);
	ck_assert_int_eq(sources_create(&world->sources), 0);
	ck_assert_int_eq(sources_add(world->sources, "s", 1, &world->source), 0);
	ck_assert_int_eq(metrics_create(&world->metrics), 0);
	for (unsigned i = 0; i < COLUMNS; i++) {
		char name[16];
		snprintf(name, sizeof(name), "m/%u", i);
		ck_assert_int_eq(metrics_add(world->metrics, world->source, name, UNIT_CELSIUS,
					 &world->metric[i]),
			0);
	}
	ck_assert_int_eq(
		history_create(world->file.data, SIZE, boot, &world->history, &world->found), 0);
}

static void world_close(struct world *world)
{
	history_destroy(world->history);
	metrics_destroy(world->metrics);
	sources_destroy(world->sources);
	runfile_close(&world->file);
}

/* Appends rows from n on until it is killed; the counter says which is done. */
static _Noreturn void append_forever(uint64_t n, uint64_t *counter)
{
	struct world world;
	world_open(&world);
	for (;; n++) {
		for (unsigned i = 0; i < COLUMNS; i++) {
			metric_set(world.metric[i], value_of(n, i));
		}
		metrics_commit(world.metrics, world.source, n * 1000);
		history_append(world.history, world.metrics, world.source, n * 1000);
		__atomic_store_n(counter, n, __ATOMIC_RELEASE);
	}
}

static size_t read_series(
	struct world *world, unsigned column, struct history_point *points, size_t max)
{
	char name[16];
	snprintf(name, sizeof(name), "m/%u", column);
	struct history_cursor cursor = {.to_ns = UINT64_MAX};
	ck_assert_int_eq(history_find(world->history, name, &cursor.series), 0);
	bool done = false;
	size_t count = history_read(world->history, &cursor, points, max, 0, &done);
	ck_assert(done);
	return count;
}

START_TEST(a_kill_at_any_time_loses_at_most_the_row_being_written)
{
	uint64_t *counter =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ck_assert(counter != MAP_FAILED);
	static struct history_point points[200000];
	uint64_t first = 1;
	srand(7);
	for (int kill_nr = 0; kill_nr < KILLS; kill_nr++) {
		__atomic_store_n(counter, first - 1, __ATOMIC_RELEASE);
		pid_t child = fork();
		if (child == 0) {
			append_forever(first, counter);
		}
		ck_assert_int_ge(child, 0);
		/* Some are killed in their start, most while they append. */
		uint64_t goal = kill_nr % 10 ? (uint64_t)(rand() % 1000) : 0;
		while (__atomic_load_n(counter, __ATOMIC_ACQUIRE) < first - 1 + goal) {
			poll(NULL, 0, 0);
		}
		ck_assert_int_eq(kill(child, SIGKILL), 0);
		ck_assert_int_eq(waitpid(child, NULL, 0), child);
		uint64_t told = __atomic_load_n(counter, __ATOMIC_ACQUIRE);
		struct world world;
		world_open(&world);
		uint64_t last = first - 1;
		if (told > 0) {
			ck_assert_int_eq(world.found, HISTORY_FOUND_OLD);
			for (unsigned column = 0; column < COLUMNS; column++) {
				size_t count = read_series(&world, column, points, 200000);
				ck_assert_uint_gt(count, 0);
				last = points[count - 1].t_ns / 1000;
				ck_assert_uint_ge(last, told);
				ck_assert_uint_le(last, told + 1);
				size_t wrong = 0;
				for (size_t i = 0; i < count; i++) {
					uint64_t n = last - count + 1 + i; /* no gap */
					wrong += points[i].t_ns != n * 1000 ||
						 points[i].mean != value_of(n, column);
				}
				ck_assert_uint_eq(wrong, 0);
			}
		}
		world_close(&world);
		first = last + 1;
	}
	ck_assert_uint_gt(first, KILLS);
	munmap(counter, 4096);
}
END_TEST
