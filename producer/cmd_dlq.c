/*
 * `baton dlq`: the table of its verbs, and what they share.
 * In: deploy/baton.c, cmd_dlq_list.c, cmd_dlq_show.c, cmd_dlq_replay.c
 */
#include "producer/cmd_dlq.h"

#include "common/base/check.h"

baton_code dlq_read(struct command *cmd, dead_fn *fn, void *arg, struct baton_error *err)
{
    struct session session = {0};
    struct dlq_filter filter;
    baton_code rc = dlq_filter_of(cmd, &filter, err);
    if (rc == BATON_OK && (rc = session_open(cmd, &session, err)) == BATON_OK) {
        rc = dead_each(&session, &filter.dead, fn, arg, err);
    }
    session_done(&session);
    return rc;
}

const char *dlq_or_null(const char *text)
{
    return text[0] != '\0' ? text : NULL;
}

void dlq_members(struct jsonw *w, const struct dead *dead)
{
    jsonw_key_text(w, "id", dead->id);
    jsonw_key_text(w, "kind", dead->parked ? "parked" : "rejected");
    jsonw_key_text(w, "turn_id", dlq_or_null(dead->turn_id));
    jsonw_key_text(w, "service", dead->service);
    jsonw_key_text(w, "role", dlq_or_null(dead->role));
    jsonw_key_text(w, "task_id", dlq_or_null(dead->task_id));
    jsonw_key_text(w, "run_id", dlq_or_null(dead->run_id));
    jsonw_key_text(w, "request", dlq_or_null(dead->kind));
    jsonw_key_text(w, "code", baton_code_word(dead->code));
    jsonw_key_text(w, "class", dead->has_class ? failure_word(dead->class) : NULL);
    if (dead->parked) {
        jsonw_key_int(w, "attempt", dead->attempt);
        jsonw_key_text(w, "origin", dlq_or_null(dead->origin));
        jsonw_key_int(w, "replays", dead->replays);
        jsonw_key_bool(w, "repeated", dead->repeated);
    }
    jsonw_key_text(w, "at", wall_text(dead->at).s);
    jsonw_key_text(w, "message", dlq_or_null(dead->message));
}

static const struct baton_command *const subcommands[] = {
    &cmd_dlq_list,   &cmd_dlq_stats,  &cmd_dlq_show,
    &cmd_dlq_export, &cmd_dlq_replay, &cmd_dlq_discard,
};

const struct baton_command cmd_dlq = {
    .name = "dlq",
    .summary = "list, count, show, export, replay and discard dead letters",
    .usage = "list|stats|show|export|replay|discard",
    .description = "Dead letters are parked turns and rejected records. Nothing is lost: a parked "
                   "turn stays open with its role until it is replayed or cancelled.",
    .subcommands = subcommands,
    .n_subcommands = COUNT_OF(subcommands),
    .examples = "baton dlq list\nbaton dlq stats\nbaton dlq replay 7f3a90\n",
};
