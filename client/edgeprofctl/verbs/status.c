/* status: one screen that answers "is all well here?". */
#include "client/edgeprofctl/verbs.h"

#include <math.h>
#include <string.h>

#include "client/edgeprofctl/link/json.h"
#include "client/edgeprofctl/term/format.h"
#include "client/edgeprofctl/term/table.h"

static void add(struct table *table, const char *name, enum tone tone, const char *value)
{
	table_add(table, TONE_DIM, "%s", name);
	table_add(table, tone, "%s", value);
}

static const char *or_dash(const char *text)
{
	return text[0] == '\0' ? "-" : text;
}

static void add_device(struct ctl *ctl, struct table *table, const cJSON *status)
{
	char text[512];
	bool utf8 = ctl->style.utf8;
	bool synced = json_true(status, "clock_synced");
	add(table, "Device", TONE_NONE, or_dash(json_word(status, "model")));
	snprintf(text, sizeof(text), "%s, kernel %s, %s, %lld CPUs, %.0f KiB pages",
		or_dash(json_word(status, "os")), or_dash(json_word(status, "kernel")),
		or_dash(json_word(status, "arch")), (long long)json_integer(status, "cpus"),
		json_number(status, "page_bytes") / 1024);
	add(table, "System", TONE_NONE, text);
	snprintf(text, sizeof(text), "%s, %s", format_time(json_integer(status, "time_us")).text,
		synced ? "synchronised" : "not synchronised");
	add(table, "Clock", synced ? TONE_NONE : TONE_WARN, text);
	add(table, "Temperature", TONE_NONE,
		format_value(json_number(status, "temperature_celsius"), "celsius", utf8).text);
	add(table, "CPU", TONE_NONE,
		format_value(json_number(status, "cpu_percent"), "percent", utf8).text);
	add(table, "Memory", TONE_NONE,
		format_value(json_number(status, "memory_percent"), "percent", utf8).text);
}

/* Power mode, governor: what a board of this kind can be set to. */
static void add_modes(struct table *table, const cJSON *status)
{
	char text[256];
	const cJSON *clocks = json_get(status, "jetson_clocks");
	const char *name = json_word(status, "power_mode_name");
	const char *governor = json_word(status, "governor");
	if (json_get(status, "power_mode") != NULL) {
		snprintf(text, sizeof(text), "%lld%s%.100s%s",
			(long long)json_integer(status, "power_mode"), name[0] ? " " : "", name,
			!clocks		       ? ""
			: cJSON_IsTrue(clocks) ? ", clocks pinned"
					       : ", clocks free");
		add(table, "Power mode", TONE_NONE, text);
	}
	if (governor[0] != '\0') {
		const char *gpu = json_word(status, "gpu_governor");
		snprintf(text, sizeof(text), "%.100s%s%.100s", governor,
			gpu[0] == '\0' ? "" : ", GPU ", gpu);
		add(table, "Governor", TONE_NONE, text);
	}
}

static void add_broker(struct table *table, const cJSON *broker)
{
	char text[700];
	const char *state = json_word(broker, "state");
	const char *reason = json_word(broker, "reason");
	int64_t dropped = json_integer(broker, "dropped") + json_integer(broker, "dropped_alerts");
	if (state[0] == '\0' || strcmp(state, "off") == 0) {
		snprintf(text, sizeof(text), "off%s%s", reason[0] == '\0' ? "" : ": ", reason);
		add(table, "MQTT", reason[0] == '\0' ? TONE_DIM : TONE_WARN, text);
		return;
	}
	int length = snprintf(text, sizeof(text), "%s, %s:%lld, %lld delivered, %lld queued", state,
		or_dash(json_word(broker, "host")), (long long)json_integer(broker, "port"),
		(long long)json_integer(broker, "delivered"),
		(long long)json_integer(broker, "queued"));
	if (dropped > 0 && length > 0 && (size_t)length < sizeof(text)) {
		length += snprintf(text + length, sizeof(text) - (size_t)length, ", %lld dropped",
			(long long)dropped);
	}
	if (reason[0] != '\0' && length > 0 && (size_t)length < sizeof(text)) {
		snprintf(text + length, sizeof(text) - (size_t)length, ": %s", reason);
	}
	add(table, "MQTT", style_of_state(state), text);
}

static void add_sources(struct table *table, const cJSON *status)
{
	char text[256], failing[64] = "";
	int bad = json_count(status, "sources_bad");
	if (bad > 0) {
		snprintf(failing, sizeof(failing), ", %d failing", bad);
	}
	snprintf(text, sizeof(text), "%lld ok%s, %lld metrics",
		(long long)json_integer(status, "sources_ok"), failing,
		(long long)json_integer(status, "metrics"));
	add(table, "Sources", bad > 0 ? TONE_WARN : TONE_NONE, text);
	for (const cJSON *source = json_first(status, "sources_bad"); source != NULL;
		source = source->next) {
		const char *state = json_word(source, "state");
		const char *reason = json_word(source, "reason");
		table_add(table, TONE_NONE, "  %s", json_word(source, "name"));
		table_add(table, style_of_state(state), "%s%s%s", state,
			reason[0] == '\0' ? "" : ": ", reason);
	}
}

static void add_apps(struct table *table, const cJSON *status)
{
	add(table, "Apps", TONE_NONE, json_count(status, "apps") > 0 ? "" : "none");
	for (const cJSON *app = json_first(status, "apps"); app != NULL; app = app->next) {
		double fps = json_number(app, "fps");
		const char *words = json_word(app, "last_words");
		struct label last =
			format_last_fps(json_number(app, "last_fps"), json_number(app, "idle_ms"));
		char rate[72] = "";
		if (!isnan(fps)) {
			snprintf(rate, sizeof(rate), ", %.1f fps", fps);
		} else if (last.text[0] != '\0') {
			snprintf(rate, sizeof(rate), ", %s", last.text);
		}
		table_add(table, TONE_NONE, "  %s", json_word(app, "name"));
		table_add(table, style_of_state(json_word(app, "state")), "%s%s, %lld stages%s%s",
			json_word(app, "state"), rate, (long long)json_integer(app, "stages"),
			words[0] == '\0' ? "" : "; ", words);
	}
}

static void add_alerts(struct table *table, const cJSON *status)
{
	int shown = 0;
	for (const cJSON *alert = json_first(status, "alerts"); alert != NULL;
		alert = alert->next) {
		const char *severity = json_word(alert, "severity");
		const char *text = json_word(alert, "text");
		bool firing = strcmp(json_word(alert, "state"), "firing") == 0;
		table_add(table, TONE_DIM, "%s", shown++ == 0 ? "Alerts" : "");
		table_add(table, style_of_state(firing ? severity : "pending"), "%s: %s",
			firing ? severity : "pending",
			text[0] == '\0' ? json_word(alert, "rule") : text);
	}
	if (shown == 0) {
		add(table, "Alerts", TONE_GOOD, "none");
	}
}

static void add_degraded(struct table *table, const cJSON *status)
{
	const char *name = "Degraded";
	for (const cJSON *item = json_first(status, "degraded"); item != NULL; item = item->next) {
		if (cJSON_IsString(item)) {
			add(table, name, TONE_WARN, item->valuestring);
			name = "";
		}
	}
}

static void show_status(struct ctl *ctl, const cJSON *status)
{
	static const struct column columns[] = {{NULL, false, false}, {NULL, false, true}};
	struct table table;
	table_init(&table, columns, sizeof(columns) / sizeof(columns[0]));
	fprintf(ctl->output.stream, "%s%s%s: edgeprofd %s, up %s\n",
		style_on(&ctl->style, TONE_BOLD), or_dash(json_word(status, "hostname")),
		style_off(&ctl->style, TONE_BOLD), or_dash(json_word(status, "version")),
		format_span(json_number(status, "uptime_s")).text);
	add_device(ctl, &table, status);
	add_modes(&table, status);
	add_sources(&table, status);
	add_apps(&table, status);
	add_alerts(&table, status);
	add_broker(&table, json_get(status, "broker"));
	add_degraded(&table, status);
	table_print(&table, &ctl->style, ctl->output.stream, 0);
	table_finish(&table);
}

int verb_status(struct ctl *ctl)
{
	cJSON *reply;
	int status =
		ctl_call(ctl, "GetStatus", ctl_all(ctl, ctl_parameters("", NULL)), false, &reply);
	if (status != CTL_FINE) {
		return status;
	}
	if (!ctl_json(ctl, reply)) {
		show_status(ctl, reply);
	}
	cJSON_Delete(reply);
	return CTL_FINE;
}
