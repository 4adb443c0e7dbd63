/*
 * `baton publish`: options and files become a request, what came of it is printed.
 * In: deploy/baton.c
 * Out: producer/publish.c, producer/publish_lines.c
 */
#include "producer/cmd_publish.h"

#include "common/base/check.h"
#include "common/base/jsonw.h"
#include "common/base/limits.h"
#include "common/base/text.h"
#include "producer/input.h"
#include "producer/publish.h"
#include "producer/publish_lines.h"
#include "topics/outcomes.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* clang-format off */
static const struct command_option options[] = {
    {.name = "service", .letter = 's', .argument = "S", .kind = OPTION_text,
     .help = "The service that is to execute the turn, by its exact name."},
    {.name = "role", .letter = 'r', .argument = "R", .kind = OPTION_text,
     .help = "The role of the turn: owner, reviewer or arbiter. It never changes afterwards."},
    {.name = "task", .letter = 't', .argument = "ID", .kind = OPTION_text,
     .help = "What is worked on: 1 to 64 of [A-Za-z0-9._/#:-]."},
    {.name = "rev", .argument = "N", .kind = OPTION_int, .fallback = "0", .min = 0, .max = INT32_MAX,
     .help = "Revision of the task."},
    {.name = "intent", .argument = "WORD", .kind = OPTION_text, .fallback = PUBLISH_INTENT,
     .help = "What the turn is for, for example review: part of its identity."},
    {.name = "summary", .argument = "TEXT", .kind = OPTION_text,
     .help = "For people, at most 4096 bytes; made from role and task unless given."},
    {.name = "payload", .letter = 'p', .argument = "FILE", .kind = OPTION_text,
     .help = "What is to be worked on; - reads standard input. Text stays text, anything else goes as "
             "base64. The whole turn has at most 256 KiB."},
    {.name = "media-type", .argument = "TYPE", .kind = OPTION_text,
     .help = "Of the payload; text/plain or application/octet-stream unless given."},
    {.name = "data", .letter = 'd', .argument = "KEY=VALUE", .kind = OPTION_multi,
     .help = "A fact for the executor, as a text."},
    {.name = "data-json", .argument = "FILE", .kind = OPTION_text,
     .help = "The facts as one JSON object from a file; instead of --data."},
    {.name = "key", .letter = 'k', .argument = "KEY", .kind = OPTION_text,
     .help = "Idempotency key: publishing again with the same key is the same turn. Random and "
             "printed unless given."},
    {.name = "place", .argument = "DIR", .kind = OPTION_text,
     .help = "Directory to work in, where the worker's configuration allows it."},
    {.name = "not-before", .argument = "TIME", .kind = OPTION_text,
     .help = "Does not start earlier: 2026-11-29T14:20:43Z."},
    {.name = "deadline", .argument = "TIME", .kind = OPTION_text,
     .help = "Is parked when it has not ended by then: 2026-11-29T14:20:43Z."},
    {.name = "expires", .argument = "DURATION", .kind = OPTION_duration, .fallback = "7d", .min = 1000,
     .max = TURN_LIFE_MAX_MS, .help = "How long the signed record may be appended to the log."},
    {.name = "lines", .argument = "FILE", .kind = OPTION_text,
     .help = "Many turns: one JSON object a line; - reads standard input. Its members are service, role, "
             "task, rev, intent, summary, payload, media_type, data (an object), key, place, not_before, "
             "deadline and expires; what a line leaves out, the options say for all lines."},
    {.name = "all-or-nothing", .kind = OPTION_flag,
     .help = "With --lines: every line is checked first, and where one is refused none is published."},
    {.name = "dry-run", .kind = OPTION_flag,
     .help = "With --lines: says what would be refused, and publishes nothing."},
    {.name = "wait", .letter = 'w', .kind = OPTION_flag,
     .help = "Waits for the end: completed, parked or cancelled."},
    {.name = "wait-claim", .kind = OPTION_flag,
     .help = "Waits until a worker of the service has claimed the turn."},
    {.name = "timeout", .argument = "DURATION", .kind = OPTION_duration, .fallback = "10m",
     .help = "How long --wait and --wait-claim wait, 90 (seconds) or 5m; then the turn stays queued, and the exit status "
             "is 8."},
};
/* clang-format on */

struct inputs {
    struct buf payload;
    struct buf data;
};

static baton_code request_of(struct command *cmd, struct inputs *inputs,
                             struct publish_request *request, struct baton_error *err)
{
    size_t n_data = 0;
    const char *const *data = command_list(cmd, "data", &n_data);
    const char *data_file = command_text(cmd, "data-json");
    const char *payload = command_text(cmd, "payload");
    const char *trace = getenv("TRACEPARENT");
    baton_code rc = BATON_OK;
    *request = (struct publish_request){
        .service = command_text(cmd, "service"),
        .role = command_text(cmd, "role"),
        .task_id = command_text(cmd, "task"),
        .task_rev = (int32_t)command_int(cmd, "rev"),
        .intent = command_text(cmd, "intent"),
        .summary = command_text(cmd, "summary"),
        .key = command_text(cmd, "key"),
        .media_type = command_text(cmd, "media-type"),
        .place = command_text(cmd, "place"),
        .life_ms = command_int(cmd, "expires"),
        .traceparent = traceparent_valid(trace) ? trace : NULL,
        .wait = command_flag(cmd, "wait")         ? PUBLISH_WAIT_end
                : command_flag(cmd, "wait-claim") ? PUBLISH_WAIT_claim
                                                  : PUBLISH_WAIT_none,
        .timeout_ms = command_int(cmd, "timeout"),
    };
    if ((rc = input_time(cmd, "not-before", &request->not_before, err)) != BATON_OK ||
        (rc = input_time(cmd, "deadline", &request->deadline, err)) != BATON_OK) {
        return rc;
    }
    if (n_data > 0 && data_file != NULL) {
        return baton_fail(err, BATON_E_invalid_request,
                          "--data and --data-json exclude each other");
    }
    if (n_data > 0) {
        rc = input_data(data, n_data, &inputs->data, err);
    } else if (data_file != NULL) {
        rc = input_read(data_file, &inputs->data, err);
    }
    if (rc == BATON_OK && payload != NULL) {
        rc = input_read(payload, &inputs->payload, err);
    }
    if (rc == BATON_OK && (!buf_ok(&inputs->data) || !buf_ok(&inputs->payload))) {
        rc = baton_fail(err, BATON_E_no_memory, "no memory for the payload");
    }
    request->data = n_data > 0 || data_file != NULL ? inputs->data.data : NULL;
    request->data_len = inputs->data.len;
    request->payload = inputs->payload.data;
    request->payload_len = inputs->payload.len;
    return rc;
}

/* ---- what came of it ---- */

static baton_code end_code(const struct published *published)
{
    const struct outcome *outcome = published->outcome;
    if (published->timed_out) {
        return BATON_E_timed_out;
    }
    if (outcome == NULL || (outcome->has_state && outcome->state == TURN_completed)) {
        return BATON_OK;
    }
    if (outcome->has_state && outcome->state == TURN_cancelled) {
        return BATON_E_turn_closed;
    }
    return outcome->code != BATON_OK ? outcome->code : BATON_E_executor_failed;
}

static void print_json(const struct published *published, const char *intent, struct buf *out)
{
    struct jsonw w = jsonw_to(out);
    jsonw_begin_object(&w);
    jsonw_key_text(&w, "turn_id", published->turn_id.s);
    jsonw_key_text(&w, "status", published->delivered ? "delivered" : "queued");
    jsonw_key(&w, "deduped");
    if (published->answered) {
        jsonw_bool(&w, published->deduped);
    } else {
        jsonw_null(&w); /* only the owner knows, and a plain publish does not wait for it */
    }
    jsonw_key_text(&w, "service", published->service.s);
    jsonw_key_text(&w, "role", role_word(published->role));
    jsonw_key_text(&w, "intent", intent);
    jsonw_key_text(&w, "key", published->key);
    jsonw_key_text(&w, "traceparent", published->traceparent);
    jsonw_key_int(&w, "partition", published->partition);
    jsonw_key_int(&w, "offset", published->offset);
    if (published->timed_out) {
        jsonw_key_text(&w, "code", baton_code_word(BATON_E_timed_out));
    }
    if (published->outcome != NULL) {
        struct buf outcome = BUF_INIT;
        outcome_print(published->outcome, &outcome);
        if (buf_ok(&outcome)) {
            jsonw_key_raw(&w, "outcome", outcome.data, outcome.len);
        }
        buf_done(&outcome);
    }
    jsonw_end(&w);
    buf_add_char(out, '\n');
}

static void print_text(const struct published *published, struct buf *out)
{
    const struct outcome *outcome = published->outcome;
    buf_printf(out, "%s  %s  %s at %s\n", published->delivered ? "delivered" : "queued",
               published->turn_id.s, role_word(published->role), published->service.s);
    if (published->deduped) {
        buf_add_text(out, "the turn was known before: nothing new was queued\n");
    }
    if (outcome != NULL) {
        struct verdict_text verdict = result_verdict(outcome->result, outcome->result_len);
        struct buf summary = BUF_INIT;
        buf_printf(out, "%s",
                   outcome->has_state ? turn_state_word(outcome->state)
                                      : outcome_word(outcome->event));
        if (verdict.s[0] != '\0') {
            buf_add_text(out, ": ");
            text_add(out, verdict.s, strlen(verdict.s), 0);
        }
        if (outcome->code != BATON_OK) {
            buf_printf(out, ": %s (%s)", baton_code_word(outcome->code),
                       baton_code_text(outcome->code));
        }
        buf_add_char(out, '\n');
        result_summary(outcome->result, outcome->result_len, &summary);
        if (buf_ok(&summary) && summary.len > 0) {
            text_add_lines(out, summary.data, summary.len, LIMIT_SUMMARY, "  ");
            buf_add_char(out, '\n');
        }
        buf_done(&summary);
    }
}

/* Who is interrupted while waiting knows what to ask for later. */
static void on_queued(void *arg, const struct published *published)
{
    command_note(arg, "turn %s is in the log; waiting for what becomes of it",
                 published->turn_id.s);
}

/* What is said of one turn, and what is said of many. */
static const char *misfit(const struct command *cmd)
{
    static const char *const of_one[] = {"task", "payload", "media-type", "data",      "data-json",
                                         "key",  "summary", "wait",       "wait-claim"};
    static const char *const needed[] = {"service", "role", "task"};
    const bool many = command_given(cmd, "lines");
    for (size_t i = 0; many && i < COUNT_OF(of_one); i++) {
        if (command_given(cmd, of_one[i])) {
            return of_one[i];
        }
    }
    for (size_t i = 0; !many && i < COUNT_OF(needed); i++) {
        if (!command_given(cmd, needed[i])) {
            return needed[i];
        }
    }
    return !many && command_flag(cmd, "all-or-nothing") ? "all-or-nothing"
           : !many && command_flag(cmd, "dry-run")      ? "dry-run"
                                                        : NULL;
}

static int run_lines(struct command *cmd, struct publisher *publisher)
{
    struct inputs inputs = {BUF_INIT, BUF_INIT};
    struct publish_request fallback;
    struct baton_error err = {BATON_OK, ""};
    baton_code rc = request_of(cmd, &inputs, &fallback, &err);
    const struct publish_lines asked = {cmd,
                                        publisher,
                                        &fallback,
                                        command_text(cmd, "lines"),
                                        command_flag(cmd, "all-or-nothing"),
                                        command_flag(cmd, "dry-run")};
    return rc == BATON_OK ? publish_lines_run(&asked) : command_fail(cmd, rc, &err);
}

static int run(struct command *cmd)
{
    struct inputs inputs = {BUF_INIT, BUF_INIT};
    struct config *config = NULL;
    struct publisher publisher = {.config = NULL};
    struct publish_request request;
    struct published published = {.outcome = NULL};
    struct baton_error err = {BATON_OK, ""};
    int status = 0;
    baton_code rc;
    const bool many = command_given(cmd, "lines");
    const char *wrong = misfit(cmd);
    if (wrong != NULL && many) {
        return command_usage(cmd, "--%s is of one turn; with --lines each line says its own",
                             wrong);
    }
    if (wrong != NULL) {
        return command_flag(cmd, "all-or-nothing") || command_flag(cmd, "dry-run")
                   ? command_usage(cmd, "--all-or-nothing and --dry-run go with --lines")
                   : command_usage(cmd, "--%s is missing", wrong);
    }
    if (command_flag(cmd, "wait") && command_flag(cmd, "wait-claim")) {
        return command_usage(cmd,
                             "--wait and --wait-claim exclude each other: --wait waits longer");
    }
    if ((rc = command_config(cmd, &config, &err)) == BATON_OK) {
        rc = publisher_open(config, &publisher, &err);
    }
    if (rc == BATON_OK && many) {
        status = run_lines(cmd, &publisher);
        goto out;
    }
    if (rc == BATON_OK && (rc = request_of(cmd, &inputs, &request, &err)) == BATON_OK) {
        request.queued = on_queued;
        request.queued_arg = cmd;
        rc = publisher_publish(&publisher, &request, &published, &err);
    }
    if (rc != BATON_OK) {
        status = command_fail(cmd, rc, &err);
    } else {
        struct buf out = BUF_INIT;
        if (cmd->json) {
            print_json(&published, request.intent, &out);
        } else {
            print_text(&published, &out);
        }
        command_print(cmd, &out);
        buf_done(&out);
        if (published.timed_out) {
            command_note(cmd,
                         "nothing more was heard in time; `baton turns show %.12s` tells later",
                         published.turn_id.s);
        }
        if (published.outcome != NULL && published.outcome->has_state &&
            published.outcome->state == TURN_parked) {
            command_note(cmd, "`baton turns show %.12s` has its attempts and what they said",
                         published.turn_id.s);
        }
        status = baton_code_exit(end_code(&published));
    }
out:
    published_done(&published);
    publisher_close(&publisher);
    config_free(config);
    buf_done(&inputs.payload);
    buf_done(&inputs.data);
    return status;
}

const struct baton_command cmd_publish = {
    .name = "publish",
    .summary = "publish a turn with an explicit role to a service",
    .usage = "--service S --role R --task ID [--payload FILE|-] [--key KEY]\n"
             "--service S --role R --task ID --wait [--timeout DURATION] [--json]\n"
             "--lines FILE|- [--service S] [--role R] [--all-or-nothing|--dry-run] [--json]",
    .description =
        "Writes and signs a turn once, and appends it to the topic of the service. Its id is a "
        "hash of "
        "who, where, role, task and key, so publishing again with the same --key is the same turn, "
        "and "
        "harmless after any doubt.\n\n"
        "Without --wait the answer is `queued`: the turn is durable, and a worker of the service "
        "takes "
        "it when it can. `delivered` means that one has claimed it.\n\n"
        "Whatever is wrong (service, role, right, key, size, log) is refused before anything is "
        "written.\n\n"
        "With --lines many turns are published, one JSON object a line, hundreds in flight. A line "
        "that is "
        "wrong is refused by its number, and the others go on. A line without `key` has one made "
        "from its "
        "bytes, so publishing the same file again doubles nothing; two lines that are alike are "
        "one turn. "
        "`payload` is a text, or an object as a record has it (`{\"media_type\":…,\"base64\":…}`, "
        "or a "
        "reference). Ctrl-C ends it between two batches, and says how far it came. With --json "
        "each line is "
        "answered with an object, and the last one has the sums.",
    .options = options,
    .n_options = COUNT_OF(options),
    .examples =
        "# a review of a patch, waiting for the verdict\n"
        "baton publish --service example --role reviewer --task t-41 --payload fix.diff --wait\n"
        "# from a script; running it again changes nothing\n"
        "git diff | baton publish -s example -r reviewer -t t-41 --rev 7 --key ci-1234 -p - "
        "--json\n"
        "# many: one object a line, "
        "{\"task\":\"t-1\",\"payload\":\"...\",\"not_before\":\"2026-11-30T06:00:00Z\"}\n"
        "baton publish --lines turns.jsonl --service example --role reviewer\n",
    .exits = "With --wait: 0 completed, 7 parked, 6 cancelled, 8 not over in time.\n"
             "With --lines: 0 all published, 7 some lines refused, 8 it stopped: the log gave\n"
             "up, somebody interrupted, or who read its output is gone; again is harmless.\n",
    .environment = "TRACEPARENT  the trace that the turn continues (W3C Trace Context)\n",
    .run = run,
};
