/*
 * `baton dlq discard`: cancels what is parked.
 * In: producer/cmd_dlq.c  Out: producer/cmd_dlq_choose.c, producer/operate.c
 */
#include "producer/cmd_dlq.h"

#include "common/base/check.h"
#include "common/base/limits.h"
#include "producer/cmd_turns.h"
#include "producer/operate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A parked turn is discarded by cancelling it, and only while it is parked. */
static baton_code discard_one(struct command *cmd, struct session *session,
                              struct dlq_choice *choice, struct baton_error *err)
{
    char reason[LIMIT_REASON + 1];
    struct control control = {.kind = CONTROL_cancel, .reason = reason};
    struct operated operated;
    snprintf(reason, sizeof(reason), "%s", command_text(cmd, "reason"));
    if (!choice->parked) {
        dlq_said(cmd, choice->id, choice->service, "none",
                 "a rejected record needs none: nothing waits for it, and it ages out");
        return BATON_OK;
    }
    if (command_flag(cmd, "dry-run")) {
        dlq_said(cmd, choice->id, choice->service, "would", "nothing was done (dry run)");
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
    dlq_said(cmd, choice->id, choice->service,
             rc != BATON_OK      ? "failed"
             : operated.answered ? "discarded"
                                 : "queued",
             rc != BATON_OK      ? err->text
             : operated.answered ? NULL
                                 : "no worker has answered yet; the cancel is in the log");
    return rc;
}

/* The named ones, looked up so that only dead letters are discarded. */
static baton_code name_them(struct command *cmd, struct session *session, struct dlq_chosen *chosen,
                            struct baton_error *err)
{
    chosen->list = calloc(cmd->n_args, sizeof(*chosen->list));
    if (chosen->list == NULL) {
        return baton_fail(err, BATON_E_no_memory, "no memory for a list");
    }
    for (size_t i = 0; i < cmd->n_args; i++) {
        struct dlq_choice *choice = &chosen->list[chosen->count++];
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

static int discard_all(struct command *cmd, struct session *session, struct dlq_chosen *chosen)
{
    int status = 0;
    struct pace pace = pace_begin(cmd, "discarded", chosen->count, 0);
    for (size_t i = 0; i < chosen->count && pace_next(&pace); i++) {
        struct baton_error err = {BATON_OK, ""};
        const int one = baton_code_exit(discard_one(cmd, session, &chosen->list[i], &err));
        status = status == 0 ? one : status;
    }
    pace_end(&pace);
    dlq_tell_rest(cmd, chosen, &pace);
    return status == 0 && pace.done < chosen->count ? baton_code_exit(BATON_E_stopped) : status;
}

static int run_discard(struct command *cmd)
{
    struct session session = {0};
    struct baton_error err = {BATON_OK, ""};
    struct dlq_chosen chosen = {.count = 0};
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
        rc = by_filter ? dlq_choose(cmd, &session, &chosen, &err)
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
