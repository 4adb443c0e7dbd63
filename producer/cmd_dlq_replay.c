/*
 * `baton dlq replay | discard`: what happens to dead letters, one by one or many.
 * In: producer/cmd_dlq.c  Out: producer/dead.c, producer/replay.c, producer/operate.c
 */
#include "producer/cmd_dlq.h"

#include "common/base/check.h"
#include "common/base/jsonw.h"
#include "common/base/limits.h"
#include "common/base/text.h"
#include "producer/cmd_turns.h"
#include "producer/operate.h"
#include "producer/pace.h"
#include "producer/replay.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What became of one that was not replayed. */
static void said(struct command *cmd, const char *id, const char *service, const char *status,
                 const char *note)
{
    struct buf out = BUF_INIT;
    if (cmd->json) {
        struct jsonw w = jsonw_to(&out);
        jsonw_begin_object(&w);
        jsonw_key_text(&w, "id", id);
        jsonw_key_text(&w, "status", status);
        jsonw_key_text(&w, "service", dlq_or_null(service));
        jsonw_key_text(&w, "note", note);
        jsonw_end(&w);
        buf_add_char(&out, '\n');
    } else {
        buf_printf(&out, "%-9s  %s%s", status, id, note != NULL ? "  " : "");
        text_add(&out, note != NULL ? note : "", note != NULL ? strlen(note) : 0, 0);
        buf_add_char(&out, '\n');
    }
    command_print(cmd, &out);
    buf_done(&out);
}

/* ---- many at once ---- */

struct choice {
    char id[LETTER_ID_MAX];
    char service[SERVICE_MAX + 1];
    char run_id[ID_MAX + 1];
    bool parked;
};

struct chosen {
    struct choice *list;
    size_t count;
    size_t max;
    size_t left_out;
    struct command *hold; /* what failed again in the same way after a replay is said there, and not
                             chosen; NULL: it is chosen, too */
    size_t held;
};

static bool on_chosen(void *arg, const struct dead *dead)
{
    struct chosen *chosen = arg;
    if (chosen->hold != NULL && dead->repeated) {
        chosen->held++;
        said(chosen->hold, dead->id, dead->service, "held",
             "it failed in the same way again after its last replay; --again replays it, too");
        return true;
    }
    if (chosen->count == chosen->max) {
        chosen->left_out++;
        return true;
    }
    struct choice *choice = &chosen->list[chosen->count++];
    memcpy(choice->id, dead->id, sizeof(choice->id));
    memcpy(choice->service, dead->service, sizeof(choice->service));
    memcpy(choice->run_id, dead->run_id, sizeof(choice->run_id));
    choice->parked = dead->parked;
    return true;
}

static baton_code choose(struct command *cmd, struct session *session, struct chosen *chosen,
                         struct baton_error *err)
{
    struct dlq_filter filter;
    chosen->max = (size_t)command_int(cmd, "limit");
    baton_code rc = dlq_filter_of(cmd, &filter, err);
    if (rc == BATON_OK && (chosen->list = calloc(chosen->max, sizeof(*chosen->list))) == NULL) {
        rc = baton_fail(err, BATON_E_no_memory, "no memory for a list");
    }
    return rc == BATON_OK ? dead_each(session, &filter.dead, on_chosen, chosen, err) : rc;
}

static void tell_rest(struct command *cmd, const struct chosen *chosen, const struct pace *pace)
{
    if (chosen->count == 0 && chosen->held == 0) {
        command_note(cmd, "no dead letter is so");
    }
    if (pace->done < chosen->count) {
        command_note(cmd, "interrupted: %s %zu of %zu; the same command goes on with the others",
                     pace->verb, pace->done, chosen->count);
    }
    if (chosen->held > 0) {
        command_note(cmd, "%zu held back: mend their cause first (`baton turns why ID`)",
                     chosen->held);
    }
    if (chosen->left_out > 0) {
        command_note(cmd, "and %zu more, beyond --limit", chosen->left_out);
    }
}

/* ---- replay ---- */

static void replayed_print(struct command *cmd, const char *id, const struct replay_result *result,
                           baton_code rc, const struct baton_error *err)
{
    struct buf out = BUF_INIT;
    if (cmd->json) {
        struct jsonw w = jsonw_to(&out);
        jsonw_begin_object(&w);
        jsonw_key_text(&w, "id", id);
        jsonw_key_text(&w, "turn_id", dlq_or_null(result->turn_id));
        jsonw_key_text(&w, "status", rc == BATON_OK ? replayed_word(result->what) : "failed");
        jsonw_key_text(&w, "service", dlq_or_null(result->service));
        jsonw_key_text(&w, "to", dlq_or_null(result->to));
        jsonw_key_text(&w, "role", dlq_or_null(result->role));
        if (result->attempt > 0) {
            jsonw_key_int(&w, "attempt", result->attempt);
        }
        if (rc != BATON_OK) {
            jsonw_key_text(&w, "code", baton_code_word(rc));
            jsonw_key_text(&w, "error", err->text);
        }
        jsonw_end(&w);
        buf_add_char(&out, '\n');
    } else {
        buf_printf(&out, "%-8s  ", rc == BATON_OK ? replayed_word(result->what) : "failed");
        text_add(&out, id, strlen(id), 0);
        buf_add_text(&out, "  ");
        if (rc == BATON_OK) {
            bool on = result->to[0] != '\0';
            buf_printf(&out, "%s%sat %s%s%s: %s", result->role, result->role[0] != '\0' ? " " : "",
                       result->service, on ? ", to " : "", result->to,
                       on && result->what == REPLAYED_would
                           ? "nothing was done (dry run); whether it may, its owner decides"
                           : replayed_text(result->what));
        } else {
            buf_printf(&out, "%s: ", baton_code_word(rc));
            text_add(&out, err->text, strlen(err->text), 0);
        }
        buf_add_char(&out, '\n');
    }
    command_print(cmd, &out);
    buf_done(&out);
}

static baton_code replay_one(struct command *cmd, struct session *session, const char *word,
                             const struct replay_request *request)
{
    struct replay_result result = {.turn_id = ""};
    struct baton_error err = {BATON_OK, ""};
    struct turn_id id;
    baton_code rc;
    if (letter_id_valid(word)) {
        rc = replay_letter(session, word, request, &result, &err);
    } else if ((rc = turn_log_resolve(session->log, session->config, word, &id, &err)) ==
               BATON_OK) {
        word = id.s;
        rc = replay_turn(session, word, request, &result, &err);
    }
    replayed_print(cmd, word, &result, rc, &err);
    return rc;
}

/* Every chosen one is tried; the first refusal is the exit status. */
static baton_code replay_chosen(struct command *cmd, struct session *session,
                                const struct replay_request *request, struct baton_error *err)
{
    struct chosen chosen = {.hold = request->again ? NULL : cmd};
    baton_code first = BATON_OK;
    baton_code rc = choose(cmd, session, &chosen, err);
    if (rc == BATON_OK) {
        struct pace pace = pace_begin(cmd, "replayed", chosen.count, command_int(cmd, "rate"));
        for (size_t i = 0; i < chosen.count && pace_next(&pace); i++) {
            baton_code one = replay_one(cmd, session, chosen.list[i].id, request);
            first = first == BATON_OK ? one : first;
        }
        pace_end(&pace);
        tell_rest(cmd, &chosen, &pace);
        first = first == BATON_OK && pace.done < chosen.count ? BATON_E_stopped : first;
    }
    free(chosen.list);
    if (rc == BATON_OK && first != BATON_OK) {
        err->code = first; /* told already */
    }
    return rc;
}

static int run_replay(struct command *cmd)
{
    struct session session = {0};
    struct baton_error err = {BATON_OK, ""};
    const struct replay_request request = {
        .to = command_text(cmd, "to"),
        .again = command_flag(cmd, "again"),
        .dry_run = command_flag(cmd, "dry-run"),
        .timeout_ms = command_int(cmd, "timeout"),
    };
    int status = 0;
    if (cmd->n_args > 0 && (dlq_filtered(cmd) || command_given(cmd, "limit"))) {
        return command_usage(
            cmd,
            "name turns, or choose them by --service, --role, --class, --code and the like; not "
            "both. A replay keeps the role that the turn has");
    }
    if (cmd->n_args == 0 && !dlq_filtered(cmd)) {
        return command_usage(
            cmd, "name what to replay, or choose by --service, --role, --class, --code");
    }
    baton_code rc = session_open_signing(cmd, &session, &err);
    if (rc == BATON_OK && cmd->n_args == 0) {
        rc = replay_chosen(cmd, &session, &request, &err);
        status = baton_code_exit(err.code);
    }
    for (size_t i = 0; rc == BATON_OK && i < cmd->n_args; i++) {
        int one = baton_code_exit(replay_one(cmd, &session, cmd->args[i], &request));
        status = status == 0 ? one : status;
    }
    if (rc != BATON_OK) {
        status = command_fail(cmd, rc, &err);
    }
    session_done(&session);
    return status;
}

/* clang-format off */
static const struct command_option replay_options[] = {
    DLQ_FILTER_OPTIONS,
    {.name = "limit", .letter = 'n', .argument = "N", .kind = OPTION_int, .fallback = "50", .min = 1,
     .max = DLQ_LIST_MAX, .help = "At most N of those that were chosen."},
    {.name = "to", .argument = "SERVICE", .kind = OPTION_text,
     .help = "Passes a parked turn on to another service: one that serves its role, to which its "
             "service may pass that role, and which has not had the turn."},
    {.name = "again", .kind = OPTION_flag,
     .help = "Also when the budget of replays is spent; and of those that were chosen also what failed in "
             "the same way after its last replay."},
    {.name = "rate", .argument = "N", .kind = OPTION_int, .fallback = "0", .min = 0, .max = 10000,
     .help = "At most N a second of those that were chosen, so that a provider that is just back is not "
             "run over. 0: no bound."},
    {.name = "dry-run", .kind = OPTION_flag, .help = "Says what would be replayed, does nothing."},
    {.name = "timeout", .argument = "DURATION", .kind = OPTION_duration, .fallback = OPERATE_TIMEOUT,
     .help = "How long to wait for the owner's answer; not at all where no worker lives."},
};
/* clang-format on */

const struct baton_command cmd_dlq_replay = {
    .name = "replay",
    .summary = "give parked turns their next attempt; write rejected records again",
    .usage = "ID... [--again] [--to SERVICE] [--dry-run] [--json]\n" DLQ_FILTER_USAGE
             " [--limit N] [--rate N] [--dry-run] [--json]",
    .description =
        "A parked turn gets its next attempt: same turn, same role. The replay names the attempt "
        "that "
        "was parked, so replaying twice is one replay. A rejected record is written to its topic "
        "again, byte for byte: after its key was trusted, say.\n\n"
        "Chosen by --service and the like, what failed again in the same way after its last replay "
        "is "
        "held back; --again takes it, too. Ctrl-C stops between two of them, and the same command "
        "goes "
        "on: what was replayed is not dead any more. Two operators at once do no harm.",
    .options = replay_options,
    .n_options = COUNT_OF(replay_options),
    .examples = "baton dlq replay 7f3a90\n"
                "baton dlq replay 7f3a90 --to codex-review\n"
                "# ten of those that a provider refused, once it is mended\n"
                "baton dlq replay --class auth --service example --limit 10\n",
    .exits = "0 replayed, passed, queued, or replayed before; 4 not permitted; 6 the turn is not "
             "parked.\n",
    .args_max = 100,
    .run = run_replay,
};

/* ---- discard ---- */

/* A parked turn is discarded by cancelling it, and only while it is parked. */
static baton_code discard_one(struct command *cmd, struct session *session, struct choice *choice,
                              struct baton_error *err)
{
    char reason[LIMIT_REASON + 1];
    struct control control = {.kind = CONTROL_cancel, .reason = reason};
    struct operated operated;
    snprintf(reason, sizeof(reason), "%s", command_text(cmd, "reason"));
    if (!choice->parked) {
        said(cmd, choice->id, choice->service, "none",
             "a rejected record needs none: nothing waits for it, and it ages out");
        return BATON_OK;
    }
    if (command_flag(cmd, "dry-run")) {
        said(cmd, choice->id, choice->service, "would", "nothing was done (dry run)");
        return BATON_OK;
    }
    control.turn_id = turn_id_of(choice->id);
    baton_code rc = identity_may_operate(&session->identity, choice->service, err);
    if (rc == BATON_OK) {
        rc = operate_turn(session, &control, choice->service, choice->run_id,
                          command_int(cmd, "timeout"), &operated, err);
    }
    if (rc == BATON_OK && operated.answered && operated.code != BATON_OK) {
        rc = baton_fail(err, operated.code, "turn %s at %s: %s", choice->id, choice->service,
                        baton_code_text(operated.code));
    }
    said(cmd, choice->id, choice->service,
         rc != BATON_OK      ? "failed"
         : operated.answered ? "discarded"
                             : "queued",
         rc != BATON_OK      ? err->text
         : operated.answered ? NULL
                             : "no worker has answered yet; the cancel is in the log");
    return rc;
}

/* The named ones, looked up so that only dead letters are discarded. */
static baton_code name_them(struct command *cmd, struct session *session, struct chosen *chosen,
                            struct baton_error *err)
{
    chosen->list = calloc(cmd->n_args, sizeof(*chosen->list));
    if (chosen->list == NULL) {
        return baton_fail(err, BATON_E_no_memory, "no memory for a list");
    }
    for (size_t i = 0; i < cmd->n_args; i++) {
        struct choice *choice = &chosen->list[chosen->count++];
        struct turn_life life = {.found = false};
        struct turn_id id;
        if (letter_id_valid(cmd->args[i])) {
            snprintf(choice->id, sizeof(choice->id), "%s", cmd->args[i]);
            continue;
        }
        baton_code rc = turns_find(session, cmd->args[i], &id, &life, NULL, err);
        if (rc == BATON_OK && life.now.state != TURN_parked) {
            rc =
                baton_fail(err, BATON_E_not_parked, "turn %s is %s, no dead letter%s", id.s,
                           turn_state_word(life.now.state),
                           turn_state_open(life.now.state) ? "; `baton turns cancel` ends it" : "");
        }
        if (rc == BATON_OK) {
            snprintf(choice->id, sizeof(choice->id), "%s", id.s);
            snprintf(choice->service, sizeof(choice->service), "%s", life.service);
            snprintf(choice->run_id, sizeof(choice->run_id), "%s", life.now.run_id.s);
            choice->parked = true;
        }
        turn_life_done(&life);
        if (rc != BATON_OK) {
            return rc;
        }
    }
    return BATON_OK;
}

static int discard_all(struct command *cmd, struct session *session, struct chosen *chosen)
{
    int status = 0;
    struct pace pace = pace_begin(cmd, "discarded", chosen->count, 0);
    for (size_t i = 0; i < chosen->count && pace_next(&pace); i++) {
        struct baton_error err = {BATON_OK, ""};
        const int one = baton_code_exit(discard_one(cmd, session, &chosen->list[i], &err));
        status = status == 0 ? one : status;
    }
    pace_end(&pace);
    tell_rest(cmd, chosen, &pace);
    return status == 0 && pace.done < chosen->count ? baton_code_exit(BATON_E_stopped) : status;
}

static int run_discard(struct command *cmd)
{
    struct session session = {0};
    struct baton_error err = {BATON_OK, ""};
    struct chosen chosen = {.count = 0};
    const bool by_filter = dlq_filtered(cmd);
    const size_t reason_len = strlen(command_text(cmd, "reason"));
    if (reason_len == 0 || reason_len > LIMIT_REASON) {
        return command_usage(cmd, "--reason says why, for who reads it later, in 1 to %d bytes",
                             LIMIT_REASON);
    }
    if ((cmd->n_args > 0) == by_filter) {
        return command_usage(cmd, "name what to discard, or choose by --service, --role, --class, "
                                  "--code and the like; not both");
    }
    if (by_filter && !command_flag(cmd, "yes") && !command_flag(cmd, "dry-run")) {
        return command_usage(cmd, "turns that are discarded do not come back: look with --dry-run, "
                                  "then say --yes");
    }
    baton_code rc = session_open_signing(cmd, &session, &err);
    if (rc == BATON_OK) {
        rc = by_filter ? choose(cmd, &session, &chosen, &err)
                       : name_them(cmd, &session, &chosen, &err);
    }
    const int status =
        rc == BATON_OK ? discard_all(cmd, &session, &chosen) : command_fail(cmd, rc, &err);
    free(chosen.list);
    session_done(&session);
    return status;
}

/* clang-format off */
static const struct command_option discard_options[] = {
    DLQ_FILTER_OPTIONS,
    {.name = "reason", .argument = "TEXT", .kind = OPTION_text, .required = true,
     .help = "Why, kept with each turn."},
    {.name = "limit", .letter = 'n', .argument = "N", .kind = OPTION_int, .fallback = "50", .min = 1,
     .max = DLQ_LIST_MAX, .help = "At most N of those that were chosen."},
    {.name = "yes", .letter = 'y', .kind = OPTION_flag,
     .help = "Really discard all that were chosen."},
    {.name = "dry-run", .kind = OPTION_flag, .help = "Says what would be discarded, does nothing."},
    {.name = "timeout", .argument = "DURATION", .kind = OPTION_duration, .fallback = OPERATE_TIMEOUT,
     .help = "How long to wait for the owner's answer; not at all where no worker lives."},
};
/* clang-format on */

const struct baton_command cmd_dlq_discard = {
    .name = "discard",
    .summary = "cancel parked turns that shall not be tried again",
    .usage = "ID... --reason TEXT [--json]\n" DLQ_FILTER_USAGE
             " --reason TEXT (--dry-run|--yes) [--limit N] [--json]",
    .description =
        "A parked turn is cancelled, for good, with who and why; a run that it belongs to hears of "
        "it. "
        "A rejected record needs none: nothing waits for it, and it leaves the topic by age. Who "
        "operates the service may do this.",
    .options = discard_options,
    .n_options = COUNT_OF(discard_options),
    .examples = "baton dlq discard 7f3a90 --reason \"done by hand\"\n"
                "baton dlq discard --run r-41 --reason \"given up\" --dry-run\n",
    .exits = "0 discarded, or queued where no worker answered; 6 the turn is not parked.\n",
    .args_max = 100,
    .run = run_discard,
};
