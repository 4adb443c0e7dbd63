/* A run's states, counters, turns and record. */
#include "run_fixture.h"

#include "common/record/json.h"

/* S4, written out once more: from, then every state that may follow. */
static const char *const moves[RUN_STATE_COUNT] = {
    [RUN_active] = "waiting completed failed expired cancelled",
    [RUN_waiting] = "active completed failed expired cancelled",
    [RUN_completed] = "active",
    [RUN_failed] = "active",
    [RUN_expired] = "active",
    [RUN_cancelled] = "active",
};

static bool listed(const char *list, const char *word)
{
    const char *at = strstr(list, word);
    return at != NULL && (at[strlen(word)] == '\0' || at[strlen(word)] == ' ');
}

static void test_S4_every_pair_of_states(void **state)
{
    (void)state;
    for (int from = 0; from < RUN_STATE_COUNT; from++) {
        for (int to = 0; to < RUN_STATE_COUNT; to++) {
            struct run *run = run_make();
            const bool may = listed(moves[from], run_state_word((enum run_state)to));
            assert_int_equal(run_state_may_move((enum run_state)from, (enum run_state)to), may);
            run->state = (enum run_state)from;
            /* I10: what has ended is left by a reopening only, which raises the epoch */
            const bool open = run_state_open((enum run_state)from);
            assert_int_equal(run_move(run, (enum run_state)to, "why", (struct wall_ms){5}),
                             may && open);
            assert_int_equal(run->state, may && open ? to : from);
            run_free(run);
        }
    }
}

static void test_a_reopened_run_begins_a_new_epoch_and_counts_anew(void **state)
{
    struct run *run = run_make();
    (void)state;
    assert_true(run_count(run, "again") && run_count(run, "again"));
    assert_true(run_move(run, RUN_cancelled, "by alice", (struct wall_ms){9}));
    assert_int_equal(run->ended_at.v, 9);
    run_reopen(run, "by alice", (struct wall_ms){10});
    assert_true(run->state == RUN_active && run->epoch == 2 && run->ended_at.v == 0);
    assert_int_equal(run_taken(run, "again"), 0);
    assert_int_equal(run_total(run, "again"), 2); /* the keys of turns go on */
    run_free(run);
}

/* H-47, H-48: counters are of one transition each, and a touch begins them anew. */
static void test_H47_H48_counters(void **state)
{
    struct run *run = run_make();
    (void)state;
    assert_true(run_count(run, "a.b") && run_count(run, "a"));
    assert_true(run_count(run, "a.b"));
    assert_int_equal(run_taken(run, "a.b"), 2);
    assert_int_equal(run_taken(run, "a"), 1);
    assert_int_equal(run_taken(run, "b"), 0);
    run_touch(run);
    assert_int_equal(run_taken(run, "a.b"), 0);
    assert_int_equal(run_total(run, "a.b"), 2);
    run_free(run);
}

/* I6: the task's status and revision follow a verdict and nothing else. */
static void test_R41_R52_only_a_verdict_moves_the_task(void **state)
{
    struct run *run = run_make();
    (void)state;
    struct run_turn *turn = turn_make(run, "0123456789abcdef0123456789abcdef", "dev", RUN_START);
    run_turn_end(run, turn, TURN_parked, (struct wall_ms){3000});
    assert_true(run->task_status == TASK_STATUS_active && run->task_rev == 7);
    turn->state = TURN_queued; /* replayed */
    turn->has_verdict = true;
    turn->verdict = VERDICT_done;
    run_turn_end(run, turn, TURN_completed, (struct wall_ms){4000});
    assert_true(run->task_status == TASK_STATUS_review_ready && run->task_rev == 8);
    turn = turn_make(run, "1123456789abcdef0123456789abcdef", "dev", "again");
    run_turn_end(run, turn, TURN_cancelled, (struct wall_ms){5000});
    assert_true(run->task_status == TASK_STATUS_review_ready && run->task_rev == 8);
    turn = turn_make(run, "2123456789abcdef0123456789abcdef", "rev.a", "review");
    turn->has_verdict = true;
    turn->verdict = VERDICT_changes;
    run_turn_end(run, turn, TURN_completed, (struct wall_ms){6000});
    assert_true(run->task_status == TASK_STATUS_active && run->task_rev == 8);
    run_free(run);
}

static void test_an_edge_has_the_cost_and_time_of_its_turns(void **state)
{
    struct run *run = run_make();
    (void)state;
    assert_true(run_count(run, "review"));
    struct run_turn *turn = turn_make(run, "0123456789abcdef0123456789abcdef", "rev.a", "review");
    turn->cost = 250;
    run_turn_end(run, turn, TURN_completed, (struct wall_ms){2700});
    assert_int_equal(run->edges[0].cost, 250);
    assert_int_equal(run->edges[0].time_ms, 700);
    assert_int_equal(run_cost(run), 250);
    run_free(run);
}

/* The newest turns are kept, and every open one; 64 open ones are the most. */
static void test_open_turns_are_kept(void **state)
{
    struct run *run = run_make();
    char id[33];
    (void)state;
    for (int i = 0; i < 3 * RUN_TURNS_MAX - 2; i++) {
        snprintf(id, sizeof(id), "%032x", i);
        struct run_turn *turn = turn_make(run, id, "dev", RUN_START);
        if (i % 3 != 0) {
            run_turn_end(run, turn, TURN_cancelled, (struct wall_ms){3000});
        }
    }
    assert_int_equal(run->n_turns, 3 * RUN_TURNS_MAX - 2);
    assert_int_equal(run_turns_open(run), RUN_TURNS_MAX);
    assert_non_null(run_turn_find(run, "00000000000000000000000000000000"));
    assert_null(run_add_turn(run));
    run_free(run);
}

static void test_its_record_comes_back_as_it_was(void **state)
{
    struct run *run = run_make();
    struct run *back = NULL;
    struct buf first = BUF_INIT;
    struct buf second = BUF_INIT;
    (void)state;
    run->data = strdup("{\"url\":\"https://x\"}");
    run->payload = strdup("{\"media_type\":\"text/plain\",\"text\":\"a\\nb\"}");
    run_freeze_subject(run, "https://x/\xE2\x80\xA8\"1\"");
    run->deadline = (struct wall_ms){99000};
    run->request_no = 3;
    assert_true(run_count(run, "review") && run_count(run, "again"));
    struct run_turn *turn = turn_make(run, "0123456789abcdef0123456789abcdef", "dev", RUN_START);
    turn->has_verdict = true;
    turn->verdict = VERDICT_blocked;
    run_turn_end(run, turn, TURN_completed, (struct wall_ms){4000});
    turn = turn_make(run, "1123456789abcdef0123456789abcdef", "rev.a", "review");
    turn->code = BATON_E_executor_failed;
    turn->from = plain_id_of("dev");
    turn->claimed_at = (struct wall_ms){3000};
    run_turn_end(run, turn, TURN_parked, (struct wall_ms){4000});
    assert_true(run_move(run, RUN_waiting, "a turn is parked", (struct wall_ms){4000}));
    run->code = BATON_E_cycle_limit;
    run->stage = plain_id_of("cycle_limit");
    run_pend(run, turn->id.s, strdup("dev"), strdup("line\n"), strdup("{\"a\":\"b\"}"));
    assert_true(run_pend_later(run, turn->id.s, NULL, strdup("second"), NULL));
    assert_true(run_pend_later(run, turn->id.s, strdup("rev"), NULL, strdup("{}")));
    run_hold(run, turn->id.s, strdup("fine"));
    char from[] = "dev";
    char target[] = "rev.a";
    char said[] = "go on";
    char facts[] = "{\"k\":\"v\"}";
    const struct run_asked asked = {
        plain_id_of("q-1"), plain_id_of("alice"), true, from, target, said, facts};
    assert_true(run_ask(run, &asked));
    run_encode(run, &first);
    assert_true(buf_ok(&first));
    assert_int_equal(run_parse(first.data, first.len, &back, NULL), BATON_OK);
    run_encode(back, &second);
    assert_string_equal(first.data, second.data);
    assert_string_equal(back->held.summary, "fine");
    assert_string_equal(back->subject, run->subject);
    assert_true(back->asked.person && strcmp(back->asked.data, asked.data) == 0);
    assert_true(run_count(back, "review")); /* what is taken after it makes it count no more */
    assert_string_equal(back->held.turn.s, "");
    assert_string_equal(back->pending.data, run->pending.data);
    run_pend(back, "", NULL, NULL, NULL);
    assert_true(run_pend_next(back)); /* in the order in which they came */
    assert_string_equal(back->pending.summary, "second");
    run_pend(back, "", NULL, NULL, NULL);
    assert_true(run_pend_next(back));
    assert_string_equal(back->pending.target, "rev");
    assert_int_equal(back->n_later, 0);
    assert_string_equal(back->workflow->digest, run->workflow->digest);
    run_free(back);
    run_free(run);
    buf_done(&first);
    buf_done(&second);
}

static void test_what_no_coordinator_writes_is_no_record(void **state)
{
    static const struct {
        const char *from;
        const char *to;
    } changes[] = {
        {"\"version\":1", "\"version\":2"},
        {"\"state\":\"active\"", "\"state\":\"running\""},
        {"\"task_status\":\"active\"", "\"task_status\":\"done\""},
        {"\"run_id\":\"r-1\"", "\"run_id\":\"R 1\""},
        {"\"epoch\":1", "\"epoch\":-1"},
        {"\"role\":\"owner\"", "\"role\":\"boss\""},
        {"\"role\":\"owner\",", ""},
        {"\"verdict\":\"done\"", "\"verdict\":\"fine\""},
        {"version: 1\\nname: small", "version: 9\\nname: small"},
        {"\"request_no\":0", "\"request_no\":0,\"more\":1"},
    };
    struct run *run = run_make();
    struct buf value = BUF_INIT;
    (void)state;
    struct run_turn *turn = turn_make(run, "0123456789abcdef0123456789abcdef", "dev", RUN_START);
    turn->has_verdict = true;
    turn->verdict = VERDICT_done;
    run_encode(run, &value);
    for (size_t i = 0; i < COUNT_OF(changes); i++) {
        struct run *back = NULL;
        struct buf changed = BUF_INIT;
        const char *at = strstr(value.data, changes[i].from);
        if (at == NULL) {
            fail_msg("%s is not in %s", changes[i].from, value.data);
        }
        buf_add(&changed, value.data, (size_t)(at - value.data));
        buf_add_text(&changed, changes[i].to);
        buf_add_text(&changed, at + strlen(changes[i].from));
        if (run_parse(changed.data, changed.len, &back, NULL) == BATON_OK) {
            fail_msg("%s was taken", changes[i].to);
        }
        assert_null(back);
        buf_done(&changed);
    }
    run_free(run);
    buf_done(&value);
}

/* However many ends wait, and whatever is in them: the record can be written and read. */
static void test_H24_no_end_makes_the_record_too_large(void **state)
{
    struct run *run = run_make();
    struct run *back = NULL;
    struct buf value = BUF_INIT;
    char id[33];
    (void)state;
    for (int i = 0; i < RUN_TURNS_MAX - 1; i++) {
        char *data = calloc(1, RUN_DATA_MAX + 1);
        char *summary = calloc(1, RUN_SUMMARY_MAX + 1);
        assert_true(data != NULL && summary != NULL);
        memset(data, '"', RUN_DATA_MAX);
        memset(summary, 1, RUN_SUMMARY_MAX);
        snprintf(id, sizeof(id), "%032x", i);
        assert_true(run_pend_later(run, id, NULL, summary, data));
    }
    char *data = calloc(1, RUN_DATA_MAX + 2);
    assert_non_null(data);
    memset(data, '"', RUN_DATA_MAX + 1);
    char name[] = "dev";
    const struct run_asked asked = {
        plain_id_of("q-1"), plain_id_of("alice"), true, name, name, name, data};
    assert_false(run_ask(run, &asked));
    data[RUN_DATA_MAX] = '\0';
    assert_true(run_ask(run, &asked));
    free(data);
    run_encode(run, &value);
    assert_true(buf_ok(&value) && value.len < LIMIT_RECORD / 2);
    assert_int_equal(run_parse(value.data, value.len, &back, NULL), BATON_OK);
    assert_int_equal(back->n_later, RUN_TURNS_MAX - 1);
    run_free(back);
    run_free(run);
    buf_done(&value);
}

/* Costs add up to what a record can hold. */
static void test_H24_costs_are_bounded(void **state)
{
    struct run *run = run_make();
    struct run *back = NULL;
    (void)state;
    assert_true(run_count(run, "review"));
    for (int i = 0; i < 3; i++) {
        char id[33];
        snprintf(id, sizeof(id), "%032x", i);
        struct run_turn *turn = turn_make(run, id, "rev.a", "review");
        turn->cost = JSON_INT_MAX;
        run_turn_end(run, turn, TURN_cancelled, (struct wall_ms){2700});
    }
    assert_int_equal(run->edges[0].cost, JSON_INT_MAX);
    assert_int_equal(run_cost(run), JSON_INT_MAX);
    assert_int_equal(run_copy(run, &back), BATON_OK);
    run_free(back);
    run_free(run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_S4_every_pair_of_states),
        cmocka_unit_test(test_a_reopened_run_begins_a_new_epoch_and_counts_anew),
        cmocka_unit_test(test_H47_H48_counters),
        cmocka_unit_test(test_R41_R52_only_a_verdict_moves_the_task),
        cmocka_unit_test(test_an_edge_has_the_cost_and_time_of_its_turns),
        cmocka_unit_test(test_open_turns_are_kept),
        cmocka_unit_test(test_its_record_comes_back_as_it_was),
        cmocka_unit_test(test_what_no_coordinator_writes_is_no_record),
        cmocka_unit_test(test_H24_no_end_makes_the_record_too_large),
        cmocka_unit_test(test_H24_costs_are_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
