#include "proto/name.h"
