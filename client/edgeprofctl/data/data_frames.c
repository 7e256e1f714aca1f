/* SPDX-License-Identifier: Apache-2.0 */
/*
 * data_frames.c: makes frames of an app's records and joins the runs of stages with them. Frames
 * are the records of frames with an id, else ticks, else the runs that carry the same id, else the
 * runs of the outermost stage that ran most often, each up to the start of the next one. A run
 * belongs to the frame of its id; one without an id to the frame of its thread that encloses it, or
 * to the interval in which it ended.
 */
#include "client/edgeprofctl/data/data_private.h"

#include <errno.h>
#include <stdlib.h>

#include "client/edgeprofctl/trace/replay.h"

/* frames at a time; frames between a run and its own, which may be of another thread; between two
 * runs of a stage in one frame, on different threads, as in the daemon's frame_table.h */
enum { IN_FLIGHT = 16, NEAR = 256, NEAR_AGAIN = 32, THREADS = 64 };
enum joined { BY_FRAME, BY_TICK, BY_STAGE };

static int by_end(const void *a, const void *b)
{
	const struct data_mark *x = a, *y = b;
	return x->end_ns != y->end_ns ? (x->end_ns > y->end_ns ? 1 : -1)
				      : (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
}

static int by_run_end(const void *a, const void *b)
{
	const struct data_run *x = a, *y = b;
	return x->end_ns != y->end_ns ? (x->end_ns > y->end_ns ? 1 : -1) : y->depth - x->depth;
}

/* The stage that ran most often outside of others; -1: none ran. */
static int most_frequent(const struct data_records *records)
{
	size_t count[DATA_STAGES_MAX] = {0};
	int most = -1;
	for (size_t i = 0; i < records->run_count; i++) {
		count[records->run[i].stage] += records->run[i].depth == 0;
	}
	for (size_t i = 0; i < records->stage_count; i++) {
		if (count[i] > 0 && (most < 0 || count[i] > count[most])) {
			most = (int)i;
		}
	}
	return most;
}

/* The newest frame of the run's id, if it still goes on for the run; NULL: the run begins one. The
 * ids of buffers are used again and again: in a frame that its thread left, or that is long ago, no
 * stage runs again. current: the frame, and 1, that the thread is in. */
static struct data_mark *mark_of_id(
	struct data_records *records, const struct data_run *run, unsigned thread, size_t current)
{
	size_t at = records->mark_count, newer = 0;
	while (newer < at && newer < NEAR && records->mark[at - 1 - newer].id != run->frame_id) {
		newer++;
	}
	if (newer == at || newer == NEAR) {
		return NULL;
	}
	struct data_mark *mark = &records->mark[at - 1 - newer];
	bool again = mark->stages >> run->stage % 64 & 1, took_part = mark->threads >> thread & 1;
	bool left = took_part && current != at - newer;
	return again && (left || newer >= NEAR_AGAIN) ? NULL : mark;
}

/* Of runs in the order of their ends. */
static void marks_of_ids(struct data_gather *gather)
{
	struct data_records *records = &gather->best;
	size_t current[THREADS] = {0};
	for (size_t i = 0; i < records->run_count; i++) {
		const struct data_run *run = &records->run[i];
		unsigned thread = (run->process * 31 + run->thread) % THREADS;
		struct data_mark *mark =
			run->has_frame ? mark_of_id(records, run, thread, current[thread]) : NULL;
		if (run->has_frame && !mark) {
			mark = data_append(gather, &records->mark, &records->mark_count,
				&records->mark_capacity, sizeof(*mark));
			if (mark) {
				*mark = (struct data_mark){.start_ns = run->start_ns,
					.id = run->frame_id,
					.thread = UINT64_MAX,
					.has_id = true};
			}
		}
		if (mark) {
			bool first = run->start_ns < mark->start_ns;
			mark->first_ns = mark->start_ns = first ? run->start_ns : mark->start_ns;
			mark->last_ns = mark->end_ns = run->end_ns;
			mark->stages |= UINT64_C(1) << run->stage % 64;
			mark->threads |= UINT64_C(1) << thread;
			current[thread] = (size_t)(mark - records->mark) + 1;
		}
	}
}

/* Frames that a pipeline was at work on when the records end are none yet: some stage that ran in
 * each one before had not reached them. */
static void drop_unfinished(struct data_records *records)
{
	const struct data_mark *mark = records->mark;
	size_t count = records->mark_count, whole = count;
	for (int bit = 0; bit < 64; bit++) {
		size_t ran = 0, first = 0, end = 0;
		for (size_t i = 0; i < count; i++) {
			if (mark[i].stages >> bit & 1) {
				first = ran++ == 0 ? i : first;
				end = i + 1;
			}
		}
		bool each = ran > 0 && ran == end - first && 2 * ran >= count;
		if (each && end < whole && count - end <= IN_FLIGHT &&
			mark[end].start_ns < mark[end - 1].end_ns) {
			whole = end;
		}
	}
	records->mark_count = whole;
}

static void marks_of_stage(struct data_gather *gather)
{
	struct data_records *records = &gather->best;
	int stage = most_frequent(records);
	for (size_t i = 0; i < records->run_count; i++) {
		const struct data_run *run = &records->run[i];
		struct data_mark *mark =
			run->stage != stage || run->depth > 0
				? NULL
				: data_append(gather, &records->mark, &records->mark_count,
					  &records->mark_capacity, sizeof(*mark));
		if (mark) {
			mark->start_ns = run->start_ns;
			mark->end_ns = run->end_ns;
			mark->throttled = run->throttled;
		}
	}
}

/* Leaves the marks of one kind, in the order of their ends. */
static enum joined choose_marks(struct data_gather *gather)
{
	struct data_records *records = &gather->best;
	size_t frames = 0, count = 0;
	for (size_t i = 0; i < records->mark_count; i++) {
		frames += records->mark[i].has_id;
	}
	for (size_t i = 0; i < records->mark_count && frames > 0; i++) {
		if (records->mark[i].has_id) {
			records->mark[count++] = records->mark[i];
		}
	}
	records->mark_count = frames > 0 ? count : records->mark_count;
	enum joined ret = frames > 0 ? BY_FRAME : records->mark_count > 0 ? BY_TICK : BY_STAGE;
	if (ret == BY_STAGE) {
		marks_of_ids(gather);
		drop_unfinished(records);
		ret = records->mark_count > 0 ? BY_FRAME : BY_STAGE;
	}
	if (ret == BY_STAGE) {
		marks_of_stage(gather);
	}
	if (records->mark_count > 0) {
		qsort(records->mark, records->mark_count, sizeof(*records->mark), by_end);
	}
	return ret;
}

/* The first mark that ends at or after the time. */
static size_t mark_at(const struct data_records *records, uint64_t t_ns)
{
	size_t low = 0, high = records->mark_count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		bool before = records->mark[middle].end_ns < t_ns;
		low = before ? middle + 1 : low;
		high = before ? high : middle;
	}
	return low;
}

/* One that was made of runs is around all of its own. No stage runs again after its end: then the
 * buffer with this id was reused. */
static bool has_run(const struct data_mark *mark, const struct data_run *run)
{
	bool around = run->start_ns >= mark->start_ns && run->end_ns <= mark->end_ns;
	bool again = run->start_ns >= mark->end_ns && (mark->stages >> run->stage % 64 & 1);
	return mark->id == run->frame_id && (around || mark->thread != UINT64_MAX) && !again;
}

static size_t frame_in_time(
	const struct data_records *records, const struct data_run *run, enum joined kind)
{
	const uint64_t thread = (uint64_t)run->process << 16 | run->thread;
	size_t at = mark_at(records, kind == BY_STAGE ? run->start_ns : run->end_ns);
	if (kind == BY_STAGE) { /* from start to start; its runs rarely overlap */
		at -= at == records->mark_count || records->mark[at].start_ns > run->start_ns;
		return at < records->mark_count ? at : DATA_NO_FRAME;
	}
	if (kind == BY_TICK) {
		return at < records->mark_count ? at : DATA_NO_FRAME;
	}
	for (size_t i = at; i < records->mark_count && i < at + IN_FLIGHT; i++) {
		const struct data_mark *mark = &records->mark[i];
		if (mark->thread == thread && mark->start_ns <= run->start_ns) {
			return i;
		}
	}
	return DATA_NO_FRAME;
}

/* Ids may be used again, and by several loops at once: of the frames with the run's id, the one
 * that its thread had open, else the nearest. */
static size_t frame_of_id(const struct data_records *records, const struct data_run *run)
{
	const struct data_mark *marks = records->mark;
	size_t own = frame_in_time(records, run, BY_FRAME);
	if (own != DATA_NO_FRAME && marks[own].id == run->frame_id) {
		return own;
	}
	size_t at = mark_at(records, run->start_ns);
	for (size_t away = 0; away < NEAR; away++) {
		if (at + away < records->mark_count && has_run(&marks[at + away], run)) {
			return at + away;
		}
		if (away < at && has_run(&marks[at - 1 - away], run)) {
			return at - 1 - away;
		}
	}
	return DATA_NO_FRAME;
}

static void join(struct data_records *records, enum joined kind)
{
	for (size_t i = 0; i < records->run_count && records->mark_count > 0; i++) {
		struct data_run *run = &records->run[i];
		run->frame = run->has_frame && kind == BY_FRAME ? frame_of_id(records, run)
								: frame_in_time(records, run, kind);
		if (run->frame != DATA_NO_FRAME) {
			struct data_mark *mark = &records->mark[run->frame];
			mark->first_ns =
				run->start_ns < mark->first_ns ? run->start_ns : mark->first_ns;
			mark->last_ns = run->end_ns > mark->last_ns ? run->end_ns : mark->last_ns;
			mark->throttled = run->throttled; /* the last one counts */
			mark->stages |= UINT64_C(1) << run->stage % 64;
		}
	}
}

/* Drops the runs of frames that are not of 'from' to `to`, and what ran before or after them; of a
 * session also those of frames that are not there: they had not ended. */
static void cut(struct data_records *records, size_t from, size_t to, bool session)
{
	uint64_t begin_ns = from > 0 ? records->mark[from - 1].end_ns : 0, count = 0;
	uint64_t end_ns =
		to < records->mark_count && to > 0 ? records->mark[to - 1].end_ns : UINT64_MAX;
	for (size_t i = 0; i < records->run_count; i++) {
		struct data_run run = records->run[i];
		bool of_none = run.frame == DATA_NO_FRAME;
		bool unfinished = session && run.has_frame;
		if (of_none ? !unfinished && run.end_ns > begin_ns && run.end_ns <= end_ns
			    : run.frame >= from && run.frame < to) {
			run.frame -= of_none ? 0 : from;
			records->run[count++] = run;
		}
	}
	records->run_count = count;
}

/* In a pipeline over threads, stages lag behind: the number of frames before the first that some
 * stage, which ran in each until then, had not reached. */
static size_t count_whole(
	const struct data_records *records, const struct data_mark *mark, size_t count)
{
	size_t frames[DATA_STAGES_MAX] = {0}, last[DATA_STAGES_MAX], whole = count;
	for (size_t i = 0; i < records->run_count; i++) {
		const struct data_run *run = &records->run[i];
		if (run->frame != DATA_NO_FRAME) {
			frames[run->stage] +=
				frames[run->stage] == 0 || run->frame > last[run->stage];
			last[run->stage] = run->frame;
		}
	}
	for (size_t i = 0; i < records->stage_count; i++) {
		size_t n = frames[i];
		bool each = n > 0 && n == last[i] + 1;
		if (each && n < whole && count - n <= IN_FLIGHT && 2 * n >= count &&
			mark[n].first_ns < mark[n - 1].last_ns) {
			whole = n;
		}
	}
	return whole;
}

static int add_frames(struct data_gather *gather, size_t from, size_t to, enum joined kind)
{
	struct data *data = gather->data;
	const uint64_t *gap_ns = NULL;
	size_t gaps = gather->replay ? replay_gaps(gather->replay, &gap_ns) : 0, gap = 0;
	data->frame = calloc(to - from + 1, sizeof(*data->frame));
	if (!data->frame) {
		return -ENOMEM;
	}
	data->frame_count = to - from;
	data->whole = to - from;
	if (kind == BY_FRAME) {
		data->whole = count_whole(&gather->best, &gather->best.mark[from], to - from);
	}
	for (size_t i = from; i < to; i++) {
		const struct data_mark *mark = &gather->best.mark[i];
		double total_ms = (double)(mark->last_ns - mark->first_ns) / 1e6;
		size_t passed = gap;
		while (gap < gaps && gap_ns[gap] < mark->end_ns) {
			gap++;
		}
		double since_ms = i == 0 || gap > passed
					  ? NAN
					  : (double)(mark->end_ns - mark[-1].end_ns) / 1e6;
		data->frame[i - from] = (struct data_frame){
			.at_s = data_seconds(gather, mark->end_ns),
			.total_ms = kind == BY_FRAME && total_ms > 0 && i - from < data->whole
					    ? total_ms
					    : NAN,
			.time_ms = since_ms,
			.id = mark->has_id ? mark->id : i,
			.throttled = mark->throttled};
	}
	return 0;
}

int data_make_frames(struct data_gather *gather, size_t skip, size_t most)
{
	struct data_records *records = &gather->best;
	if (records->run_count > 0) {
		qsort(records->run, records->run_count, sizeof(*records->run), by_run_end);
	}
	enum joined kind = choose_marks(gather);
	join(records, kind);
	size_t from = gather->measured_ns > 0 ? mark_at(records, gather->measured_ns + 1) : skip;
	from = from < records->mark_count ? from : records->mark_count;
	size_t to = most < records->mark_count - from ? from + most : records->mark_count;
	cut(records, from, to, kind == BY_FRAME && gather->data->about);
	gather->data->warmup = from;
	return add_frames(gather, from, to, kind);
}
