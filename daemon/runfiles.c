/* SPDX-License-Identifier: Apache-2.0 */
/* runfiles.c: opens each file of the run directory independently: when one cannot be used, the
 * others are unaffected, and the daemon continues in memory for that one. */
#include "daemon/runfiles.h"

#include "daemon/util/log.h"

static void log_degraded(const struct daemon *daemon, bool added)
{
	if (added) {
		const size_t last = daemon->degraded.count - 1;
		log_warning("%s/%s: %s", daemon->run_dir, daemon->degraded.row[last].file,
			daemon->degraded.row[last].reason);
	}
}

typedef int run_file_opener(const char *dir, const char *name, size_t size, struct runfile *ret);

static int open_by(run_file_opener *opener, struct daemon *daemon, const char *name, size_t size,
	const char *lost, struct runfile *ret)
{
	char why[96];
	bool added = false;
	int r = opener(daemon->run_dir, name, size, ret);
	if (r < 0) {
		runfile_why(daemon->run_dir, name, r, why, sizeof(why));
		added = degraded_add(&daemon->degraded, name,
			"%s; until this is fixed and the daemon is restarted, "
			"%s only in memory",
			why, lost);
	} else if (ret->damaged) {
		added = degraded_add(&daemon->degraded, name,
			"its header or length was damaged or of another version: it was "
			"created again, and its previous contents are lost");
	} else {
		degraded_drop(&daemon->degraded, name);
	}
	log_degraded(daemon, added);
	return r;
}

int daemon_open_run_file(
	struct daemon *daemon, const char *name, size_t size, const char *lost, struct runfile *ret)
{
	return open_by(runfile_open, daemon, name, size, lost, ret);
}

int daemon_open_sparse_run_file(
	struct daemon *daemon, const char *name, size_t size, const char *lost, struct runfile *ret)
{
	return open_by(runfile_open_sparse, daemon, name, size, lost, ret);
}

void daemon_report_damage(struct daemon *daemon, const char *name, size_t parts)
{
	if (parts > 0) {
		bool added = degraded_add(&daemon->degraded, name,
			"its contents were damaged: %zu part%s discarded", parts,
			parts == 1 ? " was" : "s were");
		log_degraded(daemon, added);
	}
}
