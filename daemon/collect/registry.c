#include "daemon/collect/collector.h"
