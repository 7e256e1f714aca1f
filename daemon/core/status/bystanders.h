/* SPDX-License-Identifier: Apache-2.0 */
/* bystanders.h: holds which processes use a busy machine most, apps included, edgeprofd and kernel
 * threads not; written by the source bystanders. Zeroed = nothing known. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

enum { BYSTANDERS_MAX = 8, BYSTANDER_BUSY = 25 /* percent */ };

/* What is older describes another situation. */
#define BYSTANDERS_VALID_NS UINT64_C(15000000000)

enum bystander_use {
	USE_CPU,    /* percent of one core, between two passes */
	USE_MEMORY, /* resident bytes */
	USE_IO,	    /* bytes read and written a second */
	BYSTANDER_USES
};

struct bystander {
	pid_t pid;		    /* 0 = none */
	char name[16];		    /* its comm: UTF-8 without hidden characters, never "" */
	double use[BYSTANDER_USES]; /* NAN = not known */
	uint64_t busy_ns; /* since then it has used BYSTANDER_BUSY of a core; 0 = it does not */
};

struct bystanders {
	uint64_t t_ns;	  /* of the pass; 0 = never */
	uint32_t skipped; /* processes that are looked at in another pass */
	struct bystander most[BYSTANDER_USES][BYSTANDERS_MAX]; /* of each use, the first most */
};
