/* SPDX-License-Identifier: Apache-2.0 */
/* marks.c: sets marks and lists them: labelled moments with the memory of their time, each with
 * what has changed since the previous one. The first line of each is fixed: scripts read it. */
#include "client/edgeprofctl/verb.h"

#include <string.h>

#include "client/edgeprofctl/listing.h"

enum { LABEL_MAX = 200 }; /* the daemon's */

static const char mark_template[] =
	"\\[{label}\\] RSS: {rss_bytes:MB} (peak: {peak_rss_bytes:MB}) \\| "
	"System: [{system_percent_used:0}%|-] used ({system_available_bytes:MB0} free)\n"
	"    {~dim}{time_us:time}[ {app}][, frame {frame:0}][; {since_previous_ms:ms} later]"
	"[; RSS {rss_delta_bytes:+MB}][; VMS {vms_delta_bytes:+MB}]"
	"{*attributes}; {name} {value:g6}{/}"
	"[{?memory_age_ms}; memory as of {memory_age_ms:ms} before]"
	"[{?system_memory_delay_ms>=1000}; system memory read {system_memory_delay_ms:ms} after "
	"the "
	"mark][; no RSS: {memory_reason}]{~none}\n";

static void show_marks(struct ctl *ctl, const cJSON *reply)
{
	listing_texts(ctl, mark_template, reply, "marks");
}

static int run_marks(struct ctl *ctl)
{
	const char *app = ctl_word(ctl, 0);
	return ctl_list(ctl, "ListMarks", ctl_parameters("app", app), "marks", show_marks,
		app ? "no marks of this app; 'edgeprofctl marks' lists all"
		    : "no marks yet; 'edgeprofctl mark LABEL' makes one");
}

const struct verb verb_marks = {"marks", "[APP]",
	"List marks, their memory and what changed between them.", "marks cam", NULL, run_marks};

static void show_mark(struct ctl *ctl, const cJSON *reply)
{
	listing_text(ctl, "Marked as event [{serial:0}|0].\n", reply);
}

static int run_mark(struct ctl *ctl)
{
	size_t length = strlen(ctl->words[0]);
	if (length == 0 || length > LABEL_MAX) {
		return ctl_fail(
			ctl, CTL_USAGE, "a label has 1 to %d bytes, not %zu", LABEL_MAX, length);
	}
	cJSON *parameters = ctl_parameters("label", ctl->words[0]);
	return ctl_show(
		ctl, "Mark", ctl_add_text(parameters, "app", ctl->options.app), false, show_mark);
}

static const struct option_spec mark_table[] = {
	{"app", 0, "APP", "the app that the mark belongs to", option_nonempty,
		offsetof(struct options, app)},
	{.name = NULL},
};

const struct verb verb_mark = {"mark", "LABEL", "Put a mark on the timeline.",
	"mark 'model loaded'", mark_table, run_mark};
