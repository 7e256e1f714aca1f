/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/core/status/counters.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/unit.h"

static struct rejected_attaches refusals;

static void setup(void)
{
	memset(&refusals, 0, sizeof(refusals));
}

FIXTURE(setup, NULL);

START_TEST(one_that_tries_again_is_one_entry)
{
	ck_assert(rejected_attaches_add(&refusals, "cam", 1000, 12, "page size", 5));
	ck_assert(!rejected_attaches_add(&refusals, "cam", 1000, 13, "page size", 9));
	ck_assert_uint_eq(refusals.count, 1);
	ck_assert_uint_eq(refusals.entry[0].count, 2);
	ck_assert_uint_eq(refusals.entry[0].last_ns, 9);
	ck_assert_int_eq(refusals.entry[0].pid, 13);
}
END_TEST

START_TEST(another_reason_user_or_name_is_another_entry)
{
	ck_assert(rejected_attaches_add(&refusals, "cam", 1000, 12, "page size", 1));
	ck_assert(rejected_attaches_add(&refusals, "cam", 1000, 12, "no room", 1));
	ck_assert(rejected_attaches_add(&refusals, "cam", 1001, 12, "page size", 1));
	ck_assert(rejected_attaches_add(&refusals, "", 1000, 12, "page size", 1));
	ck_assert_uint_eq(refusals.count, 4);
}
END_TEST

START_TEST(the_quietest_makes_room)
{
	char name[16];
	for (unsigned i = 0; i < REJECTED_ATTACHES_MAX; i++) {
		snprintf(name, sizeof(name), "app%u", i);
		rejected_attaches_add(&refusals, name, 1000, 12, "page size", 10 + i);
	}
	rejected_attaches_add(&refusals, "app0", 1000, 12, "page size", 100);
	ck_assert(rejected_attaches_add(&refusals, "new", 1000, 12, "page size", 101));
	ck_assert_uint_eq(refusals.count, REJECTED_ATTACHES_MAX);
	ck_assert_str_eq(refusals.entry[0].app, "app0");
	ck_assert_str_eq(refusals.entry[1].app, "new");
}
END_TEST

START_TEST(an_app_that_attached_is_forgotten)
{
	rejected_attaches_add(&refusals, "cam", 1000, 12, "page size", 1);
	rejected_attaches_add(&refusals, "mic", 1000, 12, "page size", 1);
	rejected_attaches_add(&refusals, "cam", 1001, 12, "another user's", 1);
	rejected_attaches_forget(&refusals, "cam", 1000);
	ck_assert_uint_eq(refusals.count, 2);
	ck_assert_str_eq(refusals.entry[0].app, "mic");
	ck_assert_uint_eq(refusals.entry[1].uid, 1001);
}
END_TEST

START_TEST(long_texts_are_cut_and_still_the_same_entry)
{
	char reason[300], app[300];
	memset(reason, 'r', sizeof(reason));
	memset(app, 'a', sizeof(app));
	reason[299] = app[299] = '\0';
	ck_assert(rejected_attaches_add(&refusals, app, 1000, 12, reason, 1));
	ck_assert(!rejected_attaches_add(&refusals, app, 1000, 12, reason, 2));
}
END_TEST
