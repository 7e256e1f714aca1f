/* One tick of all collectors on this machine against the floor: the same files read with bare
 * preads on kept descriptors. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>

#include "daemon/collect/scheduler.h"
#include "daemon/util/log.h"
#include "daemon/util/seam.h"

enum { TICKS = 2000, FILES = 8 };

static uint64_t floor_ns(void)
{
	static const char *const paths[FILES] = {"/proc/stat", "/proc/meminfo", "/proc/loadavg",
		"/proc/pressure/cpu", "/proc/pressure/memory", "/proc/pressure/io",
		"/proc/self/status", "/sys/devices/system/cpu/online"};
	static char buf[64 * 1024];
	int fd[FILES];
	size_t bytes = 0;
	for (size_t i = 0; i < FILES; i++) {
		fd[i] = open(paths[i], O_RDONLY | O_CLOEXEC);
	}
	uint64_t started = seam()->now_ns();
	for (int tick = 0; tick < TICKS; tick++) {
		for (size_t i = 0; i < FILES; i++) {
			ssize_t n = fd[i] < 0 ? 0 : pread(fd[i], buf, sizeof(buf), 0);
			bytes += n > 0 ? (size_t)n : 0;
		}
	}
	uint64_t took = seam()->now_ns() - started;
	for (size_t i = 0; i < FILES; i++) {
		if (fd[i] >= 0) {
			close(fd[i]);
		}
	}
	return bytes > 0 ? took / TICKS : 0;
}

static uint64_t sampling_ns(struct scheduler *scheduler)
{
	uint64_t base = seam()->now_ns();
	uint64_t started = base;
	for (uint64_t tick = 1; tick <= TICKS; tick++) {
		scheduler_run(scheduler, (base / 1000000000 + 2 * tick) * 1000000000);
	}
	return (seam()->now_ns() - started) / TICKS;
}

int main(void)
{
	static struct processes processes;
	static struct counters counters;
	struct core core = {.processes = &processes, .counters = &counters};
	const struct scheduler_options options = {.interval_ns = 1000000000};
	const struct watch self = {.kind = WATCH_SELF, .name = "edgeprofd"};
	struct scheduler *scheduler;
	struct root root;
	uv_loop_t loop;
	log_max_level = LOG_LEVEL_ERROR;
	if (root_init(&root, NULL) < 0 || sources_create(&core.sources) < 0 ||
		metrics_create(&core.metrics) < 0 || timeline_create(64, &core.timeline) < 0 ||
		processes_watch(&processes, &self) < 0 || uv_loop_init(&loop) < 0 ||
		scheduler_open(&loop, &core, &root, &root, &options, &scheduler) < 0) {
		return 1;
	}
	uint64_t tick = sampling_ns(scheduler);
	const struct source *source;
	for (size_t i = 0; (source = sources_at(core.sources, i)); i++) {
		printf("  %-10s %-11s %5u us\n", source->name, source_state_name(source->state),
			source->duration_us);
	}
	uint64_t bare = floor_ns();
	printf("sample: one tick of all sources %.1f us, bare preads %.1f us, ratio %.2f\n",
		(double)tick / 1000, (double)bare / 1000, (double)tick / (double)bare);
	scheduler_close(scheduler, NULL, NULL);
	uv_run(&loop, UV_RUN_DEFAULT);
	timeline_destroy(core.timeline);
	metrics_destroy(core.metrics);
	sources_destroy(core.sources);
	root_finish(&root);
	return uv_loop_close(&loop) == 0 ? 0 : 1;
}
