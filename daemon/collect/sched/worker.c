/* Between an entry and files that may hang. One mutex guards everything but the state of a running
 * job, which is its thread's alone: the hand-over is the mutex, both ways. Whoever lets go last of
 * the shared part (the scheduler, or a thread that came back late) frees it. */
#include "daemon/collect/sched/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "daemon/util/sysops.h"

/* Resolving a path below a fixture root takes 16 KiB; sanitizers multiply it. */
#define STACK_BYTES ((size_t)512 * 1024)

struct workers {
	pthread_mutex_t lock;
	pthread_cond_t work, rest; /* something is queued, or leave; a job is over */
	uv_async_t *wake;	   /* NULL = left */
	bool hushed;
	struct worker_job *first, *last;
	unsigned queued, idle, threads, running;
	unsigned owners; /* the scheduler and each thread */
	struct root root, real_root;
	struct collector_context ctx; /* what fetch gets: the roots, nothing else */
};

struct worker_job {
	struct workers *workers;
	struct worker_job *next;
	const struct collector_ops *ops;
	const struct source_options *options; /* NULL = none */
	struct source_options options_copy;
	void *state;
	enum worker_phase phase;
	bool left;	 /* nobody waits for its result */
	unsigned owners; /* who created it, and the queue or the thread that runs it */
	struct worker_result result;
};

static void destroy(struct workers *workers)
{
	pthread_cond_destroy(&workers->work);
	pthread_cond_destroy(&workers->rest);
	pthread_mutex_destroy(&workers->lock);
	root_finish(&workers->root);
	root_finish(&workers->real_root);
	free(workers);
}

/* With the lock held, which it gives back. */
static void let_go(struct workers *workers)
{
	bool last = --workers->owners == 0;
	pthread_mutex_unlock(&workers->lock);
	if (last) {
		destroy(workers);
	}
}

static int copy_root(const struct root *root, struct root *ret)
{
	ret->fixture = root->fixture;
	ret->fd = fcntl(root->fd, F_DUPFD_CLOEXEC, 0);
	return ret->fd < 0 ? -errno : 0;
}

static void init_locks(struct workers *workers)
{
	pthread_condattr_t attributes;
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_mutex_init(&workers->lock, NULL);
	pthread_cond_init(&workers->work, &attributes);
	pthread_cond_init(&workers->rest, &attributes);
	pthread_condattr_destroy(&attributes);
}

int workers_create(uv_async_t *wake, const struct root *root, const struct root *real_root,
	struct workers **ret)
{
	struct workers *workers = mem_zalloc(sizeof(*workers));
	if (!workers) {
		return -ENOMEM;
	}
	workers->root.fd = workers->real_root.fd = -1;
	workers->wake = wake;
	workers->owners = 1;
	workers->ctx.root = &workers->root;
	workers->ctx.real_root = &workers->real_root;
	init_locks(workers);
	int r = copy_root(root, &workers->root);
	r = r < 0 ? r : copy_root(real_root, &workers->real_root);
	if (r < 0) {
		destroy(workers);
		return r;
	}
	*ret = workers;
	return 0;
}

void workers_hush(struct workers *workers, bool hushed)
{
	pthread_mutex_lock(&workers->lock);
	workers->hushed = hushed;
	pthread_mutex_unlock(&workers->lock);
}

void workers_wait(struct workers *workers, uint64_t limit_ns)
{
	struct timespec until;
	clock_gettime(CLOCK_MONOTONIC, &until);
	limit_ns += (uint64_t)until.tv_nsec;
	until.tv_sec += (time_t)(limit_ns / 1000000000);
	until.tv_nsec = (long)(limit_ns % 1000000000);
	int r = 0;
	pthread_mutex_lock(&workers->lock);
	while (r == 0 && workers->running + workers->queued > 0) {
		r = pthread_cond_timedwait(&workers->rest, &workers->lock, &until);
	}
	pthread_mutex_unlock(&workers->lock);
}

static struct worker_job *next_job(struct workers *workers)
{
	struct worker_job *job = workers->first;
	if (job) {
		workers->first = job->next;
		workers->last = job->next ? workers->last : NULL;
		workers->queued--;
		job->next = NULL;
	}
	return job;
}

static void probe_or_fetch(struct worker_job *job)
{
	struct collector_context ctx = job->workers->ctx;
	struct worker_result *result = &job->result;
	uint64_t started_ns = sysops()->now_ns();
	result->reason[0] = '\0';
	if (job->state) {
		result->result = job->ops->fetch(&ctx, job->state);
	} else {
		ctx.options = job->options;
		result->result = job->ops->probe(&ctx, &job->state, result->reason);
	}
	result->finished_ns = sysops()->now_ns();
	result->spent_ns = result->finished_ns - started_ns;
}

/* Here and not on the loop: closing a file may hang, too. */
static void close_state(struct worker_job *job)
{
	if (job->state) {
		job->ops->close(job->state);
	}
	job->state = NULL;
}

/* With the lock held, but not while probe, fetch and close run. */
static void run_job(struct workers *workers, struct worker_job *job)
{
	bool left = job->left;
	job->phase = WORKER_RUNNING;
	workers->running++;
	pthread_mutex_unlock(&workers->lock);
	if (!left) {
		probe_or_fetch(job);
	}
	pthread_mutex_lock(&workers->lock);
	if (job->left) {
		pthread_mutex_unlock(&workers->lock);
		close_state(job);
		pthread_mutex_lock(&workers->lock);
	}
	job->phase = job->left ? WORKER_GONE : WORKER_DONE;
	workers->running--;
	if (--job->owners == 0) {
		free(job);
	}
	pthread_cond_broadcast(&workers->rest);
	if (workers->wake && !workers->hushed) {
		uv_async_send(workers->wake);
	}
}

void workers_leave(struct workers *workers)
{
	if (!workers) {
		return;
	}
	pthread_mutex_lock(&workers->lock);
	workers->wake = NULL;
	pthread_cond_broadcast(&workers->work);
	struct worker_job *job;
	while (workers->threads == 0 && (job = next_job(workers))) {
		run_job(workers, job); /* there is nobody else who closes it */
	}
	let_go(workers);
}

static void *work(void *ctx)
{
	struct workers *workers = ctx;
	pthread_mutex_lock(&workers->lock);
	for (;;) {
		struct worker_job *job = next_job(workers);
		if (job) {
			run_job(workers, job);
		} else if (workers->wake) {
			workers->idle++;
			pthread_cond_wait(&workers->work, &workers->lock);
			workers->idle--;
		} else {
			break;
		}
	}
	let_go(workers);
	return NULL;
}

/* With the lock held. Without a thread the job waits: the next tick tries again. */
static void add_thread(struct workers *workers)
{
	pthread_attr_t attributes;
	pthread_t thread;
	sigset_t all, before;
	if (pthread_attr_init(&attributes) != 0) {
		return;
	}
	pthread_attr_setstacksize(&attributes, STACK_BYTES);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	sigfillset(&all); /* signals are the main thread's */
	pthread_sigmask(SIG_SETMASK, &all, &before);
	if (pthread_create(&thread, &attributes, work, workers) == 0) {
		workers->threads++;
		workers->owners++;
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attributes);
}

int worker_job_create(struct workers *workers, const struct collector_ops *ops,
	const struct source_options *options, void *state, struct worker_job **ret)
{
	struct worker_job *job = mem_zalloc(sizeof(*job));
	if (!job) {
		return -ENOMEM;
	}
	job->workers = workers;
	job->ops = ops;
	if (options) {
		job->options_copy = *options;
		job->options = &job->options_copy;
	}
	job->state = state;
	job->owners = 1;
	*ret = job;
	return 0;
}

/* With the lock held. */
static void enqueue(struct workers *workers, struct worker_job *job)
{
	job->phase = WORKER_QUEUED;
	job->owners++;
	if (workers->last) {
		workers->last->next = job;
	} else {
		workers->first = job;
	}
	workers->last = job;
	workers->queued++;
}

void worker_job_start(struct worker_job *job)
{
	pthread_mutex_lock(&job->workers->lock);
	enqueue(job->workers, job);
	pthread_mutex_unlock(&job->workers->lock);
}

void *worker_job_state(const struct worker_job *job)
{
	return job->state;
}

void workers_go(struct workers *workers)
{
	pthread_mutex_lock(&workers->lock);
	unsigned jobs = workers->queued;
	for (unsigned have = workers->idle; have < jobs && workers->threads < WORKERS_MAX; have++) {
		add_thread(workers);
	}
	unsigned sleepers = jobs < workers->idle ? jobs : workers->idle;
	pthread_mutex_unlock(&workers->lock);
	/* Not with the lock held, on which a thread would stop again at once. */
	for (unsigned i = 0; i < sleepers; i++) {
		pthread_cond_signal(&workers->work);
	}
}

unsigned workers_threads(struct workers *workers)
{
	pthread_mutex_lock(&workers->lock);
	unsigned threads = workers->threads;
	pthread_mutex_unlock(&workers->lock);
	return threads;
}

enum worker_phase worker_job_phase(struct worker_job *job)
{
	pthread_mutex_lock(&job->workers->lock);
	enum worker_phase phase = job->phase;
	pthread_mutex_unlock(&job->workers->lock);
	return phase;
}

void worker_job_take(struct worker_job *job, struct worker_result *ret)
{
	pthread_mutex_lock(&job->workers->lock);
	*ret = job->result;
	job->phase = WORKER_IDLE;
	pthread_mutex_unlock(&job->workers->lock);
}

static void unqueue(struct workers *workers, struct worker_job *job)
{
	struct worker_job *before = NULL;
	struct worker_job **at = &workers->first;
	while (*at != job) {
		before = *at;
		at = &before->next;
	}
	*at = job->next;
	workers->last = workers->last == job ? before : workers->last;
	workers->queued--;
	job->owners--;
}

bool worker_job_leave(struct worker_job *job)
{
	struct workers *workers = job->workers;
	pthread_mutex_lock(&workers->lock);
	job->left = true;
	if (job->phase == WORKER_QUEUED && !job->state) {
		unqueue(workers, job);
		job->phase = WORKER_GONE;
	} else if (job->phase == WORKER_IDLE || job->phase == WORKER_DONE) {
		job->phase = WORKER_GONE;
		if (job->state) {
			enqueue(workers, job);
		}
	}
	bool gone = job->phase == WORKER_GONE;
	pthread_mutex_unlock(&workers->lock);
	return gone;
}

void worker_job_release(struct worker_job *job)
{
	if (!job) {
		return;
	}
	struct workers *workers = job->workers;
	pthread_mutex_lock(&workers->lock);
	bool last = --job->owners == 0;
	pthread_mutex_unlock(&workers->lock);
	if (last) {
		free(job);
	}
}
