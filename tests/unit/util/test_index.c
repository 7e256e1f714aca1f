/* SPDX-License-Identifier: Apache-2.0 */
/* Slots are found by their keys, also after others came and went, and when hashes are the same. */
#include "daemon/util/index.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "tests/unit/alloc_faults.h"
#include "tests/unit/unit.h"

enum { NAMES = 2000 };

static char name[NAMES][16];

static bool is_name(const void *table, uint32_t slot, const void *key)
{
	(void)table;
	return strcmp(name[slot], key) == 0;
}

static uint32_t find(const struct index *index, uint32_t hash, const char *key)
{
	return index_find(index, hash, is_name, NULL, key);
}

static void make_names(void)
{
	for (int i = 0; i < NAMES; i++) {
		snprintf(name[i], sizeof(name[i]), "name%d", i);
	}
}

START_TEST(each_key_leads_to_its_slot_while_others_come_and_go)
{
	struct index index = {0};
	make_names();
	ck_assert_uint_eq(find(&index, 1, "nothing"), INDEX_NONE);
	for (uint32_t i = 0; i < NAMES; i++) {
		ck_assert_int_eq(index_add(&index, hash_text(name[i]), i), 0);
	}
	for (uint32_t i = 0; i < NAMES; i += 3) {
		index_remove(&index, hash_text(name[i]), i);
		index_remove(&index, hash_text(name[i]), i); /* is not there any more */
	}
	for (uint32_t i = 0; i < NAMES; i++) {
		uint32_t wanted = i % 3 == 0 ? INDEX_NONE : i;
		ck_assert_uint_eq(find(&index, hash_text(name[i]), name[i]), wanted);
	}
	ck_assert_uint_eq(index.count, NAMES - (NAMES + 2) / 3);
	index_finish(&index);
}
END_TEST

START_TEST(equal_hashes_are_told_apart_by_the_key)
{
	struct index index = {0};
	make_names();
	for (uint32_t i = 0; i < 100; i++) {
		ck_assert_int_eq(index_add(&index, 15, i), 0);
	}
	index_remove(&index, 15, 50);
	for (uint32_t i = 0; i < 100; i++) {
		ck_assert_uint_eq(find(&index, 15, name[i]), i == 50 ? INDEX_NONE : i);
	}
	index_finish(&index);
}
END_TEST

START_TEST(without_memory_it_stays_as_it_was)
{
	struct index index = {0};
	make_names();
	ck_assert_int_eq(index_reserve(&index, 8), 0);
	alloc_faults_start(1);
	for (uint32_t i = 0; i < 8; i++) {
		ck_assert_int_eq(index_add(&index, hash_text(name[i]), i), 0);
	}
	ck_assert_int_eq(index_add(&index, hash_text(name[8]), 8), -ENOMEM);
	alloc_faults_stop();
	ck_assert_uint_eq(find(&index, hash_text(name[7]), name[7]), 7);
	ck_assert_uint_eq(find(&index, hash_text(name[8]), name[8]), INDEX_NONE);
	index_finish(&index);
}
END_TEST
