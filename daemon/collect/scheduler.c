#include "daemon/collect/scheduler.h"
