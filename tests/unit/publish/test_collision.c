/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/publish/mqtt/collision.h"

#include "tests/unit/unit.h"

#define S UINT64_C(1000000000)
#define MAX_NS (60 * S)

START_TEST(an_outage_is_no_collision)
{
	struct collision collision = {0};
	for (int i = 0; i < 100; i++) { /* a broker that restarts and is away meanwhile */
		collision_ended(&collision, SESSION_LOST, S, MAX_NS);
		collision_ended(&collision, SESSION_FAILED, 0, MAX_NS);
		ck_assert(!collision_asks(&collision));
		ck_assert(!collision.taken);
	}
}
END_TEST

START_TEST(losses_in_a_row_are_asked_about_and_the_answer_believed)
{
	struct collision collision = {0};
	collision_ended(&collision, SESSION_LOST, 200 * S, MAX_NS);
	ck_assert(!collision_asks(&collision));
	collision_ended(&collision, SESSION_LOST, 200 * S, MAX_NS);
	ck_assert(collision_asks(&collision));
	collision_ended(&collision, SESSION_TAKEN, 200 * S, MAX_NS);
	ck_assert(collision.taken);
	/* a long connection ends it, and not before */
	ck_assert(!collision_calms(&collision, 599 * S, MAX_NS));
	ck_assert(collision.taken);
	ck_assert(collision_calms(&collision, 600 * S, MAX_NS));
	ck_assert(!collision.taken && !collision_asks(&collision));
	ck_assert(!collision_calms(&collision, 601 * S, MAX_NS));
}
END_TEST

START_TEST(a_broker_that_says_nothing_is_judged_by_the_losses)
{
	struct collision collision = {0};
	for (int i = 1; i <= COLLISION_SUSPECT; i++) {
		ck_assert(!collision.taken);
		if (collision_asks(&collision)) {
			ck_assert(!collision_ended(&collision, SESSION_OLD, 0, MAX_NS));
			ck_assert(!collision_asks(&collision));
			collision.quick = (unsigned)i - 1; /* as if it had not been asked */
		}
		ck_assert_int_eq(collision_ended(&collision, SESSION_LOST, S, MAX_NS),
			i == COLLISION_SUSPECT);
	}
	ck_assert(collision.taken);
	/* each further time, too, without another series */
	ck_assert(collision_ended(&collision, SESSION_LOST, 0, MAX_NS));
}
END_TEST

START_TEST(connections_that_held_for_a_while_are_no_evidence)
{
	struct collision collision = {0};
	for (int i = 0; i < 1000; i++) { /* a proxy that closes what is idle */
		ck_assert(!collision_ended(
			&collision, SESSION_LOST, 5 * S + 300 * S * (i % 2), MAX_NS));
		ck_assert(!collision_tries_at_once(&collision));
	}
	ck_assert(!collision.taken);
	ck_assert(collision_asks(&collision)); /* MQTT 5 may know why */
}
END_TEST

START_TEST(a_broker_that_is_not_there_at_once_was_restarted)
{
	struct collision collision = {0};
	for (int i = 0; i < 100; i++) {
		for (int quick = 0; !collision_tries_at_once(&collision); quick++) {
			ck_assert_int_lt(quick, COLLISION_ASK);
			ck_assert(!collision_ended(&collision, SESSION_LOST, S / 100, MAX_NS));
		}
		ck_assert(!collision_ended(&collision, SESSION_FAILED, 0, MAX_NS));
	}
	ck_assert(!collision.taken);
}
END_TEST

START_TEST(a_connection_that_broke_or_was_explained_is_no_evidence)
{
	struct collision collision = {0};
	for (int i = 0; i < 100; i++) {
		ck_assert(!collision_ended(&collision, SESSION_RESET, S / 100, MAX_NS));
		ck_assert(!collision_ended(&collision, SESSION_FAILED, S / 100, MAX_NS));
	}
	ck_assert(!collision.taken && !collision_asks(&collision));
}
END_TEST

START_TEST(who_was_pushed_out_stays_away_for_minutes)
{
	ck_assert_uint_eq(collision_pause_ns(SESSION_TAKEN, MAX_NS, 0), 150 * S);
	ck_assert_uint_eq(collision_pause_ns(SESSION_LOST, MAX_NS, 0), 30 * S); /* suspected */
	ck_assert_uint_le(collision_pause_ns(SESSION_LOST, MAX_NS, UINT64_MAX), 60 * S);
	for (uint64_t random = 1; random > 0; random *= 3) {
		uint64_t pause_ns = collision_pause_ns(SESSION_TAKEN, MAX_NS, random);
		ck_assert(pause_ns >= 150 * S && pause_ns <= 300 * S);
		if (random > UINT64_MAX / 3) {
			break;
		}
	}
	/* the other has then held its connection for less than what ends the collision */
	ck_assert_uint_lt(300, COLLISION_CALM * 60);
}
END_TEST
