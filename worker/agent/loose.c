/*
 * Reads foreign JSON as spans. In: claude.c, codex.c, gemini.c, verdict.c. Out: common/base/text.c.
 */
#include "worker/agent/loose.h"

#include "common/base/text.h"

#include <string.h>

/* ---- the grammar ---- */

static size_t skip_white(const char *s, size_t len, size_t at)
{
    while (at < len && (s[at] == ' ' || s[at] == '\t' || s[at] == '\n' || s[at] == '\r')) {
        at++;
    }
    return at;
}

static bool is_hex(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

/* Behind the string that begins at `at`; 0: none does. */
static size_t skip_string(const char *s, size_t len, size_t at)
{
    if (at >= len || s[at] != '"') {
        return 0;
    }
    for (at++; at < len && s[at] != '"'; at++) {
        if (s[at] != '\\') {
            continue;
        }
        at++;
        if (at >= len || memchr("\"\\/bfnrtu", s[at], 9) == NULL) {
            return 0;
        }
        if (s[at] == 'u') {
            if (len - at < 5 || !is_hex(s[at + 1]) || !is_hex(s[at + 2]) || !is_hex(s[at + 3]) ||
                !is_hex(s[at + 4])) {
                return 0;
            }
            at += 4;
        }
    }
    return at < len ? at + 1 : 0;
}

static size_t skip_digits(const char *s, size_t len, size_t at)
{
    while (at < len && s[at] >= '0' && s[at] <= '9') {
        at++;
    }
    return at;
}

static size_t skip_number(const char *s, size_t len, size_t at)
{
    at += at < len && s[at] == '-' ? 1 : 0;
    size_t end = skip_digits(s, len, at);
    if (end == at || (s[at] == '0' && end > at + 1)) {
        return 0;
    }
    at = end;
    if (at < len && s[at] == '.') {
        end = skip_digits(s, len, at + 1);
        if (end == at + 1) {
            return 0;
        }
        at = end;
    }
    if (at < len && (s[at] == 'e' || s[at] == 'E')) {
        at++;
        at += at < len && (s[at] == '+' || s[at] == '-') ? 1 : 0;
        end = skip_digits(s, len, at);
        if (end == at) {
            return 0;
        }
        at = end;
    }
    return at;
}

static size_t skip_scalar(const char *s, size_t len, size_t at)
{
    static const char *const words[] = {"true", "false", "null"};
    if (at < len && s[at] == '"') {
        return skip_string(s, len, at);
    }
    for (size_t i = 0; i < 3; i++) {
        size_t n = strlen(words[i]);
        if (len - at >= n && memcmp(s + at, words[i], n) == 0) {
            return at + n;
        }
    }
    return skip_number(s, len, at);
}

/* Behind the name of a member and its colon. */
static size_t skip_name(const char *s, size_t len, size_t at)
{
    at = skip_string(s, len, skip_white(s, len, at));
    if (at == 0) {
        return 0;
    }
    at = skip_white(s, len, at);
    return at < len && s[at] == ':' ? at + 1 : 0;
}

/* Open containers: bit d of arrays says what level d is. */
struct levels {
    uint64_t arrays;
    unsigned depth;
};

static bool in_array(const struct levels *levels)
{
    return (levels->arrays >> (levels->depth - 1) & 1) != 0;
}

/* Behind a value that begins at `at`, or behind the opening of a container that is not empty (*ret_open).
 * 0: neither. */
static size_t take_value(const char *s, size_t len, size_t at, struct levels *levels,
                         bool *ret_open)
{
    *ret_open = false;
    at = skip_white(s, len, at);
    if (at >= len || (s[at] != '{' && s[at] != '[')) {
        return skip_scalar(s, len, at);
    }
    bool array = s[at] == '[';
    at = skip_white(s, len, at + 1);
    if (at < len && s[at] == (array ? ']' : '}')) {
        return at + 1;
    }
    if (levels->depth == LOOSE_DEPTH_MAX) {
        return 0;
    }
    uint64_t bit = (uint64_t)1 << levels->depth++;
    levels->arrays = array ? levels->arrays | bit : levels->arrays & ~bit;
    *ret_open = true;
    return array ? at : skip_name(s, len, at);
}

/* Behind the comma (and name) before the next value, or behind the whole outermost container. */
static size_t take_rest(const char *s, size_t len, size_t at, struct levels *levels, bool *ret_more)
{
    *ret_more = false;
    while (levels->depth > 0) {
        at = skip_white(s, len, at);
        if (at < len && s[at] == ',') {
            *ret_more = true;
            return in_array(levels) ? at + 1 : skip_name(s, len, at + 1);
        }
        if (at >= len || s[at] != (in_array(levels) ? ']' : '}')) {
            return 0;
        }
        levels->depth--;
        at++;
    }
    return at;
}

/* Behind the value that begins at `at`; 0: none does. */
static size_t skip_value(const char *s, size_t len, size_t at)
{
    struct levels levels = {0, 0};
    bool more = true;
    while (more) {
        bool open;
        at = take_value(s, len, at, &levels, &open);
        if (at == 0) {
            return 0;
        }
        more = open;
        if (!open && (at = take_rest(s, len, at, &levels, &more)) == 0) {
            return 0;
        }
    }
    return at;
}

bool loose_parse_prefix(const char *bytes, size_t len, struct loose *ret_value)
{
    size_t from = bytes != NULL ? skip_white(bytes, len, 0) : len;
    size_t end = from < len ? skip_value(bytes, len, from) : 0;
    if (end == 0) {
        return false;
    }
    *ret_value = (struct loose){bytes + from, end - from};
    return true;
}

bool loose_parse(const char *bytes, size_t len, struct loose *ret_value)
{
    struct loose value;
    if (!loose_parse_prefix(bytes, len, &value) ||
        skip_white(bytes, len, (size_t)(value.at - bytes) + value.len) != len) {
        return false;
    }
    *ret_value = value;
    return true;
}

/* ---- looking into values ---- */

enum loose_kind loose_kind(struct loose value)
{
    if (value.at == NULL || value.len == 0) {
        return LOOSE_none;
    }
    switch (value.at[0]) {
    case '{':
        return LOOSE_object;
    case '[':
        return LOOSE_array;
    case '"':
        return LOOSE_text;
    case 't':
    case 'f':
        return LOOSE_bool;
    case 'n':
        return LOOSE_null;
    default:
        return LOOSE_number;
    }
}

bool loose_next(struct loose container, size_t *at, struct loose *ret_name, struct loose *ret_value)
{
    enum loose_kind kind = loose_kind(container);
    const char *s = container.at;
    size_t from;
    if (kind != LOOSE_array && kind != LOOSE_object) {
        return false;
    }
    from = skip_white(s, container.len, *at == 0 ? 1 : *at);
    if (from < container.len && s[from] == ',') {
        from = skip_white(s, container.len, from + 1);
    }
    if (from + 1 >= container.len) {
        return false; /* its closing bracket */
    }
    if (kind == LOOSE_object) {
        size_t end = skip_string(s, container.len, from);
        if (end == 0) {
            return false;
        }
        if (ret_name != NULL) {
            *ret_name = (struct loose){s + from, end - from};
        }
        from = skip_name(s, container.len, from);
        from = skip_white(s, container.len, from);
    }
    size_t end = skip_value(s, container.len, from);
    if (end == 0) {
        return false;
    }
    *ret_value = (struct loose){s + from, end - from};
    *at = end;
    return true;
}

bool loose_is(struct loose value, const char *word)
{
    size_t n = strlen(word);
    return loose_kind(value) == LOOSE_text && value.len == n + 2 &&
           memcmp(value.at + 1, word, n) == 0;
}

static struct loose member_of(struct loose object, const char *name, size_t name_len)
{
    struct loose key;
    struct loose value;
    size_t at = 0;
    if (loose_kind(object) != LOOSE_object) {
        return LOOSE_NONE;
    }
    while (loose_next(object, &at, &key, &value)) {
        if (key.len == name_len + 2 && memcmp(key.at + 1, name, name_len) == 0) {
            return value;
        }
    }
    return LOOSE_NONE;
}

struct loose loose_member(struct loose value, const char *name)
{
    return member_of(value, name, strlen(name));
}

struct loose loose_at(struct loose value, const char *path)
{
    while (*path != '\0' && value.at != NULL) {
        size_t n = strcspn(path, ".");
        value = member_of(value, path, n);
        path += n + (path[n] == '.' ? 1 : 0);
    }
    return value;
}

bool loose_true(struct loose value)
{
    return value.len == 4 && loose_kind(value) == LOOSE_bool;
}

/* ---- texts ---- */

#define REPLACEMENT 0xFFFD

static unsigned hex_of(const char *s)
{
    unsigned value = 0;
    for (int i = 0; i < 4; i++) {
        char c = s[i];
        unsigned digit = c <= '9'   ? (unsigned)(c - '0')
                         : c <= 'F' ? (unsigned)(c - 'A') + 10
                                    : (unsigned)(c - 'a') + 10;
        value = value << 4 | digit;
    }
    return value;
}

static size_t utf8_of(uint32_t point, char out[4])
{
    if (point < 0x80) {
        out[0] = (char)point;
        return 1;
    }
    if (point < 0x800) {
        out[0] = (char)(0xC0 | point >> 6);
        out[1] = (char)(0x80 | (point & 0x3F));
        return 2;
    }
    if (point < 0x10000) {
        out[0] = (char)(0xE0 | point >> 12);
        out[1] = (char)(0x80 | (point >> 6 & 0x3F));
        out[2] = (char)(0x80 | (point & 0x3F));
        return 3;
    }
    out[0] = (char)(0xF0 | point >> 18);
    out[1] = (char)(0x80 | (point >> 12 & 0x3F));
    out[2] = (char)(0x80 | (point >> 6 & 0x3F));
    out[3] = (char)(0x80 | (point & 0x3F));
    return 4;
}

/* The escape that begins at the backslash: its code point, and how many bytes it takes. */
static uint32_t unescape(const char *s, size_t len, size_t *ret_used)
{
    static const char from[] = "\"\\/bfnrt";
    static const char to[] = "\"\\/\b\f\n\r\t";
    *ret_used = 2;
    if (s[1] != 'u') {
        return (uint32_t)to[strchr(from, s[1]) - from];
    }
    *ret_used = 6;
    uint32_t point = hex_of(s + 2);
    if (point >= 0xD800 && point < 0xDC00 && len >= 12 && s[6] == '\\' && s[7] == 'u') {
        uint32_t low = hex_of(s + 8);
        if (low >= 0xDC00 && low < 0xE000) {
            *ret_used = 12;
            return 0x10000 + ((point - 0xD800) << 10) + (low - 0xDC00);
        }
    }
    return point >= 0xD800 && point < 0xE000 ? REPLACEMENT : point;
}

void loose_text(struct loose value, size_t max, struct buf *out)
{
    if (loose_kind(value) != LOOSE_text) {
        return;
    }
    const char *s = value.at + 1;
    size_t len = value.len - 2;
    size_t room = max;
    for (size_t at = 0; at < len;) {
        char bytes[4];
        uint32_t point;
        size_t used;
        if (s[at] == '\\') {
            point = unescape(s + at, len - at, &used);
        } else {
            used = text_utf8_next(s + at, len - at, &point);
            point = used == 0 ? REPLACEMENT : point;
            used += used == 0 ? 1 : 0;
        }
        size_t n = utf8_of(point == 0 ? REPLACEMENT : point, bytes);
        if (n > room) {
            return;
        }
        buf_add(out, bytes, n);
        room -= n;
        at += used;
    }
}

/* ---- numbers ---- */

/* Digits of a number as mantissa * 10^exponent, both bounded. */
struct decimal {
    int64_t mantissa;
    int exponent;
};

#define MANTISSA_MAX (INT64_MAX / 10 - 1)

static struct decimal decimal_of(const char *s, size_t len)
{
    struct decimal d = {0, 0};
    size_t at = s[0] == '-' ? 1 : 0;
    bool fraction = false;
    for (; at < len && s[at] != 'e' && s[at] != 'E'; at++) {
        if (s[at] == '.') {
            fraction = true;
        } else if (d.mantissa < MANTISSA_MAX / 10) {
            d.mantissa = d.mantissa * 10 + (s[at] - '0');
            d.exponent -= fraction ? 1 : 0;
        } else {
            d.exponent += fraction ? 0 : 1; /* digits that no number of ours can hold */
        }
    }
    int shift = 0;
    bool down = at + 1 < len && s[at + 1] == '-';
    for (at++; at < len; at++) {
        if (s[at] >= '0' && s[at] <= '9' && shift < 10000) {
            shift = shift * 10 + (s[at] - '0');
        }
    }
    d.exponent += down ? -shift : shift;
    return d;
}

bool loose_number(struct loose value, int64_t scale, int64_t *ret_number)
{
    if (loose_kind(value) != LOOSE_number) {
        return false;
    }
    struct decimal d = decimal_of(value.at, value.len);
    __int128 number = (__int128)d.mantissa * scale;
    for (; d.exponent < 0 && number != 0; d.exponent++) {
        number /= 10;
    }
    for (; d.exponent > 0 && number != 0 && number <= INT64_MAX; d.exponent--) {
        number *= 10;
    }
    number = number > INT64_MAX ? INT64_MAX : number;
    *ret_number = value.at[0] == '-' ? (int64_t)-number : (int64_t)number;
    return true;
}
