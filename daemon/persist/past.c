/* What was adopted is told with the times that this boot's clock gives it: again when the clock is
 * set or synchronised. */
#include "daemon/persist/past.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/core/timeline/past.h"
#include "daemon/persist/archive_read.h"
#include "daemon/util/log.h"
#include "daemon/util/sysops.h"

struct past {
	struct core *core;
	struct archive_readers *readers;
};

void past_adopted(struct past *past)
{
	const struct core *core = past->core;
	int r = timeline_load_past(core->timeline, core->archive, core->wall);
	if (r < 0) {
		log_warning("events of the boots before are not listed: %s", strerror(-r));
	}
}

void past_look(const struct past *past, struct archive_reads *ret)
{
	archive_readers_look(past->readers, ret);
}

static void on_entry(void *ctx, const struct timeline_entry *entry)
{
	struct past *past = ctx;
	if (entry->kind == TIMELINE_CLOCK && archive_boot_seq(past->core->archive) > 0) {
		past_adopted(past);
	}
}

int past_open(uv_loop_t *loop, struct core *core, int (*descriptor)(void *ctx), void *ctx,
	struct past **ret)
{
	struct past *past = mem_zalloc(sizeof(*past));
	if (!past) {
		return -ENOMEM;
	}
	past->core = core;
	int r = archive_readers_open(loop, descriptor, ctx, &past->readers);
	r = r < 0 ? r : timeline_observe(core->timeline, on_entry, past);
	if (r < 0) {
		archive_readers_close(past->readers);
		free(past);
		return r;
	}
	core->archive_reader = archive_readers_ops(past->readers);
	*ret = past;
	return 0;
}

void past_close(struct past *past)
{
	if (!past) {
		return;
	}
	past->core->archive_reader = NULL;
	timeline_unobserve(past->core->timeline, past);
	archive_readers_close(past->readers);
	free(past);
}
