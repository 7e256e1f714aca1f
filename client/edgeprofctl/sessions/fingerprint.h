/* SPDX-License-Identifier: Apache-2.0 */
/* fingerprint.h: identifies by SHA-256 what a session ran on: its configuration, and a model. */
#pragma once

#include <stdint.h>

#include <cjson/cJSON.h>

enum { FINGERPRINT_SIZE = 65 }; /* 64 hexadecimal digits */

/* Of the session's environment and tags: the SHA-256 of their lines "name=value\n", sorted by
 * bytes. Sessions of the same configuration have the same. -ENOMEM. */
int fingerprint_session(const cJSON *session, char ret[FINGERPRINT_SIZE]);

/* Of a regular file, read in pieces. -EINVAL: not a regular file; else of open(2), read(2),
 * -ENOMEM.
 */
int fingerprint_file(const char *path, char ret[FINGERPRINT_SIZE], uint64_t *ret_bytes);
