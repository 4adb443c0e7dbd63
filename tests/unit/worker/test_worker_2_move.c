/* The movers over every pair of states: what the tables permit happens, all else stops the program
 * (STYLE S2, R-28). */
#include "worker/move.h"

#include "common/record/turn_record.h"
#include "worker/internal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* The moves of RULES S1 and S2, written down once more. */
static const char *const turn_moves[] = {
    "none>queued",       "none>running",     "none>parked",       "none>cancelled",
    "queued>running",    "running>queued",   "queued>delegated",  "running>delegated",
    "running>parked",    "queued>parked",    "parked>queued",     "parked>delegated",
    "running>completed", "queued>cancelled", "running>cancelled", "parked>cancelled",
};
static const char *const attempt_moves[] = {
    "none>queued",      "none>running",      "queued>running",    "running>completed",
    "running>failed",   "running>delegated", "none>failed",       "queued>failed",
    "queued>delegated", "queued>cancelled",  "running>cancelled", "none>cancelled",
};

static bool listed(const char *const *moves, size_t count, const char *from, const char *to)
{
    char move[64];
    snprintf(move, sizeof(move), "%s>%s", from, to);
    for (size_t i = 0; i < count; i++) {
        if (strcmp(moves[i], move) == 0) {
            return true;
        }
    }
    return false;
}

static const struct config_service lint = {.name = {"lint"}};

static void move_turn(bool birth, enum turn_state from, enum turn_state to)
{
    struct worker w = {.service = &lint};
    struct turn_record record;
    turn_record_init(&record);
    record.state = from;
    record.code = BATON_E_attempts_exhausted;
    record.lease_worker = plain_id_of("w1");
    record.delay_ms = 5;
    turn_move(&w, &record, birth, to);
    if (record.state != to || (to != TURN_running && record.lease_worker.s[0] != '\0') ||
        (to != TURN_queued && record.delay_ms != 0) ||
        (to != TURN_parked && record.code != BATON_OK) ||
        turn_state_open(to) != (record.ended_at.v == 0)) {
        _exit(2);
    }
    turn_record_done(&record);
}

static void move_attempt(bool birth, enum attempt_state from, enum attempt_state to)
{
    struct worker w = {.service = &lint};
    struct turn_record record;
    turn_record_init(&record);
    record.attempt = 3;
    struct attempt *attempt = NULL;
    if (birth) {
        attempt = attempt_begin(&w, &record, to, "one");
    } else {
        attempt = turn_record_add_attempt(&record);
        attempt->no = 3;
        attempt->state = from;
        attempt_move(&record, attempt, to, (struct wall_ms){77});
    }
    if (attempt->state != to || attempt->no != 3 ||
        attempt_state_live(to) != (attempt->ended_at.v == 0)) {
        _exit(2);
    }
    turn_record_done(&record);
}

/* Runs in a child, whose end says whether the contract held. */
static bool permitted(void (*turn)(bool, enum turn_state, enum turn_state),
                      void (*attempt)(bool, enum attempt_state, enum attempt_state), bool birth,
                      int from, int to)
{
    int status = 0;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        const struct rlimit none = {0, 0};
        setrlimit(RLIMIT_CORE, &none);
        dup2(open("/dev/null", O_WRONLY | O_CLOEXEC), 2);
        signal(SIGABRT, SIG_DFL); /* cmocka's handler would speak */
        if (turn != NULL) {
            turn(birth, (enum turn_state)from, (enum turn_state)to);
        } else {
            attempt(birth, (enum attempt_state)from, (enum attempt_state)to);
        }
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (WIFSIGNALED(status)) {
        assert_int_equal(WTERMSIG(status), SIGABRT);
        return false;
    }
    assert_int_equal(WEXITSTATUS(status), 0);
    return true;
}

static void test_turns_over_every_pair(void **state)
{
    (void)state;
    size_t n = 0;
    for (int to = 0; to < TURN_STATE_COUNT; to++) {
        for (int from = -1; from < TURN_STATE_COUNT; from++) {
            const char *word = from < 0 ? "none" : turn_state_word((enum turn_state)from);
            bool wanted = listed(turn_moves, sizeof(turn_moves) / sizeof(turn_moves[0]), word,
                                 turn_state_word((enum turn_state)to));
            if (permitted(move_turn, NULL, from < 0, from < 0 ? 0 : from, to) != wanted) {
                fail_msg("turn %s -> %s: %s", word, turn_state_word((enum turn_state)to),
                         wanted ? "refused" : "permitted");
            }
            n += wanted ? 1 : 0;
        }
    }
    assert_int_equal(n, sizeof(turn_moves) / sizeof(turn_moves[0]));
}

static void test_attempts_over_every_pair(void **state)
{
    (void)state;
    size_t n = 0;
    for (int to = 0; to < ATTEMPT_STATE_COUNT; to++) {
        for (int from = -1; from < ATTEMPT_STATE_COUNT; from++) {
            const char *word = from < 0 ? "none" : attempt_state_word((enum attempt_state)from);
            bool wanted = listed(attempt_moves, sizeof(attempt_moves) / sizeof(attempt_moves[0]),
                                 word, attempt_state_word((enum attempt_state)to));
            if (permitted(NULL, move_attempt, from < 0, from < 0 ? 0 : from, to) != wanted) {
                fail_msg("attempt %s -> %s: %s", word, attempt_state_word((enum attempt_state)to),
                         wanted ? "refused" : "permitted");
            }
            n += wanted ? 1 : 0;
        }
    }
    assert_int_equal(n, sizeof(attempt_moves) / sizeof(attempt_moves[0]));
}

/* R-02, S1: nothing leaves a closed state. */
static void test_r02_no_exit_from_a_closed_state(void **state)
{
    (void)state;
    for (int from = 0; from < TURN_STATE_COUNT; from++) {
        for (int to = 0; to < TURN_STATE_COUNT; to++) {
            assert_false(!turn_state_open((enum turn_state)from) &&
                         turn_state_may_move((enum turn_state)from, (enum turn_state)to));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_turns_over_every_pair),
        cmocka_unit_test(test_attempts_over_every_pair),
        cmocka_unit_test(test_r02_no_exit_from_a_closed_state),
    };
    return cmocka_run_group_tests_name("worker: movers", tests, NULL, NULL);
}
