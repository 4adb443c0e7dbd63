/*
 * Agent programs: the list of them, reading their lines, and what their ends mean.
 * In: worker/executor/run_agent.c. Out: claude.c, codex.c, gemini.c, verdict.c, class.c
 */
#include "worker/agent/agent.h"

#include "common/base/check.h"
#include "common/base/jsonw.h"
#include "common/base/limits.h"
#include "common/base/tbl/agents.h"
#include "common/base/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define AGENT_DECLARED(word, tells_costs) extern const struct agent_program agent_##word;
AGENTS(AGENT_DECLARED)
#undef AGENT_DECLARED

#define AGENT_ROW(word, tells_costs) &agent_##word,
static const struct agent_program *const programs[] = {AGENTS(AGENT_ROW)};
#undef AGENT_ROW

const struct agent_program *agent_find(const char *word)
{
    for (size_t i = 0; i < COUNT_OF(programs); i++) {
        if (strcmp(programs[i]->word, word) == 0) {
            return programs[i];
        }
    }
    return NULL;
}

/* ---- words ---- */

void agent_words_add(struct agent_words *words, const char *format, ...)
{
    char *text = NULL;
    va_list args;
    if (words->count == words->cap) {
        size_t cap = words->cap == 0 ? 16 : words->cap * 2;
        char **grown = realloc(words->list, cap * sizeof(*grown));
        if (grown == NULL) {
            words->broken = true;
            return;
        }
        words->list = grown;
        words->cap = cap;
    }
    va_start(args, format);
    int n = vasprintf(&text, format, args);
    va_end(args);
    if (n < 0) {
        words->broken = true;
        return;
    }
    words->list[words->count++] = text;
}

void agent_words_add_all(struct agent_words *words, const char *const *list, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        agent_words_add(words, "%s", list[i]);
    }
}

void agent_words_option(struct agent_words *words, const char *option, const char *value)
{
    if (value != NULL) {
        agent_words_add(words, "%s", option);
        agent_words_add(words, "%s", value);
    }
}

void agent_words_done(struct agent_words *words)
{
    for (size_t i = 0; i < words->count; i++) {
        free(words->list[i]);
    }
    free(words->list);
    *words = (struct agent_words){NULL, 0, 0, false};
}

void agent_setup_done(struct agent_setup *setup)
{
    agent_words_done(&setup->argv);
    agent_words_done(&setup->env);
    agent_words_done(&setup->files);
}

/* ---- reading ---- */

void agent_reading_init(struct agent_reading *reading, const struct agent_program *program)
{
    memset(reading, 0, sizeof(*reading));
    reading->program = program;
    reading->usage = usage_none();
}

void agent_reading_done(struct agent_reading *reading)
{
    buf_done(&reading->last);
    buf_done(&reading->verdict);
    buf_done(&reading->message);
}

void agent_line(struct agent_reading *reading, const char *line, size_t len, struct buf *said,
                struct buf *doing)
{
    struct loose event;
    reading->piece = false;
    if (loose_parse(line, len, &event) && loose_kind(event) == LOOSE_object) {
        const bool before = reading->done;
        reading->done = false;
        reading->program->event(reading, event, said, doing);
        reading->twice = reading->twice || (before && reading->done);
        reading->done = reading->done || before;
    }
}

void agent_take_name(struct loose value, char name[AGENT_NAME_MAX + 1])
{
    struct buf text = BUF_INIT;
    loose_text(value, AGENT_NAME_MAX, &text);
    if (buf_ok(&text) && text.len > 0) {
        for (size_t i = 0; i < text.len; i++) {
            char c = text.data[i];
            name[i] = c < 0x20 || c > 0x7e || c == '"' || c == '\\' ? '?' : c;
        }
        name[text.len] = '\0';
    }
    buf_done(&text);
}

void agent_take_number(struct loose value, int64_t scale, int64_t *number)
{
    int64_t found;
    if (loose_number(value, scale, &found) && found >= 0) {
        *number = found;
    }
}

void agent_take_text(struct loose value, size_t max, struct buf *buf)
{
    buf_clear(buf);
    loose_text(value, max, buf);
}

void agent_take_error(struct agent_reading *reading, struct loose message)
{
    agent_take_text(message, AGENT_MESSAGE_MAX, &reading->message);
    if (reading->status == 0 && reading->message.len > 0) {
        reading->status = agent_status_in(reading->message.data, reading->message.len);
    }
}

/* ---- what came of it ---- */

/* Masked before it is cut: half a secret would be none any more. */
static void add_masked(const struct agent_end *end, const char *text, size_t len, size_t max,
                       struct buf *out)
{
    if (end->mask != NULL) {
        end->mask(end->mask_arg, text, len, out);
    } else {
        buf_add(out, text, len);
    }
    if (out->len > max) {
        while (max > 0 && ((unsigned char)out->data[max] & 0xC0) == 0x80) {
            max--; /* not in the middle of a character */
        }
        out->len = max;
        out->data[max] = '\0';
    }
}

static void write_failure(enum failure class, const char *message, size_t len,
                          int64_t retry_after_ms, const struct agent_end *end, struct buf *object)
{
    struct buf masked = BUF_INIT;
    struct jsonw w = jsonw_to(object);
    if (len > 0) { /* strict JSON has no NUL */
        add_masked(end, message, strnlen(message, len), AGENT_MESSAGE_MAX, &masked);
    }
    jsonw_begin_object(&w);
    jsonw_key_text(&w, "class", failure_word(class));
    if (masked.len > 0) {
        jsonw_key_plain(&w, "message", masked.data, masked.len);
    }
    if (retry_after_ms > 0) {
        jsonw_key_int(&w, "retry_after_ms", retry_after_ms);
    }
    jsonw_end(&w);
    object->broken = object->broken || !buf_ok(&masked);
    buf_done(&masked);
}

static const struct agent_exit *exit_of(const struct agent_program *program, int status)
{
    for (const struct agent_exit *at = program->exits; at != NULL && at->status != 0; at++) {
        if (at->status == status) {
            return at;
        }
    }
    return NULL;
}

/* The error that the program told of; or, if it told nothing, the last words of a failed one. */
static void judge_failure(const struct agent_reading *reading, const struct agent_end *end,
                          struct buf *object)
{
    bool told = reading->message.len > 0;
    const char *message = told ? reading->message.data : end->error;
    size_t len = told ? reading->message.len : end->error != NULL ? end->error_len : 0;
    int status = reading->status;
    enum failure class;
    if (status == 0 && len > 0) {
        status = agent_status_in(message, len);
    }
    if (!agent_class(reading->program, status, message, len, &class)) {
        const struct agent_exit *own = exit_of(reading->program, end->value);
        if (own != NULL) {
            class = own->class;
            message = len > 0 ? message : own->text;
            len = len > 0 ? len : strlen(own->text);
        } else if (end->value != 0) {
            if (!told) {
                return; /* how it ended is all there is */
            }
            class = FAILURE_crash;
        } else {
            class = FAILURE_invalid_output;
        }
    }
    write_failure(class, message, len, len > 0 ? agent_retry_after_ms(message, len, end->now) : 0,
                  end, object);
}

static void take_masked(struct loose text, const struct agent_end *end, size_t max, struct buf *out)
{
    struct buf whole = BUF_INIT;
    loose_text(text, AGENT_TEXT_MAX, &whole);
    add_masked(end, whole.data, whole.len, max, out);
    out->broken = out->broken || !buf_ok(&whole);
    buf_done(&whole);
}

static void write_verdict(const struct agent_reading *reading, struct loose found,
                          const struct agent_end *end, struct buf *object)
{
    struct buf verdict = BUF_INIT;
    struct buf summary = BUF_INIT;
    take_masked(loose_member(found, "verdict"), end, 64, &verdict);
    take_masked(loose_member(found, "summary"), end, LIMIT_SUMMARY, &summary);
    struct jsonw w = jsonw_to(object);
    jsonw_begin_object(&w);
    jsonw_key_plain(&w, "verdict", verdict.data != NULL ? verdict.data : "", verdict.len);
    if (summary.len > 0) {
        jsonw_key_plain(&w, "summary", summary.data, summary.len);
    }
    jsonw_key(&w, "cost");
    jsonw_begin_object(&w);
    usage_numbers(&reading->usage, &w);
    jsonw_end(&w);
    jsonw_end(&w);
    object->broken = object->broken || !buf_ok(&verdict) || !buf_ok(&summary);
    buf_done(&verdict);
    buf_done(&summary);
}

enum agent_source agent_judge(const struct agent_reading *reading, const struct agent_end *end,
                              struct buf *object)
{
    static const char cut_off[] = "the program ended without telling its result";
    static const char twice[] = "the program told its result twice";
    static const char none[] = "the program told its result, and no verdict in it";
    struct loose found;
    if (end->signaled && !reading->done) {
        return AGENT_SOURCE_none;
    }
    if (reading->failed || (!reading->done && end->value != 0)) {
        judge_failure(reading, end, object);
        return AGENT_SOURCE_none;
    }
    if (!reading->done) {
        write_failure(FAILURE_invalid_output, cut_off, strlen(cut_off), 0, end, object);
        return AGENT_SOURCE_none;
    }
    if (reading->twice) {
        write_failure(FAILURE_invalid_output, twice, strlen(twice), 0, end, object);
        return AGENT_SOURCE_none;
    }
    bool text = !reading->program->schema;
    const struct buf *from = text ? &reading->last : &reading->verdict;
    bool there = text ? agent_verdict_at_end(from->data, from->len, &found)
                      : loose_parse(from->data, from->len, &found) &&
                            loose_kind(loose_member(found, "verdict")) == LOOSE_text;
    if (!there) {
        write_failure(FAILURE_no_verdict, none, strlen(none), 0, end, object);
        return AGENT_SOURCE_none;
    }
    write_verdict(reading, found, end, object);
    return text ? AGENT_SOURCE_text : AGENT_SOURCE_schema;
}

bool agent_session_gone(const struct agent_reading *reading, const char *line, size_t len)
{
    const char *words = reading->program->gone;
    return (len > 0 && agent_has_words(line, len, words)) ||
           (reading->failed && reading->message.len > 0 &&
            agent_has_words(reading->message.data, reading->message.len, words));
}

bool agent_session_valid(const char *session)
{
    size_t n = strspn(session, "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_");
    return n > 0 && n <= AGENT_NAME_MAX && session[n] == '\0' && session[0] != '-';
}

struct usage agent_usage(const struct agent_reading *reading, enum agent_source source)
{
    struct usage usage = reading->usage;
    snprintf(usage.agent, sizeof(usage.agent), "%s", reading->program->word);
    if (usage.cost_micros >= 0 && usage.cost_from[0] == '\0') {
        snprintf(usage.cost_from, sizeof(usage.cost_from), "%s", USAGE_COST_BY_PROGRAM);
    }
    snprintf(usage.verdict_from, sizeof(usage.verdict_from), "%s",
             source == AGENT_SOURCE_schema ? "schema"
             : source == AGENT_SOURCE_text ? "text"
                                           : "");
    return usage;
}
