/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What datagrams cost: 20 lines each through the real socket, loop and statistics, against a bare
 * recvmmsg loop over the same datagrams, and against both with the wait of the sender taken out
 * (the sender fills the queue, only the reading is timed). The median of many rounds.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "daemon/core/status/counters.h"
#include "daemon/host/socket.h"
#include "daemon/ingest/statsd/statsd.h"
#include "proto/statsd/statsd.h"
#include "tests/bench/bench.h"

enum { LINES = 20, ROUNDS = 4000, BATCH = 8 };

static char datagram[4096];
static size_t length;

static size_t put_text(char *ret, const char *text)
{
	size_t size = strlen(text);
	memcpy(ret, text, size);
	return size;
}

static void make_datagram(void)
{
	static const char *const names[] = {
		"capture", "preprocess", "infer", "postprocess", "encode", "publish"};
	for (int i = 0; i < LINES; i++) {
		length += (size_t)snprintf(datagram + length, sizeof(datagram) - length,
			"%s:%d.%d|ms|#app:cam,frame:%d\n", names[i % 6], i % 30, i % 10, 1000 + i);
	}
}

static int dial(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0) {
		exit(1);
	}
	return fd;
}

/* As many as the queue takes, BATCH at most: the same for both readers. */
static int fill(int fd)
{
	int sent = 0;
	while (sent < BATCH && send(fd, datagram, length, 0) == (ssize_t)length) {
		sent++;
	}
	return sent;
}

static double bare(const char *path, double *rounds)
{
	static char bytes[BATCH][STATSD_DATAGRAM_MAX];
	struct run_socket in;
	if (run_socket_open(&in, path, SOCK_DGRAM, NULL) < 0) {
		exit(1);
	}
	int out = dial(path);
	for (int i = 0; i < ROUNDS; i++) {
		struct mmsghdr msgs[BATCH] = {0};
		struct iovec iov[BATCH];
		_Alignas(struct cmsghdr) char control[BATCH][CMSG_SPACE(sizeof(struct ucred))];
		int sent = fill(out), got = 0;
		for (int k = 0; k < BATCH; k++) {
			iov[k] = (struct iovec){bytes[k], sizeof(bytes[k])};
			msgs[k].msg_hdr = (struct msghdr){.msg_iov = &iov[k],
				.msg_iovlen = 1,
				.msg_control = control[k],
				.msg_controllen = sizeof(control[k])};
		}
		double begin = now_ns();
		while (got < sent) {
			int r = recvmmsg(in.fd, msgs, BATCH, MSG_DONTWAIT, NULL);
			got += r > 0 ? r : 0;
		}
		rounds[i] = (double)(now_ns() - begin) / sent / LINES;
	}
	close(out);
	run_socket_close(&in);
	return median(rounds, ROUNDS);
}

static double daemon_side(const char *path, struct core *core, double *rounds)
{
	uv_loop_t loop;
	struct statsd *statsd;
	struct run_socket in;
	if (run_socket_open(&in, path, SOCK_DGRAM, NULL) < 0) {
		exit(1);
	}
	const struct statsd_options options = {.fd = in.fd};
	uv_loop_init(&loop);
	if (statsd_open(&loop, core, &options, &statsd) < 0) {
		exit(1);
	}
	int out = dial(path);
	for (int i = 0; i < ROUNDS; i++) {
		uint64_t want = core->counters->statsd_datagrams + (uint64_t)fill(out);
		uint64_t sent = want - core->counters->statsd_datagrams;
		double begin = now_ns();
		while (core->counters->statsd_datagrams < want) {
			uv_run(&loop, UV_RUN_NOWAIT);
		}
		rounds[i] = (double)(now_ns() - begin) / (double)sent / LINES;
	}
	close(out);
	statsd_close(statsd, PROCESS_RELEASED);
	run_socket_close(&in);
	uv_run(&loop, UV_RUN_DEFAULT);
	uv_loop_close(&loop);
	return median(rounds, ROUNDS);
}

/* Datagrams of 64 KiB made to hold the loop: the longest turn, in time of this thread. */
static void hostile(const char *path, struct core *core)
{
	static const struct {
		const char *what, *once, *again, *end;
	} kinds[] = {{"short lines", "", "a:1|g\n", ""}, {"bad lines", "", ":\n", ""},
		{"line ends", "", "\n", ""}, {"\\r\\n", "", "\r\n", ""},
		{"packed", "a", ":1", "|ms\n"}, {"tags", "a:1|g|#", "a:b,", "\n"},
		{"sections", "a:1|g", "|", "\n"},
		{"long names", "", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa:1|c\n", ""}};
	static char bytes[STATSD_DATAGRAM_MAX];
	struct run_socket in;
	if (run_socket_open(&in, path, SOCK_DGRAM, NULL) < 0) {
		exit(1);
	}
	const struct statsd_options options = {.fd = in.fd};
	const int room = 1 << 20;
	uv_loop_t loop;
	struct statsd *statsd;
	uv_loop_init(&loop);
	if (statsd_open(&loop, core, &options, &statsd) < 0) {
		exit(1);
	}
	int out = dial(path);
	setsockopt(out, SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		size_t at = 0, again = strlen(kinds[i].again);
		uint64_t longest = 0;
		while (at + 4200 < sizeof(bytes)) {
			size_t stop = kinds[i].end[0] == '|' ? at + 4000 : sizeof(bytes) - 100;
			at += put_text(bytes + at, kinds[i].once);
			while (at + again <= stop) {
				at += put_text(bytes + at, kinds[i].again);
			}
			at += put_text(bytes + at, kinds[i].end);
		}
		for (int turn = 0; turn < 2000; turn++) {
			while (send(out, bytes, at, 0) > 0) {
			}
			double begin = clock_ns(CLOCK_THREAD_CPUTIME_ID);
			uv_run(&loop, UV_RUN_NOWAIT);
			double took = clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin;
			longest = took > longest ? took : longest;
		}
		printf("  longest turn of %s: %.2f ms\n", kinds[i].what, (double)longest / 1e6);
	}
	close(out);
	statsd_close(statsd, PROCESS_RELEASED);
	run_socket_close(&in);
	uv_run(&loop, UV_RUN_DEFAULT);
	uv_loop_close(&loop);
}

static double parser_alone(double *rounds)
{
	uint64_t lines = 0;
	for (int i = 0; i < ROUNDS; i++) {
		struct statsd_reader reader;
		struct statsd_line line;
		double begin = now_ns();
		for (int k = 0; k < BATCH; k++) {
			statsd_reader_init(&reader, datagram, length);
			while (statsd_next(&reader, &line) == STATSD_LINE) {
				lines++;
			}
		}
		rounds[i] = (double)(now_ns() - begin) / BATCH / LINES;
	}
	return lines == (uint64_t)ROUNDS * BATCH * LINES ? median(rounds, ROUNDS) : -1;
}

int main(void)
{
	static double rounds[ROUNDS];
	static struct counters counters;
	struct core core = {.counters = &counters};
	struct source *source;
	char dir[] = "/tmp/edgeprof-bench-XXXXXX", path[64];
	const struct apps_options options = {.stage_window = 1024, .frame_window = 300};
	if (!mkdtemp(dir) || sources_create(&core.sources) < 0 ||
		sources_add(core.sources, "apps", 0, &source) < 0 ||
		metrics_create(&core.metrics) < 0 || timeline_create(16, &core.timeline) < 0 ||
		apps_create(core.metrics, source, core.timeline, &options, &core.apps) < 0) {
		return 1;
	}
	snprintf(path, sizeof(path), "%s/statsd", dir);
	make_datagram();
	double floor = bare(path, rounds);
	double ours = daemon_side(path, &core, rounds);
	double parser = parser_alone(rounds);
	struct app_accounting sum;
	app_accounting(apps_find(core.apps, "cam"), &sum);
	printf("statsd, %d lines (%zu bytes) a datagram: %.1f ns/line, %.0f datagrams/s\n", LINES,
		length, ours, 1e9 / (ours * LINES));
	printf("bare recvmmsg: %.1f ns/line; ratio %.2f; the parser alone: %.1f ns/line\n", floor,
		ours / floor, parser);
	bool exact = sum.received == counters.statsd_lines && sum.invalid == 0 &&
		     counters.statsd_bad_lines == 0;
	hostile(path, &core);
	apps_destroy(core.apps);
	timeline_destroy(core.timeline);
	metrics_destroy(core.metrics);
	sources_destroy(core.sources);
	rmdir(dir);
	return exact && parser > 0 ? 0 : 1;
}
