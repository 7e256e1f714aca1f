/* SPDX-License-Identifier: Apache-2.0 */
/*
 * actions.h: acknowledges, silences and tests alerts on request. Who is notified and who is not:
 * - A silenced alert continues through its states. Its transitions are quiet, but the end of an
 *   alert that people were notified of is sent: nobody is left with an open incident.
 * - When the last silence over an alert ends and it still fires, it is sent then, unless it is
 *   acknowledged; when that is removed and nobody has been notified, it is sent then.
 * - An acknowledged alert is sent again when it gets worse, which ends the acknowledgement, and
 *   when it is over.
 * - A quiet transition is on the timeline as "silenced", and observers get it with `quiet`.
 */
#pragma once

#include "daemon/core/alerts/alerts.h"
#include "daemon/core/alerts/overrides.h"

/* Overrides and the log lie in memory that outlives the process (not owned, 8-byte aligned,
 * overrides_bytes()). Before the first rules. The number of entries that were damaged, and dropped.
 */
size_t alerts_attach_overrides(
	struct alerts *alerts, void *memory, const uint8_t boot_id[16], uint64_t now_ns);
const struct overrides *alerts_overrides(const struct alerts *alerts);

/* Acknowledges what fires of the rule: the instance, NULL = all. How many, -ENOENT when nothing
 * fires, -ENOSPC when ALERT_ACKS are acknowledged (those before the limit are, too). The note is
 * clean UTF-8. */
int alerts_ack(struct alerts *alerts, const char *rule, const char *instance, uint32_t uid,
	const char *note, uint64_t now_ns);
/* Removes acknowledgements. How many, -ENOENT. */
int alerts_unack(struct alerts *alerts, const char *rule, const char *instance, uint32_t uid,
	uint64_t now_ns);

/* from_ns is now. 0, or -ENOSPC, -EDQUOT as overrides_put_silence(). */
int alerts_silence(struct alerts *alerts, const struct alert_silence *silence);
/* The one with exactly these globs ("" = all instances). -ENOENT. */
int alerts_unsilence(struct alerts *alerts, const char *rule, const char *instance, uint32_t uid,
	uint64_t now_ns);

/* Ends what is over. Called by alerts_commit() when something is due. */
void alerts_tick(struct alerts *alerts, uint64_t now_ns);

#define ALERT_TEST_RULE "test"

/* What became of the last transition of the test at one of its receivers. */
enum alert_link {
	ALERT_LINK_NONE,     /* there is no such receiver */
	ALERT_LINK_DONE,     /* the journal has accepted it */
	ALERT_LINK_WAITS,    /* the broker has not acknowledged it yet */
	ALERT_LINK_FAILED,   /* refused, no space */
	ALERT_LINK_FILTERED, /* skipped because of log_level */
};

/* The test of notifications: an alert of the rule "test", instance "_", which no override covers.
 * It is evaluated like any alert, on a value that alerts_test() sets. */
struct alert_test {
	struct alert_rule rule;
	struct alert_state state;
	uint64_t serial; /* of the present transition: of all tests, from 1; 0 = never */
	uint64_t begun_ns, ends_ns;
	enum alert_link journal, mqtt;
};

/* Fires now and is over at ends_ns. -EBUSY while one runs, -EAGAIN within ALERT_TEST_PAUSE_NS of
 * the begin of the last. */
#define ALERT_TEST_PAUSE_NS UINT64_C(10000000000)
int alerts_test(struct alerts *alerts, enum alert_severity severity, const char *text,
	uint64_t now_ns, uint64_t ends_ns);
const struct alert_test *alerts_last_test(const struct alerts *alerts);
