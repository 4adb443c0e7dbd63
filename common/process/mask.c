/*
 * Finds known secrets in streams: Wu-Manber over all patterns at once, since executors may print
 * hundreds of megabytes and each secret has a dozen forms.
 * In: worker/executor (output, results, messages). Out: nothing.
 */
#include "common/process/mask.h"

#include "common/base/check.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define TABLE 4096
#define LINE_SECRET_MIN 16

struct pattern {
    unsigned char *bytes;
    size_t len;
    int next_hash;  /* patterns whose window ends with the same two bytes; -1 ends */
    int next_first; /* patterns that begin with the same byte */
};

struct mask {
    struct pattern *patterns;
    size_t count;
    size_t cap;
    size_t shortest;
    size_t longest;
    bool broken;
    uint8_t shift[TABLE]; /* how far a window that ends with these two bytes may move on */
    int hash_head[TABLE];
    int first_head[256];
};

static unsigned hash2(const unsigned char *at)
{
    return ((unsigned)at[0] | (unsigned)at[1] << 8) * 2654435761u >> 20;
}

/* ---- patterns ---- */

static void add_pattern(struct mask *mask, const void *bytes, size_t len)
{
    if (len < MASK_SECRET_MIN) {
        return;
    }
    for (size_t i = 0; i < mask->count; i++) {
        if (mask->patterns[i].len == len && memcmp(mask->patterns[i].bytes, bytes, len) == 0) {
            return;
        }
    }
    if (mask->count == mask->cap) {
        size_t cap = mask->cap == 0 ? 16 : mask->cap * 2;
        struct pattern *grown = realloc(mask->patterns, cap * sizeof(*grown));
        if (grown == NULL) {
            mask->broken = true;
            return;
        }
        mask->patterns = grown;
        mask->cap = cap;
    }
    unsigned char *copy = malloc(len);
    if (copy == NULL) {
        mask->broken = true;
        return;
    }
    memcpy(copy, bytes, len);
    mask->patterns[mask->count++] = (struct pattern){copy, len, -1, -1};
}

static void add_buf(struct mask *mask, struct buf *form)
{
    if (!buf_ok(form)) {
        mask->broken = true;
    } else {
        add_pattern(mask, form->data, form->len);
        explicit_bzero(form->data, form->len);
    }
    buf_clear(form);
}

/* The characters of base64 that are determined by the secret when skip bytes precede it. */
static void add_base64(struct mask *mask, const unsigned char *s, size_t n, size_t skip,
                       const char *alphabet, struct buf *form)
{
    size_t first_bit = skip * 8;
    size_t end_bit = (skip + n) * 8;
    for (size_t bit = (first_bit + 5) / 6 * 6; bit + 6 <= end_bit; bit += 6) {
        size_t byte = bit / 8 - skip;
        unsigned pair = (unsigned)s[byte] << 8 | (byte + 1 < n ? s[byte + 1] : 0u);
        buf_add_char(form, alphabet[pair >> (10 - bit % 8) & 63]);
    }
    add_buf(mask, form);
}

static void add_hex(struct mask *mask, const unsigned char *s, size_t n, const char *digits,
                    struct buf *form)
{
    for (size_t i = 0; i < n; i++) {
        buf_add_char(form, digits[s[i] >> 4]);
        buf_add_char(form, digits[s[i] & 15]);
    }
    add_buf(mask, form);
}

static void add_url(struct mask *mask, const unsigned char *s, size_t n, const char *digits,
                    bool plus, struct buf *form)
{
    for (size_t i = 0; i < n; i++) {
        if ((s[i] >= 'a' && s[i] <= 'z') || (s[i] >= 'A' && s[i] <= 'Z') ||
            (s[i] >= '0' && s[i] <= '9') || strchr("-._~", s[i]) != NULL) {
            buf_add_char(form, (char)s[i]);
        } else if (plus && s[i] == ' ') {
            buf_add_char(form, '+');
        } else {
            buf_add_char(form, '%');
            buf_add_char(form, digits[s[i] >> 4]);
            buf_add_char(form, digits[s[i] & 15]);
        }
    }
    add_buf(mask, form);
}

static void add_json(struct mask *mask, const unsigned char *s, size_t n, bool slash,
                     const char *digits, struct buf *form)
{
    static const char named[] = "\b\f\n\r\t";
    static const char letters[] = "bfnrt";
    for (size_t i = 0; i < n; i++) {
        const char *special = s[i] < 32 ? strchr(named, s[i]) : NULL;
        if (s[i] == '"' || s[i] == '\\' || (slash && s[i] == '/')) {
            buf_add_char(form, '\\');
            buf_add_char(form, (char)s[i]);
        } else if (special != NULL) {
            buf_add_char(form, '\\');
            buf_add_char(form, letters[special - named]);
        } else if (s[i] < 32 || s[i] == 127) {
            buf_add_text(form, "\\u00");
            buf_add_char(form, digits[s[i] >> 4]);
            buf_add_char(form, digits[s[i] & 15]);
        } else {
            buf_add_char(form, (char)s[i]);
        }
    }
    add_buf(mask, form);
}

static void add_secret(struct mask *mask, const unsigned char *s, size_t n)
{
    static const char standard[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    static const char url[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    static const char lower[] = "0123456789abcdef";
    static const char upper[] = "0123456789ABCDEF";
    struct buf form = BUF_INIT;
    if (n < MASK_SECRET_MIN) {
        return;
    }
    add_pattern(mask, s, n);
    for (size_t skip = 0; skip < 3; skip++) {
        add_base64(mask, s, n, skip, standard, &form);
        add_base64(mask, s, n, skip, url, &form);
    }
    add_hex(mask, s, n, lower, &form);
    add_hex(mask, s, n, upper, &form);
    for (int plus = 0; plus < 2; plus++) {
        add_url(mask, s, n, lower, plus != 0, &form);
        add_url(mask, s, n, upper, plus != 0, &form);
        add_json(mask, s, n, plus != 0, lower, &form);
        add_json(mask, s, n, plus != 0, upper, &form);
    }
    buf_done(&form);
}

static void add_lines(struct mask *mask, const char *secret)
{
    if (strchr(secret, '\n') == NULL) {
        return;
    }
    for (const char *at = secret; *at != '\0';) {
        at += strspn(at, " \t\r\n");
        size_t n = strcspn(at, "\r\n");
        if (n >= LINE_SECRET_MIN) {
            add_secret(mask, (const unsigned char *)at, n);
        }
        at += n;
    }
}

/* The tables; patterns do not change any more. */
static void index_patterns(struct mask *mask)
{
    mask->shortest = SIZE_MAX;
    for (size_t i = 0; i < mask->count; i++) {
        size_t len = mask->patterns[i].len;
        mask->shortest = len < mask->shortest ? len : mask->shortest;
        mask->longest = len > mask->longest ? len : mask->longest;
    }
    size_t window = mask->shortest;
    size_t far = window - 1 < 255 ? window - 1 : 255;
    memset(mask->shift, (int)far, sizeof(mask->shift));
    for (size_t i = 0; i < TABLE; i++) {
        mask->hash_head[i] = -1;
    }
    for (size_t i = 0; i < 256; i++) {
        mask->first_head[i] = -1;
    }
    for (size_t i = 0; i < mask->count; i++) {
        struct pattern *pattern = &mask->patterns[i];
        for (size_t at = 0; at + 2 <= window; at++) {
            size_t to_end = window - 2 - at;
            uint8_t *shift = &mask->shift[hash2(pattern->bytes + at)];
            *shift = to_end < *shift ? (uint8_t)to_end : *shift;
        }
        unsigned h = hash2(pattern->bytes + window - 2);
        pattern->next_hash = mask->hash_head[h];
        mask->hash_head[h] = (int)i;
        pattern->next_first = mask->first_head[pattern->bytes[0]];
        mask->first_head[pattern->bytes[0]] = (int)i;
    }
}

struct mask *mask_new(const char *const *secrets, size_t n)
{
    struct mask *mask = calloc(1, sizeof(*mask));
    if (mask == NULL) {
        return NULL;
    }
    for (size_t i = 0; i < n; i++) {
        add_secret(mask, (const unsigned char *)secrets[i], strlen(secrets[i]));
        add_lines(mask, secrets[i]);
    }
    if (mask->broken) {
        mask_free(mask);
        return NULL;
    }
    if (mask->count > 0) {
        index_patterns(mask);
    }
    return mask;
}

void mask_free(struct mask *mask)
{
    if (mask == NULL) {
        return;
    }
    for (size_t i = 0; i < mask->count; i++) {
        explicit_bzero(mask->patterns[i].bytes, mask->patterns[i].len);
        free(mask->patterns[i].bytes);
    }
    free(mask->patterns);
    free(mask);
}

const struct mask *mask_nothing(void)
{
    static const struct mask nothing;
    return &nothing;
}

/* ---- search ---- */

/* The longest pattern at data, whole within len; sets *ret_open if another could go on behind it.
 */
static size_t match_at(const struct mask *mask, const unsigned char *data, size_t len,
                       bool *ret_open)
{
    size_t best = 0;
    for (int i = mask->first_head[data[0]]; i >= 0; i = mask->patterns[i].next_first) {
        const struct pattern *pattern = &mask->patterns[i];
        if (pattern->len > len) {
            *ret_open = *ret_open || memcmp(pattern->bytes, data, len) == 0;
        } else if (pattern->len > best && memcmp(pattern->bytes, data, pattern->len) == 0) {
            best = pattern->len;
        }
    }
    return best;
}

/* The next position from `at` where a pattern may begin; positions up to last are looked at. */
static size_t next_candidate(const struct mask *mask, const unsigned char *data, size_t at,
                             size_t last)
{
    size_t window = mask->shortest;
    while (at <= last) {
        unsigned h = hash2(data + at + window - 2);
        if (mask->shift[h] == 0) {
            for (int i = mask->hash_head[h]; i >= 0; i = mask->patterns[i].next_hash) {
                if (mask->patterns[i].bytes[0] == data[at]) {
                    return at;
                }
            }
            at++;
        } else {
            at += mask->shift[h];
        }
    }
    return last + 1;
}

/* Masks data into out. Returns how much of it is decided; the rest waits for more unless at_end.
 * *covered: leading bytes that belong to a secret already replaced; then of what remains. */
static size_t mask_bytes(const struct mask *mask, const unsigned char *data, size_t len,
                         bool at_end, size_t *covered, struct buf *out)
{
    size_t cover = *covered; /* up to here all is replaced */
    size_t done = 0;         /* up to here out holds it */
    size_t at = 0;
    while (at < len) {
        if (len - at >= mask->longest) {
            size_t last = len - mask->longest;
            at = next_candidate(mask, data, at, last);
            if (at > last) {
                continue;
            }
        }
        bool open = false;
        size_t matched = match_at(mask, data + at, len - at, &open);
        if (open && !at_end) {
            break;
        }
        if (matched > 0) {
            if (at >= cover) {
                size_t from = done > cover ? done : cover;
                buf_add(out, data + from, at - from);
                buf_add_text(out, MASK_TEXT);
                done = at;
            }
            cover = at + matched > cover ? at + matched : cover;
        }
        at++;
    }
    size_t from = done > cover ? done : cover;
    if (at > from) {
        buf_add(out, data + from, at - from);
    }
    *covered = cover > at ? cover - at : 0;
    return at;
}

void mask_add(const struct mask *mask, const void *bytes, size_t len, struct buf *out)
{
    size_t covered = 0;
    if (mask->count == 0) {
        buf_add(out, bytes, len);
    } else {
        mask_bytes(mask, bytes, len, true, &covered, out);
    }
}

void mask_stream_init(struct mask_stream *stream, const struct mask *mask)
{
    *stream = (struct mask_stream){mask, BUF_INIT, 0};
}

void mask_stream_done(struct mask_stream *stream)
{
    if (stream->held.data != NULL) {
        explicit_bzero(stream->held.data, stream->held.cap);
    }
    buf_done(&stream->held);
}

static void advance(struct mask_stream *stream, bool at_end, struct buf *out)
{
    struct buf *held = &stream->held;
    size_t decided = mask_bytes(stream->mask, (const unsigned char *)held->data, held->len, at_end,
                                &stream->covered, out);
    memmove(held->data, held->data + decided, held->len - decided);
    held->len -= decided;
}

void mask_stream_feed(struct mask_stream *stream, const void *bytes, size_t len, struct buf *out)
{
    if (stream->mask->count == 0) {
        buf_add(out, bytes, len);
        return;
    }
    buf_add(&stream->held, bytes, len);
    if (!buf_ok(&stream->held)) { /* rather lose output than show a secret */
        buf_clear(&stream->held);
        stream->covered = 0;
        return;
    }
    if (stream->held.len > 0) {
        advance(stream, false, out);
    }
}

void mask_stream_end(struct mask_stream *stream, struct buf *out)
{
    if (stream->held.len > 0) {
        advance(stream, true, out);
    }
}
