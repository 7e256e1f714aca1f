#include "proto/percentile.h"
