/* SPDX-License-Identifier: Apache-2.0 */
/* runfiles.c: opens each file of the run directory independently: when one cannot be used, the
 * others are unaffected, and the daemon continues in memory for that one. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/util/log.h"
#include "daemon/wiring.h"

static const struct {
	const char *name, *lost; /* what is lost with the process without it */
	bool sparse;		 /* pages are reserved as they are needed */
} files[RUN_FILES] = {
	[RUN_CLOCK] = {"clock", "steps of the wall clock are", false},
	[RUN_HISTORY] = {"history", "the history is", true},
	[RUN_TIMELINE] = {"timeline", "marks and events are", false},
	[RUN_ALERTS] = {"alerts", "what fires and since when is", false},
	[RUN_HOLDS] = {"holds", "acknowledgements, silences and the log are", false},
	[RUN_RUNS] = {"runs", "the statistics of current runs are", true},
	[RUN_RECORDER] = {"recorder", "how many recordings the day had is", false},
	[RUN_MQTT] = {"mqtt", "alerts that wait for the broker are", false},
};

static void log_degraded(const struct daemon *daemon, bool added)
{
	if (added) {
		const size_t last = daemon->degraded.count - 1;
		log_warning("%s/%s: %s", daemon->run_dir, daemon->degraded.row[last].file,
			daemon->degraded.row[last].reason);
	}
}

void daemon_lose_run_file(struct daemon *daemon, enum run_file id, int error)
{
	char why[96];
	runfile_why(daemon->run_dir, files[id].name, error, why, sizeof(why));
	log_degraded(daemon, degraded_add(&daemon->degraded, files[id].name,
				     "%s; until this is fixed and the daemon is restarted, "
				     "%s only in memory",
				     why, files[id].lost));
	runfile_close(&daemon->file[id]);
}

int daemon_open_run_file(struct daemon *daemon, enum run_file id, size_t size)
{
	const char *name = files[id].name;
	struct runfile *file = &daemon->file[id];
	bool added = false;
	int r = files[id].sparse ? runfile_open_sparse(daemon->run_dir, name, size, file)
				 : runfile_open(daemon->run_dir, name, size, file);
	if (r < 0) {
		daemon_lose_run_file(daemon, id, r);
	} else if (file->damaged) {
		added = degraded_add(&daemon->degraded, name,
			"its header or length was damaged or of another version: it was "
			"created again, and its previous contents are lost");
	} else {
		degraded_drop(&daemon->degraded, name);
	}
	log_degraded(daemon, added);
	return r;
}

void daemon_report_damage(struct daemon *daemon, enum run_file id, size_t parts)
{
	if (parts > 0) {
		bool added = degraded_add(&daemon->degraded, files[id].name,
			"its contents were damaged: %zu part%s discarded", parts,
			parts == 1 ? " was" : "s were");
		log_degraded(daemon, added);
	}
}

bool daemon_reserve_history(void *ctx, size_t offset, size_t length)
{
	struct daemon *daemon = ctx;
	const char *name = files[RUN_HISTORY].name;
	int r = runfile_reserve(&daemon->file[RUN_HISTORY], offset, length);
	if (r < 0 && daemon->core.history) {
		bool added = degraded_add(&daemon->degraded, name,
			"it cannot grow beyond %zu KiB: %s; old values are dropped early",
			offset >> 10, strerror(-r));
		log_degraded(daemon, added);
		daemon->history_refused = daemon->history_refused || added;
	} else if (daemon->history_refused) {
		degraded_drop(&daemon->degraded, name);
		daemon->history_refused = false;
	}
	return r == 0;
}

/* True if the path still names the mapped file. */
static bool is_in_place(const struct daemon *daemon, enum run_file id)
{
	char path[sizeof(daemon->run_dir) + 32];
	struct stat ours, there;
	snprintf(path, sizeof(path), "%s/%s", daemon->run_dir, files[id].name);
	return fstat(daemon->file[id].fd, &ours) < 0 ||
	       (fstatat(AT_FDCWD, path, &there, AT_SYMLINK_NOFOLLOW) == 0 &&
		       there.st_ino == ours.st_ino && there.st_dev == ours.st_dev);
}

static void on_change(uv_fs_event_t *watch, const char *name, int events, int status)
{
	struct daemon *daemon = watch->data;
	(void)events;
	for (enum run_file id = 0; status == 0 && id < RUN_FILES; id++) {
		if ((name && strcmp(name, files[id].name) != 0) || !daemon->file[id].data ||
			daemon->file[id].fd < 0 || is_in_place(daemon, id)) {
			continue;
		}
		log_degraded(daemon, degraded_add(&daemon->degraded, files[id].name,
					     "it was removed or replaced while the daemon ran; "
					     "until the daemon is restarted, %s only in memory",
					     files[id].lost));
	}
}

void daemon_watch_run_files(struct daemon *daemon)
{
	uv_fs_event_init(daemon->loop, &daemon->run_watch);
	daemon->run_watch.data = daemon;
	daemon->run_watch_open = true;
	int r = uv_fs_event_start(&daemon->run_watch, on_change, daemon->run_dir, 0);
	if (r < 0) {
		log_info("files that are removed from %s go unnoticed: %s", daemon->run_dir,
			uv_strerror(r));
	}
}
