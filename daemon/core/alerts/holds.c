/* Acknowledgements, silences and the log in memory that outlives the process. Nothing in it is
 * believed at start. */
#include "daemon/core/alerts/holds.h"

#include <errno.h>
#include <string.h>

#include "daemon/util/runfile.h"

#define HOLDS_MAGIC UINT64_C(0x3273646c6f68) /* "holds2" */

size_t alert_holds_bytes(void)
{
	return sizeof(struct runhead) + ALERT_ACKS * sizeof(struct alert_ack) +
	       ALERT_SILENCES * sizeof(struct alert_silence) +
	       ALERT_RECORDS * sizeof(struct alert_record);
}

#define ENDS(text) (memchr(text, '\0', sizeof(text)) != NULL)

/* One line. Broken UTF-8 is left to who writes it out: the timeline and the API clean it. */
static bool clean(const char *text)
{
	while ((unsigned char)*text >= 0x20 && *text != 0x7f) {
		text++;
	}
	return *text == '\0';
}

int alert_holds_check_instance(const char *glob)
{
	if (strchr(glob, '/')) {
		return proto_glob_check(glob);
	}
	size_t length = strlen(glob);
	size_t good = strspn(glob, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				   "0123456789_.-:*?");
	return length == 0 || length >= PROTO_PATH_SIZE || good < length ? -EINVAL : 0;
}

static bool ack_is_good(const struct alert_ack *ack, uint64_t now_ns)
{
	return ack->t_ns <= now_ns && ENDS(ack->rule) && ENDS(ack->instance) && ENDS(ack->note) &&
	       proto_name_valid(ack->rule) && clean(ack->instance) && clean(ack->note);
}

static bool silence_is_good(const struct alert_silence *silence, uint64_t now_ns)
{
	return silence->from_ns <= now_ns && silence->until_ns > silence->from_ns &&
	       silence->until_ns <= now_ns + ALERT_SILENCE_MAX_NS && ENDS(silence->rule) &&
	       ENDS(silence->instance) && ENDS(silence->note) &&
	       proto_glob_check(silence->rule) == 0 && !strchr(silence->rule, '/') &&
	       (silence->instance[0] == '\0' ||
		       alert_holds_check_instance(silence->instance) == 0) &&
	       clean(silence->note);
}

static bool record_is_good(const struct alert_record *record, uint64_t now_ns)
{
	return record->t_ns <= now_ns && record->sent_ns <= now_ns &&
	       record->from <= ALERT_FIRING && record->to <= ALERT_FIRING &&
	       record->severity <= ALERT_CRITICAL && record->from_severity <= ALERT_CRITICAL &&
	       record->unit < UNIT_COUNT_OF_UNITS && ENDS(record->rule) && ENDS(record->instance) &&
	       ENDS(record->metric) && ENDS(record->text) && proto_name_valid(record->rule) &&
	       clean(record->instance) && clean(record->metric) && clean(record->text);
}

static uint64_t load(const uint64_t *serial)
{
	return __atomic_load_n(serial, __ATOMIC_ACQUIRE);
}

/* A serial that is out of reach would end the count; lists count with 32 bits. True when it was
 * damaged. */
static bool keep(uint64_t *serial, bool good, uint64_t *last)
{
	if (load(serial) == 0) {
		return false;
	}
	if (!good || *serial > UINT32_MAX / 2) {
		*serial = 0;
		return true;
	}
	if (*serial > *last) {
		*last = *serial;
	}
	return false;
}

static size_t take_over(struct alert_holds *holds, uint64_t now_ns)
{
	size_t damaged = 0;
	for (size_t i = 0; i < ALERT_ACKS; i++) {
		struct alert_ack *ack = &holds->ack[i];
		damaged += keep(&ack->serial, ack_is_good(ack, now_ns), &holds->serial);
	}
	for (size_t i = 0; i < ALERT_SILENCES; i++) {
		struct alert_silence *silence = &holds->silence[i];
		damaged += keep(&silence->serial, silence_is_good(silence, now_ns), &holds->serial);
	}
	for (size_t i = 0; i < ALERT_RECORDS; i++) {
		struct alert_record *record = &holds->record[i];
		bool place = (load(&record->serial) - 1) % ALERT_RECORDS == i;
		damaged += keep(
			&record->serial, place && record_is_good(record, now_ns), &holds->records);
	}
	return damaged;
}

size_t alert_holds_adopt(
	struct alert_holds *holds, void *bytes, const uint8_t boot_id[16], uint64_t now_ns)
{
	const uint32_t shape[] = {sizeof(struct alert_ack), sizeof(struct alert_silence),
		sizeof(struct alert_record), ALERT_ACKS, ALERT_SILENCES, ALERT_RECORDS};
	const struct runhead wanted =
		runhead_of(HOLDS_MAGIC, alert_holds_bytes(), shape, 6, boot_id);
	struct runhead *header = bytes;
	if (runhead_look(bytes, &wanted) != RUNHEAD_OURS) {
		runhead_clear(bytes);
		memset(header + 1, 0, alert_holds_bytes() - sizeof(*header));
		runhead_write(bytes, &wanted);
	}
	holds->ack = (struct alert_ack *)(void *)(header + 1);
	holds->silence = (struct alert_silence *)(void *)(holds->ack + ALERT_ACKS);
	holds->record = (struct alert_record *)(void *)(holds->silence + ALERT_SILENCES);
	holds->serial = holds->records = 0;
	return take_over(holds, now_ns);
}

void alert_holds_drop(uint64_t *serial)
{
	__atomic_store_n(serial, 0, __ATOMIC_RELAXED);
	/* what is written into the place next must not be seen under the old serial */
	__atomic_thread_fence(__ATOMIC_RELEASE);
}

struct alert_ack *alert_holds_ack(
	const struct alert_holds *holds, const char *rule, const char *instance)
{
	for (size_t i = 0; i < ALERT_ACKS; i++) {
		struct alert_ack *ack = &holds->ack[i];
		if (ack->serial != 0 && strcmp(ack->rule, rule) == 0 &&
			strcmp(ack->instance, instance) == 0) {
			return ack;
		}
	}
	return NULL;
}

int alert_holds_put_ack(struct alert_holds *holds, const struct alert_ack *ack)
{
	struct alert_ack *place = alert_holds_ack(holds, ack->rule, ack->instance);
	for (size_t i = 0; !place && i < ALERT_ACKS; i++) {
		place = holds->ack[i].serial == 0 ? &holds->ack[i] : NULL;
	}
	if (!place) {
		return -ENOSPC;
	}
	struct alert_ack fresh = *ack;
	fresh.serial = 0;
	alert_holds_drop(&place->serial);
	*place = fresh;
	__atomic_store_n(&place->serial, ++holds->serial, __ATOMIC_RELEASE);
	return 0;
}

static bool covers(const struct alert_silence *silence, const struct alert *alert)
{
	return proto_glob_match(silence->rule, alert->rule->name) &&
	       (silence->instance[0] == '\0' ||
		       proto_glob_match(silence->instance, alert->instance) ||
		       proto_glob_match(silence->instance, alert->metric));
}

uint64_t alert_holds_until(
	const struct alert_holds *holds, const struct alert *alert, uint64_t now_ns)
{
	uint64_t until_ns = 0;
	for (size_t i = 0; i < ALERT_SILENCES; i++) {
		const struct alert_silence *silence = &holds->silence[i];
		if (silence->serial != 0 && silence->until_ns > now_ns &&
			silence->until_ns > until_ns && covers(silence, alert)) {
			until_ns = silence->until_ns;
		}
	}
	return until_ns;
}

bool alert_holds_cover_rule(
	const struct alert_holds *holds, const struct alert_rule *rule, uint64_t now_ns)
{
	for (size_t i = 0; i < ALERT_SILENCES; i++) {
		const struct alert_silence *silence = &holds->silence[i];
		bool all = silence->instance[0] == '\0' || strcmp(silence->instance, "*") == 0;
		if (silence->serial != 0 && silence->until_ns > now_ns && all &&
			proto_glob_match(silence->rule, rule->name)) {
			return true;
		}
	}
	return false;
}

struct alert_silence *alert_holds_silence(
	const struct alert_holds *holds, const char *rule, const char *instance)
{
	for (size_t i = 0; i < ALERT_SILENCES; i++) {
		struct alert_silence *silence = &holds->silence[i];
		if (silence->serial != 0 && strcmp(silence->rule, rule) == 0 &&
			strcmp(silence->instance, instance) == 0) {
			return silence;
		}
	}
	return NULL;
}

static int free_silence(const struct alert_holds *holds, uint32_t uid)
{
	int place = -ENOSPC;
	size_t own = 0;
	for (int i = ALERT_SILENCES - 1; i >= 0; i--) {
		place = holds->silence[i].serial == 0 ? i : place;
		own += holds->silence[i].serial != 0 && holds->silence[i].uid == uid;
	}
	return uid != 0 && own >= ALERT_SILENCES_UID ? -EDQUOT : place;
}

int alert_holds_put_silence(struct alert_holds *holds, const struct alert_silence *silence)
{
	struct alert_silence fresh = *silence;
	struct alert_silence *place = alert_holds_silence(holds, silence->rule, silence->instance);
	if (place) {
		fresh.from_ns = place->from_ns;
	} else {
		int r = free_silence(holds, silence->uid);
		if (r < 0) {
			return r;
		}
		place = &holds->silence[r];
	}
	fresh.serial = 0;
	alert_holds_drop(&place->serial);
	*place = fresh;
	__atomic_store_n(&place->serial, ++holds->serial, __ATOMIC_RELEASE);
	return 0;
}

uint64_t alert_holds_log(struct alert_holds *holds, const struct alert_record *record)
{
	struct alert_record fresh = *record;
	const uint64_t serial = record->serial ? record->serial : ++holds->records;
	struct alert_record *place = &holds->record[(serial - 1) % ALERT_RECORDS];
	fresh.serial = 0;
	alert_holds_drop(&place->serial);
	*place = fresh;
	__atomic_store_n(&place->serial, serial, __ATOMIC_RELEASE);
	return serial;
}

const struct alert_record *alert_holds_logged(const struct alert_holds *holds, uint64_t serial)
{
	uint64_t last = holds->records;
	uint64_t first = last >= ALERT_RECORDS ? last - ALERT_RECORDS + 1 : 1;
	for (serial = serial > first ? serial : first; serial <= last; serial++) {
		const struct alert_record *record = &holds->record[(serial - 1) % ALERT_RECORDS];
		if (record->serial == serial) {
			return record;
		}
	}
	return NULL;
}
