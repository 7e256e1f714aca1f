#include "daemon/core/history.h"
