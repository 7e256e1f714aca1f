/* SPDX-License-Identifier: Apache-2.0 */
/* What users hold is found by uid; who holds nothing gives his place. */
#include "daemon/util/accounts.h"
#include "tests/unit/unit.h"

static struct accounts *accounts;

static void setup(void)
{
	ck_assert_int_eq(accounts_create(&accounts), 0);
}

static void teardown(void)
{
	accounts_destroy(accounts);
}

FIXTURE(setup, teardown);

START_TEST(each_user_has_one_account)
{
	struct account *a = accounts_of(accounts, 1000, 1);
	struct account *b = accounts_of(accounts, 0, 1);
	ck_assert_ptr_ne(a, b);
	a->api_connections = 3;
	ck_assert_ptr_eq(accounts_of(accounts, 1000, 2), a);
	ck_assert_uint_eq(a->api_connections, 3);
}
END_TEST

START_TEST(a_user_who_holds_nothing_gives_way_the_longest_unused_first)
{
	for (uid_t uid = 0; uid < ACCOUNTS_MAX; uid++) {
		struct account *account = accounts_of(accounts, uid, 100 - uid % 100);
		account->descriptors = uid % 2;
		account->marks_due_ns = uid;
	}
	struct account *fresh = accounts_of(accounts, 5000, 200);
	ck_assert_uint_eq(fresh->marks_due_ns, 0);
	/* of even uids, which hold nothing, 98 and 198 were used at 2 */
	ck_assert_uint_eq(accounts_of(accounts, 198, 200)->marks_due_ns, 198);
	ck_assert_uint_eq(accounts_of(accounts, 98, 200)->marks_due_ns, 0);
}
END_TEST

START_TEST(users_who_hold_something_keep_their_places)
{
	for (uid_t uid = 0; uid < ACCOUNTS_MAX; uid++) {
		accounts_of(accounts, uid, 1)->api_bytes = 1;
	}
	ck_assert_ptr_null(accounts_of(accounts, 5000, 2));
	accounts_of(accounts, 77, 2)->api_bytes = 0;
	ck_assert_ptr_nonnull(accounts_of(accounts, 5000, 2));
	ck_assert_uint_eq(accounts_of(accounts, 78, 2)->api_bytes, 1);
}
END_TEST

START_TEST(a_user_may_have_half_of_what_the_others_leave)
{
	ck_assert(accounts_fair(120, 59, 59, 1));
	ck_assert(!accounts_fair(120, 60, 60, 1));
	ck_assert(accounts_fair(120, 29, 89, 1));
	ck_assert(!accounts_fair(120, 30, 90, 1));
	ck_assert(accounts_fair(120, 0, 119, 1)); /* the last one */
	ck_assert(!accounts_fair(120, 0, 120, 1));
	ck_assert(!accounts_fair(120, 0, 130, 1));
}
END_TEST

START_TEST(a_trusted_user_may_have_all_and_an_eighth_on_top_is_for_others)
{
	static const struct {
		uint64_t max, own, others, want;
		bool trusted, fits;
	} table[] = {
		{8, 3, 0, 1, false, true},
		{8, 4, 0, 1, false, false},
		{8, 1, 4, 1, false, true},
		{8, 2, 4, 1, false, false},
		{8, 0, 7, 1, false, true}, /* the last one is still free for one user */
		{8, 0, 8, 1, false, true}, /* on top */
		{8, 0, 9, 1, false, false},
		{64, 31, 0, 1, false, true},
		{64, 32, 0, 1, false, false}, /* what is on top is for who finds all taken */
		{64, 0, 64, 4, false, true},
		{64, 4, 64, 1, false, false},
		{64, 3, 68, 1, false, false},
		{64, 1, 68, 1, false, true},
		{64, 0, 71, 1, false, true},
		{64, 0, 72, 1, false, false},
		{64, 63, 0, 1, true, true},
		{64, 64, 0, 1, true, false},
		{64, 63, 8, 1, true, true},
		{64, 40, 31, 1, true, true},
		{64, 40, 32, 1, true, false},
		{64, 0, 72, 1, true, false},
		{16 << 20, 16 << 20, 0, 1, true, false},
		{16 << 20, 15 << 20, 1 << 20, 1 << 20, true, true},
	};
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		ck_assert_msg(
			accounts_fits(table[i].max, table[i].own, table[i].own + table[i].others,
				table[i].want, table[i].trusted) == table[i].fits,
			"row %zu", i);
	}
}
END_TEST
