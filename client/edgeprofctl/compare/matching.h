/* SPDX-License-Identifier: Apache-2.0 */
/* matching.h: selects values that were measured under conditions which both sides have, such that
 * each condition has the same share on both. */
#pragma once

#include "client/edgeprofctl/compare/measured.h"

/* Those of the series of that run of sides[which]; ret->value is the caller's to free(3), its
 * conditions are NULL. 0 or -ENOMEM. */
int matching_values(const struct side *const sides[2], int which, size_t run, const char *series,
	struct measured_series *ret);
