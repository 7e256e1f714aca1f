/* SPDX-License-Identifier: Apache-2.0 */
/* recover.c: starts over the history of an earlier process: READY when the sockets are bound, then
 * the history, a short turn at a time, then the layers. Nothing is sampled, drained or answered
 * before it is complete: connections wait in the backlog, records in their mappings. */
#include "daemon/wiring.h"

#include <errno.h>
#include <string.h>

#include "daemon/core/history/history.h"
#include "daemon/host/notify.h"
#include "daemon/util/log.h"
#include "daemon/util/sysops.h"

#define RECOVERY_TURN_NS UINT64_C(1000000)

int daemon_give_up(struct daemon *daemon, int error)
{
	log_error("cannot start: %s", strerror(-error));
	daemon_stop(daemon);
	return error == -EINVAL ? -EPROTO : error;
}

/* The history is there: the layers open, and what had to wait is done. */
static void end_recovery(struct daemon *daemon)
{
	daemon->recovering = daemon->recovery_open = false;
	uv_close((uv_handle_t *)&daemon->recovery, NULL);
	daemon_on_history(daemon);
	int r = daemon_open_layers(daemon);
	if (r < 0) {
		daemon->failure = daemon_give_up(daemon, r);
		return;
	}
	if (daemon->alerts_loaded) {
		daemon_on_alerts(daemon);
	}
	if (daemon->reload_wanted) {
		daemon_reload(daemon, NULL, 0);
	}
}

/* Signals and the watchdog have their turns in between. */
static void on_recovery(uv_idle_t *idle)
{
	struct daemon *daemon = idle->data;
	const uint64_t started_ns = sysops()->now_ns();
	int r;
	do {
		r = history_recover(daemon->core.history);
	} while (r > 0 && sysops()->now_ns() - started_ns < RECOVERY_TURN_NS);
	if (r < 0) {
		daemon->failure = daemon_give_up(daemon, r);
	} else if (r == 0) {
		end_recovery(daemon);
	}
}

/* The sockets accept connections, whatever is left to read: READY. */
void daemon_begin_recovery(struct daemon *daemon)
{
	uv_idle_init(daemon->loop, &daemon->recovery);
	daemon->recovery.data = daemon;
	daemon->recovery_open = true;
	uv_idle_start(&daemon->recovery, on_recovery);
	notify_state("READY=1\nSTATUS=reading the history recorded before the restart");
}

int daemon_failure(const struct daemon *daemon)
{
	return daemon ? daemon->failure : 0;
}
