/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of libedgeprof share: one fake daemon a test (libcheck forks), and its oracle. */
#pragma once

#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>

#include "client/libedgeprof/edgeprof.h"
#include "tests/unit/libedgeprof/fake_daemon.h"
#include "tests/unit/unit.h"

#if defined(__SANITIZE_ADDRESS__)
#define HAVE_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HAVE_SANITIZER 1
#endif
#endif
#ifndef HAVE_SANITIZER
#define HAVE_SANITIZER 0
#endif

static struct fake_daemon fake;

/* What the drains of a test saw. */
struct seen {
	uint64_t records, last_kind[PROTO_KIND_COUNT];
	struct proto_record last, first;
	uint64_t sum; /* of values */
};

static inline void see(void *ctx, uint32_t slot, const struct proto_record *record)
{
	struct seen *s = ctx;
	(void)slot;
	if (s->records++ == 0) {
		s->first = *record;
	}
	s->last = *record;
	s->sum += record->value;
	ck_assert_uint_lt(record->kind, PROTO_KIND_COUNT);
	s->last_kind[record->kind]++;
}

static inline void attach(void)
{
	ck_assert_int_eq(fake_start(&fake), 0);
	ck_assert_int_eq(edgeprof_init("unit test"), 0);
	ck_assert_int_eq(fake_accept(&fake), 0);
}

static inline void finish(void)
{
	if (fake.directory[0]) {
		fake_stop(&fake);
	}
}

static inline void check_identity(void)
{
	struct fake_counts n = fake_count(&fake);
	struct edgeprof_counts c;
	edgeprof_counts(&c);
	ck_assert_uint_eq(n.sent, n.received + n.dropped + n.in_ring);
	ck_assert_uint_eq(c.sent, n.sent);
	ck_assert_uint_eq(c.received, n.received);
	ck_assert_uint_eq(c.dropped, n.dropped);
	ck_assert_uint_eq(c.in_ring, n.in_ring);
}

/* Lets the once-a-second look happen now: time is the library's own, so wait for its clock. */
static inline void emit_until_reconnected(int stage)
{
	struct pollfd p = {.fd = fake.listener, .events = POLLIN};
	while (poll(&p, 1, 10) == 0) {
		edgeprof_complete(stage, 1, 1, EDGEPROF_NO_FRAME);
	}
}
