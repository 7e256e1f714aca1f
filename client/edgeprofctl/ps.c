/* ps: the processes that the daemon watches. */
#include "client/edgeprofctl/verbs.h"

#include "client/edgeprofctl/format.h"
#include "client/edgeprofctl/json.h"
#include "client/edgeprofctl/table.h"

static void show_processes(struct ctl *ctl, const cJSON *reply)
{
	static const struct column columns[] = {
		{"PID", true, false},
		{"NAME", false, true},
		{"COMM", false, true},
		{"UID", true, false},
		{"STATE", false, false},
		{"CPU %", true, false},
		{"USER %", true, false},
		{"SYS %", true, false},
		{"MEM %", true, false},
		{"RSS", true, false},
		{"PEAK", true, false},
		{"VSZ", true, false},
		{"THREADS", true, false},
	};
	static const char *const shares[] = {"cpu_percent", "user_percent", "system_percent"};
	static const char *const sizes[] = {"rss_bytes", "peak_rss_bytes", "vms_bytes"};
	double total = json_number(reply, "memory_total_bytes");
	struct table table;
	table_init(&table, columns, sizeof(columns) / sizeof(columns[0]));
	for (const cJSON *row = json_first(reply, "processes"); row != NULL; row = row->next) {
		table_add_number(&table, json_number(row, "pid"), 0);
		table_add(&table, TONE_NONE, "%s", json_word(row, "name"));
		table_add(&table, TONE_NONE, "%s", json_word(row, "comm"));
		table_add_number(&table, json_number(row, "uid"), 0);
		table_add(&table, TONE_NONE, "%s", json_word(row, "state"));
		for (size_t i = 0; i < 3; i++) {
			table_add_number(&table, json_number(row, shares[i]), 1);
		}
		table_add_number(&table, 100 * json_number(row, "rss_bytes") / total, 1);
		for (size_t i = 0; i < 3; i++) {
			table_add(&table, TONE_NONE, "%s",
				format_bytes(json_number(row, sizes[i])).text);
		}
		table_add_number(&table, json_number(row, "threads"), 0);
	}
	table_print(&table, &ctl->style, ctl->output.stream, 0);
	table_finish(&table);
}

int verb_ps(struct ctl *ctl)
{
	cJSON *reply;
	int status = ctl_call(ctl, "ListProcesses", NULL, true, &reply);
	if (status != CTL_FINE) {
		return status;
	}
	if (!ctl_json(ctl, reply)) {
		show_processes(ctl, reply);
	}
	if (json_count(reply, "processes") == 0) {
		status = ctl_fail(ctl, CTL_NO_DATA, "no process that you may see is watched");
	}
	cJSON_Delete(reply);
	return status;
}
