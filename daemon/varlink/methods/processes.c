/* SPDX-License-Identifier: Apache-2.0 */
/*
 * processes.c: answers ListProcesses, the rows of watched processes, those of other users only for
 * administrators, and WatchProcess, which changes the list of them. The process collector notices
 * by the list's serial number.
 */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "daemon/core/metrics/metrics.h"
#include "daemon/core/metrics/processes.h"
#include "daemon/varlink/methods/list.h"
#include "daemon/varlink/methods/methods.h"
#include "daemon/varlink/methods/rows.h"

/* Raw bytes of the kernel as text. */
static void write_comm(struct json *out, const char raw[16])
{
	char comm[17];
	memcpy(comm, raw, 16);
	comm[16] = '\0';
	json_string(out, "comm", comm);
}

#define ROW(name) JSON_FIELD(struct process_row, #name, name)
#define WHOLE(name) JSON_FIELD_AS(JSON_WHOLE_OPT, struct process_row, #name, name)
static const struct json_field usage_fields[] = {ROW(cpu_percent), ROW(user_percent),
	ROW(system_percent), WHOLE(rss_bytes), WHOLE(vms_bytes), WHOLE(peak_rss_bytes),
	ROW(threads)};

static const struct json_field detail_fields[] = {ROW(guest_percent), ROW(iodelay_percent),
	ROW(iodelay_reason), WHOLE(iodelay_ticks), ROW(mem_percent), ROW(minor_faults),
	ROW(major_faults)};

static const struct json_field scheduling_fields[] = {
	ROW(last_core), ROW(priority), ROW(nice), ROW(rt_priority)};
#undef ROW
#undef WHOLE

/* The rest is read less often than the row. */
#define EXTRA(name) JSON_FIELD(struct process_extra, #name, name)
#define NAMED(name, member) JSON_FIELD(struct process_extra, name, member)
#define WHOLE(name) JSON_FIELD_AS(JSON_WHOLE_OPT, struct process_extra, #name, name)
static const struct json_field extra_fields[] = {EXTRA(wait_percent), EXTRA(run_delay_ms),
	EXTRA(wait_reason), NAMED("voluntary_switches", voluntary),
	NAMED("involuntary_switches", involuntary), EXTRA(switches_reason), EXTRA(read_bytes),
	EXTRA(write_bytes), EXTRA(cancelled_bytes), EXTRA(io_reason), WHOLE(fds), EXTRA(fds_reason),
	WHOLE(pss_bytes), EXTRA(pss_reason),
	JSON_FIELD_AS(JSON_STRING_OPT, struct process_extra, "cgroup", cgroup),
	EXTRA(quota_percent), WHOLE(nr_throttled), WHOLE(throttled_us),
	NAMED("cycles", counter[PROCESS_CYCLES]),
	NAMED("instructions", counter[PROCESS_INSTRUCTIONS]),
	NAMED("cache_misses", counter[PROCESS_CACHE_MISSES]),
	NAMED("counters_reason", counter_reason[PROCESS_CYCLES]),
	NAMED("migrations", counter[PROCESS_MIGRATIONS]),
	NAMED("context_switches", counter[PROCESS_CONTEXT_SWITCHES]),
	NAMED("migrations_reason", counter_reason[PROCESS_MIGRATIONS])};
#undef EXTRA
#undef NAMED
#undef WHOLE

static void write_age(struct json *out, const char *name, uint64_t t_ns, uint64_t now_ns)
{
	if (t_ns != 0) {
		json_number(out, name, row_age_ms(now_ns, t_ns));
	}
}

static void write_details(struct json *out, const struct process_row *row)
{
	JSON_FIELDS(out, detail_fields, row);
	if (row->memory_limit_bytes != 0) {
		json_unsigned(out, "memory_limit_bytes", row->memory_limit_bytes);
		if (isfinite(row->rss_bytes)) {
			json_bool(out, "threshold_exceeded",
				row->rss_bytes > (double)row->memory_limit_bytes);
		}
	}
	if (row->scheduling_known) {
		JSON_FIELDS(out, scheduling_fields, row);
		json_string_opt(out, "policy", process_policy_name(row->policy));
	}
	json_string_opt(out, "affinity", row->cpus);
}

static void write_extra(struct json *out, const struct process_extra *extra, uint64_t now_ns)
{
	double ipc = process_ipc(extra->counter);
	write_age(out, "details_age_ms", extra->t_ns, now_ns);
	JSON_FIELDS(out, extra_fields, extra);
	write_age(out, "pss_age_ms", extra->pss_ns, now_ns);
	write_age(out, "cgroup_age_ms", extra->group_ns, now_ns);
	json_number_opt(out, "ipc", ipc);
	json_string_opt(out, "ipc_verdict", process_ipc_verdict(ipc));
}

static void write_busiest(struct json *out, const struct process_extra *extra)
{
	json_open(out, "busiest", '[');
	for (size_t i = 0; i < extra->threads; i++) {
		json_open(out, NULL, '{');
		json_integer(out, "tid", extra->thread[i].tid);
		write_comm(out, extra->thread[i].comm);
		json_number_opt(out, "cpu_percent", extra->thread[i].cpu_percent);
		json_close(out, '}');
	}
	json_close(out, ']');
}

static bool process_item(struct list_cursor *cursor, struct json *out)
{
	const struct processes *processes = cursor->core->processes;
	if (cursor->first >= processes->rows) {
		return false;
	}
	const struct process_row *row = &processes->row[cursor->first++];
	if (!cursor->permitted && row->uid != cursor->uid) {
		return true;
	}
	char state[2] = {row->state > ' ' && row->state < 0x7f ? row->state : '?', '\0'};
	json_open(out, NULL, '{');
	json_integer(out, "pid", row->pid);
	json_string(out, "name", row->watch);
	write_comm(out, row->comm);
	json_unsigned(out, "uid", row->uid);
	json_string(out, "state", state);
	JSON_FIELDS(out, usage_fields, row);
	json_number(out, "age_ms", row_age_ms(cursor->now_ns, row->t_ns));
	write_details(out, row);
	write_extra(out, &row->extra, cursor->now_ns);
	if (cursor->all) {
		write_busiest(out, &row->extra);
	}
	json_close(out, '}');
	return true;
}

static void processes_tail(const struct list_cursor *cursor, struct json *out, bool last)
{
	struct metrics *metrics = cursor->core->metrics;
	if (!last) {
		return;
	}
	double total = metrics_value(metrics, "memory/total");
	double available = metrics_value(metrics, "memory/available");
	if (!isfinite(total)) {
		total = available + metrics_value(metrics, "memory/used");
	}
	json_whole_opt(out, "memory_total_bytes", total);
	json_whole_opt(out, "memory_available_bytes", available);
}

static const struct list_ops process_list = {
	.field = "processes", .item = process_item, .tail = processes_tail};

enum api_result method_list_processes(struct api_call *call)
{
	return list_answer(call, &process_list);
}

enum {
	WATCH_PARAM_PID,
	WATCH_PARAM_PATTERN,
	WATCH_PARAM_UNIT,
	WATCH_PARAM_NAME,
	WATCH_PARAM_REMOVE
};

/* "camera*" -> camera, "/opt/bin/det?ctor" -> det_ctor */
static void name_of_pattern(const char *pattern, char name[PROTO_NAME_SIZE])
{
	const char *slash = strrchr(pattern, '/');
	const char *from = slash && slash[1] != '\0' ? slash + 1 : pattern;
	from += strspn(from, "*?");
	size_t length = strlen(from);
	while (length > 0 && strchr("*?", from[length - 1])) {
		length--;
	}
	proto_name_clean(from, length, name);
}

/* Copies the text to the watch's pattern. False when it is empty, too long or holds what no name of
 * a process or unit has. */
static bool take_pattern(struct watch *watch, const char *text, const char *suffix)
{
	size_t length = strlen(text), more = strlen(suffix);
	if (length == 0 || length + more >= sizeof(watch->pattern)) {
		return false;
	}
	for (const char *p = text; *p; p++) {
		if (iscntrl((unsigned char)*p)) {
			return false;
		}
	}
	memcpy(watch->pattern, text, length);
	memcpy(watch->pattern + length, suffix, more + 1);
	return true;
}

/* The parameter that is wrong, or NULL. */
static const char *read_watch(const struct value *value, struct watch *watch)
{
	if (value[WATCH_PARAM_PID].present) {
		watch->kind = WATCH_PID;
		watch->pid = (pid_t)value[WATCH_PARAM_PID].integer;
		snprintf(watch->name, sizeof(watch->name), "pid-%d", (int)watch->pid);
	} else if (value[WATCH_PARAM_PATTERN].present) {
		watch->kind = WATCH_PATTERN;
		if (!take_pattern(watch, value[WATCH_PARAM_PATTERN].string, "")) {
			return "pattern";
		}
		name_of_pattern(watch->pattern, watch->name);
	} else {
		const char *unit = value[WATCH_PARAM_UNIT].string;
		watch->kind = WATCH_UNIT;
		if (strchr(unit, '/') ||
			!take_pattern(watch, unit, strchr(unit, '.') ? "" : ".service")) {
			return "unit";
		}
		proto_name_clean(unit, strcspn(unit, "."), watch->name);
	}
	if (value[WATCH_PARAM_NAME].present) {
		const char *name = value[WATCH_PARAM_NAME].string;
		if (!proto_name_valid(name)) {
			return "name";
		}
		memcpy(watch->name, name, strlen(name) + 1); /* a valid one fits */
	}
	return NULL;
}

static enum api_result answer(struct api_call *call, const char *name, int count)
{
	json_string(call->out, "name", name);
	json_integer(call->out, "count", count);
	return API_LAST;
}

/* name is also looked for among patterns and units: who unwatches says what he has seen. */
static enum api_result remove_watches(struct api_call *call, const struct watch *watch)
{
	const struct value *value = call->value;
	bool by_name = value[WATCH_PARAM_NAME].present;
	const char *name = by_name ? value[WATCH_PARAM_NAME].string : watch->pattern;
	char pid[16];
	int count = processes_unwatch_runtime(
		call->core->processes, watch->pid, name[0] != '\0' ? name : NULL);
	if (count == 0) {
		snprintf(pid, sizeof(pid), "%d", (int)watch->pid);
		return reply_not_found(call->out, "watch", name[0] != '\0' ? name : pid);
	}
	return answer(call, name[0] != '\0' ? name : watch->name, count);
}

enum api_result method_watch_process(struct api_call *call)
{
	struct processes *processes = call->core->processes;
	const struct value *value = call->value;
	bool removal = value[WATCH_PARAM_REMOVE].boolean;
	int given = value[WATCH_PARAM_PID].present + value[WATCH_PARAM_PATTERN].present +
		    value[WATCH_PARAM_UNIT].present;
	struct watch watch = {.runtime = true};
	bool named = value[WATCH_PARAM_NAME].present && value[WATCH_PARAM_NAME].string[0] != '\0';
	if (given > 1 || (given == 0 && !(removal && named))) {
		return reply_invalid_parameter(call->out, "pid");
	}
	const char *bad = given == 1 ? read_watch(value, &watch) : NULL;
	if (bad) {
		return reply_invalid_parameter(call->out, bad);
	}
	if (removal) {
		return remove_watches(call, &watch);
	}
	if (processes_runtime(processes) >= WATCHES_RUNTIME_MAX) {
		return reply_limit(call->out, "watches", WATCHES_RUNTIME_MAX);
	}
	int r = processes_watch(processes, &watch);
	if (r == -ENOSPC) {
		return reply_limit(call->out, "watches", WATCHES_MAX);
	}
	return answer(call, watch.name, r == -EEXIST ? 0 : 1);
}
