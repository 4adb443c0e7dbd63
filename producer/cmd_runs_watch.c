/*
 * `baton runs wait | watch`: following one run until it has ended or waits for a person.
 * In: producer/cmd_runs.c, producer/cmd_runs_start.c (--wait)
 * Out: producer/run_log.c
 */
#include "producer/cmd_runs.h"

#include "common/base/check.h"
#include "common/base/jsonw.h"
#include "common/base/text.h"
#include "producer/run/draw.h"
#include "producer/run_log.h"
#include "producer/session.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define POLL_MS 200
#define LOOK_MS 5000   /* between two looks for a coordinator */
#define LOOKED_MS 2000 /* the longest that such a look keeps changes back */
#define LAST_MS 1000   /* for the one that is part of what is printed, though the time is over */

/* What a script learns from how a run stands: 0 only if it has completed. */
static baton_code code_of(const struct run *run)
{
    switch (run->state) {
    case RUN_completed:
        return BATON_OK;
    case RUN_waiting:
        return run->code != BATON_OK ? run->code : BATON_E_person_required;
    case RUN_expired:
        return BATON_E_deadline_exceeded;
    case RUN_failed:
    case RUN_cancelled:
        return BATON_E_run_terminal;
    case RUN_active:
    case RUN_STATE_COUNT:
        break;
    }
    return BATON_E_timed_out;
}

/* ---- what has changed ---- */

static void add_line(struct buf *out, struct wall_ms at, const char *text)
{
    buf_printf(out, "%s  %s", command_time(at).s, text);
}

/* A turn that is new, or stands otherwise than before. */
static bool turn_changed(const struct run *before, const struct run_turn *turn)
{
    for (size_t i = 0; before != NULL && i < before->n_kept; i++) {
        const struct run_turn *old = &before->turns[i];
        if (old->no == turn->no) {
            return old->state != turn->state || old->attempt != turn->attempt ||
                   strcmp(old->service.s, turn->service.s) != 0;
        }
    }
    return true;
}

static void print_turn(const struct run_turn *turn, struct wall_ms at, struct buf *out)
{
    char text[256];
    snprintf(text, sizeof(text), "#%d %s: %s at %s, %s %s", turn->no, turn->by.s, turn->slot.s,
             turn->service.s, role_word(turn->role), turn_state_word(turn->state));
    add_line(out, at, text);
    if (turn->attempt > 1) {
        buf_printf(out, ", attempt %d", turn->attempt);
    }
    if (turn->has_verdict) {
        buf_printf(out, ": %s", verdict_word(turn->verdict));
    } else if (turn->code != BATON_OK) {
        buf_printf(out, ": %s", baton_code_word(turn->code));
    }
    buf_add_char(out, '\n');
}

static void print_changes(const struct run *before, const struct run *run, struct buf *out)
{
    for (size_t i = 0; i < run->n_kept; i++) {
        const struct run_turn *turn = &run->turns[i];
        if (turn_changed(before, turn)) {
            const struct wall_ms at = turn->ended_at.v > 0     ? turn->ended_at
                                      : turn->claimed_at.v > 0 ? turn->claimed_at
                                                               : turn->begun_at;
            print_turn(turn, at, out);
        }
    }
    if (before == NULL || before->state != run->state || before->epoch != run->epoch) {
        char text[96];
        snprintf(text, sizeof(text), "run %s is %s", run->id.s, run_state_word(run->state));
        add_line(out, run->updated_at, text);
        if (run->state != RUN_active && run->why[0] != '\0') {
            buf_add_text(out, ": ");
            text_add(out, run->why, strlen(run->why), 0);
        }
        buf_add_char(out, '\n');
    }
}

static bool same(const struct run *before, const struct run *run)
{
    bool changed = before == NULL || before->state != run->state || before->epoch != run->epoch ||
                   before->n_turns != run->n_turns;
    for (size_t i = 0; i < run->n_kept && !changed; i++) {
        changed = turn_changed(before, &run->turns[i]);
    }
    return !changed;
}

/* ---- following ---- */

static bool goes_on(const struct run *run)
{
    return run->state == RUN_active;
}

static int64_t left_ms(struct mono_ms until)
{
    return until.v - mono_now().v;
}

/* Told once that nobody moves the run; not looked for where it would not be printed. */
static bool tell_still(struct command *cmd, const struct session *session, struct mono_ms until)
{
    const int64_t most_ms = left_ms(until) < LOOKED_MS ? left_ms(until) : LOOKED_MS;
    if (cmd->json || cmd->quiet ||
        run_log_still(session->log, session->config, most_ms) != RUN_STILL_yes) {
        return false;
    }
    command_note(cmd, RUN_LOG_STILL);
    return true;
}

/* The newest state in *ret_run once the run does not go on by itself, or the time is over; with watch each
 * change is printed. */
static baton_code follow(struct command *cmd, const struct session *session, const char *word,
                         bool watch, struct mono_ms until, struct run **ret_run,
                         struct baton_error *err)
{
    struct run *before = NULL;
    struct mono_ms look = mono_now(); /* whether anybody moves it */
    bool told = false;
    baton_code rc = BATON_OK;
    for (bool first = true;; first = false) {
        struct run *run = NULL;
        struct buf out = BUF_INIT;
        rc = run_log_find(session->log, session->config, word, &run, err);
        if (rc != BATON_OK) {
            break;
        }
        if (watch && (first || !same(before, run))) {
            if (cmd->json) {
                run_print_json(run, &out);
            } else {
                print_changes(before, run, &out);
            }
            (void)command_print(cmd, &out);
        }
        buf_done(&out);
        run_free(before);
        before = run;
        if (!goes_on(run) || left_ms(until) <= 0) {
            break;
        }
        if (!told && mono_now().v >= look.v) {
            told = tell_still(cmd, session, until);
            look.v = mono_now().v + LOOK_MS;
        }
        usleep(POLL_MS * 1000);
    }
    if (rc != BATON_OK) {
        run_free(before);
        return rc;
    }
    *ret_run = before;
    return BATON_OK;
}

static void print_end(struct command *cmd, const struct session *session, const struct run *run,
                      bool watch, struct mono_ms until)
{
    if (!watch) {
        run_print(cmd, session, run, left_ms(until) > LAST_MS ? left_ms(until) : LAST_MS);
    } else if (!cmd->json && run->state == RUN_waiting) { /* what whoever watches can do */
        struct buf out = BUF_INIT;
        run_draw_next(run, &out);
        (void)command_print(cmd, &out);
        buf_done(&out);
    }
}

int runs_wait_for(struct command *cmd, const char *word, const char *key, bool watch,
                  int64_t timeout_ms)
{
    struct session session = {.log = NULL};
    struct run *run = NULL;
    struct baton_error err = {BATON_OK, ""};
    const struct mono_ms until = {mono_now().v + timeout_ms};
    baton_code rc = session_open(cmd, &session, &err);
    if (rc == BATON_OK) {
        rc = follow(cmd, &session, word, watch, until, &run, &err);
    }
    if (rc == BATON_OK) {
        print_end(cmd, &session, run, watch, until);
    }
    session_done(&session);
    if (rc == BATON_E_run_not_found && key != NULL) {
        rc = baton_fail(
            &err, BATON_E_timed_out,
            "no coordinator has answered yet (is one running? `baton coordinator`); the "
            "request is in the log, and run %s begins when one takes it: `baton runs wait "
            "%s`. Asking again with --key %s is the same run",
            word, word, key);
    }
    if (rc != BATON_OK) {
        return command_fail(cmd, rc, &err);
    }
    const int status = baton_code_exit(code_of(run));
    run_free(run);
    return status;
}

static int run_wait(struct command *cmd)
{
    return runs_wait_for(cmd, cmd->args[0], NULL, false, command_int(cmd, "timeout"));
}

static int run_watch(struct command *cmd)
{
    return runs_wait_for(cmd, cmd->args[0], NULL, true, command_int(cmd, "timeout"));
}

/* clang-format off */
static const struct command_option wait_options[] = {
    {.name = "timeout", .argument = "DURATION", .kind = OPTION_duration, .fallback = "10m",
     .help = "How long; then the exit status is 8."},
};
static const struct command_option watch_options[] = {
    {.name = "timeout", .argument = "DURATION", .kind = OPTION_duration, .fallback = "7d",
     .help = "How long; then the exit status is 8."},
};
/* clang-format on */

static const char exits[] = "0  the run has completed\n"
                            "3, 4, 6  it waits for a person, was cancelled or failed\n"
                            "7  its deadline has passed\n"
                            "8  it still goes on\n";

const struct baton_command cmd_runs_wait = {
    .name = "wait",
    .summary = "wait until a run has ended or waits for a person",
    .usage = "RUN [--timeout DURATION] [--json]",
    .description = "Prints the run as `runs show` does.",
    .options = wait_options,
    .n_options = COUNT_OF(wait_options),
    .args_min = 1,
    .args_max = 1,
    .exits = exits,
    .examples = "baton runs wait r-3f0c --timeout 1h\n",
    .run = run_wait,
};

const struct baton_command cmd_runs_watch = {
    .name = "watch",
    .summary = "follow a run: each turn as it is queued, claimed and ended",
    .usage = "RUN [--timeout DURATION] [--json]",
    .description = "One line for each change until the run has ended or waits for a person. With "
                   "--json the whole run, one object a line, at each change.",
    .options = watch_options,
    .n_options = COUNT_OF(watch_options),
    .args_min = 1,
    .args_max = 1,
    .exits = exits,
    .examples = "baton runs watch r-3f0c\n",
    .run = run_watch,
};
