/* Replies are looked at as the daemon writes them, not parsed: a recording is made of many. */
#include "daemon/recorder/recording_reply.h"

#include <stdlib.h>
#include <string.h>

bool reply_starts(const char *frame, size_t length, const char *with)
{
	return length >= strlen(with) && memcmp(frame, with, strlen(with)) == 0;
}

bool reply_continues(const char *frame, size_t length)
{
	static const char end[] = ",\"continues\":true}";
	return length >= sizeof(end) - 1 &&
	       reply_starts(frame + length - (sizeof(end) - 1), sizeof(end) - 1, end);
}

uint64_t reply_last_number(const char *frame, const char *key)
{
	uint64_t value = 0;
	for (const char *at = frame; (at = strstr(at, key)); at += strlen(key)) {
		value = strtoull(at + strlen(key), NULL, 10);
	}
	return value;
}

uint64_t reply_count_rows(const char *frame)
{
	const char *at = strstr(frame, "\"kind\":[");
	uint64_t rows = 0;
	for (at = at ? at + 8 : ""; *at && *at != ']'; at++) {
		rows += *at == ',';
	}
	return *at == ']' && at[-1] != '[' ? rows + 1 : rows;
}
