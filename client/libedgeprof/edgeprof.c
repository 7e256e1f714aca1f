#include "edgeprof.h"
