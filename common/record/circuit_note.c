/* Writes and reads the note about a worker's circuit. See circuit_note.h for who calls it. */
#include "common/record/circuit_note.h"

#include "common/base/jsonw.h"
#include "common/base/limits.h"
#include "common/base/word.h"
#include "common/record/json.h"
#include "common/record/note_writer.h"

#define NOTE_BYTES_MAX 1024

bool circuit_note_is_key(const void *key, size_t key_len)
{
    return word_is(CIRCUIT_NOTE_KEY, key, key_len);
}

void circuit_note_encode(const struct circuit_note *note, struct buf *value)
{
    struct jsonw w = jsonw_to(value);
    jsonw_begin_object(&w);
    jsonw_key_int(&w, "version", 1);
    jsonw_key_text(&w, "state", circuit_state_word(note->state));
    jsonw_key_text(&w, "class", failure_word(note->class));
    note_writer_encode(&w, &note->worker, &note->boot);
    jsonw_key_text(&w, "since", wall_text(note->since).s);
    jsonw_end(&w);
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
            const char *text = json_member_text(root, "state", &n);
            read = circuit_state_parse(text, n, &note.state) && note.state != CIRCUIT_closed;
            text = json_member_text(root, "class", &n);
            read = read && failure_parse(text, n, &note.class);
            read = read && note_writer_read(root, &note.worker, &note.boot);
            text = json_member_text(root, "since", &n);
            read = read && wall_parse(text, n, &note.since);
        }
        json_free(doc);
    }
    *ret_note = read ? note : (struct circuit_note){.state = CIRCUIT_closed};
    return read;
}
