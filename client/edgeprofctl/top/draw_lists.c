/* SPDX-License-Identifier: Apache-2.0 */
/* draw_lists.c: describes the lists of processes, alerts and events, which are drawn as tables. */
#include "client/edgeprofctl/top/view.h"

#define COLUMNS(array) array, sizeof(array) / sizeof((array)[0])

static const struct grid_column process_columns[] = {
	{"NAME", 0, "{name}"},
	{"PID", -7, "{pid:0}"},
	{"CPU %", -6, "{cpu_percent:1}"},
	{"RSS", -10, "[{?threshold_exceeded}{~warn}]{rss_bytes:bytes}"},
	{"THR", -4, "{threads:0}"},
	{"WAIT %", -6, "{wait_percent:1}"},
	{"STATE", 5, "{state}"},
	{"IPC", -5, "{ipc:2}"},
	{"READ/s", -10, "{read_bytes:bytes}"},
	{"WRITE/s", -10, "{write_bytes:bytes}"},
	{"FAULTS/s", -9, "{minor_faults:0}"},
	{"SWITCHES/s", -10, "{involuntary_switches:0}"},
	{"CORE", -4, "{last_core:0}"},
	{"CPUS", 8, "{affinity}"},
	{"PSS", -10, "{pss_bytes:bytes}"},
	{"PEAK", -10, "{peak_rss_bytes:bytes}"},
	{"POLICY", 12, "{policy}"},
	{"FILES", -5, "{fds:0}"},
};

static const struct grid_column alert_columns[] = {
	{"ALERT", 0, "[{state=firing}{~:severity}|{~warn}]{rule}[{!instance=_} {instance}]"},
	{"STATE", 12, "[{?silenced}{~dim}silenced|{?acked}{~dim}acknowledged|{state}]"},
	{"SEVERITY", 8, "{~:severity}{severity}"},
	{"VALUE", -10, "{value:value}"},
	{"LIMIT", -10, "{threshold:value}"},
	{"SINCE", 19, "[{since_us:time}]"},
	{"TEXT", 60, "{text}"},
};

static const struct grid_column event_columns[] = {
	{"TIME", 8, "{~dim}{time_us:clock}"},
	{"EVENT", 0, "[{~bold}{subject}{~none} ]{~:severity}{text}"},
	{"KIND", 8, "{~dim}{kind}"},
};

static const struct list {
	enum tab tab; /* by its cursor the list is sorted */
	const char *const *sorts;
	const struct grid_column *columns;
	size_t count;
	const char *empty;
} lists[PARTS] = {
	[PART_PROCESSES] = {TAB_PROCESSES,
		(const char *const[]){"cpu_percent-", "rss_bytes-", "name", "pid", NULL},
		COLUMNS(process_columns),
		"no processes: apps that attach are listed, and what [process] names"},
	[PART_ALERTS] = {TAB_EVENTS, (const char *const[]){VIEW_URGENCY, "since_us-", "rule", NULL},
		COLUMNS(alert_columns), "no alert is pending or firing"},
	[PART_EVENTS] = {TAB_EVENTS, (const char *const[]){"time_us-", NULL},
		COLUMNS(event_columns), "no events yet"},
};

static size_t rows_of(const struct view *view, enum part part, const cJSON *ret[VIEW_ROWS])
{
	const struct list *list = &lists[part];
	return view_rows(view, part, list->sorts, view->cursors[list->tab].sort, ret);
}

const cJSON *list_first(const struct view *view, enum part part)
{
	const cJSON *rows[VIEW_ROWS];
	return rows_of(view, part, rows) > 0 ? rows[0] : NULL;
}

void draw_list(struct view *view, struct box box, enum part part, struct cursor *cursor)
{
	const struct list *list = &lists[part];
	const cJSON *rows[VIEW_ROWS];
	size_t count = rows_of(view, part, rows);
	if (count == 0) {
		view_empty(view, box, part == PART_ALERTS ? TONE_GOOD : TONE_DIM, list->empty);
	} else {
		grid_draw(view, box, list->columns, list->count, rows, count, cursor);
	}
}
