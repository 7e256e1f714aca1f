/* SPDX-License-Identifier: Apache-2.0 */
/* diagnoses.c: makes diagnoses in turns and keeps them by app. An app is found again by name, user
 * and the time at which it was first seen, never by its address, which may be another app's. */
#include "daemon/core/diagnose/diagnoses.h"

#include <errno.h>
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
	uint64_t made_ns; /* 0 = not yet */
	bool published;
	bool confirmed; /* the latest is as the one before */
	struct diagnosis latest, last_published;
	struct diagnosis before; /* of the turn before; t_ns 0 = there was none */
	struct facts facts;	 /* of the latest */
};

struct diagnoses {
	const struct core *core;
	struct gatherer *gatherer; /* NULL until the first app runs: it is large */
	uint64_t alert_ns;	   /* of the last one that was made for an alert */
	size_t count;
	struct entry *entry[APPS_MAX];
	size_t observers;
	struct {
		diagnoses_observer *call;
		void *ctx;
	} observer[DIAGNOSES_OBSERVERS];
};

int diagnoses_create(const struct core *core, struct diagnoses **ret)
{
	struct diagnoses *diagnoses = mem_zalloc(sizeof(*diagnoses));
	if (!diagnoses) {
		return -ENOMEM;
	}
	diagnoses->core = core;
	*ret = diagnoses;
	return 0;
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

static void notify(
	struct diagnoses *diagnoses, const struct entry *entry, const struct diagnosis *diagnosis)
{
	for (size_t i = 0; i < diagnoses->observers; i++) {
		diagnoses->observer[i].call(diagnoses->observer[i].ctx, entry->app, diagnosis);
	}
}

/* The app whose current run the entry is of, while it runs. */
static bool is_running(const struct diagnoses *diagnoses, const struct entry *entry)
{
	const struct app *app = apps_find(diagnoses->core->apps, entry->app);
	return app && app->processes > 0 && is_of(entry, app);
}

/* The oldest entry of an app that does not run, else a new one. NULL: no memory. */
static struct entry *make_entry(struct diagnoses *diagnoses, const struct app *app)
{
	struct entry *entry = NULL;
	for (size_t i = 0; i < diagnoses->count; i++) {
		struct entry *other = diagnoses->entry[i];
		bool older = !entry || other->made_ns < entry->made_ns;
		if (older && !other->published && !is_running(diagnoses, other)) {
			entry = other;
		}
	}
	if (!entry && diagnoses->count < APPS_MAX) {
		entry = mem_zalloc(sizeof(*entry));
		if (entry) {
			diagnoses->entry[diagnoses->count++] = entry;
		}
	}
	if (entry) {
		snprintf(entry->app, sizeof(entry->app), "%s", app->name);
		entry->uid = app->uid;
		entry->known_ns = app->known_ns;
		entry->run = app->run;
		entry->made_ns = entry->before.t_ns = 0;
	}
	return entry;
}

static struct entry *make(struct diagnoses *diagnoses, const struct app *app, uint64_t now_ns)
{
	struct entry *entry = find(diagnoses, app);
	if (!diagnoses->gatherer && gatherer_create(&diagnoses->gatherer) < 0) {
		return NULL;
	}
	entry = entry ? entry : make_entry(diagnoses, app);
	if (entry) {
		facts_gather(diagnoses->gatherer, diagnoses->core, app, now_ns, &entry->facts);
		diagnose(&entry->facts, &entry->latest);
		entry->latest.t_ns = entry->made_ns = now_ns;
	}
	return entry;
}

/* Whether both are the same to those who read one line. */
static bool is_same(const struct diagnosis *a, const struct diagnosis *b)
{
	return a->state == b->state && (a->state != DIAGNOSIS_FINDINGS ||
					       (a->finding[0].cause == b->finding[0].cause &&
						       finding_confidence(&a->finding[0]) ==
							       finding_confidence(&b->finding[0])));
}

static void publish(struct diagnoses *diagnoses, struct entry *entry)
{
	entry->confirmed = entry->before.t_ns > 0 && is_same(&entry->latest, &entry->before);
	if (entry->confirmed &&
		!(entry->published && is_same(&entry->latest, &entry->last_published))) {
		entry->published = true;
		entry->last_published = entry->latest;
		notify(diagnoses, entry, &entry->last_published);
	}
	entry->before = entry->latest;
}

static void withdraw_ended(struct diagnoses *diagnoses)
{
	for (size_t i = 0; i < diagnoses->count; i++) {
		struct entry *entry = diagnoses->entry[i];
		if (entry->published && !is_running(diagnoses, entry)) {
			entry->published = false;
			notify(diagnoses, entry, NULL);
		}
	}
}

void diagnoses_tick(struct diagnoses *diagnoses, uint64_t now_ns)
{
	const struct app *app, *due = NULL;
	uint64_t due_ns = 0;
	withdraw_ended(diagnoses);
	for (size_t i = 0; (app = apps_at(diagnoses->core->apps, i)); i++) {
		const struct entry *entry = app->processes > 0 ? find(diagnoses, app) : NULL;
		bool met = entry && entry->before.t_ns > 0;
		uint64_t every_ns = met && !entry->confirmed ? EVERY_NS / 2 : EVERY_NS;
		uint64_t turn_ns = met ? entry->before.t_ns + every_ns : 0;
		if (app->processes > 0 && turn_ns <= now_ns && (!due || turn_ns < due_ns)) {
			due = app;
			due_ns = turn_ns;
		}
	}
	struct entry *entry = due ? make(diagnoses, due, now_ns) : NULL;
	if (entry) {
		publish(diagnoses, entry);
	}
}

const struct diagnosis *diagnoses_find(
	const struct diagnoses *diagnoses, const struct app *app, uint64_t now_ns)
{
	const struct entry *entry = diagnoses ? find(diagnoses, app) : NULL;
	if (!entry || entry->made_ns == 0) {
		return NULL;
	}
	/* a turn is longer when more apps run than it has seconds */
	uint64_t turn_ns =
		diagnoses->count > DIAGNOSES_EVERY_S ? diagnoses->count * SECOND_NS : EVERY_NS;
	return now_ns < entry->made_ns + 3 * turn_ns ? &entry->latest : NULL;
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
	if (!entry || entry->made_ns == 0 || now_ns >= entry->made_ns + max_age_ns) {
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
		if (entry->published && index-- == 0) {
			*app = entry->app;
			return &entry->last_published;
		}
	}
	return NULL;
}

int diagnoses_observe(struct diagnoses *diagnoses, diagnoses_observer *observer, void *ctx)
{
	if (diagnoses->observers == DIAGNOSES_OBSERVERS) {
		return -ENOSPC;
	}
	diagnoses->observer[diagnoses->observers].call = observer;
	diagnoses->observer[diagnoses->observers++].ctx = ctx;
	return 0;
}

void diagnoses_unobserve(struct diagnoses *diagnoses, const void *ctx)
{
	size_t count = 0;
	for (size_t i = 0; i < diagnoses->observers; i++) {
		if (diagnoses->observer[i].ctx != ctx) {
			diagnoses->observer[count++] = diagnoses->observer[i];
		}
	}
	diagnoses->observers = count;
}
