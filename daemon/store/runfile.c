#include "daemon/store/runfile.h"
