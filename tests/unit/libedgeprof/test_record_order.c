/* SPDX-License-Identifier: Apache-2.0 */
/* A record is whole before head counts it: the page of head is closed, and the store that meets it
 * finds the record there. */
#include "client/libedgeprof/private.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/unit/unit.h"

static struct proto_slot *slot;
static struct proto_record records[4];
static const struct proto_record wanted = {
	.kind = PROTO_KIND_COMPLETE, .stage = 7, .start_ns = 8, .value = 9, .frame = 10};
static volatile sig_atomic_t faults, whole;
static size_t page;

static void on_fault(int signum, siginfo_t *info, void *context)
{
	(void)signum;
	(void)context;
	if (info->si_addr != (void *)&slot->head || faults > 0) {
		_exit(99);
	}
	faults = 1;
	whole = memcmp(&records[1], &wanted, sizeof(wanted)) == 0;
	mprotect(slot, page, PROT_READ | PROT_WRITE); /* the store is made once more */
}

START_TEST(head_is_stored_behind_the_record)
{
	page = (size_t)sysconf(_SC_PAGESIZE);
	slot = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ck_assert_ptr_ne(slot, MAP_FAILED);
	const struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
	ck_assert_int_eq(sigaction(SIGSEGV, &action, NULL), 0);
	static struct thread thread;
	thread = (struct thread){
		.slot = slot, .at = {&records[1], &records[4], (uint64_t)(uintptr_t)&records[0]}};
	ck_assert_int_eq(mprotect(slot, page, PROT_READ), 0);
	records[1] = wanted;
	publish(&thread, slot, &records[1]);
	ck_assert_int_eq(faults, 1);
	ck_assert_int_eq(whole, 1);
	ck_assert_uint_eq(slot->head, 2);
	ck_assert_ptr_eq(thread.at.next, &records[2]);
	signal(SIGSEGV, SIG_DFL);
	munmap(slot, page);
}
END_TEST
