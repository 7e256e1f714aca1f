/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One second of all collectors, the workers' answers included, against the floor: exactly the files
 * that some seconds read, as often as they read them, with bare preads of kept descriptors. In CPU
 * time, in random order, medians of rounds; on this machine and on each fixture tree. As in the
 * daemon a history of 16 MiB is mapped: what the collectors read about the daemon itself costs by
 * the page.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>
#include <uv.h>

#include "daemon/collect/sched/registry.h"
#include "daemon/collect/sched/scheduler.h"
#include "daemon/core/metrics/metrics.h"
#include "daemon/core/metrics/processes.h"
#include "daemon/core/metrics/throttle.h"
#include "daemon/core/status/counters.h"
#include "daemon/core/status/modes.h"
#include "daemon/core/timeline/timeline.h"
#include "daemon/util/log.h"
#include "daemon/util/sysops.h"
#include "tests/bench/bench.h"

enum { ROUNDS_MAX = 9, TICKS_MAX = 60, RECORDED = 60, FILES_MAX = 4096, KEPT_MAX = 3000 };
enum { HISTORY = 16 * 1024 * 1024 };

/* A file that the recorded ticks read. */
struct file {
	char path[192];
	unsigned reads;
	int fd;
};

static struct file file[FILES_MAX];
static size_t files;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int tick_count = TICKS_MAX;
static size_t round_count = ROUNDS_MAX;

/* The time of the ticks: what is looked for once a minute is so here, too. */
static uint64_t now;

static uint64_t made_up_clock(void)
{
	return now;
}

/* Notes which file it is; workers read, too. */
static ssize_t noted_pread(int fd, void *buf, size_t size, off_t offset)
{
	char link[64], path[sizeof(file[0].path)];
	ssize_t r = pread(fd, buf, size, offset);
	ssize_t answer = r < 0 ? -errno : r;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	ssize_t n = readlink(link, path, sizeof(path) - 1);
	if (n <= 0 || offset > 0) {
		return answer; /* the second look for the end of a file is the reader's affair */
	}
	path[n] = '\0';
	pthread_mutex_lock(&lock);
	size_t i = 0;
	while (i < files && strcmp(file[i].path, path) != 0) {
		i++;
	}
	if (i == files && files < FILES_MAX) {
		memcpy(file[files].path, path, sizeof(path));
		file[files++].reads = 0;
	}
	if (i < files) {
		file[i].reads++;
	}
	pthread_mutex_unlock(&lock);
	return answer;
}

/* A file that was read in every second tick is so here, too. */
static unsigned due(const struct file *f, int tick)
{
	unsigned at = (unsigned)(tick % RECORDED);
	return (at + 1) * f->reads / RECORDED - at * f->reads / RECORDED;
}

static double time_bare(void)
{
	static char buf[64 * 1024];
	double started = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	for (int tick = 0; tick < tick_count; tick++) {
		for (size_t i = 0; i < files; i++) {
			for (unsigned times = due(&file[i], tick); times > 0; times--) {
				ssize_t n = pread(file[i].fd, buf, sizeof(buf), 0);
				(void)n; /* offline parts answer with an error, as in the tick */
			}
		}
	}
	return (clock_ns(CLOCK_PROCESS_CPUTIME_ID) - started) / 1000 / tick_count;
}

static void ticks_run(struct scheduler *scheduler, int count)
{
	for (; count > 0; count--) {
		now += 1000000000;
		scheduler_run(scheduler, now);
		scheduler_wait(scheduler, 1000000000);
	}
}

static double time_ticks(struct scheduler *scheduler)
{
	double started = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	ticks_run(scheduler, tick_count);
	return (clock_ns(CLOCK_PROCESS_CPUTIME_ID) - started) / 1000 / tick_count;
}

static void record(struct scheduler *scheduler)
{
	const struct sysops *before = sysops();
	struct sysops noting = *before;
	noting.pread = noted_pread;
	files = 0;
	sysops_replace(&noting);
	ticks_run(scheduler, RECORDED);
	sysops_replace(before);
	for (size_t i = 0; i < files; i++) {
		file[i].fd = i < KEPT_MAX ? open(file[i].path, O_RDONLY | O_CLOEXEC) : -1;
	}
}

static void measure(struct scheduler *scheduler, const char *key)
{
	double took[2][ROUNDS_MAX];
	char floor[96];
	ticks_run(scheduler, 12);
	record(scheduler);
	for (size_t r = 0; r < round_count; r++) {
		bool bare_first = toss();
		took[0][r] = bare_first ? time_bare() : 0;
		took[1][r] = time_ticks(scheduler);
		took[0][r] = bare_first ? took[0][r] : time_bare();
	}
	for (size_t i = 0; i < files; i++) {
		if (file[i].fd >= 0) {
			close(file[i].fd);
		}
	}
	double bare_us = median(took[0], round_count);
	snprintf(floor, sizeof(floor), "%s.floor", key);
	result(key, median(took[1], round_count) / bare_us);
	result(floor, bare_us);
}

static int run(const char *tree, const char *key)
{
	static struct processes processes;
	static struct counters counters;
	static struct throttle_status throttle;
	static struct modes modes;
	struct core core = {.processes = &processes,
		.counters = &counters,
		.throttle = &throttle,
		.modes = &modes};
	const struct scheduler_options options = {.interval_ns = 1000000000};
	const struct watch self = {.kind = WATCH_SELF, .name = "edgeprofd"};
	struct scheduler *scheduler;
	struct root root, real;
	uv_loop_t loop;
	memset(&processes, 0, sizeof(processes));
	if (root_init(&root, tree) < 0 || root_init(&real, NULL) < 0 ||
		sources_create(&core.sources) < 0 || metrics_create(&core.metrics) < 0 ||
		timeline_create(64, &core.timeline) < 0 || processes_watch(&processes, &self) < 0 ||
		uv_loop_init(&loop) < 0 ||
		scheduler_open(&loop, &core, &root, &real, &options, &scheduler) < 0) {
		return 1;
	}
	measure(scheduler, key);
	scheduler_close(scheduler, NULL, NULL);
	uv_run(&loop, UV_RUN_DEFAULT);
	timeline_destroy(core.timeline);
	metrics_destroy(core.metrics);
	sources_destroy(core.sources);
	root_finish(&root);
	root_finish(&real);
	return uv_loop_close(&loop) == 0 ? 0 : 1;
}

static int run_trees(const char *above)
{
	DIR *dir = opendir(above);
	struct dirent *entry;
	int failed = 0;
	while (dir && (entry = readdir(dir))) {
		char path[512], key[288];
		snprintf(path, sizeof(path), "%s/%s/sys", above, entry->d_name);
		if (entry->d_name[0] != '.' && access(path, R_OK) == 0) {
			*strrchr(path, '/') = '\0';
			snprintf(key, sizeof(key), "sample.tree.%s", entry->d_name);
			failed |= run(path, key);
		}
	}
	if (dir) {
		closedir(dir);
	}
	return failed;
}

int main(int argc, char **argv)
{
	const char *shared = getenv("EDGEPROF_SHARED"), *source = getenv("EDGEPROF_SOURCE");
	const struct rlimit descriptors = {FILES_MAX, FILES_MAX};
	char trees[256];
	void *history = mmap(NULL, HISTORY, PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	struct sysops table = *sysops();
	(void)setrlimit(RLIMIT_NOFILE, &descriptors); /* else fewer are kept open */
	table.now_ns = made_up_clock;
	sysops_replace(&table);
	now = UINT64_C(1000000000000);
	log_max_level = LOG_LEVEL_ERROR;
	if (is_short(argc, argv)) {
		tick_count = 3;
		round_count = 1;
	}
	int failed = history == MAP_FAILED || run(NULL, "sample.here");
	snprintf(trees, sizeof(trees), "%s/tests/fixtures/sysroot", source ? source : ".");
	failed |= run_trees(trees);
	snprintf(trees, sizeof(trees), "%s/fixtures/sysroot", shared ? shared : ".");
	return failed | run_trees(trees);
}
