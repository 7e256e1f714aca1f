/* Long answers come in chunks (replies with "continues"); this makes one answer of them. */
#pragma once

struct cJSON;

/* Appends the arrays of `part` to those of `whole` that have the same names. 0 or -ENOMEM. */
int merge_columns(struct cJSON *whole, struct cJSON *part);

/* Moves what `part` holds into `whole`, both objects: arrays are appended, parts of a series
 * (members of the array "series" with the same name and boot_seq) column by column, other members
 * replaced. `part` may be half empty afterwards; the caller deletes it. 0 or -ENOMEM. */
int merge_reply(struct cJSON *whole, struct cJSON *part);
