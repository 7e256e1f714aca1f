/* SPDX-License-Identifier: Apache-2.0 */
/* What recorders in other languages stand on: records as they are, open stages, labels, init. */
#include "tests/unit/libedgeprof/edgeprof_case.h"
#include "tests/unit/unit.h"

TEST_TIMEOUT(60);
FIXTURE(NULL, finish);

static struct seen drain(void)
{
	struct seen s = {0};
	fake_drain(&fake, see, &s);
	return s;
}

START_TEST(a_record_is_written_as_it_is)
{
	attach();
	ck_assert(edgeprof_write_(0, PROTO_KIND_FRAME | PROTO_RECORD_FAILED << 8, 5, 70, 8, 9));
	struct proto_record r = drain().last;
	ck_assert_uint_eq(r.kind, PROTO_KIND_FRAME);
	ck_assert_uint_eq(r.flags, PROTO_RECORD_FAILED);
	ck_assert_uint_eq(r.cpu_us, 5);
	ck_assert_uint_eq(r.start_ns, 70);
	ck_assert_uint_eq(r.value, 8);
	ck_assert_uint_eq(r.frame, 9);
	ck_assert(!edgeprof_write_(0, PROTO_KIND_COMPLETE, 0, 1, 1, 1)); /* no stage is declared */
	ck_assert_uint_eq(fake_count(&fake).dropped, 1);
	check_identity();
}
END_TEST

START_TEST(an_opened_stage_is_seen_and_ends_by_its_token)
{
	attach();
	int a = edgeprof_stage("a"), b = edgeprof_stage("b");
	ck_assert(edgeprof_open_(0, a, 1000, 77));
	ck_assert(edgeprof_open_(1, b, 2000, 78));
	const struct proto_slot *slot = proto_map_slots(fake.map, &fake.g);
	ck_assert_uint_eq(slot->depth, 2);
	ck_assert_uint_eq(slot->open[1].start_ns, 2000);
	ck_assert_uint_eq(slot->open[1].frame, 78);
	ck_assert(edgeprof_open_(1, -1, 0, 0)); /* b is closed without a record */
	ck_assert_uint_eq(slot->depth, 1);
	edgeprof_end((edgeprof_token){.start_ns = 2000, .stage = (uint32_t)b, .depth = 1});
	edgeprof_end((edgeprof_token){.start_ns = 1000, .stage = (uint32_t)a, .depth = 0});
	struct seen s = drain();
	ck_assert_uint_eq(s.records, 1);
	ck_assert_uint_eq(s.last.stage, a);
	ck_assert_uint_eq(s.last.start_ns, 1000);
	ck_assert_uint_eq(s.last.frame, 77);
	ck_assert(edgeprof_open_(9, a, 3000, 1)); /* no deeper than what is open */
	ck_assert_uint_eq(slot->depth, 1);
	check_identity();
}
END_TEST

START_TEST(a_label_is_no_name)
{
	ck_assert_int_ne(edgeprof_label_("a b"), edgeprof_stage("a b"));
	ck_assert_int_eq(edgeprof_label_("ab"), edgeprof_stage("ab"));
}
END_TEST

START_TEST(init_looks_again_for_a_daemon)
{
	ck_assert_int_eq(fake_start(&fake), 0);
	close(fake.listener);
	ck_assert_int_eq(edgeprof_init("first"), 0);
	ck_assert_int_eq(fake_listen(&fake), 0);
	struct edgeprof_counts c;
	edgeprof_counts(&c);
	ck_assert(!c.attached);
	ck_assert(!edgeprof_open_(0, edgeprof_stage("a"), 1, 1)); /* nobody listens */
	ck_assert_int_eq(edgeprof_init("second"), 0);
	ck_assert_int_eq(fake_accept(&fake), 0);
	edgeprof_counts(&c);
	ck_assert(c.attached);
	ck_assert_str_eq(fake.hello.app, "first");
}
END_TEST
