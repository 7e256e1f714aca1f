#include "proto/varlink.h"
