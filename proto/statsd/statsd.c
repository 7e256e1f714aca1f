/* SPDX-License-Identifier: Apache-2.0 */
/*
 * statsd.c: parses a datagram in one pass: line, name, values, type, sections, tags. It decides
 * only what the bytes say; what a line means for an app is decided in daemon/ingest.
 */
#include "proto/statsd/statsd.h"

#include <string.h>

#include "proto/statsd/number.h"

void statsd_reader_init(struct statsd_reader *reader, const char *bytes, size_t length)
{
	*reader = (struct statsd_reader){.at = bytes, .end = bytes + length};
}

static bool text_is(struct statsd_text text, const char *word)
{
	size_t length = strlen(word);
	return text.length == length && memcmp(text.at, word, length) == 0;
}

enum { NAME_STOP = 1, TAG_STOP = 2 };

/* Where the scan of a name or a tag stops, by byte; the first 32 are control characters. */
static const uint8_t stops[256] = {
	/* clang-format off */
	NAME_STOP, NAME_STOP, NAME_STOP, NAME_STOP, NAME_STOP, NAME_STOP, NAME_STOP, NAME_STOP,
	NAME_STOP, NAME_STOP, NAME_STOP, NAME_STOP, NAME_STOP, NAME_STOP, NAME_STOP, NAME_STOP,
	NAME_STOP, NAME_STOP, NAME_STOP, NAME_STOP, NAME_STOP, NAME_STOP, NAME_STOP, NAME_STOP,
	NAME_STOP, NAME_STOP, NAME_STOP, NAME_STOP, NAME_STOP, NAME_STOP, NAME_STOP, NAME_STOP,
	/* clang-format on */
	[0x7f] = NAME_STOP,
	[':'] = NAME_STOP | TAG_STOP,
	['|'] = NAME_STOP | TAG_STOP,
	[','] = TAG_STOP,
};

static const char *scan_to(const char *at, const char *end, uint8_t stop)
{
	while (at < end && !(stops[(unsigned char)*at] & stop)) {
		at++;
	}
	return at;
}

/* Returns the byte after the colon of the name; NULL with a reason. */
static const char *parse_name(
	const char *begin, const char *end, struct statsd_line *line, const char **reason)
{
	const char *at = scan_to(begin, end, NAME_STOP);
	size_t length = (size_t)(at - begin);
	if (at == end || *at != ':') {
		*reason = at < end && *at != '|' ? "a control character in the name"
						 : "no ':' after the name";
		return NULL;
	}
	if (length == 0 || length > STATSD_NAME_MAX) {
		*reason = length == 0 ? "no name" : "the name is too long";
		return NULL;
	}
	line->name = (struct statsd_text){begin, length};
	return at + 1;
}

static bool parse_value(const char **at, const char *end, struct statsd_line *line)
{
	bool has_sign = *at < end && (**at == '+' || **at == '-');
	if (!statsd_number(at, end, &line->value)) {
		return false;
	}
	line->has_sign = has_sign;
	return true;
}

/* Stores the first value in the line, and only checks the others. Returns the '|' after them; NULL:
 * a value is not a number. */
static const char *parse_values(
	const char *at, const char *end, struct statsd_line *line, const char **reason)
{
	size_t count = 1;
	if (!parse_value(&at, end, line)) {
		*reason = "the value is not a decimal number";
		return NULL;
	}
	line->values.at = at;
	while (at < end && *at == ':') {
		double value;
		at++;
		if (!statsd_number(&at, end, &value)) {
			*reason = "one of the values is not a decimal number";
			return NULL;
		}
		count++;
	}
	line->values.length = (size_t)(at - line->values.at);
	if (count > STATSD_VALUES_MAX) {
		*reason = "too many values";
		return NULL;
	}
	if (at < end && *at != '|') {
		*reason = "the value is not a decimal number";
		return NULL;
	}
	return at;
}

bool statsd_next_value(struct statsd_line *line)
{
	const char *at = line->values.at, *end = at + line->values.length;
	if (at == end) {
		return false;
	}
	at++; /* the ':'; the number was checked before */
	if (!parse_value(&at, end, line)) {
		return false;
	}
	line->values = (struct statsd_text){at, (size_t)(end - at)};
	return true;
}

/* The bytes up to the next '|' or the end; *at moves there. */
static struct statsd_text parse_section(const char **at, const char *end)
{
	const char *begin = *at;
	while (*at < end && **at != '|') {
		++*at;
	}
	return (struct statsd_text){begin, (size_t)(*at - begin)};
}

static enum statsd_result type_of(
	struct statsd_text text, enum statsd_type *ret, const char **reason)
{
	static const struct {
		char word[3];
		enum statsd_type type;
	} types[] = {{"ms", STATSD_TIME}, {"g", STATSD_GAUGE}, {"c", STATSD_COUNTER},
		{"h", STATSD_TIME}, {"d", STATSD_TIME}};
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		if (text_is(text, types[i].word)) {
			*ret = types[i].type;
			return STATSD_LINE;
		}
	}
	*reason = text.length == 0 ? "no type" : text_is(text, "s") ? "a set" : "an unknown type";
	return text.length == 0 ? STATSD_BAD : STATSD_UNSUPPORTED;
}

static void parse_frame(struct statsd_text text, uint64_t *ret)
{
	uint64_t frame = 0;
	for (size_t i = 0; i < text.length; i++) {
		unsigned digit = (unsigned char)(text.at[i] - '0');
		if (digit > 9 || __builtin_mul_overflow(frame, 10u, &frame) ||
			__builtin_add_overflow(frame, digit, &frame)) {
			return;
		}
	}
	*ret = frame; /* the largest number is STATSD_NO_FRAME itself */
}

static void parse_tag(struct statsd_text key, struct statsd_text value, struct statsd_line *line)
{
	if (value.length == 0) {
		return;
	}
	if (text_is(key, "app")) {
		line->app = value;
	} else if (text_is(key, "category")) {
		line->category = value;
	} else if (text_is(key, "frame")) {
		parse_frame(value, &line->frame);
	} else if (text_is(key, "unit")) {
		line->unit = value;
	}
}

/* "key:value,key,…" up to the next '|' or the end, which is returned. Only keys with a value
 * matter. */
static const char *parse_tags(const char *at, const char *end, struct statsd_line *line)
{
	while (at < end && *at != '|') {
		const char *key = at;
		at = scan_to(at, end, TAG_STOP);
		if (at < end && *at == ':') {
			const char *colon = at;
			while (at < end && *at != ',' && *at != '|') { /* a value may hold ':' */
				at++;
			}
			if (colon > key) {
				parse_tag((struct statsd_text){key, (size_t)(colon - key)},
					(struct statsd_text){colon + 1, (size_t)(at - colon - 1)},
					line);
			}
		}
		at += at < end && *at == ',';
	}
	return at;
}

static bool parse_rate(struct statsd_text text, double *ret)
{
	const char *at = text.at, *end = at + text.length;
	double rate;
	if (!statsd_number(&at, end, &rate) || at != end || rate > 1 || rate < 1e-9) {
		return false;
	}
	*ret = rate;
	return true;
}

/* What follows the type. */
static bool parse_sections(
	const char *at, const char *end, struct statsd_line *line, const char **reason)
{
	while (at < end) {
		at++; /* the '|' */
		if (at < end && *at == '#') {
			at = parse_tags(at + 1, end, line);
			continue;
		}
		struct statsd_text section = parse_section(&at, end);
		if (section.length > 0 && *section.at == '@' &&
			!parse_rate((struct statsd_text){section.at + 1, section.length - 1},
				&line->rate)) {
			*reason = "the rate is not above 0 and up to 1";
			return false;
		}
	}
	return true;
}

static enum statsd_result read_line(
	const char *at, const char *end, struct statsd_line *line, const char **reason)
{
	if (*at == '_' && (end - at > 3) &&
		(memcmp(at, "_e{", 3) == 0 || memcmp(at, "_sc|", 4) == 0)) {
		*reason = at[1] == 'e' ? "an event" : "a service check";
		return STATSD_UNSUPPORTED;
	}
	line->rate = 1;
	line->frame = STATSD_NO_FRAME;
	line->app = line->unit = line->category = (struct statsd_text){NULL, 0};
	at = parse_name(at, end, line, reason);
	if (!at) {
		return STATSD_BAD;
	}
	const char *values = at, *not_a_number = NULL;
	at = parse_values(at, end, line, reason);
	if (!at) { /* a set's value may be any text: the type decides */
		not_a_number = *reason;
		at = memchr(values, '|', (size_t)(end - values));
	}
	if (!at || at == end) {
		*reason = "no type";
		return STATSD_BAD;
	}
	at++;
	enum statsd_result result = type_of(parse_section(&at, end), &line->type, reason);
	if (result == STATSD_LINE && not_a_number) {
		*reason = not_a_number;
		return STATSD_BAD;
	}
	if (result == STATSD_LINE && !parse_sections(at, end, line, reason)) {
		return STATSD_BAD;
	}
	return result;
}

enum statsd_result statsd_next(struct statsd_reader *reader, struct statsd_line *line)
{
	while (reader->at < reader->end) {
		const char *begin = reader->at;
		if (*begin == '\n' ||
			(*begin == '\r' && reader->end - begin > 1 && begin[1] == '\n')) {
			reader->at += *begin == '\r' ? 2 : 1; /* many of them cost little */
			continue;
		}
		const char *end = memchr(begin, '\n', (size_t)(reader->end - begin));
		reader->at = end ? end + 1 : reader->end;
		end = end ? end : reader->end;
		if (end > begin && end[-1] == '\r') {
			end--;
		}
		if (end > begin) {
			return read_line(begin, end, line, &reader->reason);
		}
	}
	return STATSD_END;
}
