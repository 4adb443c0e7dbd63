/* Looks whether rejected records are written already. See written.h for who calls it. */
#include "producer/written.h"

#include "common/base/array.h"
#include "common/base/check.h"
#include "common/record/proof.h"
#include "topics/catalogue.h"
#include "topics/scan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What a record's bytes are, the dead letter's context apart. */
struct bytes_id {
    unsigned char b[16];
};

/* Each is in two lists, sorted by what is looked for. */
struct asked {
    struct bytes_id bytes;
    char turn[33]; /* of a handoff; "": not a turn's */
    char service[SERVICE_MAX + 1];
    struct wall_ms at;
    int32_t partition;
    int64_t offset;
    bool expired; /* is signed again: then other bytes of its turn are it, too */
    size_t known; /* number of the source that knows its turn, from 1; 0: none */
    bool waits;
    bool later;
    baton_code code;
    bool again;
};

enum source_kind { SOURCE_turns, SOURCE_input, SOURCE_letters };

/* A partition that is read, and how far. */
struct source {
    enum source_kind kind;
    char service[SERVICE_MAX + 1];
    char topic[256];
    int32_t partition;
    int64_t next;
};

struct written {
    struct session *session;
    struct asked *asked;
    size_t count;
    size_t cap;
    size_t *by_bytes; /* indexes into asked */
    size_t *by_turn;
    struct source *sources;
    size_t n_sources;
    size_t cap_sources;
    struct scan_hidden hidden; /* turn logs */
    bool opened;
};

baton_code written_new(struct session *session, struct written **ret_written,
                       struct baton_error *err)
{
    struct written *written = calloc(1, sizeof(*written));
    if (written == NULL) {
        return baton_fail(err, BATON_E_no_memory, "no memory for a replay");
    }
    written->session = session;
    *ret_written = written;
    return BATON_OK;
}

void written_free(struct written *written)
{
    if (written != NULL) {
        free(written->asked);
        free(written->by_bytes);
        free(written->by_turn);
        free(written->sources);
        free(written);
    }
}

/* ---- what is asked about ---- */

static struct bytes_id bytes_of(const struct log_record *record)
{
    struct json_span parts[3 + 2 * LOG_HEADERS_MAX];
    char nulls[2 + LOG_HEADERS_MAX]; /* null and empty are not the same */
    struct bytes_id id;
    size_t n = 1;
    size_t n_nulls = 0;
    nulls[n_nulls++] = record->key == NULL ? 'n' : 'v';
    nulls[n_nulls++] = record->value == NULL ? 'n' : 'v';
    parts[n++] = (struct json_span){record->key, record->key_len};
    parts[n++] = (struct json_span){record->value, record->value_len};
    for (size_t i = 0; i < record->n_headers && i < LOG_HEADERS_MAX; i++) {
        const struct log_header *header = &record->headers[i];
        if (!letter_context_header(header->name)) {
            nulls[n_nulls++] = header->value == NULL ? 'n' : 'v';
            parts[n++] = (struct json_span){header->name, strlen(header->name)};
            parts[n++] = (struct json_span){header->value, header->value_len};
        }
    }
    parts[0] = (struct json_span){nulls, n_nulls};
    const struct digest digest = digest_of_parts("", 0, parts, n);
    memcpy(id.b, digest.b, sizeof(id.b));
    return id;
}

static bool is_handoff(const struct written *written, const struct letter *letter)
{
    return strcmp(
               letter->topic,
               topic_name(TOPIC_handoff, written->session->config->prefix.s, letter->service).s) ==
           0;
}

size_t written_note(struct written *written, const struct letter *letter)
{
    BATON_PRE(!written->opened);
    struct asked one = {
        .bytes = bytes_of(letter->record),
        .at = letter->at,
        .partition = letter->partition,
        .offset = letter->offset,
        .code = letter->code,
        .expired = letter->code == BATON_E_handoff_expired,
    };
    if (is_handoff(written, letter)) {
        snprintf(one.turn, sizeof(one.turn), "%s", letter->turn_id);
    }
    snprintf(one.service, sizeof(one.service), "%s", letter->service);
    written->asked =
        array_grown(written->asked, written->count, &written->cap, sizeof(*written->asked));
    written->asked[written->count] = one;
    return written->count++;
}

static int compare_bytes(const void *a, const void *b, void *arg)
{
    const struct written *written = arg;
    return memcmp(&written->asked[*(const size_t *)a].bytes,
                  &written->asked[*(const size_t *)b].bytes, sizeof(struct bytes_id));
}

static int compare_turn(const void *a, const void *b, void *arg)
{
    const struct written *written = arg;
    return strcmp(written->asked[*(const size_t *)a].turn, written->asked[*(const size_t *)b].turn);
}

/* The first place in a sorted list whose one is not less. */
static size_t first_of(const struct written *written, const size_t *list, const char *turn,
                       const struct bytes_id *bytes)
{
    size_t low = 0;
    size_t high = written->count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        const struct asked *one = &written->asked[list[middle]];
        const int order =
            turn != NULL ? strcmp(one->turn, turn) : memcmp(&one->bytes, bytes, sizeof(*bytes));
        if (order < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* ---- what is read ---- */

static baton_code add_topic(struct written *written, enum source_kind kind, const char *service,
                            const char *topic, const char *group, struct baton_error *err)
{
    struct log *log = written->session->log;
    int32_t partitions = 0;
    baton_code rc = scan_partitions(log, topic, &partitions, err);
    for (int32_t p = 0; rc == BATON_OK && p < partitions; p++) {
        struct source source = {.kind = kind, .partition = p};
        /* What lies before it was taken, and so is in a turn log or a letter. */
        if (group != NULL) {
            rc = log_group_offset(log, group, topic, p, &source.next, err);
        }
        snprintf(source.service, sizeof(source.service), "%s", service);
        snprintf(source.topic, sizeof(source.topic), "%s", topic);
        written->sources = array_grown(written->sources, written->n_sources, &written->cap_sources,
                                       sizeof(*written->sources));
        written->sources[written->n_sources++] = source;
    }
    return rc;
}

/* Inputs are their owner's: whoever may not read them does without. */
static baton_code add_input(struct written *written, const char *service, enum topic_kind kind,
                            const char *group, struct baton_error *err)
{
    struct baton_error why = {BATON_OK, ""};
    const bool runs = kind == TOPIC_requests;
    const size_t before = written->n_sources;
    const baton_code rc = add_topic(
        written, SOURCE_input, service,
        topic_name(kind, written->session->config->prefix.s, runs ? NULL : service).s, group, &why);
    if (rc == BATON_OK) {
        return BATON_OK;
    }
    written->n_sources = before;
    return rc == BATON_E_not_permitted || rc == BATON_E_topic_missing
               ? BATON_OK
               : baton_fail(err, rc, "%s", why.text);
}

static baton_code add_service(struct written *written, const char *service, struct baton_error *err)
{
    const char *prefix = written->session->config->prefix.s;
    const bool runs = strcmp(service, LETTERS_OF_RUNS) == 0;
    const struct topic_name letters = runs ? topic_name(TOPIC_dlq_requests, prefix, NULL)
                                           : topic_name(TOPIC_dlq, prefix, service);
    const struct topic_name group =
        runs ? group_of_coordinators(prefix) : group_of_workers(prefix, service);
    baton_code rc = add_topic(written, SOURCE_letters, service, letters.s, NULL, err);
    if (rc == BATON_OK) {
        rc = add_input(written, service, runs ? TOPIC_requests : TOPIC_handoff, group.s, err);
    }
    if (rc == BATON_OK && !runs) {
        rc = add_input(written, service, TOPIC_control, group.s, err);
    }
    return rc;
}

static bool has_source(const struct written *written, const char *service)
{
    for (size_t i = 0; i < written->n_sources; i++) {
        if (strcmp(written->sources[i].service, service) == 0) {
            return true;
        }
    }
    return false;
}

static baton_code open_sources(struct written *written, struct baton_error *err)
{
    const struct config *config = written->session->config;
    baton_code rc = BATON_OK;
    bool turns = false;
    written->opened = true;
    written->by_bytes = calloc(written->count + 1, sizeof(*written->by_bytes));
    written->by_turn = calloc(written->count + 1, sizeof(*written->by_turn));
    if (written->by_bytes == NULL || written->by_turn == NULL) {
        return baton_fail(err, BATON_E_no_memory, "no memory for a replay");
    }
    for (size_t i = 0; rc == BATON_OK && i < written->count; i++) {
        written->by_bytes[i] = i;
        written->by_turn[i] = i;
        turns = turns || written->asked[i].turn[0] != '\0';
        if (!has_source(written, written->asked[i].service)) {
            rc = add_service(written, written->asked[i].service, err);
        }
    }
    if (written->count > 1) {
        qsort_r(written->by_bytes, written->count, sizeof(size_t), compare_bytes, written);
        qsort_r(written->by_turn, written->count, sizeof(size_t), compare_turn, written);
    }
    for (size_t s = 0; rc == BATON_OK && turns && s < config->n_services; s++) {
        const char *service = config->services[s].name.s;
        struct baton_error why = {BATON_OK, ""};
        rc = add_topic(written, SOURCE_turns, service,
                       topic_name(TOPIC_turns, config->prefix.s, service).s, NULL, &why);
        rc = scan_pass_hidden(&written->hidden, rc, &why, err);
    }
    return rc;
}

/* ---- looking ---- */

struct look {
    struct written *written;
    struct source *source;
};

static bool is_later(const struct asked *one, const struct log_record *record)
{
    return record->at.v != one->at.v             ? record->at.v > one->at.v
           : record->partition != one->partition ? record->partition > one->partition
                                                 : record->offset > one->offset;
}

static bool is_earlier(const struct asked *one, const struct log_record *record)
{
    return !is_later(one, record) &&
           (record->partition != one->partition || record->offset != one->offset);
}

static void see_turn(struct written *written, const struct source *source,
                     const struct log_record *record)
{
    char key[33] = "";
    if (record->key_len != 32) {
        return;
    }
    memcpy(key, record->key, 32);
    for (size_t i = first_of(written, written->by_turn, key, NULL); i < written->count; i++) {
        struct asked *one = &written->asked[written->by_turn[i]];
        if (strcmp(one->turn, key) != 0) {
            break;
        }
        const size_t number = (size_t)(source - written->sources) + 1;
        if (source->kind == SOURCE_turns && record->value != NULL) {
            one->known = number;
        } else if (source->kind == SOURCE_turns && one->known == number) {
            one->known = 0; /* a tombstone: it ended long ago */
        }
        one->waits = one->waits || (source->kind == SOURCE_input && one->expired &&
                                    strcmp(one->service, source->service) == 0);
    }
}

static void see_bytes(struct written *written, const struct source *source,
                      const struct log_record *record)
{
    const struct bytes_id bytes = bytes_of(record);
    for (size_t i = first_of(written, written->by_bytes, NULL, &bytes); i < written->count; i++) {
        struct asked *one = &written->asked[written->by_bytes[i]];
        if (memcmp(&one->bytes, &bytes, sizeof(bytes)) != 0) {
            break;
        }
        if (strcmp(one->service, source->service) == 0) {
            one->waits = one->waits || source->kind == SOURCE_input;
            one->later = one->later || (source->kind == SOURCE_letters && is_later(one, record));
            one->again = one->again || (source->kind == SOURCE_letters && is_earlier(one, record) &&
                                        letter_code(record) == one->code);
        }
    }
}

static bool on_record(void *arg, const struct log_record *record)
{
    const struct look *look = arg;
    struct source *source = look->source;
    source->next = record->offset + 1;
    if (source->kind != SOURCE_letters && record->key != NULL) {
        see_turn(look->written, source, record);
    }
    if (source->kind != SOURCE_turns) {
        see_bytes(look->written, source, record);
    }
    return true;
}

baton_code written_look(struct written *written, struct baton_error *err)
{
    baton_code rc = written->opened ? BATON_OK : open_sources(written, err);
    for (size_t i = 0; rc == BATON_OK && i < written->n_sources; i++) {
        struct source *source = &written->sources[i];
        struct look look = {written, source};
        struct baton_error why = {BATON_OK, ""};
        rc = scan_partition(written->session->log, source->topic, source->partition,
                            source->next < 0 ? 0 : source->next, on_record, &look, NULL, &why);
        if (source->kind == SOURCE_turns) {
            rc = scan_pass_hidden(&written->hidden, rc, &why, err);
        } else if (source->kind == SOURCE_input && rc == BATON_E_not_permitted) {
            rc = BATON_OK;
        } else if (rc != BATON_OK) {
            baton_fail(err, rc, "%s", why.text);
        }
    }
    return rc;
}

baton_code written_ask(const struct written *written, size_t noted, enum written_state *ret_what,
                       struct baton_error *err)
{
    BATON_PRE(noted < written->count);
    const struct asked *one = &written->asked[noted];
    *ret_what = one->known > 0 ? WRITTEN_known
                : one->waits   ? WRITTEN_waits
                : one->later   ? WRITTEN_later
                : one->again   ? WRITTEN_again
                               : WRITTEN_no;
    return one->known > 0 || one->waits || one->later || one->turn[0] == '\0'
               ? BATON_OK
               : scan_hidden_end(&written->hidden, false, err);
}
