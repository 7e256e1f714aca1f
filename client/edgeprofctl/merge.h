/* Long answers come in chunks (replies with "continues"); this makes one answer of them. */
#pragma once

struct cJSON;

/* Moves what `part` holds into `whole`, both objects: arrays are appended, parts of a series
 * (members of the array "series" with the same name) column by column, other members replaced.
 * `part` may be half empty afterwards; the caller deletes it. 0 or -ENOMEM. */
int merge_reply(struct cJSON *whole, struct cJSON *part);
