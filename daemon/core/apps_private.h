/* What the files of the app registry share: apps.c (who is there), app_records.c (what they say),
 * app_metrics.c (what becomes of it). */
#pragma once

#include "daemon/core/apps.h"

struct apps {
	struct metrics *metrics;
	struct source *source;
	struct timeline *timeline;
	struct apps_options options;
	size_t count;
	struct app *app[APPS_MAX];
	size_t stages;
	uint64_t stages_refused;
	uint64_t sampled_ns; /* 0 = never */
	double *scratch;     /* for a window of either kind */
};

struct app_by_id_event {
	uint64_t id, t_ns, frame;
	uint32_t cpu_us;
	uint16_t stage; /* declaration index */
	bool end;
	bool waited; /* has seen the end of a pass */
};

struct app_by_id {
	size_t count;
	struct app_by_id_event event[APP_BY_ID_MAX];
};

enum { APP_TICKS_MAX = 256 };

struct app_tick {
	uint64_t t_ns, id, latency_ns;
};

struct app_ticks {
	size_t count;
	struct app_tick tick[APP_TICKS_MAX];
};

/* What a believable record does; each in the file of its kind. False: it was of no use. */
bool app_take_complete(struct apps *apps, struct app_process *process, uint32_t slot,
	const struct proto_record *record);
bool app_take_by_id(struct apps *apps, struct app_process *process,
	const struct proto_record *record, bool end);
bool app_take_frame(struct apps *apps, struct app_process *process, uint32_t slot,
	const struct proto_record *record);

/* Queues a finished frame of an app that has frames; -ENOMEM. Applies the queue. */
int app_ticks_add(struct app_process *process, const struct app_tick *tick);
void app_ticks_apply(struct app_process *process);

/* Applies what waits; with force nothing goes on waiting. */
void app_by_id_apply(struct apps *apps, struct app_process *process, bool force);

/* Queues a begin or end; -ENOMEM when there is no memory for the queue. */
int app_by_id_add(
	struct apps *apps, struct app_process *process, const struct app_by_id_event *event);

/* The stage of a declaration, made at its first event; NULL when memory is short. */
struct stage *app_stage_of(struct apps *apps, struct app_process *process, uint32_t index);

/* Frees a place for a stage: one that no process uses any more, the least recently used. False when
 * there is none. app NULL = of any app. */
bool apps_retire_stage(struct apps *apps, struct app *app);

/* Metrics of a new stage or frame stream. A refused one stays NULL and is counted by metrics. */
void app_metrics_add_stage(struct apps *apps, const struct app *app, struct stage *stage);
void app_metrics_add_frames(struct apps *apps, const struct app *app);
void app_metrics_retire_stage(struct apps *apps, struct stage *stage);
void app_metrics_retire_frames(struct apps *apps, struct frames *frames);
