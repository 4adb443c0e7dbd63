/* Writes and reads the note about a worker's circuit. See circuit_note.h for who calls it. */
#include "common/record/circuit_note.h"

#include "common/base/jsonw.h"
#include "common/base/limits.h"
#include "common/record/json.h"

#include <string.h>

#define NOTE_BYTES_MAX 1024

bool circuit_note_is_key(const void *key, size_t key_len)
{
    return key != NULL && key_len == strlen(CIRCUIT_NOTE_KEY) &&
           memcmp(key, CIRCUIT_NOTE_KEY, key_len) == 0;
}

void circuit_note_encode(const struct circuit_note *note, struct buf *value)
{
    struct jsonw w = jsonw_to(value);
    jsonw_begin_object(&w);
    jsonw_key_int(&w, "version", 1);
    jsonw_key_text(&w, "state", circuit_state_word(note->state));
    jsonw_key_text(&w, "class", failure_word(note->class));
    jsonw_key_text(&w, "worker", note->worker.s);
    jsonw_key_text(&w, "boot", note->boot.s);
    jsonw_key_text(&w, "since", wall_text(note->since).s);
    jsonw_end(&w);
}

static const char *text_of(const struct json_value *root, const char *name, size_t *ret_len)
{
    const struct json_value *value = json_member(root, name);
    *ret_len = 0;
    return value != NULL && json_kind(value) == JSON_text ? json_text(value, ret_len) : "";
}

bool circuit_note_parse(const void *bytes, size_t len, struct circuit_note *ret_note)
{
    struct circuit_note note = {.state = CIRCUIT_closed};
    struct json_doc *doc = NULL;
    bool read = false;
    size_t n;

    if (bytes != NULL &&
        json_parse(bytes, len, NOTE_BYTES_MAX, LIMIT_JSON_DEPTH, &doc, NULL) == BATON_OK) {
        const struct json_value *root = json_root(doc);
        if (json_kind(root) == JSON_object) {
            const char *text = text_of(root, "state", &n);
            read = circuit_state_parse(text, n, &note.state) && note.state != CIRCUIT_closed;
            text = text_of(root, "class", &n);
            read = read && failure_parse(text, n, &note.class);
            text = text_of(root, "worker", &n);
            read = read && plain_id_valid(text, n);
            note.worker = plain_id_of(read ? text : "");
            text = text_of(root, "boot", &n);
            read = read && hex_valid(text, n, sizeof(note.boot.s) - 1);
            if (read) {
                memcpy(note.boot.s, text, n + 1);
            }
            text = text_of(root, "since", &n);
            read = read && wall_parse(text, n, &note.since);
        }
        json_free(doc);
    }
    *ret_note = read ? note : (struct circuit_note){.state = CIRCUIT_closed};
    return read;
}
