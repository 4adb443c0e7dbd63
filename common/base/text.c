/* Foreign text made safe to show. Called by log lines, tables, errors, JSON, printing verbs. */
#include "common/base/text.h"

#include "common/base/check.h"

#include <string.h>

struct range {
    uint32_t first;
    uint32_t last;
};

/* Sorted. What hides, reorders or controls on some terminal; printing it is never needed. */
static const struct range dangerous[] = {
    {0x0000, 0x001F},   /* C0 */
    {0x007F, 0x009F},   /* DEL, C1 */
    {0x00AD, 0x00AD},   /* soft hyphen */
    {0x034F, 0x034F},   /* grapheme joiner */
    {0x061C, 0x061C},   /* Arabic letter mark (bidi) */
    {0x115F, 0x1160},   /* Hangul fillers */
    {0x17B4, 0x17B5},   /* invisible Khmer vowels */
    {0x180B, 0x180F},   /* Mongolian selectors */
    {0x200B, 0x200F},   /* zero width, direction marks */
    {0x2028, 0x202E},   /* line and paragraph separator, bidi embeddings and overrides */
    {0x2060, 0x206F},   /* word joiner, invisible operators, bidi isolates */
    {0x3164, 0x3164},   /* Hangul filler */
    {0xFE00, 0xFE0F},   /* variation selectors */
    {0xFEFF, 0xFEFF},   /* byte order mark */
    {0xFFA0, 0xFFA0},   /* half-width filler */
    {0xFFF0, 0xFFFB},   /* annotations */
    {0xFFFE, 0xFFFF},   /* no characters */
    {0x1BCA0, 0x1BCA3}, /* shorthand controls */
    {0x1D173, 0x1D17A}, /* musical controls */
    {0xE0000, 0xE0FFF}, /* tags, more variation selectors */
};

/* Sorted. East Asian wide and emoji; two columns. */
static const struct range wide[] = {
    {0x1100, 0x115E},   {0x2E80, 0x303E},   {0x3041, 0x33FF},   {0x3400, 0x4DBF},
    {0x4E00, 0xA4CF},   {0xA960, 0xA97C},   {0xAC00, 0xD7A3},   {0xF900, 0xFAFF},
    {0xFE30, 0xFE6F},   {0xFF01, 0xFF60},   {0xFFE0, 0xFFE6},   {0x1F300, 0x1F64F},
    {0x1F680, 0x1F6FF}, {0x1F900, 0x1F9FF}, {0x20000, 0x3FFFD},
};

/* Sorted. Combining marks; no column of their own. */
static const struct range combining[] = {
    {0x0300, 0x036F}, {0x0483, 0x0489}, {0x0591, 0x05BD}, {0x064B, 0x065F}, {0x1AB0, 0x1AFF},
    {0x1DC0, 0x1DFF}, {0x20D0, 0x20FF}, {0x302A, 0x302D}, {0xFE20, 0xFE2F},
};

static bool in_ranges(const struct range *ranges, size_t count, uint32_t point)
{
    size_t low = 0;
    size_t high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (point > ranges[middle].last) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < count && point >= ranges[low].first;
}

bool text_dangerous(uint32_t point)
{
    return in_ranges(dangerous, COUNT_OF(dangerous), point);
}

size_t text_utf8_next(const void *bytes, size_t len, uint32_t *ret_point)
{
    const uint8_t *p = bytes;
    if (len == 0) {
        return 0;
    }
    if (p[0] < 0x80) {
        *ret_point = p[0];
        return 1;
    }
    size_t n = p[0] >= 0xF0 ? 4 : p[0] >= 0xE0 ? 3 : 2;
    if (p[0] < 0xC2 || p[0] > 0xF4 || len < n) {
        return 0;
    }
    uint32_t point = p[0] & (0x7Fu >> n);
    for (size_t i = 1; i < n; i++) {
        if ((p[i] & 0xC0) != 0x80) {
            return 0;
        }
        point = point << 6 | (p[i] & 0x3Fu);
    }
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    if (point < least[n] || point > 0x10FFFF || (point >= 0xD800 && point <= 0xDFFF)) {
        return 0;
    }
    *ret_point = point;
    return n;
}

/* Length of the prefix that is plain ASCII, eight bytes at a time. */
static size_t ascii_run(const uint8_t *p, size_t len)
{
    size_t i = 0;
    uint64_t word;
    while (i + sizeof(word) <= len) {
        memcpy(&word, p + i, sizeof(word));
        if ((word & UINT64_C(0x8080808080808080)) != 0) {
            break;
        }
        i += sizeof(word);
    }
    while (i < len && p[i] < 0x80) {
        i++;
    }
    return i;
}

bool text_utf8_valid(const void *bytes, size_t len)
{
    const uint8_t *p = bytes;
    uint32_t point;
    for (size_t i = 0; i < len;) {
        i += ascii_run(p + i, len - i);
        size_t n = i < len ? text_utf8_next(p + i, len - i, &point) : 0;
        if (n == 0 && i < len) {
            return false;
        }
        i += n;
    }
    return true;
}

/* One character of the input in its visible form. */
struct unit {
    char s[16];
    size_t len;
    size_t taken; /* bytes of the input */
};

static const char digits[] = "0123456789abcdef";

static struct unit unit_byte(uint8_t byte)
{
    return (struct unit){{'\\', 'x', digits[byte >> 4], digits[byte & 15]}, 4, 1};
}

static struct unit unit_of(const uint8_t *p, size_t len)
{
    uint32_t point;
    size_t n = text_utf8_next(p, len, &point);
    if (n == 0 || (n == 1 && text_dangerous(point))) {
        return unit_byte(p[0]);
    }
    struct unit unit = {.taken = n};
    if (!text_dangerous(point)) {
        memcpy(unit.s, p, n);
        unit.len = n;
        return unit;
    }
    memcpy(unit.s, "\\u{", 3);
    unit.len = 3;
    int shift = 20;
    while (shift > 0 && (point >> shift) == 0) {
        shift -= 4;
    }
    for (; shift >= 0; shift -= 4) {
        unit.s[unit.len++] = digits[(point >> shift) & 15];
    }
    unit.s[unit.len++] = '}';
    return unit;
}

/* A place being filled up to a maximum, with the last point at which "..." still fits. */
struct filling {
    struct buf *buf;
    size_t begin;
    size_t max; /* 0: no limit */
    size_t mark;
};

static bool fill(struct filling *filling, const char *bytes, size_t len)
{
    size_t used = filling->buf->len - filling->begin;
    if (filling->max > 0) {
        if (used + 3 <= filling->max) {
            filling->mark = filling->buf->len;
        }
        if (used + len > filling->max) {
            if (buf_ok(filling->buf)) {
                filling->buf->len = filling->mark;
                buf_add(filling->buf, "...", 3);
            }
            return false;
        }
    }
    buf_add(filling->buf, bytes, len);
    return true;
}

void text_add(struct buf *buf, const void *bytes, size_t len, size_t max)
{
    const uint8_t *p = bytes;
    struct filling filling = {buf, buf->len, max, buf->len};
    BATON_PRE(max == 0 || max > 3);
    for (size_t i = 0; i < len;) {
        struct unit unit = unit_of(p + i, len - i);
        if (!fill(&filling, unit.s, unit.len)) {
            return;
        }
        i += unit.taken;
    }
}

void text_add_lines(struct buf *buf, const void *bytes, size_t len, size_t max, const char *indent)
{
    const uint8_t *p = bytes;
    struct filling filling = {buf, buf->len, max, buf->len};
    bool at_start = true;
    BATON_PRE(max == 0 || max > 3);
    for (size_t i = 0; i < len;) {
        struct unit unit;
        if (p[i] == '\n' || (p[i] == '\r' && i + 1 < len && p[i + 1] == '\n')) {
            unit = (struct unit){"\n", 1, p[i] == '\n' ? 1 : 2};
        } else if (p[i] == '\t') {
            unit = (struct unit){"    ", 4, 1};
        } else {
            unit = unit_of(p + i, len - i);
        }
        if ((at_start && unit.s[0] != '\n' && !fill(&filling, indent, strlen(indent))) ||
            !fill(&filling, unit.s, unit.len)) {
            return;
        }
        at_start = unit.s[0] == '\n';
        i += unit.taken;
    }
}

struct text_quote text_quote(const void *bytes, size_t len)
{
    const uint8_t *p = bytes;
    struct text_quote quote = {""};
    size_t used = 0;
    size_t mark = 0;
    for (size_t i = 0; i < len;) {
        struct unit unit = unit_of(p + i, len - i);
        if (used + 3 <= TEXT_QUOTE_MAX) {
            mark = used;
        }
        if (used + unit.len > TEXT_QUOTE_MAX) {
            memcpy(quote.s + mark, "...", 4);
            return quote;
        }
        memcpy(quote.s + used, unit.s, unit.len);
        used += unit.len;
        i += unit.taken;
    }
    quote.s[used] = '\0';
    return quote;
}

struct text_quote text_quote_of(const char *text)
{
    return text_quote(text, text != NULL ? strlen(text) : 0);
}

static void json_escape(struct buf *buf, uint32_t unit)
{
    char s[6] = {'\\',
                 'u',
                 digits[(unit >> 12) & 15],
                 digits[(unit >> 8) & 15],
                 digits[(unit >> 4) & 15],
                 digits[unit & 15]};
    buf_add(buf, s, sizeof(s));
}

static void json_escape_point(struct buf *buf, uint32_t point)
{
    static const char letters[] = "\"\"\\\\\bb\ff\nn\rr\tt";
    for (const char *at = letters; *at != '\0'; at += 2) {
        if ((uint32_t)(unsigned char)at[0] == point) {
            char s[2] = {'\\', at[1]};
            buf_add(buf, s, sizeof(s));
            return;
        }
    }
    if (point > 0xFFFF) {
        json_escape(buf, 0xD800 + ((point - 0x10000) >> 10));
        json_escape(buf, 0xDC00 + ((point - 0x10000) & 0x3FF));
    } else {
        json_escape(buf, point);
    }
}

/* Of a byte in a JSON string: 0 goes as it is, 1 must be escaped, 2 begins or breaks a sequence. */
static int json_kind(uint8_t c)
{
    return c >= 0x80 ? 2 : c < 0x20 || c == '"' || c == '\\' ? 1 : 0;
}

static void json_add(struct buf *buf, const uint8_t *p, size_t len, bool for_people)
{
    size_t start = 0; /* of the run that goes as it is */
    size_t i = 0;
    buf_add_char(buf, '"');
    while (i < len) {
        int kind = json_kind(p[i]);
        if (kind == 0 && !(for_people && p[i] == 0x7F)) {
            i++;
            continue;
        }
        uint32_t point = p[i];
        size_t n = kind == 2 ? text_utf8_next(p + i, len - i, &point) : 1;
        if (kind == 2 && n > 0 && !(for_people && text_dangerous(point))) {
            i += n;
            continue;
        }
        buf_add(buf, p + start, i - start);
        if (n == 0) {
            buf_add(buf, "\xEF\xBF\xBD", 3);
            n = 1;
        } else {
            json_escape_point(buf, point);
        }
        i += n;
        start = i;
    }
    buf_add(buf, p + start, len - start);
    buf_add_char(buf, '"');
}

void text_json_add(struct buf *buf, const void *bytes, size_t len)
{
    json_add(buf, bytes, len, true);
}

void text_json_add_plain(struct buf *buf, const void *bytes, size_t len)
{
    json_add(buf, bytes, len, false);
}

size_t text_width(const char *text, size_t len)
{
    size_t width = 0;
    for (size_t i = 0; i < len;) {
        uint32_t point;
        size_t n = text_utf8_next(text + i, len - i, &point);
        if (n == 0) {
            n = 1;
            width++;
        } else if (in_ranges(wide, COUNT_OF(wide), point)) {
            width += 2;
        } else if (!in_ranges(combining, COUNT_OF(combining), point)) {
            width++;
        }
        i += n;
    }
    return width;
}

void text_wrap(struct buf *out, const char *text, size_t first, size_t indent, size_t width)
{
    size_t column = 0;
    size_t begin = first;
    while (*text != '\0') {
        if (*text == '\n') {
            buf_add_char(out, '\n');
            if (text[1] == '\n') {
                buf_add_char(out, '\n');
            }
            column = 0;
            text += strspn(text, "\n");
            continue;
        }
        if (*text == ' ') {
            text++;
            continue;
        }
        size_t n = strcspn(text, " \n");
        size_t columns = text_width(text, n);
        if (width > 0 && column > 0 && column + 1 + columns > width) {
            buf_add_char(out, '\n');
            column = 0;
        }
        if (column == 0) {
            for (size_t i = 0; i < begin; i++) {
                buf_add_char(out, ' ');
            }
            column = begin;
            begin = indent;
        } else {
            buf_add_char(out, ' ');
            column++;
        }
        buf_add(out, text, n);
        column += columns;
        text += n;
    }
    buf_add_char(out, '\n');
}
