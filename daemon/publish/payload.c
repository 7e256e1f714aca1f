#include "daemon/publish/mqtt.h"
