/* SPDX-License-Identifier: Apache-2.0 */
/* crc32c.h: computes CRC-32C (Castagnoli, RFC 3720 appendix B.4), the checksum of stored data. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Continues crc (at first 0) with the bytes. The same on every machine. */
uint32_t crc32c(uint32_t crc, const void *bytes, size_t size);
