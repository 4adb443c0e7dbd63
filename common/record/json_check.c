/*
 * The validator in front of cJSON (RECORD.md section 5). Called by json.c.
 *
 * One pass over the bytes with an explicit stack of containers; keys of open objects lie on a
 * second stack, and are compared, decoded, when their object ends: pairwise while they are few,
 * sorted else, so that no object costs quadratic time.
 */
#include "common/record/json_check.h"

#include "common/base/check.h"
#include "common/base/text.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEYS_INLINE 48   /* enough for our records without an allocation */
#define KEYS_PAIRWISE 24 /* up to here comparing all pairs is cheaper than sorting */

struct key {
    const char *at; /* between the quotation marks */
    uint32_t len;
    bool escaped;
};

struct checker {
    const char *begin;
    const char *at;
    const char *end;
    int depth_max;
    int depth;       /* open containers */
    uint64_t arrays; /* bit d: the container at depth d+1 is an array */
    size_t values;
    struct key inline_keys[KEYS_INLINE];
    struct key *keys; /* of all open objects */
    size_t n_keys;
    size_t cap_keys;
    size_t first_key[JSON_DEPTH_MAX]; /* of the object at each depth */
    struct json_members *members;
    struct baton_error *err;
};

/* Says what is wrong at a place: line, and column in characters, both from 1. */
BATON_PRINTF(3, 4)
static baton_code wrong(struct checker *c, const char *at, const char *format, ...)
{
    size_t line = 1;
    size_t column = 1;
    char text[256];
    va_list args;
    for (const char *p = c->begin; p < at; p++) {
        if (*p == '\n') {
            line++;
            column = 1;
        } else if (((unsigned char)*p & 0xC0) != 0x80) {
            column++;
        }
    }
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    return baton_fail(c->err, BATON_E_invalid_envelope, "JSON, line %zu column %zu: %s", line,
                      column, text);
}

static void skip_blanks(struct checker *c)
{
    while (c->at < c->end &&
           (*c->at == ' ' || *c->at == '\n' || *c->at == '\t' || *c->at == '\r')) {
        c->at++;
    }
}

static bool read_hex4(const char *at, const char *end, uint32_t *ret_unit)
{
    uint32_t unit = 0;
    if (end - at < 4) {
        return false;
    }
    for (int i = 0; i < 4; i++) {
        char ch = at[i];
        uint32_t digit;
        if (ch >= '0' && ch <= '9') {
            digit = (uint32_t)(ch - '0');
        } else if (ch >= 'a' && ch <= 'f') {
            digit = (uint32_t)(ch - 'a') + 10;
        } else if (ch >= 'A' && ch <= 'F') {
            digit = (uint32_t)(ch - 'A') + 10;
        } else {
            return false;
        }
        unit = unit << 4 | digit;
    }
    *ret_unit = unit;
    return true;
}

/* at: behind `\u`. Checks one escaped character, a pair of surrogates included, and passes it. */
static baton_code check_unicode_escape(struct checker *c, const char *escape)
{
    uint32_t unit;
    uint32_t low;
    if (!read_hex4(c->at, c->end, &unit)) {
        return wrong(c, escape, "\\u needs four hexadecimal digits");
    }
    c->at += 4;
    if (unit == 0) {
        return wrong(c, escape, "an escaped NUL (\\u0000) is refused, since it would cut the text");
    }
    if (unit >= 0xDC00 && unit <= 0xDFFF) {
        return wrong(c, escape, "the second half of a surrogate pair without its first");
    }
    if (unit >= 0xD800 && unit <= 0xDBFF) {
        if (c->end - c->at < 6 || c->at[0] != '\\' || c->at[1] != 'u' ||
            !read_hex4(c->at + 2, c->end, &low) || low < 0xDC00 || low > 0xDFFF) {
            return wrong(c, escape, "the first half of a surrogate pair without its second");
        }
        c->at += 6;
    }
    return BATON_OK;
}

/* At a quotation mark. Passes the string and gives what lies between the marks. */
static baton_code check_string(struct checker *c, struct key *ret_text)
{
    const char *start = ++c->at;
    bool escaped = false;
    for (;;) {
        /* The common case first: runs of printable ASCII. */
        while (c->at < c->end && (unsigned char)*c->at >= 0x20 && (unsigned char)*c->at < 0x80 &&
               *c->at != '"' && *c->at != '\\') {
            c->at++;
        }
        if (c->at >= c->end) {
            return wrong(c, start - 1, "a string without its end");
        }
        unsigned char ch = (unsigned char)*c->at;
        if (ch == '"') {
            break;
        }
        if (ch < 0x20) {
            return wrong(c, c->at, "the control character U+%04X stands unescaped in a string", ch);
        }
        if (ch == '\\') {
            const char *escape = c->at;
            escaped = true;
            if (c->end - c->at < 2) {
                return wrong(c, start - 1, "a string without its end");
            }
            c->at += 2;
            if (escape[1] == 'u') {
                baton_code rc = check_unicode_escape(c, escape);
                if (rc != BATON_OK) {
                    return rc;
                }
            } else if (escape[1] == '\0' || strchr("\"\\/bfnrt", escape[1]) == NULL) {
                return wrong(c, escape, "an escape that JSON does not know");
            }
            continue;
        }
        uint32_t point;
        size_t n = text_utf8_next(c->at, (size_t)(c->end - c->at), &point);
        if (n == 0) {
            return wrong(c, c->at, "invalid UTF-8 (byte 0x%02x)", ch);
        }
        c->at += n;
    }
    *ret_text = (struct key){start, (uint32_t)(c->at - start), escaped};
    c->at++;
    return BATON_OK;
}

/* Integers of at most 2^53 in either direction, in the one way to write them. */
static baton_code check_number(struct checker *c)
{
    const char *start = c->at;
    bool negative = *c->at == '-';
    int64_t value = 0;
    if (negative) {
        c->at++;
    }
    const char *digits = c->at;
    while (c->at < c->end && *c->at >= '0' && *c->at <= '9') {
        if (value > JSON_INT_MAX / 10) {
            return wrong(c, start, "a number beyond 2^53; write it as a string");
        }
        value = value * 10 + (*c->at - '0');
        c->at++;
    }
    if (c->at == digits) {
        return wrong(c, start, negative ? "a minus sign without digits" : "not a JSON value");
    }
    if (*digits == '0' && c->at - digits > 1) {
        return wrong(c, start, "a number with a leading zero");
    }
    if (negative && value == 0) {
        return wrong(c, start, "-0 is no integer");
    }
    if (c->at < c->end && (*c->at == '.' || *c->at == 'e' || *c->at == 'E')) {
        return wrong(c, start, "only integers, without fraction and exponent");
    }
    if (value > JSON_INT_MAX) {
        return wrong(c, start, "a number beyond 2^53; write it as a string");
    }
    return BATON_OK;
}

static baton_code check_word(struct checker *c)
{
    static const char *const words[] = {"true", "false", "null"};
    for (size_t i = 0; i < COUNT_OF(words); i++) {
        size_t n = strlen(words[i]);
        if ((size_t)(c->end - c->at) >= n && memcmp(c->at, words[i], n) == 0) {
            c->at += n;
            return BATON_OK;
        }
    }
    return wrong(c, c->at, "not a JSON value");
}

/* The next byte of a key as it reads decoded, or -1 at its end. Its form was checked. */
struct key_reader {
    const char *at;
    const char *end;
    unsigned char rest[4];
    int n_rest;
    int i_rest;
};

static int utf8_encode(uint32_t point, unsigned char *out)
{
    if (point < 0x80) {
        out[0] = (unsigned char)point;
        return 1;
    }
    int n = point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
    for (int i = n - 1; i > 0; i--) {
        out[i] = (unsigned char)(0x80 | (point & 0x3F));
        point >>= 6;
    }
    out[0] = (unsigned char)((n == 2 ? 0xC0 : n == 3 ? 0xE0 : 0xF0) | point);
    return n;
}

static int key_next(struct key_reader *r)
{
    static const char letters[] = "bfnrt";
    static const char meanings[] = "\b\f\n\r\t";
    if (r->i_rest < r->n_rest) {
        return r->rest[r->i_rest++];
    }
    if (r->at >= r->end) {
        return -1;
    }
    char ch = *r->at++;
    if (ch != '\\') {
        return (unsigned char)ch;
    }
    ch = *r->at++;
    if (ch != 'u') {
        const char *letter = strchr(letters, ch);
        return letter != NULL ? (unsigned char)meanings[letter - letters] : (unsigned char)ch;
    }
    uint32_t point = 0;
    uint32_t low;
    BATON_INVARIANT(read_hex4(r->at, r->end, &point));
    r->at += 4;
    if (point >= 0xD800 && point <= 0xDBFF) {
        BATON_INVARIANT(read_hex4(r->at + 2, r->end, &low));
        r->at += 6;
        point = 0x10000 + ((point - 0xD800) << 10) + (low - 0xDC00);
    }
    r->n_rest = utf8_encode(point, r->rest);
    r->i_rest = 1;
    return r->rest[0];
}

static int compare_keys(const void *a_, const void *b_)
{
    const struct key *a = a_;
    const struct key *b = b_;
    if (!a->escaped && !b->escaped) {
        int order = memcmp(a->at, b->at, a->len < b->len ? a->len : b->len);
        return order != 0 ? order : (a->len > b->len) - (a->len < b->len);
    }
    struct key_reader x = {.at = a->at, .end = a->at + a->len};
    struct key_reader y = {.at = b->at, .end = b->at + b->len};
    for (;;) {
        int p = key_next(&x);
        int q = key_next(&y);
        if (p != q || p < 0) {
            return (p > q) - (p < q);
        }
    }
}

static baton_code duplicate(struct checker *c, const struct key *a, const struct key *b)
{
    const struct key *later = a->at > b->at ? a : b;
    return wrong(c, later->at - 1, "the key \"%s\" stands twice in one object",
                 text_quote(later->at, later->len).s);
}

/* An object ended: its keys leave the stack. */
static baton_code check_keys(struct checker *c)
{
    size_t first = c->first_key[c->depth - 1];
    struct key *keys = c->keys + first;
    size_t n = c->n_keys - first;
    c->n_keys = first;
    if (n <= KEYS_PAIRWISE) {
        for (size_t i = 1; i < n; i++) {
            for (size_t j = 0; j < i; j++) {
                bool plain = !keys[i].escaped && !keys[j].escaped;
                if (plain ? keys[i].len == keys[j].len &&
                                memcmp(keys[i].at, keys[j].at, keys[i].len) == 0
                          : compare_keys(&keys[i], &keys[j]) == 0) {
                    return duplicate(c, &keys[i], &keys[j]);
                }
            }
        }
        return BATON_OK;
    }
    qsort(keys, n, sizeof(keys[0]), compare_keys);
    for (size_t i = 1; i < n; i++) {
        if (compare_keys(&keys[i - 1], &keys[i]) == 0) {
            return duplicate(c, &keys[i - 1], &keys[i]);
        }
    }
    return BATON_OK;
}

static baton_code push_key(struct checker *c, const struct key *key)
{
    if (c->n_keys == c->cap_keys) {
        size_t cap = c->cap_keys * 2;
        struct key *keys = malloc(cap * sizeof(keys[0]));
        if (keys == NULL) {
            return baton_fail(c->err, BATON_E_no_memory, "no memory to check JSON");
        }
        memcpy(keys, c->keys, c->n_keys * sizeof(keys[0]));
        if (c->keys != c->inline_keys) {
            free(c->keys);
        }
        c->keys = keys;
        c->cap_keys = cap;
    }
    c->keys[c->n_keys++] = *key;
    return BATON_OK;
}

/* Notes where a value of the root object begins; its end is set by end_member. */
static baton_code begin_member(struct checker *c)
{
    struct json_members *m = c->members;
    if (m == NULL || c->depth != 1 || c->arrays != 0) {
        return BATON_OK;
    }
    if (m->count == m->cap) {
        size_t cap = m->cap == 0 ? 40 : m->cap * 2;
        struct json_span *spans = realloc(m->spans, cap * sizeof(spans[0]));
        if (spans == NULL) {
            return baton_fail(c->err, BATON_E_no_memory, "no memory to check JSON");
        }
        m->spans = spans;
        m->cap = cap;
    }
    m->spans[m->count++] = (struct json_span){c->at, 0};
    return BATON_OK;
}

static void end_member(struct checker *c)
{
    struct json_members *m = c->members;
    if (m != NULL && c->depth == 1 && c->arrays == 0) {
        struct json_span *span = &m->spans[m->count - 1];
        span->len = (size_t)(c->at - span->at);
    }
}

static bool in_array(const struct checker *c)
{
    return (c->arrays >> (c->depth - 1) & 1) != 0;
}

/* In an object: `"key" :`, up to its value. */
static baton_code check_key(struct checker *c)
{
    struct key key;
    baton_code rc;
    if (c->at >= c->end || *c->at != '"') {
        return wrong(c, c->at, "a key in quotation marks is missing");
    }
    if ((rc = check_string(c, &key)) != BATON_OK || (rc = push_key(c, &key)) != BATON_OK) {
        return rc;
    }
    skip_blanks(c);
    if (c->at >= c->end || *c->at != ':') {
        return wrong(c, c->at, "a colon is missing behind a key");
    }
    c->at++;
    skip_blanks(c);
    return begin_member(c);
}

static baton_code open_container(struct checker *c)
{
    bool array = *c->at == '[';
    if (c->depth == c->depth_max) {
        return wrong(c, c->at, "nested deeper than %d levels", c->depth_max);
    }
    uint64_t bit = (uint64_t)1 << c->depth;
    c->arrays = array ? c->arrays | bit : c->arrays & ~bit;
    c->first_key[c->depth] = c->n_keys;
    c->depth++;
    c->at++;
    return BATON_OK;
}

/* A value begins at c->at. *ret_opened: it is a container whose first member is due. */
static baton_code check_value(struct checker *c, bool *ret_opened)
{
    struct key text;
    *ret_opened = false;
    if (c->at >= c->end) {
        return wrong(c, c->at, "the text ends where a value is due");
    }
    if (++c->values > JSON_VALUES_MAX) {
        return wrong(c, c->at, "more than %d values", JSON_VALUES_MAX);
    }
    char ch = *c->at;
    if (ch == '{' || ch == '[') {
        *ret_opened = true;
        return open_container(c);
    }
    if (ch == '"') {
        return check_string(c, &text);
    }
    if (ch == '-' || (ch >= '0' && ch <= '9')) {
        return check_number(c);
    }
    return check_word(c);
}

/* A value has ended: closes what ends with it, up to the place where the next value begins or the
 * root is whole. */
static baton_code after_value(struct checker *c)
{
    baton_code rc;
    for (;;) {
        if (c->depth == 0) {
            return BATON_OK;
        }
        end_member(c);
        skip_blanks(c);
        char close = in_array(c) ? ']' : '}';
        if (c->at < c->end && *c->at == ',') {
            c->at++;
            skip_blanks(c);
            return close == '}' ? check_key(c) : BATON_OK;
        }
        if (c->at >= c->end || *c->at != close) {
            return wrong(c, c->at, "a comma or '%c' is missing", close);
        }
        c->at++;
        if (close == '}' && (rc = check_keys(c)) != BATON_OK) {
            return rc;
        }
        c->depth--;
        c->arrays &= ~((uint64_t)1 << c->depth);
    }
}

/* A container was opened: either it is empty, or its first member is due. */
static baton_code after_open(struct checker *c, bool *ret_ended)
{
    char close = in_array(c) ? ']' : '}';
    skip_blanks(c);
    *ret_ended = false;
    if (c->at < c->end && *c->at == close) {
        c->at++;
        c->depth--;
        c->arrays &= ~((uint64_t)1 << c->depth);
        *ret_ended = true;
        return BATON_OK;
    }
    return close == '}' ? check_key(c) : BATON_OK;
}

static baton_code check_document(struct checker *c)
{
    baton_code rc;
    bool opened;
    if (c->end - c->at >= 3 && memcmp(c->at, "\xEF\xBB\xBF", 3) == 0) {
        return wrong(c, c->at, "a byte order mark");
    }
    skip_blanks(c);
    do {
        if ((rc = check_value(c, &opened)) != BATON_OK) {
            return rc;
        }
        bool ended = true;
        if (opened && (rc = after_open(c, &ended)) != BATON_OK) {
            return rc;
        }
        if (ended && (rc = after_value(c)) != BATON_OK) {
            return rc;
        }
    } while (c->depth > 0);
    skip_blanks(c);
    if (c->at < c->end) {
        return wrong(c, c->at, "something stands behind the value");
    }
    return BATON_OK;
}

baton_code json_check(const char *bytes, size_t len, int depth_max, struct json_members *members,
                      struct baton_error *err)
{
    struct checker c;
    BATON_PRE(depth_max > 0 && depth_max <= JSON_DEPTH_MAX && len < UINT32_MAX);
    c.begin = bytes;
    c.at = bytes;
    c.end = bytes + len;
    c.depth_max = depth_max;
    c.depth = 0;
    c.arrays = 0;
    c.values = 0;
    c.keys = c.inline_keys;
    c.n_keys = 0;
    c.cap_keys = KEYS_INLINE;
    c.members = members;
    c.err = err;
    baton_code rc = check_document(&c);
    if (c.keys != c.inline_keys) {
        free(c.keys);
    }
    return rc;
}
