/*
 * The class of an error of an agent program, and how long it asks to wait.
 * In: agent.c. Out: class_table.h
 */
#include "worker/agent/agent.h"

#include "common/base/check.h"
#include "worker/agent/class_table.h"

#include <ctype.h>
#include <string.h>

#define RETRY_AFTER_MAX_MS (INT64_C(7) * 24 * 3600 * 1000)

static const struct wording {
    const char *program;
    int status;
    const char *words;
    enum failure class;
} wordings[] = {
#define WORDING_ROW(program, status, words, class) {#program, status, words, FAILURE_##class},
    AGENT_WORDINGS(WORDING_ROW)
#undef WORDING_ROW
};

/* Behind the first place where these words (in lower case) stand, or NULL. */
static const char *find_words(const char *text, size_t len, const char *words)
{
    size_t n = strlen(words);
    for (size_t at = 0; at + n <= len; at++) {
        size_t i = 0;
        while (i < n && tolower((unsigned char)text[at + i]) == words[i]) {
            i++;
        }
        if (i == n) {
            return text + at + n;
        }
    }
    return NULL;
}

bool agent_has_words(const char *text, size_t len, const char *words)
{
    return find_words(text, len, words) != NULL;
}

static bool fits(const struct wording *row, const struct agent_program *program, int status,
                 const char *message, size_t len)
{
    return (strcmp(row->program, "any") == 0 || strcmp(row->program, program->word) == 0) &&
           (row->status == 0 || row->status == status) &&
           (row->words[0] == '\0' || find_words(message, len, row->words) != NULL);
}

bool agent_class(const struct agent_program *program, int status, const char *message, size_t len,
                 enum failure *ret_class)
{
    for (size_t i = 0; i < COUNT_OF(wordings); i++) {
        if (fits(&wordings[i], program, status, message, len)) {
            *ret_class = wordings[i].class;
            return true;
        }
    }
    if (status >= 500 && status <= 599) { /* whatever it is, it is the server's */
        *ret_class = FAILURE_unavailable;
        return true;
    }
    return false;
}

int agent_status_in(const char *text, size_t len)
{
    static const char *const before[] = {"status ",
                                         "status: ", "api error: ", "\"code\":", "\"code\": "};
    for (size_t i = 0; i < COUNT_OF(before); i++) {
        const char *at = find_words(text, len, before[i]);
        size_t left = at != NULL ? len - (size_t)(at - text) : 0;
        if (left >= 3 && (at[0] == '4' || at[0] == '5') && isdigit((unsigned char)at[1]) &&
            isdigit((unsigned char)at[2]) && (left == 3 || !isalnum((unsigned char)at[3]))) {
            return (at[0] - '0') * 100 + (at[1] - '0') * 10 + (at[2] - '0');
        }
    }
    return 0;
}

/* ---- how long to wait ---- */

static int64_t unit_ms(const char *word, size_t len)
{
    static const struct {
        const char *words;
        int64_t ms;
    } units[] = {
        {" ms millisecond milliseconds ", 1},       {" s sec secs second seconds ", 1000},
        {" m min mins minute minutes ", 60 * 1000}, {" h hr hrs hour hours ", 3600 * 1000},
        {" d day days ", 24 * 3600 * 1000},
    };
    char spaced[16] = " ";
    if (len == 0 || len > sizeof(spaced) - 3) {
        return 0;
    }
    for (size_t i = 0; i < len; i++) {
        spaced[1 + i] = (char)tolower((unsigned char)word[i]);
    }
    spaced[1 + len] = ' ';
    spaced[2 + len] = '\0';
    for (size_t i = 0; i < COUNT_OF(units); i++) {
        if (strstr(units[i].words, spaced) != NULL) {
            return units[i].ms;
        }
    }
    return 0;
}

/* A number and its unit, "1h", "3.5 seconds"; behind them, or NULL. One without a unit, as headers have
 * it, is seconds if it may be one, and no date, time or part of another word follows. */
static const char *take_quantity(const char *at, const char *end, bool bare, int64_t *ret_ms)
{
    int64_t thousandths = 0;
    int64_t digit = 1000;
    const char *from = at;
    for (; at < end && isdigit((unsigned char)*at); at++) {
        if (thousandths < INT64_C(1) << 40) { /* beyond, every unit's is too long */
            thousandths = thousandths * 10 + (*at - '0') * INT64_C(1000);
        }
    }
    if (at == from) {
        return NULL;
    }
    if (at + 1 < end && *at == '.' && isdigit((unsigned char)at[1])) {
        for (at++; at < end && isdigit((unsigned char)*at); at++) {
            digit /= 10;
            thousandths += (*at - '0') * digit;
        }
    }
    const char *behind = at;
    at += at < end && *at == ' ' ? 1 : 0;
    const char *word = at;
    while (at < end && isalpha((unsigned char)*at)) {
        at++;
    }
    int64_t unit = unit_ms(word, (size_t)(at - word));
    if (bare && at == word && (behind == end || strchr("-:/%_", *behind) == NULL)) {
        unit = 1000;
    }
    if (unit == 0) {
        return NULL;
    }
    *ret_ms = thousandths > RETRY_AFTER_MAX_MS * 1000 / unit ? RETRY_AFTER_MAX_MS
                                                             : thousandths * unit / 1000;
    return at;
}

/* "1 day 4 hours", "1h 2m 3s": all that stands there, one behind the other. */
static int64_t take_duration(const char *from, const char *end)
{
    const char *at = from;
    int64_t sum_ms = 0;
    int64_t ms;
    for (const char *next; (next = take_quantity(at, end, at == from, &ms)) != NULL; at = next) {
        sum_ms += ms;
        while (next < end && (*next == ' ' || *next == ',')) {
            next++;
        }
        if (end - next > 4 && strncmp(next, "and ", 4) == 0) {
            next += 4;
        }
    }
    return sum_ms < RETRY_AFTER_MAX_MS ? sum_ms : RETRY_AFTER_MAX_MS;
}

/* "…reached|1795962044": seconds since 1970 at which a limit is lifted. */
static int64_t until_reset(const char *at, const char *end, struct wall_ms now)
{
    int64_t seconds = 0;
    while (at < end && isdigit((unsigned char)*at) && seconds < INT64_C(100000000000)) {
        seconds = seconds * 10 + (*at++ - '0');
    }
    int64_t ms = seconds * 1000 - now.v;
    return ms <= 0 ? 0 : ms < RETRY_AFTER_MAX_MS ? ms : RETRY_AFTER_MAX_MS;
}

int64_t agent_retry_after_ms(const char *text, size_t len, struct wall_ms now)
{
    static const char *const before[] = {"retry after ",    "retry-after: ",    "try again in ",
                                         "retrydelay\":\"", "retrydelay\": \"", "reset after ",
                                         "resets in "};
    const char *end = text + len;
    for (size_t i = 0; i < COUNT_OF(before); i++) {
        const char *at = find_words(text, len, before[i]);
        int64_t ms = at != NULL ? take_duration(at, end) : 0;
        if (ms > 0) {
            return ms;
        }
    }
    const char *at = find_words(text, len, "limit reached|");
    return at != NULL ? until_reset(at, end, now) : 0;
}
