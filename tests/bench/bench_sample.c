/* SPDX-License-Identifier: Apache-2.0 */
/* One full tick of all collectors, the workers' answers included, and one of 200 watched processes,
 * against the floor: exactly the files that some ticks read, as often as they read them, with bare
 * preads of kept descriptors, and with an open, a read and a close each, for that is what files of
 * processes cost everybody (they come and go, so their descriptors are not kept). On a board's tree
 * when there is one, else on this machine. Looking through folders is a cost of the tick only. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
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

enum { TICKS = 1000, RECORDED = 20, FILES_MAX = 4096, KEPT_MAX = 3000, CHILDREN = 200 };

#define BOARD "fixtures/sysroot/jetson-orin-nano-jp6"

struct cost {
	double wall_us, cpu_us;
};

static double cpu_ns(void)
{
	return clock_ns(CLOCK_PROCESS_CPUTIME_ID);
}

static struct cost cost_since(double started_ns, double started_cpu_ns)
{
	return (struct cost){
		(now_ns() - started_ns) / 1000 / TICKS, (cpu_ns() - started_cpu_ns) / 1000 / TICKS};
}

/* A file that the recorded ticks read. */
struct file {
	char path[192];
	unsigned reads;
	bool process; /* opened for each read */
	int fd;
};

static struct file file[FILES_MAX];
static size_t files;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

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
	ssize_t result = r < 0 ? -errno : r;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	ssize_t n = readlink(link, path, sizeof(path) - 1);
	if (n <= 0 || offset > 0) {
		return result; /* the second look for the end of a file is the reader's affair */
	}
	path[n] = '\0';
	pthread_mutex_lock(&lock);
	size_t i = 0;
	while (i < files && strcmp(file[i].path, path) != 0) {
		i++;
	}
	if (i == files && files < FILES_MAX) {
		memcpy(file[files].path, path, sizeof(path));
		file[files].process =
			strncmp(path, "/proc/", 6) == 0 && path[6] >= '0' && path[6] <= '9';
		file[files++].reads = 0;
	}
	if (i < files) {
		file[i].reads++;
	}
	pthread_mutex_unlock(&lock);
	return result;
}

/* A file that was read in every second tick is so here, too. */
static bool is_due(const struct file *f, int tick)
{
	return (tick + 1) * f->reads / RECORDED != tick * f->reads / RECORDED;
}

static void read_bare(int fd, unsigned times)
{
	static char buf[64 * 1024];
	for (; times > 0; times--) {
		ssize_t n = pread(fd, buf, sizeof(buf), 0);
		(void)n; /* offline parts answer with an error, as in the tick */
	}
}

/* processes: their files are opened for each read, else all descriptors are kept. */
static struct cost bare(bool processes)
{
	size_t kept = 0;
	for (size_t i = 0; i < files; i++) {
		bool keep = kept < KEPT_MAX && !(processes && file[i].process);
		file[i].fd = keep ? open(file[i].path, O_RDONLY | O_CLOEXEC) : -1;
		kept += keep;
	}
	double cpu = cpu_ns();
	double started = now_ns();
	for (int tick = 0; tick < TICKS; tick++) {
		for (size_t i = 0; i < files; i++) {
			unsigned times = file[i].reads / RECORDED;
			times = times > 0 ? times : is_due(&file[i], tick);
			if (file[i].fd >= 0) {
				read_bare(file[i].fd, times);
			}
			for (; file[i].fd < 0 && times > 0; times--) {
				int fd = open(file[i].path, O_RDONLY | O_CLOEXEC);
				read_bare(fd, fd >= 0);
				close(fd);
			}
		}
	}
	struct cost cost = cost_since(started, cpu);
	for (size_t i = 0; i < files; i++) {
		if (file[i].fd >= 0) {
			close(file[i].fd);
		}
	}
	return cost;
}

static void ticks(struct scheduler *scheduler, int count)
{
	for (; count > 0; count--) {
		now += 1000000000;
		scheduler_run(scheduler, now);
		scheduler_wait(scheduler, 1000000000);
	}
}

static void record(struct scheduler *scheduler)
{
	const struct sysops *before = sysops();
	struct sysops noting = *before;
	noting.pread = noted_pread;
	files = 0;
	sysops_replace(&noting);
	ticks(scheduler, RECORDED);
	sysops_replace(before);
}

static struct cost sampling(struct scheduler *scheduler)
{
	double cpu = cpu_ns();
	double started = now_ns();
	ticks(scheduler, TICKS);
	return cost_since(started, cpu);
}

static void report(struct scheduler *scheduler, const char *what)
{
	ticks(scheduler, 12);
	record(scheduler);
	struct cost tick = sampling(scheduler), kept = bare(false), opened = bare(true);
	unsigned reads = 0;
	for (size_t i = 0; i < files; i++) {
		reads += file[i].reads;
	}
	printf("sample: %s: %.1f us (cpu %.1f us) a tick; its %zu files, %.1f reads a tick, bare: "
	       "kept open %.1f us, ratio %.2f (cpu %.2f); those of processes opened %.1f us, "
	       "ratio %.2f (cpu %.2f)\n",
		what, tick.wall_us, tick.cpu_us, files, (double)reads / RECORDED, kept.wall_us,
		tick.wall_us / kept.wall_us, tick.cpu_us / kept.cpu_us, opened.wall_us,
		tick.wall_us / opened.wall_us, tick.cpu_us / opened.cpu_us);
}

static void print_sources(const struct core *core)
{
	const struct source *source;
	for (size_t i = 0; (source = sources_at(core->sources, i)); i++) {
		printf("  %-10s %-11s %5u us\n", source->name, source_state_name(source->state),
			source->duration_us);
	}
}

/* Processes of a name of their own that do nothing. */
static void start_children(pid_t child[CHILDREN])
{
	for (size_t i = 0; i < CHILDREN; i++) {
		child[i] = fork();
		if (child[i] == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			prctl(PR_SET_NAME, "bench-idle");
			for (;;) {
				pause();
			}
		}
	}
}

static void end_children(const pid_t child[CHILDREN])
{
	for (size_t i = 0; i < CHILDREN; i++) {
		if (child[i] > 0) {
			kill(child[i], SIGKILL);
			waitpid(child[i], NULL, 0);
		}
	}
}

static const struct collector_ops *const only_processes[] = {&collector_process, NULL};

/* All collectors over the board, or the processes of this machine alone. */
static int run(const char *board, bool processes_only)
{
	static struct processes processes;
	static struct counters counters;
	static struct throttle_status throttle;
	static struct modes modes;
	struct core core = {.processes = &processes,
		.counters = &counters,
		.throttle = &throttle,
		.modes = &modes};
	const struct scheduler_options options = {
		.interval_ns = 1000000000, .collectors = processes_only ? only_processes : NULL};
	const struct watch self = {.kind = WATCH_SELF, .name = "edgeprofd"};
	const struct watch idle = {.kind = WATCH_PATTERN, .name = "idle", .pattern = "bench-idle"};
	struct scheduler *scheduler;
	struct root root, real;
	uv_loop_t loop;
	memset(&processes, 0, sizeof(processes));
	if (root_init(&root, board) < 0 || root_init(&real, NULL) < 0 ||
		sources_create(&core.sources) < 0 || metrics_create(&core.metrics) < 0 ||
		timeline_create(64, &core.timeline) < 0 ||
		processes_watch(&processes, processes_only ? &idle : &self) < 0 ||
		uv_loop_init(&loop) < 0 ||
		scheduler_open(&loop, &core, &root, &real, &options, &scheduler) < 0) {
		return 1;
	}
	report(scheduler, processes_only ? "200 watched processes"
			  : board	 ? BOARD
					 : "this machine");
	if (!processes_only) {
		print_sources(&core);
	}
	scheduler_close(scheduler, NULL, NULL);
	uv_run(&loop, UV_RUN_DEFAULT);
	timeline_destroy(core.timeline);
	metrics_destroy(core.metrics);
	sources_destroy(core.sources);
	root_finish(&root);
	root_finish(&real);
	return uv_loop_close(&loop) == 0 ? 0 : 1;
}

static const char *find_board(char path[256])
{
	const char *shared = getenv("EDGEPROF_SHARED");
	snprintf(path, 256, "%s/" BOARD, shared ? shared : "");
	return shared && access(path, R_OK) == 0 ? path : NULL;
}

int main(void)
{
	pid_t child[CHILDREN];
	char path[256];
	const struct rlimit descriptors = {FILES_MAX, FILES_MAX};
	(void)setrlimit(RLIMIT_NOFILE, &descriptors); /* else fewer are kept open */
	struct sysops table = *sysops();
	table.now_ns = made_up_clock;
	sysops_replace(&table);
	now = UINT64_C(1000000000000);
	log_max_level = LOG_LEVEL_ERROR;
	int failed = run(find_board(path), false);
	start_children(child);
	failed |= run(NULL, true);
	end_children(child);
	return failed;
}
