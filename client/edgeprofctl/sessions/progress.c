/* SPDX-License-Identifier: Apache-2.0 */
/* progress.c: formats the progress of a session in the foreground. */
#include "client/edgeprofctl/sessions/progress.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "client/edgeprofctl/link/json.h"
#include "client/edgeprofctl/term/format.h"
#include "client/edgeprofctl/term/text.h"
#include "proto/text.h"

enum { BAR_LONGEST = 40, BAR_SHORTEST = 5, USUAL_WIDTH = 80, PAUSE_MIN = 20, PAUSE_MAX = 250 };

void progress_lines(const cJSON *session, int64_t *shown, FILE *out)
{
	int64_t done = json_integer(session, "frames_done");
	int64_t all = json_integer(session, "frames");
	double fps = 1000 / json_number(session, "recent_mean_ms");
	for (; *shown + PROGRESS_FRAMES <= done; fputc('\n', out)) {
		*shown += PROGRESS_FRAMES;
		fprintf(out, "Frame %" PRId64, *shown);
		if (all > 0) {
			fprintf(out, "/%" PRId64, all);
		}
		fprintf(out, isfinite(fps) ? ": %.1f fps" : ": - fps", fps);
	}
}

/* 0 to 1; NAN where there is no end to reach. */
static double share_of(const cJSON *session)
{
	double frames = json_number(session, "frames_done") / json_number(session, "frames");
	double left_s = json_number(session, "left_s"), seconds = json_number(session, "seconds");
	double share = fmax(frames, (seconds - left_s) / seconds); /* the number, if one is NAN */
	return isnan(share) ? NAN : fmin(fmax(share, 0), 1);
}

static double left_of(const cJSON *session)
{
	double left_s = json_number(session, "left_s");
	double frames = json_number(session, "frames") - json_number(session, "frames_done");
	return isnan(left_s) ? frames * json_number(session, "recent_mean_ms") / 1000 : left_s;
}

static void add_blocks(struct text *text, double share, size_t columns, bool utf8)
{
	size_t full = (size_t)(share * (double)columns + 0.5);
	for (size_t i = 0; i < columns; i++) {
		const char *block = utf8 ? "█" : "#", *rest = utf8 ? "░" : ".";
		text_add(text, "%s", i < full ? block : rest);
	}
}

/* " 50 %  5.1 s, 5.0 s left" */
static void add_times(struct text *text, double share, double elapsed_s, double left_s)
{
	if (!isnan(share)) {
		text_add(text, " %3.0f %%", floor(share * 100));
	}
	text_add(text, "  %s", format_span(elapsed_s).text);
	if (!isnan(left_s)) {
		text_add(text, ", %s left", format_span(left_s).text);
	}
}

void progress_bar(
	const cJSON *session, const struct style *style, int64_t now_us, char ret[PROGRESS_SIZE])
{
	char end[192];
	const char *state = json_word(session, "state");
	struct text text = TEXT_IN(end);
	double share = NAN;
	if (strcmp(state, "warmup") == 0) {
		state = "warm-up";
		add_times(&text, share, ((double)now_us - json_number(session, "started_us")) / 1e6,
			NAN);
	} else {
		share = share_of(session);
		add_times(&text, share, json_number(session, "elapsed_s"), left_of(session));
	}
	size_t width = style->width > 0 ? style->width : USUAL_WIDTH;
	size_t taken = strlen(state) + strlen(end) + 2; /* the terminal's last column stays free */
	size_t columns = width > taken ? width - taken : 0;
	text = text_in(ret, PROGRESS_SIZE);
	text_add(&text, "%s", state);
	if (!isnan(share) && columns >= BAR_SHORTEST) {
		text_add(&text, " ");
		add_blocks(
			&text, share, columns < BAR_LONGEST ? columns : BAR_LONGEST, style->utf8);
	}
	text_add(&text, "%s", end);
	ret[text_fit(ret, width - 1)] = '\0';
}

uint64_t progress_pause_ms(const cJSON *session)
{
	int64_t done = json_integer(session, "frames_done");
	double due_ms = (double)(PROGRESS_FRAMES - done % PROGRESS_FRAMES) *
			json_number(session, "recent_mean_ms");
	return isnan(due_ms) ? PAUSE_MAX : (uint64_t)fmin(fmax(due_ms, PAUSE_MIN), PAUSE_MAX);
}
