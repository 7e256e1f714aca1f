/* The inside of struct persist, for persist.c (when), persist_state.c (what is told) and
 * persist_block.c (what is written) only. */
#pragma once

#include "daemon/core/archive/account.h"
#include "daemon/core/status/persist_status.h"
#include "daemon/persist/archive_file.h"
#include "daemon/persist/persist.h"

struct persist {
	uv_loop_t *loop;
	uv_timer_t timer;
	struct core *core;
	struct archive *archive;
	struct archive_file *file;
	struct past *past;
	struct archive_account account;
	struct persist_status *status;
	enum persist_state written; /* how writing fares; the status may add how reading does */
	char reason[192];
	struct persist_options options;
	bool open;	 /* the file can be written */
	bool remembered; /* the account knows what earlier processes wrote */
	bool hurry;	 /* write as soon as possible: is it well again? */
	bool closing;
	uint64_t retry_ns, retry_at_ns;
	uint64_t due_ns;    /* of the next block */
	uint64_t sealed_ns; /* when the last one was */
	size_t writing;	    /* bytes that are with the worker */
};

/* persist_state.c: writing fares so from now on; or look at reading again. */
void persist_set_state(struct persist *persist, enum persist_state state, const char *reason);
void persist_publish(struct persist *persist);

/* The pace from now on, which the archive and the status hear of. */
struct archive_pace persist_pace(struct persist *persist, uint64_t now_ns);

/* A block to the worker. False when there is nothing to write or it may not be; last: the process
 * ends, what is open counts, too. */
bool persist_write(struct persist *persist, uint64_t now_ns, bool last);
