/* Other tools that go well with a profiler, searched in PATH and never run. */
#pragma once

#include <cjson/cJSON.h>

/* [{"name","path" or null,"use"}]: regular files that may be executed, the first along `path` (the
 * text of $PATH). NULL: no memory. */
cJSON *doctor_tools(const char *path);
