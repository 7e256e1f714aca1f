/* CRC-32C (Castagnoli, RFC 3720 appendix B.4): the checksum of the archive's blocks. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Of the bytes behind those that gave crc (0 = none). The same on every machine. */
uint32_t crc32c(uint32_t crc, const void *bytes, size_t size);
