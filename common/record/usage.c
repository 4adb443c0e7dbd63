/*
 * Reads and writes what an attempt took. In: turn_record.c, control.c, worker/agent. Out: fields.c
 */
#include "common/record/usage.h"

#include "common/base/check.h"
#include "common/record/fields.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_ROW(name, max) {#name, FIELD_line, FIELD_optional, (max)},
#define NUMBER_ROW(name) {#name, FIELD_count, FIELD_optional, JSON_INT_MAX},
static const struct field usage_table[] = {USAGE_TEXTS(TEXT_ROW) USAGE_NUMBERS(NUMBER_ROW)};
#undef TEXT_ROW
#undef NUMBER_ROW

#define ENUM_TEXT(name, max) U_##name,
#define ENUM_NUMBER(name) U_##name,
enum { USAGE_TEXTS(ENUM_TEXT) USAGE_NUMBERS(ENUM_NUMBER) U_COUNT };
#undef ENUM_TEXT
#undef ENUM_NUMBER

struct usage usage_none(void)
{
    struct usage usage;
    memset(&usage, 0, sizeof(usage));
#define NOT_TOLD(name) usage.name = -1;
    USAGE_NUMBERS(NOT_TOLD)
#undef NOT_TOLD
    return usage;
}

static bool plain(const char *text)
{
    for (; *text != '\0'; text++) {
        if (*text < 0x20 || *text > 0x7e || *text == '"' || *text == '\\') {
            return false;
        }
    }
    return true;
}

baton_code usage_read(const struct json_value *object, struct usage *ret_usage,
                      struct baton_error *err)
{
    const struct json_value *v[U_COUNT];
    struct usage usage = usage_none();
    baton_code rc = fields_read(object, "usage", usage_table, U_COUNT, v, err);
    if (rc != BATON_OK) {
        return rc;
    }
    for (size_t i = 0; i < U_COUNT; i++) {
        if (v[i] != NULL && usage_table[i].kind == FIELD_line && !plain(field_text(v[i]))) {
            return baton_fail(err, BATON_E_invalid_envelope, "usage: %s is no plain text",
                              usage_table[i].name);
        }
    }
#define TAKE_TEXT(name, max)                                                                       \
    snprintf(usage.name, sizeof(usage.name), "%s", field_text(v[U_##name]));
    USAGE_TEXTS(TAKE_TEXT)
#undef TAKE_TEXT
#define TAKE_NUMBER(name) usage.name = v[U_##name] != NULL ? json_int(v[U_##name]) : -1;
    USAGE_NUMBERS(TAKE_NUMBER)
#undef TAKE_NUMBER
    *ret_usage = usage;
    return BATON_OK;
}

bool usage_parse(const char *text, struct usage *ret_usage)
{
    struct json_doc *doc = NULL;
    struct baton_error err;
    bool ok = text != NULL && text[0] != '\0' &&
              json_parse(text, strlen(text), USAGE_TEXT_MAX, 2, &doc, &err) == BATON_OK &&
              json_kind(json_root(doc)) == JSON_object &&
              usage_read(json_root(doc), ret_usage, &err) == BATON_OK;
    json_free(doc);
    return ok;
}

void usage_numbers(const struct usage *usage, struct jsonw *w)
{
#define WRITE_NUMBER(name)                                                                         \
    if (usage->name >= 0) {                                                                        \
        jsonw_key_int(w, #name, usage->name < JSON_INT_MAX ? usage->name : JSON_INT_MAX);          \
    }
    USAGE_NUMBERS(WRITE_NUMBER)
#undef WRITE_NUMBER
}

void usage_members(const struct usage *usage, struct jsonw *w)
{
#define WRITE_TEXT(name, max) field_write_some(w, #name, usage->name);
    USAGE_TEXTS(WRITE_TEXT)
#undef WRITE_TEXT
    usage_numbers(usage, w);
}

char *usage_text(const struct usage *usage)
{
    struct buf text = BUF_INIT;
    struct jsonw w = jsonw_to(&text);
    jsonw_begin_object(&w);
    usage_members(usage, &w);
    jsonw_end(&w);
    return buf_take(&text, NULL);
}

void usage_add(struct usage *sum, const struct usage *more)
{
#define ADD(name)                                                                                  \
    if (more->name >= 0) {                                                                         \
        int64_t have = sum->name > 0 ? sum->name : 0;                                              \
        sum->name = more->name < JSON_INT_MAX - have ? have + more->name : JSON_INT_MAX;           \
    }
    USAGE_NUMBERS(ADD)
#undef ADD
}

#define MILLION 1000000

/* Adds tokens times price: whole millions of tokens to sum, at most JSON_INT_MAX, the rest to rest. */
static void add_price(int64_t tokens, int64_t price, int64_t *sum, int64_t *rest)
{
    if (tokens > 0) {
        int64_t whole = tokens / MILLION;
        int64_t room = JSON_INT_MAX - *sum;
        *sum = price > 0 && whole > room / price ? JSON_INT_MAX : *sum + whole * price;
        *rest += tokens % MILLION * price;
    }
}

void usage_price(struct usage *usage, const struct usage_prices *prices)
{
    int64_t sum = 0;
    int64_t rest = 0;
    if (!prices->known || usage->cost_micros >= 0 ||
        (usage->input_tokens < 0 && usage->cached_tokens < 0 && usage->output_tokens < 0)) {
        return;
    }
    add_price(usage->input_tokens, prices->input, &sum, &rest);
    add_price(usage->cached_tokens, prices->cached, &sum, &rest);
    add_price(usage->output_tokens, prices->output, &sum, &rest);
    rest = rest / MILLION + (rest % MILLION != 0 ? 1 : 0);
    usage->cost_micros = rest < JSON_INT_MAX - sum ? sum + rest : JSON_INT_MAX;
    snprintf(usage->cost_from, sizeof(usage->cost_from), "%s", USAGE_COST_BY_PRICES);
}

void usage_subtract(struct usage *usage, const struct usage *before)
{
#define SUBTRACT(name)                                                                             \
    if (usage->name >= 0 && before->name > 0) {                                                    \
        usage->name = usage->name > before->name ? usage->name - before->name : 0;                 \
    }
    USAGE_NUMBERS(SUBTRACT)
#undef SUBTRACT
}
