#include "daemon/core/frames.h"
