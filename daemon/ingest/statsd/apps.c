/* SPDX-License-Identifier: Apache-2.0 */
/* apps.c: turns the lines of datagrams into records of their apps. Such an app has no process to
 * watch: it lives while lines come in. It counts as one with a mapping does. */
#include "daemon/ingest/statsd/apps.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/core/status/counters.h"
#include "daemon/util/accounts.h"
#include "daemon/util/index.h"
#include "daemon/util/sysops.h"
#include "proto/fnv.h"

static const uint64_t SECOND_NS = 1000000000;
static const char DEFAULT_APP[] = "statsd";
static const char ANOTHER_USER[] = "another user's app has this name";
static const char RESERVED[] = "the name is reserved for another user ([app NAME] user)";
static const char TOO_MANY[] = "too many apps send datagrams";

struct statsd_name {
	uint64_t hash;
	uint64_t unit; /* of a stage: hash of its compute unit; 0 = none */
	double gauge;  /* the last value, for differences */
	uint8_t length;
	bool is_total; /* spans other stages */
};

struct statsd_names {
	uint8_t slot[2 * STATSD_NAMES_MAX]; /* index + 1; 0 = free */
	size_t count;
	struct statsd_name name[STATSD_NAMES_MAX];
};

enum { NAME_SLOTS = sizeof(((struct statsd_names *)0)->slot) };

struct statsd_app {
	char name[PROTO_NAME_SIZE]; /* of the tag, cleaned */
	uid_t uid;
	uint64_t last_ns; /* of its last line */
	bool updated;	  /* records came in since the last drain */
	struct app_process *process;
	struct statsd_names names;
};

void statsd_apps_lay(struct statsd_apps *apps)
{
	uint64_t later_ns = 0;
	if (apps->laid_frame == STATSD_NO_FRAME) {
		return;
	}
	for (size_t i = apps->waiting; i-- > apps->laid_from;) {
		struct proto_record *record = &apps->record[i];
		if (record->kind == PROTO_KIND_COMPLETE && record->frame == apps->laid_frame &&
			!apps->filled_names->name[record->stage].is_total &&
			record->start_ns >= later_ns) {
			record->start_ns -= later_ns;
			later_ns += record->value;
		}
	}
	apps->laid_frame = STATSD_NO_FRAME;
}

void statsd_apps_flush(struct statsd_apps *apps)
{
	statsd_apps_lay(apps);
	if (apps->waiting > 0) {
		apps_records(apps->core->apps, apps->filled, 0, apps->record, apps->waiting,
			apps->waiting_ns);
		apps_fold_stages(apps->core->apps);
		apps->waiting = 0;
	}
}

static void end_app(struct statsd_apps *apps, size_t index, enum process_end how, uint64_t now_ns)
{
	struct statsd_app *app = apps->app[index];
	statsd_apps_flush(apps);
	if (apps->last == app) {
		apps->last = NULL;
	}
	apps_detach(apps->core->apps, app->process, how, now_ns);
	free(app);
	apps->app[index] = apps->app[--apps->count];
	apps->hash[index] = apps->hash[apps->count];
}

/* An apps_displace_observer. */
static void on_displace(void *ctx, const struct app *app)
{
	struct statsd_apps *apps = ctx;
	for (size_t i = apps->count; i-- > 0;) {
		if (apps->app[i]->process->app == app) {
			end_app(apps, i, PROCESS_ENDED, sysops()->now_ns());
		}
	}
}

int statsd_apps_init(struct statsd_apps *apps, struct core *core)
{
	*apps = (struct statsd_apps){.core = core, .laid_frame = STATSD_NO_FRAME};
	return apps_observe(
		core->apps, &(struct apps_observer){.displace = on_displace, .ctx = apps});
}

size_t statsd_apps_sweep(struct statsd_apps *apps, uint64_t now_ns)
{
	for (size_t i = apps->count; i-- > 0;) {
		if (now_ns - apps->app[i]->last_ns >= STATSD_SILENCE_S * SECOND_NS) {
			end_app(apps, i, PROCESS_ENDED, now_ns);
		}
	}
	return apps->count;
}

void statsd_apps_finish(struct statsd_apps *apps, enum process_end how, uint64_t now_ns)
{
	apps_unobserve(apps->core->apps, apps);
	while (apps->count > 0) {
		end_app(apps, apps->count - 1, how, now_ns);
	}
}

void statsd_apps_drained(struct statsd_apps *apps)
{
	statsd_apps_flush(apps);
	for (size_t i = 0; i < apps->count; i++) {
		if (apps->app[i]->updated) {
			apps->app[i]->updated = false;
			apps_drained(apps->core->apps, apps->app[i]->process);
		}
	}
}

bool statsd_apps_expire_frames(struct statsd_apps *apps, uint64_t now_ns)
{
	bool open = false;
	for (size_t i = 0; i < apps->count; i++) {
		struct app_process *process = apps->app[i]->process;
		process->frame_state.pass_ns = now_ns; /* all that was received has been read */
		apps_drained(apps->core->apps, process);
		open = open || app_frames_open(process->app);
	}
	return open;
}

static bool is_refused(const struct statsd_apps *apps, const char *name, uid_t uid, uint64_t now_ns)
{
	for (size_t i = 0; i < STATSD_REFUSED_MAX; i++) {
		const struct statsd_claim *claim = &apps->refused[i];
		if (claim->until_ns > now_ns && claim->uid == uid &&
			strcmp(claim->name, name) == 0) {
			return true;
		}
	}
	return false;
}

static void refuse(struct statsd_apps *apps, const char *name, const struct statsd_sender *sender,
	const char *reason, uint64_t now_ns)
{
	struct core *core = apps->core;
	struct statsd_claim *claim = &apps->refused[apps->refused_next++ % STATSD_REFUSED_MAX];
	*claim = (struct statsd_claim){.uid = sender->uid, .until_ns = now_ns + SECOND_NS};
	snprintf(claim->name, sizeof(claim->name), "%s", name);
	if (rejected_attaches_add(&core->counters->rejected_attaches, name, sender->uid,
		    sender->pid, reason, now_ns) &&
		apps_may_log(core->apps, sender->uid, TIMELINE_WARNING, now_ns)) {
		timeline_add(core->timeline, now_ns, TIMELINE_APP, TIMELINE_WARNING, name,
			"datagrams refused (pid %d, uid %u): %s", (int)sender->pid,
			(unsigned)sender->uid, reason);
	}
}

/* Ends the app that was silent the longest, at least a second, of the user or of all. */
static bool evict_silent(struct statsd_apps *apps, uid_t uid, bool of_all, uint64_t now_ns)
{
	size_t oldest = apps->count;
	for (size_t i = 0; i < apps->count; i++) {
		const struct statsd_app *app = apps->app[i];
		if ((of_all || app->uid == uid) && now_ns - app->last_ns >= SECOND_NS &&
			(oldest == apps->count || app->last_ns < apps->app[oldest]->last_ns)) {
			oldest = i;
		}
	}
	if (oldest == apps->count) {
		return false;
	}
	end_app(apps, oldest, PROCESS_ENDED, now_ns);
	return true;
}

static bool may_add(struct statsd_apps *apps, const struct statsd_sender *sender, uint64_t now_ns)
{
	size_t own = apps_running(apps->core->apps, &sender->uid);
	size_t all = apps_running(apps->core->apps, NULL);
	/* a user over the share loses an app of its own; one that has none yet displaces any */
	return (apps->count < APPS_MAX &&
		       accounts_fits(APPS_OWN_MAX, own, all, 1, sender->trusted)) ||
	       evict_silent(apps, sender->uid, sender->trusted || own == 0, now_ns);
}

/* The default name belongs to no user: the app of a second one gets a suffix. */
static int attach(struct statsd_apps *apps, const char *name, uid_t uid, uint64_t now_ns,
	struct app_process **ret)
{
	int r = apps_attach(apps->core->apps, name, uid, 0, 0, 0, now_ns, ret);
	if (r == -EACCES && strcmp(name, DEFAULT_APP) == 0) {
		char other[PROTO_NAME_SIZE];
		snprintf(other, sizeof(other), "%s.%u", DEFAULT_APP, (unsigned)uid);
		r = apps_attach(apps->core->apps, other, uid, 0, 0, 0, now_ns, ret);
	}
	return r;
}

static struct statsd_app *add_app(struct statsd_apps *apps, const char *name,
	const struct statsd_sender *sender, uint64_t now_ns)
{
	if (is_refused(apps, name, sender->uid, now_ns)) {
		return NULL;
	}
	if (!may_add(apps, sender, now_ns)) {
		refuse(apps, name, sender, TOO_MANY, now_ns);
		return NULL;
	}
	struct statsd_app *app = mem_zalloc(sizeof(*app));
	int r = app ? attach(apps, name, sender->uid, now_ns, &app->process) : -ENOMEM;
	if (r < 0) {
		refuse(apps, name, sender,
			r == -EACCES   ? ANOTHER_USER
			: r == -EPERM  ? RESERVED
			: r == -ENOSPC ? TOO_MANY
				       : "no memory",
			now_ns);
		free(app);
		return NULL;
	}
	snprintf(app->name, sizeof(app->name), "%s", name);
	app->uid = sender->uid;
	apps->hash[apps->count] = hash_text(app->name);
	apps->app[apps->count++] = app;
	apps->made++;
	rejected_attaches_forget(&apps->core->counters->rejected_attaches, name, sender->uid);
	return app;
}

/* The app of a line; NULL: refused. */
static struct statsd_app *app_of(struct statsd_apps *apps, const struct statsd_sender *sender,
	const struct statsd_line *line, uint64_t now_ns)
{
	const char *tag = line->app.at ? line->app.at : DEFAULT_APP;
	size_t length = line->app.at ? line->app.length : sizeof(DEFAULT_APP) - 1;
	if (apps->last && apps->last_uid == sender->uid && apps->last_length == length &&
		memcmp(apps->last_tag, tag, length) == 0) {
		return apps->last;
	}
	char name[PROTO_NAME_SIZE];
	proto_name_clean(tag, length, name);
	uint32_t hash = hash_text(name), i = 0;
	while (i < apps->count && (apps->hash[i] != hash || apps->app[i]->uid != sender->uid ||
					  strcmp(apps->app[i]->name, name) != 0)) {
		i++;
	}
	struct statsd_app *app =
		i < apps->count ? apps->app[i] : add_app(apps, name, sender, now_ns);
	if (app && length <= sizeof(apps->last_tag)) {
		apps->last = app;
		apps->last_uid = sender->uid;
		apps->last_length = length;
		memcpy(apps->last_tag, tag, length);
	}
	return app;
}

static void copy_text(char *ret, size_t size, struct statsd_text text)
{
	size_t length = text.length < size - 1 ? text.length : size - 1;
	if (length > 0) {
		memcpy(ret, text.at, length);
	}
}

static uint64_t unit_of(const struct statsd_line *line)
{
	bool some = line->type == STATSD_TIME && line->unit.length > 0;
	return some ? fnv64(FNV64_BASIS, line->unit.at, line->unit.length) : 0;
}

static int add_name(struct statsd_apps *apps, struct statsd_app *app, size_t slot,
	const struct statsd_line *line)
{
	struct statsd_names *names = &app->names;
	struct proto_declaration declaration = {0};
	if (names->count == STATSD_NAMES_MAX) {
		return -ENOSPC;
	}
	copy_text(declaration.name, sizeof(declaration.name), line->name);
	copy_text(declaration.unit, sizeof(declaration.unit), line->unit);
	copy_text(declaration.category, sizeof(declaration.category), line->category);
	size_t index = names->count++;
	names->name[index] = (struct statsd_name){.hash = line->name_hash,
		.unit = unit_of(line),
		.length = (uint8_t)line->name.length,
		.is_total = strcmp(declaration.name, "total") == 0 ||
			    strcmp(declaration.category, "total") == 0};
	names->slot[slot] = (uint8_t)(index + 1);
	apps_declare(apps->core->apps, app->process, (uint32_t)index, &declaration);
	apps->made++;
	return (int)index;
}

/* Index of the line's name, declared at its first use; -ENOSPC when the app has too many. A name is
 * found by a hash of all of it, of which the declaration keeps only the first 48 bytes; equal
 * hashes are the sender's own loss. A stage is another one on each compute unit; without one it is
 * the first of its name. */
static int find_name(
	struct statsd_apps *apps, struct statsd_app *app, const struct statsd_line *line)
{
	const struct statsd_names *names = &app->names;
	const uint64_t unit = unit_of(line);
	size_t slot = line->name_hash % NAME_SLOTS;
	for (; names->slot[slot]; slot = (slot + 1) % NAME_SLOTS) {
		size_t index = names->slot[slot] - 1u;
		if (names->name[index].hash == line->name_hash &&
			names->name[index].length == line->name.length &&
			(unit == 0 || names->name[index].unit == unit)) {
			return (int)index;
		}
	}
	return add_name(apps, app, slot, line);
}

/* Fills a record with the line's current value. False: no record can represent it. */
static bool make_record(const struct statsd_line *line, struct statsd_name *name, uint64_t now_ns,
	struct proto_record *record)
{
	double number = line->value;
	record->flags = 0;
	record->frame = line->frame; /* STATSD_NO_FRAME is PROTO_NO_FRAME */
	record->cpu_us = PROTO_CPU_NOT_MEASURED;
	record->start_ns = now_ns;
	switch (line->type) {
	case STATSD_TIME:
		if (number < 0 || number * 1e6 > (double)now_ns) {
			return false; /* it would have begun before the boot */
		}
		record->kind = PROTO_KIND_COMPLETE;
		record->value = (uint64_t)(number * 1e6 + 0.5);
		if (record->value > now_ns) {
			record->value = now_ns;
		}
		record->start_ns = now_ns - record->value;
		return true;
	case STATSD_GAUGE:
		record->kind = PROTO_KIND_GAUGE;
		number += line->has_sign ? name->gauge : 0;
		if (!isfinite(number)) {
			return false;
		}
		name->gauge = number;
		break;
	case STATSD_COUNTER:
		record->kind = PROTO_KIND_COUNTER;
		number /= line->rate;
		break;
	}
	memcpy(&record->value, &number, sizeof(number));
	return true;
}

_Static_assert(STATSD_NO_FRAME == PROTO_NO_FRAME, "frames");

size_t statsd_apps_append(struct statsd_apps *apps, const struct statsd_sender *sender,
	struct statsd_line *line, uint64_t now_ns)
{
	struct counters *counters = apps->core->counters;
	struct statsd_app *app = app_of(apps, sender, line, now_ns);
	size_t values = 0;
	if (!app) {
		counters->statsd_refused++;
		return 0;
	}
	app->last_ns = now_ns;
	app->updated = true;
	struct app_accounting *accounting = &app->process->accounting;
	int index = find_name(apps, app, line);
	if (index < 0) {
		counters->statsd_refused++;
		accounting->sent++;
		accounting->dropped++;
		return 0;
	}
	if (apps->filled != app->process || apps->waiting_ns != now_ns) {
		statsd_apps_flush(apps);
		apps->filled = app->process;
		apps->filled_names = &app->names;
		apps->waiting_ns = now_ns;
	}
	if (line->frame != STATSD_NO_FRAME && line->frame != apps->laid_frame) {
		statsd_apps_lay(apps);
		if (apps->waiting > STATSD_RECORDS - STATSD_FRAME_RECORDS) {
			statsd_apps_flush(apps);
		}
		apps->laid_frame = line->frame;
		apps->laid_from = apps->waiting;
	}
	do {
		if (apps->waiting == STATSD_RECORDS) {
			statsd_apps_flush(apps);
		}
		struct proto_record *record = &apps->record[apps->waiting];
		record->stage = (uint16_t)index;
		values++;
		accounting->sent++;
		accounting->received++;
		if (make_record(line, &app->names.name[index], now_ns, record)) {
			apps->waiting++;
		} else {
			accounting->invalid++;
		}
	} while (line->values.length > 0 && statsd_next_value(line));
	return values;
}
