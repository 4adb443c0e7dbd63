/*
 * What an attempt took, as its executor told it. Every member is optional: agent programs differ in what
 * they tell. For people, sums and budgets; nothing else is decided by it.
 * FIELD(name, kind, need, max): common/record/fields.h.
 */
#ifndef BATON_RECORD_TBL_USAGE_FIELDS_H
#define BATON_RECORD_TBL_USAGE_FIELDS_H

/* USAGE_TEXT(name, max), USAGE_NUMBER(name); cost_micros: millionths of a US dollar */
/* clang-format off */
#define USAGE_TEXTS(USAGE_TEXT) \
    USAGE_TEXT(agent,        16) \
    USAGE_TEXT(model,        128) \
    USAGE_TEXT(session,      128) \
    USAGE_TEXT(verdict_from, 16) \
    USAGE_TEXT(cost_from,    16)

#define USAGE_NUMBERS(USAGE_NUMBER) \
    USAGE_NUMBER(input_tokens) \
    USAGE_NUMBER(cached_tokens) \
    USAGE_NUMBER(output_tokens) \
    USAGE_NUMBER(cost_micros) \
    USAGE_NUMBER(duration_ms)
/* clang-format on */

#endif
