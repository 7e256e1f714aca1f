/* SPDX-License-Identifier: Apache-2.0 */
/* deferred_close.c: closes foreign descriptors on detached threads that end when the queue is
 * empty. A thread handles accounts only as opaque pointers; the loop alone updates them, on its
 * next call. */
#include "daemon/util/deferred_close.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/util/accounts.h"
#include "daemon/util/detached.h"
#include "daemon/util/sysops.h"

enum {
	STACK_BYTES = 128 * 1024,
	PASS_RIGHTS = 83, /* SO_PASSRIGHTS; not in every libc's headers */
};

struct pending {
	int fd;
	bool socket; /* one of ours, with unread messages */
	struct account *account;
};

struct deferred_close {
	pthread_mutex_t lock;
	bool abandoned; /* by its owner: the last thread frees it */
	size_t threads;
	size_t busy; /* threads within close(2) */
	struct account *served[DEFERRED_CLOSE_THREADS];
	size_t count;
	struct pending pending[DEFERRED_CLOSE_MAX]; /* oldest first */
	size_t closed;
	struct account *done[DEFERRED_CLOSE_MAX]; /* whose descriptors those were */
};

int deferred_close_create(struct deferred_close **ret)
{
	struct deferred_close *deferred = mem_zalloc(sizeof(*deferred));
	if (!deferred) {
		return -ENOMEM;
	}
	pthread_mutex_init(&deferred->lock, NULL);
	*ret = deferred;
	return 0;
}

static void deferred_close_free(struct deferred_close *deferred)
{
	pthread_mutex_destroy(&deferred->lock);
	free(deferred);
}

/* Closes the descriptor; a socket does not linger. */
static void close_now(int fd)
{
	const struct linger off = {0};
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &off, sizeof(off));
	close(fd);
}

static void close_rights(struct msghdr *msg)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
		size_t size = c->cmsg_len - CMSG_LEN(0);
		for (size_t i = 0; c->cmsg_type == SCM_RIGHTS && i < size / sizeof(int); i++) {
			int fd;
			memcpy(&fd, CMSG_DATA(c) + i * sizeof(fd), sizeof(fd));
			close_now(fd);
		}
	}
}

/* After 0 bytes were received. A stream has no empty messages, but reports credentials at its end,
 * too; elsewhere credentials distinguish a message, however empty, from the end. */
static bool is_end(int fd, const struct msghdr *msg)
{
	int type = SOCK_STREAM;
	socklen_t size = sizeof(type);
	getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size);
	return type == SOCK_STREAM || (msg->msg_controllen == 0 && !(msg->msg_flags & MSG_CTRUNC));
}

/* Receives the messages one by one: descriptors that are closed along with the socket linger. */
static void empty_socket(int fd)
{
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(DEFERRED_CLOSE_FDS * sizeof(int))];
	char bytes[4096];
	for (int i = 0; i < 4096; i++) {
		struct iovec iov = {bytes, sizeof(bytes)};
		struct msghdr msg = {.msg_iov = &iov,
			.msg_iovlen = 1,
			.msg_control = control,
			.msg_controllen = sizeof(control)};
		ssize_t n = recvmsg(fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
		if (n < 0 || (n == 0 && is_end(fd, &msg))) {
			return;
		}
		close_rights(&msg);
	}
}

static bool is_served(const struct deferred_close *deferred, const struct account *account)
{
	for (size_t i = 0; i < DEFERRED_CLOSE_THREADS; i++) {
		if (account && deferred->served[i] == account) {
			return true;
		}
	}
	return false;
}

/* The first pending one whose user no thread serves; count when there is none. */
static size_t next_pending(const struct deferred_close *deferred)
{
	size_t i = 0;
	while (i < deferred->count && is_served(deferred, deferred->pending[i].account)) {
		i++;
	}
	return i;
}

/* Called with the lock held; releases it meanwhile. */
static void close_one(struct deferred_close *deferred, size_t index)
{
	struct pending one = deferred->pending[index];
	deferred->count--;
	memmove(&deferred->pending[index], &deferred->pending[index + 1],
		(deferred->count - index) * sizeof(one));
	size_t slot = 0;
	while (deferred->served[slot]) {
		slot++;
	}
	deferred->served[slot] = one.account; /* NULL may be served by several threads */
	deferred->busy++;
	pthread_mutex_unlock(&deferred->lock);
	if (one.socket) {
		empty_socket(one.fd);
	}
	close_now(one.fd);
	pthread_mutex_lock(&deferred->lock);
	deferred->busy--;
	if (one.account) {
		deferred->served[slot] = NULL;
		deferred->done[deferred->closed++] = one.account;
	}
}

static void *close_all(void *arg)
{
	struct deferred_close *deferred = arg;
	pthread_mutex_lock(&deferred->lock);
	for (size_t next; (next = next_pending(deferred)) < deferred->count;) {
		close_one(deferred, next);
	}
	bool last = --deferred->threads == 0 && deferred->abandoned;
	pthread_mutex_unlock(&deferred->lock);
	if (last) {
		deferred_close_free(deferred);
	}
	return NULL;
}

/* Called with the lock held. Discharges the accounts of what is closed, and starts a thread for
 * what a hanging one cannot do. When no thread can be started, the next call tries again. */
static void dispatch(struct deferred_close *deferred)
{
	while (deferred->closed > 0) {
		deferred->done[--deferred->closed]->descriptors--;
	}
	if (next_pending(deferred) < deferred->count && deferred->busy == deferred->threads &&
		deferred->threads < DEFERRED_CLOSE_THREADS) {
		deferred->threads++;
		if (detached_start(STACK_BYTES, close_all, deferred) < 0) {
			deferred->threads--;
		}
	}
}

void deferred_close_destroy(struct deferred_close *deferred)
{
	if (!deferred) {
		return;
	}
	pthread_mutex_lock(&deferred->lock);
	dispatch(deferred);
	for (size_t i = 0; i < deferred->count; i++) {
		deferred->pending[i].account = NULL;
	}
	bool running = deferred->threads > 0;
	deferred->abandoned = running;
	pthread_mutex_unlock(&deferred->lock);
	if (!running) {
		deferred_close_free(deferred);
	}
}

/* What is being closed counts too: its account is not discharged yet. */
static size_t slots_used(const struct deferred_close *deferred)
{
	return deferred->count + deferred->busy + deferred->closed;
}

static void queue(struct deferred_close *deferred, struct account *account, int fd, bool socket)
{
	pthread_mutex_lock(&deferred->lock);
	dispatch(deferred);
	/* Without a slot it stays open, which is better than blocking. */
	if (slots_used(deferred) < DEFERRED_CLOSE_MAX) {
		deferred->pending[deferred->count++] = (struct pending){fd, socket, account};
		if (account) {
			account->descriptors++;
		}
		dispatch(deferred);
	}
	pthread_mutex_unlock(&deferred->lock);
}

void deferred_close_fd(struct deferred_close *deferred, struct account *account, int fd)
{
	if (fcntl(fd, F_GET_SEALS) >= 0) { /* A memfd: its close never blocks. */
		close(fd);
	} else {
		queue(deferred, account, fd, false);
	}
}

static bool is_unread(int fd)
{
	const int on = 1;
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(struct ucred))];
	char byte;
	struct iovec iov = {&byte, 1};
	struct msghdr msg = {.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control)};
	setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on));
	ssize_t n = recvmsg(fd, &msg, MSG_PEEK | MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	return n > 0 || (n == 0 && !is_end(fd, &msg));
}

void deferred_close_socket(struct deferred_close *deferred, struct account *account, int fd)
{
	shutdown(fd, SHUT_RD); /* No further message can arrive. */
	if (is_unread(fd)) {
		queue(deferred, account, fd, true);
	} else {
		close(fd);
	}
}

bool socket_refuse_fds(int fd)
{
	const int off = 0;
	return setsockopt(fd, SOL_SOCKET, PASS_RIGHTS, &off, sizeof(off)) == 0;
}

bool deferred_close_is_full(struct deferred_close *deferred)
{
	pthread_mutex_lock(&deferred->lock);
	dispatch(deferred);
	bool full = slots_used(deferred) >= DEFERRED_CLOSE_FULL;
	pthread_mutex_unlock(&deferred->lock);
	return full;
}

bool deferred_close_is_over(struct deferred_close *deferred, const struct account *account)
{
	pthread_mutex_lock(&deferred->lock);
	dispatch(deferred);
	pthread_mutex_unlock(&deferred->lock);
	return account->descriptors >= DEFERRED_CLOSE_UID_MAX;
}
