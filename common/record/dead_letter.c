/*
 * The headers of a dead letter (dead_letter.h). Called by worker/dead_letter.c and the coordinator.
 */
#include "common/record/dead_letter.h"

#include "common/base/buf.h"
#include "common/base/check.h"
#include "common/base/text.h"

#include <stdio.h>
#include <string.h>

#define ORIGINAL_MAX (LOG_HEADERS_MAX - DEAD_LETTER_CONTEXT_MAX)

void dead_letter_header(struct dead_letter *letter, const char *name, const void *value, size_t len)
{
    if (letter->n_headers < COUNT_OF(letter->headers)) {
        letter->headers[letter->n_headers++] = (struct log_header){name, value, len};
    }
}

void dead_letter_text(struct dead_letter *letter, const char *name, const char *value)
{
    BATON_PRE(letter->n_texts < DEAD_LETTER_CONTEXT_MAX);
    char *text = letter->texts[letter->n_texts++];
    snprintf(text, sizeof(letter->texts[0]), "%s", value);
    dead_letter_header(letter, name, text, strlen(text));
}

void dead_letter_int(struct dead_letter *letter, const char *name, int64_t value)
{
    char text[24];
    snprintf(text, sizeof(text), "%lld", (long long)value);
    dead_letter_text(letter, name, text);
}

void dead_letter_context(struct dead_letter *letter, const struct log_record *source,
                         const char *topic, const char *group, baton_code code, const char *note)
{
    struct buf message = BUF_INIT;
    dead_letter_text(letter, DEAD_LETTER_TOPIC, topic);
    if (source != NULL) {
        dead_letter_int(letter, DEAD_LETTER_PARTITION, source->partition);
        dead_letter_int(letter, DEAD_LETTER_OFFSET, source->offset);
    }
    dead_letter_text(letter, DEAD_LETTER_GROUP, group);
    dead_letter_text(letter, DEAD_LETTER_CODE, baton_code_word(code));
    buf_printf(&message, "%s: ", baton_code_text(code));
    text_add(&message, note, strlen(note), 300);
    dead_letter_text(letter, DEAD_LETTER_MESSAGE, message.data != NULL ? message.data : "");
    buf_done(&message);
}

static bool is_context(const char *name)
{
    return strncmp(name, "__dlq.errors.", strlen("__dlq.errors.")) == 0 ||
           strcmp(name, DEAD_LETTER_CODE) == 0 || strcmp(name, DEAD_LETTER_CLASS) == 0 ||
           strcmp(name, DEAD_LETTER_ATTEMPTS) == 0;
}

void dead_letter_original(struct dead_letter *letter, const struct log_record *record)
{
    for (size_t i = 0; i < record->n_headers && letter->n_headers < ORIGINAL_MAX; i++) {
        if (!is_context(record->headers[i].name)) {
            letter->headers[letter->n_headers++] = record->headers[i];
        }
    }
}
