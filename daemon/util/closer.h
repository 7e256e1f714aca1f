/*
 * Closing what strangers have sent. close(2) of the last reference waits as long as its maker
 * wishes: a TCP socket with SO_LINGER whose peer does not read, a file of a FUSE file system that
 * does not answer. That is done by a thread, which lives only while there is something to close.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum {
	CLOSER_MAX = 512, /* that wait; beyond, close() is done at once */
	CLOSER_FULL = 64, /* from here on the owner should receive no more */
	CLOSER_FDS = 253, /* that one message can carry (the kernel's SCM_MAX_FD) */
};

struct closer;

/* -ENOMEM. */
int closer_create(struct closer **ret);
/* What still waits is closed all the same. NULL is fine. */
void closer_destroy(struct closer *closer);

/* Closes fd, whatever it is, without waiting: a memfd at once, anything else in the thread. */
void closer_take(struct closer *closer, int fd);

/* The same for a connected Unix socket of our own: messages that nobody has read may carry
 * descriptors, which are closed with it. */
void closer_take_socket(struct closer *closer, int fd);

/* The kernel refuses messages with descriptors to this Unix socket, and to what it accepts, with
 * EPERM: true. Before Linux 6.16 nothing happens: false. */
bool closer_refuse(int fd);

/* So many wait that no more should be received. */
bool closer_is_full(struct closer *closer);
