#include "daemon/ingest/ingest.h"
