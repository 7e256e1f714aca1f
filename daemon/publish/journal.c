/* SPDX-License-Identifier: Apache-2.0 */
/*
 * journal.c: observes alerts and the timeline. Under systemd (stderr is the journal's stream) each
 * becomes a structured entry with a MESSAGE_ID of systemd/edgeprofd.catalog; otherwise a line on
 * stderr. The timeline contains the alerts as well: here they are logged once, by their own
 * observer, which knows the fields.
 */
#define SD_JOURNAL_SUPPRESS_LOCATION
#include "daemon/publish/journal.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <systemd/sd-journal.h>
#include <unistd.h>

#include "daemon/core/alerts/actions.h"
#include "daemon/core/alerts/text.h"
#include "daemon/core/metrics/wallclock.h"
#include "daemon/util/log.h"
#include "daemon/util/sysops.h"
#include "proto/text.h"

enum { FIELDS = 18, FIELD_SIZE = 640 };

struct journal {
	struct core *core;
	bool structured;
};

struct entry {
	size_t count;
	struct iovec iov[FIELDS];
	char text[FIELDS][FIELD_SIZE];
};

static const char *const kind_ids[TIMELINE_KIND_COUNT] = {
	[TIMELINE_MARK] = "02c758733e3b4dd19f953015247c0924",
	[TIMELINE_APP] = "43fd9ea0af3b410eae77e091a197f4b5",
	[TIMELINE_SOURCE] = "7ca991538ce94bef95eb53039663504b",
	[TIMELINE_CLOCK] = "f2e14626ebf64c6ea163527b436de419",
	[TIMELINE_DAEMON] = "bc6b5c3d8e6a444fbef708e7269a2694",
	[TIMELINE_THROTTLE] = "4d1f0a6be75c4c0e8a57c6f2b93de081",
	[TIMELINE_HOLD] = "b0b9a2d3f6c94e05a1c1d4a4c2f0e7d6",
};
static const char id_firing[] = "3340108b5e98413b831101baa2d42aad";
static const char id_cleared[] = "6fc1bc99924b4dae9d79666835330845";
static const char id_severity[] = "c92f7bf94cf54a6fa5799b1d4e7ae21b";

static void add(struct entry *entry, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void add(struct entry *entry, const char *format, ...)
{
	if (entry->count == FIELDS) {
		return;
	}
	char *text = entry->text[entry->count];
	va_list ap;
	va_start(ap, format);
	int length = vsnprintf(text, FIELD_SIZE, format, ap);
	va_end(ap);
	if (length < 0) {
		return;
	}
	size_t used = (size_t)length < FIELD_SIZE ? (size_t)length : FIELD_SIZE - 1;
	entry->iov[entry->count++] = (struct iovec){.iov_base = text, .iov_len = used};
}

/* Sends the entry and returns the outcome. message is its text, for stderr when there is no
 * journal. */
static enum alert_link send_entry(const struct journal *journal, struct entry *entry,
	enum log_level level, const char *message)
{
	if (level > log_max_level) {
		return ALERT_LINK_FILTERED;
	}
	if (journal->structured) {
		add(entry, "PRIORITY=%d", (int)level);
		add(entry, "MESSAGE=%s", message);
		add(entry, "SYSLOG_IDENTIFIER=edgeprofd");
		if (sd_journal_sendv(entry->iov, (int)entry->count) == 0) {
			return ALERT_LINK_DONE;
		}
	}
	log_write(level, "%s", message);
	return journal->structured ? ALERT_LINK_FAILED : ALERT_LINK_NONE;
}

static const enum log_level severity_levels[] = {
	[ALERT_INFO] = LOG_LEVEL_NOTICE,
	[ALERT_WARNING] = LOG_LEVEL_WARNING,
	[ALERT_CRITICAL] = LOG_LEVEL_ERROR,
};

static const enum log_level timeline_levels[] = {
	[TIMELINE_INFO] = LOG_LEVEL_INFO,
	[TIMELINE_WARNING] = LOG_LEVEL_WARNING,
	[TIMELINE_CRITICAL] = LOG_LEVEL_ERROR,
};

static const char *transition_id(const struct alert_transition *transition)
{
	if (transition->to != ALERT_FIRING) {
		return id_cleared;
	}
	return transition->from == ALERT_FIRING ? id_severity : id_firing;
}

static const char *remark(const struct alert_transition *transition)
{
	if (transition->test) {
		return " (test)";
	}
	if (!transition->quiet) {
		return "";
	}
	return transition->alert->notifier.acked ? " (acknowledged)" : " (silenced)";
}

/* Adds why nobody was notified, for filters: journalctl EDGEPROF_SILENCED=1. */
static void add_holds(struct entry *entry, const struct alert_transition *transition)
{
	if (transition->quiet) {
		add(entry, "EDGEPROF_%s=1",
			transition->alert->notifier.acked ? "ACKED" : "SILENCED");
	}
	if (transition->test) {
		add(entry, "EDGEPROF_TEST=1");
	}
}

static void on_transition(void *ctx, const struct alert_transition *transition)
{
	if (transition->update) {
		return; /* the timeline has an entry of the action */
	}
	const struct alert *alert = transition->alert;
	bool firing = transition->to == ALERT_FIRING;
	bool single = strcmp(alert->instance, "_") == 0;
	const struct wallclock *wall = ((struct journal *)ctx)->core->wall;
	char message[FIELD_SIZE - 40], later[64] = "";
	if (transition->sent_ns != 0) {
		snprintf(later, sizeof(later), " (%s ago)",
			text_span((transition->sent_ns - transition->t_ns) / 1000000000).text);
	}
	snprintf(message, sizeof(message), "alert %s%s%s %s%s%s: %s%s%s", alert->rule->name,
		single ? "" : " of ", single ? "" : alert->instance,
		firing ? "is firing (" : "is over",
		firing ? alert_severity_name(alert->severity) : "", firing ? ")" : "", alert->text,
		remark(transition), later);
	struct entry entry = {.count = 0};
	char unit[ALERT_UNIT];
	alert_unit(alert->unit, alert->rule->kind == ALERT_SLOPE, unit);
	add(&entry, "MESSAGE_ID=%s", transition_id(transition));
	add(&entry, "EDGEPROF_RULE=%s", alert->rule->name);
	add(&entry, "EDGEPROF_INSTANCE=%s", alert->instance);
	add(&entry, "EDGEPROF_METRIC=%s", alert->metric);
	add(&entry, "EDGEPROF_STATE=%s", alert_phase_name(transition->to));
	add(&entry, "EDGEPROF_SEVERITY=%s", alert_severity_name(alert->severity));
	add(&entry, "EDGEPROF_FROM_STATE=%s", alert_phase_name(transition->from));
	add(&entry, "EDGEPROF_FROM_SEVERITY=%s", alert_severity_name(transition->from_severity));
	add(&entry, "EDGEPROF_UNIT=%s", unit);
	add(&entry, "EDGEPROF_TIME_US=%" PRId64, wallclock_us(wall, transition->t_ns));
	if (transition->sent_ns != 0) {
		add(&entry, "EDGEPROF_SENT_TIME_US=%" PRId64,
			wallclock_us(wall, transition->sent_ns));
	}
	if (isfinite(transition->value)) {
		add(&entry, "EDGEPROF_VALUE=%.10g", transition->value);
	}
	if (isfinite(alert->threshold)) {
		add(&entry, "EDGEPROF_THRESHOLD=%.10g", alert->threshold);
	}
	add_holds(&entry, transition);
	enum log_level level = firing ? severity_levels[alert->severity] : LOG_LEVEL_NOTICE;
	enum alert_link link =
		send_entry(ctx, &entry, transition->quiet ? LOG_LEVEL_INFO : level, message);
	if (transition->test) {
		transition->test->journal = link;
	}
}

static void on_entry(void *ctx, const struct timeline_entry *event)
{
	if (event->kind == TIMELINE_ALERT || event->kind == TIMELINE_SILENCED) {
		return;
	}
	char message[FIELD_SIZE - 40];
	/* The prefix of the line names the daemon already; a mark may have no subject. */
	bool own = event->subject[0] == '\0' || strcmp(event->subject, "edgeprofd") == 0;
	snprintf(message, sizeof(message), "%s%s%s", own ? "" : event->subject, own ? "" : ": ",
		event->text);
	struct entry entry = {.count = 0};
	add(&entry, "MESSAGE_ID=%s", kind_ids[event->kind]);
	add(&entry, "EDGEPROF_KIND=%s", timeline_kind_name(event->kind));
	add(&entry, "EDGEPROF_SUBJECT=%s", event->subject);
	add(&entry, "EDGEPROF_SERIAL=%" PRIu64, event->serial);
	send_entry(ctx, &entry, timeline_levels[event->level], message);
}

int journal_create(struct core *core, struct journal **ret)
{
	struct journal *journal = mem_zalloc(sizeof(*journal));
	if (!journal) {
		return -ENOMEM;
	}
	journal->core = core;
	journal->structured = log_is_journal();
	int r = alerts_observe(core->alerts, on_transition, journal);
	if (r < 0) {
		goto error;
	}
	r = timeline_observe(core->timeline, on_entry, journal);
	if (r < 0) {
		goto error;
	}
	*ret = journal;
	return 0;
error:
	journal_destroy(journal);
	return r;
}

void journal_destroy(struct journal *journal)
{
	if (!journal) {
		return;
	}
	alerts_unobserve(journal->core->alerts, journal);
	timeline_unobserve(journal->core->timeline, journal);
	free(journal);
}
