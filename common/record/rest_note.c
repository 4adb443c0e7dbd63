/* Writes and reads the note about profiles that rest. See rest_note.h for who calls it. */
#include "common/record/rest_note.h"

#include "common/base/jsonw.h"
#include "common/base/word.h"
#include "common/record/json.h"
#include "common/record/note_writer.h"

#include <stdio.h>
#include <string.h>

#define NOTE_BYTES_MAX 8192

bool rest_note_is_key(const void *key, size_t key_len)
{
    return word_is(REST_NOTE_KEY, key, key_len);
}

bool rest_profile_refused(const struct rest_profile *profile)
{
    return profile->until.v == 0;
}

bool rest_profile_rests(const struct rest_profile *profile, struct wall_ms now)
{
    return rest_profile_refused(profile) || profile->until.v > now.v;
}

const struct rest_profile *rest_note_find(const struct rest_note *note, const char *profile,
                                          struct wall_ms now)
{
    for (size_t i = 0; i < note->count; i++) {
        if (strcmp(note->profiles[i].name.s, profile) == 0 &&
            rest_profile_rests(&note->profiles[i], now)) {
            return &note->profiles[i];
        }
    }
    return NULL;
}

void rest_note_encode(const struct rest_note *note, struct buf *value)
{
    struct jsonw w = jsonw_to(value);
    jsonw_begin_object(&w);
    jsonw_key_int(&w, "version", 1);
    note_writer_encode(&w, &note->worker, &note->boot);
    jsonw_key(&w, "profiles");
    jsonw_begin_array(&w);
    for (size_t i = 0; i < note->count; i++) {
        const struct rest_profile *profile = &note->profiles[i];
        jsonw_begin_object(&w);
        jsonw_key_text(&w, "name", profile->name.s);
        jsonw_key_text(&w, "class", failure_word(profile->class));
        jsonw_key_text(&w, "since", wall_text(profile->since).s);
        if (rest_profile_refused(profile)) {
            jsonw_key_text(&w, "mark", profile->mark.s);
        } else {
            jsonw_key_text(&w, "until", wall_text(profile->until).s);
        }
        jsonw_end(&w);
    }
    jsonw_end(&w);
    jsonw_end(&w);
}

static bool read_profile(const struct json_value *value, struct rest_profile *ret_profile)
{
    struct rest_profile profile = {.until = {0}};
    size_t n;
    if (json_kind(value) != JSON_object) {
        return false;
    }
    const char *text = json_member_text(value, "name", &n);
    bool read = plain_id_valid(text, n);
    profile.name = plain_id_of(read ? text : "");
    text = json_member_text(value, "class", &n);
    read = read && failure_parse(text, n, &profile.class);
    text = json_member_text(value, "since", &n);
    read = read && wall_parse(text, n, &profile.since);
    const bool refused = json_member(value, "until") == NULL;
    text = json_member_text(value, refused ? "mark" : "until", &n);
    if (refused) {
        read = read && json_member(value, "mark") != NULL &&
               (n == 0 || hex_valid(text, n, REST_MARK_LEN));
        snprintf(profile.mark.s, sizeof(profile.mark.s), "%.*s", read ? REST_MARK_LEN : 0, text);
    } else {
        read = read && wall_parse(text, n, &profile.until) && profile.until.v > 0;
    }
    if (read) {
        *ret_profile = profile;
    }
    return read;
}

static bool read_note(const struct json_value *root, struct rest_note *note)
{
    if (json_kind(root) != JSON_object || !note_writer_read(root, &note->worker, &note->boot)) {
        return false;
    }
    const struct json_value *list = json_member(root, "profiles");
    if (list == NULL || json_kind(list) != JSON_array || json_count(list) > LIMIT_PROFILES) {
        return false;
    }
    for (const struct json_value *at = json_first(list); at != NULL; at = json_next(at)) {
        if (!read_profile(at, &note->profiles[note->count])) {
            return false;
        }
        note->count++;
    }
    return true;
}

bool rest_note_parse(const void *bytes, size_t len, struct rest_note *ret_note)
{
    struct rest_note note = {.count = 0};
    struct json_doc *doc = NULL;
    bool read = false;
    if (bytes != NULL && json_parse(bytes, len, NOTE_BYTES_MAX, 4, &doc, NULL) == BATON_OK) {
        read = read_note(json_root(doc), &note);
        json_free(doc);
    }
    *ret_note = read ? note : (struct rest_note){.count = 0};
    return read;
}
