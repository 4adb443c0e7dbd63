/* Publishing: refusals before side effects, one signed record, repeats, and waiting for what
 * becomes of it. */
#include "tests/unit/producer/host.h"

#include "common/base/limits.h"
#include "common/base/metrics.h"
#include "common/record/keys.h"
#include "common/record/receipt.h"
#include "producer/publish.h"
#include "topics/outcomes.h"
#include "topics/provision.h"

struct world {
    struct host host;
    struct publisher publisher;
};

static void world_open(struct world *w, const char *more)
{
    char text[2048];
    struct keys_plan plan = {NULL, 0};
    struct baton_error err = {BATON_OK, ""};
    memset(w, 0, sizeof(*w));
    snprintf(text, sizeof(text), HOST_SERVICES "%s", more);
    host_open(&w->host, text);
    if (keys_apply_config(w->host.config, &plan, &err) != BATON_OK ||
        provision_all(w->host.config, NULL, &err) != BATON_OK ||
        publisher_open(w->host.config, &w->publisher, &err) != BATON_OK) {
        fail_msg("%s", err.text);
    }
    keys_plan_done(&plan);
    host_log(&w->host);
}

static void world_close(struct world *w)
{
    publisher_close(&w->publisher);
    host_close(&w->host);
}

static struct publish_request request_of(const char *key)
{
    return (struct publish_request){.service = "alpha",
                                    .role = "reviewer",
                                    .task_id = "t-1",
                                    .key = key,
                                    .payload = "x",
                                    .payload_len = 1};
}

static struct published publish(struct world *w, const struct publish_request *request)
{
    struct published published;
    struct baton_error err = {BATON_OK, ""};
    if (publisher_publish(&w->publisher, request, &published, &err) != BATON_OK) {
        fail_msg("%s", err.text);
    }
    return published;
}

static int64_t records_in(struct world *w, enum topic_kind kind, const char *service)
{
    struct topic_name topic = topic_name(kind, "baton", service);
    int64_t sum = 0;
    for (int32_t p = 0; p < 4; p++) {
        int64_t low;
        int64_t high;
        assert_int_equal(log_watermarks(w->host.log, topic.s, p, &low, &high, NULL), BATON_OK);
        sum += high;
    }
    return sum;
}

/* What is refused has not even opened the log. */
static void test_refusals_come_before_the_log_is_opened(void **state)
{
    (void)state;
    struct world w;
    char key[KEY_MAX + 2];
    char large[LIMIT_VALUE + 1];
    memset(key, 'k', sizeof(key) - 1);
    key[sizeof(key) - 1] = '\0';
    memset(large, 'x', sizeof(large));
    world_open(&w, "");
    struct {
        baton_code code;
        struct publish_request request;
    } rows[] = {
        {BATON_E_bad_service, {.service = "Alpha", .role = "owner", .task_id = "t"}},
        {BATON_E_bad_service, {.service = "coordinator", .role = "owner", .task_id = "t"}},
        {BATON_E_bad_service, {.service = NULL, .role = "owner", .task_id = "t"}},
        {BATON_E_unknown_service, {.service = "gamma", .role = "owner", .task_id = "t"}},
        {BATON_E_role_not_served, {.service = "beta", .role = "owner", .task_id = "t"}},
        {BATON_E_invalid_request, {.service = "alpha", .role = "Owner", .task_id = "t"}},
        {BATON_E_invalid_request, {.service = "alpha", .role = "", .task_id = "t"}},
        {BATON_E_invalid_request, {.service = "alpha", .role = NULL, .task_id = "t"}},
        {BATON_E_invalid_request, {.service = "alpha", .role = "owner", .task_id = "a b"}},
        {BATON_E_invalid_request, {.service = "alpha", .role = "owner", .task_id = NULL}},
        {BATON_E_invalid_request,
         {.service = "alpha", .role = "owner", .task_id = "t", .task_rev = -1}},
        {BATON_E_invalid_request,
         {.service = "alpha", .role = "owner", .task_id = "t", .key = key}},
        {BATON_E_invalid_request,
         {.service = "alpha", .role = "owner", .task_id = "t", .intent = "A b"}},
        {BATON_E_invalid_request,
         {.service = "alpha", .role = "owner", .task_id = "t", .summary = ""}},
        {BATON_E_invalid_request,
         {.service = "alpha", .role = "owner", .task_id = "t", .place = "etc"}},
        {BATON_E_invalid_request,
         {.service = "alpha", .role = "owner", .task_id = "t", .data = "[1]", .data_len = 3}},
        {BATON_E_invalid_request,
         {.service = "alpha", .role = "owner", .task_id = "t", .life_ms = TURN_LIFE_MAX_MS + 1}},
        {BATON_E_record_too_large,
         {.service = "alpha",
          .role = "owner",
          .task_id = "t",
          .payload = large,
          .payload_len = sizeof(large)}},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct published published;
        struct baton_error err = {BATON_OK, ""};
        baton_code rc = publisher_publish(&w.publisher, &rows[i].request, &published, &err);
        if (rc != rows[i].code || w.publisher.log != NULL || err.text[0] == '\0') {
            fail_msg("row %zu: %s, %s", i, baton_code_word(rc), err.text);
        }
    }
    assert_int_equal(records_in(&w, TOPIC_handoff, "alpha"), 0);
    world_close(&w);
}

/* I11: the error lists the services that there are. */
static void test_i11_an_unknown_service_is_answered_with_the_known_ones(void **state)
{
    (void)state;
    struct world w;
    struct published published;
    struct baton_error err = {BATON_OK, ""};
    world_open(&w, "");
    struct publish_request request = request_of(NULL);
    request.service = "alfa";
    assert_int_equal(publisher_publish(&w.publisher, &request, &published, &err),
                     BATON_E_unknown_service);
    assert_non_null(strstr(err.text, "alpha, beta"));
    world_close(&w);
}

/* X6: the identity has no right for this role here; nothing is sent. */
static void test_x6_rights_are_checked_before_sending(void **state)
{
    (void)state;
    struct world w;
    struct host *host = &w.host;
    struct publisher ci;
    struct published published;
    struct keys_made made;
    struct baton_error err = {BATON_OK, ""};
    const char *const create[] = {"alpha=owner"};
    world_open(&w, "");
    const struct keys_folders folders = {host->config->keys, host->config->trust};
    const struct keys_wish wish = {.kind = "program", .create = create, .n_create = 1};
    assert_int_equal(keys_generate(&folders, "ci", &wish, false, &made, &err), BATON_OK);
    struct config *config = host_config(
        host,
        "identity: ci\nservices:\n"
        "  alpha: {roles: [owner, reviewer], executor: {kind: exec, command: [/bin/true]}}\n");
    assert_int_equal(publisher_open(config, &ci, &err), BATON_OK);
    struct publish_request request = request_of(NULL);
    assert_int_equal(publisher_publish(&ci, &request, &published, &err), BATON_E_not_permitted);
    assert_null(ci.log);
    request.role = "owner";
    assert_int_equal(publisher_publish(&ci, &request, &published, &err), BATON_OK);
    assert_int_equal(records_in(&w, TOPIC_handoff, "alpha"), 1);
    publisher_close(&ci);
    config_free(config);
    world_close(&w);
}

static void test_no_key_is_unauthenticated(void **state)
{
    (void)state;
    struct world w;
    struct publisher none;
    struct baton_error err = {BATON_OK, ""};
    world_open(&w, "");
    struct config *config = host_config(&w.host, "identity: nobody\n");
    assert_int_equal(publisher_open(config, &none, &err), BATON_E_unauthenticated);
    assert_non_null(strstr(err.text, "baton keys generate"));
    config_free(config);
    world_close(&w);
}

static void test_x3_a_revoked_key_signs_nothing(void **state)
{
    (void)state;
    struct world w;
    struct publisher none;
    struct baton_error err = {BATON_OK, ""};
    bool known = false;
    world_open(&w, "");
    struct keys_folders folders = {w.host.config->keys, w.host.config->trust};
    struct key_id id = signer_key_id(w.publisher.identity.signer);
    assert_int_equal(keys_revoke(&folders, id.s, &known, &err), BATON_OK);
    assert_int_equal(publisher_open(w.host.config, &none, &err), BATON_E_unauthenticated);
    assert_non_null(strstr(err.text, "is revoked; `baton keys rotate"));
    world_close(&w);
}

static void test_a_service_without_topics_is_unknown(void **state)
{
    (void)state;
    struct world w;
    struct publisher publisher;
    struct published published;
    struct baton_error err = {BATON_OK, ""};
    world_open(&w, "");
    struct config *config = host_config(
        &w.host, "identity: alice\nservices:\n"
                 "  gamma: {roles: [reviewer], executor: {kind: exec, command: [/bin/true]}}\n");
    assert_int_equal(publisher_open(config, &publisher, &err), BATON_OK);
    struct publish_request request = request_of(NULL);
    request.service = "gamma";
    assert_int_equal(publisher_publish(&publisher, &request, &published, &err),
                     BATON_E_unknown_service);
    assert_non_null(strstr(err.text, "baton topics apply"));
    publisher_close(&publisher);
    config_free(config);
    world_close(&w);
}

/* The record of a partition at an offset, judged as its worker would. */
static baton_code judge(struct world *w, const struct published *published,
                        struct receipt *ret_receipt)
{
    struct log_reader *reader = NULL;
    struct log_batch batch = {0};
    const struct receiver receiver = {w->publisher.identity.trust, w->publisher.identity.fleet,
                                      true, published->service.s, 4};
    struct topic_name topic = topic_name(TOPIC_handoff, "baton", published->service.s);
    assert_int_equal(log_reader_open(w->host.log, topic.s, published->partition, published->offset,
                                     LOG_READ_committed, &reader, NULL),
                     BATON_OK);
    assert_int_equal(log_reader_next(reader, 1, 1000, &batch, NULL), BATON_OK);
    assert_int_equal(batch.count, 1);
    baton_code rc = receipt_handoff(&receiver, &batch.records[0], ret_receipt);
    log_batch_free(&batch);
    log_reader_close(reader);
    return rc;
}

static void test_what_is_published_is_what_a_worker_takes(void **state)
{
    (void)state;
    struct world w;
    struct receipt receipt;
    const char trace[] = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    world_open(&w, "");
    struct publish_request request = request_of("k-1");
    request.traceparent = trace;
    request.wait = PUBLISH_WAIT_claim;
    request.timeout_ms = 0;
    struct published published = publish(&w, &request);
    assert_true(published.timed_out);
    assert_int_equal(judge(&w, &published, &receipt), BATON_OK);
    assert_string_equal(receipt.turn->id.s, published.turn_id.s);
    assert_string_equal(receipt.turn->origin.s, "alice");
    assert_int_equal(receipt.turn->role, ROLE_reviewer);
    assert_string_equal(receipt.turn->key, "k-1");
    assert_true(receipt.wait_claimed);
    assert_memory_equal(receipt.traceparent, trace, 35); /* the same trace, another span */
    receipt_done(&receipt);
    published_done(&published);
    world_close(&w);
}

static struct prepared prepared_of(struct world *w, const char *key)
{
    struct prepared one;
    struct baton_error err = {BATON_OK, ""};
    const struct publish_request request = request_of(key);
    assert_int_equal(publisher_prepare(&w->publisher, &request, &one, &err), BATON_OK);
    return one;
}

/* One of two is refused: who sends them then one by one tells each once. */
static void test_a_batch_that_goes_one_by_one_is_told_once(void **state)
{
    (void)state;
    struct world w;
    struct baton_error err;
    world_open(&w, "traces:\n  endpoint: http://127.0.0.1:9/v1/traces\n");
    struct prepared list[] = {prepared_of(&w, "k-1"), prepared_of(&w, "k-2")};
    list[1].published.service = service_id_of("gamma"); /* which has no topic */
    assert_int_equal(publisher_look(&w.publisher, "alpha", &err), BATON_OK);
    metrics_test_reset();
    const baton_code rc = publisher_send_all(&w.publisher, list, 2, &err);
    assert_true(rc != BATON_OK && publish_of_one(rc));
    assert_int_equal(publisher_send_all(&w.publisher, &list[0], 1, &err), BATON_OK);
    assert_int_equal(publisher_send_all(&w.publisher, &list[1], 1, &err), rc);
    prepared_done(&list[0]);
    prepared_done(&list[1]);
    world_close(&w); /* what no collector took is counted as dropped */
    assert_int_equal(metric_get(METRIC_spans_dropped), 2);
}

/* the id is a hash of who, where, role, task and key. */
static void test_r29_the_same_key_is_the_same_turn(void **state)
{
    (void)state;
    struct world w;
    world_open(&w, "");
    struct publish_request request = request_of("k-1");
    struct turn_id first = publish(&w, &request).turn_id;
    assert_string_equal(publish(&w, &request).turn_id.s, first.s);
    request.payload = "y"; /* another content under the id: the owner's to refuse */
    assert_string_equal(publish(&w, &request).turn_id.s, first.s);
    request.role = "owner";
    assert_string_not_equal(publish(&w, &request).turn_id.s, first.s);
    request.role = "reviewer";
    request.service = "beta";
    assert_string_not_equal(publish(&w, &request).turn_id.s, first.s);
    request.service = "alpha";
    request.key = NULL;
    struct published a = publish(&w, &request);
    struct published b = publish(&w, &request);
    assert_string_not_equal(a.turn_id.s, b.turn_id.s);
    assert_int_equal(strlen(a.key), 32); /* random, and told */
    world_close(&w);
}

static void test_proof_off_goes_unsigned_without_a_key(void **state)
{
    (void)state;
    struct world w;
    struct publisher publisher;
    struct published published;
    struct receipt receipt;
    struct baton_error err = {BATON_OK, ""};
    world_open(&w, "");
    struct config *config = host_config(
        &w.host, "identity: nobody\nproof: \"off\"\nservices:\n"
                 "  alpha: {roles: [reviewer], executor: {kind: exec, command: [/bin/true]}}\n");
    assert_int_equal(publisher_open(config, &publisher, &err), BATON_OK);
    struct publish_request request = request_of(NULL);
    assert_int_equal(publisher_publish(&publisher, &request, &published, &err), BATON_OK);
    assert_int_equal(judge(&w, &published, &receipt), BATON_E_bad_signature);
    receipt_done(&receipt);
    publisher_close(&publisher);
    config_free(config);
    world_close(&w);
}

static void test_traceparents(void **state)
{
    (void)state;
    assert_true(traceparent_valid("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"));
    assert_false(traceparent_valid(NULL));
    assert_false(traceparent_valid(""));
    assert_false(traceparent_valid("00-00000000000000000000000000000000-b7ad6b7169203331-01"));
    assert_false(traceparent_valid("00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01"));
    assert_false(traceparent_valid("00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01"));
    assert_false(traceparent_valid("01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"));
}

/* ---- waiting ---- */

struct telling {
    struct world w;
    struct turn *turn;
    struct signer *alpha;
    struct signer *beta;
    struct outcome_watch *watch;
    struct log_publisher *log_publisher;
};

static void telling_open(struct telling *t)
{
    struct receipt receipt;
    const char *dir;
    memset(t, 0, sizeof(*t));
    world_open(&t->w, "");
    dir = t->w.host.config->keys;
    assert_int_equal(signer_load(dir, "alpha", &t->alpha, NULL), BATON_OK);
    assert_int_equal(signer_load(dir, "beta", &t->beta, NULL), BATON_OK);
    struct publish_request request = request_of("k");
    struct published published = publish(&t->w, &request);
    assert_int_equal(judge(&t->w, &published, &receipt), BATON_OK);
    t->turn = receipt.turn;
    receipt.turn = NULL;
    receipt_done(&receipt);
    const struct outcome_trust trust = {t->w.publisher.identity.trust,
                                        t->w.publisher.identity.fleet, true};
    assert_int_equal(
        outcome_watch_open(t->w.host.log, "baton", t->turn->id.s, &trust, &t->watch, NULL),
        BATON_OK);
    assert_int_equal(log_publisher_open(t->w.host.log, &t->log_publisher, NULL), BATON_OK);
}

static void telling_close(struct telling *t)
{
    log_publisher_close(t->log_publisher);
    outcome_watch_close(t->watch);
    turn_free(t->turn);
    signer_free(t->alpha);
    signer_free(t->beta);
    world_close(&t->w);
}

/* What service tells, signed by signer. */
static void tell(struct telling *t, const struct signer *signer, const char *service,
                 enum outcome_event event, enum turn_state state, int attempt, bool other_content)
{
    struct outcome o = {.event = event,
                        .turn_id = t->turn->id,
                        .origin = t->turn->origin,
                        .born = t->turn->service,
                        .has_role = true,
                        .role = t->turn->role,
                        .task_id = t->turn->task_id,
                        .intent = t->turn->intent,
                        .content = t->turn->content,
                        .attempt = attempt,
                        .service = service_id_of(service),
                        .has_state = true,
                        .state = state,
                        .at = wall_now()};
    struct buf value = BUF_INIT;
    struct proof_text proof;
    if (other_content) {
        o.content.b[0] ^= 1;
    }
    if (state == TURN_delegated) {
        o.to = service_id_of("beta");
    }
    if (state == TURN_parked) {
        o.code = BATON_E_executor_failed;
    }
    if (state == TURN_completed) {
        o.result = (char *)(uintptr_t) "{\"verdict\":\"approve\"}";
        o.result_len = strlen(o.result);
    }
    outcome_encode(&o, &value);
    struct digest digest = digest_of(value.data, value.len);
    assert_int_equal(signer_sign(signer, t->w.publisher.identity.fleet, PROOF_outcome,
                                 t->turn->id.s, 32, NULL, &digest, &proof, NULL),
                     BATON_OK);
    const struct log_header header = {"baton-sig", proof.s, strlen(proof.s)};
    struct log_record record = {.topic = "baton.outcomes",
                                .partition = LOG_PARTITION_BY_KEY,
                                .key = t->turn->id.s,
                                .key_len = 32,
                                .value = value.data,
                                .value_len = value.len,
                                .headers = &header,
                                .n_headers = 1};
    assert_int_equal(log_publish(t->log_publisher, &record, 1, 1000, NULL), BATON_OK);
    buf_done(&value);
}

static baton_code wait_for(struct telling *t, enum publish_wait wait, struct published *published)
{
    memset(published, 0, sizeof(*published));
    return publish_wait_for(t->watch, t->turn, wait, 50, published, NULL);
}

static void test_the_end_is_waited_for(void **state)
{
    (void)state;
    struct telling t;
    struct published published;
    telling_open(&t);
    assert_int_equal(wait_for(&t, PUBLISH_WAIT_end, &published), BATON_OK);
    assert_true(published.timed_out);
    tell(&t, t.alpha, "alpha", OUTCOME_claimed, TURN_running, 1, false);
    assert_int_equal(wait_for(&t, PUBLISH_WAIT_claim, &published), BATON_OK);
    assert_true(published.delivered && !published.timed_out && published.outcome == NULL);
    tell(&t, t.alpha, "alpha", OUTCOME_completed, TURN_completed, 1, false);
    assert_int_equal(wait_for(&t, PUBLISH_WAIT_end, &published), BATON_OK);
    assert_int_equal(published.outcome->event, OUTCOME_completed);
    assert_string_equal(result_verdict(published.outcome->result, published.outcome->result_len).s,
                        "approve");
    published_done(&published);
    telling_close(&t);
}

/* X24: an outcome that its service has not signed is not believed. */
static void test_x24_a_forged_outcome_is_passed_over(void **state)
{
    (void)state;
    struct telling t;
    struct published published;
    telling_open(&t);
    tell(&t, t.beta, "alpha", OUTCOME_completed, TURN_completed, 1, false);
    assert_int_equal(wait_for(&t, PUBLISH_WAIT_end, &published), BATON_OK);
    assert_true(published.timed_out && published.outcome == NULL);
    telling_close(&t);
}

static void test_a_duplicate_brings_the_end_that_was(void **state)
{
    (void)state;
    struct telling t;
    struct published published;
    telling_open(&t);
    tell(&t, t.alpha, "alpha", OUTCOME_duplicate, TURN_queued, 1, false);
    assert_int_equal(wait_for(&t, PUBLISH_WAIT_end, &published), BATON_OK);
    assert_true(published.timed_out && published.deduped && !published.delivered);
    tell(&t, t.alpha, "alpha", OUTCOME_duplicate, TURN_completed, 1, false);
    assert_int_equal(wait_for(&t, PUBLISH_WAIT_end, &published), BATON_OK);
    assert_true(published.deduped && published.outcome != NULL &&
                published.outcome->state == TURN_completed);
    published_done(&published);
    telling_close(&t);
}

/* X9: another turn's end is not this one's. */
static void test_x9_another_content_is_a_conflict(void **state)
{
    (void)state;
    struct telling t;
    struct published published;
    telling_open(&t);
    tell(&t, t.alpha, "alpha", OUTCOME_completed, TURN_completed, 1, true);
    assert_int_equal(wait_for(&t, PUBLISH_WAIT_end, &published), BATON_E_turn_conflict);
    telling_close(&t);
}

/* A repeat of a turn that was passed on: its end lies in the past, told by the next service. */
static void test_a_delegated_turn_is_followed(void **state)
{
    (void)state;
    struct telling t;
    struct published published;
    telling_open(&t);
    tell(&t, t.alpha, "alpha", OUTCOME_parked, TURN_parked, 1, false); /* before it was passed on */
    tell(&t, t.alpha, "alpha", OUTCOME_delegated, TURN_delegated, 1, false);
    tell(&t, t.beta, "beta", OUTCOME_completed, TURN_completed, 2, false);
    outcome_watch_close(t.watch);
    const struct outcome_trust trust = {t.w.publisher.identity.trust, t.w.publisher.identity.fleet,
                                        true};
    assert_int_equal(
        outcome_watch_open(t.w.host.log, "baton", t.turn->id.s, &trust, &t.watch, NULL), BATON_OK);
    tell(&t, t.alpha, "alpha", OUTCOME_duplicate, TURN_delegated, 1, false);
    assert_int_equal(wait_for(&t, PUBLISH_WAIT_end, &published), BATON_OK);
    assert_non_null(published.outcome);
    assert_string_equal(published.outcome->service.s, "beta");
    assert_int_equal(published.outcome->event, OUTCOME_completed);
    published_done(&published);
    telling_close(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_batch_that_goes_one_by_one_is_told_once),
        cmocka_unit_test(test_traceparents),
        cmocka_unit_test(test_refusals_come_before_the_log_is_opened),
        cmocka_unit_test(test_i11_an_unknown_service_is_answered_with_the_known_ones),
        cmocka_unit_test(test_x6_rights_are_checked_before_sending),
        cmocka_unit_test(test_no_key_is_unauthenticated),
        cmocka_unit_test(test_x3_a_revoked_key_signs_nothing),
        cmocka_unit_test(test_a_service_without_topics_is_unknown),
        cmocka_unit_test(test_what_is_published_is_what_a_worker_takes),
        cmocka_unit_test(test_r29_the_same_key_is_the_same_turn),
        cmocka_unit_test(test_proof_off_goes_unsigned_without_a_key),
        cmocka_unit_test(test_the_end_is_waited_for),
        cmocka_unit_test(test_x24_a_forged_outcome_is_passed_over),
        cmocka_unit_test(test_a_duplicate_brings_the_end_that_was),
        cmocka_unit_test(test_x9_another_content_is_a_conflict),
        cmocka_unit_test(test_a_delegated_turn_is_followed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
