/* SPDX-License-Identifier: Apache-2.0 */
/* varlink_packed.h: declares what pack.py makes of io.edgeprof.varlink. */
#pragma once

#include <stddef.h>

extern const size_t proto_interface_size;
extern const unsigned char proto_packed_pairs[256][2]; /* of 0: the byte stands for itself */
extern const unsigned char proto_packed_interface[];   /* NUL-terminated */
