/* marks.c: sets marks and lists them: labelled moments with the memory of their time, each with
 * what has changed since the previous one. The first line of each is fixed: scripts read it. */
#include "client/edgeprofctl/verb.h"

#include <math.h>

#include "client/edgeprofctl/link/json.h"
#include "client/edgeprofctl/term/format.h"

static double mib(const cJSON *object, const char *name)
{
	return json_number(object, name) / (1024.0 * 1024.0);
}

/* "12.3MB", "-" when it is not known. */
static struct label megabytes(const cJSON *mark, const char *name, int decimals)
{
	struct label label = {"-"};
	double value = mib(mark, name);
	if (!isnan(value)) {
		snprintf(label.text, sizeof(label.text), "%.*fMB", decimals, value);
	}
	return label;
}

static void show_line(struct ctl *ctl, const cJSON *mark)
{
	struct label used = {"-"};
	double percent = json_number(mark, "system_percent_used");
	if (!isnan(percent)) {
		snprintf(used.text, sizeof(used.text), "%.0f%%", percent);
	}
	fprintf(ctl->output.stream, "[%s] RSS: %s (peak: %s) | System: %s used (%s free)\n",
		json_word(mark, "label"), megabytes(mark, "rss_bytes", 1).text,
		megabytes(mark, "peak_rss_bytes", 1).text, used.text,
		megabytes(mark, "system_available_bytes", 0).text);
}

static void show_change(FILE *out, const cJSON *mark, const char *name, const char *what)
{
	double change = mib(mark, name);
	if (!isnan(change)) {
		fprintf(out, "; %s %+.1fMB", what, change);
	}
}

static void show_more(struct ctl *ctl, const cJSON *mark)
{
	FILE *out = ctl->output.stream;
	const char *app = json_text(mark, "app");
	const char *reason = json_text(mark, "memory_reason");
	double frame = json_number(mark, "frame"), age_ms = json_number(mark, "memory_age_ms");
	double elapsed_ms = json_number(mark, "since_previous_ms");
	fprintf(out, "    %s%s", style_on(&ctl->style, TONE_DIM),
		format_time(json_integer(mark, "time_us")).text);
	if (app) {
		fprintf(out, " %s", app);
	}
	if (!isnan(frame)) {
		fprintf(out, ", frame %.0f", frame);
	}
	if (!isnan(elapsed_ms)) {
		fprintf(out, "; %s later", format_span(elapsed_ms / 1000).text);
	}
	show_change(out, mark, "rss_delta_bytes", "RSS");
	show_change(out, mark, "vms_delta_bytes", "VMS");
	for (const cJSON *a = json_first(mark, "attributes"); a; a = a->next) {
		fprintf(out, "; %s %g", json_word(a, "name"), json_number(a, "value"));
	}
	if (age_ms > 0) {
		fprintf(out, "; memory as of %s before", format_span(age_ms / 1000).text);
	}
	double delay_ms = json_number(mark, "system_memory_delay_ms");
	if (delay_ms >= 1000) {
		fprintf(out, "; system memory read %s after the mark",
			format_span(delay_ms / 1000).text);
	}
	if (reason) {
		fprintf(out, "; no RSS: %s", reason);
	}
	fprintf(out, "%s\n", style_off(&ctl->style, TONE_DIM));
}

static int run_marks(struct ctl *ctl)
{
	cJSON *reply;
	cJSON *parameters = ctl_parameters("app", ctl_word(ctl, 0));
	int status = ctl_call(ctl, "ListMarks", parameters, true, &reply);
	if (status != CTL_FINE) {
		return status;
	}
	if (!ctl_json(ctl, reply)) {
		for (const cJSON *mark = json_first(reply, "marks"); mark; mark = mark->next) {
			show_line(ctl, mark);
			show_more(ctl, mark);
		}
	}
	if (json_count(reply, "marks") == 0) {
		status = ctl_fail(
			ctl, CTL_NO_DATA, "no marks yet; 'edgeprofctl mark LABEL' makes one");
	}
	cJSON_Delete(reply);
	return status;
}

const struct verb verb_marks = {"marks", "[APP]",
	"List marks, their memory and what changed between them.", "marks cam", NULL, 0, run_marks};

static void show_mark(struct ctl *ctl, const cJSON *reply)
{
	fprintf(ctl->output.stream, "Marked as event %lld.\n",
		(long long)json_integer(reply, "serial"));
}

struct mark_options {
	const char *app;
};

static int run_mark(struct ctl *ctl)
{
	const struct mark_options *options = ctl->verb_options;
	cJSON *parameters = ctl_parameters("label", ctl->words[0]);
	if (options->app) {
		cJSON_AddStringToObject(parameters, "app", options->app);
	}
	return ctl_show(ctl, "Mark", parameters, false, show_mark);
}

static const struct option_spec mark_table[] = {
	{"app", 0, "APP", "the app that the mark belongs to", option_text,
		offsetof(struct mark_options, app)},
	{.name = NULL},
};

const struct verb verb_mark = {"mark", "LABEL", "Put a mark on the timeline.",
	"mark 'model loaded'", mark_table, sizeof(struct mark_options), run_mark};
