/*
 * `baton dlq replay`: one by one, or many.
 * In: producer/cmd_dlq.c  Out: producer/cmd_dlq_choose.c, producer/replay.c, producer/replay_letter.c
 */
#include "producer/cmd_dlq.h"

#include "common/base/check.h"
#include "common/base/jsonw.h"
#include "common/base/text.h"
#include "producer/cmd_turns.h"
#include "producer/operate.h"
#include "producer/replay.h"

#include <stdlib.h>
#include <string.h>

/* Of a dry run of a rejected record: who would sign it, and what it would go without. */
static void add_plan(struct buf *out, const struct replay_result *result)
{
    if (result->signed_by[0] != '\0') {
        buf_printf(out, "; signed again by %s", result->signed_by);
    }
    if (result->dropped[0] != '\0') {
        buf_add_text(out, "; without the headers ");
        text_add(out, result->dropped, strlen(result->dropped), 0);
    }
}

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
        if (result->signed_by[0] != '\0') {
            jsonw_key_text(&w, "signed_by", result->signed_by);
        }
        if (result->dropped[0] != '\0') {
            jsonw_key_text(&w, "without", result->dropped);
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
            if (result->what == REPLAYED_would) {
                add_plan(&out, result);
            }
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

/* Many: what they share, while they are replayed one after the other. */
struct many {
    struct command *cmd;
    struct pace pace;
    baton_code first; /* the first refusal is the exit status */
    size_t held;
};

static bool on_next(void *arg)
{
    return pace_next(&((struct many *)arg)->pace);
}

static void on_done(void *arg, const char *id, const struct replay_result *result, baton_code rc,
                    const struct baton_error *err)
{
    struct many *many = arg;
    replayed_print(many->cmd, id, result, rc, err);
    many->held += rc == BATON_OK && result->what == REPLAYED_held ? 1 : 0;
    many->first = many->first == BATON_OK ? rc : many->first;
}

/* How many go together: a rate keeps them apart. */
static size_t batch_of(const struct many *many)
{
    const int64_t tenth = many->pace.per_second / 10;
    return many->pace.per_second == 0 || tenth > OPERATE_BATCH ? OPERATE_BATCH
           : tenth > 1                                         ? (size_t)tenth
                                                               : 1;
}

/* Those of one service that follow one another go together. */
static void replay_turns(struct session *session, struct operates *operates,
                         const struct dlq_chosen *chosen, size_t count,
                         const struct replay_request *request, struct many *many,
                         struct replay_outcome *outcomes)
{
    struct parked parked[OPERATE_BATCH];
    bool go_on = true;
    for (size_t i = 0; go_on && i < count;) {
        size_t n = 0;
        while (n < batch_of(many) && i + n < count &&
               (n == 0 || strcmp(chosen->list[i + n].service, parked[0].service) == 0) &&
               (go_on = on_next(many))) {
            const struct dlq_choice *choice = &chosen->list[i + n];
            parked[n++] = (struct parked){choice->id, choice->service, choice->run_id, choice->role,
                                          choice->attempt};
        }
        if (n > 0) {
            replay_parked(session, operates, parked, n, request, outcomes);
        }
        for (size_t k = 0; k < n; k++) {
            on_done(many, parked[k].turn_id, &outcomes[k].result, outcomes[k].rc, &outcomes[k].err);
        }
        i += n;
    }
}

static baton_code replay_parked_ones(struct session *session, const struct dlq_chosen *chosen,
                                     size_t count, const struct replay_request *request,
                                     struct many *many, struct baton_error *err)
{
    struct replay_outcome *outcomes = calloc(OPERATE_BATCH, sizeof(*outcomes));
    struct operates *operates = NULL;
    if (outcomes == NULL) {
        return baton_fail(err, BATON_E_no_memory, "no memory for a list");
    }
    baton_code rc = count > 0 ? operates_open(session, &operates, err) : BATON_OK;
    if (rc == BATON_OK) {
        replay_turns(session, operates, chosen, count, request, many, outcomes);
    }
    operates_close(operates);
    free(outcomes);
    return rc;
}

static baton_code replay_records(struct session *session, const struct dlq_chosen *chosen,
                                 size_t from, const struct replay_request *request,
                                 struct many *many, struct baton_error *err)
{
    const struct replay_hooks hooks = {on_next, on_done, many};
    const char **ids = calloc(chosen->count - from + 1, sizeof(*ids));
    if (ids == NULL) {
        return baton_fail(err, BATON_E_no_memory, "no memory for a list");
    }
    for (size_t i = from; i < chosen->count; i++) {
        ids[i - from] = chosen->list[i].id;
    }
    baton_code rc = replay_letters(session, ids, chosen->count - from, request, &hooks, err);
    free(ids);
    return rc;
}

/* Every chosen one is tried: parked turns, then rejected records, which stand behind them. */
static baton_code replay_chosen(struct command *cmd, struct session *session,
                                const struct replay_request *request, struct baton_error *err)
{
    struct dlq_chosen chosen = {.hold = request->again ? NULL : cmd};
    struct many many = {.cmd = cmd};
    baton_code rc = dlq_choose(cmd, session, &chosen, err);
    if (rc == BATON_OK) {
        size_t turns = 0;
        while (turns < chosen.count && chosen.list[turns].parked) {
            turns++;
        }
        many.pace = pace_begin(cmd, "replayed", chosen.count, command_int(cmd, "rate"));
        rc = replay_parked_ones(session, &chosen, turns, request, &many, err);
        if (rc == BATON_OK && many.pace.done == turns && turns < chosen.count) {
            rc = replay_records(session, &chosen, turns, request, &many, err);
        }
        pace_end(&many.pace);
        chosen.held += many.held;
        dlq_tell_rest(cmd, &chosen, &many.pace);
        many.first =
            many.first == BATON_OK && many.pace.done < chosen.count ? BATON_E_stopped : many.first;
    }
    free(chosen.list);
    if (rc == BATON_OK && many.first != BATON_OK) {
        err->code = many.first; /* told already */
    }
    return rc;
}

/* Signatures and passes are what a record is, and belong to it. */
static bool without_fits(const struct replay_request *request)
{
    for (size_t i = 0; i < request->n_without; i++) {
        if (request->without[i][0] == '\0' || strncmp(request->without[i], "baton-", 6) == 0) {
            return false;
        }
    }
    return true;
}

static int run_replay(struct command *cmd)
{
    struct session session = {0};
    struct baton_error err = {BATON_OK, ""};
    struct replay_request request = {
        .hold = cmd->n_args == 0 && !command_flag(cmd, "again"),
        .to = command_text(cmd, "to"),
        .again = command_flag(cmd, "again"),
        .dry_run = command_flag(cmd, "dry-run"),
        .timeout_ms = command_int(cmd, "timeout"),
    };
    int status = 0;
    request.without = command_list(cmd, "without", &request.n_without);
    if (!without_fits(&request)) {
        return command_usage(cmd, "--without names headers of others; those of baton-* belong to "
                                  "the record");
    }
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
    {.name = "without", .argument = "HEADER", .kind = OPTION_multi,
     .help = "Of rejected records: leaves this header out, too. What the dead-letter topic added always is; --dry-run "
             "says which."},
    {.name = "dry-run", .kind = OPTION_flag,
     .help = "Says what would be replayed, to which topic's service, without which headers; does nothing."},
    {.name = "timeout", .argument = "DURATION", .kind = OPTION_duration, .fallback = OPERATE_TIMEOUT,
     .help = "How long to wait for the owner's answer; not at all where no worker lives."},
};
/* clang-format on */

const struct baton_command cmd_dlq_replay = {
    .name = "replay",
    .summary = "give parked turns their next attempt; write rejected records again",
    .usage = "ID... [--again] [--to SERVICE] [--without HEADER]... [--dry-run] "
             "[--json]\n" DLQ_FILTER_USAGE " [--limit N] [--rate N] [--dry-run] [--json]",
    .description =
        "A parked turn gets its next attempt: same turn, same role. The replay names the attempt "
        "that "
        "was parked, so replaying twice is one replay. A rejected record is written to its topic "
        "again, byte for byte: after its key was trusted, say. It is written only while no turn "
        "log knows its turn, it does not "
        "wait in its topic, and no later letter has the same bytes. One that had expired is signed "
        "again by its origin, "
        "with new times: where that key is.\n\n"
        "Chosen by --where and the like, what failed or was rejected again in the same way after "
        "its last replay is "
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
