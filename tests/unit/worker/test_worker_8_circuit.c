/*
 * The circuit as a table: every state with every event, time and class; what it does to the step
 * that follows a failure; which attempts count in no budget; its note (DESIGN section 6).
 */
#include "worker/circuit.h"

#include "common/base/metrics.h"
#include "common/record/circuit_note.h"
#include "common/record/turn_record.h"
#include "worker/decision.h"
#include "worker/failure_table.h"
#include "worker/internal.h"
#include "worker/live.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char yaml[] = "version: 1\n"
                           "proof: off\n"
                           "circuit: {after: 3, for: 30s, probe: 15s}\n"
                           "services:\n"
                           "  lint:\n"
                           "    roles: [reviewer]\n"
                           "    executor: {kind: callback}\n";
static struct config *config;

static int configure(void **state)
{
    struct baton_error err = {0};
    struct buf findings = BUF_INIT;
    (void)state;
    if (config_parse("/x/baton.yaml", yaml, strlen(yaml), NULL, 0, &config, &findings, &err) !=
        BATON_OK) {
        fail_msg("%s", findings.data);
    }
    buf_done(&findings);
    return 0;
}

static int unconfigure(void **state)
{
    (void)state;
    config_free(config);
    return 0;
}

static const struct mono_ms start = {1000000};

static struct mono_ms after(int64_t ms)
{
    return (struct mono_ms){start.v + ms};
}

static void fail_with(struct circuit *circuit, enum failure class, int times)
{
    for (int i = 0; i < times; i++) {
        circuit_failure(circuit, config, "lint", class, start);
    }
}

/* A circuit in that state: opened at `start`; half open since then and 30 s. */
static struct circuit circuit_in(enum circuit_state state)
{
    struct circuit circuit = {.state = CIRCUIT_closed};
    if (state != CIRCUIT_closed) {
        fail_with(&circuit, FAILURE_unavailable, 3);
    }
    if (state == CIRCUIT_half_open) {
        circuit_time(&circuit, "lint", after(30000));
    }
    assert_int_equal(circuit.state, state);
    return circuit;
}

enum event {
    EVENT_success,
    EVENT_down,
    EVENT_downs,
    EVENT_other,
    EVENT_early,
    EVENT_late,
    EVENT_note
};
#define EVENTS 7

static void happen(struct circuit *circuit, enum event event)
{
    switch (event) {
    case EVENT_success:
        circuit_success(circuit, "lint");
        break;
    case EVENT_down:
        fail_with(circuit, FAILURE_overloaded, 1);
        break;
    case EVENT_downs:
        fail_with(circuit, FAILURE_overloaded, 3);
        break;
    case EVENT_other:
        fail_with(circuit, FAILURE_bad_request, 9);
        fail_with(circuit, FAILURE_timeout, 9);
        fail_with(circuit, FAILURE_crash, 9);
        break;
    case EVENT_early:
        circuit_time(circuit, "lint", after(29999));
        break;
    case EVENT_late:
        circuit_time(circuit, "lint", after(30000));
        break;
    case EVENT_note:
        circuit->heard = false;
        circuit_adopt(circuit, "lint", FAILURE_quota, (struct wall_ms){7}, start);
        break;
    }
}

static void test_every_state_and_event(void **state)
{
    (void)state;
    static const enum circuit_state wanted[CIRCUIT_STATE_COUNT][EVENTS] = {
        [CIRCUIT_closed] = {CIRCUIT_closed, CIRCUIT_closed, CIRCUIT_open, CIRCUIT_closed,
                            CIRCUIT_closed, CIRCUIT_closed, CIRCUIT_half_open},
        [CIRCUIT_open] = {CIRCUIT_closed, CIRCUIT_open, CIRCUIT_open, CIRCUIT_open, CIRCUIT_open,
                          CIRCUIT_half_open, CIRCUIT_open},
        [CIRCUIT_half_open] = {CIRCUIT_closed, CIRCUIT_half_open, CIRCUIT_half_open,
                               CIRCUIT_half_open, CIRCUIT_half_open, CIRCUIT_half_open,
                               CIRCUIT_half_open},
    };
    for (int from = 0; from < CIRCUIT_STATE_COUNT; from++) {
        for (int event = 0; event < EVENTS; event++) {
            metrics_test_reset();
            struct circuit circuit = circuit_in((enum circuit_state)from);
            happen(&circuit, (enum event)event);
            if (circuit.state != wanted[from][event]) {
                fail_msg("%s, event %d: %s", circuit_state_word((enum circuit_state)from), event,
                         circuit_state_word(circuit.state));
            }
            assert_int_equal(metric_get(METRIC_circuit_open), circuit.state != CIRCUIT_closed);
        }
    }
}

/* In a row: a success and an answer break it, what need not be the provider does not. */
static void test_in_a_row(void **state)
{
    (void)state;
    for (int class = 0; class < FAILURE_COUNT; class ++) {
        struct circuit circuit = {.state = CIRCUIT_closed};
        const enum provider_sign sign = failure_says((enum failure) class);
        fail_with(&circuit, FAILURE_unavailable, 2);
        fail_with(&circuit, (enum failure) class, 1);
        assert_int_equal(circuit.state, sign == PROVIDER_down ? CIRCUIT_open : CIRCUIT_closed);
        fail_with(&circuit, FAILURE_unavailable, 1);
        assert_int_equal(circuit.state, sign == PROVIDER_up ? CIRCUIT_closed : CIRCUIT_open);
    }
    struct circuit circuit = {.state = CIRCUIT_closed};
    fail_with(&circuit, FAILURE_unavailable, 2);
    circuit_success(&circuit, "lint");
    fail_with(&circuit, FAILURE_unavailable, 2);
    assert_int_equal(circuit.state, CIRCUIT_closed);
    const int64_t opened = metric_get(METRIC_circuit_opened);
    fail_with(&circuit, FAILURE_auth, 1);
    assert_int_equal(circuit.state, CIRCUIT_open);
    assert_int_equal(circuit.class, FAILURE_auth);
    assert_int_equal(metric_get(METRIC_circuit_opened), opened + 1);
}

static void test_when_an_attempt_may_start(void **state)
{
    (void)state;
    struct circuit circuit = circuit_in(CIRCUIT_closed);
    assert_true(circuit_due(&circuit, start));
    circuit = circuit_in(CIRCUIT_open);
    assert_false(circuit_due(&circuit, after(1000000)));
    circuit = circuit_in(CIRCUIT_half_open);
    assert_true(circuit_due(&circuit, after(30000)));
    const int64_t probes = metric_get(METRIC_circuit_probes);
    circuit_probe(&circuit, config, "00112233445566778899aabbccddeeff", after(31000));
    assert_int_equal(metric_get(METRIC_circuit_probes), probes + 1);
    assert_false(circuit_due(&circuit, after(45999)));
    assert_true(circuit_due(&circuit, after(46000)));
    fail_with(&circuit, FAILURE_unavailable, 5);
    assert_false(circuit_due(&circuit, after(45999)));
    circuit_success(&circuit, "lint");
    assert_true(circuit_due(&circuit, after(31001)));
}

/* A worker that has seen an attempt end knows better than a note. */
static void test_a_note_is_for_who_knows_nothing(void **state)
{
    (void)state;
    struct circuit circuit = {.state = CIRCUIT_closed};
    circuit_success(&circuit, "lint");
    circuit_adopt(&circuit, "lint", FAILURE_quota, (struct wall_ms){7}, start);
    assert_int_equal(circuit.state, CIRCUIT_closed);
    circuit = (struct circuit){.state = CIRCUIT_closed};
    circuit_adopt(&circuit, "lint", FAILURE_quota, (struct wall_ms){7}, start);
    assert_int_equal(circuit.state, CIRCUIT_half_open);
    assert_int_equal(circuit.since.v, 7);
    assert_int_equal(circuit.class, FAILURE_quota);
    assert_true(circuit_due(&circuit, start));
}

/* ---- in a worker ---- */

static struct worker *worker_in(enum circuit_state state)
{
    struct worker *w = calloc(1, sizeof(*w));
    assert_non_null(w);
    w->config = config;
    w->service = config_service_find(config, "lint");
    assert_true(lives_init(&w->lives));
    w->circuit = circuit_in(state);
    w->circuit.next.v = mono_now().v + 30000;
    return w;
}

static void worker_free(struct worker *w)
{
    lives_done(&w->lives);
    decisions_done(&w->batch);
    free(w);
}

static struct turn_record record_of(const char *id)
{
    struct turn_record record;
    turn_record_init(&record);
    record.id = turn_id_of(id);
    record.attempt = 1;
    record.since = 1;
    return record;
}

#define TURN "00112233445566778899aabbccddeeff"

/* One turn at a time: neither while it runs nor until its end is settled. */
static void test_one_probe_at_a_time(void **state)
{
    (void)state;
    struct worker *w = worker_in(CIRCUIT_half_open);
    assert_int_equal(circuit_room(w, 4, true), 0);
    /* A moment for handoffs; then for turns that have been tried, too. */
    w->circuit.next.v = mono_now().v - 1;
    assert_int_equal(circuit_room(w, 4, true), 1);
    assert_int_equal(circuit_room(w, 4, false), 0);
    w->circuit.next.v = mono_now().v - 1000;
    assert_int_equal(circuit_room(w, 4, false), 1);
    assert_int_equal(circuit_room(w, 0, true), 0);
    struct turn_record record = record_of(TURN);
    struct live *live = lives_add(&w->lives, &record, 0);
    circuit_probe(&w->circuit, config, TURN, mono_now());
    w->circuit.next.v = mono_now().v - 1000;
    assert_int_equal(circuit_room(w, 4, true), 0);
    struct recorded_end end = {.failed = true, .class = FAILURE_unavailable};
    lives_end(&w->lives, live, &end);
    assert_int_equal(circuit_room(w, 4, false), 0);
    lives_remove(&w->lives, live);
    assert_int_equal(circuit_room(w, 4, false), 1);
    circuit_success(&w->circuit, "lint");
    assert_int_equal(circuit_room(w, 4, true), 4);
    assert_int_equal(circuit_room(w, 4, false), 4);
    worker_free(w);
}

/* It is woken when a probe may start, and a moment later for the turns that were tried. */
static void test_when_it_looks_again(void **state)
{
    (void)state;
    struct mono_ms at;
    struct worker *w = worker_in(CIRCUIT_open);
    const struct mono_ms next = w->circuit.next;
    assert_true(circuit_next(w, (struct mono_ms){next.v - 1}, &at));
    assert_int_equal(at.v, next.v);
    assert_true(circuit_next(w, next, &at));
    assert_int_equal(at.v, next.v + 1000);
    assert_false(circuit_next(w, at, &at));
    w->circuit = circuit_in(CIRCUIT_closed);
    assert_false(circuit_next(w, start, &at));
    worker_free(w);
}

/* What becomes of each step, of each class, in each state: only what would park because the provider
 * is down is changed. */
static void test_the_step_that_follows(void **state)
{
    (void)state;
    for (int in = 0; in < CIRCUIT_STATE_COUNT; in++) {
        for (int class = 0; class < FAILURE_COUNT; class ++) {
            for (int kind = NEXT_retry; kind <= NEXT_park; kind++) {
                struct worker *w = worker_in((enum circuit_state)in);
                const struct turn_record record = record_of(TURN);
                const struct recorded_end end = {.attempt = 1, .class = (enum failure) class};
                struct next_step step = {.kind = (enum next_kind)kind,
                                         .code = kind == NEXT_park ? BATON_E_executor_failed
                                                                   : BATON_OK};
                const bool changed = in != CIRCUIT_closed &&
                                     failure_says((enum failure) class) == PROVIDER_down &&
                                     (kind == NEXT_retry || kind == NEXT_park);
                circuit_settle(w, &record, &end, &step);
                assert_int_equal(step.kind, changed ? NEXT_retry : (enum next_kind)kind);
                assert_int_equal(step.code != BATON_OK, kind == NEXT_park && !changed);
                assert_int_equal(step.delay_ms, 0);
                assert_int_equal(w->circuit.state, in);
                worker_free(w);
            }
        }
    }
}

/* The failure that opens it is not parked either; a batch that is decided again counts it once; one
 * that a fallback or another profile takes does not count. */
static void test_who_opens_it(void **state)
{
    (void)state;
    static const char *const ids[] = {"00", "01", "02", "03", "04"};
    static const enum next_kind kinds[] = {NEXT_delegate, NEXT_rotate, NEXT_retry, NEXT_park,
                                           NEXT_park};
    struct worker *w = worker_in(CIRCUIT_closed);
    for (int i = 0; i < 5; i++) {
        for (int again = 0; again < 3; again++) {
            struct turn_record record = record_of(ids[i]);
            const struct recorded_end end = {.attempt = 1, .class = FAILURE_unavailable};
            struct next_step step = {.kind = kinds[i]};
            if (again == 0) {
                struct turn_record lived = record_of(ids[i]);
                assert_non_null(lives_add(&w->lives, &lived, 0));
            }
            circuit_settle(w, &record, &end, &step);
            assert_int_equal(step.kind, i == 4 ? NEXT_retry : kinds[i]);
            assert_int_equal(w->circuit.state, i == 4 ? CIRCUIT_open : CIRCUIT_closed);
        }
    }
    worker_free(w);
}

/* A turn that was probed for an hour has its retries and its attempts still. */
static void test_probes_count_in_no_budget(void **state)
{
    (void)state;
    const struct config_service *service = config_service_find(config, "lint");
    const struct chances nowhere = {NULL, 0};
    for (int class = 0; class < FAILURE_COUNT; class ++) {
        const struct attempt probe = {.probe = true};
        const struct attempt plain = {.probe = false};
        assert_int_equal(circuit_uncounted(&probe, (enum failure) class),
                         failure_says((enum failure) class) == PROVIDER_down);
        assert_false(circuit_uncounted(&plain, (enum failure) class));
    }
    for (int probes = 0; probes < 2; probes++) {
        struct turn_record record = record_of(TURN);
        record.attempt = 0;
        for (int i = 0; i < 240; i++) {
            struct attempt *attempt = turn_record_add_attempt(&record);
            attempt->no = ++record.attempt;
            attempt->service = service->name;
            attempt->profile = service->profiles[0].name;
            attempt->state = ATTEMPT_failed;
            attempt->has_class = true;
            attempt->class = FAILURE_unavailable;
            attempt->started_at.v = 1;
            attempt->probe = probes == 1;
            record.probes += probes;
        }
        const struct next_step step =
            failure_next(config, service, &record, FAILURE_unavailable, 0, &nowhere, 0.5);
        assert_int_equal(step.kind, probes == 1 ? NEXT_retry : NEXT_park);
        turn_record_done(&record);
    }
}

static void test_the_note(void **state)
{
    (void)state;
    struct circuit_note read;
    struct circuit_note note = {.state = CIRCUIT_half_open,
                                .class = FAILURE_quota,
                                .worker = plain_id_of("w1"),
                                .boot = boot_id_new(),
                                .since = {1700000000000}};
    struct buf value = BUF_INIT;
    circuit_note_encode(&note, &value);
    assert_true(circuit_note_parse(value.data, value.len, &read));
    assert_int_equal(read.state, note.state);
    assert_int_equal(read.class, note.class);
    assert_string_equal(read.worker.s, "w1");
    assert_string_equal(read.boot.s, note.boot.s);
    assert_int_equal(read.since.v, note.since.v);
    for (size_t cut = 0; cut < value.len; cut++) {
        assert_false(circuit_note_parse(value.data, cut, &read));
        assert_int_equal(read.state, CIRCUIT_closed);
    }
    static const char *const wrong[] = {"{}", "[]", "7", "{\"state\":\"ajar\"}",
                                        "{\"state\":\"open\",\"class\":3}"};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        assert_false(circuit_note_parse(wrong[i], strlen(wrong[i]), &read));
    }
    assert_false(circuit_note_parse(NULL, 0, &read));
    buf_done(&value);
    assert_true(circuit_note_is_key("~circuit", 8));
    assert_false(circuit_note_is_key("~circuits", 9));
    assert_false(circuit_note_is_key(NULL, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_state_and_event),
        cmocka_unit_test(test_in_a_row),
        cmocka_unit_test(test_when_an_attempt_may_start),
        cmocka_unit_test(test_a_note_is_for_who_knows_nothing),
        cmocka_unit_test(test_one_probe_at_a_time),
        cmocka_unit_test(test_when_it_looks_again),
        cmocka_unit_test(test_the_step_that_follows),
        cmocka_unit_test(test_who_opens_it),
        cmocka_unit_test(test_probes_count_in_no_budget),
        cmocka_unit_test(test_the_note),
    };
    return cmocka_run_group_tests_name("worker: circuit", tests, configure, unconfigure);
}
