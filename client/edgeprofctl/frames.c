/* frames: frame rate, frame time and jitter of each app. */
#include "client/edgeprofctl/verbs.h"

#include <string.h>

#include "client/edgeprofctl/json.h"
#include "client/edgeprofctl/table.h"

static void add_note(struct table *table, const cJSON *frames)
{
	const char *status = json_word(frames, "status");
	double end_to_end = json_number(frames, "end_to_end_p95_ms");
	int64_t misses = json_integer(frames, "misses");
	if (strncmp(status, "insufficient", 12) == 0) {
		table_add(table, TONE_DIM, "insufficient data");
	} else if (misses > 0) {
		table_add(table, TONE_WARN, "%lld missed", (long long)misses);
	} else if (end_to_end == end_to_end) {
		table_add(table, TONE_DIM, "end to end p95 %.1f ms", end_to_end);
	} else {
		table_add(table, TONE_NONE, "%s", "");
	}
}

void show_frames(struct ctl *ctl, const cJSON *reply)
{
	static const struct column columns[] = {
		{"APP", false, true},
		{"FPS", true, false},
		{"FRAME ms", true, false},
		{"P95 ms", true, false},
		{"P99 ms", true, false},
		{"JITTER ms", true, false},
		{"FRAMES", true, false},
		{"NOTE", false, true},
	};
	static const char *const members[] = {
		"fps", "frame_time_ms", "frame_time_p95_ms", "frame_time_p99_ms", "jitter_ms"};
	struct table table;
	table_init(&table, columns, sizeof(columns) / sizeof(columns[0]));
	for (const cJSON *frames = json_first(reply, "frames"); frames != NULL;
		frames = frames->next) {
		table_add(&table, TONE_NONE, "%s", json_word(frames, "app"));
		for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
			table_add_number(&table, json_number(frames, members[i]), 1);
		}
		table_add_number(&table, json_number(frames, "total_count"), 0);
		add_note(&table, frames);
	}
	table_print(&table, &ctl->style, ctl->output.stream, 0);
	table_finish(&table);
}

int verb_frames(struct ctl *ctl)
{
	const char *app = ctl->word_count > 0 ? ctl->words[0] : NULL;
	cJSON *reply;
	int status = ctl_call(ctl, "GetFrames", ctl_parameters("app", app), true, &reply);
	if (status != CTL_FINE) {
		return status;
	}
	if (!ctl_json(ctl, reply)) {
		show_frames(ctl, reply);
	}
	if (json_count(reply, "frames") == 0) {
		status = ctl_fail(
			ctl, CTL_NO_DATA, "no frames of %s yet", app == NULL ? "any app" : app);
	}
	cJSON_Delete(reply);
	return status;
}
