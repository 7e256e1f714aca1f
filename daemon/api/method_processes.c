/* ListProcesses: the rows of watched processes; those of other users only for who may see them. */
#include <math.h>

#include "daemon/api/list.h"
#include "daemon/api/methods.h"
#include "daemon/api/rows.h"
#include "daemon/core/core.h"

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
	char comm[sizeof(row->comm) + 1] = "";
	char state[2] = {row->state > ' ' && row->state < 0x7f ? row->state : '?', '\0'};
	for (size_t i = 0; i < sizeof(row->comm) && row->comm[i] != '\0'; i++) {
		comm[i] = row->comm[i];
	}
	json_open(out, NULL, '{');
	json_integer(out, "pid", row->pid);
	json_string(out, "name", row->watch);
	json_string(out, "comm", comm);
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
}

static const struct list_ops process_list = {
	.field = "processes", .item = process_item, .tail = processes_tail};

enum api_result method_list_processes(struct api_call *call)
{
	struct list_cursor cursor;
	list_cursor_init(&cursor, call);
	return list_start(call, &process_list, &cursor);
}
