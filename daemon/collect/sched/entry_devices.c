/* SPDX-License-Identifier: Apache-2.0 */
/* entry_devices.c: notices that devices came or went, by what the kernel counts of its
 * announcements (sys/kernel/uevent_seqnum). What was absent is looked for again then, and a
 * collector that is open is opened again when the names in its class are others, or lead elsewhere:
 * a driver that is loaded after the daemon brings thermal zones, drivers that are loaded again get
 * each other's numbers. */
#include "daemon/collect/sched/entry_private.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "daemon/util/sysops.h"
#include "proto/fnv.h"

enum { NAMES_MAX = 1024 };

static long long announced(const struct entry *entry)
{
	long long devices = -1;
	int fd = root_open(entry->ctx.root, "sys/kernel/uevent_seqnum", O_RDONLY);
	if (fd >= 0) {
		(void)file_read_i64(fd, &devices);
		close(fd);
	}
	return devices;
}

/* The devices in the collector's class, in any order; 0: none, or not known. */
static uint64_t listing_of(const struct entry *entry)
{
	struct root_name *names = entry->ops->folder ? mem_calloc(NAMES_MAX, sizeof(*names)) : NULL;
	uint64_t listing = 0;
	int count = names ? root_list(entry->ctx.root, entry->ops->folder, names, NAMES_MAX) : 0;
	for (int i = 0; i < count; i++) {
		char path[128], real[512] = "";
		snprintf(path, sizeof(path), "%s/%s/.", entry->ops->folder, names[i].text);
		(void)root_resolve(entry->ctx.root, path, real, sizeof(real));
		listing += fnv64_text(FNV64_BASIS, real);
	}
	free(names);
	return listing;
}

bool entry_is_in_vain(struct entry *entry, uint64_t now_ns)
{
	long long devices = announced(entry);
	bool same = entry->absent && devices >= 0 && devices == entry->devices &&
		    entry->skipped < ENTRY_SKIPS_MAX;
	entry->devices = devices;
	entry->skipped = same ? entry->skipped + 1 : 0;
	entry->listed_ns = now_ns;
	entry->listing = same ? entry->listing : listing_of(entry);
	return same;
}

bool entry_has_changed(struct entry *entry, uint64_t now_ns)
{
	if (!entry->open || !entry->ops->folder || now_ns - entry->listed_ns < ENTRY_PROBE_NS) {
		return false;
	}
	long long devices = announced(entry);
	bool same = devices >= 0 && devices == entry->devices;
	entry->devices = devices;
	entry->listed_ns = now_ns;
	return !same && listing_of(entry) != entry->listing;
}
