/* SPDX-License-Identifier: Apache-2.0 */
/* state_file.h: reads and atomically replaces small files of the state directory. All of it blocks.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* DIR/NAME is these bytes, on the medium, or as it was (temporary file, fdatasync, rename). -EPERM:
 * the directory is not ours alone; -ENOENT: there is none; else the error of the kernel. */
int state_file_write(const char *dir, const char *name, const uint8_t *bytes, size_t size);

/* The number of bytes, at most size. -ENOENT; -EPERM: what is there is not ours to use; -EFBIG. */
int state_file_read(const char *dir, const char *name, uint8_t *bytes, size_t size);
