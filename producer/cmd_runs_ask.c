/*
 * What is asked of runs that are there: `baton runs touch | cancel | reopen`, `baton handoff`.
 * In: deploy/baton.c, producer/cmd_runs_start.c
 * Out: producer/ask.c
 */
#include "producer/cmd_runs.h"

#include "common/base/check.h"
#include "common/base/jsonw.h"
#include "common/base/text.h"
#include "common/record/json.h"
#include "producer/ask.h"
#include "producer/input.h"
#include "producer/run_log.h"
#include "producer/session.h"
#include "topics/outcomes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- what came of it ---- */

bool runs_for_person(baton_code code)
{
    return code == BATON_E_confirm_needed || code == BATON_E_unattended_denied ||
           code == BATON_E_invoke_denied;
}

static void print_answer(struct command *cmd, const struct request *request,
                         const struct asked *asked, const char *next, struct buf *out)
{
    const char *status = !asked->answered                   ? "queued"
                         : asked->code != BATON_OK          ? "refused"
                         : asked->n_claimed > 0             ? "delivered" /* H-22 */
                         : request->kind == REQUEST_handoff ? "queued"
                                                            : "done";
    if (!cmd->json) {
        buf_printf(out, "%s  %s  %s\n", status, request_word(request->kind), request->run_id.s);
        return;
    }
    struct jsonw w = jsonw_to(out);
    jsonw_begin_object(&w);
    jsonw_key_text(&w, "run_id", request->run_id.s);
    jsonw_key_text(&w, "kind", request_word(request->kind));
    jsonw_key_text(&w, "status", status);
    jsonw_key_bool(&w, "answered", asked->answered);
    jsonw_key_text(&w, "code", asked->code != BATON_OK ? baton_code_word(asked->code) : NULL);
    jsonw_key_text(&w, "key", request->key[0] != '\0' ? request->key : NULL);
    if (next != NULL && runs_for_person(asked->code)) {
        jsonw_key_plain(&w, "next_command", next, strlen(next));
    }
    jsonw_key(&w, "result");
    jsonw_raw(&w, "", 0);
    if (asked->answer != NULL && asked->answer->result != NULL) {
        result_print(asked->answer->result, asked->answer->result_len, out);
    } else {
        buf_add_text(out, "null");
    }
    jsonw_end(&w);
    buf_add_char(out, '\n');
}

/* The text of a refusal, as the coordinator says it. */
static void refusal(const struct asked *asked, struct baton_error *err)
{
    struct json_doc *doc = NULL;
    size_t len;
    const struct outcome *answer = asked->answer;
    baton_fail(err, asked->code, "%s", baton_code_text(asked->code));
    if (answer == NULL || answer->result == NULL ||
        json_parse(answer->result, answer->result_len, LIMIT_RECORD, LIMIT_JSON_DEPTH, &doc,
                   NULL) != BATON_OK) {
        return;
    }
    const char *text = json_member_text(json_root(doc), "text", &len);
    const char *stage = json_member_text(json_root(doc), "stage", &len);
    if (text[0] != '\0') {
        baton_fail(err, asked->code, "%s%s%s", stage, stage[0] != '\0' ? ": " : "",
                   text); /* command_fail makes it fit to be shown, and does not cut it */
    }
    json_free(doc);
}

int runs_ask(struct command *cmd, struct session *session, struct request *request,
             const char *next)
{
    struct asked asked = {.code = BATON_OK};
    struct baton_error err = {BATON_OK, ""};
    struct buf out = BUF_INIT;
    const bool handoff = request->kind == REQUEST_handoff;
    const struct ask_options options = {.unattended = cmd->unattended,
                                        .wait_claim = handoff && command_flag(cmd, "wait-claim"),
                                        .timeout_ms = command_int(cmd, "timeout")};
    baton_code rc = ask_send(session, request, &options, &asked, &err);
    if (rc != BATON_OK) {
        return command_fail(cmd, rc, &err);
    }
    /* A start that was known before is the same run: that is what it was asked for. */
    const bool same = request->kind == REQUEST_start && asked.code == BATON_E_duplicate;
    if (asked.code != BATON_OK && !same && !cmd->json) {
        refusal(&asked, &err);
        if (next != NULL && runs_for_person(asked.code)) {
            struct buf line = BUF_INIT;
            text_add(&line, next, strlen(next), 0);
            if (buf_ok(&line)) {
                command_note(cmd, "for a person: %s", line.data);
            }
            buf_done(&line);
        }
        asked_done(&asked);
        return command_fail(cmd, err.code, &err);
    }
    print_answer(cmd, request, &asked, next, &out);
    command_print(cmd, &out);
    buf_done(&out);
    if (!asked.answered) {
        command_note(cmd, "no coordinator has answered yet; the request is in the log and will be "
                          "taken in");
    }
    int status = same ? 0 : baton_code_exit(asked.code);
    if (status == 0 && options.wait_claim && asked.n_claimed == 0) {
        command_note(cmd, "no worker has claimed it yet");
        status = baton_code_exit(BATON_E_timed_out);
    }
    asked_done(&asked);
    return status;
}

/* ---- of a run that is there ---- */

static int ask_of_run(struct command *cmd, struct request *request, const char *word)
{
    struct session session = {.log = NULL};
    struct run *run = NULL;
    struct baton_error err = {BATON_OK, ""};
    int status = 0;
    baton_code rc = session_open_signing(cmd, &session, &err);
    if (rc == BATON_OK) {
        rc = run_log_find(session.log, session.config, word, &run, &err);
    }
    if (rc == BATON_OK) {
        request->run_id = run->id;
        request->request_no = run->request_no + 1;
        status = runs_ask(cmd, &session, request, NULL);
    }
    run_free(run);
    session_done(&session);
    return rc == BATON_OK ? status : command_fail(cmd, rc, &err);
}

static int ask_with_reason(struct command *cmd, enum request_kind kind)
{
    struct request request = {.kind = kind};
    request.reason = (char *)command_text(cmd, "reason");
    return ask_of_run(cmd, &request, cmd->args[0]);
}

static int run_touch_verb(struct command *cmd)
{
    return ask_with_reason(cmd, REQUEST_touch);
}

static int run_cancel_verb(struct command *cmd)
{
    return ask_with_reason(cmd, REQUEST_cancel);
}

static int run_reopen_verb(struct command *cmd)
{
    return ask_with_reason(cmd, REQUEST_reopen);
}

/* clang-format off */
static const struct command_option reason_options[] = {
    {.name = "reason", .argument = "TEXT", .kind = OPTION_text, .help = "Why, for people."},
    {.name = "timeout", .argument = "DURATION", .kind = OPTION_duration, .fallback = RUNS_ASK_TIMEOUT,
     .help = "How long a coordinator's answer is waited for."},
};
static const struct command_option must_reason_options[] = {
    {.name = "reason", .argument = "TEXT", .kind = OPTION_text, .required = true, .help = "Why, for people."},
    {.name = "timeout", .argument = "DURATION", .kind = OPTION_duration, .fallback = RUNS_ASK_TIMEOUT,
     .help = "How long a coordinator's answer is waited for."},
};
/* clang-format on */

const struct baton_command cmd_runs_touch = {
    .name = "touch",
    .summary = "let a run go on that has reached a cap",
    .usage = "RUN [--reason TEXT]",
    .description = "The counters of all its transitions begin anew, and what waited at a cap is "
                   "decided again. For people only.",
    .options = reason_options,
    .n_options = COUNT_OF(reason_options),
    .args_min = 1,
    .args_max = 1,
    .examples = "baton runs touch r-3f0c --reason 'one more round'\n",
    .run = run_touch_verb,
};

const struct baton_command cmd_runs_cancel = {
    .name = "cancel",
    .summary = "cancel a run and its open turns",
    .usage = "RUN --reason TEXT",
    .description =
        "Its open turns are cancelled where they are; what they still say is not applied.",
    .options = must_reason_options,
    .n_options = COUNT_OF(must_reason_options),
    .args_min = 1,
    .args_max = 1,
    .examples = "baton runs cancel r-3f0c --reason 'not needed any more'\n",
    .run = run_cancel_verb,
};

const struct baton_command cmd_runs_reopen = {
    .name = "reopen",
    .summary = "begin a run that has ended anew",
    .usage = "RUN --reason TEXT",
    .description =
        "Its epoch rises, so results of before count no more, and the workflow begins at "
        "its start. For people only.",
    .options = must_reason_options,
    .n_options = COUNT_OF(must_reason_options),
    .args_min = 1,
    .args_max = 1,
    .examples = "baton runs reopen r-3f0c --reason 'cancelled by mistake'\n",
    .run = run_reopen_verb,
};

/* ---- handoff ---- */

static int run_handoff(struct command *cmd)
{
    struct request request = {.kind = REQUEST_handoff};
    struct buf data = BUF_INIT;
    struct baton_error err = {BATON_OK, ""};
    size_t n_data = 0;
    const char *const *list = command_list(cmd, "data", &n_data);
    baton_code rc = input_data(list, n_data, &data, &err);
    const char *from = command_text(cmd, "from");
    const char *to = command_text(cmd, "to");
    if (rc == BATON_OK &&
        (strlen(from) >= sizeof(request.from) || strlen(to) >= sizeof(request.target))) {
        rc = baton_fail(&err, BATON_E_invalid_request, "a slot's name is at most %zu characters",
                        sizeof(request.from) - 1);
    }
    if (rc != BATON_OK) {
        buf_done(&data);
        return command_fail(cmd, rc, &err);
    }
    snprintf(request.from, sizeof(request.from), "%s", from);
    snprintf(request.target, sizeof(request.target), "%s", to);
    request.summary = (char *)command_text(cmd, "summary");
    request.data = data.data;
    request.data_len = data.len;
    const int status = ask_of_run(cmd, &request, command_text(cmd, "run"));
    buf_done(&data);
    return status;
}

/* clang-format off */
static const struct command_option handoff_options[] = {
    {.name = "run", .argument = "RUN", .kind = OPTION_text, .required = true, .help = "The run, or its first characters."},
    {.name = "from", .argument = "SLOT", .kind = OPTION_text, .required = true, .help = "The sender: NODE or NODE.SLOT."},
    {.name = "to", .argument = "TARGET", .kind = OPTION_text, .required = true,
     .help = "As a transition of the sender names it: NODE, NODE.SLOT or '*'; or the transition's own name, "
             "where several lead to one target."},
    {.name = "summary", .argument = "TEXT", .kind = OPTION_text, .required = true, .help = "What is to be done."},
    {.name = "data", .letter = 'd', .argument = "KEY=VALUE", .kind = OPTION_multi,
     .help = "A fact that the transition's hook declares."},
    {.name = "wait-claim", .kind = OPTION_flag,
     .help = "Waits until a worker has claimed each of its turns: `delivered`, also where only some are. If none is in time, it stays "
             "queued, and the exit status is 8."},
    {.name = "timeout", .argument = "DURATION", .kind = OPTION_duration, .fallback = RUNS_ASK_TIMEOUT,
     .help = "How long a coordinator's answer is waited for, and claims with --wait-claim."},
};
/* clang-format on */

const struct baton_command cmd_handoff = {
    .name = "handoff",
    .summary = "hand a run on along one of its transitions",
    .usage = "--run RUN --from SLOT --to TARGET --summary TEXT",
    .description =
        "For a run that waits for a person: takes the one transition that leads from the sender to "
        "the target, without its verdict. Whatever forbids it is named with the stage where it "
        "stopped, and nothing is published. The answer is delivered, queued, blocked or failed; "
        "delivered means that a worker has claimed it, which only --wait-claim finds out.",
    .options = handoff_options,
    .n_options = COUNT_OF(handoff_options),
    .examples =
        "baton handoff --run r-3f0c --from reviewer --to owner --summary 'Take the first way'\n",
    .run = run_handoff,
};
