/* SPDX-License-Identifier: Apache-2.0 */
/* The daemon with what no setting can do. usage: odd-daemon -c FILE quick PERIOD_MS RETRY_MS: other
 * times of its history on disk, so that what takes minutes takes seconds. odd-daemon -c FILE
 * at|from K: memory is refused to ours, libuv and cJSON, the K-th time or from then on, counted
 * from the configuration on. odd-daemon -c FILE slow S: the wall clock is slow by S seconds. */
#include <cjson/cJSON.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <uv.h>

#include "daemon/daemon.h"
#include "daemon/host/loop.h"
#include "daemon/util/parse.h"
#include "daemon/util/sysops.h"

static uint64_t calls, refused_at;
static bool refused_from;

static bool refused(void)
{
	uint64_t call = __atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED);
	return call == refused_at || (refused_from && call > refused_at);
}

static void *faulty_calloc(size_t count, size_t size)
{
	return refused() ? NULL : calloc(count, size);
}

static void *faulty_malloc(size_t size)
{
	return refused() ? NULL : malloc(size);
}

static void *faulty_realloc(void *memory, size_t size)
{
	return refused() ? NULL : realloc(memory, size);
}

static void refuse(uint64_t at, bool from)
{
	static struct sysops table;
	cJSON_Hooks hooks = {.malloc_fn = faulty_malloc, .free_fn = free};
	table = *sysops();
	table.calloc = faulty_calloc;
	refused_at = at;
	refused_from = from;
	sysops_replace(&table);
	cJSON_InitHooks(&hooks);
	uv_replace_allocator(faulty_malloc, faulty_realloc, faulty_calloc, free);
}

static int64_t slow_ns;

static int64_t slow_wall_ns(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_REALTIME, &ts);
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec - slow_ns;
}

static void set_wall_clock(uint64_t slow_s)
{
	static struct sysops table;
	table = *sysops();
	table.wall_ns = slow_wall_ns;
	slow_ns = (int64_t)slow_s * 1000000000;
	sysops_replace(&table);
}

static void on_signal(uv_signal_t *handle, int signum)
{
	(void)signum;
	daemon_stop(*(struct daemon **)handle->data);
}

static void close_handle(uv_handle_t *handle, void *ctx)
{
	(void)ctx;
	if (!uv_is_closing(handle)) {
		uv_close(handle, NULL);
	}
}

int main(int argc, char **argv)
{
	struct daemon_options options = {0};
	struct daemon *daemon = NULL;
	uv_signal_t stop;
	uv_loop_t loop;
	uint64_t number[2] = {0};
	const bool quick = argc == 6 && strcmp(argv[3], "quick") == 0;
	const bool from = argc == 5 && strcmp(argv[3], "from") == 0;
	const bool at = argc == 5 && strcmp(argv[3], "at") == 0;
	const bool slow = argc == 5 && strcmp(argv[3], "slow") == 0;
	if ((!quick && !from && !at && !slow) || strcmp(argv[1], "-c") != 0 ||
		parse_u64(argv[4], &number[0]) < 0 ||
		(quick && parse_u64(argv[5], &number[1]) < 0)) {
		return 64;
	}
	options.config_path = argv[2];
	if (quick) {
		options.history_period_ns = number[0] * 1000000;
		options.history_retry_ns = number[1] * 1000000;
	}
	sigaction(SIGPIPE, &(struct sigaction){.sa_handler = SIG_IGN}, NULL);
	umask(022);
	if (loop_open(&loop) < 0) {
		return 1;
	}
	uv_signal_init(&loop, &stop);
	stop.data = &daemon;
	uv_signal_start(&stop, on_signal, SIGTERM); /* during the start it waits */
	uv_unref((uv_handle_t *)&stop);
	if (slow) {
		set_wall_clock(number[0]);
	} else if (!quick) {
		refuse(number[0], from);
	}
	int r = daemon_open(&loop, &options, &daemon);
	uv_run(&loop, UV_RUN_DEFAULT);
	uv_walk(&loop, close_handle, NULL);
	uv_run(&loop, UV_RUN_DEFAULT);
	daemon_destroy(daemon);
	return uv_loop_close(&loop) < 0 ? 2 : r < 0;
}
