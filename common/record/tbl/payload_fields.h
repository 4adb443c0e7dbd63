/* The members of a turn's payload; which of them stand together, payload.c says. */
#ifndef BATON_RECORD_TBL_PAYLOAD_FIELDS_H
#define BATON_RECORD_TBL_PAYLOAD_FIELDS_H

/* clang-format off */
#define PAYLOAD_FIELDS(FIELD) \
    FIELD(media_type, line,  required, 255) \
    FIELD(text,       text,  optional, LIMIT_VALUE) \
    FIELD(base64,     text,  optional, LIMIT_VALUE) \
    FIELD(ref,        line,  optional, 1024) \
    FIELD(sha256,     hex,   optional, 64) \
    FIELD(size,       count, optional, PAYLOAD_SIZE_MAX)
/* clang-format on */

#endif
