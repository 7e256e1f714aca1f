/* SPDX-License-Identifier: Apache-2.0 */
/* fnv.h: computes FNV-1a, for identities and checksums that leave the process or outlive it. A
 * table whose keys a peer may choose uses daemon/util/index.h instead. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define FNV64_BASIS UINT64_C(14695981039346656037)
#define FNV32_BASIS UINT32_C(2166136261)

/* Continues hash (at first FNV64_BASIS) with size bytes. */
static inline uint64_t fnv64(uint64_t hash, const void *bytes, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		hash = (hash ^ ((const unsigned char *)bytes)[i]) * UINT64_C(1099511628211);
	}
	return hash;
}

/* The same with a string, without its NUL. */
static inline uint64_t fnv64_text(uint64_t hash, const char *text)
{
	for (; *text != '\0'; text++) {
		hash = (hash ^ (unsigned char)*text) * UINT64_C(1099511628211);
	}
	return hash;
}

/* Continues hash (at first FNV32_BASIS) with size bytes. */
static inline uint32_t fnv32(uint32_t hash, const void *bytes, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		hash = (hash ^ ((const unsigned char *)bytes)[i]) * 16777619u;
	}
	return hash;
}
