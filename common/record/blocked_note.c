/* Writes and reads the note about topics that cannot be written. See blocked_note.h for who calls
 * it. */
#include "common/record/blocked_note.h"

#include "common/base/jsonw.h"
#include "common/base/limits.h"
#include "common/base/word.h"
#include "common/record/json.h"
#include "common/record/note_writer.h"

#include <string.h>

bool blocked_note_is_key(const void *key, size_t key_len)
{
    return word_is(BLOCKED_NOTE_KEY, key, key_len);
}

void blocked_note_encode(const struct blocked_note *note, struct buf *value)
{
    struct jsonw w = jsonw_to(value);
    jsonw_begin_object(&w);
    jsonw_key_int(&w, "version", 1);
    note_writer_encode(&w, &note->worker, &note->boot);
    jsonw_key(&w, "targets");
    jsonw_begin_array(&w);
    for (size_t i = 0; i < note->count; i++) {
        const struct blocked_target *target = &note->targets[i];
        jsonw_begin_object(&w);
        jsonw_key_text(&w, "topic", target->topic);
        jsonw_key_text(&w, "code", baton_code_word(target->code));
        jsonw_key_plain(&w, "cause", target->cause, strlen(target->cause));
        jsonw_key_text(&w, "since", wall_text(target->since).s);
        jsonw_end(&w);
    }
    jsonw_end(&w);
    jsonw_end(&w);
}

static bool read_target(const struct json_value *value, struct blocked_target *ret_target)
{
    size_t n;
    if (json_kind(value) != JSON_object) {
        return false;
    }
    const char *text = json_member_text(value, "topic", &n);
    if (n == 0 || n >= sizeof(ret_target->topic)) {
        return false;
    }
    memcpy(ret_target->topic, text, n + 1);
    if (!baton_code_parse(json_member_text(value, "code", &n), &ret_target->code)) {
        return false;
    }
    text = json_member_text(value, "cause", &n);
    if (n >= sizeof(ret_target->cause)) {
        return false;
    }
    if (n > 0) {
        memcpy(ret_target->cause, text, n + 1);
    }
    text = json_member_text(value, "since", &n);
    return wall_parse(text, n, &ret_target->since);
}

static bool read_note(const struct json_value *root, struct blocked_note *note)
{
    if (json_kind(root) != JSON_object || !note_writer_read(root, &note->worker, &note->boot)) {
        return false;
    }
    const struct json_value *targets = json_member(root, "targets");
    if (targets == NULL || json_kind(targets) != JSON_array ||
        json_count(targets) > BLOCKED_TARGETS_MAX) {
        return false;
    }
    for (const struct json_value *at = json_first(targets); at != NULL; at = json_next(at)) {
        if (!read_target(at, &note->targets[note->count++])) {
            return false;
        }
    }
    return note->count > 0;
}

bool blocked_note_parse(const void *bytes, size_t len, struct blocked_note *ret_note)
{
    struct json_doc *doc = NULL;
    bool read = false;

    memset(ret_note, 0, sizeof(*ret_note));
    if (bytes != NULL &&
        json_parse(bytes, len, BLOCKED_NOTE_BYTES_MAX, LIMIT_JSON_DEPTH, &doc, NULL) == BATON_OK) {
        read = read_note(json_root(doc), ret_note);
        json_free(doc);
    }
    if (!read) {
        memset(ret_note, 0, sizeof(*ret_note));
    }
    return read;
}
