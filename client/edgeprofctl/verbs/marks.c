/* marks: labelled moments with the memory of their time, each with what changed since the one
 * before. The first line of each is fixed (acceptance G0.9): scripts read it. */
#include "client/edgeprofctl/verbs.h"

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
	if (app != NULL) {
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
	for (const cJSON *a = json_first(mark, "attributes"); a != NULL; a = a->next) {
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
	if (reason != NULL) {
		fprintf(out, "; no RSS: %s", reason);
	}
	fprintf(out, "%s\n", style_off(&ctl->style, TONE_DIM));
}

int verb_marks(struct ctl *ctl)
{
	cJSON *reply;
	cJSON *parameters = ctl_parameters("app", ctl->word_count > 0 ? ctl->words[0] : NULL);
	int status = ctl_call(ctl, "ListMarks", parameters, true, &reply);
	if (status != CTL_FINE) {
		return status;
	}
	if (!ctl_json(ctl, reply)) {
		for (const cJSON *mark = json_first(reply, "marks"); mark != NULL;
			mark = mark->next) {
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
