/*
 * How a query's blocks come from the archive's file: api asks, store reads on a thread, and neither
 * knows the other. Everything here is called on the loop.
 */
#pragma once

struct archive_plan;
struct archive_read; /* one that waits or is under way */

/* The read ended: all blocks have been given to archive_plan_read. result: 0, or -errno of a block
 * that could not be read (the rows of the others are there). The plan is the callee's.
 * -ECANCELED: nobody reads any more; the plan is NULL when a thread still has it. */
typedef void archive_read_done(void *user, struct archive_plan *plan, int result);

struct archive_reader {
	/* Takes the plan over; done is called later, never from within. On failure the plan stays
	 * the caller's: -ENODATA the file is not open, -ENOSPC too many wait, -ETIMEDOUT the medium
	 * has not answered others for long, -ENOMEM. */
	int (*read)(void *ctx, struct archive_plan *plan, archive_read_done *done, void *user,
		struct archive_read **ret);
	/* done is not called any more; the plan goes when the thread is through with it. */
	void (*cancel)(struct archive_read *read);
	void *ctx;
};
