/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzes the reader of mappings: the input is a script of words written anywhere into a good
 * mapping, records put by the rules, drains and new readers. See test_ring.c, too.
 */
#include "daemon/ingest/ring.h"
#include "tests/unit/ingest/ring_writer.h"

enum { SIZE = 64 * 1024, STEP = 11 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void ignore_declaration(void *ctx, uint32_t index, const struct proto_declaration *copy)
{
	(void)ctx;
	if (index >= PROTO_DECLARATIONS || memchr(copy->name, 0, sizeof(copy->name)) == NULL) {
		abort();
	}
}

static size_t ignore_records(void *ctx, uint32_t slot, const struct proto_record *copies, size_t n)
{
	(void)ctx;
	(void)copies;
	if (slot >= 64 || n == 0 || n > RING_BATCH) {
		abort();
	}
	return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct ring_sink sink = {ignore_declaration, ignore_records, NULL, NULL};
	static const struct proto_record record = {.kind = PROTO_KIND_COMPLETE};
	struct writer writer;
	struct ring *ring = NULL;
	bool more;
	uint64_t *map = aligned_alloc(64, SIZE);
	if (!map) {
		return 0;
	}
	memset(map, 0, SIZE);
	writer_init(&writer, map, SIZE);
	writer_declare(&writer, "infer", 0);
	if (ring_create(map, SIZE, &ring) < 0) {
		abort();
	}
	for (; size >= STEP; data += STEP, size -= STEP) {
		uint16_t where;
		uint64_t what;
		memcpy(&where, data + 1, sizeof(where));
		memcpy(&what, data + 3, sizeof(what));
		if (data[0] < 160) { /* behind magic, version, size */
			map[2 + where % (SIZE / 8 - 2)] = what;
		} else if (data[0] < 250) {
			ring_drain(ring, &sink, what % 512, &more);
		} else {
			ring_destroy(ring);
			ring = NULL;
			if (ring_create(map, SIZE, &ring) < 0) {
				abort();
			}
		}
		if (data[0] & 1 && writer.chunk[where % 4] == PROTO_NO_CHUNK) {
			writer_put(&writer, where % 4, &record);
		}
		struct ring_counts counts;
		ring_counts(ring, &counts);
		if (counts.sent != counts.received + counts.dropped + counts.in_ring) {
			abort();
		}
	}
	ring_destroy(ring);
	free(map);
	return 0;
}
