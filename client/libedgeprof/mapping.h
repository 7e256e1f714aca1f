/* The mapping's making. Its layout is proto/mapping.h. */
#pragma once

#include <stdint.h>

/* Creates, fills and seals the memfd, maps it, copies the table of names and publishes it in
 * process.map. Returns the descriptor (the caller's), -EAGAIN when the table of names is being
 * written just now, -ENOMEM. */
int mapping_create(uint32_t size);
