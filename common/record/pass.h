/*
 * A pass: the signed hop by which one service hands a turn on to another (RECORD.md section 2). It
 * is one header, `baton-pass: <statement> <key id> <signature>`; with proof: off the statement
 * alone. A statement of version 2 tells what the turn has cost so far; where that is nothing, its
 * version is 1.
 */
#ifndef BATON_RECORD_PASS_H
#define BATON_RECORD_PASS_H

#include "baton/code.h"
#include "common/base/clock.h"
#include "common/base/failure.h"
#include "common/base/id.h"
#include "common/base/limits.h"
#include "common/record/signer.h"

#include <stdbool.h>
#include <stddef.h>

#define PASSES_MAX LIMIT_PASSES
#define PASS_STATEMENT_MAX 256
#define PASS_TEXT_MAX (PASS_STATEMENT_MAX + 1 + 16 + 1 + 128)
/* Attempts and counters in a pass: far above every budget, below where a 16-bit counter of somebody
 * else would wrap to zero. */
#define PASS_COUNT_MAX 65534

/* A hop of the chain of passes. */
struct pass {
    int attempt; /* the number of the attempt that the next service begins with */
    struct service_id from;
    struct service_id to;
    int failures;
    int losses;
    int replays;
    enum failure class; /* of the attempt that was passed on */
    struct wall_ms at;
    int64_t
        cost_micros; /* of all attempts so far, in millionths of a US dollar: 0 to JSON_INT_MAX */
    char *text;      /* the whole header value; the owner of the pass frees it */
};

/* A header value taken apart, before anything in it is believed. */
struct pass_parts {
    char statement[PASS_STATEMENT_MAX + 1];
    bool is_signed;
    struct key_id key_id;        /* where signed */
    char signature_hex[128 + 1]; /* where signed */
};

/* False: neither `<statement> <key id> <signature>` nor something that may be a statement. */
bool pass_split(const char *text, size_t text_len, struct pass_parts *ret_parts);
/* Reads a statement; leaves text NULL. invalid_envelope, schema_unsupported. */
baton_code pass_parse(const char *statement, struct pass *ret_pass, struct baton_error *err);
/* The same of a header value whose proof was verified before; false: it is none. */
bool pass_read(const char *text, struct pass *ret_pass);

/*
 * Makes the header value of a hop: all members but text are the caller's, *ret_text is the caller's
 * to free. signer NULL: unsigned, for proof: off. digest is that of the turn's value.
 */
baton_code pass_make(const struct pass *pass, const struct signer *signer, const char *fleet,
                     const char *turn_id, const struct digest *digest, char **ret_text,
                     struct baton_error *err);

#endif
