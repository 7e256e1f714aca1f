/*
 * The folder of recordings: NAME.jsonl, each written whole or not at all. Blocking; at start and on
 * the recorder's thread. Nothing that may lie there is followed.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/core/status/recordings.h"

enum {
	RECORDING_END_MAX = 4096, /* bytes of the last line */
	FOLDER_NAMES = 1 << 20,	  /* entries of the folder that are looked at */
};

/* As record_name() begins them: what else lies there is somebody's own. */
bool recording_name_is_ours(const char *name);

/* A descriptor of dir, made (mode 0750) when it is not there and make is set. -EPERM: not ours
 * alone; other -errno. */
int recording_folder_open(const char *dir, int make);

/* What the folder holds, oldest first; the rest of ret stays. Files that are not named as
 * record_name() does are left alone, whatever they hold. Removes what a crash left, and files until
 * there are no more than keep and all are within total_bytes: the oldest minor one first
 * (record_is_minor), then the oldest; the newest always stays. */
void recording_folder_scan(int folder, size_t keep, uint64_t total_bytes, struct recordings *ret);

/* The last line of a recording as its row; -EBADMSG: it has none, the file is no whole recording.
 */
int recording_end_read(const char *line, struct recording *ret);
/* Writes that line, with newline; the bytes, or -ENOSPC. more: JSON members behind it, or "". */
int recording_end_write(
	const struct recording *recording, const char *more, char *line, size_t size);
