/* The events socket with real sockets, real processes and a real loop. */
#include "daemon/ingest/ingest.h"

#include <check.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "daemon/ingest/hello.h"
#include "daemon/ingest/nspid.h"
#include "daemon/ingest/peer.h"
#include "daemon/ingest/ring.h"
#include "daemon/ingest/share.h"
#include "daemon/util/log.h"
#include "daemon/util/seam.h"
#include "tests/unit/ring_writer.h"

enum { SIZE = 64 * 1024 };

static uv_loop_t loop;
static struct core core;
static struct counters counters;
static struct processes processes;
static struct ingest *ingest;
static struct ingest_options options;
static char dir[64], path[96];

static void open_ingest(void)
{
	ck_assert_int_eq(ingest_open(&loop, &core, &options, &ingest), 0);
}

static void on_done(void *ctx)
{
	*(bool *)ctx = true;
}

static void close_ingest(void)
{
	bool done = false;
	ingest_close(ingest, on_done, &done);
	while (!done) {
		uv_run(&loop, UV_RUN_ONCE);
	}
	ingest = NULL;
}

static void setup(void)
{
	log_max_level = LOG_LEVEL_ERROR;
	snprintf(dir, sizeof(dir), "/tmp/edgeprof-test-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/events", dir);
	memset(&counters, 0, sizeof(counters));
	memset(&processes, 0, sizeof(processes));
	core = (struct core){.counters = &counters, .processes = &processes};
	struct source *source;
	ck_assert_int_eq(sources_create(&core.sources), 0);
	ck_assert_int_eq(sources_add(core.sources, "apps", 0, &source), 0);
	ck_assert_int_eq(metrics_create(&core.metrics), 0);
	ck_assert_int_eq(timeline_create(256, &core.timeline), 0);
	const struct apps_options apps = {.stage_window = 64, .frame_window = 30};
	ck_assert_int_eq(apps_create(core.metrics, source, core.timeline, &apps, &core.apps), 0);
	ck_assert_int_eq(uv_loop_init(&loop), 0);
	options = (struct ingest_options){.path = path,
		.sample_interval_ns = 1000000000,
		.drain_interval_ns = 5000000,
		.max_connections = 64,
		.max_mapping_bytes = 16 << 20};
	open_ingest();
}

static void teardown(void)
{
	close_ingest();
	ck_assert_int_eq(uv_loop_close(&loop), 0);
	apps_destroy(core.apps);
	timeline_destroy(core.timeline);
	metrics_destroy(core.metrics);
	sources_destroy(core.sources);
	ck_assert_int_ne(access(path, F_OK), 0);
	ck_assert_int_eq(rmdir(dir), 0);
}

static int make_memfd(uint32_t size, bool fill, int seals)
{
	int fd = memfd_create("edgeprof", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0 || ftruncate(fd, size) < 0 || (fill && posix_fallocate(fd, 0, size) != 0) ||
		fcntl(fd, F_ADD_SEALS, seals) < 0) {
		abort();
	}
	return fd;
}

static const int SEALS = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

static int make_mapping(struct writer *writer)
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

static struct proto_hello good_hello(const char *app)
{
	struct proto_hello hello = {.magic = PROTO_HELLO_MAGIC,
		.major = PROTO_MAP_MAJOR,
		.mapping_size = SIZE,
		.page_size = (uint32_t)sysconf(_SC_PAGESIZE),
		.mono_ns = seam()->now_ns()};
	snprintf(hello.app, sizeof(hello.app), "%s", app);
	return hello;
}

static int dial(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0) {
		abort();
	}
	return fd;
}

static void send_packet(int fd, const void *bytes, size_t size, const int *fds, size_t count)
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

static int say_hello(const char *app, int memfd)
{
	struct proto_hello hello = good_hello(app);
	int fd = dial();
	send_packet(fd, &hello, sizeof(hello), &memfd, 1);
	return fd;
}

static void run_until(const uint64_t *counter, uint64_t value)
{
	while (*counter < value) {
		uv_run(&loop, UV_RUN_ONCE);
	}
}

static void put(struct writer *w, uint64_t frame)
{
	uint64_t now = seam()->now_ns();
	const struct proto_record record = {.kind = PROTO_KIND_COMPLETE,
		.cpu_us = PROTO_CPU_NOT_MEASURED,
		.start_ns = now - 1000,
		.value = 1000,
		.frame = frame};
	writer_put(w, 0, &record);
}

/* The mapping's own counts, by the words of proto/mapping.h. */
static void check_identity(const struct writer *w, const struct app_accounting *a)
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

static size_t open_fds(void)
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

static const char *last_text(void)
{
	const struct timeline_entry *e =
		timeline_from(core.timeline, timeline_last_serial(core.timeline));
	return e ? e->text : "";
}

START_TEST(a_process_attaches_and_its_events_arrive)
{
	struct writer w;
	int memfd = make_mapping(&w);
	int fd = say_hello("cam", memfd);
	run_until(&counters.attaches, 1);
	struct app *app = apps_find(core.apps, "cam");
	ck_assert_ptr_nonnull(app);
	ck_assert_uint_eq(app->processes, 1);
	ck_assert_int_eq(app->process[0]->pid, getpid());
	ck_assert_uint_ne(app->process[0]->start_ticks, 0);
	ck_assert_uint_eq(processes.watches, 1);
	ck_assert_int_eq(processes.watch[0].pid, getpid());
	for (unsigned i = 0; i < 10; i++) {
		put(&w, i);
	}
	ck_assert_int_eq(send(fd, "", 1, MSG_NOSIGNAL), 1);
	run_until(&counters.events_received, 10);
	ck_assert_uint_eq(app->stages, 1);
	ck_assert_uint_eq(app->stage[0]->count, 10);
	ck_assert_str_eq(app->stage[0]->name, "infer");
	struct app_accounting a;
	app_accounting(app, &a);
	check_identity(&w, &a);
	w.header->flags = PROTO_MAP_BYE;
	close(fd);
	while (app->processes > 0) {
		uv_run(&loop, UV_RUN_ONCE);
	}
	ck_assert_str_eq(last_text(), "ended");
	ck_assert_uint_eq(processes.watches, 0);
	close(memfd);
}
END_TEST

START_TEST(a_closed_connection_of_a_living_process_keeps_its_mapping)
{
	struct writer w;
	int memfd = make_mapping(&w);
	int fd = say_hello("cam", memfd);
	run_until(&counters.attaches, 1);
	close(fd);
	put(&w, 1);
	run_until(&counters.events_received, 1);
	for (int i = 0; i < 5; i++) {
		put(&w, 2);
		run_until(&counters.events_received, 2 + (uint64_t)i);
	}
	struct app *app = apps_find(core.apps, "cam");
	ck_assert_uint_eq(app->processes, 1);
	/* the same memfd again goes on where it was; another one of the process replaces it */
	fd = say_hello("cam", memfd);
	put(&w, 3);
	run_until(&counters.events_received, 7);
	ck_assert_uint_eq(app->process[0]->accounting.received, 7);
	ck_assert_uint_eq(app->processes, 1);
	close(fd);
	struct writer w2;
	int memfd2 = make_mapping(&w2);
	fd = say_hello("cam", memfd2);
	run_until(&counters.attaches, 2);
	ck_assert_uint_eq(app->processes, 1);
	ck_assert_uint_eq(app->past.received, 7);
	close(memfd);
	close(memfd2);
	close(fd);
}
END_TEST

/* A child that writes without end until it is killed. */
static pid_t start_writer(struct writer *w, int memfd, int ready)
{
	pid_t pid = fork();
	if (pid == 0) {
		say_hello("victim", memfd);
		w->slots[0].tid = 1;
		w->slots[0].open[0] =
			(struct proto_open_stage){.start_ns = seam()->now_ns(), .frame = 8841};
		w->slots[0].depth = 1;
		for (uint64_t i = 0;; i++) {
			put(w, i);
			if (i == 50 && write(ready, "", 1) != 1) {
				_exit(1);
			}
		}
	}
	ck_assert_int_gt(pid, 0);
	return pid;
}

START_TEST(accounting_is_exact_when_a_writer_is_killed)
{
	uint64_t received = 0;
	for (unsigned round = 0; round < 60; round++) {
		struct writer w;
		int ready[2];
		char byte;
		int memfd = make_mapping(&w);
		ck_assert_int_eq(pipe2(ready, O_CLOEXEC), 0);
		pid_t pid = start_writer(&w, memfd, ready[1]);
		run_until(&counters.attaches, round + 1);
		ck_assert_int_eq(read(ready[0], &byte, 1), 1);
		run_until(&counters.drains, counters.drains + round % 4);
		struct app *app = apps_find(core.apps, "victim");
		ck_assert_int_eq(kill(pid, SIGKILL), 0);
		while (app->processes > 0) {
			uv_run(&loop, UV_RUN_ONCE);
		}
		ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
		ck_assert_str_eq(last_text(), "died in `infer`, frame 8841");
		uint64_t head = w.slots[0].head;
		ck_assert_uint_eq(w.slots[0].tail, head);
		received += head;
		ck_assert_uint_eq(app->past.received, received);
		ck_assert_uint_eq(app->past.sent, app->past.received + app->past.dropped);
		ck_assert_uint_eq(app->past.in_ring, 0);
		ck_assert_uint_eq(app->past.invalid, 0);
		ck_assert_uint_eq(app->stage[0]->count, received);
		close(ready[0]);
		close(ready[1]);
		munmap(w.map, SIZE);
		close(memfd);
	}
	ck_assert_uint_eq(counters.events_received, received);
}
END_TEST

/* Its last drain waits for a record that was announced but is not there, and nobody writes it now.
 */
START_TEST(a_damaged_record_of_an_ended_process_hides_none_behind_it)
{
	struct writer w;
	int memfd = make_mapping(&w);
	int fd = say_hello("cam", memfd);
	run_until(&counters.attaches, 1);
	w.slots[0].flags = PROTO_SLOT_CHECKED;
	for (uint64_t i = 0; i < 10; i++) {
		struct proto_record r = {.kind = PROTO_KIND_COMPLETE,
			.cpu_us = PROTO_CPU_NOT_MEASURED,
			.start_ns = seam()->now_ns(),
			.value = 1000,
			.frame = i};
		r.stage = (uint16_t)(proto_record_check(&r, i) << 8);
		r.value += i == 3;
		ck_assert(writer_put(&w, 0, &r));
	}
	w.header->flags = PROTO_MAP_BYE;
	close(fd);
	struct app *app = apps_find(core.apps, "cam");
	while (app->processes > 0) {
		uv_run(&loop, UV_RUN_ONCE);
	}
	ck_assert_uint_eq(app->past.received, 10);
	ck_assert_uint_eq(app->past.invalid, 1);
	ck_assert_uint_eq(app->past.in_ring, 0);
	ck_assert_uint_eq(app->stage[0]->count, 9);
	close(memfd);
}
END_TEST

START_TEST(nothing_is_lost_over_a_restart_of_the_daemon)
{
	struct writer w;
	int memfd = make_mapping(&w);
	uint64_t tried = 0;
	struct app *app = NULL;
	for (unsigned round = 0; round < 20; round++) {
		int fd = say_hello("cam", memfd);
		run_until(&counters.attaches, round + 1);
		app = apps_find(core.apps, "cam");
		ck_assert_uint_eq(app->processes, 1);
		for (unsigned i = 0; i < round * 7; i++) {
			put(&w, tried++);
		}
		ingest_drain(ingest, seam()->now_ns());
		struct app_accounting a;
		app_accounting(app, &a);
		check_identity(&w, &a);
		ck_assert_uint_eq(a.received, tried);
		close_ingest();
		ck_assert_uint_eq(app->processes, 0);
		for (unsigned i = 0; i < 30; i++) { /* while nobody is there */
			put(&w, tried++);
		}
		close(fd);
		open_ingest();
	}
	int fd = say_hello("cam", memfd);
	run_until(&counters.attaches, 21);
	ingest_drain(ingest, seam()->now_ns());
	struct app_accounting a;
	app_accounting(app, &a);
	check_identity(&w, &a);
	ck_assert_uint_eq(a.received, tried);
	ck_assert_uint_eq(app->stage[0]->count, tried);
	close(fd);
	close(memfd);
}
END_TEST

enum rubbish {
	SHORT,
	LONG,
	EMPTY_FD,
	MAGIC,
	MAJOR,
	LISTED_SIZE,
	PAGE,
	CLOCK,
	UNSEALED,
	OTHER_SIZE,
	SPARSE,
	PIPE,
	TEN_FDS,
	NO_FD,
	NO_HEADER,
	NO_WRITE,
	RUBBISH_COUNT
};

static void send_rubbish(int fd, enum rubbish what)
{
	struct proto_hello hello = good_hello("bad");
	char bytes[2 * sizeof(hello)] = {0};
	int fds[10], pipes[2];
	size_t size = sizeof(hello), count = 1;
	fds[0] = make_memfd(SIZE, what != SPARSE, what == UNSEALED ? F_SEAL_SHRINK : SEALS);
	if (what == NO_WRITE) {
		close(fds[0]);
		fds[0] = make_memfd(SIZE, true, SEALS | F_SEAL_WRITE);
	}
	switch (what) {
	case SHORT:
		size--;
		break;
	case LONG:
		size++;
		break;
	case EMPTY_FD:
		size = 0;
		break;
	case MAGIC:
		hello.magic++;
		break;
	case MAJOR:
		hello.major++;
		break;
	case LISTED_SIZE:
		hello.mapping_size = 3 * SIZE;
		break;
	case PAGE:
		hello.page_size *= 2;
		break;
	case CLOCK:
		hello.mono_ns += 5000000000u;
		break;
	case OTHER_SIZE:
		hello.mapping_size = 2 * SIZE;
		break;
	case PIPE:
		close(fds[0]);
		ck_assert_int_eq(pipe(pipes), 0);
		close(pipes[1]);
		fds[0] = pipes[0];
		break;
	case TEN_FDS:
		for (; count < 10; count++) {
			fds[count] = fds[0];
		}
		break;
	case NO_FD:
		count = 0;
		break;
	case UNSEALED:
	case SPARSE:
	case NO_HEADER:
	case NO_WRITE:
	case RUBBISH_COUNT:
		break;
	}
	memcpy(bytes, &hello, sizeof(hello));
	send_packet(fd, bytes, size, fds, count);
	close(fds[0]);
}

START_TEST(rubbish_is_refused_with_the_reason)
{
	static const char *const reasons[RUBBISH_COUNT] = {
		[SHORT] = "another length",
		[LONG] = "another length",
		[EMPTY_FD] = "another length",
		[MAGIC] = "not a hello",
		[MAJOR] = "another version",
		[LISTED_SIZE] = "size is not allowed",
		[PAGE] = "page size",
		[CLOCK] = "time namespace",
		[UNSEALED] = "not sealed",
		[OTHER_SIZE] = "another size",
		[SPARSE] = "holes",
		[PIPE] = "not a memfd",
		[TEN_FDS] = "more than one",
		[NO_FD] = "no mapping",
		[NO_HEADER] = "no valid header",
		[NO_WRITE] = "not permitted",
	};
	size_t before = open_fds();
	for (int i = 0; i < RUBBISH_COUNT; i++) {
		int fd = dial();
		send_rubbish(fd, (enum rubbish)i);
		run_until(&counters.attaches_refused, (uint64_t)i + 1);
		ck_assert_msg(strstr(counters.attach_refused_reason, reasons[i]), "%d: %s", i,
			counters.attach_refused_reason);
		ck_assert_ptr_nonnull(strstr(
			counters.refusals.entry[counters.refusals.count - 1].reason, reasons[i]));
		uv_run(&loop, UV_RUN_NOWAIT);
		char byte;
		ck_assert_int_eq(recv(fd, &byte, 1, 0), 0); /* closed, and no answer */
		close(fd);
	}
	ck_assert_uint_eq(counters.attaches, 0);
	while (open_fds() != before) { /* pipes are closed by a thread */
		sched_yield();
	}
	/* told once while it stays the same */
	uint64_t told = timeline_last_serial(core.timeline);
	for (unsigned i = 1; i <= 5; i++) {
		int fd = dial();
		send_rubbish(fd, NO_WRITE);
		run_until(&counters.attaches_refused, RUBBISH_COUNT + i);
		close(fd);
	}
	ck_assert_uint_eq(timeline_last_serial(core.timeline), told);
}
END_TEST

/* Of huge pages none may be left for the next touch after a hole was punched: SIGBUS. */
START_TEST(a_memfd_of_huge_pages_is_refused)
{
	const uint32_t size = 2 * 1024 * 1024;
	const char *reason = NULL;
	struct stat st;
	int fd = memfd_create("huge", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_HUGETLB);
	if (fd >= 0 && ftruncate(fd, size) == 0) {
		ck_assert_int_eq(fcntl(fd, F_ADD_SEALS, SEALS), 0);
		ck_assert_int_eq(hello_check_memfd(fd, size, &st, &reason), -EBADMSG);
		ck_assert_str_eq(reason, "the memfd is of huge pages");
	}
	if (fd >= 0) {
		close(fd);
	}
}
END_TEST

START_TEST(a_thousand_attachments_leave_no_descriptor)
{
	struct writer w;
	int memfd = make_mapping(&w);
	size_t before = 0;
	struct app *app = NULL;
	for (unsigned i = 0; i < 1000; i++) {
		w.header->flags = 0;
		int fd = say_hello("cam", memfd);
		run_until(&counters.attaches, i + 1);
		send_packet(fd, "", 1, &memfd, 1); /* a wake-up with something it must not carry */
		w.header->flags = PROTO_MAP_BYE;
		close(fd);
		app = apps_find(core.apps, "cam");
		while (app->processes > 0) {
			uv_run(&loop, UV_RUN_ONCE);
		}
		uv_run(&loop, UV_RUN_NOWAIT);
		if (i == 0) {
			before = open_fds();
		}
	}
	ck_assert_uint_eq(open_fds(), before);
	close(memfd);
}
END_TEST

static uint64_t offset_ns;
static const struct seam *real;

static uint64_t shifted_now(void)
{
	return real->now_ns() + offset_ns;
}

START_TEST(places_are_shared)
{
	static const struct {
		uint64_t max, own, others, want;
		bool trusted, fits;
	} table[] = {
		{8, 3, 0, 1, false, true},
		{8, 4, 0, 1, false, false},
		{8, 1, 4, 1, false, true},
		{8, 2, 4, 1, false, false},
		{8, 0, 7, 1, false, true}, /* the last place is still somebody's */
		{8, 0, 8, 1, false, false},
		{8, 0, 9, 1, false, false},
		{64, 55, 0, 1, true, true},
		{64, 56, 0, 1, true, false}, /* an eighth is for others */
		{64, 56, 8, 1, true, false},
		{64, 55, 8, 1, true, true},
		{64, 40, 23, 1, true, true},
		{64, 40, 24, 1, true, false},
		{64, 0, 65, 1, true, false},
		{16 << 20, 14 << 20, 0, 1, true, false},
		{16 << 20, 13 << 20, 0, 1 << 20, true, true},
	};
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		ck_assert_msg(share_fits(table[i].max, table[i].own, table[i].others, table[i].want,
				      table[i].trusted) == table[i].fits,
			"row %zu", i);
	}
}
END_TEST

/* A process of another user that attaches so many mappings and dials so many further times. */
static pid_t start_stranger(int mappings, int dials, int ready, const int go[2])
{
	pid_t pid = fork();
	if (pid == 0) {
		char byte;
		struct writer w;
		close(go[1]);
		if (setgid(1001) < 0 || setuid(1001) < 0) {
			_exit(1);
		}
		for (int i = 0; i < mappings; i++) {
			say_hello("stranger", make_mapping(&w));
		}
		for (int i = 0; i < dials; i++) {
			dial();
		}
		_exit(write(ready, "", 1) == 1 && read(go[0], &byte, 1) == 0 ? 0 : 1);
	}
	ck_assert_int_gt(pid, 0);
	return pid;
}

START_TEST(one_uid_gets_half_of_what_is_free)
{
	if (geteuid() != 0) {
		return; /* only root can be another user */
	}
	close_ingest();
	ck_assert_int_eq(chmod(dir, 0755), 0);
	options.max_connections = 8;
	options.max_mapping_bytes = 6 * SIZE;
	open_ingest();
	int ready[2], go[2];
	ck_assert_int_eq(pipe2(ready, O_CLOEXEC), 0);
	ck_assert_int_eq(pipe2(go, O_CLOEXEC), 0);
	pid_t pid = start_stranger(4, 2, ready[1], go);
	run_until(&counters.attaches_refused, 3);
	ck_assert_uint_eq(counters.attaches, 3); /* 3 of 6 mappings, 4 of 8 connections */
	bool room = false, connections = false;
	for (size_t i = 0; i < counters.refusals.count; i++) {
		const char *reason = counters.refusals.entry[i].reason;
		room = room || strstr(reason, "no room");
		connections = connections || strstr(reason, "too many connections");
	}
	ck_assert(room && connections);
	/* root has the rest, all but what is kept for others, who have their share already */
	struct writer w[4];
	int fd[4];
	for (int i = 0; i < 4; i++) {
		int memfd = make_mapping(&w[i]);
		fd[i] = say_hello("cam", memfd);
		close(memfd);
	}
	run_until(&counters.attaches_refused, 4);
	ck_assert_uint_eq(counters.attaches, 6);
	close(go[1]);
	int status;
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
	close(ready[0]);
	close(ready[1]);
	close(go[0]);
	for (int i = 0; i < 4; i++) {
		close(fd[i]);
	}
}
END_TEST

START_TEST(namespace_numbers_are_read)
{
	static const struct {
		const char *status;
		pid_t want;
		unsigned levels;
	} table[] = {
		{"Name:\tcam\nNSpid:\t812\nNSpgid:\t812\n", 812, 1},
		{"NSpid:\t812\t7\n", 7, 2},
		{"Name:\tNSpid:\nNSpid:\t812\t33\t1\n", 1, 3},
		{"Name:\tcam\n", 0, 0},
		{"", 0, 0},
		{"NSpid:\n1\n", 0, 0},
		{"NSpid:\tx\n", 0, 0},
		{"NSpid:\t99999999999\n", 0, 0},
	};
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		unsigned levels;
		ck_assert_int_eq(nspid_parse(table[i].status, &levels), table[i].want);
		ck_assert_uint_eq(levels, table[i].levels);
	}
	struct nspid nspid;
	nspid_init(&nspid, getpid());
	ck_assert_int_eq(nspid.inside, getpid());
	ck_assert_uint_eq(nspid_thread(&nspid, getpid(), 33), 33);
	ck_assert_uint_eq(nspid_thread(&nspid, 0, 33), 0); /* not visible */
	ck_assert(!nspid.wanted);
	nspid.nested = true;
	ck_assert_uint_eq(nspid_thread(&nspid, getpid(), (uint32_t)getpid()), 0);
	ck_assert(nspid.wanted);
	nspid_look(&nspid, getpid());
	ck_assert_uint_eq(nspid_thread(&nspid, getpid(), (uint32_t)getpid()), (uint32_t)getpid());
	nspid_init(&nspid, 0);
	ck_assert_int_eq(nspid.inside, 0);
}
END_TEST

/* The writer is stopped and sends nothing: its open stage is seen all the same. */
START_TEST(a_stopped_process_is_seen_to_hang)
{
	close_ingest();
	options.sample_interval_ns = 10000000;
	open_ingest();
	struct writer w;
	int ready[2];
	char byte;
	int memfd = make_mapping(&w);
	ck_assert_int_eq(pipe2(ready, O_CLOEXEC), 0);
	pid_t pid = start_writer(&w, memfd, ready[1]);
	run_until(&counters.attaches, 1);
	ck_assert_int_eq(read(ready[0], &byte, 1), 1);
	struct app *app = apps_find(core.apps, "victim");
	run_until(&counters.events_received, 40);
	ck_assert_int_eq(kill(pid, SIGSTOP), 0);
	ck_assert_int_eq(waitpid(pid, NULL, WUNTRACED), pid);
	ingest_drain(ingest, seam()->now_ns());
	real = seam();
	struct seam table = *real;
	table.now_ns = shifted_now;
	offset_ns = 5000000000;
	seam_replace(&table);
	while (app_hung(&app->hangs) == 0) {
		uv_run(&loop, UV_RUN_ONCE);
	}
	seam_replace(NULL);
	ck_assert_ptr_nonnull(strstr(last_text(), "hangs in `infer` for 5."));
	ck_assert_ptr_nonnull(strstr(last_text(), ", frame 8841"));
	ck_assert_double_eq(metrics_find(core.metrics, "app/victim/hung")->value, 1);
	kill(pid, SIGKILL);
	while (app->processes > 0) {
		uv_run(&loop, UV_RUN_ONCE);
	}
	ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
	ck_assert_str_eq(last_text(), "died in `infer`, frame 8841");
	close(ready[0]);
	close(ready[1]);
	close(memfd);
}
END_TEST

static uint64_t chance(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* A word that code may trip over. */
static uint64_t bad_word(uint64_t *state, uint64_t old)
{
	uint64_t r = chance(state);
	switch (r >> 60) {
	case 0:
		return UINT64_MAX;
	case 1:
		return 0;
	case 2:
		return seam()->now_ns() + (r & 0xffffffff);
	case 3:
	case 4:
		return old + (r & 15) - 8;
	case 5:
	case 6:
		return old ^ (uint64_t)1 << (r & 63);
	case 7:
	case 8: /* a record's first word: any kind of a declared stage */
		return (r & 1) | (r >> 8 & 15) << 16 | (r & 0xff000000);
	case 9:
		return r & 127;
	default:
		return chance(state);
	}
}

/* Attaches mapping after mapping and writes into each what it likes. Tables and slots more often
 * than records, which are most of the space. */
static void mutate(uint64_t words)
{
	enum { PER_MAPPING = 20000, BURST = 500 };
	uint64_t state = 0x9e3779b97f4a7c15u;
	for (uint64_t done = 0; done < words; done += PER_MAPPING) {
		struct writer w;
		int memfd = make_mapping(&w);
		writer_declare(&w, "gauge", 0);
		w.header->wake = 1; /* the first drain clears it */
		int fd = say_hello("evil", memfd);
		while (__atomic_load_n(&w.header->wake, __ATOMIC_RELAXED)) {
			nanosleep(&(struct timespec){0, 50000}, NULL);
		}
		uint64_t *word = w.map;
		uint64_t tables = w.g.records_offset / 8;
		for (unsigned i = 0; i < PER_MAPPING; i++) {
			if (i % BURST == 0) {
				put(&w, i);
				(void)!send(fd, "", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
				nanosleep(&(struct timespec){0, 50000}, NULL);
			}
			uint64_t r = chance(&state);
			uint64_t at = r % (i % 3 ? tables : SIZE / 8);
			uint64_t old = __atomic_load_n(&word[at], __ATOMIC_RELAXED);
			__atomic_store_n(&word[at], bad_word(&state, old), __ATOMIC_RELAXED);
		}
		munmap(w.map, SIZE);
		close(fd);
		close(memfd);
	}
}

/* An app that counts for itself and ends by its own will when told. */
static pid_t start_good(struct writer *w, int memfd, const int go[2])
{
	pid_t pid = fork();
	if (pid == 0) {
		char byte;
		int fd = say_hello("good", memfd);
		fcntl(go[0], F_SETFL, O_NONBLOCK);
		close(go[1]);
		for (uint64_t i = 0; read(go[0], &byte, 1) != 0; i++) {
			struct timespec pause_for = {0, 200000};
			put(w, i);
			nanosleep(&pause_for, NULL);
		}
		w->header->flags = PROTO_MAP_BYE;
		_exit(fd < 0);
	}
	ck_assert_int_gt(pid, 0);
	return pid;
}

static bool ended(pid_t pid)
{
	int status;
	pid_t got = waitpid(pid, &status, WNOHANG);
	ck_assert(got != pid || (WIFEXITED(status) && WEXITSTATUS(status) == 0));
	return got == pid;
}

static uint64_t wanted_mutations(uint64_t usual)
{
	const char *text = getenv("EDGEPROF_MUTATIONS");
	uint64_t words = text ? strtoull(text, NULL, 10) : 0;
	return words > 0 ? words : usual;
}

START_TEST(any_words_in_a_mapping_disturb_nobody)
{
	close_ingest();
	options.drain_interval_ns = 1000000;
	options.sample_interval_ns = 20000000;
	open_ingest();
	struct writer good;
	int memfd = make_mapping(&good), go[2];
	ck_assert_int_eq(pipe2(go, O_CLOEXEC), 0);
	pid_t good_pid = start_good(&good, memfd, go);
	run_until(&counters.attaches, 1);
	struct app *app = apps_find(core.apps, "good");
	size_t before = open_fds();
	pid_t pid = fork();
	if (pid == 0) {
		mutate(wanted_mutations(10000000));
		_exit(0);
	}
	ck_assert_int_gt(pid, 0);
	while (!ended(pid)) {
		uv_run(&loop, UV_RUN_ONCE);
	}
	ck_assert_uint_ge(counters.attaches, wanted_mutations(10000000) / 20000);
	close(go[1]);
	while (app->processes > 0) {
		uv_run(&loop, UV_RUN_ONCE);
	}
	while (!ended(good_pid)) {
	}
	uint64_t head = good.slots[0].head;
	ck_assert_uint_gt(head, 100);
	ck_assert_uint_eq(app->past.received, head);
	ck_assert_uint_eq(app->past.sent, head);
	ck_assert_uint_eq(app->past.invalid + app->past.dropped, 0);
	ck_assert_uint_eq(app->stage[0]->count, head);
	struct app *evil = apps_find(core.apps, "evil");
	while (evil->processes > 0) {
		uv_run(&loop, UV_RUN_ONCE);
	}
	uv_run(&loop, UV_RUN_NOWAIT);
	ck_assert_uint_le(open_fds(), before);
	for (size_t i = 0; i < evil->stages; i++) {
		ck_assert(proto_name_valid(evil->stage[i]->name));
	}
	close(go[0]);
	close(memfd);
}
END_TEST

START_TEST(forged_tables_and_counters_are_bounded)
{
	struct writer w;
	int memfd = make_mapping(&w);
	struct proto_declaration *d = proto_map_declarations(w.map);
	memset(&d[1], 'x', sizeof(d[1])); /* no NUL anywhere */
	w.header->declarations = UINT32_MAX;
	w.header->lost = UINT64_MAX - 5;
	for (uint32_t i = 0; i < w.g.slots; i++) {
		w.slots[i].state = PROTO_SLOT_OWNED;
		w.slots[i].depth = UINT32_MAX;
		w.slots[i].dropped = UINT64_MAX;
		for (uint32_t k = 0; k < PROTO_OPEN_STAGES; k++) {
			w.slots[i].open[k] = (struct proto_open_stage){
				.start_ns = UINT64_MAX - k, .stage = k % 2 ? 1 : UINT32_MAX};
		}
	}
	w.slots[1].head = UINT64_MAX;
	w.slots[2].head = 3; /* no chunk is its own */
	w.slots[3].head = 3;
	w.slots[3].first_chunk = UINT32_MAX - 1;
	put(&w, 1);
	int fd = say_hello("evil", memfd);
	run_until(&counters.attaches, 1);
	struct app *app = apps_find(core.apps, "evil");
	ingest_drain(ingest, seam()->now_ns());
	apps_sample(core.apps, seam()->now_ns());
	ck_assert_uint_eq(app->stage[0]->count, 1);
	ck_assert_uint_eq(app->process[0]->open_count, 16);
	for (uint32_t i = 0; i < 16; i++) {
		ck_assert_uint_eq(strlen(app->process[0]->open[i].stage), PROTO_NAME_MAX);
	}
	ck_assert_uint_eq(app_hung(&app->hangs), 0); /* opened in the far future */
	close(fd);
	close(memfd);
}
END_TEST

START_TEST(holes_and_truncation_cost_only_their_own_events)
{
	struct writer w;
	int memfd = make_mapping(&w);
	int fd = say_hello("evil", memfd);
	run_until(&counters.attaches, 1);
	for (unsigned i = 0; i < 10; i++) {
		put(&w, i);
	}
	run_until(&counters.events_received, 10);
	ck_assert_int_lt(ftruncate(memfd, 0), 0);
	ck_assert_int_eq(errno, EPERM);
	ck_assert_int_eq(fallocate(memfd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, SIZE), 0);
	for (int i = 0; i < 10; i++) { /* all zero: nothing moves, nothing breaks */
		ingest_drain(ingest, seam()->now_ns());
		apps_sample(core.apps, seam()->now_ns());
		fallocate(memfd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 4096 * i, 8192);
	}
	struct app *app = apps_find(core.apps, "evil");
	ck_assert_uint_eq(app->stage[0]->count, 10);
	struct writer good;
	int memfd2 = make_mapping(&good);
	int fd2 = say_hello("good", memfd2);
	run_until(&counters.attaches, 2);
	put(&good, 1);
	run_until(&counters.events_received, 11);
	close(fd);
	close(fd2);
	close(memfd);
	close(memfd2);
}
END_TEST

START_TEST(a_storm_of_attach_requests_leaves_neither_descriptors_nor_a_flood)
{
	uint64_t told = timeline_last_serial(core.timeline);
	size_t before = open_fds();
	for (unsigned i = 0; i < 3000; i++) {
		char name[16];
		int memfd = make_memfd(SIZE, true, SEALS);
		snprintf(name, sizeof(name), "storm%u", i);
		int fd = say_hello(name, memfd); /* no header in it */
		close(memfd);
		run_until(&counters.attaches_refused, i + 1);
		close(fd);
	}
	uv_run(&loop, UV_RUN_NOWAIT);
	ck_assert_uint_le(open_fds(), before);
	ck_assert_uint_le(timeline_last_serial(core.timeline), told + 100);
	ck_assert_uint_gt(apps_untold(core.apps), 2800);
	ck_assert_uint_le(counters.refusals.count, REFUSALS_MAX);
}
END_TEST

START_TEST(what_piled_up_in_many_rings_does_not_hold_the_loop)
{
	enum { MANY = 24 };
	static struct writer w[MANY];
	uint64_t written = 0;
	int fd[MANY];
	for (unsigned i = 0; i < MANY; i++) {
		int memfd = make_mapping(&w[i]);
		fd[i] = say_hello("cam", memfd);
		close(memfd);
		run_until(&counters.attaches, i + 1);
	}
	const struct proto_record record = {
		.kind = PROTO_KIND_COMPLETE, .start_ns = seam()->now_ns()};
	for (unsigned i = 0; i < MANY; i++) {
		while (writer_put(&w[i], 0, &record)) {
			written++;
		}
	}
	ck_assert_uint_gt(written, RING_BUDGET + written / MANY);
	ingest_drain(ingest, seam()->now_ns());
	ck_assert_uint_ge(counters.events_received, RING_BUDGET);
	ck_assert_uint_le(counters.events_received, RING_BUDGET + written / MANY);
	run_until(&counters.events_received, written); /* by turns, and all of it */
	for (unsigned i = 0; i < MANY; i++) {
		close(fd[i]);
		munmap(w[i].map, SIZE);
	}
}
END_TEST

START_TEST(a_path_in_use_is_eaddrinuse_and_a_stale_one_is_replaced)
{
	struct ingest *second = NULL;
	ck_assert_int_eq(ingest_open(&loop, &core, &options, &second), -EADDRINUSE);
	ck_assert_ptr_null(second);
	close_ingest();
	/* what a killed daemon leaves: a bound path that nobody listens on */
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	close(fd);
	mode_t mask = umask(0077);
	open_ingest();
	umask(mask);
	struct stat st;
	ck_assert_int_eq(stat(path, &st), 0);
	ck_assert_uint_eq(st.st_mode & 0777, 0666);
	close_ingest();
	fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(ingest_open(&loop, &core, &options, &second), -EEXIST);
	close(fd);
	unlink(path);
	options.group = "no-such-group-here";
	ck_assert_int_eq(ingest_open(&loop, &core, &options, &second), -ENOENT);
	options.group = "root";
	open_ingest();
	ck_assert_int_eq(stat(path, &st), 0);
	ck_assert_uint_eq(st.st_mode & 0777, 0660);
}
END_TEST

START_TEST(who_says_nothing_for_five_seconds_is_closed)
{
	close_ingest();
	options.sample_interval_ns = 10000000;
	open_ingest();
	int fd = dial();
	uint64_t told = timeline_last_serial(core.timeline);
	for (int i = 0; i < 20; i++) {
		uv_run(&loop, UV_RUN_ONCE);
	}
	ck_assert_uint_eq(counters.attaches_refused, 0);
	real = seam();
	struct seam table = *real;
	table.now_ns = shifted_now;
	offset_ns = 6000000000;
	seam_replace(&table);
	run_until(&counters.attaches_refused, 1);
	seam_replace(NULL);
	ck_assert_ptr_nonnull(strstr(counters.attach_refused_reason, "within 5 s"));
	ck_assert_uint_eq(timeline_last_serial(core.timeline), told + 1);
	close(fd);
}
END_TEST

START_TEST(start_times_are_read_behind_any_command)
{
	static const struct {
		const char *stat;
		uint64_t want;
	} table[] = {
		{"12 (cam) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 777 20", 777},
		{"12 (a) b) (c) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 778 20", 778},
		{"12 (cam) S 1 2 3", 0},
		{"12 (cam", 0},
		{"12 (cam) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 x 20", 0},
		{"", 0},
	};
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		ck_assert_uint_eq(peer_parse_start(table[i].stat), table[i].want);
	}
	ck_assert_uint_ne(peer_start_ticks(getpid()), 0);
}
END_TEST

int main(void)
{
	TCase *tc = tcase_create("ingest");
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_set_timeout(tc, 600); /* for the long form */
	tcase_add_test(tc, a_process_attaches_and_its_events_arrive);
	tcase_add_test(tc, a_closed_connection_of_a_living_process_keeps_its_mapping);
	tcase_add_test(tc, accounting_is_exact_when_a_writer_is_killed);
	tcase_add_test(tc, a_damaged_record_of_an_ended_process_hides_none_behind_it);
	tcase_add_test(tc, nothing_is_lost_over_a_restart_of_the_daemon);
	tcase_add_test(tc, rubbish_is_refused_with_the_reason);
	tcase_add_test(tc, a_memfd_of_huge_pages_is_refused);
	tcase_add_test(tc, a_thousand_attachments_leave_no_descriptor);
	tcase_add_test(tc, any_words_in_a_mapping_disturb_nobody);
	tcase_add_test(tc, forged_tables_and_counters_are_bounded);
	tcase_add_test(tc, holes_and_truncation_cost_only_their_own_events);
	tcase_add_test(tc, a_storm_of_attach_requests_leaves_neither_descriptors_nor_a_flood);
	tcase_add_test(tc, places_are_shared);
	tcase_add_test(tc, one_uid_gets_half_of_what_is_free);
	tcase_add_test(tc, namespace_numbers_are_read);
	tcase_add_test(tc, a_stopped_process_is_seen_to_hang);
	tcase_add_test(tc, what_piled_up_in_many_rings_does_not_hold_the_loop);
	tcase_add_test(tc, a_path_in_use_is_eaddrinuse_and_a_stale_one_is_replaced);
	tcase_add_test(tc, who_says_nothing_for_five_seconds_is_closed);
	tcase_add_test(tc, start_times_are_read_behind_any_command);
	Suite *suite = suite_create("ingest");
	suite_add_tcase(suite, tc);
	SRunner *runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	int failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
