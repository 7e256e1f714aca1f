/* SPDX-License-Identifier: Apache-2.0 */
/*
 * deferred_close.h: closes descriptors that peers have sent. close(2) blocks for as long as whoever
 * made the descriptor likes: a TCP socket with SO_LINGER whose peer does not read, a file of a FUSE
 * file system that does not answer. The loop therefore never does it: threads do, at most one of
 * them for each user, so that what one user sent never delays what another sent. When all threads
 * hang, descriptors stay open, charged to their users' accounts, until one returns. All functions
 * are called on the loop's thread only.
 */
#pragma once

#include <stdbool.h>

struct account;

enum {
	DEFERRED_CLOSE_MAX = 512,    /* pending, of all users; as many as the service may open */
	DEFERRED_CLOSE_FULL = 64,    /* from here on nothing is received or accepted */
	DEFERRED_CLOSE_UID_MAX = 16, /* of one user: from here on its connections are cut off */
	DEFERRED_CLOSE_THREADS = 3,  /* one, and two for when it hangs; none while idle */
	DEFERRED_CLOSE_FDS = 253,    /* that one message can carry (the kernel's SCM_MAX_FD) */
};

struct deferred_close;

/* -ENOMEM. */
int deferred_close_create(struct deferred_close **ret);
/* What is pending is still closed, but no longer charged to anybody. Accepts NULL. */
void deferred_close_destroy(struct deferred_close *deferred);

/* Closes fd without blocking: a memfd at once, anything else on a thread. account is the sender's
 * and is charged until the descriptor is closed; NULL: nobody is charged. */
void deferred_close_fd(struct deferred_close *deferred, struct account *account, int fd);

/* The same for one of our connected Unix sockets: unread messages in it may carry descriptors,
 * which are closed with it. */
void deferred_close_socket(struct deferred_close *deferred, struct account *account, int fd);

/* Has the kernel refuse, with EPERM, messages with descriptors to this Unix socket and to those it
 * accepts. False before Linux 6.16, which cannot. */
bool socket_refuse_fds(int fd);

/* True when the limit of pending descriptors is reached: nothing may be received or accepted. */
bool deferred_close_is_full(struct deferred_close *deferred);

/* True when this user has reached its limit of them: its connections are to be closed. */
bool deferred_close_is_over(struct deferred_close *deferred, const struct account *account);
