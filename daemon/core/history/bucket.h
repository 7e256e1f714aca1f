/* Samples become buckets: what a group of a tier with buckets does at each commit. */
#pragma once

#include "daemon/core/history/self.h"

/* Adds the metrics as they stand to the group's bucket; one that is over is written first. With the
 * first whole one after a restart the buckets since the last written row are made anew from the
 * samples.
 */
void history_bucket_gather(struct history *history, struct history_group *group, uint64_t t_ns);

/* The same without a sample: a bucket that is over is written. last: see history_flush. */
void history_bucket_flush(
	struct history *history, struct history_group *group, uint64_t now_ns, bool last);
