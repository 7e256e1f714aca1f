/* SPDX-License-Identifier: Apache-2.0 */
/* private.h: declares the inside of struct persist, for persist.c (what is written when) and
 * state.c (what is reported). */
#pragma once

#include "daemon/core/archive/account.h"
#include "daemon/core/status/persist_status.h"
#include "daemon/persist/archive_file.h"
#include "daemon/persist/archive_read.h"
#include "daemon/persist/persist.h"

struct persist {
	uv_loop_t *loop;
	uv_timer_t timer;
	struct core *core;
	struct archive *archive;
	struct archive_file file;
	struct archive_readers *readers; /* of queries */
	struct archive_account account;
	struct persist_status *status;
	enum persist_state written; /* how writing fares; the status may add how reading does */
	char reason[192];
	struct persist_options options;
	bool open;	/* the file can be written */
	bool restored;	/* the account knows what earlier processes wrote */
	bool write_now; /* write as soon as possible: is it well again? */
	bool closing;
	uint64_t retry_ns, retry_at_ns;
	uint64_t due_ns;    /* of the next block */
	uint64_t sealed_ns; /* when the last one was */
	size_t writing;	    /* bytes that are with the worker */
};

/* Writing fares so from now on; or look at reading again. */
void persist_set_state(struct persist *persist, enum persist_state state, const char *reason);
void persist_publish(struct persist *persist);
