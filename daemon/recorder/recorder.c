/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recorder.c: decides when recordings are made. A trigger chooses a span and starts a capture; what
 * triggers within the span joins it, what triggers later while it is still written gets one of its
 * own after it; a finished recording goes into the list and is announced.
 */
#include "daemon/recorder/private.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/core/core.h"
#include "daemon/core/metrics/wallclock.h"
#include "daemon/core/timeline/timeline.h"
#include "daemon/recorder/recording_folder.h"
#include "daemon/util/file.h"
#include "daemon/util/sysops.h"

static void report_failure(struct recorder *recorder, const char *what, int error)
{
	struct recordings *recordings = &recorder->recordings;
	recordings->failed++;
	snprintf(recordings->reason, sizeof(recordings->reason), "%s", strerror(-error));
	if (!recorder->failure_logged) {
		timeline_add(recorder->core->timeline, sysops()->now_ns(), TIMELINE_DAEMON,
			TIMELINE_WARNING, "recorder", "recording failed (%s): %s", what,
			strerror(-error));
	}
	recorder->failure_logged = true; /* once, until one is written again */
}

static void report_written(struct recorder *recorder, const struct recording *row)
{
	recorder->failure_logged = false;
	recorder->recordings.reason[0] = '\0';
	timeline_add(recorder->core->timeline, sysops()->now_ns(), TIMELINE_DAEMON, TIMELINE_INFO,
		"recorder", "recording %s: %.96s; %.1f s, %.0f KiB%s%s", row->name, row->trigger,
		row->span_s, ceil((double)row->bytes / 1024), row->cut[0] ? ", " : "", row->cut);
	recorder->announce(recorder->ctx, row);
}

void recorder_on_captured(struct recorder *recorder, const struct recording *row, int result,
	const struct recordings *list)
{
	recorder->recordings.open[0] = '\0';
	if (list->count > 0 || result == 0) {
		recorder->recordings.count = list->count;
		memcpy(recorder->recordings.row, list->row, sizeof(list->row));
	}
	if (result < 0) {
		report_failure(recorder, row->name, result);
	} else {
		report_written(recorder, row);
	}
	if (recorder->closing) {
		uv_close((uv_handle_t *)&recorder->timer, NULL);
	} else if (recorder->has_next) {
		recorder->has_next = false;
		int r = capture_start(recorder, &recorder->next);
		if (r < 0) {
			report_failure(recorder, recorder->next.text, r);
		}
	}
}

static int refuse(struct recorder *recorder, const struct record_cause *cause)
{
	const bool of_app = cause->flags & RECORD_OF_APP;
	bool *logged = of_app ? &recorder->apps_refusal_logged : &recorder->refusal_logged;
	recorder->recordings.refused++;
	if (!*logged) {
		timeline_add(recorder->core->timeline, cause->t_ns, TIMELINE_DAEMON,
			TIMELINE_WARNING, "recorder",
			"recording skipped: the limit of %s in 24 hours is reached (%.96s)",
			cause->flags & RECORD_OF_PERSON	 ? "requests"
			: of_app			 ? "apps"
			: cause->flags & RECORD_CRITICAL ? "critical alerts"
							 : "warnings",
			cause->text);
	}
	*logged = true; /* once, until one is made again */
	return -ENOSPC;
}

/* One of its own: at once, or, when the open one is past its span, after it. */
static int make(struct recorder *recorder, struct record_cause *cause)
{
	if (!record_memory_start(recorder->memory, cause->t_ns, cause->flags)) {
		return refuse(recorder, cause);
	}
	*(cause->flags & RECORD_OF_APP ? &recorder->apps_refusal_logged
				       : &recorder->refusal_logged) = false;
	int r = record_name(&recorder->recordings, wallclock_us(recorder->core->wall, cause->t_ns),
		cause->kind, cause->subject, cause->name);
	if (r == 0 && recorder->capture) {
		recorder->next = *cause;
		recorder->has_next = true;
		return 0;
	}
	r = r < 0 ? r : capture_start(recorder, cause);
	if (r < 0) {
		report_failure(recorder, cause->text, r);
	}
	return r == -ENOSPC ? -EIO : r;
}

int recorder_trigger(struct recorder *recorder, struct record_cause *cause, bool *joined)
{
	if (recorder->closing || !recorder->api || recorder->options.keep == 0) {
		return -ESHUTDOWN;
	}
	record_text_clean(cause->text);
	*joined = true;
	if (recorder->capture && capture_join(recorder->capture, cause)) {
		memcpy(cause->name, recorder->recordings.open, sizeof(cause->name));
		return 0;
	}
	if (recorder->has_next) {
		recorder->next.joined++;
		recorder->next.flags |= cause->flags & (RECORD_CRITICAL | RECORD_OF_PERSON);
		memcpy(cause->name, recorder->next.name, sizeof(cause->name));
		return 0;
	}
	*joined = false;
	return make(recorder, cause);
}

static uint64_t span_ns(double seconds, uint64_t usual_ns)
{
	return isnan(seconds) ? usual_ns : (uint64_t)(seconds * 1e9);
}

int recorder_now(struct recorder *recorder, struct api_record *record)
{
	const char *label = record->label ? record->label : "";
	struct record_cause cause = {.kind = RECORD_NOW,
		.flags = RECORD_OF_PERSON,
		.t_ns = record->now_ns,
		.before_ns = span_ns(record->before_s, recorder->options.before_ns),
		.after_ns = span_ns(record->after_s, recorder->options.after_ns)};
	snprintf(cause.subject, sizeof(cause.subject), "%s", label);
	snprintf(cause.text, sizeof(cause.text), "now%s%s", label[0] ? ": " : "", label);
	int r = recorder_trigger(recorder, &cause, &record->joined);
	memcpy(record->name, cause.name, sizeof(record->name));
	if (r == -ESHUTDOWN) {
		snprintf(record->reason, sizeof(record->reason),
			recorder->options.keep == 0 ? "[recorder] keep is 0" : "the daemon stops");
	}
	return r;
}

/* Recordings of previous boots (in a folder that outlives them): those of the last day count. */
static void count_kept(struct recorder *recorder)
{
	int64_t now_us = sysops()->wall_ns() / 1000;
	uint64_t now_ns = sysops()->now_ns();
	for (size_t i = 0; i < recorder->recordings.count; i++) {
		int64_t age_us = now_us - recorder->recordings.row[i].time_us;
		if (age_us >= 0 && age_us < INT64_C(86400000000)) {
			uint64_t age_ns = (uint64_t)age_us * 1000;
			record_memory_start(recorder->memory, now_ns > age_ns ? now_ns - age_ns : 0,
				recorder->recordings.row[i].flags);
		}
	}
}

int recorder_open(uv_loop_t *loop, struct core *core, const char *dir,
	const struct recorder_options *options, struct record_memory *memory,
	const uint8_t boot_id[16], void (*announce)(void *ctx, const struct recording *recording),
	void *ctx, struct recorder **ret)
{
	struct recorder *recorder = mem_zalloc(sizeof(*recorder));
	if (!recorder) {
		return -ENOMEM;
	}
	recorder->loop = loop;
	recorder->core = core;
	recorder->options = *options;
	recorder->announce = announce;
	recorder->ctx = ctx;
	recorder->memory = memory ? memory : &recorder->own_memory;
	snprintf(recorder->recordings.dir, sizeof(recorder->recordings.dir), "%s/recordings", dir);
	int folder = folder_open(recorder->recordings.dir, 0);
	if (folder >= 0) {
		recording_folder_recover(folder);
		recording_folder_scan(
			folder, options->keep, options->total_size, &recorder->recordings);
		close(folder);
	}
	if (!record_memory_adopt(recorder->memory, boot_id)) {
		count_kept(recorder);
	}
	int r = recorder_observe(recorder);
	r = r < 0 ? r : uv_timer_init(loop, &recorder->timer);
	if (r < 0) {
		recorder_unobserve(recorder);
		free(recorder);
		return r;
	}
	recorder->timer.data = recorder;
	core->recordings = &recorder->recordings;
	*ret = recorder;
	return 0;
}

void recorder_set_api(struct recorder *recorder, struct api *api)
{
	recorder->api = api;
}

void recorder_configure(struct recorder *recorder, const struct recorder_options *options)
{
	recorder->options = *options;
}

void recorder_close(struct recorder *recorder)
{
	if (!recorder || recorder->closing) {
		return;
	}
	recorder->closing = true;
	recorder_unobserve(recorder);
	if (recorder->capture) {
		capture_stop(recorder->capture);
	} else {
		uv_close((uv_handle_t *)&recorder->timer, NULL);
	}
}

void recorder_destroy(struct recorder *recorder)
{
	if (recorder) {
		recorder->core->recordings = NULL;
		free(recorder);
	}
}
