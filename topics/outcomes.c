/* Follows outcomes of one turn. Called by who has sent something: producer/publish_wait.c, producer/operate.c,
 * producer/ask.c. */
#include "topics/outcomes.h"

#include "common/base/jsonw.h"
#include "common/base/limits.h"
#include "common/base/text.h"
#include "common/record/json.h"
#include "common/record/receipt.h"
#include "topics/catalogue.h"
#include "topics/scan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct outcome_watch {
    struct log *log;
    struct topic_name topic;
    int32_t partition;
    char key[ID_MAX + 1];
    struct receiver receiver;
    struct log_reader *reader;
    struct log_batch batch;
    size_t pos;
};

static baton_code read_from(struct outcome_watch *watch, int64_t from, struct baton_error *err)
{
    struct log_reader *reader = NULL;
    baton_code rc = log_reader_open(watch->log, watch->topic.s, watch->partition, from,
                                    LOG_READ_committed, &reader, err);
    if (rc == BATON_OK) {
        if (watch->reader != NULL) {
            log_reader_close(watch->reader);
        }
        watch->reader = reader;
        log_batch_free(&watch->batch);
        watch->batch = (struct log_batch){0};
        watch->pos = 0;
    }
    return rc;
}

/* key NULL: every key of the partition. */
static baton_code open_at(struct log *log, const char *prefix, const char *key, int32_t partition,
                          const struct outcome_trust *trust, struct outcome_watch **ret_watch,
                          struct baton_error *err)
{
    struct outcome_watch *watch = calloc(1, sizeof(*watch));
    int32_t partitions = 0;
    int64_t low;
    int64_t high;
    baton_code rc;
    if (watch == NULL) {
        return baton_fail(err, BATON_E_no_memory, "no memory to wait for an outcome");
    }
    watch->log = log;
    watch->topic = topic_name(TOPIC_outcomes, prefix, NULL);
    snprintf(watch->key, sizeof(watch->key), "%s", key != NULL ? key : "");
    if ((rc = scan_partitions(log, watch->topic.s, &partitions, err)) == BATON_OK) {
        watch->partition = key != NULL ? log_partition_of(key, strlen(key), partitions) : partition;
        watch->receiver = (struct receiver){.trust = trust->trust,
                                            .fleet = trust->fleet,
                                            .proof_required = trust->required,
                                            .partitions = partitions};
        if ((rc = log_watermarks(log, watch->topic.s, watch->partition, &low, &high, err)) ==
            BATON_OK) {
            rc = read_from(watch, high, err);
        }
    }
    if (rc != BATON_OK) {
        outcome_watch_close(watch);
        return rc;
    }
    *ret_watch = watch;
    return BATON_OK;
}

baton_code outcome_watch_open(struct log *log, const char *prefix, const char *key,
                              const struct outcome_trust *trust, struct outcome_watch **ret_watch,
                              struct baton_error *err)
{
    return open_at(log, prefix, key, 0, trust, ret_watch, err);
}

baton_code outcome_watch_open_all(struct log *log, const char *prefix, int32_t partition,
                                  const struct outcome_trust *trust,
                                  struct outcome_watch **ret_watch, struct baton_error *err)
{
    return open_at(log, prefix, NULL, partition, trust, ret_watch, err);
}

void outcome_watch_close(struct outcome_watch *watch)
{
    if (watch != NULL) {
        log_batch_free(&watch->batch);
        if (watch->reader != NULL) {
            log_reader_close(watch->reader);
        }
        free(watch);
    }
}

baton_code outcome_watch_rewind(struct outcome_watch *watch, struct baton_error *err)
{
    return read_from(watch, 0, err);
}

static struct outcome *from_batch(struct outcome_watch *watch)
{
    size_t key_len = strlen(watch->key);
    while (watch->pos < watch->batch.count) {
        const struct log_record *record = &watch->batch.records[watch->pos++];
        struct receipt receipt;
        if (key_len > 0 &&
            (record->key_len != key_len || memcmp(record->key, watch->key, key_len) != 0)) {
            continue;
        }
        (void)receipt_outcome(&watch->receiver, record, &receipt);
        struct outcome *outcome = receipt.outcome; /* NULL: refused, and passed over */
        receipt.outcome = NULL;
        receipt_done(&receipt);
        if (outcome != NULL) {
            return outcome;
        }
    }
    return NULL;
}

baton_code outcome_watch_next(struct outcome_watch *watch, struct mono_ms until,
                              struct outcome **ret_outcome, struct baton_error *err)
{
    *ret_outcome = NULL;
    for (;;) {
        if ((*ret_outcome = from_batch(watch)) != NULL) {
            return BATON_OK;
        }
        int64_t rest = until.v - mono_now().v;
        watch->pos = 0;
        baton_code rc = log_reader_next(watch->reader, 64, rest < 0 ? 0 : rest, &watch->batch, err);
        if (rc != BATON_OK) {
            watch->batch.count = 0;
            return rc;
        }
        if (watch->batch.count == 0 && rest <= 0) {
            return BATON_OK;
        }
    }
}

/* ---- printing ---- */

static const struct json_value *result_member(const char *result, size_t len, const char *name,
                                              struct json_doc **ret_doc)
{
    *ret_doc = NULL;
    if (result == NULL ||
        json_parse(result, len, LIMIT_RECORD, LIMIT_JSON_DEPTH + 4, ret_doc, NULL) != BATON_OK) {
        *ret_doc = NULL;
        return NULL;
    }
    const struct json_value *root = json_root(*ret_doc);
    const struct json_value *value =
        json_kind(root) == JSON_object ? json_member(root, name) : NULL;
    return value != NULL && json_kind(value) == JSON_text ? value : NULL;
}

struct verdict_text result_verdict(const char *result, size_t result_len)
{
    struct verdict_text text = {""};
    struct json_doc *doc;
    const struct json_value *value = result_member(result, result_len, "verdict", &doc);
    if (value != NULL) {
        snprintf(text.s, sizeof(text.s), "%s", json_text(value, NULL));
    }
    json_free(doc);
    return text;
}

void result_summary(const char *result, size_t result_len, struct buf *out)
{
    struct json_doc *doc;
    size_t len;
    const struct json_value *value = result_member(result, result_len, "summary", &doc);
    if (value != NULL) {
        const char *text = json_text(value, &len);
        buf_add(out, text, len);
    }
    json_free(doc);
}

void result_print(const char *result, size_t result_len, struct buf *out)
{
    for (size_t i = 0; i < result_len;) {
        uint32_t point;
        size_t n = text_utf8_next(result + i, result_len - i, &point);
        if (n == 0) {
            out->broken = true; /* a record's JSON is valid UTF-8: somebody skipped the parser */
            return;
        }
        if (point < 0x20) {
            buf_add_char(out, ' '); /* such a character stands between the values only */
        } else if (point >= 0x10000 && text_dangerous(point)) {
            buf_printf(out, "\\u%04x\\u%04x", 0xd800 + ((point - 0x10000) >> 10),
                       0xdc00 + ((point - 0x10000) & 0x3ff));
        } else if (point >= 0x7f && text_dangerous(point)) {
            buf_printf(out, "\\u%04x", point);
        } else {
            buf_add(out, result + i, n);
        }
        i += n;
    }
}

static void text_or_null(struct jsonw *w, const char *key, const char *text)
{
    jsonw_key_text(w, key, text != NULL && text[0] != '\0' ? text : NULL);
}

void outcome_print(const struct outcome *outcome, struct buf *out)
{
    struct jsonw w = jsonw_to(out);
    struct verdict_text verdict = result_verdict(outcome->result, outcome->result_len);
    jsonw_begin_object(&w);
    jsonw_key_text(&w, "event", outcome_word(outcome->event));
    jsonw_key_text(&w, "turn_id", outcome->turn_id.s);
    text_or_null(&w, "role", outcome->has_role ? role_word(outcome->role) : NULL);
    jsonw_key_text(&w, "service", outcome->service.s);
    text_or_null(&w, "state", outcome->has_state ? turn_state_word(outcome->state) : NULL);
    text_or_null(&w, "verdict", verdict.s);
    jsonw_key_int(&w, "attempt", outcome->attempt);
    text_or_null(&w, "class", outcome->has_class ? failure_word(outcome->class) : NULL);
    text_or_null(&w, "code", outcome->code != BATON_OK ? baton_code_word(outcome->code) : NULL);
    text_or_null(&w, "to", outcome->to.s);
    jsonw_key_text(&w, "at", wall_text(outcome->at).s);
    jsonw_key(&w, "result");
    jsonw_raw(&w, "", 0);
    if (outcome->result != NULL) {
        result_print(outcome->result, outcome->result_len, out);
    } else {
        buf_add_text(out, "null");
    }
    jsonw_end(&w);
}
