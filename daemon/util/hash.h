/* hash.h: SipHash-1-3 with a key of this process, for tables whose keys a peer may choose. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* The same bytes have the same hash within one process; nobody outside can aim for a bucket. */
uint32_t hash_bytes(const void *bytes, size_t size);
uint32_t hash_text(const char *text);
