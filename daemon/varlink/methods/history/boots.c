/* SPDX-License-Identifier: Apache-2.0 */
/* boots.c: answers ListBoots: the boots that the archive knows, this one last. */
#include "daemon/core/archive/boots.h"
#include "daemon/core/core.h"
#include "daemon/varlink/methods/list.h"
#include "daemon/varlink/methods/methods.h"
#include "daemon/varlink/methods/rows.h"

static bool boot_item(struct list_cursor *cursor, struct json *out)
{
	const struct core *core = cursor->core;
	struct archive_boot boot;
	if (!core->archive || !timeline_boot_at(core->archive, cursor->first++, &boot)) {
		return false;
	}
	bool now = boot.seq == archive_boot_seq(core->archive);
	if (now) {
		/* the newest is not written yet, perhaps nothing is */
		int64_t begin_us = row_time_us(core, timeline_begin_ns(core->timeline));
		if (boot.first_us == 0 || begin_us < boot.first_us) {
			boot.first_us = begin_us;
		}
		boot.last_us = row_time_us(core, cursor->now_ns);
		boot.synced = wallclock_synced(core->wall);
	}
	json_open(out, NULL, '{');
	json_unsigned(out, "boot_seq", boot.seq);
	if (boot.first_us > 0) {
		json_integer(out, "first_us", boot.first_us);
	}
	if (boot.last_us > 0) {
		json_integer(out, "last_us", boot.last_us);
	}
	json_bool(out, "clock_synced", boot.synced);
	json_string(out, "end", timeline_boot_end_name(timeline_boot_end(core->archive, boot.seq)));
	json_close(out, '}');
	return true;
}

static void boot_tail(const struct list_cursor *cursor, struct json *out, bool last)
{
	const struct archive *archive = cursor->core->archive;
	if (last && (!archive || archive_boot_seq(archive) == 0)) {
		json_string(out, "reason",
			archive ? "the archive has not been read yet"
				: "nothing is kept across reboots: [history] persist is off");
	}
}

static const struct list_ops boot_list = {.field = "boots", .item = boot_item, .tail = boot_tail};

enum api_result method_list_boots(struct api_call *call)
{
	struct list_cursor cursor;
	list_cursor_init(&cursor, call);
	return list_start(call, &boot_list, &cursor);
}
