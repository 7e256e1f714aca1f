/*
 * Writing one recording: a thread of its own asks the daemon over two connections (api_connect),
 * as any client would, and writes the replies as lines of JSON. So the loop gives a recording no
 * more of its time than any client, and what is recorded is what the interface describes.
 *
 * The file, DIR/NAME.jsonl (mode 0640):
 *     {"schema":"edgeprof.recording/1", …}              the header, made by the caller
 *     {"call":"GetStatus","parameters":{…}}             replies as they came, each with its method
 *     {"call":"ExportTrace","parameters":{…},"continues":true}
 *     {"end":{"time_us":…,"trigger":"…", …}}            what became of it
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/core/status/recordings.h"

enum {
	RECORDING_HEADER = 2048,
	RECORDING_MORE = 2048,	  /* of the further triggers' text */
	RECORDING_ROW_BYTES = 90, /* of a raw record as JSON; most have 75 */
	RECORDING_MIN_SIZE = 256 * 1024,
};

struct recording_job {
	/* the caller's */
	char dir[200];
	char header[RECORDING_HEADER]; /* one line, with newline */
	int trace_fd, ask_fd;	       /* owned: closed by recording_write */
	uint64_t t_ns, from_ns, to_ns; /* CLOCK_MONOTONIC */
	uint64_t first_serial;	       /* of the timeline */
	size_t max_bytes;	       /* RECORDING_MIN_SIZE or more */
	size_t keep;
	uint64_t total_bytes;
	/* name, time_us, trigger and cut are the caller's, the rest is the result */
	struct recording row;
	/* changed while it is written, under the lock: also row.time_us and row.triggers */
	pthread_mutex_t lock;
	int64_t from_us, to_us; /* the span by the wall clock as it is known now */
	/* further triggers, as JSON objects with commas in front */
	char more[RECORDING_MORE];
	/* result */
	int result;
	struct recordings kept; /* rows only: what the folder holds now */
};

/* Of max_bytes, what raw records before the trigger may take when the span is so divided. */
size_t recording_before_bytes(size_t max_bytes, uint64_t before_ns, uint64_t after_ns);

/* Blocks until the file is there, or could not be written: then job->result is -errno and nothing
 * is left. A connection that ends early ends the recording, which then says so in row.cut. */
void recording_write(struct recording_job *job);
