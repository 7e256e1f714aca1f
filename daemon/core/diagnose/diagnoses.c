/* SPDX-License-Identifier: Apache-2.0 */
/* diagnoses.c: makes diagnoses in turns and keeps them by app. An app is found again by name, user
 * and the time at which it was first seen, never by its address, which may be another app's. */
#include "daemon/core/diagnose/diagnoses.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/core/apps/apps.h"
#include "daemon/core/diagnose/facts/gather.h"
#include "daemon/util/sysops.h"
#include "proto/text.h"

#define SECOND_NS UINT64_C(1000000000)
#define EVERY_NS (DIAGNOSES_EVERY_S * SECOND_NS)

struct entry {
	char app[PROTO_NAME_SIZE];
	uid_t uid;
	uint64_t known_ns, run;
	uint64_t turn_ns;		    /* of its last turn; 0 = there was none */
	unsigned verdict;		    /* of that turn */
	bool confirmed;			    /* the turn before had the same */
	unsigned announced;		    /* verdict of published; 0 = nothing is */
	struct diagnosis latest, published; /* latest.t_ns 0: none yet */
	struct facts facts;		    /* of the latest */
};

struct diagnoses {
	const struct core *core;
	struct diagnosis_limits limits;
	struct gatherer *gatherer; /* NULL while no app runs: it is large */
	bool halfway;		   /* a tick's second call is due */
	struct entry *read;	   /* whose frames the gatherer has read for it, as of read_ns */
	uint64_t read_ns;
	uint64_t alert_ns; /* of the last one that was made for an alert */
	diagnoses_observer *observer;
	void *ctx;
	size_t count;
	struct entry *entry[APPS_MAX];
};

int diagnoses_create(const struct core *core, struct diagnoses **ret)
{
	struct diagnoses *diagnoses = mem_zalloc(sizeof(*diagnoses));
	if (!diagnoses) {
		return -ENOMEM;
	}
	diagnoses->core = core;
	diagnoses->limits = diagnosis_limits_default;
	*ret = diagnoses;
	return 0;
}

void diagnoses_configure(struct diagnoses *diagnoses, const struct diagnosis_limits *limits)
{
	if (diagnoses) {
		diagnoses->limits = *limits;
	}
}

void diagnoses_advise(const struct diagnoses *diagnoses, const struct facts *facts,
	const struct diagnosis *diagnosis, struct improvements *ret)
{
	advise(facts, diagnosis, &diagnoses->limits, ret);
}

void diagnoses_destroy(struct diagnoses *diagnoses)
{
	if (!diagnoses) {
		return;
	}
	for (size_t i = 0; i < diagnoses->count; i++) {
		free(diagnoses->entry[i]);
	}
	gatherer_destroy(diagnoses->gatherer);
	free(diagnoses);
}

static bool is_of(const struct entry *entry, const struct app *app)
{
	return entry->known_ns == app->known_ns && entry->run == app->run &&
	       entry->uid == app->uid && strcmp(entry->app, app->name) == 0;
}

static struct entry *find(const struct diagnoses *diagnoses, const struct app *app)
{
	for (size_t i = 0; i < diagnoses->count; i++) {
		if (is_of(diagnoses->entry[i], app)) {
			return diagnoses->entry[i];
		}
	}
	return NULL;
}

/* It says for how long there were no frames, and there are frames again. */
static bool is_over(const struct entry *entry, const struct app *app)
{
	const struct finding *first = &entry->latest.finding[0];
	bool silent = first->cause == CAUSE_STOPPED && isnan(first->explained_ms);
	return silent && app->frames && pulse_last_ns(&app->frames->pulse) > entry->latest.t_ns;
}

/* The app whose current run the entry is of, while it runs; else NULL. */
static const struct app *running(const struct diagnoses *diagnoses, const struct entry *entry)
{
	const struct app *app = apps_find(diagnoses->core->apps, entry->app);
	return app && app->processes > 0 && is_of(entry, app) ? app : NULL;
}

/* That of an app that does not run, else a new one. NULL: no memory. */
static struct entry *make_entry(struct diagnoses *diagnoses, const struct app *app)
{
	struct entry *entry = NULL;
	for (size_t i = 0; i < diagnoses->count && !entry; i++) {
		struct entry *other = diagnoses->entry[i];
		bool free = other->announced == 0 && !running(diagnoses, other);
		entry = free ? other : NULL;
	}
	if (!entry && diagnoses->count < APPS_MAX) {
		entry = mem_zalloc(sizeof(*entry));
		diagnoses->entry[diagnoses->count] = entry;
		diagnoses->count += entry != NULL;
	}
	if (entry) {
		*entry =
			(struct entry){.uid = app->uid, .known_ns = app->known_ns, .run = app->run};
		memcpy(entry->app, app->name, sizeof(entry->app));
	}
	return entry;
}

/* Its frames, for measure(). */
static struct entry *read_frames(
	struct diagnoses *diagnoses, const struct app *app, uint64_t now_ns)
{
	struct entry *entry = find(diagnoses, app);
	if (!diagnoses->gatherer && gatherer_create(&diagnoses->gatherer) < 0) {
		return NULL;
	}
	entry = entry ? entry : make_entry(diagnoses, app);
	if (entry) {
		facts_read_frames(diagnoses->gatherer, diagnoses->core, app, now_ns);
	}
	diagnoses->read = entry;
	diagnoses->read_ns = now_ns;
	return entry;
}

static void measure(struct diagnoses *diagnoses, struct entry *entry, const struct app *app)
{
	struct facts *facts = &entry->facts;
	struct fact_process others[FACTS_PROCESSES], largest = facts->largest;
	memcpy(others, facts->process, sizeof(others));
	facts_measure(diagnoses->gatherer, diagnoses->core, app, diagnoses->read_ns, facts);
	if (app->processes == 0) { /* what runs now took nothing from it */
		memcpy(facts->process, others, sizeof(others));
		facts->largest = largest;
	}
	diagnose(facts, &entry->latest);
	entry->latest.t_ns = diagnoses->read_ns;
	diagnoses->read = NULL;
}

static struct entry *make(struct diagnoses *diagnoses, const struct app *app, uint64_t now_ns)
{
	struct entry *entry = read_frames(diagnoses, app, now_ns);
	if (entry) {
		measure(diagnoses, entry, app);
	}
	return entry;
}

/* The same number for what is the same to those who read one line; never 0. */
static unsigned verdict_of(const struct diagnosis *diagnosis)
{
	const struct finding *first = &diagnosis->finding[0];
	return diagnosis->state != DIAGNOSIS_FINDINGS
		       ? 1 + (unsigned)diagnosis->state
		       : 8 * (1 + (unsigned)first->cause) + (unsigned)finding_confidence(first);
}

static void take_turn(struct diagnoses *diagnoses, struct entry *entry)
{
	unsigned verdict = verdict_of(&entry->latest);
	entry->confirmed = verdict == entry->verdict;
	entry->verdict = verdict;
	entry->turn_ns = entry->latest.t_ns;
	if (entry->confirmed && verdict != entry->announced) {
		entry->announced = verdict;
		entry->published = entry->latest;
		if (diagnoses->observer) {
			diagnoses->observer(diagnoses->ctx, entry->app, &entry->published);
		}
	}
}

static void withdraw(struct diagnoses *diagnoses)
{
	for (size_t i = 0; i < diagnoses->count; i++) {
		struct entry *entry = diagnoses->entry[i];
		if (entry->announced != 0 && !running(diagnoses, entry)) {
			entry->announced = 0;
			if (diagnoses->observer) {
				diagnoses->observer(diagnoses->ctx, entry->app, NULL);
			}
		}
	}
}

static const struct app *due_app(const struct diagnoses *diagnoses, uint64_t now_ns)
{
	const struct app *app, *due = NULL;
	uint64_t due_ns = now_ns + 1;
	for (size_t i = 0; (app = apps_at(diagnoses->core->apps, i)); i++) {
		const struct entry *entry = app->processes > 0 ? find(diagnoses, app) : NULL;
		uint64_t turn_ns = entry ? entry->turn_ns : 0;
		turn_ns += turn_ns == 0		 ? 0
			   : is_over(entry, app) ? SECOND_NS
			   : entry->confirmed	 ? EVERY_NS
						 : EVERY_NS / 2;
		if (app->processes > 0 && turn_ns < due_ns) {
			due = app;
			due_ns = turn_ns;
		}
	}
	return due;
}

bool diagnoses_tick(struct diagnoses *diagnoses, uint64_t now_ns)
{
	if (!diagnoses->halfway) {
		withdraw(diagnoses);
		const struct app *due = due_app(diagnoses, now_ns);
		diagnoses->halfway = due && read_frames(diagnoses, due, now_ns);
	} else {
		struct entry *entry = diagnoses->read;
		const struct app *app = entry ? running(diagnoses, entry) : NULL;
		if (app) {
			measure(diagnoses, entry, app);
			take_turn(diagnoses, entry);
		}
		diagnoses->halfway = false;
	}
	if (!diagnoses->halfway && apps_running(diagnoses->core->apps, NULL) == 0) {
		gatherer_destroy(diagnoses->gatherer);
		diagnoses->gatherer = NULL;
	}
	return diagnoses->halfway;
}

const struct diagnosis *diagnoses_find(
	const struct diagnoses *diagnoses, const struct app *app, uint64_t now_ns)
{
	const struct entry *entry = diagnoses ? find(diagnoses, app) : NULL;
	if (!entry || entry->latest.t_ns == 0 || is_over(entry, app)) {
		return NULL;
	}
	/* a turn is longer when more apps run than it has seconds */
	uint64_t turn_ns =
		diagnoses->count > DIAGNOSES_EVERY_S ? diagnoses->count * SECOND_NS : EVERY_NS;
	return now_ns < entry->latest.t_ns + 3 * turn_ns ? &entry->latest : NULL;
}

const char *diagnoses_summary(
	const struct diagnoses *diagnoses, const struct app *app, uint64_t now_ns)
{
	const struct diagnosis *diagnosis = diagnoses_find(diagnoses, app, now_ns);
	return diagnosis && diagnosis->state == DIAGNOSIS_FINDINGS ? diagnosis->summary : NULL;
}

const struct diagnosis *diagnoses_ask(struct diagnoses *diagnoses, const struct app *app,
	uint64_t now_ns, uint64_t max_age_ns, const struct facts **facts)
{
	const struct entry *entry = find(diagnoses, app);
	if (!entry || entry->latest.t_ns == 0 || now_ns >= entry->latest.t_ns + max_age_ns) {
		entry = make(diagnoses, app, now_ns);
	}
	if (!entry) {
		return NULL;
	}
	*facts = &entry->facts;
	return &entry->latest;
}

/* The running app whose name is the second segment; NULL: none. */
static const struct app *app_of_metric(const struct diagnoses *diagnoses, const char *metric)
{
	static const char *const groups[] = {"frame/", "stage/", "process/", "app/"};
	for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++) {
		if (text_starts_with(metric, groups[i])) {
			char name[PROTO_NAME_SIZE];
			const char *begin = metric + strlen(groups[i]);
			snprintf(name, sizeof(name), "%.*s", (int)strcspn(begin, "/"), begin);
			const struct app *app = apps_find(diagnoses->core->apps, name);
			return app && app->processes > 0 ? app : NULL;
		}
	}
	return NULL;
}

const char *diagnoses_of_metric(struct diagnoses *diagnoses, const char *metric, uint64_t now_ns)
{
	const struct app *app = app_of_metric(diagnoses, metric);
	if (!app) {
		return NULL;
	}
	if (now_ns >= diagnoses->alert_ns + SECOND_NS) {
		diagnoses->alert_ns = now_ns;
		make(diagnoses, app, now_ns);
	}
	return diagnoses_summary(diagnoses, app, now_ns);
}

const struct diagnosis *diagnoses_published(
	const struct diagnoses *diagnoses, size_t index, const char **app)
{
	for (size_t i = 0; i < diagnoses->count; i++) {
		const struct entry *entry = diagnoses->entry[i];
		if (entry->announced != 0 && index-- == 0) {
			*app = entry->app;
			return &entry->published;
		}
	}
	return NULL;
}

void diagnoses_observe(struct diagnoses *diagnoses, diagnoses_observer *observer, void *ctx)
{
	if (observer || diagnoses->ctx == ctx) {
		diagnoses->observer = observer;
		diagnoses->ctx = ctx;
	}
}
