/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_scan.c: scans JSON strictly. Every byte of a peer passes here before cJSON sees it, because
 * cJSON alone accepts trailing garbage, duplicate keys and broken UTF-8, stops at \u0000 and makes
 * 40 bytes of every byte of "[[[[". One pass over a small table, without recursion and without
 * memory beyond 17 KiB of stack.
 */
#include "proto/json_scan.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "proto/fnv.h"
#include "proto/utf8.h"

enum { DEPTH_LIMIT = 64, KEYS_LIMIT = 2048, NUMBER_LIMIT = 62 /* of cJSON's buffer */ };

/* What the grammar allows next. */
enum state {
	STATE_START,	 /* the object itself */
	STATE_FIRST_KEY, /* after '{' */
	STATE_KEY,	 /* after ',' in an object */
	STATE_COLON,
	STATE_VALUE,
	STATE_FIRST_VALUE, /* after '[' */
	STATE_AFTER,	   /* after a value inside a container */
	STATE_DONE,
};

/* A set of them is their sum. */
enum token {
	TOKEN_BAD = 0,
	TOKEN_SPACE = 1,
	TOKEN_OPEN_OBJECT = 2,
	TOKEN_CLOSE_OBJECT = 4,
	TOKEN_OPEN_ARRAY = 8,
	TOKEN_CLOSE_ARRAY = 16,
	TOKEN_COLON = 32,
	TOKEN_COMMA = 64,
	TOKEN_STRING = 128,
	TOKEN_NUMBER = 256,
	TOKEN_LITERAL = 512,
};

#define TOKENS_OF_VALUES \
	(TOKEN_OPEN_OBJECT | TOKEN_OPEN_ARRAY | TOKEN_STRING | TOKEN_NUMBER | TOKEN_LITERAL)

/* clang-format off */
static const uint16_t token_of[256] = {
	[' '] = TOKEN_SPACE, ['\t'] = TOKEN_SPACE, ['\n'] = TOKEN_SPACE, ['\r'] = TOKEN_SPACE,
	['{'] = TOKEN_OPEN_OBJECT, ['}'] = TOKEN_CLOSE_OBJECT,
	['['] = TOKEN_OPEN_ARRAY, [']'] = TOKEN_CLOSE_ARRAY,
	[':'] = TOKEN_COLON, [','] = TOKEN_COMMA, ['"'] = TOKEN_STRING,
	['-'] = TOKEN_NUMBER, ['0'] = TOKEN_NUMBER, ['1'] = TOKEN_NUMBER, ['2'] = TOKEN_NUMBER,
	['3'] = TOKEN_NUMBER, ['4'] = TOKEN_NUMBER, ['5'] = TOKEN_NUMBER, ['6'] = TOKEN_NUMBER,
	['7'] = TOKEN_NUMBER, ['8'] = TOKEN_NUMBER, ['9'] = TOKEN_NUMBER,
	['t'] = TOKEN_LITERAL, ['f'] = TOKEN_LITERAL, ['n'] = TOKEN_LITERAL,
};

/* clang-format on */

static const unsigned allowed[] = {
	[STATE_START] = TOKEN_OPEN_OBJECT,
	[STATE_FIRST_KEY] = TOKEN_STRING | TOKEN_CLOSE_OBJECT,
	[STATE_KEY] = TOKEN_STRING,
	[STATE_COLON] = TOKEN_COLON,
	[STATE_VALUE] = TOKENS_OF_VALUES,
	[STATE_FIRST_VALUE] = TOKENS_OF_VALUES | TOKEN_CLOSE_ARRAY,
	[STATE_AFTER] = TOKEN_COMMA | TOKEN_CLOSE_OBJECT | TOKEN_CLOSE_ARRAY,
	[STATE_DONE] = 0,
};

struct scan {
	const char *text;
	size_t length, at;
	enum state state;
	unsigned depth, max_depth;
	unsigned tokens;
	uint64_t objects; /* bit depth-1: that level is an object */
	uint16_t first_key[DEPTH_LIMIT];
	uint16_t keys; /* of all open objects */
	uint64_t *key; /* KEYS_LIMIT of them */
	const char *reason;
};

static int fail(struct scan *scan, const char *reason)
{
	scan->reason = reason;
	return -EBADMSG;
}

static bool scan_byte(struct scan *scan, char c)
{
	if (scan->at < scan->length && scan->text[scan->at] == c) {
		scan->at++;
		return true;
	}
	return false;
}

/* Four hex digits at scan->at; -1 when they are not there. */
static int32_t scan_hex4(struct scan *scan)
{
	if (scan->length - scan->at < 4) {
		return -1;
	}
	int32_t value = 0;
	for (int i = 0; i < 4; i++) {
		char c = scan->text[scan->at++];
		int digit = c >= '0' && c <= '9'   ? c - '0'
			    : c >= 'a' && c <= 'f' ? c - 'a' + 10
			    : c >= 'A' && c <= 'F' ? c - 'A' + 10
						   : -1;
		if (digit < 0) {
			return -1;
		}
		value = value * 16 + digit;
	}
	return value;
}

/* After the backslash. */
static int scan_escape(struct scan *scan, uint64_t *hash)
{
	static const char letters[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
	if (scan->at >= scan->length) {
		return fail(scan, "unterminated string");
	}
	char c = scan->text[scan->at++];
	const char *letter = c != '\0' ? strchr(letters, c) : NULL;
	if (letter) {
		*hash = fnv64(*hash, &meant[letter - letters], 1);
		return 0;
	}
	if (c != 'u') {
		return fail(scan, "unknown escape");
	}
	int32_t unit = scan_hex4(scan);
	if (unit <= 0) {
		return fail(scan, unit == 0 ? "\\u0000" : "bad \\u escape");
	}
	uint32_t code = (uint32_t)unit;
	if (unit >= 0xd800 && unit <= 0xdfff) {
		bool paired = unit < 0xdc00 && scan_byte(scan, '\\') && scan_byte(scan, 'u');
		int32_t low = paired ? scan_hex4(scan) : -1;
		if (low < 0xdc00 || low > 0xdfff) {
			return fail(scan, "lone surrogate");
		}
		code = 0x10000u + (((uint32_t)unit - 0xd800u) << 10) + ((uint32_t)low - 0xdc00u);
	}
	char bytes[4];
	*hash = fnv64(*hash, bytes, proto_utf8_encode(code, bytes));
	return 0;
}

/* After the opening quote. Keys are compared by a hash of their decoded bytes. Two keys of one
 * object with equal hashes count as equal: a peer that makes them collide only gets its own message
 * refused. */
static int scan_string(struct scan *scan, uint64_t *hash)
{
	*hash = FNV64_BASIS;
	while (scan->at < scan->length) {
		unsigned char c = (unsigned char)scan->text[scan->at];
		if (c == '"') {
			scan->at++;
			return 0;
		}
		if (c < 0x20) {
			return fail(scan, "control byte in a string");
		}
		if (c == '\\') {
			scan->at++;
			int r = scan_escape(scan, hash);
			if (r < 0) {
				return r;
			}
			continue;
		}
		size_t n = proto_utf8_length(scan->text + scan->at, scan->length - scan->at);
		if (n == 0) {
			return fail(scan, "invalid UTF-8");
		}
		*hash = fnv64(*hash, scan->text + scan->at, n);
		scan->at += n;
	}
	return fail(scan, "unterminated string");
}

static size_t scan_digits(struct scan *scan)
{
	size_t start = scan->at;
	while (scan->at < scan->length && scan->text[scan->at] >= '0' &&
		scan->text[scan->at] <= '9') {
		scan->at++;
	}
	return scan->at - start;
}

/* At the first byte of the number; what follows is the next token. */
static int scan_number(struct scan *scan)
{
	size_t start = scan->at;
	scan_byte(scan, '-');
	bool good = scan_byte(scan, '0') || scan_digits(scan) > 0;
	good = good && (!scan_byte(scan, '.') || scan_digits(scan) > 0);
	if (good && (scan_byte(scan, 'e') || scan_byte(scan, 'E'))) {
		(void)(scan_byte(scan, '+') || scan_byte(scan, '-'));
		good = scan_digits(scan) > 0;
	}
	if (!good) {
		return fail(scan, "bad number");
	}
	return scan->at - start <= NUMBER_LIMIT ? 0 : fail(scan, "number too long");
}

static int scan_literal(struct scan *scan)
{
	static const char *const words[] = {"true", "false", "null"};
	for (size_t i = 0; i < 3; i++) {
		size_t n = strlen(words[i]);
		if (scan->length - scan->at >= n &&
			memcmp(scan->text + scan->at, words[i], n) == 0) {
			scan->at += n;
			return 0;
		}
	}
	return fail(scan, "unknown word");
}

static int scan_open(struct scan *scan, bool object)
{
	if (scan->depth >= scan->max_depth) {
		return fail(scan, "nested too deep");
	}
	scan->first_key[scan->depth] = scan->keys;
	uint64_t bit = (uint64_t)1 << scan->depth++;
	scan->objects = object ? scan->objects | bit : scan->objects & ~bit;
	scan->state = object ? STATE_FIRST_KEY : STATE_FIRST_VALUE;
	return 0;
}

static int scan_close(struct scan *scan, bool object)
{
	if ((scan->objects >> (scan->depth - 1) & 1) != object) {
		return fail(scan, "brackets do not match");
	}
	scan->depth--;
	scan->keys = scan->first_key[scan->depth];
	scan->state = scan->depth == 0 ? STATE_DONE : STATE_AFTER;
	return 0;
}

static int scan_key(struct scan *scan, uint64_t hash)
{
	for (size_t i = scan->first_key[scan->depth - 1]; i < scan->keys; i++) {
		if (scan->key[i] == hash) {
			return fail(scan, "duplicate key");
		}
	}
	if (scan->keys == KEYS_LIMIT) {
		return fail(scan, "too many keys");
	}
	scan->key[scan->keys++] = hash;
	scan->state = STATE_COLON;
	return 0;
}

/* One token that the state allows; scan->at is its first byte. */
static int scan_token(struct scan *scan, enum token token)
{
	uint64_t hash;
	int r = 0;
	switch (token) {
	case TOKEN_OPEN_OBJECT:
	case TOKEN_OPEN_ARRAY:
		scan->at++;
		return scan_open(scan, token == TOKEN_OPEN_OBJECT);
	case TOKEN_CLOSE_OBJECT:
	case TOKEN_CLOSE_ARRAY:
		scan->at++;
		return scan_close(scan, token == TOKEN_CLOSE_OBJECT);
	case TOKEN_COLON:
		scan->at++;
		scan->state = STATE_VALUE;
		return 0;
	case TOKEN_COMMA:
		scan->at++;
		scan->state =
			(scan->objects >> (scan->depth - 1) & 1) != 0 ? STATE_KEY : STATE_VALUE;
		return 0;
	case TOKEN_STRING:
		scan->at++;
		r = scan_string(scan, &hash);
		if (r == 0 && (scan->state == STATE_FIRST_KEY || scan->state == STATE_KEY)) {
			return scan_key(scan, hash);
		}
		break;
	case TOKEN_NUMBER:
		r = scan_number(scan);
		break;
	case TOKEN_LITERAL:
		r = scan_literal(scan);
		break;
	case TOKEN_BAD:
	case TOKEN_SPACE:
		return fail(scan, "unexpected byte");
	}
	scan->state = STATE_AFTER;
	return r;
}

int proto_json_scan(const char *text, size_t length, unsigned max_depth, unsigned max_tokens,
	const char **reason)
{
	uint64_t keys[KEYS_LIMIT];
	struct scan scan = {.text = text,
		.length = length,
		.max_depth = max_depth < DEPTH_LIMIT ? max_depth : DEPTH_LIMIT,
		.key = keys};
	int r = 0;
	while (r == 0 && scan.at < scan.length) {
		enum token token = token_of[(unsigned char)text[scan.at]];
		if (token == TOKEN_SPACE) {
			scan.at++;
			continue;
		}
		if (!(allowed[scan.state] & token)) {
			r = fail(&scan, scan.state == STATE_DONE    ? "bytes after the object"
					: scan.state == STATE_START ? "not an object"
								    : "unexpected byte");
		} else if ((token & TOKENS_OF_VALUES) != 0 && max_tokens != 0 &&
			   ++scan.tokens > max_tokens) {
			r = fail(&scan, "too many tokens");
		} else {
			r = scan_token(&scan, token);
		}
	}
	if (r == 0 && scan.state != STATE_DONE) {
		r = fail(&scan, "truncated");
	}
	if (r < 0) {
		*reason = scan.reason;
	}
	return r;
}
