/*
 * From a line to records. An app of datagrams has no process to watch: it lives while lines come in
 * and ends without last words. Its places are shared between users as those of mappings are.
 */
#include "daemon/ingest/statsd/apps.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/core/status/counters.h"
#include "daemon/ingest/statsd/names.h"
#include "daemon/util/accounts.h"
#include "daemon/util/sysops.h"

static const uint64_t SECOND_NS = 1000000000;
static const char DEFAULT_APP[] = "statsd";
static const char ANOTHER_USER[] = "another user's app has this name";
static const char RESERVED[] = "the name is reserved for another user ([app NAME] user)";
static const char TOO_MANY[] = "too many apps send datagrams";

struct statsd_app {
	char name[PROTO_NAME_SIZE]; /* as the tag says, clean */
	uid_t uid;
	uint64_t last_ns; /* of its last line */
	bool fresh;	  /* records came in since the last drain */
	struct app_process *process;
	struct statsd_names names;
};

static void end_app(struct statsd_apps *apps, size_t index, enum process_end how, uint64_t now_ns)
{
	struct statsd_app *app = apps->app[index];
	if (apps->last == app) {
		apps->last = NULL;
	}
	apps_detach(apps->core->apps, app->process, how, now_ns);
	free(app);
	apps->app[index] = apps->app[--apps->count];
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
	*apps = (struct statsd_apps){.core = core};
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
	for (size_t i = 0; i < apps->count; i++) {
		if (apps->app[i]->fresh) {
			apps->app[i]->fresh = false;
			apps_drained(apps->core->apps, apps->app[i]->process);
		}
	}
}

bool statsd_apps_settle(struct statsd_apps *apps, uint64_t now_ns)
{
	bool open = false;
	for (size_t i = 0; i < apps->count; i++) {
		struct app_process *process = apps->app[i]->process;
		process->frame_state.pass_ns = now_ns; /* all that came has been read */
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

/* Ends the app that was silent the longest, a second at least, of one's own or of all. */
static bool make_room(struct statsd_apps *apps, uid_t uid, bool of_all, uint64_t now_ns)
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

static bool has_room(struct statsd_apps *apps, const struct statsd_sender *sender, uint64_t now_ns)
{
	size_t own = 0;
	for (size_t i = 0; i < apps->count; i++) {
		own += apps->app[i]->uid == sender->uid;
	}
	bool fits = accounts_fits(STATSD_APPS_MAX, own, apps->count, 1, sender->trusted);
	/* who is over the share makes room himself, who has nothing yet takes it from anybody */
	return fits || make_room(apps, sender->uid, sender->trusted || own == 0, now_ns);
}

/* Without a tag the name is nobody's own: a second user's app gets another one. */
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
	if (!has_room(apps, sender, now_ns)) {
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
	apps->app[apps->count++] = app;
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
	struct statsd_app *app = NULL;
	for (size_t i = 0; !app && i < apps->count; i++) {
		if (apps->app[i]->uid == sender->uid && strcmp(apps->app[i]->name, name) == 0) {
			app = apps->app[i];
		}
	}
	app = app ? app : add_app(apps, name, sender, now_ns);
	if (app && length <= sizeof(apps->last_tag)) {
		apps->last = app;
		apps->last_uid = sender->uid;
		apps->last_length = length;
		memcpy(apps->last_tag, tag, length);
	}
	return app;
}

/* A record of the line's present value. False: no record can say it. */
static bool make_record(const struct statsd_line *line, struct statsd_name *name, uint64_t now_ns,
	struct proto_record *record)
{
	double number = line->value;
	record->frame = line->frame; /* STATSD_NO_FRAME is PROTO_NO_FRAME */
	record->cpu_us = PROTO_CPU_NOT_MEASURED;
	record->start_ns = now_ns;
	switch (line->type) {
	case STATSD_TIME:
		if (number < 0 || number * 1e6 > (double)now_ns) {
			return false; /* it would have begun before the machine */
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
_Static_assert((int)STATSD_NAMES_MAX == (int)PROTO_DECLARATIONS, "names");

size_t statsd_apps_take(struct statsd_apps *apps, const struct statsd_sender *sender,
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
	app->fresh = true;
	struct app_accounting *accounting = &app->process->accounting;
	int index = statsd_names_find(&app->names, apps->core->apps, app->process, line);
	if (index < 0) {
		counters->statsd_refused++;
		accounting->sent++;
		accounting->dropped++;
		return 0;
	}
	do {
		struct proto_record record = {.stage = (uint16_t)index};
		values++;
		accounting->sent++;
		accounting->received++;
		if (make_record(line, &app->names.name[index], now_ns, &record)) {
			apps_record(apps->core->apps, app->process, 0, &record, now_ns);
		} else {
			accounting->invalid++;
		}
	} while (statsd_next_value(line));
	return values;
}
