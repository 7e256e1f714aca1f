/* What a recording begins with: its span, its header, its connections and its thread. */
#include "daemon/recorder/private.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "daemon/core/apps/trace_buffer.h"
#include "daemon/core/metrics/wallclock.h"
#include "daemon/core/status/facts.h"
#include "daemon/util/sysops.h"

enum { ANSWER_S = 15 /* for the daemon to answer its own thread */ };

static void write_header(
	struct recorder *recorder, struct recording_job *job, const struct record_cause *cause)
{
	const struct core *core = recorder->core;
	char clean[256], host[80];
	snprintf(clean, sizeof(clean), "%s", cause->subject);
	record_text_clean(clean);
	snprintf(host, sizeof(host), "%s", core->facts->hostname);
	record_text_clean(host);
	snprintf(job->header, sizeof(job->header),
		"{\"schema\":\"edgeprof.recording/1\",\"name\":\"%s\",\"version\":\"%s\","
		"\"hostname\":\"%s\",\"boot_id\":\"%s\","
		"\"trigger\":{\"kind\":\"%s\",\"subject\":\"%s\",\"text\":\"%s\"},\"flags\":%u,"
		"\"clock\":\"CLOCK_MONOTONIC\",\"clock_synced\":%s,"
		"\"time_us\":%" PRId64 ",\"mono_us\":%" PRIu64 ",\"from_mono_us\":%" PRIu64
		",\"to_mono_us\":%" PRIu64 "}\n",
		job->row.name, core->facts->version, host, core->facts->boot_id,
		record_kind_name(cause->kind), clean, job->row.trigger, cause->flags,
		wallclock_synced(core->wall) ? "true" : "false", job->row.time_us, job->t_ns / 1000,
		job->from_ns / 1000, job->to_ns / 1000);
}

/* The span, cut at its begin where its records would not fit. */
static void choose_span(
	struct recorder *recorder, struct recording_job *job, const struct record_cause *cause)
{
	uint64_t now_ns = cause->t_ns, fits_ns = 0;
	uint64_t before_ns = cause->before_ns, after_ns = cause->after_ns;
	job->t_ns = now_ns;
	job->from_ns = now_ns - (before_ns < now_ns ? before_ns : now_ns);
	job->to_ns = now_ns + after_ns;
	size_t bytes = recording_before_bytes(recorder->options.max_size, before_ns, after_ns);
	apps_trace_since(recorder->core->apps, bytes / RECORDING_ROW_BYTES, &fits_ns);
	struct trace_usage kept;
	apps_trace_usage(recorder->core->apps, &kept);
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
}

static void run(void *ctx)
{
	struct recorder *recorder = ctx;
	recording_write(recorder->job);
	uv_async_send(&recorder->written);
}

static int start_thread(struct recorder *recorder, struct recording_job *job)
{
	int r = api_connect(recorder->api,
		ANSWER_S + (unsigned)((job->to_ns - job->t_ns) / 1000000000), &job->trace_fd);
	r = r < 0 ? r : api_connect(recorder->api, ANSWER_S, &job->ask_fd);
	if (r < 0) {
		return r;
	}
	recorder->to_ns = job->to_ns;
	recorder->job = job;
	r = uv_thread_create(&recorder->thread, run, recorder);
	if (r < 0) {
		recorder->job = NULL;
	}
	return r;
}

void recorder_tell_clock(const struct recorder *recorder, struct recording_job *job)
{
	const struct wallclock *wall = recorder->core->wall;
	pthread_mutex_lock(&job->lock);
	job->row.time_us = wallclock_us(wall, job->t_ns);
	job->from_us = wallclock_us(wall, job->from_ns);
	job->to_us = wallclock_us(wall, job->to_ns) + 1;
	pthread_mutex_unlock(&job->lock);
}

int recorder_start(struct recorder *recorder, const struct record_cause *cause)
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
	memcpy(job->row.name, cause->name, sizeof(job->row.name));
	memcpy(job->row.trigger, cause->text, sizeof(job->row.trigger));
	job->row.triggers = 1 + cause->joined;
	job->row.flags = cause->flags;
	choose_span(recorder, job, cause);
	recorder_tell_clock(recorder, job);
	write_header(recorder, job, cause);
	int r = start_thread(recorder, job);
	if (r < 0) {
		if (job->trace_fd >= 0) {
			close(job->trace_fd);
		}
		if (job->ask_fd >= 0) {
			close(job->ask_fd);
		}
		recording_job_free(job);
		return r;
	}
	memcpy(recorder->recordings.open, cause->name, sizeof(cause->name));
	return 0;
}
