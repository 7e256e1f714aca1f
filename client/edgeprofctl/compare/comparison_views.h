/* SPDX-License-Identifier: Apache-2.0 */
/* comparison_views.h: shows the result of compare: {"threshold_percent", "verdict", "comparisons",
 * "variants"}. */
#pragma once

#include "client/edgeprofctl/ctl.h"

void comparison_text(struct ctl *ctl, const cJSON *result);
/* One row for each side. */
void comparison_table(struct ctl *ctl, const cJSON *result);
/* For a pull request: the verdict, the rows that decide, and the rest folded. */
void comparison_markdown(struct ctl *ctl, const cJSON *result);
void comparison_junit(struct ctl *ctl, const cJSON *result);
