/*
 * five hundred turns with failures drawn by chance. Whatever happens, a reviewer's turn runs
 * as reviewer and an arbiter's as arbiter, each attempt once, and each turn ends in exactly one
 * place (I1 to I4; ).
 */
#include "tests/unit/worker/host.h"

#define TURNS 500

static unsigned draw_state;

static unsigned draw(unsigned below)
{
    draw_state = draw_state * 1664525u + 1013904223u;
    return (draw_state >> 8) % below;
}

/* A plan of up to eight failures, sometimes with a verdict at its end. */
static void draw_plan(enum role role, char *ret_plan, size_t size)
{
    size_t n = 0;
    ret_plan[0] = '\0';
    unsigned failures = draw(9);
    for (unsigned i = 0; i < failures; i++) {
        enum failure class;
        do {
            class = (enum failure)draw(FAILURE_COUNT);
        } while (class == FAILURE_killed ||
                 class == FAILURE_lost); /* only a worker can know them */
        n += (size_t)snprintf(ret_plan + n, size - n, "%s,", failure_word(class));
    }
    snprintf(ret_plan + n, size - n, "%s",
             draw(4) == 0            ? "policy"
             : role == ROLE_reviewer ? "approve"
                                     : "escalate");
}

struct seen {
    char ids[TURNS][33];
    enum role roles[TURNS];
    int ended[TURNS];  /* completed or cancelled */
    int parked[TURNS]; /* with that outcome */
};

static void note_outcome(const struct log_record *record, void *arg)
{
    struct seen *seen = arg;
    struct outcome *outcome = NULL;
    OK(outcome_parse(record->value, record->value_len, &outcome, err));
    for (int i = 0; i < TURNS; i++) {
        if (strcmp(seen->ids[i], outcome->turn_id.s) == 0) {
            assert_true(outcome->has_role);
            assert_int_equal(outcome->role, seen->roles[i]);
            seen->ended[i] += outcome->event == OUTCOME_completed ? 1 : 0;
            seen->parked[i] += outcome->event == OUTCOME_parked ? 1 : 0;
        }
    }
    outcome_free(outcome);
}

static void check_state(const struct log_record *record, void *arg)
{
    struct seen *seen = arg;
    struct turn_record state;
    if (record->key_len != 32) {
        return;
    }
    OK(turn_record_parse(record->value, record->value_len, &state, err));
    for (int i = 0; i < TURNS; i++) {
        if (strcmp(seen->ids[i], state.id.s) == 0) {
            assert_int_equal(state.role, seen->roles[i]);
            assert_true(state.state == TURN_completed || state.state == TURN_parked);
            assert_int_equal(seen->ended[i], state.state == TURN_completed ? 1 : 0);
            assert_int_equal(seen->parked[i], state.state == TURN_parked ? 1 : 0);
            assert_true(state.attempt <= 1 + 6 + 3);
            for (size_t k = 0; k < state.n_attempts; k++) {
                assert_int_equal(state.attempts[k].no, (int)k + 1);
                assert_false(attempt_state_live(state.attempts[k].state));
            }
            seen->ended[i] = -1; /* seen */
        }
    }
    turn_record_done(&state);
}

static void check_calls(struct host *host, const struct seen *seen)
{
    static unsigned char called[TURNS][65];
    char line[160];
    FILE *file = fopen(host->calls, "r");
    assert_non_null(file);
    memset(called, 0, sizeof(called));
    while (fgets(line, sizeof(line), file) != NULL) {
        int i = 0;
        while (i < TURNS && strncmp(seen->ids[i], line, 32) != 0) {
            i++;
        }
        assert_true(i < TURNS);
        assert_int_equal(called[i][strtol(line + 33, NULL, 10)]++, 0);
        assert_non_null(strstr(line, role_word(seen->roles[i])));
        assert_null(strstr(line, "owner"));
    }
    fclose(file);
}

static void test_r03_no_failure_changes_a_role(void **state)
{
    struct host *host = *state;
    static struct seen seen;
    const char *const quick[] = {"retry.first=1ms", "circuit.after=1000"};
    memset(&seen, 0, sizeof(seen));
    draw_state = (unsigned)getpid() ^ (unsigned)wall_now().v;
    print_message("seed %u\n", draw_state);
    host_configure(host, quick, 2);
    host->config->services[0].parallel = 64;
    host->unchecked = true; /* checked here, at once: one by one it would take minutes */
    for (int i = 0; i < TURNS; i++) {
        char plan[256];
        seen.roles[i] = draw(2) == 0 ? ROLE_reviewer : ROLE_arbiter;
        draw_plan(seen.roles[i], plan, sizeof(plan));
        struct turn_id id = send_turn(host, seen.roles[i], plan);
        snprintf(seen.ids[i], sizeof(seen.ids[i]), "%s", id.s);
    }
    worker_drain(host, "w1");
    each_record(host, TOPIC_outcomes, note_outcome, &seen);
    each_record(host, TOPIC_turns, check_state, &seen);
    for (int i = 0; i < TURNS; i++) {
        assert_int_equal(seen.ended[i], -1);
    }
    check_calls(host, &seen);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        HOST_TEST(test_r03_no_failure_changes_a_role),
    };
    return cmocka_run_group_tests_name("worker: chance", tests, NULL, NULL);
}
