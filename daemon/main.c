/* SPDX-License-Identifier: Apache-2.0 */
/* main.c: parses the options of edgeprofd, handles signals, and sets the exit status. */
#include <errno.h>
#include <getopt.h>
#include <malloc.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sysexits.h>
#include <uv.h>

#include "daemon/collect/lib/child.h"
#include "daemon/config/config.h"
#include "daemon/daemon.h"
#include "daemon/host/loop.h"
#include "daemon/publish/mqtt/options.h"
#include "daemon/util/log.h"
#include "proto/posix/std_fds.h"

static const char usage_text[] =
	"Usage: edgeprofd [-c FILE] [--check-config] [--root DIR] [--version]\n"
	"\n"
	"The always-on profiler daemon. Runs in the foreground; the service manager or a shell\n"
	"keeps it. Settings come from /etc/edgeprofd/edgeprofd.conf and its drop-ins.\n"
	"\n"
	"  -c, --config FILE    read FILE (and FILE.d/*.conf) instead\n"
	"      --check-config   say what is wrong with the configuration, exit 0 or 78\n"
	"      --root DIR       read devices from the tree DIR instead of /\n"
	"      --version        print the version\n"
	"  -h, --help           print this\n";

struct options {
	struct daemon_options daemon;
	bool check_config;
};

/* 0 to go on, else the exit status + 1. */
static int parse_options(int argc, char **argv, struct options *options)
{
	enum { CHECK_CONFIG = 256, ROOT, VERSION };
	static const struct option longs[] = {
		{"config", required_argument, NULL, 'c'},
		{"check-config", no_argument, NULL, CHECK_CONFIG},
		{"root", required_argument, NULL, ROOT},
		{"version", no_argument, NULL, VERSION},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	for (int c; (c = getopt_long(argc, argv, "c:h", longs, NULL)) != -1;) {
		switch (c) {
		case 'c':
			options->daemon.config_path = optarg;
			break;
		case CHECK_CONFIG:
			options->check_config = true;
			break;
		case ROOT:
			options->daemon.root = optarg;
			break;
		case VERSION:
			printf("edgeprofd %s\n", EDGEPROF_VERSION);
			return EX_OK + 1;
		case 'h':
			fputs(usage_text, stdout);
			return EX_OK + 1;
		default:
			fputs(usage_text, stderr);
			return EX_USAGE + 1;
		}
	}
	if (optind < argc) {
		fprintf(stderr, "edgeprofd: unexpected argument: %s\n%s", argv[optind], usage_text);
		return EX_USAGE + 1;
	}
	return 0;
}

/* What fails for a reason that may pass is tried again by the service manager; a configuration that
 * is wrong (-EINVAL) stays so. */
static int exit_status(int r)
{
	switch (r) {
	case 0:
		return EX_OK;
	case -EINVAL:
		return EX_CONFIG;
	case -EIO:
	case -EMFILE:
	case -ENFILE:
	case -ENOMEM:
	case -EINTR:
	case -EAGAIN:
		return EX_TEMPFAIL;
	default:
		return EX_UNAVAILABLE;
	}
}

static int check_config(const char *path)
{
	static struct config config;
	static struct config_errors errors;
	int r = config_load(path, &config, &errors);
	for (size_t i = 0; i < errors.count && i < CONFIG_ERRORS_MAX; i++) {
		fprintf(stderr, "%s\n", errors.text[i]);
	}
	if (errors.count > CONFIG_ERRORS_MAX) {
		fprintf(stderr, "and %zu more\n", errors.count - CONFIG_ERRORS_MAX);
	}
	if (r < 0) {
		return exit_status(r == -ENOENT ? -EINVAL : r);
	}
	/* A warning only: the daemon starts without MQTT, and may be another user than this one. */
	char reason[160];
	if (config.mqtt.enabled && mqtt_check(&config.mqtt, reason, sizeof(reason)) < 0) {
		fprintf(stderr, "warning: MQTT would stay off: %s\n", reason);
	}
	puts("configuration OK");
	return EX_OK;
}

static const int signals[] = {SIGTERM, SIGINT, SIGHUP};
enum { SIGNALS = sizeof(signals) / sizeof(signals[0]) };

/* Until libuv catches them they wait: a stop during the start must not leave sockets behind. */
static void hold_signals(int how)
{
	sigset_t set;
	sigemptyset(&set);
	for (size_t i = 0; i < SIGNALS; i++) {
		sigaddset(&set, signals[i]);
	}
	sigprocmask(how, &set, NULL);
}

static void on_signal(uv_signal_t *handle, int signum)
{
	struct daemon *daemon = *(struct daemon **)handle->data;
	if (signum == SIGHUP) {
		daemon_reload(daemon, NULL, 0);
	} else {
		daemon_stop(daemon);
	}
}

/* The loop runs without it. */
static int catch_signal(uv_loop_t *loop, uv_signal_t *handle, int signum, struct daemon **daemon)
{
	int r = uv_signal_init(loop, handle);
	if (r < 0) {
		return r;
	}
	handle->data = daemon;
	uv_unref((uv_handle_t *)handle);
	r = uv_signal_start(handle, on_signal, signum);
	if (r < 0) {
		uv_close((uv_handle_t *)handle, NULL);
	}
	return r;
}

static void close_handle(uv_handle_t *handle, void *ctx)
{
	(void)ctx;
	if (!uv_is_closing(handle)) {
		uv_close(handle, NULL);
	}
}

static int run(const struct options *options)
{
	uv_signal_t handles[SIGNALS];
	uv_loop_t loop;
	struct daemon *daemon = NULL;
	sigaction(SIGPIPE, &(struct sigaction){.sa_handler = SIG_IGN}, NULL);
	umask(022);
	int r = loop_open(&loop);
	if (r < 0) {
		log_error("cannot start: cannot create the event loop: %s", uv_strerror(r));
		return exit_status(r);
	}
	size_t caught = 0;
	while (r == 0 && caught < SIGNALS) {
		r = catch_signal(&loop, &handles[caught], signals[caught], &daemon);
		caught += r == 0;
	}
	if (r < 0) {
		log_error("cannot start: cannot catch signals: %s", uv_strerror(r));
	} else {
		hold_signals(SIG_UNBLOCK);
		r = daemon_open(&loop, &options->daemon, &daemon);
	}
	for (size_t i = 0; r < 0 && i < caught; i++) {
		uv_close((uv_handle_t *)&handles[i], NULL); /* there is nothing to reload or stop */
	}
	uv_run(&loop, UV_RUN_DEFAULT);
	hold_signals(SIG_BLOCK); /* asked to stop twice it still ends in good order */
	r = r < 0 ? r : daemon_failure(daemon);
	uv_walk(&loop, close_handle, NULL);
	uv_run(&loop, UV_RUN_DEFAULT);
	daemon_destroy(daemon);
	int closed = uv_loop_close(&loop);
	if (closed < 0) {
		log_error("cannot close the event loop at exit: %s", uv_strerror(closed));
	}
	return r < 0 ? exit_status(r) : closed < 0 ? EX_SOFTWARE : EX_OK;
}

/* Threads allocate little and seldom: an arena for each would cost some 100 KiB that are never
 * given back. A fixed threshold: what is large and short-lived goes back to the system. */
static void limit_heap(void)
{
	mallopt(M_ARENA_MAX, 1);
	mallopt(M_MMAP_THRESHOLD, 128 << 10);
}

int main(int argc, char **argv)
{
	struct options options = {.daemon = {.pdeath_exec = "/proc/self/exe"}};
	pdeath_exec_run(argv);
	std_fds_hold();
	int r = parse_options(argc, argv, &options);
	if (r > 0) {
		return r - 1;
	}
	if (options.check_config) {
		return check_config(options.daemon.config_path);
	}
	limit_heap();
	hold_signals(SIG_BLOCK);
	return run(&options);
}
