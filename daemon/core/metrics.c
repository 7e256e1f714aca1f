#include "daemon/core/metrics.h"
