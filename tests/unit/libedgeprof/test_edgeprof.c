/* SPDX-License-Identifier: Apache-2.0 */
/* libedgeprof as its header tells it, read back by a fake daemon (tests/unit/fake_daemon.h). */
#include <fcntl.h>

#include "tests/unit/libedgeprof/edgeprof_case.h"
#include "tests/unit/unit.h"

TEST_TIMEOUT(60);
FIXTURE(NULL, finish);

START_TEST(mapping_is_sealed_whole_and_described)
{
	int stage = 0;
	ck_assert_int_eq(fake_start(&fake), 0);
	stage = edgeprof_stage_declare("infer", "model", "gpu", 33000000);
	ck_assert_int_eq(stage, 0);
	ck_assert_int_eq(edgeprof_init("unit test"), 0);
	ck_assert_int_eq(fake_accept(&fake), 0);
	ck_assert_uint_eq(fake.hello.magic, PROTO_HELLO_MAGIC);
	ck_assert_str_eq(fake.hello.app, "unit_test");
	ck_assert_uint_eq(fake.hello.mapping_size, PROTO_MAP_DEFAULT_SIZE);
	ck_assert_uint_eq(fake.hello.page_size, (uint32_t)sysconf(_SC_PAGESIZE));
	ck_assert_uint_le(edgeprof_now() - fake.hello.mono_ns, 1000000000u);
	int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
	ck_assert_int_eq(fcntl(fake.memfd, F_GET_SEALS) & seals, seals);
	ck_assert_int_lt(ftruncate(fake.memfd, 4096), 0);
	struct stat st;
	ck_assert_int_eq(fstat(fake.memfd, &st), 0);
	ck_assert_int_eq(st.st_size, PROTO_MAP_DEFAULT_SIZE);
	ck_assert_int_ge(st.st_blocks * 512, st.st_size);
	const struct proto_map_header *header = fake.map;
	ck_assert_uint_eq(header->magic, PROTO_MAP_MAGIC);
	ck_assert_uint_eq(header->major, PROTO_MAP_MAJOR);
	ck_assert_uint_eq(header->size, PROTO_MAP_DEFAULT_SIZE);
	ck_assert_uint_eq(header->declarations, 1);
	const struct proto_declaration *d = proto_map_declarations(fake.map);
	ck_assert_str_eq(d[0].name, "infer");
	ck_assert_str_eq(d[0].category, "model");
	ck_assert_str_eq(d[0].unit, "gpu");
	ck_assert_uint_eq(d[0].deadline_ns, 33000000);
	ck_assert_int_eq(edgeprof_stage("publish"), 1);
	ck_assert_uint_eq(header->declarations, 2);
	ck_assert_str_eq(d[1].name, "publish");
}
END_TEST

START_LOOP_TEST(mapping_size_follows_the_environment, 0, 6)
{
	static const struct {
		const char *text;
		uint32_t size;
	} cases[] = {{"65536", 65536}, {"1048576", 1048576}, {"65537", PROTO_MAP_DEFAULT_SIZE},
		{"", PROTO_MAP_DEFAULT_SIZE}, {"lots", PROTO_MAP_DEFAULT_SIZE},
		{"4295032832", PROTO_MAP_DEFAULT_SIZE}};
	setenv("EDGEPROF_MAPPING_SIZE", cases[_i].text, 1);
	attach();
	ck_assert_uint_eq(fake.hello.mapping_size, cases[_i].size);
}
END_TEST

START_TEST(names_are_cleaned_unique_and_found_again)
{
	attach();
	int a = edgeprof_stage("a b"), b = edgeprof_stage("a_b"), c = edgeprof_stage("infer@gpu");
	ck_assert_int_ne(a, b);
	ck_assert_int_eq(edgeprof_stage("a b"), a);
	ck_assert_int_eq(edgeprof_stage("a_b"), b);
	const struct proto_declaration *d = proto_map_declarations(fake.map);
	ck_assert_str_eq(d[a].name, "a_b");
	ck_assert_str_eq(d[b].name, "a_b.2");
	ck_assert_str_eq(d[c].unit, "gpu");
	ck_assert_int_eq(edgeprof_stage(NULL), -1);
	ck_assert_int_eq(edgeprof_stage(""), -1);
}
END_TEST

START_TEST(full_table_is_minus_one_and_its_events_are_counted)
{
	attach();
	char name[16];
	for (int i = 0; i < PROTO_DECLARATIONS; i++) {
		snprintf(name, sizeof(name), "s%d", i);
		ck_assert_int_eq(edgeprof_stage(name), i);
	}
	ck_assert_int_eq(edgeprof_stage("one more"), -1);
	edgeprof_end(edgeprof_begin(-1));
	edgeprof_begin_id(-1, 1);
	edgeprof_end(edgeprof_begin(PROTO_DECLARATIONS));
	edgeprof_mark("one more");
	ck_assert_uint_eq(fake_count(&fake).dropped, 4);
	ck_assert_uint_eq(fake_drain(&fake, NULL, NULL), 0);
	check_identity();
}
END_TEST

/* covers G4.11 */
START_TEST(every_kind_arrives_as_told)
{
	attach();
	int stage = edgeprof_stage("infer");
	struct seen s = {0};
	edgeprof_begin_id(stage, 77);
	fake_drain(&fake, see, &s);
	ck_assert_uint_eq(s.last.kind, PROTO_KIND_BEGIN);
	ck_assert_uint_eq(s.last.value, 77);
	edgeprof_end_id(stage, 77);
	fake_drain(&fake, see, &s);
	ck_assert_uint_eq(s.last.kind, PROTO_KIND_END);
	edgeprof_complete(stage, 1000, 250, 9);
	fake_drain(&fake, see, &s);
	ck_assert_uint_eq(s.last.kind, PROTO_KIND_COMPLETE);
	ck_assert_uint_eq(s.last.start_ns, 1000);
	ck_assert_uint_eq(s.last.value, 250);
	ck_assert_uint_eq(s.last.frame, 9);
	ck_assert_uint_eq(s.last.cpu_us, PROTO_CPU_NOT_MEASURED);
	uint64_t before = edgeprof_now();
	edgeprof_frame_begin(42);
	edgeprof_end(edgeprof_begin(stage));
	fake_drain(&fake, see, &s);
	ck_assert_uint_eq(s.last.frame, 42);
	edgeprof_frame_end();
	fake_drain(&fake, see, &s);
	ck_assert_uint_eq(s.last.kind, PROTO_KIND_FRAME);
	ck_assert_uint_eq(s.last.frame, 42);
	ck_assert_uint_ge(s.last.start_ns, before);
	ck_assert_uint_le(s.last.start_ns + s.last.value, edgeprof_now());
	edgeprof_frame_end();
	edgeprof_tick();
	fake_drain(&fake, see, &s);
	ck_assert_uint_eq(s.last.value, 0);
	ck_assert_uint_eq(s.last.frame, PROTO_NO_FRAME);
	edgeprof_frame(43, before);
	fake_drain(&fake, see, &s);
	ck_assert_uint_eq(s.last.frame, 43);
	ck_assert_uint_gt(s.last.value, 0);
	edgeprof_mark("before model load");
	fake_drain(&fake, see, &s);
	ck_assert_uint_eq(s.last_kind[PROTO_KIND_MARK], 1);
	ck_assert_str_eq(proto_map_declarations(fake.map)[s.last.stage].name, "before model load");
	ck_assert_uint_eq(s.records, 9);
	check_identity();
}
END_TEST

static void check_measured(const int *stages, const bool *measured, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct seen s = {0};
		edgeprof_end(edgeprof_begin(stages[i]));
		fake_drain(&fake, see, &s);
		ck_assert_uint_eq(s.records, 1);
		ck_assert_int_eq(s.last.stage, stages[i]);
		ck_assert_int_eq(s.last.cpu_us != PROTO_CPU_NOT_MEASURED, measured[i]);
	}
}

START_TEST(options_of_one_stage_leave_the_others_alone)
{
	int stages[5];
	attach();
	for (int i = 0; i < 4; i++) {
		char name[] = {(char)('a' + i), '\0'};
		stages[i] = edgeprof_stage(name);
	}
	check_measured(stages, (bool[]){false, false, false, false}, 4);
	edgeprof_stage_options(stages[3], EDGEPROF_CPU_TIME);
	edgeprof_stage_options(stages[1], EDGEPROF_CPU_TIME);
	check_measured(stages, (bool[]){false, true, false, true}, 4);
	stages[4] = edgeprof_stage("new");
	check_measured(stages, (bool[]){false, true, false, true, false}, 5);
	edgeprof_stage_options(stages[1], 0);
	check_measured(stages, (bool[]){false, false, false, true, false}, 5);
	edgeprof_stage_options(stages[4], EDGEPROF_CPU_TIME);
	check_measured(stages, (bool[]){false, false, false, true, true}, 5);
}
END_TEST

/* Of what the cores exchange a stage touches its record and one line of its slot. */
START_TEST(a_stage_writes_one_cache_line_of_its_slot)
{
	attach();
	int stage = edgeprof_stage("infer");
	edgeprof_end(edgeprof_begin(stage)); /* takes the slot and a chunk */
	const size_t line = 64;
	const char *slot = (const char *)proto_map_slots(fake.map, &fake.g);
	ck_assert_uint_eq(((uintptr_t)slot - (uintptr_t)fake.map) % line, 0);
	struct proto_slot before, after;
	memcpy(&before, slot, sizeof(before));
	edgeprof_set_frame(5);
	edgeprof_token token = edgeprof_begin(stage);
	memcpy(&after, slot, sizeof(after));
	ck_assert_int_ne(memcmp(&before, &after, line), 0);
	ck_assert_int_eq(
		memcmp((char *)&before + line, (char *)&after + line, sizeof(after) - line), 0);
	edgeprof_end(token);
	memcpy(&after, slot, sizeof(after));
	ck_assert_uint_eq(after.head, 2);
	ck_assert_int_eq(
		memcmp((char *)&before + line, (char *)&after + line, sizeof(after) - line), 0);
}
END_TEST

START_TEST(tokens_nest_truncate_and_forgive)
{
	attach();
	int stage = edgeprof_stage("infer");
	const struct proto_slot *slot = proto_map_slots(fake.map, &fake.g);
	struct seen s = {0};
	edgeprof_set_frame(5);
	edgeprof_token outer = edgeprof_begin(stage);
	ck_assert_uint_eq(slot->depth, 1);
	ck_assert_uint_eq(slot->open[0].frame, 5);
	ck_assert_uint_eq(slot->open[0].start_ns, outer.start_ns);
	edgeprof_token inner = edgeprof_begin(stage);
	edgeprof_token never = edgeprof_begin(stage);
	edgeprof_end(inner);
	fake_drain(&fake, see, &s);
	ck_assert_uint_eq(s.last.flags, PROTO_RECORD_NESTED | 1 << PROTO_RECORD_DEPTH_SHIFT);
	ck_assert_uint_eq(slot->depth, 1);
	edgeprof_end(inner); /* twice */
	edgeprof_end(never); /* truncated */
	edgeprof_end(outer);
	fake_drain(&fake, see, &s);
	ck_assert_uint_eq(s.records, 2);
	ck_assert_uint_eq(s.last.flags, 0);
	ck_assert_uint_eq(s.last.frame, 5);
	ck_assert_uint_eq(slot->depth, 0);
	edgeprof_token deep[20];
	for (int i = 0; i < 20; i++) {
		deep[i] = edgeprof_begin(stage);
	}
	for (int i = 19; i >= 0; i--) {
		edgeprof_end(deep[i]);
	}
	ck_assert_uint_eq(fake_drain(&fake, NULL, NULL), 20);
	{
		EDGEPROF_SCOPE(stage);
	}
	ck_assert_uint_eq(fake_drain(&fake, NULL, NULL), 1);
	check_identity();
}
END_TEST

/* A place asks three times, and then its events are counted as dropped without a lookup. */
START_TEST(a_scope_without_a_free_name_is_counted)
{
	char name[16];
	attach();
	for (int i = 0; i < PROTO_DECLARATIONS; i++) {
		snprintf(name, sizeof(name), "s%d", i);
		ck_assert_int_eq(edgeprof_stage(name), i);
	}
	for (int i = 0; i < 10; i++) {
		EDGEPROF_SCOPE("one more");
	}
	ck_assert_uint_eq(fake_drain(&fake, NULL, NULL), 0);
	ck_assert_uint_eq(fake_count(&fake).dropped, 10);
	check_identity();
}
END_TEST

START_TEST(disabled_is_silent)
{
	setenv("EDGEPROF_DISABLE", "1", 1);
	ck_assert_int_eq(fake_start(&fake), 0);
	ck_assert_int_eq(edgeprof_init(NULL), 0);
	int stage = edgeprof_stage("infer");
	for (int i = 0; i < 1000; i++) {
		edgeprof_end(edgeprof_begin(stage));
	}
	struct pollfd p = {.fd = fake.listener, .events = POLLIN};
	ck_assert_int_eq(poll(&p, 1, 0), 0);
	struct edgeprof_counts c;
	edgeprof_counts(&c);
	ck_assert_uint_eq(c.unattached + c.sent + c.dropped, 0);
}
END_TEST

START_TEST(shutdown_stops_recording)
{
	attach();
	int stage = edgeprof_stage("infer");
	edgeprof_end(edgeprof_begin(stage));
	edgeprof_shutdown();
	edgeprof_end(edgeprof_begin(stage));
	edgeprof_tick();
	edgeprof_end(edgeprof_begin(-1));
	ck_assert_uint_eq(fake_count(&fake).sent, 1);
	edgeprof_shutdown();
}
END_TEST

/* covers G0.7 */
START_TEST(print_tells_stage_ends_without_a_daemon)
{
	setenv("EDGEPROF_PRINT", "1", 1);
	setenv("EDGEPROF_RUNTIME_DIR", "/nonexistent", 1);
	ck_assert_int_eq(edgeprof_init("unit test"), 0);
	int pipes[2];
	ck_assert_int_eq(pipe(pipes), 0);
	dup2(pipes[1], STDERR_FILENO);
	int stage = edgeprof_stage("infer");
	edgeprof_end(edgeprof_begin(stage));
	{
		EDGEPROF_SCOPE(stage);
	}
	char text[128] = "", word[3];
	unsigned a, b, c, d;
	ck_assert_int_gt(read(pipes[0], text, sizeof(text) - 1), 0);
	ck_assert_msg(
		sscanf(text, "[infer] %u.%2u%2s\n[infer] %u.%2ums", &a, &b, word, &c, &d) == 5,
		"%s", text);
	ck_assert_str_eq(word, "ms");
}
END_TEST
