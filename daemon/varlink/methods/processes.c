/* ListProcesses: the rows of watched processes; those of other users only for who may see them. */
#include <math.h>
#include <string.h>

#include "daemon/core/core.h"
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

static void write_text_opt(struct json *out, const char *name, const char *text)
{
	if (text) {
		json_string_opt(out, name, text);
	}
}

static void write_scheduling(struct json *out, const struct process_row *row)
{
	if (row->scheduling_known) {
		json_integer(out, "last_core", row->last_core);
		json_integer(out, "priority", row->priority);
		json_integer(out, "nice", row->nice);
		json_integer(out, "rt_priority", row->rt_priority);
		json_string_opt(out, "policy", process_policy_name(row->policy));
	}
	json_string_opt(out, "affinity", row->cpus);
}

static void write_memory(struct json *out, const struct process_row *row)
{
	json_number_opt(out, "mem_percent", row->mem_percent);
	json_number_opt(out, "minor_faults", row->minor_faults);
	json_number_opt(out, "major_faults", row->major_faults);
	if (row->memory_limit_bytes != 0) {
		json_unsigned(out, "memory_limit_bytes", row->memory_limit_bytes);
		if (isfinite(row->rss_bytes)) {
			json_bool(out, "threshold_exceeded",
				row->rss_bytes > (double)row->memory_limit_bytes);
		}
	}
}

static void write_counters(struct json *out, const struct process_extra *extra)
{
	double ipc = process_ipc(extra->counter);
	json_number_opt(out, "cycles", extra->counter[PROCESS_CYCLES]);
	json_number_opt(out, "instructions", extra->counter[PROCESS_INSTRUCTIONS]);
	json_number_opt(out, "cache_misses", extra->counter[PROCESS_CACHE_MISSES]);
	write_text_opt(out, "counters_reason", extra->counter_reason[PROCESS_CYCLES]);
	json_number_opt(out, "migrations", extra->counter[PROCESS_MIGRATIONS]);
	json_number_opt(out, "context_switches", extra->counter[PROCESS_CONTEXT_SWITCHES]);
	write_text_opt(out, "migrations_reason", extra->counter_reason[PROCESS_MIGRATIONS]);
	json_number_opt(out, "ipc", ipc);
	json_string_opt(out, "ipc_verdict", process_ipc_verdict(ipc));
}

static void write_age(struct json *out, const char *name, uint64_t t_ns, uint64_t now_ns)
{
	if (t_ns != 0) {
		json_number(out, name, row_age_ms(now_ns, t_ns));
	}
}

static void write_extra(struct json *out, const struct process_extra *extra, uint64_t now_ns)
{
	write_age(out, "details_age_ms", extra->t_ns, now_ns);
	json_number_opt(out, "wait_percent", extra->wait_percent);
	json_number_opt(out, "run_delay_ms", extra->run_delay_ms);
	write_text_opt(out, "wait_reason", extra->wait_reason);
	json_number_opt(out, "voluntary_switches", extra->voluntary);
	json_number_opt(out, "involuntary_switches", extra->involuntary);
	write_text_opt(out, "switches_reason", extra->switches_reason);
	json_number_opt(out, "read_bytes", extra->read_bytes);
	json_number_opt(out, "write_bytes", extra->write_bytes);
	json_number_opt(out, "cancelled_bytes", extra->cancelled_bytes);
	write_text_opt(out, "io_reason", extra->io_reason);
	json_whole_opt(out, "fds", extra->fds);
	write_text_opt(out, "fds_reason", extra->fds_reason);
	json_whole_opt(out, "pss_bytes", extra->pss_bytes);
	write_age(out, "pss_age_ms", extra->pss_ns, now_ns);
	write_text_opt(out, "pss_reason", extra->pss_reason);
	json_string_opt(out, "cgroup", extra->cgroup);
	json_number_opt(out, "quota_percent", extra->quota_percent);
	json_whole_opt(out, "nr_throttled", extra->nr_throttled);
	json_whole_opt(out, "throttled_us", extra->throttled_us);
	write_age(out, "cgroup_age_ms", extra->group_ns, now_ns);
	write_counters(out, extra);
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
	json_number_opt(out, "cpu_percent", row->cpu_percent);
	json_number_opt(out, "user_percent", row->user_percent);
	json_number_opt(out, "system_percent", row->system_percent);
	json_whole_opt(out, "rss_bytes", row->rss_bytes);
	json_whole_opt(out, "vms_bytes", row->vms_bytes);
	json_whole_opt(out, "peak_rss_bytes", row->peak_rss_bytes);
	json_unsigned(out, "threads", row->threads);
	json_number(out, "age_ms", row_age_ms(cursor->now_ns, row->t_ns));
	json_number_opt(out, "guest_percent", row->guest_percent);
	json_number_opt(out, "iodelay_percent", row->iodelay_percent);
	write_text_opt(out, "iodelay_reason", row->iodelay_reason);
	json_whole_opt(out, "iodelay_ticks", row->iodelay_ticks);
	write_memory(out, row);
	write_scheduling(out, row);
	write_extra(out, &row->extra, cursor->now_ns);
	if (cursor->all) {
		write_busiest(out, &row->extra);
	}
	json_close(out, '}');
	return true;
}

static double metric_value(const struct core *core, const char *name)
{
	const struct metric *metric = metrics_find(core->metrics, name);
	return metric ? metric->value : (double)NAN;
}

static void processes_tail(const struct list_cursor *cursor, struct json *out, bool last)
{
	const struct core *core = cursor->core;
	if (!last) {
		return;
	}
	double total = metric_value(core, "memory/total");
	if (!isfinite(total)) {
		total = metric_value(core, "memory/available") + metric_value(core, "memory/used");
	}
	json_whole_opt(out, "memory_total_bytes", total);
	json_whole_opt(out, "memory_available_bytes", metric_value(core, "memory/available"));
}

static const struct list_ops process_list = {
	.field = "processes", .item = process_item, .tail = processes_tail};

enum api_result method_list_processes(struct api_call *call)
{
	struct list_cursor cursor;
	list_cursor_init(&cursor, call);
	cursor.all = call->value[0].boolean;
	return list_start(call, &process_list, &cursor);
}
