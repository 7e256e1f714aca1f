/* Closes foreign descriptors for ingest, on a detached thread that ends when none is left. */
#include "daemon/util/closer.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/util/seam.h"

enum {
	STACK_BYTES = 128 * 1024,
	PASS_RIGHTS = 83, /* SO_PASSRIGHTS; not in every libc's headers */
};

struct closer {
	pthread_mutex_t lock;
	bool running;	/* the thread; it may hang in close() for good */
	bool abandoned; /* by its owner: the thread frees it */
	size_t count;
	int fd[CLOSER_MAX];
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

static void *close_all(void *arg)
{
	struct closer *closer = arg;
	pthread_mutex_lock(&closer->lock);
	while (closer->count > 0) {
		int fd = closer->fd[--closer->count];
		pthread_mutex_unlock(&closer->lock);
		close(fd);
		pthread_mutex_lock(&closer->lock);
	}
	closer->running = false;
	bool abandoned = closer->abandoned;
	pthread_mutex_unlock(&closer->lock);
	if (abandoned) {
		closer_free(closer);
	}
	return NULL;
}

/* Under the lock. Without a thread the descriptors wait for the next try. */
static void start(struct closer *closer)
{
	pthread_attr_t attributes;
	pthread_t thread;
	sigset_t all, before;
	if (closer->running || closer->count == 0 || pthread_attr_init(&attributes) != 0) {
		return;
	}
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attributes, STACK_BYTES);
	sigfillset(&all); /* signals are the main thread's */
	pthread_sigmask(SIG_SETMASK, &all, &before);
	closer->running = pthread_create(&thread, &attributes, close_all, closer) == 0;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attributes);
}

void closer_destroy(struct closer *closer)
{
	if (!closer) {
		return;
	}
	pthread_mutex_lock(&closer->lock);
	start(closer);
	closer->abandoned = closer->running;
	bool running = closer->running;
	pthread_mutex_unlock(&closer->lock);
	if (!running) {
		closer_free(closer);
	}
}

static void queue(struct closer *closer, int fd)
{
	pthread_mutex_lock(&closer->lock);
	bool room = closer->count < CLOSER_MAX;
	if (room) {
		closer->fd[closer->count++] = fd;
		start(closer);
	}
	pthread_mutex_unlock(&closer->lock);
	if (!room) {
		close(fd);
	}
}

void closer_take(struct closer *closer, int fd)
{
	if (fcntl(fd, F_GET_SEALS) >= 0) { /* in memory: its close waits for nobody */
		close(fd);
	} else {
		queue(closer, fd);
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

void closer_take_socket(struct closer *closer, int fd)
{
	shutdown(fd, SHUT_RD); /* what is there now is all that will be */
	if (is_unread(fd)) {
		queue(closer, fd);
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
	start(closer);
	bool full = closer->count >= CLOSER_FULL;
	pthread_mutex_unlock(&closer->lock);
	return full;
}
