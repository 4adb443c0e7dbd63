/*
 * What an attempt took: agent, model, session, tokens, cost, time; kept with the attempt in the turn log,
 * in a recorded end and in a lease holder's report, always as the same small JSON object.
 * Called by executors (writing), records (checking) and commands (sums). Any thread.
 */
#ifndef BATON_RECORD_USAGE_H
#define BATON_RECORD_USAGE_H

#include "baton/code.h"
#include "common/base/buf.h"
#include "common/base/jsonw.h"
#include "common/record/json.h"
#include "common/record/tbl/usage_fields.h"

#include <stdbool.h>
#include <stdint.h>

#define USAGE_TEXT_MAX 768 /* of the object: names are plain, numbers have 16 digits */

struct usage {
#define USAGE_MEMBER(name, max) char name[(max) + 1]; /* "": not told */
    USAGE_TEXTS(USAGE_MEMBER)
#undef USAGE_MEMBER
#define USAGE_MEMBER(name) int64_t name; /* -1: not told */
    USAGE_NUMBERS(USAGE_MEMBER)
#undef USAGE_MEMBER
};

/* cost_from */
#define USAGE_COST_BY_PROGRAM "program" /* the program told it */
#define USAGE_COST_BY_PRICES "prices"   /* usage_price */

/* What a million tokens cost, in millionths of a US dollar: 0 to USAGE_PRICE_MAX. */
#define USAGE_PRICE_MAX 1000000000000
struct usage_prices {
    bool known;
    int64_t input;
    int64_t cached; /* input from a cache */
    int64_t output;
};

/* Nothing told. */
struct usage usage_none(void);
/* Strict: known members, plain texts (printable ASCII without quotation marks and backslashes).
 * invalid_envelope. */
baton_code usage_read(const struct json_value *object, struct usage *ret_usage,
                      struct baton_error *err);
/* The same of its text; false: it is none. NULL and "" are none. */
bool usage_parse(const char *text, struct usage *ret_usage);
/* One member each for what was told; into an object that is open. */
void usage_members(const struct usage *usage, struct jsonw *w);
/* The numbers alone. */
void usage_numbers(const struct usage *usage, struct jsonw *w);
/* The whole object as a text for the caller; NULL: no memory. */
char *usage_text(const struct usage *usage);
/* Where prices are known, tokens were told and costs were not: computes these, rounded up. */
void usage_price(struct usage *usage, const struct usage_prices *prices);
/* Takes off what was counted before; not below 0. */
void usage_subtract(struct usage *usage, const struct usage *before);
/* Adds what was told of more to sum; texts stay sum's. */
void usage_add(struct usage *sum, const struct usage *more);

#endif
