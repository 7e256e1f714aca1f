#include "daemon/core/apps.h"
