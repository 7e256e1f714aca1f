#include "daemon/core/stages.h"
