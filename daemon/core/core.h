/* SPDX-License-Identifier: Apache-2.0 */
/*
 * core.h: names everything that core holds, in one plain struct that daemon.c fills in and hands to
 * the layers around it. The pointers never change after the start; none is owned by its receiver.
 * A file includes the headers of what it uses.
 */
#pragma once

#include <stdbool.h>

struct core {
	struct sources *sources;
	struct metrics *metrics;
	struct history *history;
	struct archive *archive; /* NULL: no history survives a reboot */
	const struct archive_reader *archive_reader;
	const struct persist_status *persist; /* NULL: as if off */
	struct alerts *alerts;
	struct apps *apps;
	struct timeline *timeline;
	struct processes *processes;
	struct bystanders *bystanders; /* NULL: nobody looks for them */
	struct throttle_status *throttle;
	struct wallclock *wall;
	const struct machine_facts *facts;
	struct modes *modes; /* NULL: nobody reads them */
	struct broker_status *broker;
	struct counters *counters;
	struct degraded *degraded;		 /* NULL: nobody reads it */
	struct accounts *accounts;		 /* what each user uses */
	struct deferred_close *deferred_close;	 /* closes descriptors that users sent */
	struct recordings *recordings;		 /* NULL: there is no recorder */
	struct sessions *sessions;		 /* NULL: there are none */
	struct diagnoses *diagnoses;		 /* NULL: nobody makes them */
	const struct past_reports *past_reports; /* NULL: there are none */
	bool nearest; /* the default percentile method is nearest rank, else linear */
};
