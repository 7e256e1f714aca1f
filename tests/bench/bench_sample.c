/* One full tick of all collectors, the workers' answers included, against the floor: the same files
 * read with bare preads of kept descriptors. On a board's tree when there is one, else on this
 * machine. Processes come and go: that their files are opened anew is a cost of the tick only, and
 * so are the files of sources of 10 s. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <uv.h>

#include "daemon/collect/scheduler.h"
#include "daemon/util/log.h"
#include "daemon/util/parse.h"
#include "daemon/util/seam.h"

enum { TICKS = 2000, FILES_MAX = 512, OWN_MAX = 4 };

#define BOARD "fixtures/sysroot/jetson-orin-nano-jp6"

struct cost {
	double wall_us, cpu_us;
};

static double cpu_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static struct cost cost_since(uint64_t wall_ns, double started_cpu_ns)
{
	return (struct cost){(double)(seam()->now_ns() - wall_ns) / 1000 / TICKS,
		(cpu_ns() - started_cpu_ns) / 1000 / TICKS};
}

/* The device and proc files that are open: of proc/self/fd, those below a place. */
static size_t kept_files(const char *board, int *fds)
{
	char link[64], path[512];
	struct stat info;
	struct dirent *entry;
	uint64_t fd;
	size_t count = 0;
	DIR *dir = opendir("/proc/self/fd");
	while (dir && (entry = readdir(dir)) && count + OWN_MAX < FILES_MAX) {
		snprintf(link, sizeof(link), "/proc/self/fd/%.32s", entry->d_name);
		ssize_t n = readlink(link, path, sizeof(path) - 1);
		if (n < 0 || parse_u64(entry->d_name, &fd) < 0) {
			continue;
		}
		path[n] = '\0';
		bool device = strncmp(path, "/proc/", 6) == 0 || strncmp(path, "/sys/", 5) == 0 ||
			      (board && strncmp(path, board, strlen(board)) == 0);
		if (device && fstat((int)fd, &info) == 0 && S_ISREG(info.st_mode)) {
			fds[count++] = (int)fd;
		}
	}
	if (dir) {
		closedir(dir);
	}
	return count;
}

/* What the process source opens of this process for each tick. */
static size_t own_files(int *fds, size_t count)
{
	static const char *const names[] = {"stat", "status", "io", "smaps_rollup"};
	char path[320];
	struct dirent *entry;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(path, sizeof(path), "/proc/self/%s", names[i]);
		fds[count++] = open(path, O_RDONLY | O_CLOEXEC);
	}
	DIR *dir = opendir("/proc/self/task");
	while (dir && (entry = readdir(dir)) && count + 2 < FILES_MAX) {
		if (entry->d_name[0] != '.') {
			snprintf(path, sizeof(path), "/proc/self/task/%s/schedstat", entry->d_name);
			fds[count++] = open(path, O_RDONLY | O_CLOEXEC);
			snprintf(path, sizeof(path), "/proc/self/task/%s/status", entry->d_name);
			fds[count++] = open(path, O_RDONLY | O_CLOEXEC);
		}
	}
	if (dir) {
		closedir(dir);
	}
	return count;
}

static struct cost bare(const int *fds, size_t count)
{
	static char buf[64 * 1024];
	double cpu = cpu_ns();
	uint64_t started = seam()->now_ns();
	for (int tick = 0; tick < TICKS; tick++) {
		for (size_t i = 0; i < count; i++) {
			ssize_t n = pread(fds[i], buf, sizeof(buf), 0);
			(void)n; /* offline parts answer with an error, as in the tick */
		}
	}
	return cost_since(started, cpu);
}

static struct cost sampling(struct scheduler *scheduler)
{
	double cpu = cpu_ns();
	uint64_t started = seam()->now_ns();
	for (uint64_t tick = 1; tick <= TICKS; tick++) {
		scheduler_run(scheduler, (started / 1000000000 + 1 + tick) * 1000000000);
		scheduler_wait(scheduler, 1000000000);
	}
	return cost_since(started, cpu);
}

static void report(struct scheduler *scheduler, const struct core *core, const char *board)
{
	static int fds[FILES_MAX];
	struct cost tick = sampling(scheduler);
	const struct source *source;
	for (size_t i = 0; (source = sources_at(core->sources, i)); i++) {
		printf("  %-10s %-11s %5u us\n", source->name, source_state_name(source->state),
			source->duration_us);
	}
	size_t kept = kept_files(board, fds);
	size_t files = own_files(fds, kept);
	struct cost floor = bare(fds, files);
	for (size_t i = kept; i < files; i++) {
		close(fds[i]);
	}
	printf("sample: %s: one tick of all sources %.1f us (cpu %.1f us), bare preads of its %zu "
	       "files %.1f us (cpu %.1f us), ratio %.2f (cpu %.2f)\n",
		board ? BOARD : "this machine", tick.wall_us, tick.cpu_us, files, floor.wall_us,
		floor.cpu_us, tick.wall_us / floor.wall_us, tick.cpu_us / floor.cpu_us);
}

static const char *find_board(char path[256])
{
	const char *shared = getenv("EDGEPROF_SHARED");
	snprintf(path, 256, "%s/" BOARD, shared ? shared : "");
	return shared && access(path, R_OK) == 0 ? path : NULL;
}

int main(void)
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
	char path[256];
	const char *board = find_board(path);
	uv_loop_t loop;
	log_max_level = LOG_LEVEL_ERROR;
	if (root_init(&root, board) < 0 || root_init(&real, NULL) < 0 ||
		sources_create(&core.sources) < 0 || metrics_create(&core.metrics) < 0 ||
		timeline_create(64, &core.timeline) < 0 || processes_watch(&processes, &self) < 0 ||
		uv_loop_init(&loop) < 0 ||
		scheduler_open(&loop, &core, &root, &real, &options, &scheduler) < 0) {
		return 1;
	}
	report(scheduler, &core, board);
	scheduler_close(scheduler, NULL, NULL);
	uv_run(&loop, UV_RUN_DEFAULT);
	timeline_destroy(core.timeline);
	metrics_destroy(core.metrics);
	sources_destroy(core.sources);
	root_finish(&root);
	root_finish(&real);
	return uv_loop_close(&loop) == 0 ? 0 : 1;
}
