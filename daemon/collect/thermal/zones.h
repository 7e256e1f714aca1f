/* SPDX-License-Identifier: Apache-2.0 */
/* zones.h: decides which thermal zones are of the processor or the board. */
#pragma once

#include <stdbool.h>

#include "daemon/collect/lib/device_file.h"

/* Types that are constants: the PMIC of Jetsons (50 or 100 °C), Intel's 20 °C pseudo zone. */
#define ZONES_CONSTANT "PMIC-Die* PMIC INT3400*"

/* ACPI's zone is whatever the vendor says, often a constant (16.8 or 27.8 °C); a radio is not the
 * board. */
static inline bool zone_is_exact(const char *type)
{
	return !device_matches(ZONES_CONSTANT " acpitz* *wifi* *phy*", type);
}
