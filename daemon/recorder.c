/*
 * The life of a recording: a trigger chooses its span and starts a thread that asks and writes
 * (store/recording_file.c); what triggers meanwhile joins it; the thread's end puts it into the
 * list and announces it.
 */
#include "daemon/recorder_private.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/core/app_events.h"
#include "daemon/store/recording_folder.h"
#include "daemon/util/seam.h"

enum { ANSWER_S = 15 /* for the daemon to answer its own thread */ };

static void tell_failure(struct recorder *recorder, const char *what, int error)
{
	struct recordings *recordings = &recorder->recordings;
	recordings->failed++;
	snprintf(recordings->reason, sizeof(recordings->reason), "%s", strerror(-error));
	if (!recorder->failure_told) {
		timeline_add(recorder->core->timeline, seam()->now_ns(), TIMELINE_DAEMON,
			TIMELINE_WARNING, "recorder", "no recording %s: %s", what,
			strerror(-error));
	}
	recorder->failure_told = true; /* once, until one is written again */
}

static void tell_written(struct recorder *recorder, const struct recording *row)
{
	recorder->failure_told = false;
	recorder->recordings.reason[0] = '\0';
	timeline_add(recorder->core->timeline, seam()->now_ns(), TIMELINE_DAEMON, TIMELINE_INFO,
		"recorder", "recording %s: %.96s; %.1f s, %.1f MiB%s%s", row->name, row->trigger,
		row->span_s, (double)row->bytes / 1048576, row->cut[0] ? ", " : "", row->cut);
	recorder->announce(recorder->ctx, row);
}

static void job_free(struct recording_job *job)
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
	/* the clock may have been set since: names stay, times are told by the best there is */
	if (job->result < 0) {
		tell_failure(recorder, job->row.name, job->result);
	} else {
		tell_written(recorder, &job->row);
	}
	job_free(job);
	if (recorder->closing) {
		close_handle(recorder);
	}
}

static void run(void *ctx)
{
	struct recorder *recorder = ctx;
	recording_write(recorder->job);
	uv_async_send(&recorder->written);
}

/* One more trigger of the open recording. */
static void join(struct recorder *recorder, const char *text, uint64_t now_ns)
{
	struct recording_job *job = recorder->job;
	pthread_mutex_lock(&job->lock);
	size_t used = strlen(job->more), room = sizeof(job->more) - used;
	int n = snprintf(job->more + used, room,
		",{\"time_us\":%" PRId64 ",\"mono_us\":%" PRIu64 ",\"text\":\"%s\"}",
		wallclock_us(recorder->core->wall, now_ns), now_ns / 1000, text);
	if (n < 0 || (size_t)n >= room) {
		job->more[used] = '\0'; /* only counted */
	}
	job->row.triggers++;
	pthread_mutex_unlock(&job->lock);
}

static void write_header(struct recorder *recorder, struct recording_job *job,
	enum record_kind kind, const char *subject)
{
	const struct core *core = recorder->core;
	char clean[256], host[80];
	snprintf(clean, sizeof(clean), "%s", subject);
	record_text_clean(clean);
	snprintf(host, sizeof(host), "%s", core->facts->hostname);
	record_text_clean(host);
	snprintf(job->header, sizeof(job->header),
		"{\"schema\":\"edgeprof.recording/1\",\"name\":\"%s\",\"version\":\"%s\","
		"\"hostname\":\"%s\",\"boot_id\":\"%s\","
		"\"trigger\":{\"kind\":\"%s\",\"subject\":\"%s\",\"text\":\"%s\"},"
		"\"clock\":\"CLOCK_MONOTONIC\",\"clock_synced\":%s,"
		"\"time_us\":%" PRId64 ",\"mono_us\":%" PRIu64 ",\"from_mono_us\":%" PRIu64
		",\"to_mono_us\":%" PRIu64 "}\n",
		job->row.name, core->facts->version, host, core->facts->boot_id,
		record_kind_name(kind), clean, job->row.trigger,
		wallclock_synced(core->wall) ? "true" : "false", job->row.time_us, job->t_ns / 1000,
		job->from_ns / 1000, job->to_ns / 1000);
}

static uint64_t span_ns(double seconds, uint64_t usual_ns)
{
	return isnan(seconds) ? usual_ns : (uint64_t)(seconds * 1e9);
}

/* The span, cut at its begin where its records would not fit. */
static void choose_span(struct recorder *recorder, struct recording_job *job,
	const struct api_record *record, uint64_t now_ns)
{
	const struct recorder_options *options = &recorder->options;
	uint64_t before_ns =
		record ? span_ns(record->before_s, options->before_ns) : options->before_ns;
	uint64_t after_ns =
		record ? span_ns(record->after_s, options->after_ns) : options->after_ns;
	uint64_t fits_ns = 0;
	job->t_ns = now_ns;
	job->from_ns = now_ns - (before_ns < now_ns ? before_ns : now_ns);
	job->to_ns = now_ns + after_ns;
	size_t bytes = recording_before_bytes(options->max_size, before_ns, after_ns);
	apps_events_since(recorder->core->apps, bytes / RECORDING_ROW_BYTES, &fits_ns);
	struct events_usage kept;
	apps_events_usage(recorder->core->apps, &kept);
	if (fits_ns > job->from_ns) {
		job->from_ns = fits_ns < now_ns ? fits_ns : now_ns;
		snprintf(job->row.cut, sizeof(job->row.cut), "begins later to fit max_size");
	} else if (kept.overwritten > 0 && kept.oldest_ns > job->from_ns) {
		snprintf(job->row.cut, sizeof(job->row.cut), "records begin %.1f s later",
			(double)(kept.oldest_ns - job->from_ns) / 1e9);
	}
	const struct timeline_entry *entry = timeline_from(recorder->core->timeline, 1);
	while (entry && entry->t_ns < job->from_ns) {
		entry = timeline_from(recorder->core->timeline, entry->serial + 1);
	}
	uint64_t newest = timeline_last_serial(recorder->core->timeline);
	job->first_serial = entry ? entry->serial : newest + 1;
	const struct wallclock *wall = recorder->core->wall;
	job->from_us = wallclock_us(wall, job->from_ns);
	job->to_us = wallclock_us(wall, job->to_ns) + 1;
}

static int start_thread(struct recorder *recorder, struct recording_job *job)
{
	int r = api_connect(recorder->api,
		ANSWER_S + (unsigned)((job->to_ns - job->t_ns) / 1000000000), &job->trace_fd);
	r = r < 0 ? r : api_connect(recorder->api, ANSWER_S, &job->ask_fd);
	if (r < 0) {
		return r;
	}
	recorder->job = job;
	r = uv_thread_create(&recorder->thread, run, recorder);
	if (r < 0) {
		recorder->job = NULL;
	}
	return r;
}

static int start(struct recorder *recorder, enum record_kind kind, const char *subject,
	const char *text, uint64_t now_ns, const struct api_record *record)
{
	struct recording_job *job = mem_zalloc(sizeof(*job));
	if (!job) {
		return -ENOMEM;
	}
	pthread_mutex_init(&job->lock, NULL);
	job->trace_fd = job->ask_fd = -1;
	job->max_bytes = recorder->options.max_size;
	job->total_bytes = recorder->options.total_size;
	job->keep = recorder->options.keep;
	memcpy(job->dir, recorder->recordings.dir, sizeof(job->dir));
	job->row.time_us = wallclock_us(recorder->core->wall, now_ns);
	job->row.triggers = 1;
	snprintf(job->row.trigger, sizeof(job->row.trigger), "%s", text);
	int r = record_name(&recorder->recordings, job->row.time_us, kind, subject, job->row.name);
	if (r == 0) {
		choose_span(recorder, job, record, now_ns);
		write_header(recorder, job, kind, subject);
		r = start_thread(recorder, job);
	}
	if (r < 0) {
		if (job->trace_fd >= 0) {
			close(job->trace_fd);
		}
		if (job->ask_fd >= 0) {
			close(job->ask_fd);
		}
		job_free(job);
		return r;
	}
	memcpy(recorder->recordings.open, job->row.name, sizeof(job->row.name));
	return 0;
}

static void refuse(struct recorder *recorder, const char *text, uint64_t now_ns)
{
	recorder->recordings.refused++;
	if (!recorder->refusal_told) {
		timeline_add(recorder->core->timeline, now_ns, TIMELINE_DAEMON, TIMELINE_WARNING,
			"recorder", "no recording: %d in 24 hours already (%.96s)",
			RECORDINGS_A_DAY, text);
	}
	recorder->refusal_told = true; /* once, until one is made again */
}

int recorder_trigger(struct recorder *recorder, enum record_kind kind, const char *subject,
	const char *text, uint64_t now_ns, struct api_record *record)
{
	char clean[RECORDING_TRIGGER];
	if (recorder->closing || !recorder->api || recorder->options.keep == 0) {
		return -ESHUTDOWN;
	}
	snprintf(clean, sizeof(clean), "%s", text);
	record_text_clean(clean);
	if (recorder->job) {
		join(recorder, clean, now_ns);
		if (record) {
			record->joined = true;
			memcpy(record->name, recorder->job->row.name, sizeof(record->name));
		}
		return 0;
	}
	if (!record_memory_start(recorder->memory, now_ns)) {
		refuse(recorder, clean, now_ns);
		return -ENOSPC;
	}
	recorder->refusal_told = false;
	int r = start(recorder, kind, subject, clean, now_ns, record);
	if (r < 0) {
		tell_failure(recorder, clean, r);
	} else if (record) {
		memcpy(record->name, recorder->recordings.open, sizeof(record->name));
	}
	return r == -ENOSPC ? -EIO : r;
}

int recorder_now(struct recorder *recorder, struct api_record *record)
{
	char text[RECORDING_TRIGGER];
	snprintf(text, sizeof(text), "now%s%s", record->label ? ": " : "",
		record->label ? record->label : "");
	int r = recorder_trigger(recorder, RECORD_NOW, record->label ? record->label : "", text,
		record->now_ns, record);
	if (r == -ESHUTDOWN) {
		snprintf(record->reason, sizeof(record->reason),
			recorder->options.keep == 0 ? "[recorder] keep is 0" : "the daemon stops");
	}
	return r;
}

/* Of another boot (a folder that outlives it): those of the last day count. */
static void count_kept(struct recorder *recorder)
{
	int64_t now_us = seam()->wall_ns() / 1000;
	uint64_t now_ns = seam()->now_ns();
	for (size_t i = 0; i < recorder->recordings.count; i++) {
		int64_t age_us = now_us - recorder->recordings.row[i].time_us;
		if (age_us >= 0 && age_us < INT64_C(86400000000)) {
			uint64_t age_ns = (uint64_t)age_us * 1000;
			record_memory_start(
				recorder->memory, now_ns > age_ns ? now_ns - age_ns : 0);
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
