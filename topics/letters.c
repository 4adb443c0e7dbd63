/* Reads dead-letter topics. Called by the verbs of `dlq` (producer/cmd_dlq_*.c) and by what is behind them. */
#include "topics/letters.h"

#include "common/base/check.h"
#include "common/base/limits.h"
#include "common/base/quantity.h"
#include "common/base/role.h"
#include "common/base/text.h"
#include "common/record/dead_letter.h"
#include "common/record/json.h"
#include "common/record/request.h"
#include "topics/catalogue.h"
#include "topics/scan.h"

#include <stdio.h>
#include <string.h>

static const struct log_header *header_of(const struct log_record *record, const char *name)
{
    for (size_t i = 0; i < record->n_headers; i++) {
        if (strcmp(record->headers[i].name, name) == 0 && record->headers[i].value != NULL) {
            return &record->headers[i];
        }
    }
    return NULL;
}

static void text_of(const struct log_record *record, const char *name, char *ret_text, size_t size)
{
    const struct log_header *header = header_of(record, name);
    size_t len = header == NULL ? 0 : header->value_len < size - 1 ? header->value_len : size - 1;
    for (size_t i = 0; i < len; i++) {
        char c = ((const char *)header->value)[i];
        ret_text[i] = c;
        if (c == '\0') {
            len = i;
        }
    }
    ret_text[len] = '\0';
}

static int64_t number_of(const struct log_record *record, const char *name, int64_t max)
{
    const struct log_header *header = header_of(record, name);
    int64_t number;
    if (header == NULL || !quantity_int_parse(header->value, header->value_len, &number) ||
        number < 0 || number > max) {
        return -1;
    }
    return number;
}

/* What the value of a handoff claims about itself, if it is JSON at all. */
static void claims_of(const struct log_record *record, struct letter *letter)
{
    struct json_doc *doc = NULL;
    enum role role;
    size_t len;
    if (record->key != NULL && hex_valid(record->key, record->key_len, 32)) {
        memcpy(letter->turn_id, record->key, 32);
    }
    if (record->value == NULL || json_parse(record->value, record->value_len, LIMIT_VALUE,
                                            LIMIT_JSON_DEPTH, &doc, NULL) != BATON_OK) {
        return;
    }
    const struct json_value *root = json_root(doc);
    if (json_kind(root) == JSON_object) {
        const struct json_value *value = json_member(root, "role");
        if (value != NULL && json_kind(value) == JSON_text) {
            const char *text = json_text(value, &len);
            if (role_parse(text, len, &role)) {
                snprintf(letter->role, sizeof(letter->role), "%s", role_word(role));
            }
        }
        value = json_member(root, "task_id");
        if (value != NULL && json_kind(value) == JSON_text) {
            const char *text = json_text(value, &len);
            if (task_id_valid(text, len)) {
                snprintf(letter->task_id, sizeof(letter->task_id), "%s", text);
            }
        }
    }
    json_free(doc);
}

/* What a request claims, in the same way. */
static void claims_of_request(const struct log_record *record, struct letter *letter)
{
    struct json_doc *doc = NULL;
    size_t len;
    if (record->key != NULL && plain_id_valid(record->key, record->key_len)) {
        memcpy(letter->run_id, record->key, record->key_len);
    }
    if (record->value == NULL || json_parse(record->value, record->value_len, LIMIT_VALUE,
                                            LIMIT_JSON_DEPTH, &doc, NULL) != BATON_OK) {
        return;
    }
    const struct json_value *kind =
        json_kind(json_root(doc)) == JSON_object ? json_member(json_root(doc), "kind") : NULL;
    const char *word = kind != NULL && json_kind(kind) == JSON_text ? json_text(kind, &len) : "";
    for (int i = 0; i < REQUEST_COUNT; i++) {
        if (strcmp(word, request_word((enum request_kind)i)) == 0) {
            snprintf(letter->kind, sizeof(letter->kind), "%s", word);
        }
    }
    json_free(doc);
}

static bool rejected(const struct log_record *record)
{
    return header_of(record, DEAD_LETTER_COUNT) == NULL;
}

baton_code letter_code(const struct log_record *record)
{
    char word[64];
    baton_code code;
    text_of(record, DEAD_LETTER_CODE, word, sizeof(word));
    return baton_code_parse(word, &code) ? code : BATON_E_unexpected;
}

static void letter_read(const char *service, const struct log_record *record,
                        struct letter *ret_letter)
{
    memset(ret_letter, 0, sizeof(*ret_letter));
    ret_letter->service = service;
    ret_letter->partition = record->partition;
    ret_letter->offset = record->offset;
    ret_letter->at = record->at;
    ret_letter->record = record;
    snprintf(ret_letter->id.s, sizeof(ret_letter->id.s), "%s:%d:%lld", service,
             (int)record->partition, (long long)record->offset);
    ret_letter->code = letter_code(record);
    text_of(record, DEAD_LETTER_MESSAGE, ret_letter->message, sizeof(ret_letter->message));
    text_of(record, DEAD_LETTER_TOPIC, ret_letter->topic, sizeof(ret_letter->topic));
    ret_letter->from_partition = (int32_t)number_of(record, DEAD_LETTER_PARTITION, INT32_MAX);
    ret_letter->from_offset = number_of(record, DEAD_LETTER_OFFSET, INT64_MAX);
    if (strcmp(service, LETTERS_OF_RUNS) == 0) {
        claims_of_request(record, ret_letter);
    } else {
        claims_of(record, ret_letter);
    }
}

struct each {
    const char *service;
    letter_fn *fn;
    void *arg;
};

static bool each_record(void *arg, const struct log_record *record)
{
    struct each *each = arg;
    struct letter letter;
    if (!rejected(record)) {
        return true;
    }
    letter_read(each->service, record, &letter);
    return each->fn(each->arg, &letter);
}

static struct topic_name topic_of(const struct config *config, const char *service)
{
    return strcmp(service, LETTERS_OF_RUNS) == 0
               ? topic_name(TOPIC_dlq_requests, config->prefix.s, NULL)
               : topic_name(TOPIC_dlq, config->prefix.s, service);
}

static baton_code each_of_service(struct log *log, const struct config *config, struct each *each,
                                  bool *stopped, struct baton_error *err)
{
    struct topic_name topic = topic_of(config, each->service);
    int32_t partitions = 0;
    baton_code rc = scan_partitions(log, topic.s, &partitions, err);
    for (int32_t p = 0; rc == BATON_OK && !*stopped && p < partitions; p++) {
        rc = scan_partition(log, topic.s, p, 0, each_record, each, stopped, err);
    }
    return rc;
}

baton_code letters_each(struct log *log, const struct config *config, const char *service,
                        letter_fn *fn, void *arg, struct baton_error *err)
{
    struct scan_hidden hidden = {0};
    struct each each = {.fn = fn, .arg = arg};
    bool stopped = false;
    baton_code rc = BATON_OK;
    for (size_t s = 0; rc == BATON_OK && !stopped && s <= config->n_services; s++) {
        struct baton_error why = {BATON_OK, ""};
        each.service = s < config->n_services ? config->services[s].name.s : LETTERS_OF_RUNS;
        if (service == NULL || strcmp(service, each.service) == 0) {
            rc = each_of_service(log, config, &each, &stopped, &why);
            rc = scan_pass_hidden(&hidden, rc, &why, err);
        }
    }
    return rc == BATON_OK ? scan_hidden_end(&hidden, hidden.seen > 0, err) : rc;
}

static bool tail_record(void *arg, const struct tail_place *place, const struct log_record *record,
                        void *ret_row)
{
    const struct letter_tail *letters = arg;
    struct letter letter;
    if (!rejected(record)) {
        return false;
    }
    letter_read(place->service, record, &letter);
    return letters->fn(letters->arg, &letter, ret_row);
}

baton_code letters_tail(struct tail *tail, const struct config *config, const char *service,
                        struct letter_tail *letters, struct baton_error *err)
{
    baton_code rc = BATON_OK;
    for (size_t s = 0; rc == BATON_OK && s <= config->n_services; s++) {
        const char *name = s < config->n_services ? config->services[s].name.s : LETTERS_OF_RUNS;
        if (service == NULL || strcmp(service, name) == 0) {
            rc = tail_add(tail, TAIL_letters, name, topic_of(config, name).s, false, tail_record,
                          letters, err);
        }
    }
    return rc;
}

/* ---- one ---- */

static bool id_split(const char *text, char *ret_service, int32_t *ret_partition,
                     int64_t *ret_offset)
{
    const char *first = strchr(text, ':');
    const char *second = first != NULL ? strchr(first + 1, ':') : NULL;
    int64_t partition;
    const size_t name_len = first != NULL ? (size_t)(first - text) : 0;
    const bool runs =
        name_len == strlen(LETTERS_OF_RUNS) && memcmp(text, LETTERS_OF_RUNS, name_len) == 0;
    if (second == NULL || (!runs && !service_id_valid(text, name_len)) ||
        !quantity_int_parse(first + 1, (size_t)(second - first - 1), &partition) ||
        !quantity_int_parse(second + 1, strlen(second + 1), ret_offset) || partition < 0 ||
        partition >= LOG_PARTITIONS_MAX || *ret_offset < 0) {
        return false;
    }
    memcpy(ret_service, text, (size_t)(first - text));
    ret_service[first - text] = '\0';
    *ret_partition = (int32_t)partition;
    return true;
}

bool letter_id_valid(const char *text)
{
    char service[SERVICE_MAX + 1];
    int32_t partition;
    int64_t offset;
    return id_split(text, service, &partition, &offset);
}

baton_code letter_id_split(const char *text, char ret_service[SERVICE_MAX + 1],
                           int32_t *ret_partition, int64_t *ret_offset, struct baton_error *err)
{
    return id_split(text, ret_service, ret_partition, ret_offset)
               ? BATON_OK
               : baton_fail(err, BATON_E_invalid_request,
                            "'%s' is no dead letter's id: a turn id, or service:partition:offset "
                            "as `baton dlq list` shows it",
                            text_quote_of(text).s);
}

baton_code letters_between(struct log *log, const struct config *config, const char *service,
                           int32_t partition, int64_t first, int64_t last, letter_fn *fn, void *arg,
                           struct baton_error *err)
{
    const struct config_service *known = NULL;
    const bool runs = strcmp(service, LETTERS_OF_RUNS) == 0;
    struct each each = {.fn = fn, .arg = arg};
    int32_t partitions = 0;
    int64_t low = 0;
    int64_t high = 0;
    baton_code rc = runs ? BATON_OK : config_service_get(config, service, &known, err);
    if (rc != BATON_OK) {
        return rc;
    }
    each.service = runs ? LETTERS_OF_RUNS : known->name.s;
    const struct topic_name topic = topic_of(config, service);
    if ((rc = scan_partitions(log, topic.s, &partitions, err)) != BATON_OK ||
        partition >= partitions) {
        return rc;
    }
    if ((rc = log_watermarks(log, topic.s, partition, &low, &high, err)) == BATON_OK) {
        first = first < low ? low : first;
        high = last < high ? last + 1 : high;
        rc = scan_range(log, topic.s, partition, first, high, each_record, &each, NULL, err);
    }
    return rc;
}

struct one {
    letter_fn *fn;
    void *arg;
    bool found;
};

static bool one_letter(void *arg, const struct letter *letter)
{
    struct one *one = arg;
    one->found = true;
    return one->fn(one->arg, letter);
}

baton_code letters_one(struct log *log, const struct config *config, const char *id, letter_fn *fn,
                       void *arg, struct baton_error *err)
{
    char service[SERVICE_MAX + 1];
    int32_t partition;
    int64_t offset;
    struct one one = {.fn = fn, .arg = arg};
    baton_code rc = letter_id_split(id, service, &partition, &offset, err);
    if (rc == BATON_OK) {
        rc =
            letters_between(log, config, service, partition, offset, offset, one_letter, &one, err);
    }
    if (rc == BATON_OK && !one.found) {
        return baton_fail(err, BATON_E_handoff_not_found,
                          "there is no rejected record %s; `baton dlq list` shows those there are",
                          id);
    }
    return rc;
}

bool letter_context_header(const char *name)
{
    static const char *const added[] = {
        DEAD_LETTER_TOPIC, DEAD_LETTER_PARTITION, DEAD_LETTER_OFFSET, DEAD_LETTER_GROUP,
        DEAD_LETTER_COUNT, DEAD_LETTER_MESSAGE,   DEAD_LETTER_CODE,   DEAD_LETTER_CLASS,
    };
    for (size_t i = 0; i < COUNT_OF(added); i++) {
        if (strcmp(added[i], name) == 0) {
            return true;
        }
    }
    return false;
}
