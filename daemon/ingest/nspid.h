/*
 * The numbers that processes and threads have in their own process namespace. An app in a container
 * writes its thread ids as it sees them; the kernel's NSpid lines say which of ours they are.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum {
	NSPID_THREADS = 64,   /* kept of a process: as many as a mapping has slots */
	NSPID_LOOK_MAX = 256, /* threads of a process that are looked at */
};

struct nspid_thread {
	uint32_t inside, outside;
};

struct nspid {
	pid_t inside; /* the process's own number; 0 = not known */
	bool nested;  /* it lives in a namespace below ours */
	size_t threads;
	struct nspid_thread thread[NSPID_THREADS];
	bool wanted; /* a thread was asked for that is not known yet */
};

/* The last number of the NSpid line in the text of a status file and how many there are; 0 = no
 * such line. */
pid_t nspid_parse(const char *status, unsigned *levels);

/* Reads the process's own number. Nothing is known when pid is 0 or gone. */
void nspid_init(struct nspid *nspid, pid_t pid);

/* Our number of the process's thread; the same outside of containers; 0 = not known, then wanted is
 * set. pid is the process's as we see it (0 = not visible). */
uint32_t nspid_thread(struct nspid *nspid, pid_t pid, uint32_t inside);

/* Looks through the process's threads again. Costs a read a thread: not for every drain. */
void nspid_look(struct nspid *nspid, pid_t pid);
