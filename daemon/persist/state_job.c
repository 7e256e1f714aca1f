/* What loop and thread share is freed by who lets go last. */
#include "daemon/persist/state_job.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "daemon/persist/state_file.h"
#include "daemon/util/offload.h"
#include "daemon/util/sysops.h"

#define STACK_BYTES ((size_t)128 * 1024)

struct shared {
	pthread_mutex_t lock;
	pthread_cond_t end;
	struct state_job *job; /* NULL: left */
	bool thread;	       /* it runs */
	enum state_job_kind kind;
	char dir[192], name[32];
	uint8_t *bytes;
	size_t size;
	int result;
};

struct state_job {
	uv_async_t wake;
	struct shared *shared;
	state_job_done *done;
	void *ctx;
};

/* With the lock held, which it gives back. */
static void let_go(struct shared *shared)
{
	bool last = !shared->thread && !shared->job;
	pthread_mutex_unlock(&shared->lock);
	if (last) {
		free(shared->bytes);
		pthread_cond_destroy(&shared->end);
		pthread_mutex_destroy(&shared->lock);
		free(shared);
	}
}

static bool is_there(const struct shared *shared)
{
	char path[sizeof(shared->dir) + sizeof(shared->name)];
	struct stat st;
	snprintf(path, sizeof(path), "%s/%s", shared->dir, shared->name);
	return lstat(path, &st) == 0;
}

static int run(struct shared *shared)
{
	if (shared->kind == STATE_JOB_READ) {
		return state_file_read(shared->dir, shared->name, shared->bytes, shared->size);
	}
	if (shared->kind == STATE_JOB_REPLACE && !is_there(shared)) {
		return 0;
	}
	return state_file_write(shared->dir, shared->name, shared->bytes, shared->size);
}

static void *work(void *ctx)
{
	struct shared *shared = ctx;
	int result = run(shared);
	pthread_mutex_lock(&shared->lock);
	shared->result = result;
	shared->thread = false;
	if (shared->job) {
		uv_async_send(&shared->job->wake);
		pthread_cond_signal(&shared->end);
	}
	let_go(shared);
	return NULL;
}

static void on_closed(uv_handle_t *handle)
{
	free(handle->data);
}

/* The loop's side ends; the bytes may be the thread's for longer. */
static void end(struct state_job *job)
{
	pthread_mutex_lock(&job->shared->lock);
	job->shared->job = NULL;
	let_go(job->shared);
	uv_close((uv_handle_t *)&job->wake, on_closed);
}

static bool has_ended(struct state_job *job)
{
	pthread_mutex_lock(&job->shared->lock);
	bool ended = !job->shared->thread;
	pthread_mutex_unlock(&job->shared->lock);
	return ended;
}

static void on_wake(uv_async_t *wake)
{
	struct state_job *job = wake->data;
	if (has_ended(job)) {
		job->done(job->ctx, job->shared->result, job->shared->bytes);
		end(job);
	}
}

static struct shared *make_shared(enum state_job_kind kind, const char *dir, const char *name)
{
	struct shared *shared = mem_zalloc(sizeof(*shared));
	pthread_condattr_t attributes;
	if (!shared) {
		return NULL;
	}
	pthread_mutex_init(&shared->lock, NULL);
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&shared->end, &attributes);
	pthread_condattr_destroy(&attributes);
	shared->kind = kind;
	snprintf(shared->dir, sizeof(shared->dir), "%s", dir);
	snprintf(shared->name, sizeof(shared->name), "%s", name);
	return shared;
}

int state_job_start(uv_loop_t *loop, enum state_job_kind kind, const char *dir, const char *name,
	uint8_t *bytes, size_t size, state_job_done *done, void *ctx, struct state_job **ret)
{
	if (strlen(dir) >= sizeof(((struct shared *)0)->dir) ||
		strlen(name) >= sizeof(((struct shared *)0)->name)) {
		return -ENAMETOOLONG;
	}
	struct shared *shared = make_shared(kind, dir, name);
	struct state_job *job = mem_zalloc(sizeof(*job));
	int r = shared && job ? uv_async_init(loop, &job->wake, on_wake) : -ENOMEM;
	if (r < 0) {
		free(job);
		free(shared);
		return r;
	}
	job->wake.data = job;
	job->shared = shared;
	job->done = done;
	job->ctx = ctx;
	shared->job = job;
	shared->bytes = bytes;
	shared->size = size;
	shared->thread = true;
	r = detached_start(STACK_BYTES, work, shared);
	if (r < 0) {
		shared->thread = false;
		shared->bytes = NULL;
		end(job);
		return r;
	}
	*ret = job;
	return 0;
}

bool state_job_wait(struct state_job *job, unsigned ms)
{
	struct timespec until;
	struct shared *shared = job->shared;
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += (long)(ms % 1000) * 1000000;
	until.tv_sec += ms / 1000 + until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	int r = 0;
	pthread_mutex_lock(&shared->lock);
	while (shared->thread && r == 0) {
		r = pthread_cond_timedwait(&shared->end, &shared->lock, &until);
	}
	pthread_mutex_unlock(&shared->lock);
	if (!has_ended(job)) {
		return false;
	}
	job->done(job->ctx, shared->result, shared->bytes);
	end(job);
	return true;
}

void state_job_leave(struct state_job *job)
{
	if (job) {
		end(job);
	}
}

static void ignore(void *ctx, int result, const uint8_t *bytes)
{
	(void)ctx;
	(void)result;
	(void)bytes;
}

bool state_job_answers(uv_loop_t *loop, const char *dir, unsigned ms)
{
	struct state_job *job;
	uint8_t *byte = mem_zalloc(1);
	if (!byte ||
		state_job_start(loop, STATE_JOB_READ, dir, ".", byte, 1, ignore, NULL, &job) < 0) {
		free(byte);
		return false;
	}
	if (state_job_wait(job, ms)) {
		return true;
	}
	state_job_leave(job);
	return false;
}
