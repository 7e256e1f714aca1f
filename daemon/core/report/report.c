/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report.c: writes the frame of an app's report: text that ends at a line, head and summary, and
 * the order of its sections. Tables of stages are in report_tables.c, single facts in
 * report_notes.c.
 */
#include "daemon/core/report/report.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "daemon/core/metrics/wallclock.h"
#include "daemon/core/report/report_text.h"
#include "daemon/util/sysops.h"

static const char cut_text[] = "(cut: the report would be longer)\n";

void report_line(struct report *report, const char *format, ...)
{
	const char *title = report->title;
	report->title = NULL;
	if (title) {
		report_line(report, "\n%s", title);
	}
	size_t room = report->size - report->length - sizeof(cut_text);
	if (report->cut) {
		return;
	}
	va_list ap;
	va_start(ap, format);
	int length = vsnprintf(report->text + report->length, room, format, ap);
	va_end(ap);
	if (length < 0 || (size_t)length + 1 >= room) {
		report->cut = true;
		memcpy(report->text + report->length, cut_text, sizeof(cut_text));
		report->length += sizeof(cut_text) - 1;
		return;
	}
	report->length += (size_t)length;
	report->text[report->length++] = '\n';
	report->text[report->length] = '\0';
}

void report_ask(struct report *report, const struct stage *stage, struct stage_answer *ret)
{
	bool exact = stage->count <= stage->filled &&
		     report->sorted + stage->filled <= APP_REPORT_SORTED;
	const struct window_query query = {.lifetime = !exact, .nearest = report->core->nearest};
	report->sorted += exact ? stage->filled : 0;
	stage_ask(stage, &query, report->scratch, ret);
	report->estimated = report->estimated || !ret->exact;
}

struct report_name report_stage_name(const struct report *report, size_t index)
{
	struct report_name name;
	const char *unit = report->relations.unit_name[index];
	snprintf(name.text, sizeof(name.text), "%s%s%s", report->app->stage[index]->base,
		unit[0] ? "@" : "", unit);
	return name;
}

double report_percent(uint64_t part, uint64_t total)
{
	return total > 0 ? 100 * (double)part / (double)total : 0;
}

static uint64_t end_of(const struct app *app, uint64_t now_ns)
{
	uint64_t end_ns = app->processes > 0 ? now_ns : app->last_seen_ns;
	return end_ns > app->since_ns ? end_ns : app->since_ns;
}

struct moment {
	char text[40];
};

/* With its offset, since who reads the text may be in another time zone. */
static struct moment moment_of(const struct wallclock *wall, uint64_t t_ns)
{
	struct moment moment = {"at an unknown time"};
	int64_t time_us = wall ? wallclock_us(wall, t_ns) : 0;
	time_t seconds = (time_t)(time_us / 1000000);
	struct tm tm;
	tzset(); /* localtime_r() does not notice that the system's zone was changed */
	if (time_us > 0 && localtime_r(&seconds, &tm)) {
		strftime(moment.text, sizeof(moment.text), "%Y-%m-%d %H:%M:%S %z", &tm);
	}
	return moment;
}

static const char *state_of(const struct app *app, uint64_t now_ns)
{
	if (app->processes > 0) {
		return app_state_name(app_state(app, now_ns));
	}
	return app->last_words[0] ? app->last_words : "ended";
}

static void frames_lines(struct report *report)
{
	const struct frames *frames = report->app->frames;
	struct window_query query = {.lifetime = true, .nearest = report->core->nearest};
	struct frames_stats stats;
	if (!frames || frames->count == 0) {
		report_line(report, "Frames      none were reported");
		return;
	}
	frames_ask(frames, &query, report->scratch, &stats);
	double fps = stats.fps;
	if (frames->times.filled == frames->times.all.count) {
		query.lifetime = false;
		frames_ask(frames, &query, report->scratch, &stats);
	}
	report->estimated = report->estimated || !stats.exact;
	if (!stats.sufficient) {
		report_line(report, "Frames      %" PRIu64 ": insufficient data", frames->count);
		return;
	}
	char rate[24] = "-"; /* of frames that ended at the same time */
	char mean[48] = "";  /* is not kept beyond the recent window */
	if (!isnan(fps)) {
		snprintf(rate, sizeof(rate), "%.2f", fps);
	}
	if (!isnan(stats.fps_mean)) {
		snprintf(mean, sizeof(mean), ", %.2f fps (mean of 1/dt)", stats.fps_mean);
	}
	report_line(report, "Frames      %" PRIu64 "; %s fps (frames over time)%s", frames->count,
		rate, mean);
	report_line(report, "Frame time  mean %.1f, P95 %.1f, P99 %.1f, jitter %.1f ms",
		stats.times.mean, stats.times.p95, stats.times.p99, stats.times.std);
	if (stats.latencies.count > 0) {
		report_line(report, "End to end  mean %.1f, P95 %.1f, P99 %.1f, max %.1f ms",
			stats.latencies.mean, stats.latencies.p95, stats.latencies.p99,
			stats.latencies.max);
	}
	if (frames->skipped_ids > 0) {
		report_line(report, "Lost        %" PRIu64 " frame ids never came",
			frames->skipped_ids);
	}
}

static void report_head(struct report *report)
{
	const struct app *app = report->app;
	const struct wallclock *wall = report->core->wall;
	struct app_accounting events;
	app_accounting(app, &events);
	report_line(report, "REPORT OF %s", app->name);
	report_line(report, "User        %u", (unsigned)app->uid);
	report_line(report, "State       %s (%s)", state_of(app, report->end_ns),
		moment_of(wall, report->end_ns).text);
	char run[32] = "";
	if (app->run > 1) {
		snprintf(run, sizeof(run), ", run %" PRIu64, app->run);
	}
	report_line(report, "Began       %s, %.1f s before, %" PRIu64 " start%s%s",
		moment_of(wall, app->since_ns).text, (double)(report->end_ns - app->since_ns) / 1e9,
		app->starts, app->starts == 1 ? "" : "s", run);
	if (app->covers_since_ns > 0) {
		report_line(report,
			"Covers      statistics since %s, after a restart of the daemon",
			moment_of(wall, app->covers_since_ns).text);
	}
	if (app->missing > 0) {
		report_line(report,
			"Missing     up to %" PRIu64 " event%s from before a restart of the daemon",
			app->missing, app->missing == 1 ? "" : "s");
	}
	frames_lines(report);
	if (app->end == PROCESS_ENDED && app->last_words[0]) { /* while the daemon was away */
		report_line(report,
			"Events      %" PRIu64 " received; what was sent later is not known",
			events.received);
		return;
	}
	report_line(report,
		"Events      %" PRIu64 " sent, %" PRIu64 " received, %" PRIu64 " dropped",
		events.sent, events.received, events.dropped);
}

bool app_report_worth(const struct app *app)
{
	bool worth = app->frames && app->frames->count > 0;
	for (size_t i = 0; i < app->stages; i++) {
		worth = worth || app->stage[i]->count > 0;
	}
	return worth;
}

void app_report_summary(const struct app *app, uint64_t now_ns, char ret[APP_REPORT_SUMMARY])
{
	const struct frames *frames = app->frames;
	double seconds = (double)(end_of(app, now_ns) - app->since_ns) / 1e9;
	uint64_t misses = frames ? frames->misses : 0, runs = 0;
	for (size_t i = 0; i < app->stages; i++) {
		misses += app->stage[i]->misses;
		runs += app->stage[i]->count;
	}
	char fps[24] = "";
	double time_ns = frames ? (double)(frames->last_tick_ns - frames->first_tick_ns) -
					  (double)frames->paused_ns
				: 0;
	if (frames && frames->count > 1 && time_ns > 0) {
		snprintf(fps, sizeof(fps), " at %.1f fps",
			(double)(frames->count - 1) * 1e9 / time_ns);
	}
	bool of_frames = frames && frames->count > 0;
	uint64_t count = of_frames ? frames->count : runs;
	snprintf(ret, APP_REPORT_SUMMARY,
		"%" PRIu64 " %s%s%s, %" PRIu64 " missed deadline%s, in a run of %.1f s", count,
		of_frames ? "frame" : "execution", count == 1 ? "" : "s", fps, misses,
		misses == 1 ? "" : "s", seconds);
}

int app_report_write(
	const struct core *core, const struct app *app, uint64_t now_ns, char *text, size_t size)
{
	static const struct {
		const char *title; /* NULL: the section writes its own */
		void (*append)(struct report *report);
	} sections[] = {{NULL, report_head}, {"PIPELINE PROFILING REPORT", report_pipeline},
		{"Outside frames", report_outside}, {NULL, report_categories},
		{"By compute unit", report_units}, {"Most time in", report_top},
		{"Deadlines", report_deadlines}, {NULL, report_slow_frames},
		{"Energy in the last interval (estimate: " APP_ENERGY_ORIGIN ")", report_energy},
		{"Keep in mind", report_hygiene}, {NULL, report_diagnosis}};
	size_t window = app->frames ? 2 * app->frames->window : 2;
	struct report report = {.text = text,
		.size = size,
		.core = core,
		.app = app,
		.end_ns = end_of(app, now_ns),
		.width = 16};
	uint8_t order[APP_STAGES_MAX], depth[APP_STAGES_MAX];
	app_relate(app, &report.relations);
	app_tree(app, &report.relations, order, depth);
	for (size_t i = 0; i < app->stages; i++) {
		const struct stage *stage = app->stage[order[i]];
		int length = (int)strlen(report_stage_name(&report, order[i]).text) + 2 * depth[i];
		report.width = length > report.width ? length : report.width;
		window = stage->window > window ? stage->window : window;
	}
	report.scratch = mem_calloc(window, sizeof(*report.scratch));
	int r = report.scratch ? 0 : -ENOMEM;
	if (r == 0) {
		for (size_t i = 0; i < sizeof(sections) / sizeof(sections[0]); i++) {
			report.title = sections[i].title;
			sections[i].append(&report);
		}
		r = report.failed ? -ENOMEM : (int)report.length;
	}
	free(report.scratch);
	return r;
}

/* What follows the word at the beginning of a line. */
static const char *line_of(const char *text, const char *word)
{
	const char *at = strstr(text, word);
	return at ? at + strlen(word) : "";
}

void app_report_parse(const char *text, int64_t until_us, struct past_report *ret)
{
	const char *state = line_of(text, "\nState "), *began = line_of(text, "\nBegan ");
	const char *before = strstr(began, " s before"), *run = strstr(began, ", run ");
	const char *end = strchr(began, '\n');
	double seconds = 0;
	while (before && before > began && strchr("0123456789.", before[-1])) {
		before--;
	}
	if (before && end && before < end) {
		seconds = strtod(before, NULL);
	}
	state += strspn(state, " ");
	int length = (int)strcspn(state, "\n(");
	while (length > 0 && state[length - 1] == ' ') {
		length--;
	}
	bool ended = strncmp(state, "ended", 5) == 0;
	bool killed = strncmp(state, "died in ", 8) == 0 || (length == 4 && *state == 'd');
	ret->state = ended ? APP_ENDED : killed ? APP_KILLED : APP_DIED;
	snprintf(ret->last_words, sizeof(ret->last_words), "%.*s",
		ended && length == 5 ? 0 : length, state);
	ret->run = run && end && run < end ? strtoull(run + 6, NULL, 10) : 1;
	ret->until_us = until_us;
	ret->since_us = until_us - (int64_t)(seconds * 1e6);
}
