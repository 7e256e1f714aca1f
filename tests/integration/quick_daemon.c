/* SPDX-License-Identifier: Apache-2.0 */
/* The daemon with other times of its history on disk, which are no settings: what takes minutes
 * there takes seconds here. usage: quick-daemon -c FILE PERIOD_MS RETRY_MS */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <uv.h>

#include "daemon/daemon.h"
#include "daemon/util/parse.h"

static void on_signal(uv_signal_t *handle, int signum)
{
	(void)signum;
	daemon_stop(handle->data);
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
	uint64_t period_ms, retry_ms;
	if (argc != 5 || strcmp(argv[1], "-c") != 0 || parse_u64(argv[3], &period_ms) < 0 ||
		parse_u64(argv[4], &retry_ms) < 0) {
		return 64;
	}
	options.config_path = argv[2];
	options.history_period_ns = period_ms * 1000000;
	options.history_retry_ns = retry_ms * 1000000;
	sigaction(SIGPIPE, &(struct sigaction){.sa_handler = SIG_IGN}, NULL);
	umask(022);
	uv_loop_init(&loop);
	int r = daemon_open(&loop, &options, &daemon);
	uv_signal_init(&loop, &stop);
	stop.data = daemon;
	if (r == 0) {
		uv_signal_start(&stop, on_signal, SIGTERM);
		uv_unref((uv_handle_t *)&stop);
	}
	uv_run(&loop, UV_RUN_DEFAULT);
	uv_walk(&loop, close_handle, NULL);
	uv_run(&loop, UV_RUN_DEFAULT);
	daemon_destroy(daemon);
	return uv_loop_close(&loop) < 0 || r < 0;
}
