#include "daemon/core/alerts.h"
