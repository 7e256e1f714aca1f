/* The file's first page: enough to say whether the rest can be understood. */
#include <stdio.h>
#include <string.h>

#include "daemon/core/archive/block.h"
#include "daemon/util/crc32c.h"

#define FILE_MAGIC "edgeprof archive"

struct file_header {
	char magic[16];
	uint32_t byte_order;
	uint32_t version;
	uint32_t page_size; /* of the format, not of the machine */
	uint32_t quanta;
	uint64_t size;
	uint32_t crc; /* of all before and, from version 2 on, of the id */
	uint32_t reserved;
	uint8_t id[16]; /* random, see archive_identity; version 1 has zeros */
};

static uint32_t sum_of(const struct file_header *header)
{
	uint32_t crc = crc32c(0, header, offsetof(struct file_header, crc));
	return header->version == 1 ? crc : crc32c(crc, header->id, sizeof(header->id));
}

void archive_header_make(uint64_t size, const uint8_t id[16], uint8_t page[ARCHIVE_PAGE])
{
	struct file_header header = {
		.byte_order = ARCHIVE_BYTE_ORDER,
		.version = ARCHIVE_VERSION,
		.page_size = ARCHIVE_PAGE,
		.quanta = archive_quanta(),
		.size = size,
	};
	memcpy(header.magic, FILE_MAGIC, sizeof(header.magic));
	memcpy(header.id, id, sizeof(header.id));
	header.crc = sum_of(&header);
	memset(page, 0, ARCHIVE_PAGE);
	memcpy(page, &header, sizeof(header));
}

static bool is_zero(const uint8_t *bytes, size_t size)
{
	return bytes[0] == 0 && memcmp(bytes, bytes + 1, size - 1) == 0;
}

enum archive_found archive_header_check(const uint8_t page[ARCHIVE_PAGE], uint64_t size,
	struct archive_identity *ret, char *why, size_t why_size)
{
	struct file_header header;
	memcpy(&header, page, sizeof(header));
	snprintf(why, why_size, "%s", "");
	if (is_zero(page, ARCHIVE_PAGE)) {
		return ARCHIVE_EMPTY;
	}
	if (memcmp(header.magic, FILE_MAGIC, sizeof(header.magic)) != 0) {
		snprintf(why, why_size, "not an archive");
		return ARCHIVE_FOREIGN;
	}
	if (header.byte_order != ARCHIVE_BYTE_ORDER) {
		snprintf(why, why_size, "written on a machine of another byte order");
	} else if (header.version == 0 || header.version > ARCHIVE_VERSION) {
		snprintf(why, why_size, "of format version %u, this is %d", header.version,
			ARCHIVE_VERSION);
	} else if (header.crc != sum_of(&header)) {
		snprintf(why, why_size, "its header is damaged");
	} else if (header.page_size != ARCHIVE_PAGE) {
		snprintf(why, why_size, "of pages of %u bytes, this has %d", header.page_size,
			ARCHIVE_PAGE);
	} else if (header.quanta != archive_quanta()) {
		snprintf(why, why_size, "of other units");
	} else if (header.size != size) {
		snprintf(why, why_size, "made for %llu bytes, not %llu",
			(unsigned long long)header.size, (unsigned long long)size);
	} else {
		*ret = (struct archive_identity){.version = header.version};
		ret->seed = header.version == 1 ? 0 : crc32c(0, header.id, sizeof(header.id));
		return ARCHIVE_OURS;
	}
	return ARCHIVE_OTHER;
}
