#include "daemon/publish/journal.h"
