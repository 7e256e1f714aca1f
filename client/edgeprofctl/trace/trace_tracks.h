/*
 * The processes and threads of a trace, and what keeps the slices of a thread in order: viewers
 * want those of one track nested or apart. Runs arrive in the order of their ends; one that would
 * overlap goes to another lane of its thread, or is told as an asynchronous slice.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum {
	TRACE_LANES = 4,
	TRACE_PROCESSES = 512,
	TRACE_DEVICE_PID = 1 << 23, /* beyond any pid, and any made up for one that is not seen */
	TRACE_FIRST_TID = 1 << 24,
};

struct trace_track {
	uint32_t pid, tid; /* of the trace: each tid is there once */
	uint8_t lane;
	bool fresh;	    /* its thread was not there before */
	bool fresh_process; /* nor its process */
};

struct trace_tracks;

int trace_tracks_create(struct trace_tracks **ret); /* -ENOMEM */
void trace_tracks_destroy(struct trace_tracks *tracks);

/* The first lane of a thread of an app's process. -ENOSPC: more than TRACE_PROCESSES, -ENOMEM. */
int trace_tracks_find(struct trace_tracks *tracks, uint32_t app, uint32_t process, uint32_t pid,
	uint8_t thread, struct trace_track *ret);

/* A lane where the run fits; depth as the record tells it. -ENOENT: none, and it is told
 * asynchronously; the others as above. */
int trace_tracks_place(struct trace_tracks *tracks, uint32_t app, uint32_t process, uint32_t pid,
	uint8_t thread, uint64_t start_ns, uint64_t end_ns, unsigned depth,
	struct trace_track *ret);

/* Where things are told that are of an app and no thread of it; false: it has no process yet. */
bool trace_tracks_of_app(const struct trace_tracks *tracks, uint32_t app, struct trace_track *ret);
