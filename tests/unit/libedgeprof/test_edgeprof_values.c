/* SPDX-License-Identifier: Apache-2.0 */
/* libedgeprof's numbers: gauges, counters, attributes, marks with memory, costs of a stage. */
#include <math.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>

#include "tests/unit/libedgeprof/edgeprof_case.h"
#include "tests/unit/unit.h"

enum { MIB = 1024 * 1024, KEPT = 64 };

/* The records of a drain, in order. */
struct list {
	struct proto_record r[KEPT];
	size_t count;
};

static void keep(void *ctx, uint32_t slot, const struct proto_record *record)
{
	struct list *l = ctx;
	(void)slot;
	ck_assert_uint_lt(l->count, KEPT);
	l->r[l->count++] = *record;
}

static struct list drain(void)
{
	struct list l = {.count = 0};
	fake_drain(&fake, keep, &l);
	return l;
}

static double number(uint64_t bits)
{
	double value;
	memcpy(&value, &bits, sizeof(value));
	return value;
}

static uint64_t fill_ring(int stage)
{
	uint64_t room = (uint64_t)fake.g.chunks * fake.g.chunk_records;
	for (uint64_t i = 0; i < room; i++) {
		edgeprof_complete(stage, 1, i, EDGEPROF_NO_FRAME);
	}
	return room;
}

TEST_TIMEOUT(60);
FIXTURE(NULL, finish);

START_TEST(gauges_counters_and_attributes_carry_doubles)
{
	attach();
	int stage = edgeprof_stage("infer"), queue = edgeprof_gauge_declare("queue", "frames");
	int boxes = edgeprof_stage("boxes");
	ck_assert_str_eq(proto_map_declarations(fake.map)[queue].unit, "frames");
	uint64_t before = edgeprof_now();
	edgeprof_set_frame(12);
	edgeprof_gauge(queue, -2.5);
	edgeprof_counter(boxes, 3);
	edgeprof_attribute(stage, boxes, NAN);
	struct list l = drain();
	ck_assert_uint_eq(l.count, 3);
	ck_assert_uint_eq(l.r[0].kind, PROTO_KIND_GAUGE);
	ck_assert_uint_eq(l.r[0].stage, (unsigned)queue);
	ck_assert_double_eq(number(l.r[0].value), -2.5);
	ck_assert_uint_ge(l.r[0].start_ns, before);
	ck_assert_uint_eq(l.r[1].kind, PROTO_KIND_COUNTER);
	ck_assert_double_eq(number(l.r[1].value), 3);
	ck_assert_uint_eq(l.r[2].kind, PROTO_KIND_ATTRIBUTE);
	ck_assert_uint_eq(l.r[2].stage, (unsigned)boxes);
	ck_assert_uint_eq(l.r[2].cpu_us, (unsigned)stage);
	ck_assert_uint_eq(l.r[2].frame, 12);
	ck_assert_double_nan(number(l.r[2].value));
	check_identity();
}
END_TEST

START_TEST(numbers_of_nothing_are_lost_and_counted)
{
	attach();
	int stage = edgeprof_stage("infer");
	edgeprof_gauge(-1, 1);
	edgeprof_counter(99, 1);
	edgeprof_attribute(stage, -1, 1);
	edgeprof_attribute(-1, stage, 1);
	edgeprof_mark(NULL);
	edgeprof_mark_with("", NULL, 0);
	edgeprof_end_failed(edgeprof_begin(-1));
	edgeprof_deadline(-1, 5);
	ck_assert_uint_eq(((struct proto_map_header *)fake.map)->lost, 8);
	ck_assert_uint_eq(drain().count, 0);
	check_identity();
}
END_TEST

/* covers G0.9 */
START_TEST(a_mark_measures_the_memory_of_its_moment)
{
	attach();
	edgeprof_set_frame(7);
	errno = 4711;
	edgeprof_mark("before");
	void *model = mmap(NULL, 32 * MIB, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	ck_assert_ptr_ne(model, MAP_FAILED);
	edgeprof_mark("loaded");
	munmap(model, 32 * MIB);
	edgeprof_mark("after");
	ck_assert_int_eq(errno, 4711);
	struct list l = drain();
	ck_assert_uint_eq(l.count, 6);
	for (size_t i = 0; i < l.count; i += 2) {
		const struct proto_record *mark = &l.r[i], *memory = &l.r[i + 1];
		ck_assert_uint_eq(mark->kind, PROTO_KIND_MARK);
		ck_assert_uint_eq(mark->frame, 7);
		ck_assert_uint_eq(memory->kind, PROTO_KIND_MARK_MEMORY);
		ck_assert_uint_eq(memory->stage, mark->stage);
		ck_assert_uint_eq(memory->start_ns, mark->start_ns);
		ck_assert_uint_ge(memory->value, mark->value); /* virtual, resident */
		ck_assert_uint_ge(memory->frame, mark->value); /* peak */
	}
	ck_assert_uint_ge(l.r[2].value, l.r[0].value + 30 * MIB);
	ck_assert_uint_ge(l.r[3].value, l.r[1].value + 32 * MIB);
	ck_assert_uint_le(l.r[4].value, l.r[2].value - 30 * MIB);
	/* the peak stays, as far as the kernel's counters of many CPUs agree */
	ck_assert_uint_ge(l.r[5].frame, l.r[2].value - MIB);
	check_identity();
}
END_TEST

START_TEST(values_of_a_mark_have_its_moment_and_its_label)
{
	attach();
	edgeprof_mark_with("model loaded",
		(const struct edgeprof_value[]){{"file_size_mb", 13.5}, {"num_threads", 4}}, 2);
	struct list l = drain();
	ck_assert_uint_eq(l.count, 4);
	const struct proto_declaration *d = proto_map_declarations(fake.map);
	ck_assert_str_eq(d[l.r[0].stage].name, "model loaded");
	for (size_t i = 2; i < 4; i++) {
		ck_assert_uint_eq(l.r[i].kind, PROTO_KIND_ATTRIBUTE);
		ck_assert_uint_eq(l.r[i].cpu_us, l.r[0].stage);
		ck_assert_uint_eq(l.r[i].start_ns, l.r[0].start_ns);
	}
	ck_assert_str_eq(d[l.r[2].stage].name, "file_size_mb");
	ck_assert_double_eq(number(l.r[2].value), 13.5);
	ck_assert_str_eq(d[l.r[3].stage].name, "num_threads");
	edgeprof_mark_with("again", (const struct edgeprof_value[]){{NULL, 1}, {"last", 2}}, 2);
	l = drain();
	ck_assert_uint_eq(l.count, 3);
	ck_assert_str_eq(d[l.r[2].stage].name, "last");
	ck_assert_uint_eq(fake_count(&fake).dropped, 1);
	check_identity();
}
END_TEST

START_TEST(the_label_of_a_mark_is_text)
{
	static const struct {
		const char *label, *kept;
	} labels[] = {
		{"plain", "plain"},
		{"Größe \"x\"@gpu\t", "Größe \"x\"@gpu\t"},
		{"a label of forty-eight bytes and not one more...", /* the most there is room for
								      */
			"a label of forty-eight bytes and not one more..."},
		{"cut in front of the last character, not within ü", /* 49 bytes */
			"cut in front of the last character, not within "},
		{"\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80"
		 "\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80"
		 "\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80",
			"\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80"
			"\x80"
			"\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80"
			"\x80"
			"\x80\x80\x80\x80\x80\x80\x80"},
	};
	attach();
	const struct proto_declaration *d = proto_map_declarations(fake.map);
	int stage = edgeprof_stage("a b");
	ck_assert_int_eq(edgeprof_stage("plain"), stage + 1);
	for (size_t i = 0; i < sizeof(labels) / sizeof(labels[0]); i++) {
		edgeprof_mark(labels[i].label);
		edgeprof_mark(labels[i].label);
		struct list l = drain();
		ck_assert_uint_eq(l.count, 4);
		ck_assert_str_eq(d[l.r[0].stage].name, labels[i].kept);
		ck_assert_str_eq(d[l.r[0].stage].unit, "");
		ck_assert_uint_eq(l.r[2].stage, l.r[0].stage);
	}
	edgeprof_mark("a b"); /* beside the stage, whose name is cleaned */
	struct list l = drain();
	ck_assert_str_eq(d[stage].name, "a_b");
	ck_assert_str_eq(d[l.r[0].stage].name, "a b");
	ck_assert_int_eq(edgeprof_stage("a b"), stage);
	check_identity();
}
END_TEST

START_TEST(a_mark_without_descriptors_has_no_memory)
{
	attach();
	struct rlimit limit;
	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
	struct rlimit none = {.rlim_cur = 3, .rlim_max = limit.rlim_max};
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
	edgeprof_mark("before");
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
	struct list l = drain();
	ck_assert_uint_eq(l.count, 1);
	ck_assert_uint_eq(l.r[0].kind, PROTO_KIND_MARK);
	ck_assert_uint_eq(l.r[0].value, 0);
	check_identity();
}
END_TEST

START_TEST(a_mark_that_finds_no_room_takes_all_its_records_along)
{
	attach();
	fill_ring(edgeprof_stage("infer"));
	uint64_t dropped = fake_count(&fake).dropped;
	edgeprof_mark_with("late", (const struct edgeprof_value[]){{"x", 1}}, 1);
	ck_assert_uint_eq(fake_count(&fake).dropped, dropped + 3);
	check_identity();
}
END_TEST

START_TEST(a_failed_stage_says_so)
{
	attach();
	int stage = edgeprof_stage("infer");
	edgeprof_token outer = edgeprof_begin(stage), inner = edgeprof_begin(stage);
	edgeprof_end_failed(inner);
	edgeprof_end_failed(inner);
	edgeprof_end(outer);
	struct list l = drain();
	ck_assert_uint_eq(l.count, 2);
	ck_assert_uint_eq(l.r[0].flags,
		PROTO_RECORD_FAILED | PROTO_RECORD_NESTED | 1 << PROTO_RECORD_DEPTH_SHIFT);
	ck_assert_uint_eq(l.r[1].flags, 0);
	ck_assert_uint_eq(proto_map_slots(fake.map, &fake.g)->depth, 0);
	check_identity();
}
END_TEST

/* covers G3.12 */
START_TEST(depth_saturates_at_fifteen)
{
	attach();
	int stage = edgeprof_stage("infer");
	edgeprof_token deep[40];
	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < 40; i++) {
			deep[i] = edgeprof_begin(stage);
			ck_assert_uint_eq(
				proto_map_slots(fake.map, &fake.g)->depth, (unsigned)i + 1);
		}
		/* the second time the outermost end forgets all that is inside */
		for (int i = round ? 3 : 39; i >= 0; i--) {
			edgeprof_end(deep[i]);
		}
		edgeprof_end(deep[39]);
		struct list l = drain();
		ck_assert_uint_eq(l.count, round ? 4 : 40);
		for (unsigned i = 0; i < l.count; i++) {
			unsigned depth = (unsigned)l.count - 1 - i;
			ck_assert_uint_eq(
				l.r[i].flags >> PROTO_RECORD_DEPTH_SHIFT, depth < 15 ? depth : 15);
			ck_assert_uint_eq(l.r[i].flags & PROTO_RECORD_NESTED, depth > 0);
		}
		ck_assert_uint_eq(proto_map_slots(fake.map, &fake.g)->depth, 0);
	}
	check_identity();
}
END_TEST

/* Works until the thread has had so much CPU; that of the process is at least as much. */
static void burn(uint64_t ns)
{
	struct timespec a, b;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &a);
	do {
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &b);
	} while ((uint64_t)(b.tv_sec - a.tv_sec) * 1000000000u + (uint64_t)b.tv_nsec -
			 (uint64_t)a.tv_nsec <
		 ns);
}

/* covers G1.1 */
START_TEST(cpu_time_is_measured_where_it_is_asked_for)
{
	attach();
	int cheap = edgeprof_stage("publish"), stage = edgeprof_stage("infer");
	edgeprof_stage_options(stage, EDGEPROF_CPU_TIME);
	edgeprof_token t = edgeprof_begin(stage);
	edgeprof_end(edgeprof_begin(cheap));
	burn(3000000);
	edgeprof_end(t);
	struct list l = drain();
	ck_assert_uint_eq(l.count, 2);
	ck_assert_uint_eq(l.r[0].cpu_us, PROTO_CPU_NOT_MEASURED);
	ck_assert_uint_eq(l.r[1].kind, PROTO_KIND_COMPLETE);
	ck_assert_uint_ge(l.r[1].cpu_us, 3000);
	ck_assert_uint_le(l.r[1].cpu_us, l.r[1].value / 1000 + 1000);
	edgeprof_stage_options(stage, 0);
	edgeprof_end(edgeprof_begin(stage));
	ck_assert_uint_eq(drain().r[0].cpu_us, PROTO_CPU_NOT_MEASURED);
	edgeprof_stage_options(-1, EDGEPROF_CPU_TIME);
	check_identity();
}
END_TEST

/* covers G2.3 */
START_TEST(a_cost_record_comes_right_before_its_stage)
{
	attach();
	int stage = edgeprof_stage("load"), inner = edgeprof_stage("read");
	edgeprof_stage_options(stage, EDGEPROF_PROCESS_CPU | EDGEPROF_RSS);
	edgeprof_token t = edgeprof_begin(stage);
	void *model = mmap(NULL, 16 * MIB, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	ck_assert_ptr_ne(model, MAP_FAILED);
	edgeprof_stage_options(inner, EDGEPROF_PROCESS_CPU);
	edgeprof_token nested = edgeprof_begin(inner);
	burn(2000000);
	edgeprof_end_failed(nested);
	edgeprof_end(t);
	struct list l = drain();
	ck_assert_uint_eq(l.count, 4);
	for (size_t i = 0; i < 4; i += 2) {
		ck_assert_uint_eq(l.r[i].kind, PROTO_KIND_COST);
		ck_assert_uint_eq(l.r[i + 1].kind, PROTO_KIND_COMPLETE);
		ck_assert_uint_eq(l.r[i].stage, l.r[i + 1].stage);
		ck_assert_uint_eq(l.r[i].start_ns, l.r[i + 1].start_ns);
		ck_assert_uint_eq(l.r[i + 1].cpu_us, PROTO_CPU_NOT_MEASURED);
		ck_assert_uint_ge(l.r[i].value, 2000000);
		ck_assert_uint_ne(l.r[i].value, UINT64_MAX);
	}
	ck_assert_int_eq((int64_t)l.r[0].frame, INT64_MIN);
	ck_assert(l.r[1].flags & PROTO_RECORD_FAILED);
	ck_assert_int_ge((int64_t)l.r[2].frame, 15 * MIB);
	munmap(model, 16 * MIB);
	edgeprof_stage_options(stage, EDGEPROF_RSS);
	edgeprof_end(edgeprof_begin(stage));
	ck_assert_uint_eq(drain().r[0].value, UINT64_MAX);
	check_identity();
}
END_TEST

START_TEST(a_cost_without_room_is_a_counted_drop)
{
	attach();
	int stage = edgeprof_stage("load");
	edgeprof_stage_options(stage, EDGEPROF_RSS);
	fill_ring(stage);
	uint64_t dropped = fake_count(&fake).dropped;
	edgeprof_end(edgeprof_begin(stage));
	ck_assert_uint_eq(fake_count(&fake).dropped, dropped + 2);
	check_identity();
}
END_TEST

START_TEST(without_a_daemon_all_calls_are_counted_once)
{
	setenv("EDGEPROF_RUNTIME_DIR", "/nonexistent", 1);
	ck_assert_int_eq(edgeprof_init("unit test"), 0);
	int stage = edgeprof_stage("infer");
	edgeprof_stage_options(stage, EDGEPROF_CPU_TIME);
	struct edgeprof_counts c;
	for (int i = 0; i < 100; i++) {
		edgeprof_gauge(stage, 1);
		edgeprof_counter(stage, 1);
		edgeprof_attribute(stage, stage, 1);
		edgeprof_mark_with("m", (const struct edgeprof_value[]){{"x", 1}}, 1);
		edgeprof_end(edgeprof_begin(stage));
		edgeprof_end_failed(edgeprof_begin(stage));
	}
	edgeprof_counts(&c);
	ck_assert_uint_eq(c.unattached, 600);
}
END_TEST

/* Who takes a function's address gets the library's, not the header's. */
START_TEST(functions_have_addresses_too)
{
	edgeprof_token (*volatile begin)(int) = edgeprof_begin;
	void (*volatile end)(edgeprof_token) = edgeprof_end;
	int stage = edgeprof_stage("infer");
	struct edgeprof_counts c;
	attach();
	end(begin(stage));
	ck_assert_uint_eq(drain().count, 1);
	edgeprof_shutdown();
	end(begin(stage));
	edgeprof_counts(&c);
	ck_assert_uint_eq(c.sent, 1);
	ck_assert_uint_eq(c.unattached, 0);
}
END_TEST
