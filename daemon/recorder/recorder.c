/*
 * The life of a recording: a trigger chooses its span and starts a thread that asks and writes
 * (recorder_start.c, store/recording_file.c); what triggers within the span joins it, what triggers
 * later while it is still written gets one of its own after it; the thread's end puts it into the
 * list and announces it.
 */
#include "daemon/recorder/private.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/core/apps/trace_buffer.h"
#include "daemon/core/metrics/wallclock.h"
#include "daemon/recorder/recording_folder.h"
#include "daemon/recorder/recording_recover.h"
#include "daemon/util/sysops.h"

static void tell_failure(struct recorder *recorder, const char *what, int error)
{
	struct recordings *recordings = &recorder->recordings;
	recordings->failed++;
	snprintf(recordings->reason, sizeof(recordings->reason), "%s", strerror(-error));
	if (!recorder->failure_told) {
		timeline_add(recorder->core->timeline, sysops()->now_ns(), TIMELINE_DAEMON,
			TIMELINE_WARNING, "recorder", "no recording %s: %s", what,
			strerror(-error));
	}
	recorder->failure_told = true; /* once, until one is written again */
}

static void tell_written(struct recorder *recorder, const struct recording *row)
{
	recorder->failure_told = false;
	recorder->recordings.reason[0] = '\0';
	timeline_add(recorder->core->timeline, sysops()->now_ns(), TIMELINE_DAEMON, TIMELINE_INFO,
		"recorder", "recording %s: %.96s; %.1f s, %.1f MiB%s%s", row->name, row->trigger,
		row->span_s, (double)row->bytes / 1048576, row->cut[0] ? ", " : "", row->cut);
	recorder->announce(recorder->ctx, row);
}

void recording_job_free(struct recording_job *job)
{
	pthread_mutex_destroy(&job->lock);
	free(job);
}

static void close_handle(struct recorder *recorder)
{
	if (!uv_is_closing((uv_handle_t *)&recorder->written)) {
		uv_close((uv_handle_t *)&recorder->written, NULL);
	}
}

static void on_written(uv_async_t *async)
{
	struct recorder *recorder = async->data;
	struct recording_job *job = recorder->job;
	uv_thread_join(&recorder->thread);
	recorder->job = NULL;
	recorder->recordings.open[0] = '\0';
	if (job->kept.count > 0 || job->result == 0) {
		recorder->recordings.count = job->kept.count;
		memcpy(recorder->recordings.row, job->kept.row, sizeof(job->kept.row));
	}
	if (job->result < 0) {
		tell_failure(recorder, job->row.name, job->result);
	} else {
		tell_written(recorder, &job->row);
	}
	recording_job_free(job);
	if (recorder->closing) {
		close_handle(recorder);
	} else if (recorder->has_next) {
		recorder->has_next = false;
		int r = recorder_start(recorder, &recorder->next);
		if (r < 0) {
			tell_failure(recorder, recorder->next.text, r);
		}
	}
}

/* One more trigger of the open recording. Those of apps leave room for others. */
static void join(struct recorder *recorder, const struct record_cause *cause)
{
	struct recording_job *job = recorder->job;
	pthread_mutex_lock(&job->lock);
	size_t used = strlen(job->more),
	       most = sizeof(job->more) / (cause->flags & RECORD_OF_APP ? 2 : 1);
	size_t room = used < most ? most - used : 1;
	int n = snprintf(job->more + used, room,
		",{\"time_us\":%" PRId64 ",\"mono_us\":%" PRIu64 ",\"text\":\"%s\"}",
		wallclock_us(recorder->core->wall, cause->t_ns), cause->t_ns / 1000, cause->text);
	if (n < 0 || (size_t)n >= room) {
		job->more[used] = '\0'; /* only counted */
	}
	job->row.triggers++;
	job->row.flags |= cause->flags & (RECORD_CRITICAL | RECORD_OF_PERSON);
	pthread_mutex_unlock(&job->lock);
}

static int refuse(struct recorder *recorder, const struct record_cause *cause)
{
	const bool of_app = cause->flags & RECORD_OF_APP;
	bool *told = of_app ? &recorder->apps_refusal_told : &recorder->refusal_told;
	recorder->recordings.refused++;
	if (!*told) {
		timeline_add(recorder->core->timeline, cause->t_ns, TIMELINE_DAEMON,
			TIMELINE_WARNING, "recorder",
			"no recording: all that %s may have in 24 hours are used up (%.96s)",
			cause->flags & RECORD_OF_PERSON	 ? "requests"
			: of_app			 ? "apps"
			: cause->flags & RECORD_CRITICAL ? "critical alerts"
							 : "warnings",
			cause->text);
	}
	*told = true; /* once, until one is made again */
	return -ENOSPC;
}

/* One of its own: at once, or, when the open one is past its span, after it. */
static int make(struct recorder *recorder, struct record_cause *cause)
{
	if (!record_memory_start(recorder->memory, cause->t_ns, cause->flags)) {
		return refuse(recorder, cause);
	}
	*(cause->flags & RECORD_OF_APP ? &recorder->apps_refusal_told : &recorder->refusal_told) =
		false;
	int r = record_name(&recorder->recordings, wallclock_us(recorder->core->wall, cause->t_ns),
		cause->kind, cause->subject, cause->name);
	if (r == 0 && recorder->job) {
		recorder->next = *cause;
		recorder->has_next = true;
		return 0;
	}
	r = r < 0 ? r : recorder_start(recorder, cause);
	if (r < 0) {
		tell_failure(recorder, cause->text, r);
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
	if (recorder->job && cause->t_ns <= recorder->to_ns) {
		join(recorder, cause);
		memcpy(cause->name, recorder->job->row.name, sizeof(cause->name));
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

/* Of another boot (a folder that outlives it): those of the last day count. */
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
	int folder = recording_folder_open(recorder->recordings.dir, 0);
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
	r = r < 0 ? r : uv_async_init(loop, &recorder->written, on_written);
	if (r < 0) {
		recorder_unobserve(recorder);
		free(recorder);
		return r;
	}
	recorder->written.data = recorder;
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
	if (!recorder->job) {
		close_handle(recorder);
	}
}

void recorder_destroy(struct recorder *recorder)
{
	if (recorder) {
		recorder->core->recordings = NULL;
		free(recorder);
	}
}
