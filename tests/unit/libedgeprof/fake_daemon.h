/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A daemon in 200 lines, written from proto/mapping.h alone: the oracle of the library's tests and
 * the drainer of its benchmarks. It believes what it reads, unlike the real one.
 */
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "proto/mapping.h"

struct fake_daemon {
	char directory[64];
	int listener, connection, memfd;
	struct proto_hello hello;
	void *map;
	struct proto_geometry g;
	uint64_t tail[64];
	uint32_t chunk[64];
};

typedef void fake_record_fn(void *ctx, uint32_t slot, const struct proto_record *record);

static inline int fake_listen(struct fake_daemon *d)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	snprintf(a.sun_path, sizeof(a.sun_path), "%s/events", d->directory);
	unlink(a.sun_path);
	d->connection = -1;
	d->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (d->listener < 0 || bind(d->listener, (struct sockaddr *)&a, sizeof(a)) < 0) {
		return -errno;
	}
	/* nobody coming is a failed test, not one that hangs */
	struct timeval limit = {.tv_sec = 20};
	setsockopt(d->listener, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	return listen(d->listener, 8) < 0 ? -errno : 0;
}

/* A fresh run directory, named in EDGEPROF_RUNTIME_DIR, and a socket in it. */
static inline int fake_start(struct fake_daemon *d)
{
	*d = (struct fake_daemon){.listener = -1, .connection = -1, .memfd = -1};
	snprintf(d->directory, sizeof(d->directory), "/tmp/edgeprof-XXXXXX");
	if (!mkdtemp(d->directory)) {
		return -errno;
	}
	setenv("EDGEPROF_RUNTIME_DIR", d->directory, 1);
	return fake_listen(d);
}

/* Takes the next connection's hello and maps what it carries (connect comes first: blocks only if
 * nobody connected). memfd stays open for the tests to look at. */
static inline int fake_accept(struct fake_daemon *d)
{
	d->connection = accept4(d->listener, NULL, NULL, SOCK_CLOEXEC);
	if (d->connection < 0) {
		return -errno;
	}
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec iov = {&d->hello, sizeof(d->hello)};
	struct msghdr m = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof(control.bytes),
	};
	if (recvmsg(d->connection, &m, MSG_CMSG_CLOEXEC) != (ssize_t)sizeof(d->hello)) {
		return -EBADMSG;
	}
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);
	if (!c || c->cmsg_type != SCM_RIGHTS || proto_geometry(d->hello.mapping_size, &d->g) < 0) {
		return -EBADMSG;
	}
	memcpy(&d->memfd, CMSG_DATA(c), sizeof(int));
	d->map = mmap(NULL, d->g.size, PROT_READ | PROT_WRITE, MAP_SHARED, d->memfd, 0);
	if (d->map == MAP_FAILED) {
		return -errno;
	}
	const struct proto_slot *slots = proto_map_slots(d->map, &d->g);
	for (uint32_t i = 0; i < d->g.slots; i++) {
		d->tail[i] = slots[i].tail;
		d->chunk[i] = slots[i].tail_chunk;
	}
	return 0;
}

/* Like a kill: nothing is drained, nothing said. */
static inline void fake_drop_connection(struct fake_daemon *d)
{
	close(d->connection);
	close(d->memfd);
	munmap(d->map, d->g.size);
	d->connection = d->memfd = -1;
	d->map = NULL;
}

static inline void fake_stop(struct fake_daemon *d)
{
	char path[96];
	if (d->map) {
		fake_drop_connection(d);
	}
	close(d->listener);
	snprintf(path, sizeof(path), "%s/events", d->directory);
	unlink(path);
	rmdir(d->directory);
}

/* At most max records of one slot; the count. */
static inline uint64_t fake_drain_slot(
	struct fake_daemon *d, uint32_t i, uint64_t max, fake_record_fn *fn, void *ctx)
{
	struct proto_slot *slot = &proto_map_slots(d->map, &d->g)[i];
	struct proto_chunk *chunks = proto_map_chunks(d->map, &d->g);
	uint64_t head = __atomic_load_n(&slot->head, __ATOMIC_ACQUIRE), done = 0;
	while (d->tail[i] < head && done < max) {
		uint32_t old = d->chunk[i];
		if (d->tail[i] % d->g.chunk_records == 0) {
			d->chunk[i] = old == PROTO_NO_CHUNK ? slot->first_chunk
							    : __atomic_load_n(&chunks[old].next,
								      __ATOMIC_ACQUIRE);
			__atomic_store_n(&slot->tail_chunk, d->chunk[i], __ATOMIC_RELEASE);
			if (old != PROTO_NO_CHUNK) {
				chunks[old].base = PROTO_NO_BASE;
				__atomic_store_n(&chunks[old].owner, 0, __ATOMIC_RELEASE);
			}
		}
		uint64_t base = chunks[d->chunk[i]].base;
		const struct proto_record *records = proto_map_records(d->map, &d->g, d->chunk[i]);
		while (d->tail[i] < head && done < max && d->tail[i] < base + d->g.chunk_records) {
			if (fn) {
				fn(ctx, i, &records[d->tail[i] - base]);
			}
			d->tail[i]++;
			done++;
		}
		__atomic_store_n(&slot->tail, d->tail[i], __ATOMIC_RELEASE);
	}
	return done;
}

static inline uint64_t fake_drain(struct fake_daemon *d, fake_record_fn *fn, void *ctx)
{
	struct proto_map_header *header = d->map;
	uint64_t done = 0;
	__atomic_store_n(&header->wake, 0, __ATOMIC_RELEASE);
	for (uint32_t i = 0; i < d->g.slots; i++) {
		done += fake_drain_slot(d, i, UINT64_MAX, fn, ctx);
	}
	return done;
}

struct fake_counts {
	uint64_t sent, received, dropped, in_ring;
};

/* The identity of proto/mapping.h, added up on the reader's side. */
static inline struct fake_counts fake_count(const struct fake_daemon *d)
{
	const struct proto_map_header *header = d->map;
	const struct proto_slot *slots = proto_map_slots(d->map, &d->g);
	struct fake_counts n = {.dropped = header->lost, .sent = header->lost};
	for (uint32_t i = 0; i < d->g.slots; i++) {
		n.sent += slots[i].head + slots[i].dropped + slots[i].dropped_busy;
		n.dropped += slots[i].dropped + slots[i].dropped_busy;
		n.received += slots[i].tail;
		n.in_ring += slots[i].head - slots[i].tail;
	}
	return n;
}
