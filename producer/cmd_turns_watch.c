/*
 * `baton turns watch | wait`: following a turn in the turn logs.
 * In: producer/cmd_turns.c
 * Out: topics/turn_log.c
 */
#include "producer/cmd_turns.h"

#include "common/base/check.h"
#include "common/base/clock.h"
#include "common/base/jsonw.h"
#include "common/base/text.h"
#include "producer/life.h"
#include "topics/progress.h"

#include <string.h>

#define SLICE_MS 3600000 /* of a wait without a limit */
#define LOOK_MS 300      /* how often progress is looked for */

/* What a follower does with each state; false: that was all. */
typedef bool follow_fn(struct command *cmd, const struct turn_record *record, const char *service);

/* The attempt that runs by the turn log; no: 0 if none does. */
struct running {
    int no;
    struct service_id service;
    struct plain_id worker;
};

static struct running running_of(const struct turn_record *record, const char *service)
{
    struct running running = {.no = 0};
    if (record->state == TURN_running) {
        running.no = record->attempt;
        running.service = service_id_of(service);
        running.worker = record->lease_worker;
    }
    return running;
}

/* What the attempt said last, if it is new. What a worker that was killed left lying there is none of it.
 * False: standard output is gone. */
static bool print_progress(struct command *cmd, const struct session *session, const char *turn_id,
                           const struct running *running, struct wall_ms *seen)
{
    struct progress progress;
    struct buf out = BUF_INIT;
    if (running->no == 0 || !progress_read(session->config, turn_id, &progress) ||
        progress.at.v == seen->v || progress.attempt != running->no ||
        strcmp(progress.service.s, running->service.s) != 0 ||
        strcmp(progress.worker.s, running->worker.s) != 0) {
        return true;
    }
    *seen = progress.at;
    if (cmd->json) {
        struct jsonw w = jsonw_to(&out);
        jsonw_begin_object(&w);
        jsonw_key_text(&w, "at", wall_text(progress.at).s);
        jsonw_key_text(&w, "turn_id", turn_id);
        jsonw_key_text(&w, "service", progress.service.s);
        jsonw_key_int(&w, "attempt", progress.attempt);
        jsonw_key_text(&w, "worker", progress.worker.s);
        jsonw_key_text(&w, "progress", progress.text);
        jsonw_end(&w);
        buf_add_char(&out, '\n');
    } else {
        buf_printf(&out, "%s  %-9s ", wall_text(progress.at).s, "...");
        text_add(&out, progress.text, strlen(progress.text), 400);
        buf_add_char(&out, '\n');
    }
    bool written = command_print(cmd, &out);
    buf_done(&out);
    return written;
}

/* From the present state on: the watch is opened before it is read, so that nothing falls between.
 */
static baton_code follow(struct command *cmd, struct session *session, struct mono_ms until,
                         follow_fn *fn, bool with_progress, struct turn_id *ret_id,
                         struct baton_error *err)
{
    struct wall_ms seen = {0};
    struct running running = {.no = 0};
    const int64_t slice_ms = with_progress ? LOOK_MS : SLICE_MS;
    struct turn_watch *watch = NULL;
    struct turn_life life = {.found = false};
    const char *waits_at = NULL;
    bool go_on = true;
    baton_code rc = turn_log_resolve(session->log, session->config, cmd->args[0], ret_id, err);
    if (rc == BATON_OK) {
        rc = turn_watch_open(session->log, session->config, ret_id->s, &watch, err);
    }
    if (rc == BATON_OK) {
        rc = turns_find(session, ret_id->s, ret_id, &life, &waits_at, err);
    }
    if (rc == BATON_OK) {
        go_on = fn(cmd, &life.now, life.service);
        running = running_of(&life.now, life.service);
    } else if (rc == BATON_E_turn_not_found && waits_at != NULL) {
        rc = BATON_OK;
        command_note(cmd, "turn %s waits at %s: no worker has taken it in yet", ret_id->s,
                     waits_at);
    }
    turn_life_done(&life);
    while (rc == BATON_OK && go_on) {
        struct turn_record record;
        const char *service = NULL;
        int64_t rest = until.v - mono_now().v;
        rc = turn_watch_next(watch, rest < slice_ms ? rest : slice_ms, &record, &service, err);
        if (rc == BATON_OK && service != NULL) {
            go_on = fn(cmd, &record, service);
            running = running_of(&record, service);
            turn_record_done(&record);
        } else if (rc == BATON_OK && mono_now().v >= until.v) {
            rc = baton_fail(err, BATON_E_timed_out, "turn %s did not end in time; it goes on",
                            ret_id->s);
        }
        if (rc == BATON_OK && go_on && with_progress) {
            go_on = print_progress(cmd, session, ret_id->s, &running, &seen);
        }
    }
    turn_watch_close(watch);
    return rc;
}

/* ---- watch ---- */

static void change_json(const struct turn_record *record, const char *service, struct buf *out)
{
    const struct attempt *last =
        record->n_attempts > 0 ? &record->attempts[record->n_attempts - 1] : NULL;
    struct verdict_text verdict = result_verdict(record->result, record->result_len);
    struct jsonw w = jsonw_to(out);
    jsonw_begin_object(&w);
    jsonw_key_text(&w, "at", wall_text(record->updated_at).s);
    jsonw_key_text(&w, "turn_id", record->id.s);
    jsonw_key_text(&w, "role", role_word(record->role));
    jsonw_key_text(&w, "service", service);
    jsonw_key_text(&w, "state", turn_state_word(record->state));
    jsonw_key_int(&w, "attempt", record->attempt);
    jsonw_key_text(&w, "worker", record->lease_worker.s[0] != '\0' ? record->lease_worker.s : NULL);
    jsonw_key_text(&w, "profile",
                   last != NULL && last->profile.s[0] != '\0' ? last->profile.s : NULL);
    jsonw_key_text(&w, "class", last != NULL && last->has_class ? failure_word(last->class) : NULL);
    jsonw_key_text(&w, "code", record->code != BATON_OK ? baton_code_word(record->code) : NULL);
    jsonw_key_text(&w, "verdict", verdict.s[0] != '\0' ? verdict.s : NULL);
    jsonw_key_text(&w, "note", last != NULL ? last->note : NULL);
    jsonw_end(&w);
    buf_add_char(out, '\n');
}

static void change_text(const struct turn_record *record, const char *service, struct buf *out)
{
    const struct attempt *last =
        record->n_attempts > 0 ? &record->attempts[record->n_attempts - 1] : NULL;
    struct verdict_text verdict = result_verdict(record->result, record->result_len);
    buf_printf(out, "%s  %-9s %s at %s, attempt %d", wall_text(record->updated_at).s,
               turn_state_word(record->state), role_word(record->role), service, record->attempt);
    if (record->lease_worker.s[0] != '\0') {
        buf_printf(out, ", worker %s", record->lease_worker.s);
    }
    if (last != NULL && last->profile.s[0] != '\0') {
        buf_printf(out, ", profile %s", last->profile.s);
    }
    if (record->to_service.s[0] != '\0') {
        buf_printf(out, ", to %s", record->to_service.s);
    }
    if (record->code != BATON_OK) {
        buf_printf(out, ", %s", baton_code_word(record->code));
    }
    if (verdict.s[0] != '\0') {
        buf_add_text(out, ", ");
        text_add(out, verdict.s, strlen(verdict.s), 0);
    }
    if (last != NULL && last->note != NULL && last->note[0] != '\0') {
        buf_add_text(out, ": ");
        text_add(out, last->note, strlen(last->note), 200);
    }
    buf_add_char(out, '\n');
}

static bool print_change(struct command *cmd, const struct turn_record *record, const char *service)
{
    struct buf out = BUF_INIT;
    if (cmd->json) {
        change_json(record, service, &out);
    } else {
        change_text(record, service, &out);
    }
    bool written = command_print(cmd, &out);
    buf_done(&out);
    return written && (turn_state_open(record->state) || record->state == TURN_delegated);
}

static int run_watch(struct command *cmd)
{
    struct session session = {0};
    struct baton_error err = {BATON_OK, ""};
    struct turn_id id;
    int status = 0;
    baton_code rc = session_open(cmd, &session, &err);
    if (rc == BATON_OK) {
        rc = follow(cmd, &session, (struct mono_ms){INT64_MAX}, print_change, true, &id, &err);
    }
    if (rc != BATON_OK) {
        status = command_fail(cmd, rc, &err);
    }
    session_done(&session);
    return status;
}

const struct baton_command cmd_turns_watch = {
    .name = "watch",
    .summary = "print what happens to a turn, as it happens",
    .usage = "ID [--json]",
    .description =
        "Prints the present state and a line for each change, until the turn is closed or "
        "you interrupt it. A parked turn is not closed: it may be replayed. While an attempt runs "
        "on "
        "this host, what its executor says meanwhile is printed, too, where it may be read.",
    .examples = "baton turns watch 7f3a90\n",
    .args_min = 1,
    .args_max = 1,
    .run = run_watch,
};

/* ---- wait ---- */

static bool until_ended(struct command *cmd, const struct turn_record *record, const char *service)
{
    (void)cmd;
    (void)service;
    return !life_ended(record);
}

static int run_wait(struct command *cmd)
{
    struct session session = {0};
    struct baton_error err = {BATON_OK, ""};
    struct turn_life life = {.found = false};
    struct mono_ms until = {mono_now().v + command_int(cmd, "timeout")};
    struct turn_id id;
    int status = 0;
    baton_code rc = session_open(cmd, &session, &err);
    if (rc == BATON_OK &&
        (rc = follow(cmd, &session, until, until_ended, false, &id, &err)) == BATON_OK) {
        rc = turns_find(&session, id.s, &id, &life, NULL, &err);
    }
    if (rc == BATON_OK) {
        turns_print(cmd, &life);
        status = baton_code_exit(life_code(&life.now));
    } else {
        status = command_fail(cmd, rc, &err);
    }
    turn_life_done(&life);
    session_done(&session);
    return status;
}

/* clang-format off */
static const struct command_option wait_options[] = {
    {.name = "timeout", .argument = "DURATION", .kind = OPTION_duration, .fallback = "10m",
     .help = "How long to wait; then the exit status is 8, and the turn goes on."},
};
/* clang-format on */

const struct baton_command cmd_turns_wait = {
    .name = "wait",
    .summary = "wait until a turn has ended or is parked",
    .usage = "ID [--timeout DURATION] [--json]",
    .description = "Waits, then shows the turn as `baton turns show` does.",
    .options = wait_options,
    .n_options = COUNT_OF(wait_options),
    .examples = "baton turns wait 7f3a90 --timeout 5m\n",
    .exits = "0 completed, 7 parked, 6 cancelled, 8 not over in time.\n",
    .args_min = 1,
    .args_max = 1,
    .run = run_wait,
};
