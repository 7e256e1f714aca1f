/* SPDX-License-Identifier: Apache-2.0 */
/*
 * peer.h: reads from the kernel who is at the other end of a connection: credentials, a pidfd, how
 * the process ended, and the numbers that it and its threads have in their own PID namespace. All
 * of it is about the machine's own /proc, whatever --root says.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum {
	NSPID_THREADS = 64,   /* threads kept of a process: as many as a mapping has slots */
	NSPID_SCAN_MAX = 256, /* threads of a process that a scan reads */
};

struct peer {
	pid_t pid; /* 0 = not visible from here */
	uid_t uid;
	gid_t gid;
};

/* A thread in its own PID namespace and in ours. */
struct nspid_thread {
	uint32_t inside, outside;
};

/* An app in a container writes thread ids of its own namespace; the NSpid lines of the kernel map
 * them to ours. */
struct nspid {
	pid_t inside; /* the process's own number; 0 = unknown */
	bool nested;  /* it lives in a namespace below ours */
	size_t threads;
	struct nspid_thread thread[NSPID_THREADS];
	bool wanted; /* an unknown thread was asked for */
};

/* SO_PEERCRED: the process that called connect(). 0 or -errno. */
int peer_of(int fd, struct peer *ret);

/* A pidfd of the peer (of exactly that process where the kernel has SO_PEERPIDFD); -ESRCH when it
 * is not visible or gone. */
int peer_open(int fd, pid_t pid);

/* How the process of a readable pidfd ended, as wait() would report it. 0; -EAGAIN: the kernel
 * reports it when its parent has waited for it (the pidfd hangs up); -ENODATA: never. */
int peer_exit(int pidfd, const struct peer *peer, int *ret_status);

/* Field 22 of the text of /proc/<pid>/stat; the command in it may hold spaces and parentheses.
 * 0 when there is none. */
uint64_t peer_parse_start(const char *stat);

/* Start time of a process in clock ticks since boot; 0 = unknown. */
uint64_t peer_start_ticks(pid_t pid);

/* Whether its CLOCK_MONOTONIC is ours, in no other time namespace. False when nobody can tell. */
bool peer_has_our_clock(pid_t pid);

/* The last number of the NSpid line in the text of a status file and how many there are; 0 = no
 * such line. */
pid_t nspid_parse(const char *status, unsigned *levels);

/* Reads the process's own number. Nothing is known when pid is 0 or gone. */
void nspid_init(struct nspid *nspid, pid_t pid);

/* Our number of the process's thread; the same outside of containers; 0 = unknown, then wanted is
 * set. pid is the process's as we see it (0 = not visible). */
uint32_t nspid_thread(struct nspid *nspid, pid_t pid, uint32_t inside);

/* Reads the process's threads again: one file per thread, too much for every drain. */
void nspid_scan(struct nspid *nspid, pid_t pid);
