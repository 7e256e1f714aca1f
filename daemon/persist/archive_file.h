/* SPDX-License-Identifier: Apache-2.0 */
/* archive_file.h: works on the archive's file off the loop, one job at a time, so that the loop
 * never waits for the medium. One that hangs makes the job hang and nothing else; at a stop it is
 * left behind. */
#pragma once

#include <uv.h>

#include "daemon/persist/archive_disk.h"

/* A job ended; on the loop. Another one may be started from within. index: of an opening that
 * succeeded, the callee's; NULL after a write. result: 0 or -errno, see archive_disk.h. */
typedef void archive_file_done(void *ctx, int result, bool opened, struct archive_index *index);

struct archive_file {
	uv_loop_t *loop;
	archive_file_done *done;
	void *ctx;
	struct archive_file_job *job; /* the thread's while one is under way */
	struct offload *running;      /* NULL = none */
	uint64_t busy_ns;	      /* since when one is under way; 0 = none */
	int descriptor;		      /* for readers, who make duplicates; -1: not open */
};

/* disk: initialised, not opened. -ENOMEM. */
int archive_file_init(struct archive_file *file, uv_loop_t *loop, const struct archive_disk *disk,
	archive_file_done *done, void *ctx);

/* Opens, or opens again, while no job is under way. -ENOMEM, -EAGAIN: no thread. */
int archive_file_open(struct archive_file *file);

/* Takes a copy. As archive_file_open. */
int archive_file_write(struct archive_file *file, uint32_t page, const uint8_t *bytes, size_t size);

/* While no job is under way: why the last one failed, what it costs to write. */
const struct archive_disk *archive_file_disk(const struct archive_file *file);

/* Nothing is done afterwards. The file is closed on a thread, after its job has ended: this does
 * not wait for it. Zeroed is fine. */
void archive_file_close(struct archive_file *file);
