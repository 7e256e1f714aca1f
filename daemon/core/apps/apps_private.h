/* SPDX-License-Identifier: Apache-2.0 */
/*
 * apps_private.h: declares what the files of the app registry share: apps.c (who is there),
 * records.c (what they say), metrics.c (what becomes of it).
 */
#pragma once

#include "daemon/core/apps/apps.h"
#include "daemon/core/apps/entry_quota.h"
#include "daemon/core/frames/settings.h"

struct app_marks;

enum { APPS_NOTED = 128 /* stages */ };

struct apps {
	struct metrics *metrics;
	struct source *source;
	struct timeline *timeline;
	uint64_t inherited_serial; /* newest entry of the timeline before this process */
	struct apps_options options;
	size_t count;
	struct app *app[APPS_MAX];
	struct apps_counts counts;
	size_t new_left; /* apps_allow_new() */
	size_t noted_count;
	struct stage *noted[APPS_NOTED]; /* stages with runs that are not folded yet */
	uint64_t sampled_ns, advised_ns; /* 0 = never */
	double *scratch;		 /* for a window of either kind */
	struct trace_buffer *trace;	 /* NULL until the first record */
	struct app_energy_meter energy;
	struct apps_observer observer[APPS_OBSERVERS];
	const struct throttle_times *throttle_times; /* NULL = not known */
	struct apps_config config;
	uint32_t stage_serial;	   /* of the newest stage */
	size_t by_id_grown;	   /* bytes of struct app_by_id beyond each process's first */
	struct app_value no_value; /* stands for names beyond the limits */
	struct app_marks *marks;   /* NULL until the first */
	system_memory_reader *memory_reader; /* NULL = the system's memory is not known */
	void *memory_reader_ctx;
	struct entry_quota entry_quota;
	struct app_save *save;	     /* NULL = nothing outlives the daemon */
	struct app_run_sum *run_sum; /* the last answer of apps_all_runs(); NULL */
	char other_name[APP_OTHER_NAMES][2 * PROTO_NAME_SIZE];
};

void app_by_id_destroy(struct app_by_id *queue);

/* A stage's run that belongs to a frame. */
struct app_frame_run {
	uint64_t frame, start_ns, end_ns;
	uint64_t thread; /* app_thread() */
	bool nested;	 /* inside of another stage */
	bool by_id;	 /* of no thread in particular */
	bool skipped;	 /* of the stage's statistics: warm-up */
};

/* What a believable record of a kind does; each in the file of its kind. False: it was of no use.
 */
typedef bool app_on_record(struct apps *apps, struct app_process *process, uint32_t slot,
	const struct proto_record *record);
app_on_record app_on_by_id, app_on_frame, app_on_context, app_on_deadline, app_on_frames_deadline,
	app_on_mark, app_on_mark_memory, app_on_value, app_on_attribute, app_on_cost;
/* False: no mark of that label and moment is kept. */
bool app_mark_attribute(struct apps *apps, const struct app_process *process, uint32_t index,
	const struct proto_record *record, double value);

/* The cost that came before a run in its slot. */
void app_cost_of(struct app_process *process, uint32_t slot, const struct proto_record *record,
	uint64_t *process_cpu_ns, int64_t *rss_growth);
/* Once when runs begin to grow the process, and not again within a minute. */
void app_log_growth(struct apps *apps, struct app_process *process, uint32_t index, uint64_t end_ns,
	int64_t growth);
/* The run is the parent of those that wait one level deeper in its slot. skipped: warm-up. */
void app_nest(struct app_process *process, uint32_t slot, const struct proto_record *record,
	struct stage *stage, bool skipped);
/* The hardware's state at that time. */
static inline enum throttle_value app_throttled_at(const struct apps *apps, uint64_t t_ns)
{
	return apps->throttle_times ? throttle_times_at(apps->throttle_times, t_ns)
				    : THROTTLE_UNKNOWN;
}

/* A tick that waits for its order. */
void app_tick_add(struct app_frames *frame_state, const struct app_tick *tick);
/* Counts the first ticks, at most n, up to this time. */
void app_ticks_count(struct app_frames *frame_state, size_t n, uint64_t limit_ns);

/* index: of the declaration; its stage exists. */
void app_frame_run(struct apps *apps, struct app_process *process, uint32_t index,
	const struct app_frame_run *run);

/* A number for a thread of an app. */
static inline uint64_t app_thread(const struct app_process *process, uint32_t slot)
{
	return slot + process->frame_state.serial * UINT64_C(7);
}

static inline uint64_t app_thread_bit(const struct app_process *process, uint32_t slot)
{
	return UINT64_C(1) << app_thread(process, slot) % 64;
}

/* Runs in frames: they are of no iteration that goes on. */
static inline void app_loop_add(struct stage *stage, uint64_t runs, uint64_t ns)
{
	stage->loop.inside.runs += runs;
	stage->loop.inside.ns += ns;
}

/* In loop.c. The stage runs most often by now, or is the one that did. */
void app_loop_mark(struct app *app, struct stage *stage, uint64_t thread);
/* The stage ran very often since the last iteration began. */
void app_loop_ceased(struct app *app, struct stage *stage, uint64_t thread);
/* A run on another thread. */
void app_loop_thread(struct app *app, struct stage *stage, uint64_t thread);

static inline __attribute__((always_inline)) void app_loop_run(
	struct app *app, struct stage *stage, const struct stage_run *run, uint64_t thread)
{
	struct app_loop *loop = &app->loop;
	struct stage_loop *own = &stage->loop;
	if (__builtin_expect(loop->threads != thread, 0)) {
		app_loop_thread(app, stage, thread);
	}
	if (loop->kind == LOOP_OF_FRAMES) {
		own->outside.runs++;
		own->outside.ns += run->duration_ns;
		return;
	}
	if (own->votes >= loop->votes) {
		app_loop_mark(app, stage, thread);
	}
	if (own->epoch != loop->epoch) {
		own->epoch = loop->epoch;
		own->closed = own->apart ? own->closed : own->inside;
		own->first_ns = own->inside.runs > 0 ? own->first_ns : run->end_ns;
	} else if (__builtin_expect(own->inside.runs - own->closed.runs >= LOOP_CEASED, 0)) {
		app_loop_ceased(app, stage, thread);
	}
	own->votes++;
	own->inside.runs++;
	own->inside.ns += run->duration_ns;
}

/* Applies what waits; with force nothing goes on waiting. */
void app_by_id_apply(struct apps *apps, struct app_process *process, bool force);

/* The stage of a declaration, made at its first event; NULL when memory is short. */
struct stage *app_stage_of(struct apps *apps, struct app_process *process, uint32_t index);

/* As the operator says. */
void app_configure_frames(const struct apps *apps, struct app *app);

void app_process_destroy(struct app_process *process);
/* What it owns, not the app itself. */
void app_finish(struct app *app);
void app_destroy(struct app *app);
/*
 * Previous runs and what is saved of the current one: the functions below are in runs/, which is
 * above this folder.
 */

/* A process attaches while none of the app is attached: its next run begins. */
void app_run_begin(struct apps *apps, struct app *app, uint64_t now_ns);

/* Gives up one previous run. False when there is none. */
bool apps_retire_run(struct apps *apps);
/* Until previous runs fit into what the current ones leave. */
void apps_trim_runs(struct apps *apps);

/* The metric is a stage's (or stream's) of the current run from now on. */
void app_runs_hand_over(const struct app *app, const struct metric *metric);
/* At the interval: metrics that the next run did not continue report their end, and go after
 * APP_RUN_METRICS_S. */
void app_runs_sample(struct apps *apps, struct app *app, uint64_t now_ns);
/* The app goes: its previous runs and their metrics do, too. */
void app_runs_retire(struct apps *apps, struct app *app);

/* The object, or all of the app's run, is not written any more. NULL is fine. */
void app_save_forget(struct apps *apps, const void *owner);
void app_save_forget_run(struct apps *apps, const struct app *app);
void app_save_destroy(struct apps *apps);
/* A new app goes on with the run of this process, when an earlier life of the daemon saved it. */
void app_restore(
	struct apps *apps, struct app *app, pid_t pid, uint64_t start_ticks, uint64_t now_ns);
/* A stage that was restored. */
void app_stage_restore(struct apps *apps, struct app *app, struct stage *stage);

/* Something changes that a sum of runs points to. */
void apps_forget_sum(struct apps *apps);
/* Takes an app without processes out, with its metrics and marks. */
void app_retire(struct apps *apps, size_t index);
/* The same with the one that is gone the longest of the user who has the most apps. False when
 * every app has a process. */
bool apps_retire_gone(struct apps *apps);

/* Frees a slot for a stage: one that no process uses any more, the least recently used of the user
 * who has the most. False when there is none. app NULL = of any app. */
bool apps_retire_stage(struct apps *apps, struct app *app);

/* Metrics of a new stage or frame stream. A refused one stays NULL and is counted by metrics. */
/* metrics_add() of a metric of the app; NULL: it was refused. */
struct metric *app_metric_add(
	struct apps *apps, const struct app *app, const char *name, enum unit unit);
void app_metrics_add_stage(struct apps *apps, const struct app *app, struct stage *stage);
void app_metrics_add_frames(struct apps *apps, const struct app *app);
void app_metrics_retire_stage(struct apps *apps, struct stage *stage);
/* At a sample: metrics of a previous run that nobody took over, while the app runs or has ended. */
void app_metrics_wait(struct app *run, bool running);
/* Those of all stages and of the frames of a run. */
void app_metrics_retire_run(struct apps *apps, struct app *run);
/* Any array of an app's metrics, of which some may be NULL. */
void app_metrics_retire(struct apps *apps, struct metric **metric, size_t count);

/* At the interval; when the app is given up. */
void app_values_sample(struct apps *apps, struct app *app, uint64_t now_ns);
/* Its last process ended: what it set is not of the next one. */
void app_values_end(struct app *app);
/* Checks values that were restored from memory and creates their metrics. False if they were
 * damaged; they are dropped then. */
bool app_values_restored(struct apps *apps, struct app *app);
void app_values_retire(struct apps *apps, struct app *app);

/* Judges, and sets the app's own metrics. */
void app_hang_sample(struct apps *apps, struct app *app, uint64_t now_ns);
/* The process, or the stage, goes: no more of its hangs are reported. NULL = any. */
void app_hang_forget(struct app *app, const struct app_process *process, const struct stage *stage);

void app_marks_forget(struct apps *apps, const struct app *app);

/* What is kept of marks, as parts for memory that outlives the daemon; NULL: none are kept. changes
 * counts. app_marks_make() has room for what is read into them, false: no memory; what of it cannot
 * be believed app_marks_restored() leaves out. */
enum { APP_MARK_PARTS = 9 };
bool app_marks_make(struct apps *apps);
void *app_marks_part(struct apps *apps, size_t part, size_t *bytes, uint64_t *changes);
void app_marks_restored(struct apps *apps);

void app_accounting_add(struct app_accounting *sum, const struct app_accounting *add);

/* Reports how many entries of one user were suppressed, at most once a minute per user. */
void apps_log_suppressed(struct apps *apps, uint64_t now_ns);

/* The stage's events go into __other__ from now on. */
void apps_note_other(struct apps *apps, const struct app *app, const char *stage);
