/* SPDX-License-Identifier: Apache-2.0 */
/* exec.c: runs a command under controls and measures it: what time, pidstat and perf stat report,
 * in one result. The exit status is the command's. */
#include "client/edgeprofctl/exec/exec.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "client/edgeprofctl/link/json.h"
#include "client/edgeprofctl/term/when.h"
#include "client/edgeprofctl/term/wrap.h"
#include "client/edgeprofctl/trace/trace.h"
#include "client/edgeprofctl/verb.h"

enum { SAMPLE_MS = 100, GRACE_MS = 2000, SIGNALLED = 128 };

struct run {
	struct ctl *ctl;
	struct exec_child child;
	struct exec_quota quota;
	struct exec_perf perf;
	struct exec_result result;
	struct trace_file file;
	cJSON *controls;
	double start_ms, end_ms;
	bool ended;
};

/* Collects what has ended: the command, after a last sample, the helper, and orphans. */
static void reap(struct run *run)
{
	siginfo_t info = {0};
	while (!run->ended && waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
		info.si_pid > 0) {
		pid_t pid = info.si_pid;
		int status;
		struct rusage rusage;
		run->ended = pid == run->child.pid;
		if (run->ended) {
			run->end_ms = when_mono_ms();
			exec_usage_sample(&run->result.usage);
		}
		wait4(pid, &status, 0, &rusage);
		if (run->ended) {
			run->result.status = status;
			run->result.rusage = rusage;
		} else if (pid == run->perf.pid) {
			run->perf.ended = true;
			run->perf.status = status;
		}
		info.si_pid = 0;
	}
}

static void enforce_limit(struct run *run, double *limit_ms)
{
	const struct exec_usage *usage = &run->result.usage;
	if (when_mono_ms() - run->start_ms < *limit_ms) {
		return;
	}
	for (size_t i = 0; i < usage->process_count; i++) {
		kill(usage->process[i], run->result.limit_reached ? SIGKILL : SIGTERM);
		kill(usage->process[i], SIGCONT);
	}
	*limit_ms += run->result.limit_reached ? SAMPLE_MS : GRACE_MS;
	run->result.limit_reached = true;
}

static void watch(struct run *run)
{
	double pause_ms = 1, limit_ms = run->ctl->options.exec.limit_ms;
	sigset_t signals;
	sigprocmask(SIG_BLOCK, NULL, &signals);
	limit_ms = limit_ms > 0 ? limit_ms : INFINITY;
	while (!run->ended) {
		double left_ms = limit_ms - (when_mono_ms() - run->start_ms);
		double wait_ms = fmax(fmin(pause_ms, left_ms), 0);
		struct timespec timeout = {.tv_nsec = (long)(wait_ms * 1e6)};
		siginfo_t info;
		int number = sigtimedwait(&signals, &info, &timeout);
		if (number > 0 && number != SIGCHLD && info.si_code <= 0) {
			/* those of the kernel, such as Ctrl-C's, went to the process group */
			kill(run->child.pid, number);
		}
		reap(run);
		if (!run->ended && number < 0) {
			exec_usage_sample(&run->result.usage);
			pause_ms = fmin(2 * pause_ms, SAMPLE_MS);
			enforce_limit(run, &limit_ms);
		}
	}
	run->result.wall_s = (run->end_ms - run->start_ms) / 1000;
}

static int measure(struct run *run)
{
	struct ctl *ctl = run->ctl;
	const struct exec_options *options = &ctl->options.exec;
	int status = exec_child_start(ctl, &run->child);
	if (status != CTL_FINE) {
		return status;
	}
	if (options->quota_percent > 0) {
		status = exec_quota_apply(ctl, &run->quota, run->child.pid);
	}
	if (status == CTL_FINE && options->perf_record) {
		status = exec_perf_start(ctl, &run->perf, &run->child);
		run->result.perf_data = options->perf_record;
	}
	if (status != CTL_FINE) {
		exec_child_abort(&run->child);
		return status;
	}
	run->controls = exec_controls_json(ctl, run->child.pid);
	run->result.own_rss_bytes = exec_peak_rss(getpid());
	exec_usage_init(&run->result.usage, run->child.pid, run->perf.pid);
	exec_usage_begin(&run->result.usage);
	prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
	run->result.start_us = when_now_us();
	run->start_ms = when_mono_ms();
	status = exec_child_release(ctl, &run->child);
	if (status == CTL_FINE) {
		watch(run);
	}
	return status;
}

/* stdout belongs to the command: the result goes to stderr, and as JSON to the file. */
static int show(struct run *run, cJSON *result)
{
	struct ctl *ctl = run->ctl;
	int r = 0;
	if (run->file.stream) {
		json_write(run->file.stream, result, ctl->options.json != JSON_SHORT);
		r = trace_file_finish(&run->file);
		if (r < 0) {
			ctl_fail(ctl, 0, "cannot write %s: %s", ctl->options.output, strerror(-r));
		}
	}
	ctl->style.color =
		ctl->style.color && (isatty(STDERR_FILENO) || ctl->options.color == COLOR_ALWAYS);
	struct output to_stdout = ctl->output;
	if (output_open(&ctl->output) < 0) {
		ctl->output = to_stdout;
		return CTL_OUTPUT;
	}
	if (!ctl_json(ctl, result)) {
		json_clean(result, ctl->style.utf8);
		exec_show(ctl, result);
	}
	fflush(ctl->output.stream);
	int written = 0;
	if (ctl->options.json == JSON_OFF && ctl->style.width > 0) {
		wrap_write(ctl->output.bytes, ctl->style.width, stderr);
		written = ferror(stderr) ? -EIO : 0;
	} else {
		written = output_write(STDERR_FILENO, ctl->output.bytes, ctl->output.size);
	}
	output_finish(&ctl->output);
	ctl->output = to_stdout;
	return r < 0 || written < 0 ? CTL_OUTPUT : CTL_FINE;
}

/* Shows what was measured; the exit status, which is the command's unless that is 0. */
static int report(struct run *run)
{
	int end = run->result.status;
	cJSON *result = exec_result_json(run->ctl, &run->result);
	if (run->quota.own) {
		exec_quota_add(&run->quota, run->controls);
	}
	cJSON_AddItemReferenceToObject(result, "controls", run->controls);
	int status = show(run, result);
	cJSON_Delete(result);
	return WIFSIGNALED(end)	       ? SIGNALLED + WTERMSIG(end)
	       : WEXITSTATUS(end) != 0 ? WEXITSTATUS(end)
				       : status;
}

static int run_exec(struct ctl *ctl)
{
	struct run run = {.ctl = ctl};
	struct trace_file *file = &run.file;
	if (ctl_check_local(ctl) != CTL_FINE) {
		return CTL_USAGE;
	}
	int r = ctl->options.output ? trace_file_open(ctl->options.output, file) : 0;
	if (r < 0) {
		return ctl_fail(
			ctl, CTL_OUTPUT, "cannot write %s: %s", ctl->options.output, strerror(-r));
	}
	int status = measure(&run);
	if (run.perf.pid > 0 && !exec_perf_finish(&run.perf) && status == CTL_FINE) {
		ctl_fail(ctl, 0, "perf record failed: %s", run.perf.reason);
		run.result.perf_data = NULL;
	}
	status = status == CTL_FINE ? report(&run) : status;
	cJSON_Delete(run.controls);
	exec_quota_finish(&run.quota);
	if (file->stream) { /* nothing was measured */
		fclose(file->stream);
		if (file->path) {
			unlink(file->temporary);
		}
		free(file->path);
		free(file->temporary);
	}
	return status;
}

const struct verb verb_exec = {"exec", "PROGRAM [ARGUMENT]...",
	"Run a command under controls and measure it.",
	"exec --cpus 0-1 --nice 5 -- ./app model.onnx", exec_options, run_exec};
