/* SPDX-License-Identifier: Apache-2.0 */
/*
 * statsd.c: parses a datagram in one pass: line, name, values, type, sections, tags. It decides
 * only what the bytes say; what a line means for an app is decided in daemon/ingest. What follows
 * the value is only compared when the line before had the same.
 */
#include "proto/statsd/statsd.h"

#include <endian.h>
#include <string.h>

#include "proto/statsd/number.h"

void statsd_reader_init(struct statsd_reader *reader, const char *bytes, size_t length)
{
	*reader = (struct statsd_reader){.at = bytes, .end = bytes + length};
}

void statsd_reader_resume(struct statsd_reader *reader, const char *bytes, size_t length)
{
	reader->at = bytes;
	reader->end = bytes + length;
}

static bool text_is(struct statsd_text text, const char *word)
{
	size_t length = strlen(word);
	return text.length == length && memcmp(text.at, word, length) == 0;
}

/* A byte in all eight of a word. */
#define EACH(byte) (UINT64_C(0x0101010101010101) * (byte))

/* The highest bit of each byte that is 0; above the lowest of them it may be wrong. */
static inline uint64_t zeros(uint64_t word)
{
	return (word - EACH(1)) & ~word & EACH(0x80);
}

/* The same for bytes that end a name: control characters, ':' and '|'. */
static inline uint64_t name_stops(uint64_t word)
{
	uint64_t control = (word - EACH(0x20)) & ~word & EACH(0x80);
	return control | zeros(word ^ EACH(0x7f)) | zeros(word ^ EACH(':')) |
	       zeros(word ^ EACH('|'));
}

/* The next eight bytes, the first one lowest; 0 for those behind the end. */
static inline uint64_t load_word(const char *at, const char *end)
{
	uint64_t word = 0;
	if (__builtin_expect(end - at >= (ptrdiff_t)sizeof(word), 1)) {
		memcpy(&word, at, sizeof(word));
		return le64toh(word);
	}
	for (int shift = 0; at < end; at++, shift += 8) {
		word |= (uint64_t)(unsigned char)*at << shift;
	}
	return word;
}

/* Where the name stops: at one of these bytes or the end. The hash is made on the way; its
 * multiplier is 2^64 / golden ratio, made odd. */
static inline const char *scan_name(const char *at, const char *end, uint64_t *ret)
{
	uint64_t hash = 0;
	for (;; at += sizeof(uint64_t)) {
		uint64_t word = load_word(at, end), stops = name_stops(word);
		/* of a stop in the byte n: the bits below 8 * n */
		word &= stops ? ((stops & -stops) >> 7) - 1 : UINT64_MAX;
		hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
		hash ^= hash >> 29;
		if (stops) {
			*ret = hash;
			return at + __builtin_ctzll(stops) / 8;
		}
	}
}

/* Returns the byte after the colon of the name; NULL with a reason. */
static const char *parse_name(
	const char *begin, const char *end, struct statsd_line *line, const char **reason)
{
	const char *at = scan_name(begin, end, &line->name_hash);
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

static void parse_frame(struct statsd_text text, struct statsd_line *line)
{
	uint64_t frame = 0;
	for (size_t i = 0; i < text.length; i++) {
		unsigned digit = (unsigned char)(text.at[i] - '0');
		if (digit > 9 || __builtin_mul_overflow(frame, 10u, &frame) ||
			__builtin_add_overflow(frame, digit, &frame)) {
			return;
		}
	}
	line->frame = frame; /* the largest number is STATSD_NO_FRAME itself */
	line->digits = text;
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
		parse_frame(value, line);
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
		while (at < end && *at != ':' && *at != ',' && *at != '|') {
			at++;
		}
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
	line->app = line->unit = line->category = line->digits = (struct statsd_text){NULL, 0};
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

/* Keeps what the next line may have in common with this one. */
static void remember(struct statsd_reader *reader, const char *end)
{
	const struct statsd_line *line = &reader->line;
	const char *type = line->values.at + line->values.length;
	const char *digits = line->digits.at ? line->digits.at : end;
	const char *rest = digits + line->digits.length;
	reader->head = (struct statsd_text){type, (size_t)(digits - type)};
	reader->rest = (struct statsd_text){rest, (size_t)(end - rest)};
}

static inline bool skip_text(const char **at, const char *end, struct statsd_text text)
{
	if ((size_t)(end - *at) < text.length || memcmp(*at, text.at, text.length) != 0) {
		return false;
	}
	*at += text.length;
	return true;
}

/* The digits of a frame that cannot overflow. */
static inline bool skip_frame(const char **at, const char *end, uint64_t *ret)
{
	enum { DIGITS_MAX = 19 };
	const char *begin = *at, *p = begin;
	uint64_t frame = 0;
	for (; p < end && (unsigned char)(*p - '0') <= 9 && p - begin < DIGITS_MAX; p++) {
		frame = frame * 10 + (uint64_t)(*p - '0');
	}
	*ret = frame;
	*at = p;
	return p > begin;
}

/* Reads a line that differs from the one before only in its name, its one value and the number of
 * its frame. False: this is not such a line; it is to be read from its begin. */
static bool read_similar(struct statsd_reader *reader)
{
	struct statsd_line *line = &reader->line;
	const char *begin = reader->at, *end = reader->end;
	if (reader->head.length == 0 || *begin == '_') { /* '_': may be an event */
		return false;
	}
	const char *at = scan_name(begin, end, &line->name_hash);
	line->name = (struct statsd_text){begin, (size_t)(at - begin)};
	if (line->name.length - 1 >= STATSD_NAME_MAX || at == end || *at != ':') {
		return false;
	}
	at++;
	line->values.length = 0;
	if (!parse_value(&at, end, line) || !skip_text(&at, end, reader->head) ||
		(line->digits.at && !skip_frame(&at, end, &line->frame)) ||
		(reader->rest.length > 0 && !skip_text(&at, end, reader->rest)) ||
		(at < end && *at != '\n')) {
		return false;
	}
	reader->at = at < end ? at + 1 : end;
	return true;
}

enum statsd_result statsd_next(struct statsd_reader *reader)
{
	while (reader->at < reader->end) {
		const char *begin = reader->at;
		if (*begin == '\n' ||
			(*begin == '\r' && reader->end - begin > 1 && begin[1] == '\n')) {
			reader->at += *begin == '\r' ? 2 : 1; /* many of them cost little */
			continue;
		}
		if (read_similar(reader)) {
			return STATSD_LINE;
		}
		const char *end = memchr(begin, '\n', (size_t)(reader->end - begin));
		reader->at = end ? end + 1 : reader->end;
		end = end ? end : reader->end;
		if (end > begin && end[-1] == '\r') {
			end--;
		}
		if (end > begin) {
			enum statsd_result result =
				read_line(begin, end, &reader->line, &reader->reason);
			reader->head.length = 0;
			if (result == STATSD_LINE) {
				remember(reader, end);
			}
			return result;
		}
	}
	return STATSD_END;
}
