/* The graph of a run's path, letter by letter. */
#include "run_fixture.h"

#include "producer/run/draw.h"

#define SECOND 1000

static struct run_turn *add(struct run *run, const char *slot, const char *by, const char *from,
                            int64_t begun_s)
{
    struct turn_id id;
    snprintf(id.s, sizeof(id.s), "%032d", run->n_turns + 1);
    struct run_turn *turn = turn_make(run, id.s, slot, by);
    turn->from = plain_id_of(from);
    turn->begun_at.v = begun_s * SECOND;
    return turn;
}

static void end(struct run *run, struct run_turn *turn, enum verdict verdict, int64_t at_s,
                int64_t cost)
{
    turn->has_verdict = true;
    turn->verdict = verdict;
    turn->cost = cost;
    run_turn_end(run, turn, TURN_completed, (struct wall_ms){at_s * SECOND});
}

static void check(const struct run *run, int64_t now_s, const char *graph, const char *now)
{
    struct buf out = BUF_INIT;
    run_draw(run, (struct wall_ms){now_s * SECOND}, &out);
    buf_add_char(&out, '\0');
    assert_string_equal(out.data, graph);
    for (const char *at = out.data; *at != '\0'; at += strcspn(at, "\n") + 1) {
        assert_true(strcspn(at, "\n") <= RUN_DRAW_WIDTH);
    }
    buf_clear(&out);
    run_draw_now(run, (struct wall_ms){now_s * SECOND}, &out);
    buf_add_char(&out, '\0');
    assert_string_equal(out.data, now);
    buf_done(&out);
}

/* A fan-out, a loop in its second round, and somebody who took over. */
static void test_the_path_of_a_run(void **state)
{
    struct run *run = run_make();
    (void)state;
    assert_true(run_count(run, RUN_START));
    end(run, add(run, "dev", RUN_START, "", 10), VERDICT_done, 22, 12500);
    assert_true(run_count(run, "review"));
    struct run_turn *a = add(run, "rev.a", "review", "dev", 22);
    struct run_turn *b = add(run, "rev.b", "review", "dev", 22);
    a = b - 1;
    a->service = service_id_of("two");
    a->attempt = 3;
    end(run, a, VERDICT_changes, 222, 1000000);
    b->state = TURN_parked;
    b->code = BATON_E_budget_exceeded;
    assert_true(run_count(run, "again"));
    end(run, add(run, "dev", "again", "rev.a", 222), VERDICT_done, 4000, 0);
    assert_true(run_count(run, "review"));
    add(run, "rev.a", "review", "dev", 4000)->state = TURN_running;
    run->turns[4].claimed_at.v = 4001 * SECOND;
    check(run, 4011,
          "start\n"
          " |\n"
          "#1 dev at one                             done       12s  0.0125\n"
          " +- review\n"
          " |  #2 rev.a at one -> two (3)            changes  3m20s  1.0000\n"
          " |   |  again\n"
          " |  #4 dev at one                         done     1h02m\n"
          " |   |  review, round 2\n"
          " |  #5 rev.a at one                       running    11s\n"
          " |   :  again -> dev (1 left)\n"
          " |   :  ask2 -> rev.b (8 left)\n"
          " |   :  good -> the run is completed\n"
          " +- review\n"
          "    #3 rev.b at one                       parked   1h06m\n"
          "     :  noted -> dev (8 left)\n"
          "     :  denied -> end\n",
          "at turn: rev.b at one as reviewer, parked; it began 1h06m ago, at 1970-01-01T00:00:22Z\n"
          "    because: budget_exceeded\n"
          "at turn: rev.a at one as reviewer, running for 10s, since 1970-01-01T01:06:41Z\n"
          "    because: dev said done (review)\n");
    assert_true(run_move(run, RUN_waiting, "parked", (struct wall_ms){4011 * SECOND}));
    struct buf out = BUF_INIT;
    run_draw_now(run, (struct wall_ms){4011 * SECOND}, &out);
    buf_add_char(&out, '\0');
    assert_non_null(strstr(out.data, "next: `baton dlq replay 00000000000000000000000000000003`"));
    buf_done(&out);
    run_free(run);
}

/* What a person can do: at a cap, after a verdict that nothing answers, once it is over. */
static void test_what_comes_next(void **state)
{
    struct run *run = run_make();
    (void)state;
    assert_true(run_count(run, RUN_START));
    end(run, add(run, "rev.a", RUN_START, "", 10), VERDICT_changes, 22, 0);
    assert_true(run_count(run, "again") && run_count(run, "again"));
    assert_true(run_move(run, RUN_waiting, "cap", (struct wall_ms){5}));
    run->code = BATON_E_cycle_limit;
    run->stage = plain_id_of("cycle_limit");
    check(run, 30, "start\n |\n#1 rev.a at one                           changes  12s\n",
          "next: `baton runs touch r-1` decides again\n"
          "next: `baton handoff --run r-1 --from rev.a --to ask --summary TEXT`\n"
          "next: `baton handoff --run r-1 --from rev.a --to ask2 --summary TEXT`\n");
    run->turns[0].verdict = VERDICT_approve;
    assert_true(run_move(run, RUN_completed, "good: fine", (struct wall_ms){5}));
    check(
        run, 30,
        "start\n |\n#1 rev.a at one                           approve  12s\n |  good\ncompleted\n",
        "next: `baton runs reopen r-1 --reason TEXT` begins it anew\n");
    run_free(run);
}

/* Names as long as they may be, branches within branches: never wider than 80 columns. */
static void test_it_fits_eighty_columns(void **state)
{
    struct run *run = run_make();
    struct buf out = BUF_INIT;
    (void)state;
    add(run, "dev", RUN_START, "", 1);
    for (int i = 0; i < 60; i++) {
        static const char *const slots[] = {"rev.a", "rev.b", "dev"};
        struct run_turn *turn =
            add(run, slots[i % 3], "hooked", i < 3 ? "dev" : slots[(i + 1) % 3], i);
        turn->born = service_id_of("a-service-with-a-name-of-forty-eight-characters1");
        turn->service = service_id_of("a-service-with-a-name-of-forty-eight-characters2");
        turn->attempt = 64;
        turn->cost = 123456789012;
    }
    run_draw(run, (struct wall_ms){1000000000}, &out);
    buf_add_char(&out, '\0');
    for (const char *at = out.data; *at != '\0'; at += strcspn(at, "\n") + 1) {
        if (strcspn(at, "\n") > RUN_DRAW_WIDTH) {
            fail_msg("%.*s", (int)strcspn(at, "\n"), at);
        }
    }
    buf_done(&out);
    run_free(run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_path_of_a_run),
        cmocka_unit_test(test_what_comes_next),
        cmocka_unit_test(test_it_fits_eighty_columns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
