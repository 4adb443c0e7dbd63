/* Reading turn logs and dead letters, replaying, cancelling: on a real local log, without a worker.
 */
#include "tests/unit/producer/host.h"

#include "common/record/dead_letter.h"
#include "common/record/keys.h"
#include "common/record/receipt.h"
#include "producer/dead.h"
#include "producer/life.h"
#include "producer/operate.h"
#include "producer/replay.h"
#include "topics/catalogue.h"
#include "topics/provision.h"
#include "topics/service_view.h"

static const char id_a[] = "aaaaaa00000000000000000000000001";
static const char id_b[] = "bbbbbb00000000000000000000000002";
static const char id_c[] = "bbbbbb00000000000000000000000003";

struct world {
    struct host host;
    struct session session;
    struct log_publisher *publisher;
};

static void world_open(struct world *w)
{
    struct keys_plan plan = {NULL, 0};
    struct baton_error err = {BATON_OK, ""};
    memset(w, 0, sizeof(*w));
    host_open(&w->host, HOST_SERVICES);
    if (keys_apply_config(w->host.config, &plan, &err) != BATON_OK ||
        provision_all(w->host.config, NULL, &err) != BATON_OK ||
        identity_open(w->host.config, &w->session.identity, &err) != BATON_OK) {
        fail_msg("%s", err.text);
    }
    keys_plan_done(&plan);
    host_log(&w->host);
    w->session.config = w->host.config;
    w->session.log = w->host.log;
    assert_int_equal(log_publisher_open(w->host.log, &w->publisher, NULL), BATON_OK);
}

static void world_close(struct world *w)
{
    log_publisher_close(w->publisher);
    identity_close(&w->session.identity);
    host_close(&w->host);
}

/* Puts a turn's record into the turn log of a service, as its owner would. */
static void put_turn(struct world *w, const char *service, const char *id, enum turn_state state,
                     int attempt, int replays)
{
    struct turn_record record;
    struct buf value = BUF_INIT;
    struct topic_name topic = topic_name(TOPIC_turns, "baton", service);
    turn_record_init(&record);
    record.id = turn_id_of(id);
    record.origin = plain_id_of("alice");
    record.service = service_id_of("alpha");
    record.role = ROLE_reviewer;
    record.task_id = task_id_of("t-1");
    record.intent = plain_id_of("review");
    record.created_at = record.updated_at = wall_now();
    record.state = state;
    record.attempt = attempt;
    record.replays = replays;
    record.since = 1;
    for (int no = 1; no <= attempt; no++) {
        struct attempt *a = turn_record_add_attempt(&record);
        a->no = no;
        a->service = service_id_of(no < attempt ? "alpha" : service);
        a->worker = plain_id_of("w1");
        a->profile = plain_id_of("default");
        a->started_at = a->ended_at = wall_now();
        a->state = no < attempt || state == TURN_parked ? ATTEMPT_failed : ATTEMPT_completed;
        a->has_class = a->state == ATTEMPT_failed;
        a->class = FAILURE_auth;
        if (state == TURN_queued && no == attempt) {
            a->state = ATTEMPT_queued;
            a->started_at.v = a->ended_at.v = 0;
        }
        if (state == TURN_delegated && no == attempt) {
            a->state = ATTEMPT_delegated;
        }
    }
    if (turn_state_open(state)) {
        record.handoff = strdup("{}");
        record.handoff_len = 2;
    } else {
        record.ended_at = wall_now();
    }
    if (state == TURN_parked) {
        record.code = BATON_E_executor_failed;
    }
    if (state == TURN_delegated) {
        record.to_service = service_id_of("beta");
        record.to_attempt = attempt + 1;
    }
    if (state == TURN_completed) {
        record.result = strdup("{\"verdict\":\"approve\",\"summary\":\"fine\"}");
        record.result_len = strlen(record.result);
    }
    turn_record_encode(&record, &value);
    struct log_record out = {.topic = topic.s,
                             .partition = LOG_PARTITION_BY_KEY,
                             .key = id,
                             .key_len = 32,
                             .value = value.data,
                             .value_len = value.len};
    assert_int_equal(log_publish(w->publisher, &out, 1, 1000, NULL), BATON_OK);
    buf_done(&value);
    turn_record_done(&record);
}

static bool count(void *arg, const struct turn_place *place, const struct turn_record *record)
{
    (void)place;
    (void)record;
    ++*(size_t *)arg;
    return true;
}

static size_t counted(struct world *w, const struct turn_filter *filter)
{
    size_t n = 0;
    size_t unreadable = 0;
    assert_int_equal(
        turn_log_each(w->host.log, w->host.config, filter, count, &n, &unreadable, NULL), BATON_OK);
    assert_int_equal(unreadable, 0);
    return n;
}

static void test_turns_are_filtered(void **state)
{
    (void)state;
    struct world w;
    world_open(&w);
    put_turn(&w, "alpha", id_a, TURN_queued, 1, 0);
    put_turn(&w, "alpha", id_a, TURN_parked, 1, 0); /* the newer one counts */
    put_turn(&w, "alpha", id_b, TURN_completed, 1, 0);
    put_turn(&w, "beta", id_c, TURN_completed, 1, 0);
    assert_int_equal(counted(&w, &(struct turn_filter){0}), 3);
    assert_int_equal(counted(&w, &(struct turn_filter){.states = 1u << TURN_parked}), 1);
    assert_int_equal(counted(&w, &(struct turn_filter){.states = 1u << TURN_queued}), 0);
    assert_int_equal(counted(&w, &(struct turn_filter){.service = "beta"}), 1);
    assert_int_equal(counted(&w, &(struct turn_filter){.roles = ROLE_BIT(ROLE_owner)}), 0);
    assert_int_equal(counted(&w, &(struct turn_filter){.task_id = "t-1"}), 3);
    size_t n = 0;
    assert_int_equal(turn_log_each(w.host.log, w.host.config,
                                   &(struct turn_filter){.service = "nope"}, count, &n, NULL, NULL),
                     BATON_E_unknown_service);
    world_close(&w);
}

static void test_first_digits_name_a_turn(void **state)
{
    (void)state;
    struct world w;
    struct turn_id id;
    struct baton_error err = {BATON_OK, ""};
    world_open(&w);
    put_turn(&w, "alpha", id_a, TURN_parked, 1, 0);
    put_turn(&w, "alpha", id_b, TURN_parked, 1, 0);
    put_turn(&w, "beta", id_c, TURN_completed, 1, 0);
    assert_int_equal(turn_log_resolve(w.host.log, w.host.config, "aaaaaa", &id, &err), BATON_OK);
    assert_string_equal(id.s, id_a);
    assert_int_equal(turn_log_resolve(w.host.log, w.host.config, "bbbbbb", &id, &err),
                     BATON_E_invalid_request);
    assert_non_null(strstr(err.text, "ambiguous"));
    assert_int_equal(turn_log_resolve(w.host.log, w.host.config, "cccccc", &id, &err),
                     BATON_E_turn_not_found);
    assert_int_equal(turn_log_resolve(w.host.log, w.host.config, "aaaaa", &id, &err),
                     BATON_E_invalid_request);
    assert_int_equal(turn_log_resolve(w.host.log, w.host.config, "AAAAAA", &id, &err),
                     BATON_E_invalid_request);
    assert_int_equal(turn_log_resolve(w.host.log, w.host.config, "../../etc/passwd", &id, &err),
                     BATON_E_invalid_request);
    world_close(&w);
}

/* A turn that was passed on is read where it is now, with the attempts of both services. */
static void test_a_passed_turn_is_followed(void **state)
{
    (void)state;
    struct world w;
    struct turn_life life;
    world_open(&w);
    put_turn(&w, "alpha", id_a, TURN_delegated, 1, 0);
    assert_int_equal(turn_log_find(w.host.log, w.host.config, id_a, &life, NULL), BATON_OK);
    assert_true(life.found);
    assert_int_equal(life.now.state, TURN_delegated);
    assert_false(life_ended(&life.now));
    turn_life_done(&life);
    put_turn(&w, "beta", id_a, TURN_completed, 2, 0);
    assert_int_equal(turn_log_find(w.host.log, w.host.config, id_a, &life, NULL), BATON_OK);
    assert_string_equal(life.service, "beta");
    assert_int_equal(life.now.state, TURN_completed);
    assert_int_equal(life.n_attempts, 2);
    assert_string_equal(life.attempts[0].service.s, "alpha"); /* as its own service knows it */
    assert_int_equal(life_code(&life.now), BATON_OK);
    struct buf out = BUF_INIT;
    life_print_json(&life, &out);
    life_print_text(&life, 80, &out);
    assert_true(buf_ok(&out));
    assert_non_null(strstr(out.data, "\"verdict\":\"approve\""));
    buf_done(&out);
    turn_life_done(&life);
    world_close(&w);
}

/* ---- replay ---- */

static const struct replay_request here = {.timeout_ms = 0};

static void test_a_parked_turn_is_replayed_by_a_control_record_that_its_owner_takes(void **state)
{
    (void)state;
    struct world w;
    struct replay_result result;
    struct log_reader *reader = NULL;
    struct log_batch batch = {0};
    struct receipt receipt;
    world_open(&w);
    put_turn(&w, "alpha", id_a, TURN_parked, 2, 0);
    assert_int_equal(
        replay_turn(&w.session, id_a, &(struct replay_request){.dry_run = true}, &result, NULL),
        BATON_OK);
    assert_int_equal(result.what, REPLAYED_would);
    assert_int_equal(replay_turn(&w.session, id_a, &here, &result, NULL), BATON_OK);
    assert_int_equal(result.what, REPLAYED_queued); /* nobody is there to answer */
    assert_int_equal(result.attempt, 2);
    assert_string_equal(result.role, "reviewer");
    assert_int_equal(log_reader_open(w.host.log, "baton.control.alpha",
                                     log_partition_of(id_a, 32, 4), 0, LOG_READ_committed, &reader,
                                     NULL),
                     BATON_OK);
    assert_int_equal(log_reader_next(reader, 10, 1000, &batch, NULL), BATON_OK);
    assert_int_equal(batch.count, 1);
    const struct receiver receiver = {w.session.identity.trust, w.session.identity.fleet, true,
                                      "alpha", 4};
    assert_int_equal(receipt_control(&receiver, &batch.records[0], &receipt), BATON_OK);
    assert_int_equal(receipt.control->kind, CONTROL_replay);
    assert_int_equal(receipt.control->attempt, 2);
    assert_false(receipt.control->again);
    receipt_done(&receipt);
    log_batch_free(&batch);
    log_reader_close(reader);
    world_close(&w);
}

/* D19: once replayed, a second replay finds nothing to do; a closed turn is refused. */
static void test_d19_what_is_not_parked_is_not_replayed(void **state)
{
    (void)state;
    struct world w;
    struct replay_result result;
    world_open(&w);
    assert_int_equal(replay_turn(&w.session, id_a, &here, &result, NULL), BATON_E_turn_not_found);
    put_turn(&w, "alpha", id_a, TURN_queued, 2, 1);
    assert_int_equal(replay_turn(&w.session, id_a, &here, &result, NULL), BATON_OK);
    assert_int_equal(result.what, REPLAYED_already);
    put_turn(&w, "alpha", id_b, TURN_queued, 1, 0);
    assert_int_equal(replay_turn(&w.session, id_b, &here, &result, NULL), BATON_E_not_parked);
    put_turn(&w, "alpha", id_b, TURN_completed, 1, 0);
    assert_int_equal(replay_turn(&w.session, id_b, &here, &result, NULL), BATON_E_turn_closed);
    put_turn(&w, "alpha", id_c, TURN_parked, 1, 0);
    assert_int_equal(
        replay_turn(&w.session, id_c, &(struct replay_request){.to = "nope"}, &result, NULL),
        BATON_E_unknown_service);
    world_close(&w);
}

/* ---- rejected records ---- */

struct letters_seen {
    size_t parked;
    size_t rejected;
    char id[LETTER_ID_MAX];
};

static bool on_dead(void *arg, const struct dead *dead)
{
    struct letters_seen *seen = arg;
    seen->parked += dead->parked ? 1 : 0;
    seen->rejected += dead->parked ? 0 : 1;
    if (!dead->parked) {
        snprintf(seen->id, sizeof(seen->id), "%s", dead->id);
    }
    return true;
}

static struct letters_seen dead_of(struct world *w, const struct dead_filter *filter)
{
    struct letters_seen seen = {0};
    assert_int_equal(dead_each(&w->session, filter, on_dead, &seen, NULL), BATON_OK);
    return seen;
}

static void put_letter(struct world *w, const char *origin, const char *key, size_t key_len,
                       bool parked)
{
    struct log_header headers[6];
    size_t n = 0;
    headers[n++] = (struct log_header){"x-foreign", NULL, 0};
    if (origin != NULL) {
        headers[n++] = (struct log_header){DEAD_LETTER_TOPIC, origin, strlen(origin)};
    }
    headers[n++] = (struct log_header){DEAD_LETTER_PARTITION, "2", 1};
    headers[n++] = (struct log_header){DEAD_LETTER_CODE, "unknown_key", 11};
    headers[n++] = (struct log_header){DEAD_LETTER_MESSAGE, "who is this\x1b", 12};
    if (parked) {
        headers[n++] = (struct log_header){DEAD_LETTER_COUNT, "1", 1};
    }
    struct log_record record = {.topic = "dlq.baton.handoff.alpha",
                                .partition = LOG_PARTITION_BY_KEY,
                                .key = key,
                                .key_len = key_len,
                                .value = "{\"role\":\"owner\"}",
                                .value_len = 16,
                                .headers = headers,
                                .n_headers = n};
    assert_int_equal(log_publish(w->publisher, &record, 1, 1000, NULL), BATON_OK);
}

static void test_parked_turns_and_rejected_records_are_one_list(void **state)
{
    (void)state;
    struct world w;
    world_open(&w);
    put_turn(&w, "alpha", id_a, TURN_parked, 1, 0);
    put_letter(&w, "baton.handoff.alpha", id_a, 32,
               true); /* the letter of the parked turn: one of the list, not two */
    put_letter(&w, "baton.handoff.alpha", id_b, 32, false);
    struct letters_seen seen = dead_of(&w, &(struct dead_filter){0});
    assert_int_equal(seen.parked, 1);
    assert_int_equal(seen.rejected, 1);
    seen = dead_of(&w, &(struct dead_filter){.by_class = true, .class = FAILURE_auth});
    assert_int_equal(seen.parked + seen.rejected, 1);
    seen = dead_of(&w, &(struct dead_filter){.by_code = true, .code = BATON_E_unknown_key});
    assert_int_equal(seen.rejected, 1);
    assert_int_equal(seen.parked, 0);
    seen = dead_of(&w, &(struct dead_filter){.service = "beta"});
    assert_int_equal(seen.parked + seen.rejected, 0);
    world_close(&w);
}

static void test_a_rejected_record_is_written_again_byte_for_byte(void **state)
{
    (void)state;
    struct world w;
    struct replay_result result;
    struct log_reader *reader = NULL;
    struct log_batch batch = {0};
    world_open(&w);
    put_letter(&w, "baton.handoff.alpha", id_b, 32, false);
    struct letters_seen seen = dead_of(&w, &(struct dead_filter){0});
    assert_true(letter_id_valid(seen.id));
    assert_int_equal(replay_letter(&w.session, seen.id, &here, &result, NULL), BATON_OK);
    assert_int_equal(result.what, REPLAYED_written);
    assert_int_equal(log_reader_open(w.host.log, "baton.handoff.alpha",
                                     log_partition_of(id_b, 32, 4), 0, LOG_READ_committed, &reader,
                                     NULL),
                     BATON_OK);
    assert_int_equal(log_reader_next(reader, 10, 1000, &batch, NULL), BATON_OK);
    assert_int_equal(batch.count, 1);
    assert_int_equal(batch.records[0].value_len, 16);
    assert_int_equal(batch.records[0].n_headers,
                     1); /* the context is gone, what was there is as it was */
    assert_string_equal(batch.records[0].headers[0].name, "x-foreign");
    assert_null(batch.records[0].headers[0].value);
    log_batch_free(&batch);
    log_reader_close(reader);
    put_turn(&w, "alpha", id_b, TURN_queued, 1, 0); /* now the log knows it */
    assert_int_equal(replay_letter(&w.session, seen.id, &here, &result, NULL), BATON_OK);
    assert_int_equal(result.what, REPLAYED_already);
    world_close(&w);
}

/* A letter may not send its bytes to any topic it names. */
static void test_a_letter_of_another_origin_is_not_written(void **state)
{
    (void)state;
    const char *const origins[] = {NULL, "baton.handoff.beta", "baton.turns.alpha",
                                   "baton.outcomes", ""};
    for (size_t i = 0; i < sizeof(origins) / sizeof(origins[0]); i++) {
        struct world w;
        struct replay_result result;
        world_open(&w);
        put_letter(&w, origins[i], id_b, 32, false);
        struct letters_seen seen = dead_of(&w, &(struct dead_filter){0});
        assert_int_equal(replay_letter(&w.session, seen.id, &here, &result, NULL),
                         BATON_E_invalid_request);
        world_close(&w);
    }
}

static void test_letter_ids(void **state)
{
    (void)state;
    struct world w;
    struct replay_result result;
    assert_true(letter_id_valid("alpha:0:17"));
    assert_false(letter_id_valid("alpha:0"));
    assert_false(letter_id_valid("alpha:x:1"));
    assert_false(letter_id_valid("Alpha:0:1"));
    assert_false(letter_id_valid("alpha:-1:1"));
    assert_false(letter_id_valid("alpha:0:1:2"));
    assert_false(letter_id_valid(id_a));
    world_open(&w);
    assert_int_equal(replay_letter(&w.session, "alpha:0:5", &here, &result, NULL),
                     BATON_E_handoff_not_found);
    assert_int_equal(replay_letter(&w.session, "nope:0:5", &here, &result, NULL),
                     BATON_E_unknown_service);
    world_close(&w);
}

static void test_a_service_is_seen(void **state)
{
    (void)state;
    struct world w;
    struct service_view view;
    world_open(&w);
    put_turn(&w, "alpha", id_a, TURN_parked, 1, 0);
    put_turn(&w, "alpha", id_b, TURN_completed, 1, 0);
    struct log_record record = {.topic = "baton.handoff.alpha",
                                .partition = LOG_PARTITION_BY_KEY,
                                .key = id_c,
                                .key_len = 32,
                                .value = "x",
                                .value_len = 1};
    assert_int_equal(log_publish(w.publisher, &record, 1, 1000, NULL), BATON_OK);
    assert_int_equal(service_view_read(w.host.log, w.host.config, &w.host.config->services[0], true,
                                       &view, NULL),
                     BATON_OK);
    assert_int_equal(view.n_workers, 0);
    assert_int_equal(view.lag, 1);
    assert_true(view.oldest_ms >= 0);
    assert_int_equal(view.turns[TURN_parked], 1);
    assert_int_equal(view.turns[TURN_completed], 1);
    service_view_done(&view);
    world_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_turns_are_filtered),
        cmocka_unit_test(test_first_digits_name_a_turn),
        cmocka_unit_test(test_a_passed_turn_is_followed),
        cmocka_unit_test(test_letter_ids),
        cmocka_unit_test(test_a_service_is_seen),
        cmocka_unit_test(test_a_parked_turn_is_replayed_by_a_control_record_that_its_owner_takes),
        cmocka_unit_test(test_d19_what_is_not_parked_is_not_replayed),
        cmocka_unit_test(test_parked_turns_and_rejected_records_are_one_list),
        cmocka_unit_test(test_a_rejected_record_is_written_again_byte_for_byte),
        cmocka_unit_test(test_a_letter_of_another_origin_is_not_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
