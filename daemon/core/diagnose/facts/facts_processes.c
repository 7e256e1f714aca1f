/* SPDX-License-Identifier: Apache-2.0 */
/* facts_processes.c: takes bystanders that are not of the app, how the board is set, and the limits
 * of the app's main process. */
#include "daemon/core/diagnose/facts/facts_processes.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/core/apps/apps.h"
#include "daemon/core/metrics/processes.h"
#include "daemon/core/metrics/throttle.h"
#include "daemon/core/status/bystanders.h"
#include "daemon/core/status/modes.h"

enum { CPUS_MAX = 4096 };

/* Throttling that began when the limit was read is seen within this time. */
#define THROTTLE_SEEN_NS UINT64_C(2000000000)

/* Also what never attached: called like the app, or watched by its name. */
static bool is_of_app(
	const struct core *core, const struct app *app, const struct bystander *process)
{
	bool own = strncmp(process->name, app->name, sizeof(process->name) - 1) == 0;
	for (size_t i = 0; i < app->processes; i++) {
		own |= app->process[i]->pid == process->pid;
	}
	for (size_t i = 0; core->processes && i < core->processes->rows; i++) {
		const struct process_row *row = &core->processes->row[i];
		own |= row->pid == process->pid && strcmp(row->watch, app->name) == 0;
	}
	return own;
}

/* Fills ret with those that use most, up to max. How many. */
static size_t take(const struct core *core, enum bystander_use use, const struct app *app,
	uint64_t now_ns, struct fact_process *ret, size_t max)
{
	const struct bystander *most = core->bystanders->most[use];
	size_t count = 0;
	for (size_t i = 0; i < BYSTANDERS_MAX && most[i].pid != 0 && count < max; i++) {
		if (!is_of_app(core, app, &most[i])) {
			struct fact_process *process = &ret[count++];
			process->pid = most[i].pid;
			memcpy(process->name, most[i].name, sizeof(most[i].name));
			process->cpu_percent = most[i].use[USE_CPU];
			process->busy_s = most[i].busy_ns ? (double)(now_ns - most[i].busy_ns) / 1e9
							  : (double)NAN;
			process->rss_bytes = most[i].use[USE_MEMORY];
			process->io_bytes = most[i].use[USE_IO];
		}
	}
	return count;
}

static void add_others(
	const struct core *core, const struct app *app, uint64_t now_ns, struct facts *facts)
{
	struct fact_process storage = {0};
	size_t count = take(core, USE_CPU, app, now_ns, facts->process, FACTS_PROCESSES), at = 0;
	take(core, USE_MEMORY, app, now_ns, &facts->largest, 1);
	if (take(core, USE_IO, app, now_ns, &storage, 1) > 0) {
		while (at < count && facts->process[at].pid != storage.pid) {
			at++;
		}
		/* It has a slot, the last one, even when it hardly computes. */
		facts->process[at < FACTS_PROCESSES ? at : FACTS_PROCESSES - 1] = storage;
	}
}

/* How many processors "0-3,6" names; NAN for a text that is cut or none. */
static double count_cpus(const char *list)
{
	double count = 0;
	while (*list) {
		char *end;
		unsigned long first = strtoul(list, &end, 10), last = first;
		if (*end == '-') {
			last = strtoul(end + 1, &end, 10);
		}
		if (end == list || last < first || last >= CPUS_MAX) {
			return NAN;
		}
		count += (double)(last - first + 1);
		list = *end == ',' ? end + 1 : end;
	}
	return count > 0 ? count : (double)NAN;
}

/* Of the app's process that computes most: a launcher is not what frames wait for. */
static void add_own(const struct processes *processes, const struct app *app, struct facts *facts)
{
	const struct process_row *own = NULL;
	for (size_t i = 0; i < processes->rows; i++) {
		const struct process_row *row = &processes->row[i];
		if (strcmp(row->watch, app->name) == 0 &&
			(!own || !(row->cpu_percent <= own->cpu_percent))) {
			own = row;
		}
	}
	if (!own) {
		return;
	}
	if (own->scheduling_known) {
		facts->nice = own->nice;
		snprintf(facts->policy, sizeof(facts->policy), "%s",
			process_policy_name(own->policy));
	}
	facts->cpus_allowed = count_cpus(own->cpus);
	if (own->extra.group_ns != 0 && isfinite(own->extra.quota_percent)) {
		facts->quota_percent = own->extra.quota_percent;
		facts->quota_throttled = own->extra.throttled_share;
	}
}

static void add_modes(
	const struct core *core, const struct modes *modes, uint64_t now_ns, struct facts *facts)
{
	uint64_t seen_ns = modes->limit_ns + THROTTLE_SEEN_NS;
	seen_ns = seen_ns < now_ns ? seen_ns : now_ns;
	bool throttled = core->throttle &&
			 throttle_times_at(&core->throttle->times, seen_ns) == THROTTLE_YES;
	memcpy(facts->governor, modes->governor, sizeof(facts->governor));
	memcpy(facts->power_mode, modes->power_mode_name, sizeof(facts->power_mode));
	if (modes->have_power_mode && !facts->power_mode[0]) {
		snprintf(facts->power_mode, sizeof(facts->power_mode), "%d", modes->power_mode);
	}
	if (modes->frequency_limit > 0 && !throttled) {
		facts->frequency_limit = modes->frequency_limit;
	}
}

void facts_add_processes(
	const struct core *core, const struct app *app, uint64_t now_ns, struct facts *ret)
{
	const struct bystanders *others = core->bystanders;
	memset(ret->process, 0, sizeof(ret->process));
	memset(&ret->largest, 0, sizeof(ret->largest));
	ret->governor[0] = ret->power_mode[0] = ret->policy[0] = '\0';
	ret->nice = 0;
	ret->frequency_limit = ret->quota_percent = ret->quota_throttled = ret->cpus_allowed = NAN;
	bool known = others && others->t_ns != 0 && now_ns <= others->t_ns + BYSTANDERS_VALID_NS;
	if (known && app->processes > 0) {
		add_others(core, app, now_ns, ret);
	}
	if (core->processes) {
		add_own(core->processes, app, ret);
	}
	if (core->modes) {
		add_modes(core, core->modes, now_ns, ret);
	}
}
