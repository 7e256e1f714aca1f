/* One line of tegrastats as JSON: what the line does not tell is null, never 0. */
#pragma once

#include <cjson/cJSON.h>

#include "proto/tegrastats/tegrastats.h"

/* The object, which is the caller's, or NULL without memory. */
cJSON *tegrastats_json(const struct tegrastats *stats);
