/* snapshot: the few numbers that say how the device and its inference are, at one moment. */
#include "client/edgeprofctl/verbs.h"

#include <math.h>
#include <string.h>

#include "client/edgeprofctl/link/json.h"
#include "client/edgeprofctl/term/format.h"
#include "client/edgeprofctl/term/table.h"

/* A number that is older says how old it is. */
static const double OLD_MS = 2000;

static void add(struct table *table, const char *name, const char *value, const char *note)
{
	bool known = strcmp(value, "-") != 0;
	table_add(table, TONE_DIM, "%s", name);
	table_add(table, known ? TONE_NONE : TONE_DIM, "%s", value);
	table_add(table, TONE_DIM, "%s", note);
}

static void add_memory(struct table *table, const cJSON *report, const char *why)
{
	const cJSON *memory = json_get(report, "memory_usage");
	double percent = json_number(memory, "percent");
	char value[96], note[256];
	if (isnan(percent)) {
		add(table, "Memory", "-", why);
		return;
	}
	snprintf(value, sizeof(value), "%.1f %%", percent);
	snprintf(note, sizeof(note), "%s used, %s available of %s",
		format_bytes(json_number(memory, "bytes")).text,
		format_bytes(json_number(memory, "available_bytes")).text,
		format_bytes(json_number(memory, "total_bytes")).text);
	add(table, "Memory", value, note);
}

static void add_inference(struct table *table, const cJSON *report, const char *why, bool utf8)
{
	double latency = json_number(report, "inference_latency");
	char note[256];
	int apps = json_count(report, "apps");
	int length = snprintf(note, sizeof(note), "%s", json_word(report, "inference_app"));
	if (apps > 1 && length > 0 && (size_t)length < sizeof(note)) {
		snprintf(note + length, sizeof(note) - (size_t)length, ", the slowest of %d apps",
			apps);
	}
	add(table, "Inference", format_value(latency, "milliseconds", utf8).text,
		isnan(latency) ? why : note);
}

static void add_processes(struct table *table, const cJSON *report)
{
	for (const cJSON *row = json_first(report, "processes"); row != NULL; row = row->next) {
		char note[192];
		snprintf(note, sizeof(note), "peak %s, virtual %s",
			format_bytes(json_number(row, "peak_rss_bytes")).text,
			format_bytes(json_number(row, "vms_bytes")).text);
		add(table, json_word(row, "name"), format_bytes(json_number(row, "rss_bytes")).text,
			note);
	}
}

static void show_snapshot(struct ctl *ctl, const cJSON *report)
{
	static const struct column columns[] = {
		{NULL, false, true}, {NULL, true, false}, {NULL, false, true}};
	static const struct {
		const char *field, *title, *unit;
	} rows[] = {
		{"cpu_usage", "CPU", "percent"},
		{"temperature", "Temperature", "celsius"},
		{"power_consumption", "Power", "milliwatts"},
	};
	bool utf8 = ctl->style.utf8;
	const cJSON *reasons = json_get(report, "reasons");
	struct table table;
	table_init(&table, columns, sizeof(columns) / sizeof(columns[0]));
	fprintf(ctl->output.stream, "%s%s%s at %s%s\n", style_on(&ctl->style, TONE_BOLD),
		json_word(report, "hostname"), style_off(&ctl->style, TONE_BOLD),
		format_time(json_integer(report, "time_us")).text,
		json_true(report, "clock_synced") ? "" : " (clock not synchronised)");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		double age_ms = json_number(json_get(report, "ages_ms"), rows[i].field);
		const char *why = json_word(reasons, rows[i].field);
		add(&table, rows[i].title,
			format_value(json_number(report, rows[i].field), rows[i].unit, utf8).text,
			age_ms >= OLD_MS ? format_ago(age_ms).text : why);
	}
	add_memory(&table, report, json_word(reasons, "memory_usage"));
	add_inference(&table, report, json_word(reasons, "inference_latency"), utf8);
	add_processes(&table, report);
	table_print(&table, &ctl->style, ctl->output.stream, 0);
	table_finish(&table);
}

int verb_snapshot(struct ctl *ctl)
{
	cJSON *report;
	cJSON *parameters = ctl_parameters("app", ctl->options.app);
	int status = ctl_call(ctl, "GetSnapshot", parameters, false, &report);
	if (status != CTL_FINE) {
		return status;
	}
	if (!ctl_json(ctl, report)) {
		show_snapshot(ctl, report);
	}
	cJSON_Delete(report);
	return CTL_FINE;
}
