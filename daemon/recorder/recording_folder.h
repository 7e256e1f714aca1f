/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recording_folder.h: writes and lists the files of recordings, NAME.jsonl in a folder of their
 * own, each complete or not there at all. Blocking; at start and on threads of the recorder.
 * Nothing that may lie in the folder is followed.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/core/status/recordings.h"

enum { RECORDING_END_MAX = 4096 /* bytes of the last line */ };

/* A recording that is being written, part by part. */
struct recording_file {
	char dir[200];
	char name[PROTO_NAME_SIZE];
	size_t keep;
	uint64_t total_bytes;
	int folder, fd; /* -1 at first */
	/* of this part */
	const char *bytes;
	size_t length;
	bool finish;		/* it is the last one */
	int result;		/* -errno: nothing shall be left of the file */
	struct recordings list; /* at the end, rows only: what the folder holds now */
};

/* Appends one part; the last one gives the file its name and evicts others (recording_folder_scan).
 * 0 or -errno: then the file is gone, and this was the last part. */
int recording_file_write(struct recording_file *file);

/* Lists what the folder holds, oldest first; the rest of ret stays. Files that are not named as
 * record_name() does are left alone. Removes what a crash left, and files until there are no more
 * than keep and all are within total_bytes: the oldest minor one first (record_is_minor), then the
 * oldest; the newest always stays. */
void recording_folder_scan(int folder, size_t keep, uint64_t total_bytes, struct recordings *ret);

/* Completes what a killed daemon left: makes each NAME.jsonl.new of the folder a recording up to
 * its last complete part, with a last line that says so. One without a part stays as it is, for
 * recording_folder_scan(). */
void recording_folder_recover(int folder);

/* Writes it, with newline; the bytes, or -ENOSPC. joined: further triggers as JSON. */
int recording_row_write(const struct recording *recording, const char *kind, const char *joined,
	char *line, size_t size);

/* The number behind the last key of that name in a line; 0: there is none. Our own lines are
 * scanned, not parsed. */
uint64_t recording_last_number(const char *line, const char *key);
/* The rows of a chunk of records. */
uint64_t recording_count_rows(const char *line);
