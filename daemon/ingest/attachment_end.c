/*
 * How the process behind a mapping ends. The pidfd is readable when it did, and hangs up when its
 * parent has waited for it; only then most kernels report how. What it left is read at the first,
 * its run is closed at the second, or end_wait_ns later.
 */
#include "daemon/ingest/ingest_private.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "daemon/util/sysops.h"

/* What a wait status says of an end. */
static enum process_end judge_exit(int status, char *cause, size_t size)
{
	if (WIFEXITED(status)) {
		if (WEXITSTATUS(status) == 0) {
			return PROCESS_ENDED;
		}
		snprintf(cause, size, "exited with status %d", WEXITSTATUS(status));
		return PROCESS_DIED;
	}
	int number = WTERMSIG(status);
	bool asked = number == SIGTERM || number == SIGINT || number == SIGHUP;
	const char *name = sigabbrev_np(number);
	if (number == SIGKILL) {
		return PROCESS_KILLED;
	}
	if (name) {
		snprintf(cause, size, "%s SIG%s", asked ? "ended by" : "died of", name);
	} else {
		snprintf(cause, size, "died of signal %d", number);
	}
	return asked ? PROCESS_ENDED : PROCESS_DIED;
}

void attachment_end_by_turns(struct attachment *attachment, enum process_end how)
{
	if (attachment->pidfd >= 0) {
		uv_poll_stop(&attachment->death);
	}
	attachment->how = how;
	attachment->ending = true;
	ingest_drain_ending(attachment->ingest, attachment);
}

/* How the kernel reports it, else as the mapping's flags say. */
static enum process_end judge_end(struct attachment *attachment)
{
	struct app_process *process = attachment->process;
	int status;
	if (attachment->pidfd >= 0 &&
		peer_exit(attachment->pidfd, &attachment->peer, &status) == 0) {
		return judge_exit(status, process->cause, sizeof(process->cause));
	}
	if (ring_flags(attachment->ring) & PROTO_MAP_BYE) {
		return PROCESS_ENDED;
	}
	snprintf(process->cause, sizeof(process->cause), "unknown end");
	return PROCESS_DIED;
}

void attachment_gone(struct attachment *attachment)
{
	if (!attachment->ending) {
		attachment_end_by_turns(attachment, judge_end(attachment));
	}
}

void attachment_finish(struct attachment *attachment)
{
	enum process_end how = attachment->ending	  ? attachment->how
			       : attachment->ended_ns > 0 ? judge_end(attachment)
							  : PROCESS_RELEASED;
	attachment->ending = false; /* no more turns: what is left is read now */
	attachment_end(attachment, how);
}

void attachments_displace(void *ctx, const struct app *app)
{
	struct ingest *ingest = ctx;
	struct attachment *next;
	for (struct attachment *a = ingest->attachments; a; a = next) {
		next = a->next;
		if (a->process->app == app) {
			attachment_end(a, PROCESS_ENDED);
		}
	}
}

bool attachment_overdue(const struct attachment *attachment, uint64_t now_ns)
{
	return attachment->ended_ns > 0 &&
	       now_ns - attachment->ended_ns >= attachment->ingest->options.end_wait_ns;
}

/* Nothing more comes of it. What it left is read now, how it ended is waited for. */
static void wait_for_end(struct attachment *attachment)
{
	if (attachment->ended_ns == 0) {
		attachment->ended_ns = sysops()->now_ns();
		attachment->due = true;
		ingest_drain_due(attachment->ingest);
	}
}

void attachment_hangup(struct attachment *attachment)
{
	if (attachment->ending) {
		return;
	}
	if (attachment->pidfd < 0) {
		attachment_gone(attachment);
	} else if (ring_flags(attachment->ring) & PROTO_MAP_BYE) {
		wait_for_end(attachment);
	}
}

/* The process ended (readable), or its parent waited for it (hung up: told with any events). */
void attachment_on_death(uv_poll_t *handle, int status, int events)
{
	struct attachment *attachment = handle->data;
	int exit_status;
	(void)status;
	if ((events & UV_READABLE) &&
		peer_exit(attachment->pidfd, &attachment->peer, &exit_status) == -EAGAIN) {
		wait_for_end(attachment);
		uv_poll_start(handle, UV_PRIORITIZED, attachment_on_death);
		return;
	}
	attachment_gone(attachment);
}

/* A run that is over is not joined by the next process. */
void attachments_end_over(struct ingest *ingest, const char *name, uid_t uid)
{
	struct attachment *next;
	for (struct attachment *a = ingest->attachments; a; a = next) {
		next = a->next;
		if ((a->ended_ns > 0 || a->ending) && a->process->app->uid == uid &&
			strcmp(a->process->app->name, name) == 0) {
			attachment_finish(a);
		}
	}
}
