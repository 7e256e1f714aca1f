/* SPDX-License-Identifier: Apache-2.0 */
/* merge.h: joins the chunks of a long reply (those with "continues"). */
#pragma once

struct cJSON;

/* Appends the arrays of `part` to those of `joined` that have the same names. */
void merge_columns(struct cJSON *joined, struct cJSON *part);

/* Moves what `part` holds into `joined`, both objects: arrays are appended, parts of a series
 * (members of the array "series" with the same name and boot_seq) column by column, other members
 * replaced. `part` may be half empty afterwards; the caller deletes it. */
void merge_reply(struct cJSON *joined, struct cJSON *part);
