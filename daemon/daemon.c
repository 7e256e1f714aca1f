#include "daemon/daemon.h"
