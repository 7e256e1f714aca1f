#include "daemon/core/wallclock.h"
