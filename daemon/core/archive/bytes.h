/* SPDX-License-Identifier: Apache-2.0 */
/* bytes.h: writes and reads the archive's bytes within bounds: past the end a writer or reader goes
 * bad and stays so; it is asked once, at the end. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "daemon/core/history/varint.h"

struct byte_writer {
	uint8_t *at, *end;
	bool bad;
};

struct byte_reader {
	const uint8_t *at, *end;
	bool bad;
};

static inline void archive_put(struct byte_writer *writer, const void *bytes, size_t size)
{
	if (writer->bad || size > (size_t)(writer->end - writer->at)) {
		writer->bad = true;
		return;
	}
	memcpy(writer->at, bytes, size);
	writer->at += size;
}

static inline void archive_put_u8(struct byte_writer *writer, unsigned value)
{
	uint8_t byte = (uint8_t)value;
	archive_put(writer, &byte, 1);
}

static inline void archive_put_varint(struct byte_writer *writer, uint64_t value)
{
	uint8_t bytes[VARINT_MAX];
	archive_put(writer, bytes, (size_t)(varint_put(bytes, value) - bytes));
}

/* The next size bytes, or NULL when there are fewer. */
static inline const uint8_t *archive_get(struct byte_reader *reader, size_t size)
{
	if (reader->bad || size > (size_t)(reader->end - reader->at)) {
		reader->bad = true;
		return NULL;
	}
	const uint8_t *bytes = reader->at;
	reader->at += size;
	return bytes;
}

static inline unsigned archive_get_u8(struct byte_reader *reader)
{
	const uint8_t *byte = archive_get(reader, 1);
	return byte ? *byte : 0;
}

/* 0 when the reader is bad. */
static inline uint64_t archive_get_varint(struct byte_reader *reader)
{
	uint64_t value = 0;
	const uint8_t *after = reader->bad ? NULL : varint_get(reader->at, reader->end, &value);
	reader->bad = !after;
	reader->at = after ? after : reader->at;
	return value;
}
