/*
 * The payload of a turn: `{media_type, text}`, `{media_type, base64}` or `{media_type, ref, sha256,
 * size}`. Any thread.
 */
#ifndef BATON_RECORD_PAYLOAD_H
#define BATON_RECORD_PAYLOAD_H

#include "baton/code.h"
#include "common/base/buf.h"
#include "common/base/jsonw.h"
#include "common/record/json.h"

#include <stddef.h>

#define PAYLOAD_SIZE_MAX 1099511627776LL /* 1 TiB, of what a reference names */

/* invalid_envelope. */
baton_code payload_check(const struct json_value *payload, struct baton_error *err);
/* Writes bytes as a payload: text where they are UTF-8 without NUL, else base64. media_type NULL:
 * text/plain, or application/octet-stream. */
void payload_write(struct jsonw *w, const char *media_type, const void *bytes, size_t len);

/* Standard alphabet, with padding. */
void base64_encode(struct buf *out, const void *bytes, size_t len);
/* Appends what text stands for; false if it is not exactly what base64_encode writes. */
bool base64_decode(struct buf *out, const char *text, size_t len);

#endif
