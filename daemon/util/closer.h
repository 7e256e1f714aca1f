/*
 * closer: closes what strangers have sent. close(2) waits as long as the maker of the descriptor
 * wishes: a TCP socket with SO_LINGER whose peer does not read, a file of a FUSE file system that
 * does not answer. That is never done on the loop: threads do it, at most one of them for a user,
 * so that what one user sent does not keep another's waiting. Where all are held up, descriptors
 * stay open on their users' accounts until one returns. Called on the loop's thread only.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct account;

enum {
	CLOSER_MAX = 512,    /* that wait, of all users; as many as the service may have open */
	CLOSER_FULL = 64,    /* from here on nothing more should be received, or accepted */
	CLOSER_UID_MAX = 16, /* of one user: from then on his connections are cut off */
	CLOSER_THREADS = 3,  /* one, and two for when it is held up; none while there is no work */
	CLOSER_FDS = 253,    /* that one message can carry (the kernel's SCM_MAX_FD) */
};

struct closer;

/* -ENOMEM. */
int closer_create(struct closer **ret);
/* What still waits is closed all the same; accounts are not touched any more. NULL is fine. */
void closer_destroy(struct closer *closer);

/* Closes fd, whatever it is, without waiting: a memfd at once, anything else in a thread. account:
 * of who sent it; holds it until it is closed. NULL: of nobody. */
void closer_take(struct closer *closer, struct account *account, int fd);

/* The same for a connected Unix socket of our own: messages that nobody has read may carry
 * descriptors, which are closed with it. */
void closer_take_socket(struct closer *closer, struct account *account, int fd);

/* The kernel refuses messages with descriptors to this Unix socket, and to what it accepts, with
 * EPERM: true. Before Linux 6.16 nothing happens: false. */
bool closer_refuse(int fd);

/* So many wait that nothing more may be received, or accepted. */
bool closer_is_full(struct closer *closer);

/* So many of this user wait that his connections are to be cut off. */
bool closer_is_over(struct closer *closer, const struct account *account);
