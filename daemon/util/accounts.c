/* SPDX-License-Identifier: Apache-2.0 */
/* accounts.c: keeps the accounts in an array with an index over it. */
#include "daemon/util/accounts.h"

#include <errno.h>
#include <stdlib.h>

#include "daemon/util/index.h"
#include "daemon/util/sysops.h"

enum { PERIOD_MS = 100 };

struct accounts {
	size_t count;
	struct account account[ACCOUNTS_MAX];
	struct index index;
};

int accounts_create(struct accounts **ret)
{
	struct accounts *accounts = mem_zalloc(sizeof(*accounts));
	if (!accounts || index_reserve(&accounts->index, ACCOUNTS_MAX) < 0) {
		accounts_destroy(accounts);
		return -ENOMEM;
	}
	*ret = accounts;
	return 0;
}

void accounts_destroy(struct accounts *accounts)
{
	if (accounts) {
		index_finish(&accounts->index);
		free(accounts);
	}
}

static uint32_t hash_of(uid_t uid)
{
	return hash_bytes(&uid, sizeof(uid));
}

static bool is_of(const void *table, uint32_t slot, const void *key)
{
	const struct accounts *accounts = table;
	return accounts->account[slot].uid == *(const uid_t *)key;
}

static bool holds_nothing(const struct account *account)
{
	return account->api_connections == 0 && account->event_connections == 0 &&
	       account->closing == 0 && account->descriptors == 0 && account->api_bytes == 0 &&
	       account->mapping_bytes == 0;
}

/* A slot for another user: a new one, or the least recently used of those who hold nothing.
 * INDEX_NONE when there is none. */
static uint32_t free_slot(struct accounts *accounts)
{
	if (accounts->count < ACCOUNTS_MAX) {
		return (uint32_t)accounts->count++;
	}
	uint32_t oldest = INDEX_NONE;
	for (uint32_t i = 0; i < ACCOUNTS_MAX; i++) {
		const struct account *account = &accounts->account[i];
		if (holds_nothing(account) &&
			(oldest == INDEX_NONE ||
				account->used_ns < accounts->account[oldest].used_ns)) {
			oldest = i;
		}
	}
	if (oldest != INDEX_NONE) {
		index_remove(&accounts->index, hash_of(accounts->account[oldest].uid), oldest);
	}
	return oldest;
}

struct account *accounts_of(struct accounts *accounts, uid_t uid, uint64_t now_ns)
{
	uint32_t hash = hash_of(uid);
	uint32_t slot = index_find(&accounts->index, hash, is_of, accounts, &uid);
	if (slot == INDEX_NONE) {
		slot = free_slot(accounts);
		if (slot == INDEX_NONE) {
			return NULL;
		}
		accounts->account[slot] = (struct account){.uid = uid};
		index_add(&accounts->index, hash, slot); /* reserved */
	}
	struct account *account = &accounts->account[slot];
	account->used_ns = now_ns > account->used_ns ? now_ns : account->used_ns;
	return account;
}

uint64_t accounts_served(const struct account *account, uint64_t loop_ms)
{
	return account->served_period == loop_ms / PERIOD_MS ? account->served_ns : 0;
}

void accounts_charge(struct account *account, uint64_t loop_ms, uint64_t ns)
{
	account->served_ns = accounts_served(account, loop_ms) + ns;
	account->served_period = loop_ms / PERIOD_MS;
}

bool accounts_fair(uint64_t max, uint64_t own, uint64_t all, uint64_t want)
{
	uint64_t others = all - own;
	return others < max && own + want <= (max - others + 1) / 2;
}

bool accounts_fits(uint64_t max, uint64_t own, uint64_t all, uint64_t want, bool trusted)
{
	const uint64_t reserve = max / ACCOUNTS_RESERVE, top = max + reserve;
	if (trusted) {
		return own + want <= max && all + want <= top;
	}
	return accounts_fair(max, own, all, want) ||
	       (own + want <= (reserve + 1) / 2 && accounts_fair(top, own, all, want));
}
