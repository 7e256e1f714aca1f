/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the daemon pays for one record: its path from a 1 MiB mapping through ingest and the
 * statistics of its stage into the raw records. A thread on another processor fills the mapping as
 * an app does, then wakes the loop; what is measured is the CPU time of the loop. Stages alone;
 * stages of which 8 each carry a frame's id, as after edgeprof_set_frame(); and frames of 8 stages
 * (9 records); in random order, the median of rounds. The floor adds up as many durations that the
 * other processor has written.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <uv.h>

#include "daemon/core/apps/apps.h"
#include "daemon/core/metrics/processes.h"
#include "daemon/core/status/counters.h"
#include "daemon/host/socket.h"
#include "daemon/ingest/ingest.h"
#include "daemon/util/accounts.h"
#include "daemon/util/deferred_close.h"
#include "tests/unit/ingest/ring_writer.h"
#include "tests/bench/bench.h"

enum { SIZE = 1024 * 1024, ROUNDS_MAX = 60, STAGES = 8 };

enum kind { ALONE, IDS, FRAMES, KINDS };

static const uint64_t PAST_NS = 100000000000u;

static struct counters counters;
static struct processes processes;
static struct core core = {.counters = &counters, .processes = &processes};
static uv_loop_t loop;
static char path[64];
static pthread_barrier_t barrier;

/* A process as the daemon sees it. */
struct feeder {
	struct writer writer;
	int fd; /* its connection */
	enum kind kind;
	uint64_t frame;
	unsigned count; /* records of this round */
};

static struct feeder *filling; /* NULL: the writer ends */

static unsigned fill(struct feeder *feeder)
{
	unsigned count = 0, stage = 0;
	struct proto_record record = {
		.start_ns = (uint64_t)now_ns() - PAST_NS, .cpu_us = PROTO_CPU_NOT_MEASURED};
	uint64_t begin_ns = record.start_ns;
	for (;;) {
		bool ends = feeder->kind == FRAMES && stage == STAGES;
		record.kind = ends ? PROTO_KIND_FRAME : PROTO_KIND_COMPLETE;
		record.stage = (uint16_t)(ends ? 0 : stage % STAGES);
		record.frame = feeder->kind == ALONE ? PROTO_NO_FRAME : feeder->frame;
		record.value = 1000000 + (count * 2654435761u) % 1000000;
		if (ends) {
			record.value = record.start_ns - begin_ns;
			record.start_ns = begin_ns;
		}
		if (!writer_put(&feeder->writer, 0, &record)) {
			feeder->frame++;
			return count;
		}
		count++;
		record.start_ns += ends ? record.value : 2000000;
		stage = ends ? 0 : stage + 1;
		if (ends || (feeder->kind != FRAMES && stage == STAGES)) {
			begin_ns = record.start_ns;
			feeder->frame++;
			stage = 0;
		}
	}
}

static void *write_rounds(void *arg)
{
	(void)arg;
	if (!keep_on(false)) {
		abort();
	}
	for (;;) {
		pthread_barrier_wait(&barrier);
		if (!filling) {
			return NULL;
		}
		filling->count = fill(filling);
		if (send(filling->fd, "", 1, MSG_NOSIGNAL) < 0) {
			filling->count = 0;
		}
		pthread_barrier_wait(&barrier);
	}
}

static int say_hello(int fd, const char *name, int memfd)
{
	struct proto_hello hello = {.magic = PROTO_HELLO_MAGIC,
		.major = PROTO_MAP_MAJOR,
		.mapping_size = SIZE,
		.page_size = (uint32_t)sysconf(_SC_PAGESIZE),
		.mono_ns = (uint64_t)now_ns()};
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {0};
	struct iovec iov = {&hello, sizeof(hello)};
	struct msghdr msg = {.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control)};
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
	snprintf(hello.app, sizeof(hello.app), "%s", name);
	*c = (struct cmsghdr){CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS};
	memcpy(CMSG_DATA(c), &memfd, sizeof(memfd));
	return sendmsg(fd, &msg, MSG_NOSIGNAL) == (ssize_t)sizeof(hello) ? 0 : -1;
}

static int feeder_open(struct feeder *feeder, const char *name)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int memfd = memfd_create("edgeprof", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	feeder->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (ftruncate(memfd, SIZE) < 0 || posix_fallocate(memfd, 0, SIZE) != 0 ||
		fcntl(memfd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0 ||
		connect(feeder->fd, (struct sockaddr *)&address, sizeof(address)) < 0) {
		return -1;
	}
	void *map = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, memfd, 0);
	if (map == MAP_FAILED) {
		return -1;
	}
	writer_init(&feeder->writer, map, SIZE);
	for (int i = 0; i < STAGES; i++) {
		char stage[16];
		snprintf(stage, sizeof(stage), "s%d", i);
		writer_declare(&feeder->writer, stage, 1500000);
	}
	uint64_t attached = counters.attaches;
	int r = say_hello(feeder->fd, name, memfd);
	close(memfd);
	while (r == 0 && counters.attaches == attached && counters.attaches_refused == 0) {
		uv_run(&loop, UV_RUN_ONCE);
	}
	return counters.attaches_refused == 0 ? r : -1;
}

/* ns a record. */
static double drain(struct feeder *feeder, struct throttle_times *times)
{
	uint64_t before = counters.events_received;
	filling = feeder;
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	throttle_times_sample(times, (uint64_t)now_ns(), THROTTLE_NO);
	double start = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	while (feeder->count > 0 && counters.events_received - before < feeder->count) {
		uv_run(&loop, UV_RUN_ONCE);
	}
	return (clock_ns(CLOCK_THREAD_CPUTIME_ID) - start) / feeder->count;
}

static double floor_ns(struct feeder *feeder)
{
	const struct proto_record *record = feeder->writer.map;
	uint64_t sum = 0;
	filling = feeder;
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	double start = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	for (unsigned i = 0; i < SIZE / sizeof(*record); i++) {
		sum += record[i].value;
	}
	__asm__ volatile("" : : "r"(sum)); /* it is wanted */
	double took = clock_ns(CLOCK_THREAD_CPUTIME_ID) - start;
	uint64_t all = counters.events_received + feeder->count;
	while (counters.events_received < all) {
		uv_run(&loop, UV_RUN_ONCE);
	}
	return took / (SIZE / sizeof(*record));
}

static int core_open(struct run_socket *bound, struct ingest **ingest)
{
	const struct apps_options apps = {.stage_window = 1024, .frame_window = 300};
	char dir[] = "/tmp/edgeprof-bench-XXXXXX";
	struct source *source;
	if (!mkdtemp(dir) || accounts_create(&core.accounts) < 0 ||
		deferred_close_create(&core.deferred_close) < 0 ||
		sources_create(&core.sources) < 0 ||
		sources_add(core.sources, "apps", 0, &source) < 0 ||
		metrics_create(&core.metrics) < 0 || timeline_create(16, &core.timeline) < 0 ||
		apps_create(core.metrics, source, core.timeline, &apps, &core.apps) < 0 ||
		uv_loop_init(&loop) < 0) {
		return -1;
	}
	snprintf(path, sizeof(path), "%s/events", dir);
	if (run_socket_open(bound, path, SOCK_SEQPACKET, NULL) < 0) {
		return -1;
	}
	const struct ingest_options options = {.fd = bound->fd,
		.owner = bound->owner,
		.sample_interval_ns = 1000000000,
		.drain_interval_ns = 5000000,
		.max_connections = 64,
		.max_mapping_bytes = 16 << 20};
	return ingest_open(&loop, &core, &options, ingest);
}

static void core_close(struct run_socket *bound, struct ingest *ingest)
{
	ingest_close(ingest);
	run_socket_close(bound);
	uv_run(&loop, UV_RUN_DEFAULT);
	uv_loop_close(&loop);
	apps_destroy(core.apps);
	timeline_destroy(core.timeline);
	metrics_destroy(core.metrics);
	sources_destroy(core.sources);
	deferred_close_destroy(core.deferred_close);
	accounts_destroy(core.accounts);
	*strrchr(path, '/') = '\0';
	rmdir(path);
}

int main(int argc, char **argv)
{
	static const char *const names[KINDS] = {"drain.events", "drain.ids", "drain.frames"};
	static struct feeder feeders[KINDS];
	static double took[KINDS][ROUNDS_MAX], plain[ROUNDS_MAX];
	static struct throttle_times times;
	struct run_socket bound;
	struct ingest *ingest;
	pthread_t writer;
	size_t rounds = is_short(argc, argv) ? 3 : ROUNDS_MAX;
	if (!keep_on(true)) {
		for (int k = 0; k < KINDS; k++) {
			printf("%s - one processor\n", names[k]);
		}
		return 0;
	}
	if (core_open(&bound, &ingest) < 0) {
		return 1;
	}
	for (int k = 0; k < KINDS; k++) {
		feeders[k].kind = (enum kind)k;
		if (feeder_open(&feeders[k], names[k]) < 0) {
			return 1;
		}
	}
	for (uint64_t ago_ns = 2 * PAST_NS; ago_ns > 0; ago_ns -= 1000000000) {
		throttle_times_sample(&times, (uint64_t)now_ns() - ago_ns, THROTTLE_NO);
	}
	apps_set_throttle_times(core.apps, &times);
	pthread_barrier_init(&barrier, NULL, 2);
	pthread_create(&writer, NULL, write_rounds, NULL);
	for (size_t r = 0; r < rounds; r++) {
		unsigned first = toss() + toss(), step = 1 + toss();
		for (unsigned i = 0; i < KINDS; i++) {
			unsigned k = (first + i * step) % KINDS;
			took[k][r] = drain(&feeders[k], &times);
		}
		plain[r] = floor_ns(&feeders[0]);
	}
	filling = NULL;
	pthread_barrier_wait(&barrier);
	pthread_join(writer, NULL);
	for (int k = 0; k < KINDS; k++) {
		result(names[k], median(took[k], rounds));
		close(feeders[k].fd);
	}
	result("drain.events.floor", median(plain, rounds));
	bool exact = counters.events_invalid == 0 && counters.events_received > 0;
	core_close(&bound, ingest);
	return exact ? 0 : 1;
}
