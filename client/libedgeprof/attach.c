/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attach.c: finds the daemon and sends it the mapping. AF_UNIX SOCK_SEQPACKET to `events` in the
 * run directory, one packet with the hello and the memfd. Everything is non-blocking and done by at
 * most one thread; the others continue without it.
 */
#include "client/libedgeprof/private.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum {
	CHECK_NS = 1000 * 1000 * 1000,
	WAKE_RECORDS = 1000,
	LOCK_TRIES = 10000,
};

static struct {
	uint32_t locked;  /* one thread at a time; never waited for in an event */
	uint32_t unwoken; /* records since the last wake-up; atomic */
	uint32_t connected;
	bool configured, print, disabled;
	uint32_t mapping_size;
	char app[PROTO_NAME_SIZE];
	struct sockaddr_un path[2];
	size_t paths;
	struct descriptor socket, memfd;
} channel = {.socket = {.fd = -1}, .memfd = {.fd = -1}};

static bool channel_trylock(void)
{
	return __atomic_exchange_n(&channel.locked, 1, __ATOMIC_ACQUIRE) == 0;
}

static void channel_unlock(void)
{
	__atomic_store_n(&channel.locked, 0, __ATOMIC_RELEASE);
}

/* Only for init and shutdown: the holder makes a few system calls and goes. */
static bool channel_lock(void)
{
	for (int i = 0; i < LOCK_TRIES; i++) {
		if (channel_trylock()) {
			return true;
		}
		sched_yield();
	}
	return false;
}

/* How many paths there are now. */
static size_t add_path(
	struct sockaddr_un *paths, size_t count, const char *directory, const char *rest)
{
	struct sockaddr_un *a = &paths[count];
	if (directory && directory[0] &&
		snprintf(a->sun_path, sizeof(a->sun_path), "%s/%s", directory, rest) <
			(int)sizeof(a->sun_path)) {
		a->sun_family = AF_UNIX;
		count++;
	}
	return count;
}

size_t attach_paths(const char *name, struct sockaddr_un *ret)
{
	const char *own = secure_getenv("EDGEPROF_RUNTIME_DIR");
	char below[64];
	if (own) {
		return add_path(ret, 0, own, name);
	}
	snprintf(below, sizeof(below), "edgeprofd/%s", name);
	size_t count = add_path(ret, 0, "/run/edgeprofd", name);
	return add_path(ret, count, secure_getenv("XDG_RUNTIME_DIR"), below);
}

const char *attach_app(void)
{
	return channel.app;
}

static bool is_set_to(const char *name, const char *value)
{
	const char *text = getenv(name);
	return text && strcmp(text, value) == 0;
}

void attach_read_environment(void)
{
	const char *size = secure_getenv("EDGEPROF_MAPPING_SIZE");
	struct proto_geometry g;
	unsigned long bytes = size ? strtoul(size, NULL, 10) : 0;
	bool listed = bytes <= PROTO_MAP_MAX_SIZE && proto_geometry((uint32_t)bytes, &g) == 0;
	channel.mapping_size = listed ? (uint32_t)bytes : PROTO_MAP_DEFAULT_SIZE;
	channel.print = is_set_to("EDGEPROF_PRINT", "1");
	channel.disabled = is_set_to("EDGEPROF_DISABLE", "1");
	process.context = !is_set_to("EDGEPROF_CONTEXT", "0");
	clock_fn *clock =
		is_set_to("EDGEPROF_CLOCK", "tsc") ? clock_counter(process.clock) : process.clock;
	__atomic_store_n(&edgeprof_state_.clock, clock, __ATOMIC_RELAXED);
	channel.paths = attach_paths("events", channel.path);
}

/* Takes what the environment said into use. Under the channel's lock. */
static void configure(const char *app)
{
	if (!app || !app[0]) {
		app = program_invocation_short_name;
	}
	proto_name_clean(app, strlen(app), channel.app);
	process.print = channel.print && !channel.disabled;
	if (channel.disabled) {
		process_set_mode(PROCESS_OFF);
	}
	channel.configured = true;
}

static int send_hello(int fd, int memfd)
{
	struct proto_hello hello = {
		.magic = PROTO_HELLO_MAGIC,
		.major = PROTO_MAP_MAJOR,
		.minor = PROTO_MAP_MINOR,
		.mapping_size = channel.mapping_size,
		.page_size = (uint32_t)sysconf(_SC_PAGESIZE),
		.mono_ns = edgeprof_now(),
	};
	memcpy(hello.app, channel.app, sizeof(channel.app));
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = {.bytes = {0}};
	struct iovec iov = {&hello, sizeof(hello)};
	struct msghdr message = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof(control.bytes),
	};
	struct cmsghdr *c = CMSG_FIRSTHDR(&message);
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &memfd, sizeof(int));
	ssize_t n = sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
	return n == (ssize_t)sizeof(hello) ? 0 : -EAGAIN;
}

/* The first that connects. A full backlog is EAGAIN: no daemon for this second. */
static int connect_first(struct descriptor *ret)
{
	for (size_t i = 0; i < channel.paths; i++) {
		struct descriptor d = {.fd = -1};
		if (descriptor_set(
			    &d, socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)) <
			0) {
			return -EAGAIN;
		}
		if (connect(d.fd, (const struct sockaddr *)&channel.path[i],
			    sizeof(channel.path[i])) == 0) {
			*ret = d;
			return 0;
		}
		close(d.fd);
	}
	return -ENOENT;
}

/* Under the channel's lock. 0 also when nobody is there; -ENOMEM: no mapping. */
static int attach(void)
{
	struct descriptor d;
	if (connect_first(&d) < 0) {
		return 0;
	}
	if (!process.map) {
		int fd = mapping_create(channel.mapping_size);
		if (fd < 0 || descriptor_set(&channel.memfd, fd) < 0) {
			close(d.fd);
			return fd == -EAGAIN ? 0 : -ENOMEM;
		}
	}
	/* An app that closed our memfd keeps its records to itself from now on. */
	if (!descriptor_ours(&channel.memfd) || send_hello(d.fd, channel.memfd.fd) < 0) {
		close(d.fd);
		return 0;
	}
	channel.socket = d;
	__atomic_store_n(&channel.connected, 1, __ATOMIC_RELAXED);
	deadline_resend();
	if (process_mode() != PROCESS_OFF) {
		process_set_mode(PROCESS_ACTIVE);
	}
	return 0;
}

static void detach(void)
{
	descriptor_close(&channel.socket);
	__atomic_store_n(&channel.connected, 0, __ATOMIC_RELAXED);
}

static bool peer_gone(void)
{
	char byte;
	ssize_t n = recv(channel.socket.fd, &byte, 1, MSG_DONTWAIT | MSG_PEEK);
	return n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
}

/* Under the channel's lock. */
static int check_locked(void)
{
	if (process_mode() == PROCESS_OFF) {
		return 0;
	}
	if (channel.socket.fd >= 0 && (!descriptor_ours(&channel.socket) || peer_gone())) {
		detach();
	}
	int error = channel.socket.fd < 0 ? attach() : 0;
	if (process_mode() == PROCESS_NEW) {
		process_set_mode(PROCESS_IDLE);
	}
	return error;
}

static uint64_t next_check(uint64_t now_ns)
{
	return now_ns - now_ns % CHECK_NS + CHECK_NS;
}

void attach_check(uint64_t now_ns)
{
	uint64_t due = __atomic_load_n(&process.due_ns, __ATOMIC_RELAXED);
	if (now_ns < due || !__atomic_compare_exchange_n(&process.due_ns, &due, next_check(now_ns),
				    false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
		return;
	}
	if (!channel_trylock()) {
		process_set_gate(next_check(now_ns));
		return;
	}
	int saved = errno;
	if (!channel.configured) {
		configure(NULL);
	}
	clock_calibrate();
	check_locked();
	process_set_gate(next_check(now_ns));
	channel_unlock();
	errno = saved;
}

int attach_init(const char *app)
{
	if (!channel_lock()) {
		return 0;
	}
	uint64_t due = next_check(edgeprof_now());
	if (!channel.configured) {
		attach_read_environment();
		configure(app);
	}
	clock_calibrate();
	int error = check_locked();
	__atomic_store_n(&process.due_ns, due, __ATOMIC_RELAXED);
	if (error < 0) {
		process_set_mode(PROCESS_OFF);
	}
	process_set_gate(due);
	channel_unlock();
	return error;
}

void attach_count(uint32_t records, bool half_full)
{
	struct proto_map_header *header = process.map;
	uint32_t unwoken = __atomic_add_fetch(&channel.unwoken, records, __ATOMIC_RELAXED);
	if (!half_full || unwoken < WAKE_RECORDS ||
		__atomic_load_n(&header->wake, __ATOMIC_RELAXED) != 0 || !channel_trylock()) {
		return;
	}
	int saved = errno;
	if (descriptor_ours(&channel.socket) &&
		__atomic_exchange_n(&header->wake, 1, __ATOMIC_ACQ_REL) == 0) {
		__atomic_store_n(&channel.unwoken, 0, __ATOMIC_RELAXED);
		/* a full socket means that the reader has wake-ups enough */
		(void)!send(channel.socket.fd, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
	}
	channel_unlock();
	errno = saved;
}

bool attach_connected(void)
{
	return __atomic_load_n(&channel.connected, __ATOMIC_RELAXED) != 0;
}

void attach_close(void)
{
	if (channel_lock()) {
		/* again: who was attaching just now may have switched it on */
		process_set_mode(PROCESS_OFF);
		process_set_gate(0);
		detach();
		channel_unlock();
	}
}

void attach_forget(void)
{
	detach();
	descriptor_close(&channel.memfd);
	channel.unwoken = 0;
	channel_unlock();
}
