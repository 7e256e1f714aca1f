/* Closes foreign descriptors on detached threads that end when there is nothing left for them. A
 * thread knows an account only as a number of its own: what an account holds is changed on the
 * loop, when it asks. */
#include "daemon/util/closer.h"

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

struct waiting {
	int fd;
	bool socket; /* of ours, with messages in it */
	struct account *account;
};

struct closer {
	pthread_mutex_t lock;
	bool abandoned; /* by its owner: the last thread frees it */
	size_t threads;
	size_t busy; /* that are within a close */
	struct account *served[CLOSER_THREADS];
	size_t count;
	struct waiting waiting[CLOSER_MAX]; /* in the order they came */
	size_t closed;
	struct account *done[CLOSER_MAX]; /* whose they were that are closed */
};

int closer_create(struct closer **ret)
{
	struct closer *closer = mem_zalloc(sizeof(*closer));
	if (!closer) {
		return -ENOMEM;
	}
	pthread_mutex_init(&closer->lock, NULL);
	*ret = closer;
	return 0;
}

static void closer_free(struct closer *closer)
{
	pthread_mutex_destroy(&closer->lock);
	free(closer);
}

/* A socket that would linger does not. */
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

/* Takes messages out one by one: what is closed with the socket itself lingers. */
static void empty_socket(int fd)
{
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(CLOSER_FDS * sizeof(int))];
	char bytes[4096];
	for (int i = 0; i < 4096; i++) {
		struct iovec iov = {bytes, sizeof(bytes)};
		struct msghdr msg = {.msg_iov = &iov,
			.msg_iovlen = 1,
			.msg_control = control,
			.msg_controllen = sizeof(control)};
		ssize_t n = recvmsg(fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
		if (n < 0 || (n == 0 && msg.msg_controllen == 0)) {
			return;
		}
		close_rights(&msg);
	}
}

static bool is_served(const struct closer *closer, const struct account *account)
{
	for (size_t i = 0; i < CLOSER_THREADS; i++) {
		if (account && closer->served[i] == account) {
			return true;
		}
	}
	return false;
}

/* The first whose user no thread works for; count: there is none. */
static size_t next_of(const struct closer *closer)
{
	size_t i = 0;
	while (i < closer->count && is_served(closer, closer->waiting[i].account)) {
		i++;
	}
	return i;
}

/* Under the lock, which is given away meanwhile. */
static void close_one(struct closer *closer, size_t index)
{
	struct waiting one = closer->waiting[index];
	closer->count--;
	memmove(&closer->waiting[index], &closer->waiting[index + 1],
		(closer->count - index) * sizeof(one));
	size_t place = 0;
	while (closer->served[place]) {
		place++;
	}
	closer->served[place] = one.account; /* NULL: may be served by several */
	closer->busy++;
	pthread_mutex_unlock(&closer->lock);
	if (one.socket) {
		empty_socket(one.fd);
	}
	close_now(one.fd);
	pthread_mutex_lock(&closer->lock);
	closer->busy--;
	if (one.account) {
		closer->served[place] = NULL;
		closer->done[closer->closed++] = one.account;
	}
}

static void *close_all(void *arg)
{
	struct closer *closer = arg;
	pthread_mutex_lock(&closer->lock);
	for (size_t next; (next = next_of(closer)) < closer->count;) {
		close_one(closer, next);
	}
	bool last = --closer->threads == 0 && closer->abandoned;
	pthread_mutex_unlock(&closer->lock);
	if (last) {
		closer_free(closer);
	}
	return NULL;
}

/* Under the lock. Takes closed ones off their accounts, and sees that there is a thread for what a
 * held-up one can't do. Without threads descriptors wait for the next try. */
static void settle(struct closer *closer)
{
	while (closer->closed > 0) {
		closer->done[--closer->closed]->descriptors--;
	}
	if (next_of(closer) < closer->count && closer->busy == closer->threads &&
		closer->threads < CLOSER_THREADS) {
		closer->threads++;
		if (detached_start(STACK_BYTES, close_all, closer) < 0) {
			closer->threads--;
		}
	}
}

void closer_destroy(struct closer *closer)
{
	if (!closer) {
		return;
	}
	pthread_mutex_lock(&closer->lock);
	settle(closer);
	for (size_t i = 0; i < closer->count; i++) {
		closer->waiting[i].account = NULL;
	}
	bool running = closer->threads > 0;
	closer->abandoned = running;
	pthread_mutex_unlock(&closer->lock);
	if (!running) {
		closer_free(closer);
	}
}

/* Places for what is being closed count, too: its account is told when it is done. */
static size_t taken(const struct closer *closer)
{
	return closer->count + closer->busy + closer->closed;
}

static void queue(struct closer *closer, struct account *account, int fd, bool socket)
{
	pthread_mutex_lock(&closer->lock);
	settle(closer);
	/* without a place it stays open: better than to wait */
	if (taken(closer) < CLOSER_MAX) {
		closer->waiting[closer->count++] = (struct waiting){fd, socket, account};
		if (account) {
			account->descriptors++;
		}
		settle(closer);
	}
	pthread_mutex_unlock(&closer->lock);
}

void closer_take(struct closer *closer, struct account *account, int fd)
{
	if (fcntl(fd, F_GET_SEALS) >= 0) { /* in memory: its close waits for nobody */
		close(fd);
	} else {
		queue(closer, account, fd, false);
	}
}

/* Credentials tell a message, however empty, from the end of the connection. */
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
	return n > 0 || (n == 0 && (msg.msg_controllen > 0 || (msg.msg_flags & MSG_CTRUNC)));
}

void closer_take_socket(struct closer *closer, struct account *account, int fd)
{
	shutdown(fd, SHUT_RD); /* what is there now is all that will be */
	if (is_unread(fd)) {
		queue(closer, account, fd, true);
	} else {
		close(fd);
	}
}

bool closer_refuse(int fd)
{
	const int off = 0;
	return setsockopt(fd, SOL_SOCKET, PASS_RIGHTS, &off, sizeof(off)) == 0;
}

bool closer_is_full(struct closer *closer)
{
	pthread_mutex_lock(&closer->lock);
	settle(closer);
	bool full = taken(closer) >= CLOSER_FULL;
	pthread_mutex_unlock(&closer->lock);
	return full;
}

bool closer_is_over(struct closer *closer, const struct account *account)
{
	pthread_mutex_lock(&closer->lock);
	settle(closer);
	pthread_mutex_unlock(&closer->lock);
	return account->descriptors >= CLOSER_UID_MAX;
}
