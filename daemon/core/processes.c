#include "daemon/core/processes.h"
