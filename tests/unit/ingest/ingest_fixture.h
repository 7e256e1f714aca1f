/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The events socket on a loop of its own over a small core, and instrumented processes as the test
 * plays them: mappings that it makes and writes itself, hellos that it sends by hand.
 */
#pragma once

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "daemon/core/apps/apps.h"
#include "daemon/core/metrics/metrics.h"
#include "daemon/core/metrics/processes.h"
#include "daemon/core/metrics/sources.h"
#include "daemon/core/timeline/timeline.h"
#include "daemon/ingest/ingest.h"
#include "daemon/host/socket.h"
#include "daemon/util/accounts.h"
#include "daemon/util/deferred_close.h"
#include "daemon/util/log.h"
#include "daemon/util/sysops.h"
#include "tests/unit/ingest/ring_writer.h"
#include "tests/unit/unit.h"

enum { SIZE = 64 * 1024 };

static uv_loop_t loop;
static struct core core;
static struct counters counters;
static struct processes processes;
static struct ingest *ingest;
static struct ingest_options options;
static struct run_socket bound;
static char dir[64], path[96];

static inline void open_ingest(void)
{
	ck_assert_int_eq(run_socket_open(&bound, path, SOCK_SEQPACKET, NULL), 0);
	options.fd = bound.fd;
	options.owner = bound.owner;
	ck_assert_int_eq(ingest_open(&loop, &core, &options, &ingest), 0);
}

static inline void close_ingest(void)
{
	ingest_close(ingest);
	run_socket_close(&bound);
	ck_assert_int_eq(uv_run(&loop, UV_RUN_DEFAULT), 0);
	ingest = NULL;
}

static inline void setup(void)
{
	log_max_level = LOG_LEVEL_ERROR;
	snprintf(dir, sizeof(dir), "/tmp/edgeprof-test-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/events", dir);
	memset(&counters, 0, sizeof(counters));
	memset(&processes, 0, sizeof(processes));
	core = (struct core){.counters = &counters, .processes = &processes};
	ck_assert_int_eq(accounts_create(&core.accounts), 0);
	ck_assert_int_eq(deferred_close_create(&core.deferred_close), 0);
	struct source *source;
	ck_assert_int_eq(sources_create(&core.sources), 0);
	ck_assert_int_eq(sources_add(core.sources, "apps", 0, &source), 0);
	ck_assert_int_eq(metrics_create(&core.metrics), 0);
	ck_assert_int_eq(timeline_create(256, &core.timeline), 0);
	const struct apps_options apps = {.stage_window = 64, .frame_window = 30};
	ck_assert_int_eq(apps_create(core.metrics, source, core.timeline, &apps, &core.apps), 0);
	ck_assert_int_eq(uv_loop_init(&loop), 0);
	options = (struct ingest_options){.sample_interval_ns = 1000000000,
		.drain_interval_ns = 5000000,
		.end_wait_ns = 1000000,
		.max_connections = 64,
		.max_mapping_bytes = 16 << 20};
	open_ingest();
}

static inline void teardown(void)
{
	close_ingest();
	ck_assert_int_eq(uv_loop_close(&loop), 0);
	apps_destroy(core.apps);
	timeline_destroy(core.timeline);
	metrics_destroy(core.metrics);
	sources_destroy(core.sources);
	deferred_close_destroy(core.deferred_close);
	accounts_destroy(core.accounts);
	ck_assert_int_eq(rmdir(dir), 0);
}

static inline int make_memfd(uint32_t size, bool fill, int seals)
{
	int fd = memfd_create("edgeprof", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0 || ftruncate(fd, size) < 0 || (fill && posix_fallocate(fd, 0, size) != 0) ||
		fcntl(fd, F_ADD_SEALS, seals) < 0) {
		abort();
	}
	return fd;
}

static const int SEALS = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

static inline int make_mapping(struct writer *writer)
{
	int fd = make_memfd(SIZE, true, SEALS);
	void *map = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED) {
		abort();
	}
	writer_init(writer, map, SIZE);
	writer_declare(writer, "infer", 0);
	return fd;
}

/* What make_mapping() and say_hello() made. */
static inline void drop_process(struct writer *writer, int fd, int memfd)
{
	munmap(writer->header, SIZE);
	close(fd);
	close(memfd);
}

static inline struct proto_hello good_hello(const char *app)
{
	struct proto_hello hello = {.magic = PROTO_HELLO_MAGIC,
		.major = PROTO_MAP_MAJOR,
		.mapping_size = SIZE,
		.page_size = (uint32_t)sysconf(_SC_PAGESIZE),
		.mono_ns = sysops()->now_ns()};
	snprintf(hello.app, sizeof(hello.app), "%s", app);
	return hello;
}

static inline int dial(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0) {
		abort();
	}
	return fd;
}

static inline void send_packet(int fd, const void *bytes, size_t size, const int *fds, size_t count)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(16 * sizeof(int))];
	} control = {0};
	struct iovec iov = {.iov_base = (void *)(uintptr_t)bytes, .iov_len = size};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
	if (count) {
		msg.msg_control = control.bytes;
		msg.msg_controllen = CMSG_SPACE(count * sizeof(int));
		struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(count * sizeof(int));
		memcpy(CMSG_DATA(c), fds, count * sizeof(int));
	}
	if (sendmsg(fd, &msg, MSG_NOSIGNAL) != (ssize_t)size) {
		abort();
	}
}

static inline int say_hello(const char *app, int memfd)
{
	struct proto_hello hello = good_hello(app);
	int fd = dial();
	send_packet(fd, &hello, sizeof(hello), &memfd, 1);
	return fd;
}

static inline void run_until(const uint64_t *counter, uint64_t value)
{
	const uint64_t end_ns = uv_hrtime() + UINT64_C(60000000000);
	while (*counter < value) {
		uv_run(&loop, UV_RUN_ONCE);
		ck_assert_msg(uv_hrtime() < end_ns, "it remains at %" PRIu64, *counter);
	}
}

/* In as many iterations as it takes. */
static inline void drain_all(void)
{
	do {
		counters.iterations++;
	} while (!ingest_drain(ingest));
}

static inline void put(struct writer *w, uint64_t frame)
{
	uint64_t now = sysops()->now_ns();
	const struct proto_record record = {.kind = PROTO_KIND_COMPLETE,
		.cpu_us = PROTO_CPU_NOT_MEASURED,
		.start_ns = now - 1000,
		.value = 1000,
		.frame = frame};
	writer_put(w, 0, &record);
}

/* The mapping's own counts, by the words of proto/mapping.h. */
static inline void check_identity(const struct writer *w, const struct app_accounting *a)
{
	uint64_t heads = 0, dropped = w->header->lost, tails = 0;
	for (uint32_t i = 0; i < w->g.slots; i++) {
		heads += w->slots[i].head;
		tails += w->slots[i].tail;
		dropped += w->slots[i].dropped + w->slots[i].dropped_busy;
	}
	ck_assert_uint_eq(a->sent, heads + dropped);
	ck_assert_uint_eq(a->received, tails);
	ck_assert_uint_eq(a->dropped, dropped);
	ck_assert_uint_eq(a->sent, a->received + a->dropped + a->in_ring);
	ck_assert_uint_eq(a->invalid, 0);
}

static inline size_t open_fds(void)
{
	size_t count = 0;
	DIR *d = opendir("/proc/self/fd");
	ck_assert_ptr_nonnull(d);
	while (readdir(d)) {
		count++;
	}
	closedir(d);
	return count;
}

static inline const char *last_text(void)
{
	const struct timeline_entry *e =
		timeline_from(core.timeline, timeline_last_serial(core.timeline));
	return e ? e->text : "";
}

static uint64_t offset_ns;
static const struct sysops *real;

static inline uint64_t shifted_now(void)
{
	return real->now_ns() + offset_ns;
}

/* The clock is that far ahead from now on; sysops_replace(NULL) ends it. */
static inline void shift_clock(uint64_t by_ns)
{
	static struct sysops table;
	real = sysops();
	table = *real;
	table.now_ns = shifted_now;
	offset_ns = by_ns;
	sysops_replace(&table);
}
