/* SPDX-License-Identifier: Apache-2.0 */
/* The ring of events and the cleaning of its texts. */
#include "daemon/core/timeline/timeline.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/unit/alloc_faults.h"
#include "tests/unit/unit.h"

static struct timeline *timeline;

static void setup(void)
{
	ck_assert_int_eq(timeline_create(4, &timeline), 0);
}

static void teardown(void)
{
	timeline_destroy(timeline);
}

static const struct timeline_entry *add_text(const char *text)
{
	timeline_add(timeline, 1, TIMELINE_MARK, TIMELINE_INFO, text, "%s", text);
	return timeline_from(timeline, timeline_last_serial(timeline));
}

FIXTURE(setup, teardown);

START_TEST(entries_are_numbered_and_found)
{
	ck_assert_uint_eq(timeline_last_serial(timeline), 0);
	ck_assert_ptr_null(timeline_from(timeline, 0));
	timeline_add(
		timeline, 7, TIMELINE_APP, TIMELINE_WARNING, "cam", "%s in %s", "died", "infer");
	const struct timeline_entry *entry = timeline_from(timeline, 0);
	ck_assert_ptr_nonnull(entry);
	ck_assert_uint_eq(entry->serial, 1);
	ck_assert_uint_eq(entry->t_ns, 7);
	ck_assert_int_eq(entry->kind, TIMELINE_APP);
	ck_assert_int_eq(entry->level, TIMELINE_WARNING);
	ck_assert_str_eq(entry->subject, "cam");
	ck_assert_str_eq(entry->text, "died in infer");
	ck_assert_ptr_null(timeline_from(timeline, 2));
}
END_TEST

START_TEST(new_memory_is_touched_where_entries_are)
{
	enum { ENTRIES = 1024 };
	static const uint8_t boot[16] = "boot";
	const size_t size = timeline_bytes(ENTRIES), page = (size_t)sysconf(_SC_PAGESIZE);
	unsigned char there[ENTRIES] = {0};
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ck_assert_ptr_ne(memory, MAP_FAILED);
	struct timeline *large;
	size_t touched = 0, pages = (size + page - 1) / page;
	ck_assert_int_eq(timeline_adopt(memory, ENTRIES, boot, &large), 0);
	timeline_add(large, 1, TIMELINE_MARK, TIMELINE_INFO, "a", "b");
	ck_assert_uint_lt(pages, ENTRIES);
	ck_assert_int_eq(mincore(memory, size, there), 0);
	for (size_t i = 0; i < pages; i++) {
		touched += there[i] & 1;
	}
	ck_assert_uint_le(touched, 2);
	timeline_destroy(large);
	munmap(memory, size);
}
END_TEST

START_TEST(the_oldest_entries_go_when_it_is_full)
{
	for (int i = 1; i <= 10; i++) {
		timeline_add(timeline, (uint64_t)i, TIMELINE_MARK, TIMELINE_INFO, "a", "%d", i);
	}
	ck_assert_uint_eq(timeline_last_serial(timeline), 10);
	ck_assert_uint_eq(timeline_from(timeline, 0)->serial, 7);
	ck_assert_uint_eq(timeline_from(timeline, 3)->serial, 7);
	ck_assert_str_eq(timeline_from(timeline, 8)->text, "8");
	ck_assert_uint_eq(timeline_from(timeline, 10)->serial, 10);
	ck_assert_ptr_null(timeline_from(timeline, 11));
	ck_assert_ptr_null(timeline_from(timeline, UINT64_MAX));
}
END_TEST

START_TEST(texts_are_made_harmless)
{
	static const struct {
		const char *in, *out;
	} table[] = {
		{"plain", "plain"}, {"a\nb\tc\x7f", "a?b?c?"}, {"\x1b[31mred", "?[31mred"},
		{"gr\xc3\xbc\xc3\x9f", "gr\xc3\xbc\xc3\x9f"},
		{"\xe2\x82\xac \xf0\x9f\x98\x80", "\xe2\x82\xac \xf0\x9f\x98\x80"},
		{"\xff\xfe", "??"}, {"\xc3", "?"}, {"\xe2\x82", "??"},
		{"\xc0\xaf", "??"},	      /* overlong */
		{"\xe0\x80\xaf", "???"},      /* overlong */
		{"\xed\xa0\x80", "???"},      /* surrogate */
		{"\xf4\x90\x80\x80", "????"}, /* past U+10FFFF */
		{"\xc2\x9b", "?"},	      /* C1 */
		{"a\xe2\x80\xa8z", "a?z"},    /* line separator */
		{"a\xe2\x80\xaez", "a?z"},    /* U+202E turns the text around */
		{"a\xe2\x80\x8bz", "a?z"},    /* U+200B has no width */
	};
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		const struct timeline_entry *entry = add_text(table[i].in);
		ck_assert_str_eq(entry->text, table[i].out);
		ck_assert_str_eq(entry->subject, table[i].out);
	}
}
END_TEST

START_TEST(a_long_text_is_cut_between_characters)
{
	char text[3 * TIMELINE_TEXT];
	for (size_t shift = 0; shift < 4; shift++) {
		memset(text, 'x', shift);
		text[shift] = '\0';
		while (strlen(text) + 4 < sizeof(text)) {
			strcat(text, "\xe2\x82\xac");
		}
		const struct timeline_entry *entry = add_text(text);
		ck_assert_ptr_null(strchr(entry->text, '?'));
		ck_assert_ptr_null(strchr(entry->subject, '?'));
		ck_assert_uint_gt(strlen(entry->text), TIMELINE_TEXT - 4);
	}
}
END_TEST

static uint64_t heard_serial;
static int heard;

static void on_entry(void *ctx, const struct timeline_entry *entry)
{
	ck_assert_ptr_eq(ctx, &heard);
	heard++;
	heard_serial = entry->serial;
}

START_TEST(observers_hear_each_entry)
{
	ck_assert_int_eq(timeline_observe(timeline, on_entry, &heard), 0);
	add_text("a");
	add_text("b");
	ck_assert_int_eq(heard, 2);
	ck_assert_uint_eq(heard_serial, 2);
	timeline_unobserve(timeline, &heard);
	add_text("c");
	ck_assert_int_eq(heard, 2);
	for (int i = 0; i < TIMELINE_OBSERVERS; i++) {
		ck_assert_int_eq(timeline_observe(timeline, on_entry, &heard), 0);
	}
	ck_assert_int_eq(timeline_observe(timeline, on_entry, &heard), -ENOSPC);
}
END_TEST

START_TEST(creation_says_what_failed)
{
	struct timeline *other = NULL;
	ck_assert_int_eq(timeline_create(0, &other), -EINVAL);
	ck_assert_int_eq(timeline_create(SIZE_MAX / 2, &other), -ENOMEM);
	alloc_faults_start(1);
	ck_assert_int_eq(timeline_create(8, &other), -ENOMEM);
	alloc_faults_stop();
	ck_assert_ptr_null(other);
	timeline_destroy(NULL);
}
END_TEST

START_TEST(adding_allocates_nothing)
{
	alloc_faults_start(0);
	for (int i = 0; i < 100; i++) {
		add_text("x");
	}
	ck_assert_uint_eq(alloc_calls, 0);
	alloc_faults_stop();
}
END_TEST

START_TEST(every_kind_and_level_has_its_word)
{
	ck_assert_str_eq(timeline_kind_name(TIMELINE_ALERT), "alert");
	ck_assert_str_eq(timeline_kind_name(TIMELINE_MARK), "mark");
	ck_assert_str_eq(timeline_kind_name(TIMELINE_APP), "app");
	ck_assert_str_eq(timeline_kind_name(TIMELINE_SOURCE), "source");
	ck_assert_str_eq(timeline_kind_name(TIMELINE_CLOCK), "clock");
	ck_assert_str_eq(timeline_kind_name(TIMELINE_DAEMON), "daemon");
	ck_assert_str_eq(timeline_kind_name(TIMELINE_THROTTLE), "throttle");
	ck_assert_str_eq(timeline_level_name(TIMELINE_INFO), "info");
	ck_assert_str_eq(timeline_level_name(TIMELINE_WARNING), "warning");
	ck_assert_str_eq(timeline_level_name(TIMELINE_CRITICAL), "critical");
}
END_TEST

static const uint8_t boot[16] = "this boot";

static void readopt(void *memory, size_t entries)
{
	timeline_destroy(timeline);
	timeline = NULL;
	ck_assert_int_eq(timeline_adopt(memory, entries, boot, &timeline), 0);
}

START_TEST(a_restart_goes_on_where_the_last_one_stopped)
{
	static uint64_t memory[4096];
	for (uint64_t i = 1; i <= 20; i++) {
		readopt(memory, 8);
		ck_assert_uint_eq(timeline_last_serial(timeline), i - 1);
		timeline_add(timeline, i, TIMELINE_MARK, TIMELINE_INFO, "a", "%d", (int)i);
	}
	readopt(memory, 8);
	ck_assert_uint_eq(timeline_from(timeline, 0)->serial, 13);
	ck_assert_str_eq(timeline_from(timeline, 13)->text, "13");
	ck_assert_str_eq(timeline_from(timeline, 20)->text, "20");
	/* another boot, another size: nothing is left */
	static const uint8_t other[16] = "another boot";
	timeline_destroy(timeline);
	ck_assert_int_eq(timeline_adopt(memory, 8, other, &timeline), 0);
	ck_assert_uint_eq(timeline_last_serial(timeline), 0);
	ck_assert_ptr_null(timeline_from(timeline, 0));
	ck_assert_int_eq(timeline_adopt((char *)memory + 4, 8, boot, &timeline), -EINVAL);
	ck_assert_int_eq(timeline_adopt(memory, 0, boot, &timeline), -EINVAL);
}
END_TEST

START_TEST(no_kind_pushes_out_another)
{
	static uint64_t memory[16384];
	static const enum timeline_kind kinds[] = {
		TIMELINE_ALERT, TIMELINE_MARK, TIMELINE_APP, TIMELINE_DAEMON};
	readopt(memory, 40);
	for (int k = 0; k < 4; k++) {
		for (int i = 0; i < 100; i++) {
			timeline_add(timeline, 1, kinds[k], TIMELINE_INFO, "a", "%d", i);
		}
	}
	for (int i = 0; i < 1000; i++) {
		timeline_add(timeline, 1, TIMELINE_MARK, TIMELINE_INFO, "a", "%d", i);
	}
	for (int round = 0; round < 2; round++) { /* also after a restart */
		unsigned count[TIMELINE_KIND_COUNT] = {0};
		const struct timeline_entry *entry;
		for (uint64_t s = 0; (entry = timeline_from(timeline, s)); s = entry->serial + 1) {
			count[entry->kind]++;
		}
		for (int k = 0; k < 4; k++) {
			ck_assert_uint_eq(count[kinds[k]], 10);
		}
		ck_assert_uint_eq(timeline_last_serial(timeline), 1400);
		ck_assert_ptr_null(timeline_back(timeline, 0));
		readopt(memory, 40);
	}
}
END_TEST

START_TEST(damage_costs_what_is_damaged_and_does_no_harm)
{
	static uint64_t memory[4096], damaged[4096];
	readopt(memory, 8);
	for (uint64_t i = 1; i <= 20; i++) {
		timeline_add(timeline, i, TIMELINE_MARK, TIMELINE_INFO, "a", "%d", (int)i);
	}
	size_t bytes = timeline_bytes(8);
	uint64_t seed = 88172645463325252u;
	for (int round = 0; round < 5000; round++) {
		memcpy(damaged, memory, bytes);
		for (int k = 0; k < 1 + round % 50; k++) {
			seed = seed * 6364136223846793005u + 1442695040888963407u;
			((uint8_t *)damaged)[(seed >> 33) % bytes] = (uint8_t)(seed >> 25);
		}
		readopt(damaged, 8);
		uint64_t serial = 0;
		const struct timeline_entry *entry;
		while ((entry = timeline_from(timeline, serial))) {
			ck_assert_uint_lt(strlen(entry->text), TIMELINE_TEXT);
			ck_assert_uint_lt(entry->kind, TIMELINE_KIND_COUNT);
			ck_assert_uint_le(entry->level, TIMELINE_CRITICAL);
			ck_assert_uint_ge(entry->serial, serial);
			ck_assert_ptr_eq(timeline_back(timeline, entry->serial), entry);
			serial = entry->serial + 1;
		}
		ck_assert(serial == 0 || serial == timeline_last_serial(timeline) + 1);
		timeline_add(timeline, 1, TIMELINE_APP, TIMELINE_INFO, "a", "goes on");
	}
	/* an entry that was being written when the process was killed */
	memcpy(damaged, memory, bytes);
	readopt(damaged, 8);
	struct timeline_entry *torn = (struct timeline_entry *)timeline_from(timeline, 20);
	torn->serial = 0;
	readopt(damaged, 8);
	ck_assert_uint_eq(timeline_last_serial(timeline), 19);
	ck_assert_uint_eq(timeline_from(timeline, 0)->serial, 13);
}
END_TEST

START_TEST(boots_before_this_one_have_the_serials_below)
{
	static uint64_t memory[4096];
	static struct timeline_entry past[2 * TIMELINE_PAST];
	memset(memory, 0, sizeof(memory));
	for (size_t i = 0; i < 2 * TIMELINE_PAST; i++) {
		past[i] = (struct timeline_entry){.time_us = (int64_t)i, .boot_seq = 3};
		snprintf(past[i].text, sizeof(past[i].text), "past\n%zu", i);
	}
	readopt(memory, 8);
	timeline_reserve(timeline);
	add_text("now");
	ck_assert_uint_eq(timeline_from(timeline, 0)->serial, TIMELINE_PAST + 1);
	heard = 0;
	ck_assert_int_eq(timeline_observe(timeline, on_entry, &heard), 0);
	ck_assert_int_eq(timeline_set_past(timeline, past, 3), 0);
	ck_assert_int_eq(heard, 0); /* nothing of this is new */
	ck_assert_uint_eq(timeline_from(timeline, 0)->serial, TIMELINE_PAST - 2);
	ck_assert_str_eq(timeline_from(timeline, 0)->text, "past?0");
	ck_assert_int_eq(timeline_from(timeline, TIMELINE_PAST)->time_us, 2);
	ck_assert_uint_eq(timeline_from(timeline, TIMELINE_PAST)->boot_seq, 3);
	ck_assert_str_eq(timeline_from(timeline, TIMELINE_PAST + 1)->text, "now");
	ck_assert_uint_eq(timeline_last_serial(timeline), TIMELINE_PAST + 1);
	/* replaced, and only the newest */
	ck_assert_int_eq(timeline_set_past(timeline, past, 2 * TIMELINE_PAST), 0);
	ck_assert_uint_eq(timeline_from(timeline, 0)->serial, 1);
	ck_assert_int_eq(timeline_from(timeline, 1)->time_us, TIMELINE_PAST);
	for (int i = 0; i < 50; i++) {
		add_text("more");
	}
	/* the ring has gone round: a step over what is lost */
	ck_assert_uint_eq(
		timeline_from(timeline, TIMELINE_PAST + 1)->serial, TIMELINE_PAST + 51 - 7);
	/* a restart goes on with its serials, and the room is still there */
	readopt(memory, 8);
	timeline_reserve(timeline);
	ck_assert_uint_eq(timeline_last_serial(timeline), TIMELINE_PAST + 51);
	ck_assert_int_eq(timeline_set_past(timeline, past, 1), 0);
	ck_assert_uint_eq(timeline_from(timeline, 0)->serial, TIMELINE_PAST);
	ck_assert_int_eq(timeline_set_past(timeline, past, 0), 0);
	ck_assert_uint_eq(timeline_from(timeline, 0)->serial, TIMELINE_PAST + 51 - 7);
	/* a ring without room has none */
	timeline_destroy(timeline);
	ck_assert_int_eq(timeline_create(4, &timeline), 0);
	add_text("first");
	timeline_reserve(timeline);
	ck_assert_int_eq(timeline_set_past(timeline, past, 5), 0);
	ck_assert_str_eq(timeline_from(timeline, 0)->text, "first");
}
END_TEST
