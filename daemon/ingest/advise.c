/* The way of advice to the app: one word of its mapping and the time, each stored once and never
 * read back: what the app makes of them is its own matter. */
#include "daemon/ingest/ingest_private.h"

static void advise(const struct attachment *attachment, uint64_t word, uint64_t now_ns)
{
	struct proto_map_header *header = attachment->map;
	if (__atomic_load_n(&header->minor, __ATOMIC_RELAXED) < PROTO_MAP_MINOR_ADVICE) {
		return; /* a library that knows of no advice: the bytes are not ours */
	}
	__atomic_store_n(&header->advice, word, __ATOMIC_RELAXED);
	__atomic_store_n(&header->advice_ns, now_ns, __ATOMIC_RELEASE);
}

void attachment_advise(const struct attachment *attachment, uint64_t now_ns)
{
	advise(attachment, advice_word(&attachment->process->app->advice), now_ns);
}

void attachment_withdraw_advice(const struct attachment *attachment)
{
	advise(attachment, 0, 0);
}
