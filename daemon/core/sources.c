#include "daemon/core/sources.h"
