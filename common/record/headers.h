/*
 * The headers of a record, taken apart before anything is believed or allocated: counts and sizes
 * first, then exact names. Values are borrowed from the record.
 */
#ifndef BATON_RECORD_HEADERS_H
#define BATON_RECORD_HEADERS_H

#include "baton/code.h"
#include "common/log/log.h"
#include "common/record/pass.h"

#include <stdbool.h>
#include <stddef.h>

#define HEADER_BYTES_MAX (64 * 1024) /* names and values of a record together */
#define HEADER_HISTORY_MAX LIMIT_HISTORY

/* Names of headers that are ours. */
#define HEADER_SIG "baton-sig"
#define HEADER_PASS "baton-pass"
#define HEADER_WAIT "baton-wait"
#define HEADER_WAIT_CLAIMED "claimed" /* its only value */
#define HEADER_ATTEMPTS "baton-attempts"
#define HEADER_CODE "baton-code"
#define HEADER_CLASS "baton-class"
#define HEADER_TRACEPARENT "traceparent"

struct header_text {
    const char *at; /* NULL: absent; no NUL behind it */
    size_t len;
};

struct proofs {
    struct header_text signature; /* the whole value */
    struct key_id key_id;         /* "" where unsigned */
    const char *signature_hex;
    struct header_text passes[PASSES_MAX];
    struct pass_parts parts[PASSES_MAX];
    size_t n_passes;
};

struct headers {
    struct proofs proofs;
    struct header_text traceparent; /* well-formed, or absent */
    struct header_text history;     /* within its size, or absent */
    bool wait_claimed;
};

/*
 * Reads the headers of a handoff (may_pass) or of another record, which takes no passes.
 * bad_signature: no proof where one is required, two, or one of another form; schema_unsupported: a
 * header baton-* that is not known; invalid_envelope: too many, too large.
 */
baton_code headers_read(const struct log_record *record, bool required, bool may_pass,
                        struct headers *ret_headers, struct baton_error *err);
/* The same for proofs that come back from turn log or store. signature NULL: unsigned. */
baton_code proofs_read(const char *signature, char *const *passes, size_t n_passes, bool required,
                       struct proofs *ret_proofs, struct baton_error *err);

#endif
