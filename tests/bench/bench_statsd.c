/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What datagrams cost: 20 lines each through the real socket, loop and statistics, against a bare
 * recvmmsg loop over the same datagrams (the sender fills the queue, only the reading is timed),
 * the median of many rounds. Lines are of frames of six stages, as a pipeline sends them; and each
 * of a frame of its own, which begins anew in the next datagram: the most that frames can cost.
 * Then the longest turn of the loop that datagrams of 64 KiB make.
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

enum { LINES = 20, ROUNDS_MAX = 2000, BATCH = 8, TURNS_MAX = 500 };

static size_t round_count = ROUNDS_MAX;
static bool exact = true; /* each line was counted */

static char datagram[4096];
static size_t length;
static int line;   /* of all */
static bool apart; /* each is of another frame */

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
	length = 0;
	for (int i = 0; i < LINES; i++, line++) {
		length += (size_t)snprintf(datagram + length, sizeof(datagram) - length,
			"%s:%d.%d|ms|#app:cam,frame:%d\n", names[line % 6], i % 30, i % 10,
			1000 + (apart ? i : line / 6));
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
	do {
		make_datagram();
	} while (send(fd, datagram, length, 0) == (ssize_t)length && ++sent < BATCH);
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
	for (size_t i = 0; i < round_count; i++) {
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
	return median(rounds, round_count);
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
	const uint64_t lines = core->counters->statsd_lines;
	int out = dial(path);
	for (size_t i = 0; i < round_count; i++) {
		uint64_t want = core->counters->statsd_datagrams + (uint64_t)fill(out);
		uint64_t sent = want - core->counters->statsd_datagrams;
		double begin = now_ns();
		while (core->counters->statsd_datagrams < want) {
			uv_run(&loop, UV_RUN_NOWAIT);
		}
		rounds[i] = (double)(now_ns() - begin) / (double)sent / LINES;
	}
	struct app_accounting sum;
	app_accounting(apps_find(core->apps, "cam"), &sum);
	exact &= sum.received == core->counters->statsd_lines - lines && sum.invalid == 0 &&
		 core->counters->statsd_bad_lines == 0;
	close(out);
	statsd_close(statsd, PROCESS_RELEASED);
	run_socket_close(&in);
	uv_run(&loop, UV_RUN_DEFAULT);
	uv_loop_close(&loop);
	return median(rounds, round_count);
}

/* Datagrams of 64 KiB made to hold the loop: the longest turn in ms, in time of this thread. */
static double hostile(const char *path, struct core *core)
{
	static const struct {
		const char *once, *again, *end;
	} kinds[] = {{"", "a:1|g\n", ""}, {"", ":\n", ""}, {"", "\n", ""}, {"", "\r\n", ""},
		{"a", ":1", "|ms\n"}, {"a:1|g|#", "a:b,", "\n"}, {"a:1|g", "|", "\n"},
		{"", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa:1|c\n", ""}};
	static char bytes[STATSD_DATAGRAM_MAX];
	struct run_socket in;
	if (run_socket_open(&in, path, SOCK_DGRAM, NULL) < 0) {
		exit(1);
	}
	const struct statsd_options options = {.fd = in.fd};
	const int room = 1 << 20;
	uv_loop_t loop;
	struct statsd *statsd;
	double longest_ns = 0;
	uv_loop_init(&loop);
	if (statsd_open(&loop, core, &options, &statsd) < 0) {
		exit(1);
	}
	int out = dial(path);
	setsockopt(out, SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		size_t at = 0, again = strlen(kinds[i].again);
		while (at + 4200 < sizeof(bytes)) {
			size_t stop = kinds[i].end[0] == '|' ? at + 4000 : sizeof(bytes) - 100;
			at += put_text(bytes + at, kinds[i].once);
			while (at + again <= stop) {
				at += put_text(bytes + at, kinds[i].again);
			}
			at += put_text(bytes + at, kinds[i].end);
		}
		for (int turn = 0; turn < (round_count < ROUNDS_MAX ? 5 : TURNS_MAX); turn++) {
			while (send(out, bytes, at, 0) > 0) {
			}
			double begin = clock_ns(CLOCK_THREAD_CPUTIME_ID);
			uv_run(&loop, UV_RUN_NOWAIT);
			double took = clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin;
			longest_ns = took > longest_ns ? took : longest_ns;
		}
	}
	close(out);
	statsd_close(statsd, PROCESS_RELEASED);
	run_socket_close(&in);
	uv_run(&loop, UV_RUN_DEFAULT);
	uv_loop_close(&loop);
	return longest_ns / 1e6;
}

int main(int argc, char **argv)
{
	static double rounds[ROUNDS_MAX];
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
	round_count = is_short(argc, argv) ? 20 : ROUNDS_MAX;
	bool floor_first = toss();
	double floor_ns = floor_first ? bare(path, rounds) : 0;
	result("statsd.line", daemon_side(path, &core, rounds));
	result("statsd.line.floor", floor_first ? floor_ns : bare(path, rounds));
	apart = true;
	result("statsd.apart", daemon_side(path, &core, rounds));
	result("statsd.turn", hostile(path, &core));
	apps_destroy(core.apps);
	timeline_destroy(core.timeline);
	metrics_destroy(core.metrics);
	sources_destroy(core.sources);
	rmdir(dir);
	return exact ? 0 : 1;
}
