#include "daemon/api/server.h"
