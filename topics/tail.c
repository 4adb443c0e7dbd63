/*
 * Reads many partitions backward, newest first. See tail.h for who calls it.
 *
 * The partition whose unread rest may hold the newest record is read next, a window forward at a time, until
 * no rest can be newer than the page. What a log that replaces keys moves up meanwhile is not seen: it
 * changed after the list began.
 */
#include "topics/tail.h"

#include "common/base/array.h"
#include "common/base/check.h"
#include "common/base/hash.h"
#include "common/base/text.h"
#include "topics/scan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SPAN_FIRST 64 /* offsets of a partition's first window; each further one is twice as long */
#define SPAN_MAX 16384
#define WINDOW_RECORDS 4096 /* a window with more of them is followed by a shorter one */
#define SEARCH_MIN 4096     /* offsets that are read rather than searched in */

/* A partition, and how far back it was read. */
struct cursor {
    struct tail_place
        best; /* no record that is left can be newer; offset: the next window ends here */
    char topic[256];
    bool compacted;
    int64_t low;
    int64_t span;
    tail_fn *fn;
    void *arg;
};

struct entry {
    struct tail_place place;
    char *row;
};

/* What a window's records gave, in the order of the log. */
struct candidate {
    struct entry entry; /* row NULL: nothing for the list, but perhaps the newest of its key */
    uint64_t hash;
};

struct tail {
    struct tail_spec spec;
    struct tail_place before;
    struct service_id before_service;
    bool has_before;
    struct cursor *cursors;
    size_t n_cursors;
    size_t cap_cursors;
    struct scan_hidden hidden[TAIL_KIND_COUNT];
    bool asked[TAIL_KIND_COUNT];
    struct entry *heap; /* the newest, the oldest of them on top */
    size_t count;
    bool dropped; /* the page was too short for one */
    struct candidate *window;
    size_t n_window;
    size_t cap_window;
    uint64_t *seen; /* open addressing; 0 is free */
    size_t n_seen;
    size_t cap_seen;
    int64_t passed;
    int64_t all;
    bool replaces;
};

/* ---- the page: a heap ---- */

static void swap_entries(struct entry *a, struct entry *b)
{
    struct entry kept = *a;
    *a = *b;
    *b = kept;
}

static void sift_up(struct entry *heap, size_t at)
{
    while (at > 0 && tail_place_newer(&heap[(at - 1) / 2].place, &heap[at].place)) {
        swap_entries(&heap[(at - 1) / 2], &heap[at]);
        at = (at - 1) / 2;
    }
}

static void sift_down(struct entry *heap, size_t count)
{
    size_t at = 0;
    for (;;) {
        size_t oldest = at;
        for (size_t child = 2 * at + 1; child <= 2 * at + 2 && child < count; child++) {
            oldest = tail_place_newer(&heap[oldest].place, &heap[child].place) ? child : oldest;
        }
        if (oldest == at) {
            return;
        }
        swap_entries(&heap[at], &heap[oldest]);
        at = oldest;
    }
}

/* Takes the row, or frees it. */
static void keep(struct tail *tail, struct entry *take_entry)
{
    if (tail->count < tail->spec.max) {
        tail->heap[tail->count] = *take_entry;
        sift_up(tail->heap, tail->count++);
    } else {
        tail->dropped = true;
        if (tail_place_newer(&take_entry->place, &tail->heap[0].place)) {
            free(tail->heap[0].row);
            tail->heap[0] = *take_entry;
            sift_down(tail->heap, tail->count);
        } else {
            free(take_entry->row);
        }
    }
    take_entry->row = NULL;
}

/* ---- keys that were seen ---- */

static size_t slot_of(const uint64_t *seen, size_t cap, uint64_t hash)
{
    size_t slot = (size_t)(hash ^ hash >> 32) & (cap - 1);
    while (seen[slot] != 0 && seen[slot] != hash) {
        slot = (slot + 1) & (cap - 1);
    }
    return slot;
}

static bool grow_seen(struct tail *tail)
{
    const size_t cap = tail->cap_seen == 0 ? 4096 : tail->cap_seen * 2;
    uint64_t *larger = calloc(cap, sizeof(*larger));
    if (larger == NULL) {
        return false;
    }
    for (size_t i = 0; i < tail->cap_seen; i++) {
        if (tail->seen[i] != 0) {
            larger[slot_of(larger, cap, tail->seen[i])] = tail->seen[i];
        }
    }
    free(tail->seen);
    tail->seen = larger;
    tail->cap_seen = cap;
    return true;
}

/* Was it seen before? Now it is. */
static bool see(struct tail *tail, uint64_t hash, bool *ret_seen)
{
    if (tail->n_seen * 10 >= tail->cap_seen * 7 && !grow_seen(tail)) {
        return false;
    }
    const size_t slot = slot_of(tail->seen, tail->cap_seen, hash);
    *ret_seen = tail->seen[slot] != 0;
    tail->n_seen += *ret_seen ? 0 : 1;
    tail->seen[slot] = hash;
    return true;
}

/* ---- windows ---- */

struct window {
    struct tail *tail;
    struct cursor *cursor;
    size_t records;
    struct wall_ms oldest;
    bool no_memory;
};

static uint64_t hash_of(const struct tail *tail, const struct cursor *cursor,
                        const struct log_record *record)
{
    const size_t which = (size_t)(cursor - tail->cursors);
    const uint64_t hash =
        hash_bytes(hash_bytes(HASH_START, &which, sizeof(which)), record->key, record->key_len);
    return hash == 0 ? 1 : hash;
}

static bool on_record(void *arg, const struct log_record *record)
{
    struct window *window = arg;
    struct tail *tail = window->tail;
    struct cursor *cursor = window->cursor;
    struct candidate found = {.entry.place = cursor->best};
    struct tail_place *place = &found.entry.place;
    const bool supersedes = cursor->compacted && !tail->replaces;
    window->oldest =
        window->records++ == 0 || record->at.v < window->oldest.v ? record->at : window->oldest;
    place->at = record->at;
    place->offset = record->offset;
    /* What cannot be of the page need not be parsed. */
    const bool behind = !tail->has_before || tail_place_newer(&tail->before, place);
    const bool full = tail->count == tail->spec.max;
    const bool wanted = behind && (!full || tail_place_newer(place, &tail->heap[0].place));
    tail->dropped = tail->dropped || (behind && !wanted);
    if (wanted && (record->value != NULL || !cursor->compacted)) {
        if ((found.entry.row = calloc(1, tail->spec.row_size)) == NULL) {
            window->no_memory = true;
            return false;
        }
        if (!cursor->fn(cursor->arg, place, record, found.entry.row)) {
            free(found.entry.row);
            found.entry.row = NULL;
        }
    }
    if (supersedes) {
        found.hash = hash_of(tail, cursor, record);
    }
    if (supersedes || found.entry.row != NULL) {
        tail->window =
            array_grown(tail->window, tail->n_window, &tail->cap_window, sizeof(*tail->window));
        tail->window[tail->n_window++] = found;
    }
    return true;
}

/* From the newest to the oldest: what was seen under its key already is not true any more. */
static bool take_window(struct tail *tail)
{
    bool fine = true;
    for (size_t i = tail->n_window; i > 0; i--) {
        struct candidate *one = &tail->window[i - 1];
        bool seen = false;
        fine = fine && (one->hash == 0 || see(tail, one->hash, &seen));
        if (one->entry.row != NULL && (seen || !fine)) {
            free(one->entry.row);
        } else if (one->entry.row != NULL) {
            keep(tail, &one->entry);
        }
    }
    tail->n_window = 0;
    return fine;
}

static baton_code read_window(struct tail *tail, struct cursor *cursor, struct baton_error *err)
{
    struct window window = {.tail = tail, .cursor = cursor};
    const int64_t end = cursor->best.offset;
    const int64_t from = end - cursor->low > cursor->span ? end - cursor->span : cursor->low;
    baton_code rc = scan_range(tail->spec.log, cursor->topic, cursor->best.partition, from, end,
                               on_record, &window, NULL, err);
    const bool fine = take_window(tail) && !window.no_memory;
    if (rc == BATON_OK && !fine) {
        rc = baton_fail(err, BATON_E_no_memory, "no memory for a list of topic %s", cursor->topic);
    }
    if (window.records > 0 && window.oldest.v < cursor->best.at.v) {
        cursor->best.at = window.oldest;
    }
    cursor->best.offset = from;
    cursor->span = window.records > WINDOW_RECORDS && cursor->span > SPAN_FIRST ? cursor->span / 2
                   : cursor->span < SPAN_MAX                                    ? cursor->span * 2
                                                                                : cursor->span;
    tail->passed += end - from;
    if (tail->spec.progress != NULL) {
        tail->spec.progress(tail->spec.progress_arg, tail->passed, tail->all);
    }
    return rc;
}

/* ---- opening ---- */

baton_code tail_new(const struct tail_spec *spec, struct tail **ret_tail, struct baton_error *err)
{
    BATON_PRE(spec->max > 0 && spec->row_size > 0);
    struct tail *tail = calloc(1, sizeof(*tail));
    if (tail == NULL || (tail->heap = calloc(spec->max, sizeof(*tail->heap))) == NULL) {
        free(tail);
        return baton_fail(err, BATON_E_no_memory, "no memory for a list");
    }
    tail->spec = *spec;
    tail->replaces = log_replaces_keys(spec->log);
    tail->has_before = spec->before != NULL;
    if (tail->has_before && !tail_place_parse(spec->before, &tail->before, &tail->before_service)) {
        tail_free(tail);
        return baton_fail(err, BATON_E_invalid_request,
                          "'%s' is no position in a list: the page before says it at its end, and "
                          "--json has it in each line",
                          text_quote_of(spec->before).s);
    }
    *ret_tail = tail;
    return BATON_OK;
}

void tail_free(struct tail *tail)
{
    if (tail == NULL) {
        return;
    }
    for (size_t i = 0; i < tail->count; i++) {
        free(tail->heap[i].row);
    }
    free(tail->heap);
    free(tail->cursors);
    free(tail->window);
    free(tail->seen);
    free(tail);
}

static bool first_time(void *arg, const struct log_record *record)
{
    struct wall_ms *at = arg;
    *at = record->at;
    return false;
}

/* A page that begins far back does not read what is newer: append times rise with offsets. Of a log that
 * keeps older records of a key all must be read, for a newer record decides about an older one. */
static baton_code seek(const struct tail *tail, struct cursor *cursor, struct baton_error *err)
{
    int64_t low = cursor->low;
    int64_t high = cursor->best.offset;
    baton_code rc = BATON_OK;
    while (rc == BATON_OK && tail->has_before && (tail->replaces || !cursor->compacted) &&
           high - low > SEARCH_MIN) {
        const int64_t middle = low + (high - low) / 2;
        struct wall_ms at = {INT64_MAX}; /* nothing is there up to the end */
        rc = scan_range(tail->spec.log, cursor->topic, cursor->best.partition, middle, high,
                        first_time, &at, NULL, err);
        if (at.v > tail->before.at.v) {
            high = middle;
        } else {
            low = middle;
        }
    }
    cursor->best.offset = high;
    return rc;
}

static baton_code add_partition(struct tail *tail, const struct cursor *from,
                                struct baton_error *err)
{
    struct cursor cursor = *from;
    baton_code rc = log_watermarks(tail->spec.log, cursor.topic, cursor.best.partition, &cursor.low,
                                   &cursor.best.offset, err);
    if (rc == BATON_OK) {
        rc = seek(tail, &cursor, err);
    }
    if (rc == BATON_OK) {
        tail->cursors =
            array_grown(tail->cursors, tail->n_cursors, &tail->cap_cursors, sizeof(*tail->cursors));
        tail->cursors[tail->n_cursors++] = cursor;
        tail->all += cursor.best.offset - cursor.low;
    }
    return rc;
}

baton_code tail_add(struct tail *tail, enum tail_kind kind, const char *service, const char *topic,
                    bool compacted, tail_fn *fn, void *arg, struct baton_error *err)
{
    struct baton_error why = {BATON_OK, ""};
    struct cursor cursor = {
        .best = {.at = {INT64_MAX}, .kind = kind, .service = service},
        .compacted = compacted,
        .span = SPAN_FIRST,
        .fn = fn,
        .arg = arg,
    };
    const size_t before = tail->n_cursors;
    int32_t partitions = 0;
    snprintf(cursor.topic, sizeof(cursor.topic), "%s", topic);
    tail->asked[kind] = true;
    baton_code rc = scan_partitions(tail->spec.log, topic, &partitions, &why);
    for (int32_t p = 0; rc == BATON_OK && p < partitions; p++) {
        cursor.best.partition = p;
        rc = add_partition(tail, &cursor, &why);
    }
    if (rc != BATON_OK) {
        tail->n_cursors = before;
    }
    return scan_pass_hidden(&tail->hidden[kind], rc, &why, err);
}

/* ---- reading ---- */

static struct cursor *newest_cursor(const struct tail *tail)
{
    struct cursor *best = NULL;
    for (size_t i = 0; i < tail->n_cursors; i++) {
        struct cursor *one = &tail->cursors[i];
        if (one->best.offset > one->low &&
            (best == NULL || tail_place_newer(&one->best, &best->best))) {
            best = one;
        }
    }
    return best;
}

/* A topic that turns out to be hidden is passed over from now on. */
static baton_code pass_over(struct tail *tail, const struct cursor *hidden, baton_code rc,
                            const struct baton_error *why, struct baton_error *err)
{
    struct scan_hidden *kind = &tail->hidden[hidden->best.kind];
    rc = scan_pass_hidden(kind, rc, why, err);
    for (size_t i = 0; i < tail->n_cursors; i++) {
        if (strcmp(tail->cursors[i].topic, hidden->topic) == 0) {
            tail->cursors[i].low = tail->cursors[i].best.offset;
        }
    }
    kind->seen -= rc == BATON_OK ? 1 : 0;
    return rc;
}

static int by_age(const void *a, const void *b)
{
    const struct entry *one = a;
    const struct entry *other = b;
    return tail_place_newer(&one->place, &other->place)   ? -1
           : tail_place_newer(&other->place, &one->place) ? 1
                                                          : 0;
}

baton_code tail_read(struct tail *tail, struct baton_error *err)
{
    baton_code rc = BATON_OK;
    struct cursor *cursor;
    while (rc == BATON_OK && (cursor = newest_cursor(tail)) != NULL) {
        struct baton_error why = {BATON_OK, ""};
        if (tail->count == tail->spec.max &&
            !tail_place_newer(&cursor->best, &tail->heap[0].place)) {
            tail->dropped = true;
            break;
        }
        rc = read_window(tail, cursor, &why);
        if (rc != BATON_OK) {
            rc = pass_over(tail, cursor, rc, &why, err);
        }
    }
    for (int kind = 0; rc == BATON_OK && kind < TAIL_KIND_COUNT; kind++) {
        if (tail->asked[kind]) {
            rc = scan_hidden_end(&tail->hidden[kind], tail->hidden[kind].seen > 0, err);
        }
    }
    if (rc == BATON_OK && tail->count > 1) {
        qsort(tail->heap, tail->count, sizeof(*tail->heap), by_age);
    }
    return rc;
}

size_t tail_count(const struct tail *tail)
{
    return tail->count;
}

const void *tail_row(const struct tail *tail, size_t i, struct tail_place *ret_place)
{
    BATON_PRE(i < tail->count);
    *ret_place = tail->heap[i].place;
    return tail->heap[i].row;
}

bool tail_more(const struct tail *tail)
{
    return tail->dropped;
}
