/*
 * What chooses among dead letters: --where KEY=VALUE[,KEY=VALUE…] and the options of the same names.
 * In: cmd_dlq.c, cmd_dlq_list.c, cmd_dlq_choose.c
 */
#include "producer/cmd_dlq.h"

#include "common/base/check.h"
#include "common/base/quantity.h"
#include "common/base/text.h"

#include <stdio.h>
#include <string.h>

/* KEY(word): each is an option, too. */
#define KEYS(KEY)                                                                                  \
    KEY(service) KEY(role) KEY(class) KEY(code) KEY(run) KEY(origin) KEY(older) KEY(newer)
#define KEY_ENUM(word) KEY_##word,
#define KEY_WORD(word) #word,
enum key { KEYS(KEY_ENUM) KEY_COUNT };
static const char *const keys[] = {KEYS(KEY_WORD)};
#undef KEY_ENUM
#undef KEY_WORD

bool dlq_filtered(const struct command *cmd)
{
    for (size_t i = 0; i < KEY_COUNT; i++) {
        if (command_given(cmd, keys[i])) {
            return true;
        }
    }
    return command_given(cmd, "where");
}

static baton_code no_key(const char *word, struct baton_error *err)
{
    char known[128] = "";
    for (size_t i = 0; i < KEY_COUNT; i++) {
        const size_t len = strlen(known);
        snprintf(known + len, sizeof(known) - len, "%s%s", i > 0 ? ", " : "", keys[i]);
    }
    return baton_fail(err, BATON_E_invalid_request,
                      "--where '%s': dead letters are chosen by KEY=VALUE, keys are: %s",
                      text_quote_of(word).s, known);
}

/* A value by its key, wherever it was said. */
static baton_code take(struct dlq_filter *filter, enum key key, const char *value,
                       struct baton_error *err)
{
    struct dead_filter *dead = &filter->dead;
    const size_t len = strlen(value);
    int64_t ms = 0;
    switch (key) {
    case KEY_service:
        dead->service = value;
        return BATON_OK;
    case KEY_run:
        dead->run_id = value;
        return BATON_OK;
    case KEY_origin:
        dead->origin = value;
        return BATON_OK;
    case KEY_role:
        dead->by_role = true;
        return role_parse(value, len, &dead->role)
                   ? BATON_OK
                   : baton_fail(err, BATON_E_invalid_request, "'%s' is no role; roles are: %s",
                                text_quote_of(value).s, role_list());
    case KEY_class:
        dead->by_class = true;
        return failure_parse(value, len, &dead->class)
                   ? BATON_OK
                   : baton_fail(err, BATON_E_invalid_request,
                                "'%s' is no failure class; classes are: %s", text_quote_of(value).s,
                                failure_list());
    case KEY_code:
        dead->by_code = true;
        return baton_code_parse(value, &dead->code)
                   ? BATON_OK
                   : baton_fail(err, BATON_E_invalid_request,
                                "'%s' is no code; `baton dlq list` shows those there are",
                                text_quote_of(value).s);
    case KEY_older:
    case KEY_newer:
        if (!quantity_duration_parse(value, len, &ms)) {
            return baton_fail(err, BATON_E_invalid_request,
                              "%s=%s is no duration: 15m, 1h, 2d and the like", keys[key],
                              text_quote_of(value).s);
        }
        *(key == KEY_older ? &dead->before : &dead->after) = (struct wall_ms){wall_now().v - ms};
        return BATON_OK;
    case KEY_COUNT:
        break;
    }
    BATON_INVARIANT(false);
    return BATON_E_unexpected;
}

/* One `KEY=VALUE`, len bytes. */
static baton_code take_pair(struct dlq_filter *filter, const char *pair, size_t len, bool *given,
                            struct baton_error *err)
{
    char word[sizeof(filter->words[0])];
    if (len >= sizeof(word)) {
        return no_key(pair, err);
    }
    memcpy(word, pair, len);
    word[len] = '\0';
    char *sign = strchr(word, '=');
    if (sign == NULL || sign[1] == '\0') {
        return no_key(word, err);
    }
    *sign = '\0';
    for (size_t i = 0; i < KEY_COUNT; i++) {
        if (strcmp(word, keys[i]) != 0) {
            continue;
        }
        if (given[i]) {
            return baton_fail(err, BATON_E_invalid_request,
                              "%s is said twice, and one letter has one: say it once", word);
        }
        given[i] = true;
        memcpy(filter->words[i], sign + 1, strlen(sign + 1) + 1);
        return take(filter, (enum key)i, filter->words[i], err);
    }
    *sign = '=';
    return no_key(word, err);
}

static baton_code take_where(struct dlq_filter *filter, const char *where, bool *given,
                             struct baton_error *err)
{
    baton_code rc = BATON_OK;
    const char *at = where;
    while (rc == BATON_OK && at != NULL) {
        const char *comma = strchr(at, ',');
        rc = take_pair(filter, at, comma != NULL ? (size_t)(comma - at) : strlen(at), given, err);
        at = comma != NULL ? comma + 1 : NULL;
    }
    return rc;
}

baton_code dlq_filter_of(struct command *cmd, struct dlq_filter *ret_filter,
                         struct baton_error *err)
{
    bool given[KEY_COUNT] = {false};
    size_t n = 0;
    const char *const *wheres = command_list(cmd, "where", &n);
    BATON_PRE(COUNT_OF(ret_filter->words) >= KEY_COUNT);
    memset(ret_filter, 0, sizeof(*ret_filter));
    baton_code rc = BATON_OK;
    for (size_t i = 0; rc == BATON_OK && i < KEY_COUNT; i++) {
        given[i] = command_given(cmd, keys[i]);
        if (given[i] && i != KEY_older && i != KEY_newer) {
            rc = take(ret_filter, (enum key)i, command_text(cmd, keys[i]), err);
        }
    }
    const struct wall_ms now = wall_now();
    if (given[KEY_older]) {
        ret_filter->dead.before.v = now.v - command_int(cmd, "older");
    }
    if (given[KEY_newer]) {
        ret_filter->dead.after.v = now.v - command_int(cmd, "newer");
    }
    for (size_t i = 0; rc == BATON_OK && i < n; i++) {
        rc = take_where(ret_filter, wheres[i], given, err);
    }
    return rc;
}
