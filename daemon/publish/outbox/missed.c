/* SPDX-License-Identifier: Apache-2.0 */
/* missed.c: counts what the outbox gives up, by rule. */
#include "daemon/publish/outbox/missed.h"

#include <string.h>

#include "daemon/publish/outbox/message.h"
#include "proto/text.h"

/* The subject of an alert's event is the topic of its state, PREFIX/ID/alert/RULE/INSTANCE. */
static void add_rule(struct missed *missed, const char *subject)
{
	const char *end = strrchr(subject, '/'), *begin = end;
	while (begin && begin > subject && begin[-1] != '/') {
		begin--;
	}
	const size_t length = end ? (size_t)(end - begin) : 0;
	for (size_t i = 0; i < MISSED_RULES && length > 0 && length < PROTO_NAME_SIZE; i++) {
		char *name = missed->rule[i].name;
		if (name[0] == '\0') {
			missed->rule[i].count = 0;
			memcpy(name, begin, length);
			name[length] = '\0';
		}
		if (strlen(name) == length && memcmp(name, begin, length) == 0) {
			missed->rule[i].count++;
			return;
		}
	}
}

void missed_add(struct missed *missed, const struct outbox_message *message)
{
	/* what a broker refuses of this would be reported for ever */
	if (message->retain || text_ends_with(message->topic, "/missed")) {
		return;
	}
	if (message->class == OUTBOX_SUMMARY) {
		missed->summaries++;
	} else if (message->subject[0] != '\0') {
		missed->alerts++;
		add_rule(missed, message->subject);
	} else {
		missed->others++;
	}
	if (message->t_ns == 0) {
		return;
	}
	if (missed->first_ns == 0 || message->t_ns < missed->first_ns) {
		missed->first_ns = message->t_ns;
	}
	if (message->t_ns > missed->last_ns) {
		missed->last_ns = message->t_ns;
	}
}

bool missed_any(const struct missed *missed)
{
	return missed->alerts > 0 || missed->summaries > 0 || missed->others > 0;
}

void missed_repair(struct missed *missed)
{
	for (size_t i = 0; i < MISSED_RULES; i++) {
		char *name = missed->rule[i].name;
		name[PROTO_NAME_SIZE - 1] = '\0';
		if (!proto_name_valid(name)) {
			memset(&missed->rule[i], 0, (MISSED_RULES - i) * sizeof(missed->rule[i]));
			return;
		}
	}
}
