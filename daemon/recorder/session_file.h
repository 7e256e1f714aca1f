/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session_file.h: writes, thins and reads the files of sessions, NAME.jsonl in a folder of their
 * own. A file grows by appended parts; each ends with a line {"part":…} or {"block":…} that says
 * how far the session is, so what a killed daemon leaves is valid up to the last such line.
 * Blocking; at the start and on threads. Nothing that may lie in the folder is followed.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/core/status/sessions.h"

/* How far a session is. */
struct session_point {
	uint64_t block;
	int64_t from_us, to_us;		/* of the block */
	uint64_t from_mono_us, mono_us; /* the same, unimpressed by clocks that are set; now */
	int64_t history_us;		/* metrics up to there are in the file */
	uint64_t serial;		/* of the timeline: the next */
	uint64_t frames_done, warmup_left, lost;
	uint64_t measured_mono_us; /* 0 = the warm-up goes on */
	int64_t measured_us;	   /* the same by the wall clock as it was then */
	uint64_t rate_mono_us;	   /* fps counts from there */
	double total_s, kept_s; /* of all blocks; of those in the file when it was written last */
};
/* A line with newline: the bytes. is_block: it ends a block. */
size_t session_point_write(
	const struct session_point *point, bool is_block, char *line, size_t size);
/* False: it is another line. */
bool session_point_read(const char *line, struct session_point *ret, bool *is_block);
/* What is counted up to there, into the row. */
void session_point_apply(const struct session_point *point, struct session *row);
/* The length of the block that ends there. */
double session_point_block_s(const struct session_point *point);

/* The file of a session that is going on. */
struct session_file {
	char dir[200];
	char name[PROTO_NAME_SIZE];
	int folder, fd;	    /* -1 = not open */
	uint64_t bytes;	    /* of the file */
	uint64_t max_bytes; /* past it blocks are dropped */
	double kept_s;	    /* of the blocks in the file */
	double block_s;	    /* of the block that this part ends; 0 = it ends none */
	bool finish;	    /* it is the last part */
	bool thinned;	    /* blocks were dropped */
	bool torn;	    /* a part of the block could not be written */
};

/* Makes the folder and the file when they are not there yet, and appends. 0 or -errno: the file is
 * as it was. */
int session_file_write(struct session_file *file, const char *bytes, size_t length);
void session_file_close(struct session_file *file);

/* A file of the folder, as it is read at the start. */
struct session_found {
	struct session row;
	bool ended;		   /* else the row is that of the start */
	bool privileged;	   /* who started it may see apps of all users */
	uint64_t begin_mono_us;	   /* of the session */
	char boot_id[37];	   /* of its start */
	struct session_point last; /* of one that has not ended; its block goes on */
};
/* Calls each with what the folder holds; it owns the row's tags then. Removes what a crash left of
 * a file that was being thinned and what a power cut left without a first line, and cuts an unended
 * file behind its last point. */
void session_folder_scan(
	const char *dir, void (*each)(void *ctx, struct session_found *found), void *ctx);
/* Appends the last line to the file of a session that has been interrupted. 0 or -errno. */
int session_folder_end(const char *dir, struct session *row);
/* 0 or -errno. */
int session_folder_remove(const char *dir, const char *name);
