/*
 * Writes rejected records to their topics again, each once.
 * In: producer/cmd_dlq_replay.c
 * Out: producer/written.c, producer/resign.c, common/log/log.c
 */
#include "producer/replay.h"

#include "common/base/check.h"
#include "common/base/text.h"
#include "common/record/headers.h"
#include "producer/resign.h"
#include "producer/written.h"
#include "topics/catalogue.h"
#include "topics/letters.h"
#include "topics/scan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SEND_TIMEOUT_MS 10000
#define LOOK_EVERY_MS 1000 /* what others did meanwhile is seen so soon */

/* One that was asked for. */
struct ref {
    const char *id;
    char service[SERVICE_MAX + 1];
    int32_t partition;
    int64_t offset;
    bool found;
    size_t noted;
};

struct replays {
    struct session *session;
    const struct replay_request *request;
    const struct replay_hooks *hooks;
    struct ref *refs;
    size_t count;
    size_t at;   /* the next one */
    bool noting; /* the first reading */
    bool stopped;
    struct written *written;
    struct mono_ms looked;
    struct resigner resigner;
    struct log_publisher *publisher; /* opened by the first that is written */
};

/* The topic that the letter came from must be an input of the service whose dead letter it is. */
static baton_code origin_of(const struct session *session, const struct letter *letter,
                            struct topic_name *ret_topic, struct baton_error *err)
{
    static const enum topic_kind inputs[] = {TOPIC_handoff, TOPIC_control};
    if (strcmp(letter->service, LETTERS_OF_RUNS) == 0) {
        *ret_topic = topic_name(TOPIC_requests, session->config->prefix.s, NULL);
        if (strcmp(ret_topic->s, letter->topic) == 0) {
            return BATON_OK;
        }
    }
    for (size_t i = 0; i < COUNT_OF(inputs); i++) {
        *ret_topic = topic_name(inputs[i], session->config->prefix.s, letter->service);
        if (strcmp(ret_topic->s, letter->topic) == 0) {
            return BATON_OK;
        }
    }
    return baton_fail(err, BATON_E_invalid_request,
                      "dead letter %s names topic '%s' as its origin, which is no input of service "
                      "%s: it is not written anywhere",
                      letter->id.s, text_quote_of(letter->topic).s, letter->service);
}

/* ---- the record ---- */

static bool left_out(const struct replay_request *request, const char *name)
{
    bool out = letter_context_header(name);
    for (size_t i = 0; !out && i < request->n_without; i++) {
        out = strcmp(request->without[i], name) == 0;
    }
    return out;
}

static void note_dropped(struct replay_result *result, const char *name)
{
    const size_t len = strlen(result->dropped);
    snprintf(result->dropped + len, sizeof(result->dropped) - len, "%s%s", len > 0 ? ", " : "",
             name);
}

/* A copy for its topic; headers: room for LOG_HEADERS_MAX. */
static struct log_record again_of(const struct replay_request *request, const struct letter *letter,
                                  const char *topic, struct log_header *headers,
                                  struct replay_result *result)
{
    struct log_record record = *letter->record;
    size_t n = 0;
    for (size_t i = 0; i < record.n_headers && n < LOG_HEADERS_MAX; i++) {
        if (left_out(request, record.headers[i].name)) {
            note_dropped(result, record.headers[i].name);
        } else {
            headers[n++] = record.headers[i];
        }
    }
    record.topic = topic;
    record.headers = headers;
    record.n_headers = n;
    record.partition = LOG_PARTITION_BY_KEY;
    return record;
}

static void put_proof(struct log_record *record, struct log_header *headers,
                      const struct proof_text *proof)
{
    size_t n = 0;
    for (size_t i = 0; i < record->n_headers; i++) {
        if (strcmp(headers[i].name, HEADER_SIG) != 0) {
            headers[n++] = headers[i];
        }
    }
    if (proof->s[0] != '\0' && n < LOG_HEADERS_MAX) {
        headers[n++] = (struct log_header){HEADER_SIG, proof->s, strlen(proof->s)};
    }
    record->n_headers = n;
}

static baton_code publish(struct replays *all, const struct letter *letter,
                          struct log_record *record, struct baton_error *err)
{
    const char *key = record->key;
    int32_t partitions = 0;
    baton_code rc = scan_partitions(all->session->log, record->topic, &partitions, err);
    if (rc != BATON_OK) {
        return rc;
    }
    /* Without a key, or with one that names its partition by number, it goes where it came from. */
    if ((key == NULL || (record->key_len > 0 && key[0] == '~')) && letter->from_partition >= 0 &&
        letter->from_partition < partitions) {
        record->partition = letter->from_partition;
    }
    if (all->publisher == NULL) {
        rc = log_publisher_open(all->session->log, &all->publisher, err);
    }
    return rc == BATON_OK ? log_publish(all->publisher, record, 1, SEND_TIMEOUT_MS, err) : rc;
}

static baton_code write_again(struct replays *all, const struct letter *letter,
                              const struct topic_name *topic, struct replay_result *result,
                              struct baton_error *err)
{
    const struct topic_name handoffs =
        topic_name(TOPIC_handoff, all->session->config->prefix.s, letter->service);
    struct log_header headers[LOG_HEADERS_MAX];
    struct log_record record = again_of(all->request, letter, topic->s, headers, result);
    struct resigned resigned = {NULL, {""}};
    baton_code rc = BATON_OK;
    if (letter->code == BATON_E_handoff_expired && strcmp(topic->s, handoffs.s) == 0) {
        rc =
            resign(&all->resigner, letter->service, record.value, record.value_len, &resigned, err);
    }
    if (rc == BATON_OK && resigned.turn != NULL) {
        put_proof(&record, headers, &resigned.proof);
        record.value = resigned.turn->bytes;
        record.value_len = resigned.turn->len;
        snprintf(result->signed_by, sizeof(result->signed_by), "%s", resigned.turn->origin.s);
    }
    result->what = all->request->dry_run   ? REPLAYED_would
                   : resigned.turn != NULL ? REPLAYED_signed
                                           : REPLAYED_written;
    if (rc == BATON_OK && !all->request->dry_run) {
        rc = publish(all, letter, &record, err);
    }
    turn_free(resigned.turn);
    return rc;
}

/* ---- one letter ---- */

static baton_code replay_one(struct replays *all, const struct ref *ref,
                             const struct letter *letter, struct replay_result *result,
                             struct baton_error *err)
{
    struct topic_name topic;
    enum written_state state = WRITTEN_no;
    baton_code rc;
    snprintf(result->service, sizeof(result->service), "%s", letter->service);
    snprintf(result->turn_id, sizeof(result->turn_id), "%s", letter->turn_id);
    snprintf(result->role, sizeof(result->role), "%s", letter->role);
    if ((rc = origin_of(all->session, letter, &topic, err)) != BATON_OK ||
        (rc = identity_may_operate(&all->session->identity, letter->service, err)) != BATON_OK) {
        return rc;
    }
    if (mono_now().v - all->looked.v >= LOOK_EVERY_MS) {
        if ((rc = written_look(all->written, err)) != BATON_OK) {
            return rc;
        }
        all->looked = mono_now();
    }
    if ((rc = written_ask(all->written, ref->noted, &state, err)) != BATON_OK) {
        return rc;
    }
    switch (state) {
    case WRITTEN_known: /* it would be a duplicate at best */
        if (letter->code == BATON_E_turn_conflict && !all->request->hold) {
            return baton_fail(err, BATON_E_turn_conflict,
                              "turn %s is known with another content, so this record is never "
                              "taken: publish it with another key",
                              letter->turn_id);
        }
        result->what = REPLAYED_already;
        return BATON_OK;
    case WRITTEN_waits:
        result->what = REPLAYED_waits;
        return BATON_OK;
    case WRITTEN_later:
        result->what = REPLAYED_later;
        return BATON_OK;
    case WRITTEN_again:
        if (all->request->hold) {
            result->what = REPLAYED_held;
            return BATON_OK;
        }
        break;
    case WRITTEN_no:
        break;
    }
    return write_again(all, letter, &topic, result, err);
}

static bool may_go_on(struct replays *all)
{
    all->stopped = all->stopped || (all->hooks->next != NULL && !all->hooks->next(all->hooks->arg));
    return !all->stopped;
}

/* Those before the letter are not there. */
static bool pass_missing(struct replays *all, size_t end)
{
    for (; all->at < end; all->at++) {
        const struct ref *ref = &all->refs[all->at];
        struct replay_result result = {.turn_id = ""};
        struct baton_error err = {BATON_OK, ""};
        if (all->noting) {
            continue;
        }
        if (!may_go_on(all)) {
            return false;
        }
        baton_code rc = baton_fail(&err, BATON_E_handoff_not_found,
                                   "there is no rejected record %s; `baton dlq list` shows those "
                                   "there are",
                                   ref->id);
        all->hooks->done(all->hooks->arg, ref->id, &result, rc, &err);
    }
    return true;
}

struct stretch {
    struct replays *all;
    size_t end; /* refs of one partition, offsets rising */
};

static bool on_letter(void *arg, const struct letter *letter)
{
    struct stretch *stretch = arg;
    struct replays *all = stretch->all;
    size_t at = all->at;
    while (at < stretch->end && all->refs[at].offset < letter->offset) {
        at++;
    }
    if (at == stretch->end || all->refs[at].offset != letter->offset) {
        return true; /* nobody asked for it */
    }
    if (!pass_missing(all, at)) {
        return false;
    }
    struct ref *ref = &all->refs[all->at];
    if (all->noting) {
        ref->noted = written_note(all->written, letter);
        ref->found = true;
    } else if (!ref->found) {
        return true; /* came after the first reading: cannot be, for offsets only rise */
    } else if (!may_go_on(all)) {
        return false;
    } else {
        struct replay_result result = {.turn_id = ""};
        struct baton_error err = {BATON_OK, ""};
        const baton_code rc = replay_one(all, ref, letter, &result, &err);
        all->hooks->done(all->hooks->arg, ref->id, &result, rc, &err);
    }
    all->at++;
    return true;
}

/* Reads all that were asked for, a partition at a time as long as they follow one another. */
static baton_code read_all(struct replays *all, struct baton_error *err)
{
    baton_code rc = BATON_OK;
    all->at = 0;
    while (rc == BATON_OK && !all->stopped && all->at < all->count) {
        const struct ref *first = &all->refs[all->at];
        struct stretch stretch = {all, all->at + 1};
        while (stretch.end < all->count &&
               strcmp(all->refs[stretch.end].service, first->service) == 0 &&
               all->refs[stretch.end].partition == first->partition &&
               all->refs[stretch.end].offset > all->refs[stretch.end - 1].offset) {
            stretch.end++;
        }
        rc = letters_between(all->session->log, all->session->config, first->service,
                             first->partition, first->offset, all->refs[stretch.end - 1].offset,
                             on_letter, &stretch, err);
        if (rc == BATON_OK && !all->stopped) {
            (void)pass_missing(all, stretch.end);
        }
    }
    return rc;
}

baton_code replay_letters(struct session *session, const char *const *ids, size_t count,
                          const struct replay_request *request, const struct replay_hooks *hooks,
                          struct baton_error *err)
{
    struct replays all = {.session = session,
                          .request = request,
                          .hooks = hooks,
                          .count = count,
                          .noting = true,
                          .resigner = {.session = session}};
    baton_code rc = BATON_OK;
    if (count > 0 && request->to != NULL) {
        return baton_fail(err, BATON_E_invalid_request,
                          "%s is a rejected record and no turn: it goes to its own topic, --to "
                          "does not apply",
                          ids[0]);
    }
    if ((all.refs = calloc(count + 1, sizeof(*all.refs))) == NULL) {
        return baton_fail(err, BATON_E_no_memory, "no memory for a list");
    }
    for (size_t i = 0; rc == BATON_OK && i < count; i++) {
        all.refs[i].id = ids[i];
        rc = letter_id_split(ids[i], all.refs[i].service, &all.refs[i].partition,
                             &all.refs[i].offset, err);
    }
    if (rc == BATON_OK && (rc = written_new(session, &all.written, err)) == BATON_OK &&
        (rc = read_all(&all, err)) == BATON_OK &&
        (rc = written_look(all.written, err)) == BATON_OK) {
        all.looked = mono_now();
        all.noting = false;
        rc = read_all(&all, err);
    }
    if (all.publisher != NULL) {
        log_publisher_close(all.publisher);
    }
    resigner_done(&all.resigner);
    written_free(all.written);
    free(all.refs);
    return rc;
}

struct single {
    struct replay_result *result;
    struct baton_error *err;
    baton_code rc;
};

static void on_single(void *arg, const char *id, const struct replay_result *result, baton_code rc,
                      const struct baton_error *err)
{
    struct single *single = arg;
    (void)id;
    *single->result = *result;
    single->rc = rc == BATON_OK ? rc : baton_fail(single->err, rc, "%s", err->text);
}

baton_code replay_letter(struct session *session, const char *letter_id,
                         const struct replay_request *request, struct replay_result *ret_result,
                         struct baton_error *err)
{
    struct single single = {ret_result, err, BATON_OK};
    const struct replay_hooks hooks = {.done = on_single, .arg = &single};
    memset(ret_result, 0, sizeof(*ret_result));
    baton_code rc = replay_letters(session, &letter_id, 1, request, &hooks, err);
    return rc == BATON_OK ? single.rc : rc;
}
