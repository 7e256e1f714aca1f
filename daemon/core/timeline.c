#include "daemon/core/timeline.h"
