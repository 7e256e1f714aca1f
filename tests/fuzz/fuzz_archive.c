/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libFuzzer target: blocks of an archive made of any bytes, with a checksum that is right, so that
 * what lies behind it is reached. Scan and query must survive; what the scan takes, the query
 * reads.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/core/archive/archive.h"
#include "daemon/core/archive/block.h"
#include "daemon/core/archive/boots.h"
#include "daemon/core/archive/index.h"
#include "daemon/core/metrics/wallclock.h"
#include "daemon/util/crc32c.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { BLOCKS = 4, PAGES = 2 };

static uint8_t image[ARCHIVE_SIZE_MIN];

/* Two pages at their place, with a header that gets past the first look: else all that follows
 * would be tested with nothing. */
static void put(unsigned n, const uint8_t *data, size_t size)
{
	uint32_t page = 1 + n * PAGES;
	uint8_t *at = image + (size_t)page * ARCHIVE_PAGE;
	struct archive_block header;
	memset(at, 0, PAGES * ARCHIVE_PAGE);
	memcpy(at, data, size < PAGES * ARCHIVE_PAGE ? size : PAGES * ARCHIVE_PAGE);
	memcpy(&header, at, sizeof(header));
	header.magic = ARCHIVE_BLOCK_MAGIC;
	header.version = ARCHIVE_VERSION;
	header.byte_order = ARCHIVE_BYTE_ORDER;
	header.quanta = archive_quanta();
	header.crc = 0;
	header.page = page;
	header.pages = PAGES;
	header.seq = header.seq % 8 + 1;
	header.boot_seq = header.boot_seq % 4 + 1;
	header.next_id = header.next_id % 1024 + 1;
	header.clocks %= ARCHIVE_CLOCKS + 1;
	memcpy(at, &header, sizeof(header));
	uint32_t crc = crc32c(0, at, PAGES * ARCHIVE_PAGE);
	memcpy(at + offsetof(struct archive_block, crc), &crc, sizeof(crc));
	const struct archive_identity identity = {.version = ARCHIVE_VERSION};
	struct archive_parsed parsed;
	bool begins;
	if (archive_block_check(at, PAGES * ARCHIVE_PAGE, page, sizeof(image) / ARCHIVE_PAGE,
		    identity, &parsed, &begins) != PAGES) {
		abort();
	}
}

static void ask(struct archive *archive, uint64_t step_ns, size_t points_max)
{
	struct wallclock wall;
	struct archive_plan *plan;
	wallclock_init(&wall);
	if (archive_plan_make(
		    archive, "**", INT64_MIN, INT64_MAX, step_ns, points_max, &wall, &plan) < 0) {
		abort();
	}
	for (size_t i = 0; i < archive_plan_blocks(plan); i++) {
		uint32_t page, pages;
		archive_plan_block(plan, i, &page, &pages);
		if (archive_plan_read(plan, i, image + (size_t)page * ARCHIVE_PAGE) < 0) {
			abort();
		}
	}
	archive_plan_finish(plan);
	if (archive_plan_lost(plan) > 0) {
		abort();
	}
	archive_plan_destroy(plan);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint8_t boot_id[16];
	struct archive *archive;
	struct archive_index *index;
	for (unsigned n = 0; n < BLOCKS; n++) {
		put(n, data + size * n / BLOCKS, size / BLOCKS);
	}
	const struct archive_identity identity = {.version = ARCHIVE_VERSION};
	if (archive_index_create(sizeof(image), identity, &index) < 0 ||
		archive_create(boot_id, NULL, &archive) < 0) {
		abort();
	}
	for (uint32_t page = 1; page < sizeof(image) / ARCHIVE_PAGE;) {
		size_t at = (size_t)page * ARCHIVE_PAGE;
		int n = archive_index_scan(index, page, image + at, sizeof(image) - at);
		page += n > 0 ? (uint32_t)n : 1;
	}
	if (archive_index_finish(index) < 0) {
		abort();
	}
	archive_adopt(archive, index);
	struct archive_span span;
	struct archive_boot boot;
	archive_span(archive, &span);
	for (size_t i = 0; archive_boot_at(archive, i, &boot); i++) {
	}
	ask(archive, 0, 1000);
	ask(archive, UINT64_C(60000000000), 3);
	archive_destroy(archive);
	return 0;
}
