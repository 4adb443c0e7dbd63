/* The payload of a turn. Called by turn.c. */
#include "common/record/payload.h"

#include "common/base/check.h"
#include "common/base/limits.h"
#include "common/base/text.h"
#include "common/record/fields.h"
#include "common/record/tbl/payload_fields.h"

#include <string.h>

static const struct field payload_table[] = {PAYLOAD_FIELDS(FIELD_ROW)};
#define PAYLOAD_INDEX(name, kind, need, max) PAYLOAD_##name,
enum { PAYLOAD_FIELDS(PAYLOAD_INDEX) PAYLOAD_COUNT };
#undef PAYLOAD_INDEX

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void base64_encode(struct buf *out, const void *bytes, size_t len)
{
    const uint8_t *in = bytes;
    char *at = buf_reserve(out, (len + 2) / 3 * 4);
    if (at == NULL) {
        return;
    }
    for (size_t i = 0; i < len; i += 3) {
        size_t n = len - i < 3 ? len - i : 3;
        uint32_t group = (uint32_t)in[i] << 16;
        group |= n > 1 ? (uint32_t)in[i + 1] << 8 : 0;
        group |= n > 2 ? (uint32_t)in[i + 2] : 0;
        *at++ = digits[group >> 18];
        *at++ = digits[group >> 12 & 63];
        *at++ = n > 1 ? digits[group >> 6 & 63] : '=';
        *at++ = n > 2 ? digits[group & 63] : '=';
    }
    out->len = (size_t)(at - out->data);
    out->data[out->len] = '\0';
}

static int digit_of(char c)
{
    const char *at = c == '\0' ? NULL : strchr(digits, c);
    return at == NULL ? -1 : (int)(at - digits);
}

/* Four characters to n bytes (3, or fewer where `=` stands), 0 if they are none. */
static size_t decode_group(const char *in, bool last, uint8_t out[3])
{
    int d[4];
    size_t pad = 0;
    for (int i = 0; i < 4; i++) {
        d[i] = digit_of(in[i]);
        if (d[i] < 0) {
            if (!last || i < 2 || in[i] != '=') {
                return 0;
            }
            pad++;
            d[i] = 0;
        } else if (pad > 0) {
            return 0;
        }
    }
    uint32_t group =
        (uint32_t)d[0] << 18 | (uint32_t)d[1] << 12 | (uint32_t)d[2] << 6 | (uint32_t)d[3];
    out[0] = (uint8_t)(group >> 16);
    out[1] = (uint8_t)(group >> 8);
    out[2] = (uint8_t)group;
    /* Bits that no byte takes must be zero, so that each content has one spelling. */
    if ((pad == 1 && (d[2] & 3) != 0) || (pad == 2 && (d[1] & 15) != 0)) {
        return 0;
    }
    return 3 - pad;
}

bool base64_decode(struct buf *out, const char *text, size_t len)
{
    if (len % 4 != 0) {
        return false;
    }
    for (size_t i = 0; i < len; i += 4) {
        uint8_t bytes[3];
        size_t n = decode_group(text + i, i + 4 == len, bytes);
        if (n == 0) {
            return false;
        }
        if (out != NULL) {
            buf_add(out, bytes, n);
        }
    }
    return true;
}

static bool media_type_valid(const char *text, size_t len)
{
    const char *slash = memchr(text, '/', len);
    for (size_t i = 0; i < len; i++) {
        if (text[i] < 0x20 || text[i] > 0x7E) {
            return false;
        }
    }
    return slash != NULL && slash != text && slash != text + len - 1;
}

baton_code payload_check(const struct json_value *payload, struct baton_error *err)
{
    const struct json_value *v[PAYLOAD_COUNT];
    baton_code rc = fields_read(payload, "payload", payload_table, PAYLOAD_COUNT, v, err);
    size_t len;
    if (rc != BATON_OK) {
        return rc;
    }
    const char *media_type = json_text(v[PAYLOAD_media_type], &len);
    if (!media_type_valid(media_type, len)) {
        return baton_fail(err, BATON_E_invalid_envelope,
                          "payload: media_type '%s' is not type/subtype",
                          text_quote(media_type, len).s);
    }
    bool by_ref = v[PAYLOAD_ref] != NULL && v[PAYLOAD_sha256] != NULL && v[PAYLOAD_size] != NULL;
    int any_ref =
        (v[PAYLOAD_ref] != NULL) + (v[PAYLOAD_sha256] != NULL) + (v[PAYLOAD_size] != NULL);
    int forms = (v[PAYLOAD_text] != NULL) + (v[PAYLOAD_base64] != NULL) + (any_ref > 0);
    if (forms != 1 || (any_ref > 0 && !by_ref)) {
        return baton_fail(err, BATON_E_invalid_envelope,
                          "payload: holds media_type and exactly one of text, base64, or ref with "
                          "sha256 and size");
    }
    if (v[PAYLOAD_base64] != NULL) {
        const char *text = json_text(v[PAYLOAD_base64], &len);
        if (!base64_decode(NULL, text, len)) {
            return baton_fail(err, BATON_E_invalid_envelope,
                              "payload: base64 is not in the standard alphabet with padding");
        }
    }
    return BATON_OK;
}

void payload_write(struct jsonw *w, const char *media_type, const void *bytes, size_t len)
{
    bool text = len == 0 || (memchr(bytes, '\0', len) == NULL && text_utf8_valid(bytes, len));
    if (media_type == NULL) {
        media_type = text ? "text/plain" : "application/octet-stream";
    }
    jsonw_begin_object(w);
    jsonw_key_plain(w, "media_type", media_type, strlen(media_type));
    if (text) {
        jsonw_key_plain(w, "text", len == 0 ? "" : bytes, len);
    } else {
        struct buf encoded = BUF_INIT;
        base64_encode(&encoded, bytes, len);
        w->buf->broken = w->buf->broken || !buf_ok(&encoded);
        jsonw_key_plain(w, "base64", encoded.data, encoded.len);
        buf_done(&encoded);
    }
    jsonw_end(w);
}
