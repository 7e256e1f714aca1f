/* SPDX-License-Identifier: Apache-2.0 */
/* report_html.c: writes a report as one HTML page that needs nothing else: no network, no script.
 * The browser is denied both by its content security policy. */
#include "client/edgeprofctl/report/report.h"

#include <math.h>

#include "client/edgeprofctl/link/json.h"
#include "client/edgeprofctl/report/html.h"

enum { FACTS_MAX = 64 };

/* The format of a tile: its title, its value and a line about it. */
#define TILE(title, value, about) \
	"<div><dt>" title "</dt><dd>" value "<small>" about "</small></dd></div>\n"

/* The mean and the maximum of a sensor, NAN without. */
static double series_mean(const struct data *data, const char *name, double *most)
{
	const struct data_series *series = data_series(data, name);
	double sum = 0;
	size_t count = 0;
	*most = NAN;
	for (size_t i = 0; series && i < series->count; i++) {
		if (isfinite(series->value[i])) {
			sum += series->value[i];
			*most = fmax(*most, series->value[i]); /* fmax ignores NAN */
			count++;
		}
	}
	return count > 0 ? sum / (double)count : NAN;
}

static void sensor_tiles(const struct page *page)
{
	double most, mean = series_mean(page->data, "temperature/max", &most);
	if (isfinite(mean)) {
		html(page->out, TILE("Temperature, max", "%.1f °C", "mean %.1f °C"), most, mean);
	}
	mean = series_mean(page->data, "power/total", &most);
	if (isfinite(mean)) {
		html(page->out, TILE("Power, mean", "%.2f W", "max %.2f W"), mean / 1000,
			most / 1000);
	}
}

static void frame_tiles(const struct page *page)
{
	FILE *out = page->out;
	const struct data *data = page->data;
	const struct data_numbers *ms = html_frame_numbers(data);
	size_t count = data->frame_count, missed = 0, known = 0, throttled = 0;
	for (size_t i = 0; i < count; i++) {
		missed += html_frame_ms(&data->frame[i]) > page->deadline_ms;
		known += data->frame[i].throttled >= 0;
		throttled += data->frame[i].throttled == 1;
	}
	double fps = 1000 / data->frame_time_ms.mean, most = 1000 / ms->mean;
	if (fps > most * 1.05) {
		html(out, TILE("Frame rate", "%.1f fps", "frames overlap in time"), fps);
	} else {
		html(out, TILE("Frame rate", "%.1f fps", "max %.1f (1000 / mean)"), fps, most);
	}
	html(out, TILE("Frame, p95", "%s", "median %s, p99 %s"), html_ms(ms->p95).text,
		html_ms(ms->p50).text, html_ms(ms->p99).text);
	html(out, TILE("Frames", "%s", "in %s"), format_count((int64_t)count).text,
		format_span(data->frame_time_ms.sum / 1000).text);
	if (isfinite(page->deadline_ms)) {
		html(out, TILE("Missed deadlines", "%s", "%.1f %%; deadline %s"),
			format_count((int64_t)missed).text, (double)missed * 100 / (double)count,
			html_ms(page->deadline_ms).text);
	}
	if (known > 0) {
		html(out, TILE("Throttled", "%.1f %%", "%s frames"),
			(double)throttled * 100 / (double)known,
			format_count((int64_t)throttled).text);
	} else {
		html(out, TILE("Throttled", "-", "not reported here"));
	}
}

/* A sentence; it begins with a capital. */
static void write_note(FILE *out, const char *classes, const char *text)
{
	bool small = text[0] >= 'a' && text[0] <= 'z';
	char first[] = {(char)(small ? text[0] - 'a' + 'A' : '\0'), '\0'};
	html(out, "<li class=\"%s\">%s%s</li>", classes, first, text + small);
}

/* What bears on how far the numbers can be trusted, and the verdicts of a target. */
static void write_notes(const struct page *page)
{
	FILE *out = page->out;
	const struct data *data = page->data;
	const char *error = json_text(data->about, "error");
	const cJSON *target = json_get(page->tree, "target");
	fputs("<ul class=\"notes\">", out);
	if (error) {
		html(out, "<li class=\"bad\">The session failed: %s</li>", error);
	}
	for (const cJSON *row = json_first(target, "verdicts"); row; row = row->next) {
		html(out, "<li class=\"%s\">Target %s: %s</li>",
			json_true(row, "outside") ? "bad" : "", json_word(target, "name"),
			json_word(row, "text"));
	}
	for (const cJSON *row = json_first(page->tree, "warnings"); row; row = row->next) {
		write_note(out, "bad", row->valuestring);
	}
	if (data->frame_count == 0) {
		html(out, "<li class=\"bad\">No %s measured.</li>",
			data->stage_count > 0 ? "frames were" : "frame and no stage was");
	}
	if (data->series_count == 0) {
		fputs("<li>No sensor was recorded.</li>", out);
	}
	if (data->warmup > 0) {
		html(out, "<li>The first %zu %s are skipped as warm-up.</li>", data->warmup,
			data->frame_count > 0 ? "frames" : "executions of each stage");
	}
	fputs("</ul>\n", out);
}

static void write_head(const struct page *page)
{
	FILE *out = page->out;
	const struct data *data = page->data;
	const char *name = data->name[0] != '\0' ? data->name : data->app;
	const char *model = json_text(data->device, "model");
	html(out,
		"<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
		"<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
		"<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
		"style-src 'unsafe-inline'\">\n<title>%s: edgeprof report</title>\n<style>\n",
		name);
	fputs(report_css, out);
	html(out, "</style></head>\n<body><main>\n<header><h1>%s</h1><p class=\"dim\">", name);
	if (data->app[0] != '\0' && data->name[0] != '\0') {
		html(out, "app %s · ", data->app);
	}
	html(out, "%s · %s · %s</p>\n",
		model				      ? model
		: json_text(data->device, "hostname") ? json_word(data->device, "hostname")
						      : "device not known",
		format_time(data->begin_us).text, format_span(page->span_s).text);
	write_notes(page);
	fputs("<dl class=\"tiles\">\n", out);
	if (data->frame_count > 0) {
		frame_tiles(page);
	}
	sensor_tiles(page);
	fputs("</dl></header>\n", out);
}

static void fact(FILE *out, const char *name, const char *value)
{
	if (value && value[0] != '\0') {
		html(out, "<div><dt>%s</dt><dd>%s</dd></div>\n", name, value);
	}
}

static void facts(FILE *out, const cJSON *object, const char *array)
{
	int left = FACTS_MAX;
	for (const cJSON *item = json_first(object, array); item && left-- > 0; item = item->next) {
		fact(out, json_word(item, "name"), json_text(item, "value"));
	}
}

static void write_environment(const struct page *page)
{
	static const char *const names[] = {"hostname", "model", "os", "kernel", "arch",
		"power_mode_name", "governor", "gpu_governor", "version"};
	FILE *out = page->out;
	const struct data *data = page->data;
	html_section(out, "environment", "Environment", "");
	fputs("<dl class=\"known\">\n", out);
	facts(out, data->about, "tags");
	facts(out, data->about, "environment");
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		fact(out, names[i],
			data_tag(data, names[i]) ? NULL : json_text(data->device, names[i]));
	}
	fputs("</dl>\n", out);
	fputs(HTML_END, out);
}

int report_html(const struct data *data, const cJSON *tree, FILE *out)
{
	struct page page = {out, data, tree, data->frame_deadline_ms, data->span_s};
	if (!(page.span_s > 0) || !isfinite(page.span_s)) {
		page.span_s = 1e-3;
	}
	write_head(&page);
	html_breakdown(&page);
	html_time_axis(&page);
	html_slow_frames(&page);
	html_latency(&page);
	write_environment(&page);
	html(out, "<footer class=\"dim\">edgeprofctl " EDGEPROF_VERSION "</footer>\n");
	fputs("</main></body></html>\n", out);
	return ferror(out) ? CTL_OUTPUT : CTL_FINE;
}
