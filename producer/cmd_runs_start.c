/*
 * `baton runs start`: a run of a workflow over a task, which is told by options or in a file.
 * In: producer/cmd_runs.c
 * Out: producer/task_file.c, producer/cmd_runs_ask.c
 */
#include "producer/cmd_runs.h"

#include "common/base/check.h"
#include "common/base/jsonw.h"
#include "common/base/limits.h"
#include "common/base/text.h"
#include "common/record/payload.h"
#include "common/record/request.h"
#include "producer/ask.h"
#include "producer/input.h"
#include "producer/session.h"
#include "producer/task_file.h"
#include "producer/workflow/may_start.h"

#include <stdio.h>
#include <string.h>

#define FOLLOW_MS (7 * 24 * 3600 * INT64_C(1000))

/* ---- what is to be done ---- */

/* The task's file, and over it what options say. */
static baton_code read_task(struct command *cmd, struct task_file *task, struct baton_error *err)
{
    const char *word = command_text(cmd, "task");
    const char *id = command_text(cmd, "task-id");
    const bool file = word != NULL && task_file_named(word);
    if (file) {
        baton_code rc = task_file_read(word, task, command_findings(cmd), err);
        if (rc != BATON_OK) {
            return rc;
        }
    } else if (word != NULL && id != NULL) {
        return baton_fail(err, BATON_E_usage, "--task '%s' is an id, and --task-id gives another",
                          text_quote_of(word).s);
    }
    id = file || id != NULL ? id : word;
    if (id == NULL && !file) {
        return baton_fail(err, BATON_E_usage, "--task is missing: a task's id, or its file");
    }
    if (id != NULL && !task_id_valid(id, strlen(id))) {
        return baton_fail(err, BATON_E_invalid_request,
                          "'%s' is no task id: 1 to %d of [A-Za-z0-9._/#:-]", text_quote_of(id).s,
                          ID_MAX);
    }
    task->id = id != NULL ? task_id_of(id) : task->id;
    task->rev = command_given(cmd, "rev") || !file ? (int32_t)command_int(cmd, "rev") : task->rev;
    return BATON_OK;
}

static baton_code read_data(struct command *cmd, struct task_file *task, struct baton_error *err)
{
    size_t n = 0;
    const char *const *list = command_list(cmd, "data", &n);
    if (n == 0 && task->data.len > 0) {
        return BATON_OK;
    }
    buf_clear(&task->data);
    return input_data(list, n, &task->data, err);
}

static baton_code read_payload(struct command *cmd, struct task_file *task, struct baton_error *err)
{
    const char *path = command_text(cmd, "payload");
    struct buf bytes = BUF_INIT;
    if (path == NULL) {
        return BATON_OK;
    }
    baton_code rc = input_read(path, &bytes, err);
    if (rc == BATON_OK) {
        buf_clear(&task->payload);
        struct jsonw w = jsonw_to(&task->payload);
        payload_write(&w, NULL, bytes.data != NULL ? bytes.data : "", bytes.len);
    }
    buf_done(&bytes);
    return rc;
}

static baton_code read_names(struct command *cmd, struct request *request, struct baton_error *err)
{
    const char *workflow = command_text(cmd, "workflow");
    const char *key = command_text(cmd, "key");
    if (!plain_id_valid(workflow, strlen(workflow))) {
        return baton_fail(err, BATON_E_invalid_request,
                          "'%s' is no workflow's name; `baton workflow list` names them",
                          text_quote_of(workflow).s);
    }
    if (key != NULL && !idempotency_key_valid(key, strlen(key))) {
        return baton_fail(err, BATON_E_invalid_request,
                          "'%s' is no idempotency key: 1 to %d of [A-Za-z0-9._/#:-]",
                          text_quote_of(key).s, KEY_MAX);
    }
    request->workflow = plain_id_of(workflow);
    if (key != NULL) {
        snprintf(request->key, sizeof(request->key), "%s", key);
    } else {
        random_hex(request->key, 32);
    }
    return input_time(cmd, "deadline", &request->deadline, err);
}

static baton_code read_all(struct command *cmd, struct request *request, struct task_file *task,
                           struct baton_error *err)
{
    baton_code rc = read_names(cmd, request, err);
    if (rc != BATON_OK || (rc = read_task(cmd, task, err)) != BATON_OK ||
        (rc = read_data(cmd, task, err)) != BATON_OK ||
        (rc = read_payload(cmd, task, err)) != BATON_OK) {
        return rc;
    }
    const char *summary = command_text(cmd, "summary");
    summary = summary != NULL ? summary : task->summary;
    if (summary == NULL) {
        return baton_fail(err, BATON_E_usage,
                          "--summary is missing: what is to be done, in a line or two");
    }
    if (!buf_ok(&task->data) || !buf_ok(&task->payload)) {
        return baton_fail(err, BATON_E_no_memory, "no memory for the request");
    }
    request->task_id = task->id;
    request->task_rev = task->rev;
    request->summary = (char *)summary;
    request->data = task->data.data;
    request->data_len = task->data.len;
    request->payload = task->payload.data;
    request->payload_len = task->payload.len;
    return BATON_OK;
}

/* ---- what a person types instead (L-06, L-12) ---- */

/* One word of a shell's command line. */
static void add_word(struct buf *out, const char *word)
{
    static const char plain[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._/#:=-+@%,";
    buf_add_char(out, ' ');
    if (word[0] != '\0' && word[0] != '#' && word[strspn(word, plain)] == '\0') {
        buf_add_text(out, word);
        return;
    }
    buf_add_char(out, '\'');
    for (const char *at = word; *at != '\0'; at++) {
        if (*at == '\'') {
            buf_add_text(out, "'\\''");
        } else {
            buf_add_char(out, *at);
        }
    }
    buf_add_char(out, '\'');
}

/* The same start, as it was asked for. */
static void next_command(struct command *cmd, const struct request *request, struct buf *out)
{
    static const char *const names[] = {"workflow", "task",    "task-id", "rev",
                                        "summary",  "payload", "deadline"};
    size_t n = 0;
    const char *const *data = command_list(cmd, "data", &n);
    char rev[16];
    snprintf(rev, sizeof(rev), "%d", (int)request->task_rev);
    buf_add_text(out, "baton runs start");
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        if (command_given(cmd, names[i])) {
            buf_printf(out, " --%s", names[i]);
            add_word(out, strcmp(names[i], "rev") == 0 ? rev : command_text(cmd, names[i]));
        }
    }
    for (size_t i = 0; i < n; i++) {
        buf_add_text(out, " --data");
        add_word(out, data[i]);
    }
}

/* ---- what would come of it (L-15) ---- */

static void print_dry_run(struct command *cmd, const struct session *session,
                          const struct request *request, const struct workflow *workflow,
                          const struct baton_error *why, const char *next)
{
    struct buf out = BUF_INIT;
    struct jsonw w = jsonw_to(&out);
    jsonw_begin_object(&w);
    jsonw_key_text(&w, "run_id", request->run_id.s);
    jsonw_key_text(&w, "kind", "start");
    jsonw_key_text(&w, "status", why->code == BATON_OK ? "allowed" : "refused");
    jsonw_key_bool(&w, "answered", false);
    jsonw_key_text(&w, "code", why->code != BATON_OK ? baton_code_word(why->code) : NULL);
    jsonw_key_text(&w, "key", request->key);
    if (runs_for_person(why->code)) {
        jsonw_key_plain(&w, "next_command", next, strlen(next));
    }
    jsonw_key(&w, "result");
    jsonw_begin_object(&w);
    jsonw_key_plain(&w, "text", why->text, strlen(why->text));
    if (workflow != NULL) {
        const char *service = workflow_service(workflow, workflow->start, session->config);
        jsonw_key_text(&w, "workflow", workflow->name.s);
        jsonw_key_text(&w, "digest", workflow->digest);
        jsonw_key_text(&w, "invoke", invoke_word(workflow->invoke));
        jsonw_key_text(&w, "slot", workflow_slot_text(workflow, workflow->start).s);
        jsonw_key_text(&w, "role", role_word(workflow->slots[workflow->start].role));
        jsonw_key_text(&w, "service", service);
    }
    jsonw_end(&w);
    jsonw_end(&w);
    buf_add_char(&out, '\n');
    command_print(cmd, &out);
    buf_done(&out);
}

/* Judges the start as a coordinator with this host's files would; sends nothing. */
static int dry_run(struct command *cmd, const struct session *session, struct request *request,
                   const char *next)
{
    struct workflow *workflow = NULL;
    struct baton_error err = {BATON_OK, ""};
    const struct trust_principal *principal =
        session->identity.required ? session->identity.principal : NULL;
    baton_code rc = ask_check(session, request, cmd->unattended, &err);
    const struct workflow_starter starter = {
        .name = session->identity.name,
        .person_key = principal == NULL || trust_principal_kind(principal) == PRINCIPAL_person,
        .agent = request->asker != REQUEST_ASKER_owner_of_key,
        .confirmed = request->asker == REQUEST_ASKER_confirmed};
    if (rc != BATON_OK) {
        return command_fail(cmd, rc, &err); /* as without --dry-run */
    }
    rc = workflow_named(session->config, request->workflow.s, &workflow, &err);
    if (rc == BATON_OK) {
        rc = workflow_may_start(workflow, &starter, request->deadline, &err);
    }
    if (rc == BATON_E_confirm_needed && cmd->unattended) {
        rc = BATON_E_unattended_denied;
    }
    err.code = rc;
    int status = baton_code_exit(rc);
    if (cmd->json) {
        print_dry_run(cmd, session, request, workflow, &err, next);
    } else if (rc == BATON_OK) {
        struct buf out = BUF_INIT;
        buf_printf(&out, "allowed  start  %s, which begins with %s\n", workflow->name.s,
                   workflow_slot_text(workflow, workflow->start).s);
        command_print(cmd, &out);
        buf_done(&out);
    } else {
        status = command_fail(cmd, rc, &err);
    }
    workflow_free(workflow);
    return status;
}

/* ---- the verb ---- */

static int run_start(struct command *cmd)
{
    struct session session = {.log = NULL};
    struct request request = {.kind = REQUEST_start};
    struct task_file task = {.rev = 0};
    struct baton_error err = {BATON_OK, ""};
    struct buf next = BUF_INIT;
    int status = 0;
    if (command_flag(cmd, "confirmed")) {
        request.asker = REQUEST_ASKER_confirmed;
    }
    baton_code rc = read_all(cmd, &request, &task, &err);
    if (rc == BATON_OK && (rc = session_open_signing(cmd, &session, &err)) == BATON_OK) {
        request.run_id = request_run_id(session.identity.fleet, session.identity.name, request.key);
        next_command(cmd, &request, &next);
        rc = buf_ok(&next) ? BATON_OK : baton_fail(&err, BATON_E_no_memory, "no memory");
        if (rc == BATON_OK) {
            status = command_flag(cmd, "dry-run") ? dry_run(cmd, &session, &request, next.data)
                                                  : runs_ask(cmd, &session, &request, next.data);
        }
    }
    session_done(&session);
    task_file_done(&task);
    buf_done(&next);
    if (rc == BATON_E_usage) {
        return command_usage(cmd, "%s", err.text);
    }
    if (rc == BATON_OK && status == 0 && command_flag(cmd, "wait") &&
        !command_flag(cmd, "dry-run")) {
        const int64_t timeout_ms =
            command_given(cmd, "timeout") ? command_int(cmd, "timeout") : FOLLOW_MS;
        return runs_wait_for(cmd, request.run_id.s, request.key, !cmd->json, timeout_ms);
    }
    return rc == BATON_OK ? status : command_fail(cmd, rc, &err);
}

/* clang-format off */
static const struct command_option start_options[] = {
    {.name = "workflow", .argument = "NAME", .kind = OPTION_text, .required = true,
     .help = "The workflow, as the coordinators' host knows it (`baton workflow list`)."},
    {.name = "task", .letter = 't', .argument = "ID|FILE", .kind = OPTION_text,
     .help = "What is worked on: an id, 1 to 64 of [A-Za-z0-9._/#:-], or a file that says it (below). A file is what begins with / ./ "
             "or ../ or ends with .md, .txt, .yaml, .yml or .json."},
    {.name = "task-id", .argument = "ID", .kind = OPTION_text,
     .help = "The task's id, where the file's is not wanted, or where an id looks like a file."},
    {.name = "rev", .argument = "N", .kind = OPTION_int, .fallback = "0", .min = 0, .max = INT32_MAX,
     .help = "Revision of the task."},
    {.name = "summary", .argument = "TEXT", .kind = OPTION_text,
     .help = "What is to be done, at most 4096 bytes: the first turn's summary, and told to all. A file may say it."},
    {.name = "payload", .letter = 'p', .argument = "FILE", .kind = OPTION_text,
     .help = "What is to be worked on, for every turn; - reads standard input."},
    {.name = "data", .letter = 'd', .argument = "KEY=VALUE", .kind = OPTION_multi,
     .help = "A fact for the first turn, as a text."},
    {.name = "deadline", .argument = "TIME", .kind = OPTION_text,
     .help = "The run expires then: 2026-11-29T14:20:43Z. The workflow's `deadline` unless given."},
    {.name = "key", .letter = 'k', .argument = "KEY", .kind = OPTION_text,
     .help = "Idempotency key: starting again with the same key is the same run. Random and printed unless given."},
    {.name = "dry-run", .kind = OPTION_flag,
     .help = "Sends nothing: says whether it would begin, as this host's files and key have it, or the code with which it would be refused."},
    {.name = "confirmed", .kind = OPTION_flag,
     .help = "For an agent that works for you: you have said yes to this start. Counts for a workflow with `invoke: ask` and with your "
             "key, and only where somebody is there (BATON_MODE, CI)."},
    {.name = "wait", .letter = 'w', .kind = OPTION_flag,
     .help = "Follows the run until it has ended or waits for a person; exit statuses as `runs wait`."},
    {.name = "timeout", .argument = "DURATION", .kind = OPTION_duration, .fallback = RUNS_ASK_TIMEOUT,
     .help = "How long a coordinator's answer is waited for; without one the request stays in the log. With --wait: how long "
             "the run is followed."},
};
/* clang-format on */

const struct baton_command cmd_runs_start = {
    .name = "start",
    .summary = "start a run of a workflow over a task",
    .usage = "--workflow NAME --task FILE [--wait]\n"
             "--workflow NAME --task ID --summary TEXT [--payload FILE] [--data KEY=VALUE] "
             "[--wait]",
    .description =
        "Asks the coordinators to begin a run, and prints its id. Its first turn goes to the "
        "workflow's `start`. Refused from inside an attempt (BATON_ATTEMPT): no agent starts a run "
        "of its own. An agent beside them (a program's key, or CLAUDECODE, GEMINI_CLI or "
        "CODEX_SANDBOX in its environment) starts what the workflow's `invoke` lets it start; "
        "what it may not, the answer has as a command for a person.\n\n"
        "A task in a file: of .md and .txt the first line is the summary, and the whole file the "
        "payload. Of .yaml, .yml and .json the keys are `id`, `rev`, `summary`, `data` (a section "
        "of texts), and for the payload either `text` or `payload`, a file beside this one. "
        "Without an id the file's name gives it: fix-parser.md is the task fix-parser. What an "
        "option says counts instead of what the file says.",
    .options = start_options,
    .n_options = COUNT_OF(start_options),
    .examples = "baton runs start --workflow paired-review --task fix-parser.md --wait\n"
                "baton runs start --workflow paired-review --task t-41 --summary 'Mend the parser' "
                "--payload task.md\n",
    .run = run_start,
};
