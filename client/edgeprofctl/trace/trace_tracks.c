/* Each lane has a stack of the runs that a later one may still enclose. It is bounded: what is
 * dropped from its bottom is remembered as one span that must not be cut. */
#include "client/edgeprofctl/trace/trace_tracks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { SPANS_FIRST = 16, SPANS_MAX = 512, HIDDEN_PID = 1 << 22, THREADS = 256 };

struct span {
	uint64_t start_ns, end_ns;
	unsigned depth;
};

struct lane {
	uint32_t tid;
	size_t count, room;
	struct span *span;    /* apart, ascending */
	uint64_t last_end_ns; /* of all */
	uint64_t settled_ns;  /* nothing may start before: what was there encloses or is done */
	bool dropped;	      /* nested runs behind settled_ns, here as one: */
	uint64_t dropped_start_ns, dropped_end_ns;
};

struct process {
	uint32_t app, serial, pid;
	uint32_t shown_pid;
	uint32_t first_tid;
	struct lane *lane[THREADS][TRACE_LANES];
};

struct trace_tracks {
	size_t count;
	uint32_t tids;
	struct process *process[TRACE_PROCESSES];
};

int trace_tracks_create(struct trace_tracks **ret)
{
	struct trace_tracks *tracks = calloc(1, sizeof(*tracks));
	if (!tracks) {
		return -ENOMEM;
	}
	*ret = tracks;
	return 0;
}

static void process_destroy(struct process *process)
{
	for (size_t i = 0; i < THREADS; i++) {
		for (size_t l = 0; l < TRACE_LANES; l++) {
			if (process->lane[i][l]) {
				free(process->lane[i][l]->span);
				free(process->lane[i][l]);
			}
		}
	}
	free(process);
}

void trace_tracks_destroy(struct trace_tracks *tracks)
{
	if (!tracks) {
		return;
	}
	for (size_t i = 0; i < tracks->count; i++) {
		process_destroy(tracks->process[i]);
	}
	free(tracks);
}

static bool pid_taken(const struct trace_tracks *tracks, uint32_t pid)
{
	for (size_t i = 0; i < tracks->count; i++) {
		if (tracks->process[i]->shown_pid == pid) {
			return true;
		}
	}
	return false;
}

/* A pid may be unseen, be of two apps, or have been used again: then one is made up. */
static int process_find(struct trace_tracks *tracks, uint32_t app, uint32_t serial, uint32_t pid,
	struct process **ret, bool *fresh)
{
	for (size_t i = tracks->count; i > 0; i--) {
		struct process *process = tracks->process[i - 1];
		if (process->app == app && process->serial == serial && process->pid == pid) {
			*ret = process;
			return 0;
		}
	}
	if (tracks->count == TRACE_PROCESSES) {
		return -ENOSPC;
	}
	struct process *process = calloc(1, sizeof(*process));
	if (!process) {
		return -ENOMEM;
	}
	bool usable = pid > 0 && pid < HIDDEN_PID && !pid_taken(tracks, pid);
	process->app = app;
	process->serial = serial;
	process->pid = pid;
	process->shown_pid = usable ? pid : HIDDEN_PID + (uint32_t)tracks->count;
	tracks->process[tracks->count++] = process;
	*ret = process;
	*fresh = true;
	return 0;
}

static int lane_find(struct trace_tracks *tracks, struct process *process, uint8_t thread,
	uint8_t number, struct lane **ret, struct trace_track *track)
{
	struct lane *lane = process->lane[thread][number];
	track->fresh = !lane;
	if (!lane) {
		lane = calloc(1, sizeof(*lane));
		if (!lane) {
			return -ENOMEM;
		}
		lane->tid = TRACE_FIRST_TID + tracks->tids++;
		process->lane[thread][number] = lane;
		process->first_tid = process->first_tid == 0 ? lane->tid : process->first_tid;
	}
	track->pid = process->shown_pid;
	track->tid = lane->tid;
	track->lane = number;
	*ret = lane;
	return 0;
}

/* Makes room for one more by dropping the older half. */
static void drop(struct lane *lane)
{
	size_t half = lane->count / 2;
	for (size_t i = 0; i < half; i++) {
		const struct span *span = &lane->span[i];
		if (span->depth == 0) {
			lane->settled_ns = span->end_ns;
			lane->dropped = false;
			continue;
		}
		if (!lane->dropped) {
			lane->dropped_start_ns = span->start_ns;
			lane->dropped = true;
		}
		lane->dropped_end_ns = span->end_ns;
	}
	lane->count -= half;
	memmove(lane->span, lane->span + half, lane->count * sizeof(*lane->span));
}

static bool make_room(struct lane *lane)
{
	if (lane->count < lane->room) {
		return true;
	}
	if (lane->room == SPANS_MAX) {
		drop(lane);
		return true;
	}
	size_t room = lane->room == 0 ? SPANS_FIRST : 2 * lane->room;
	struct span *span = realloc(lane->span, room * sizeof(*span));
	if (!span) {
		return false;
	}
	lane->span = span;
	lane->room = room;
	return true;
}

/* Takes the run when it is beside or around what is there. */
static bool lane_take(struct lane *lane, const struct span *run)
{
	if (run->end_ns < lane->last_end_ns || run->start_ns < lane->settled_ns) {
		return false;
	}
	size_t count = lane->count;
	while (count > 0 && lane->span[count - 1].start_ns >= run->start_ns) {
		count--;
	}
	if (count > 0 && lane->span[count - 1].end_ns > run->start_ns) {
		return false;
	}
	if (count == 0 && lane->dropped) {
		if (run->start_ns <= lane->dropped_start_ns) {
			lane->dropped = false;
		} else if (run->start_ns < lane->dropped_end_ns) {
			return false;
		}
	}
	lane->count = count;
	if (!make_room(lane)) {
		return false;
	}
	lane->span[lane->count++] = *run;
	lane->last_end_ns = run->end_ns;
	return true;
}

int trace_tracks_find(struct trace_tracks *tracks, uint32_t app, uint32_t process, uint32_t pid,
	uint8_t thread, struct trace_track *ret)
{
	struct process *found = NULL;
	struct lane *lane;
	*ret = (struct trace_track){0};
	int r = process_find(tracks, app, process, pid, &found, &ret->fresh_process);
	return r < 0 ? r : lane_find(tracks, found, thread, 0, &lane, ret);
}

int trace_tracks_place(struct trace_tracks *tracks, uint32_t app, uint32_t process, uint32_t pid,
	uint8_t thread, uint64_t start_ns, uint64_t end_ns, unsigned depth, struct trace_track *ret)
{
	const struct span run = {start_ns, end_ns, depth};
	struct process *found = NULL;
	*ret = (struct trace_track){0};
	int r = process_find(tracks, app, process, pid, &found, &ret->fresh_process);
	for (uint8_t number = 0; r == 0 && number < TRACE_LANES; number++) {
		struct lane *lane;
		r = lane_find(tracks, found, thread, number, &lane, ret);
		if (r == 0 && lane_take(lane, &run)) {
			return 0;
		}
	}
	return r < 0 ? r : -ENOENT;
}

bool trace_tracks_of_app(const struct trace_tracks *tracks, uint32_t app, struct trace_track *ret)
{
	for (size_t i = 0; i < tracks->count; i++) {
		const struct process *process = tracks->process[i];
		if (process->app == app && process->first_tid != 0) {
			*ret = (struct trace_track){
				.pid = process->shown_pid, .tid = process->first_tid};
			return true;
		}
	}
	return false;
}
