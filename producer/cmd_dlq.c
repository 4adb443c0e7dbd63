/*
 * `baton dlq list | show | replay`.
 * In: deploy/baton.c
 * Out: producer/dead.c, producer/replay.c
 */
#include "producer/cmd_dlq.h"

#include "common/base/check.h"
#include "common/base/jsonw.h"
#include "common/base/limits.h"
#include "common/base/text.h"
#include "producer/cmd_turns.h"
#include "producer/dead.h"
#include "producer/life.h"
#include "producer/operate.h"
#include "producer/replay.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LIST_MAX 10000

static const char *or_null(const char *text)
{
    return text[0] != '\0' ? text : NULL;
}

/* ---- filters ---- */

#define FILTER_OPTIONS                                                                             \
    {.name = "service",                                                                            \
     .letter = 's',                                                                                \
     .argument = "S",                                                                              \
     .kind = OPTION_text,                                                                          \
     .help = "Only those of this service; coordinator: requests of runs."},                        \
        {.name = "role",                                                                           \
         .letter = 'r',                                                                            \
         .argument = "R",                                                                          \
         .kind = OPTION_text,                                                                      \
         .help = "Only those of this role."},                                                      \
        {.name = "class",                                                                          \
         .argument = "CLASS",                                                                      \
         .kind = OPTION_text,                                                                      \
         .help = "Only parked turns whose last attempt failed so, for example auth."},             \
    {                                                                                              \
        .name = "code", .argument = "CODE", .kind = OPTION_text,                                   \
        .help = "Only those with this code, for example unknown_key."                              \
    }

static bool filtered(const struct command *cmd)
{
    return command_given(cmd, "service") || command_given(cmd, "role") ||
           command_given(cmd, "class") || command_given(cmd, "code");
}

static baton_code filter_of(struct command *cmd, struct dead_filter *filter,
                            struct baton_error *err)
{
    const char *role = command_text(cmd, "role");
    const char *class = command_text(cmd, "class");
    const char *code = command_text(cmd, "code");
    filter->service = command_text(cmd, "service");
    filter->by_role = role != NULL;
    filter->by_class = class != NULL;
    filter->by_code = code != NULL;
    if (role != NULL && !role_parse(role, strlen(role), &filter->role)) {
        return baton_fail(err, BATON_E_invalid_request, "'%s' is no role; roles are: %s",
                          text_quote_of(role).s, role_list());
    }
    if (class != NULL && !failure_parse(class, strlen(class), &filter->class)) {
        return baton_fail(err, BATON_E_invalid_request, "'%s' is no failure class; classes are: %s",
                          text_quote_of(class).s, failure_list());
    }
    if (code != NULL && !baton_code_parse(code, &filter->code)) {
        return baton_fail(err, BATON_E_invalid_request,
                          "'%s' is no code; `baton dlq list` shows those there are",
                          text_quote_of(code).s);
    }
    return BATON_OK;
}

/* ---- list ---- */

struct list {
    struct command *cmd;
    struct table *table;
    struct buf out;
    size_t max; /* 0: no limit */
    size_t count;
    size_t left_out;
};

static void dead_json(const struct dead *dead, struct buf *out)
{
    struct jsonw w = jsonw_to(out);
    jsonw_begin_object(&w);
    jsonw_key_text(&w, "id", dead->id);
    jsonw_key_text(&w, "kind", dead->parked ? "parked" : "rejected");
    jsonw_key_text(&w, "turn_id", or_null(dead->turn_id));
    jsonw_key_text(&w, "service", dead->service);
    jsonw_key_text(&w, "role", or_null(dead->role));
    jsonw_key_text(&w, "task_id", or_null(dead->task_id));
    jsonw_key_text(&w, "run_id", or_null(dead->run_id));
    jsonw_key_text(&w, "request", or_null(dead->kind));
    jsonw_key_text(&w, "code", baton_code_word(dead->code));
    jsonw_key_text(&w, "class", dead->has_class ? failure_word(dead->class) : NULL);
    if (dead->parked) {
        jsonw_key_int(&w, "attempt", dead->attempt);
    }
    jsonw_key_text(&w, "at", wall_text(dead->at).s);
    jsonw_key_text(&w, "message", or_null(dead->message));
    jsonw_end(&w);
    buf_add_char(out, '\n');
}

static void dead_row(struct table *table, const struct dead *dead)
{
    if (dead->parked) {
        table_bytes(table, dead->id, 12);
    } else {
        table_text(table, dead->id);
    }
    table_whole(table, dead->parked ? "parked" : "rejected");
    table_text(table, or_null(dead->role));
    table_text(table, dead->service);
    table_text(table, or_null(dead->run_id[0] != '\0' ? dead->run_id : dead->task_id));
    table_text(table, baton_code_word(dead->code));
    table_text(table, dead->has_class ? failure_word(dead->class) : NULL);
    table_whole(table, command_time(dead->at).s);
}

static bool on_listed(void *arg, const struct dead *dead)
{
    struct list *list = arg;
    if (list->max > 0 && list->count >= list->max) {
        list->left_out++;
        return true;
    }
    list->count++;
    if (list->table != NULL) {
        dead_row(list->table, dead);
        return true;
    }
    dead_json(dead, &list->out);
    return list->out.len < 65536 || command_print(list->cmd, &list->out);
}

static int run_list(struct command *cmd)
{
    static const char *const titles[] = {"ID",          "KIND", "ROLE",  "SERVICE",
                                         "TASK OR RUN", "CODE", "CLASS", "SINCE UTC"};
    struct session session = {0};
    struct baton_error err = {BATON_OK, ""};
    struct dead_filter filter = {0};
    struct list list = {.cmd = cmd, .out = BUF_INIT};
    int status = 0;
    baton_code rc = filter_of(cmd, &filter, &err);
    if (rc == BATON_OK) {
        rc = session_open(cmd, &session, &err);
    }
    list.max = command_given(cmd, "limit") ? (size_t)command_int(cmd, "limit")
               : cmd->json                 ? 0
                                           : LIMIT_LIST;
    if (rc == BATON_OK && !cmd->json &&
        (list.table = table_new(titles, COUNT_OF(titles))) == NULL) {
        rc = baton_fail(&err, BATON_E_no_memory, "no memory for a table");
    }
    if (rc == BATON_OK) {
        rc = dead_each(&session, &filter, on_listed, &list, &err);
    }
    if (rc != BATON_OK) {
        status = command_fail(cmd, rc, &err);
    } else if (cmd->json) {
        command_print(cmd, &list.out);
    } else if (list.count == 0) {
        command_note(cmd, "no dead letters");
    } else {
        command_table(cmd, list.table);
        if (list.left_out > 0) {
            command_note(cmd, "and %zu more; --limit shows them", list.left_out);
        }
    }
    table_free(list.table);
    buf_done(&list.out);
    session_done(&session);
    return status;
}

/* clang-format off */
static const struct command_option list_options[] = {
    FILTER_OPTIONS,
    {.name = "limit", .letter = 'n', .argument = "N", .kind = OPTION_int, .min = 1, .max = LIST_MAX,
     .help = "At most N. Without it 50 for people, and with --json every one."},
};
/* clang-format on */

static const struct baton_command cmd_list = {
    .name = "list",
    .summary = "list parked turns and rejected records",
    .usage = "[--service S] [--role R] [--class CLASS] [--code CODE] [--limit N] [--json]",
    .description =
        "A parked turn is open and waits for an operator; its id is the turn's. A rejected record "
        "never became a turn, because it was not proven, not permitted or not addressed to the "
        "service; its id is service:partition:offset, and what it says of itself is not to be "
        "believed. A rejected request of a run has the id coordinator:partition:offset; one that "
        "was proven and refused was answered, and is no dead letter.",
    .options = list_options,
    .n_options = COUNT_OF(list_options),
    .examples = "baton dlq list\n# what was refused by a provider\nbaton dlq list --class auth\n",
    .run = run_list,
};

/* ---- show ---- */

struct showing {
    struct command *cmd;
    bool value; /* --value: the raw bytes */
    struct buf out;
};

static void letter_json(const struct letter *letter, struct buf *out)
{
    struct jsonw w = jsonw_to(out);
    jsonw_begin_object(&w);
    jsonw_key_text(&w, "id", letter->id.s);
    jsonw_key_text(&w, "kind", "rejected");
    jsonw_key_text(&w, "service", letter->service);
    jsonw_key_text(&w, "code", baton_code_word(letter->code));
    jsonw_key_text(&w, "message", or_null(letter->message));
    jsonw_key_text(&w, "at", wall_text(letter->at).s);
    jsonw_key_text(&w, "topic", letter->topic);
    jsonw_key_int(&w, "partition", letter->from_partition);
    jsonw_key_int(&w, "offset", letter->from_offset);
    jsonw_key_text(&w, "turn_id", or_null(letter->turn_id));
    jsonw_key_text(&w, "role", or_null(letter->role));
    jsonw_key_text(&w, "task_id", or_null(letter->task_id));
    jsonw_key_text(&w, "run_id", or_null(letter->run_id));
    jsonw_key_text(&w, "request", or_null(letter->kind));
    jsonw_key_int(&w, "value_bytes",
                  letter->record->value != NULL ? (int64_t)letter->record->value_len : -1);
    jsonw_key(&w, "headers");
    jsonw_begin_array(&w);
    for (size_t i = 0; i < letter->record->n_headers; i++) {
        const struct log_header *header = &letter->record->headers[i];
        jsonw_begin_object(&w);
        jsonw_key_text(&w, "name", header->name);
        jsonw_key(&w, "value");
        if (header->value != NULL) {
            jsonw_bytes(&w, header->value, header->value_len);
        } else {
            jsonw_null(&w);
        }
        jsonw_end(&w);
    }
    jsonw_end(&w);
    jsonw_end(&w);
    buf_add_char(out, '\n');
}

static void line(struct buf *out, const char *name, const char *text)
{
    buf_printf(out, "%-10s ", name);
    text_add(out, text, strlen(text), 0);
    buf_add_char(out, '\n');
}

static void letter_text(const struct letter *letter, struct buf *out)
{
    line(out, "letter", letter->id.s);
    buf_printf(out, "%-10s rejected: %s (%s)\n", "why", baton_code_word(letter->code),
               baton_code_text(letter->code));
    line(out, "message", letter->message);
    line(out, "at", wall_text(letter->at).s);
    buf_printf(out, "%-10s ", "from");
    text_add(out, letter->topic, strlen(letter->topic), 0);
    buf_printf(out, ", partition %d, offset %lld\n", (int)letter->from_partition,
               (long long)letter->from_offset);
    if (strcmp(letter->service, LETTERS_OF_RUNS) == 0) {
        line(out, "run", letter->run_id[0] != '\0' ? letter->run_id : "its key is no run id");
        line(out, "claims", letter->kind[0] != '\0' ? letter->kind : "no request that there is");
    } else {
        line(out, "turn", letter->turn_id[0] != '\0' ? letter->turn_id : "its key is no turn id");
        line(out, "claims", letter->role[0] != '\0' ? letter->role : "no role");
    }
    for (size_t i = 0; i < letter->record->n_headers; i++) {
        const struct log_header *header = &letter->record->headers[i];
        buf_printf(out, "%-10s ", "header");
        text_add(out, header->name, strlen(header->name), 100);
        buf_add_text(out, header->value == NULL ? " (null)" : " ");
        text_add(out, header->value != NULL ? header->value : "", header->value_len, 200);
        buf_add_char(out, '\n');
    }
    if (letter->record->value == NULL) {
        line(out, "value", "null");
    } else {
        buf_printf(out, "%-10s %zu bytes; `baton dlq show %s --value >FILE` writes them\n", "value",
                   letter->record->value_len, letter->id.s);
    }
}

static bool on_shown(void *arg, const struct letter *letter)
{
    struct showing *showing = arg;
    if (showing->value) {
        buf_add(&showing->out, letter->record->value,
                letter->record->value != NULL ? letter->record->value_len : 0);
    } else if (showing->cmd->json) {
        letter_json(letter, &showing->out);
    } else {
        letter_text(letter, &showing->out);
    }
    return false;
}

static baton_code show_turn(struct command *cmd, struct session *session, struct showing *showing,
                            struct baton_error *err)
{
    struct turn_life life = {.found = false};
    struct turn_id id;
    baton_code rc = turns_find(session, cmd->args[0], &id, &life, NULL, err);
    if (rc == BATON_OK && life.now.state != TURN_parked) {
        rc =
            baton_fail(err, BATON_E_not_parked, "turn %s is %s, no dead letter; `baton turns show`",
                       id.s, turn_state_word(life.now.state));
    }
    if (rc == BATON_OK && showing->value) {
        buf_add(&showing->out, life.now.handoff, life.now.handoff_len);
    } else if (rc == BATON_OK && cmd->json) {
        life_print_json(&life, &showing->out);
    } else if (rc == BATON_OK) {
        life_print_text(&life, command_width(), &showing->out);
    }
    turn_life_done(&life);
    return rc;
}

static int run_show(struct command *cmd)
{
    struct session session = {0};
    struct baton_error err = {BATON_OK, ""};
    struct showing showing = {.cmd = cmd, .value = command_flag(cmd, "value"), .out = BUF_INIT};
    int status = 0;
    if (showing.value && (cmd->json || isatty(STDOUT_FILENO) == 1)) {
        return command_usage(cmd,
                             "--value writes foreign bytes as they are: to a file or a pipe, not "
                             "to a terminal, and not as --json");
    }
    baton_code rc = session_open(cmd, &session, &err);
    if (rc == BATON_OK) {
        rc = letter_id_valid(cmd->args[0])
                 ? letters_one(session.log, session.config, cmd->args[0], on_shown, &showing, &err)
                 : show_turn(cmd, &session, &showing, &err);
    }
    if (rc == BATON_OK) {
        command_print(cmd, &showing.out);
    } else {
        status = command_fail(cmd, rc, &err);
    }
    buf_done(&showing.out);
    session_done(&session);
    return status;
}

/* clang-format off */
static const struct command_option show_options[] = {
    {.name = "value", .kind = OPTION_flag,
     .help = "Writes the raw value instead; refused on a terminal."},
};
/* clang-format on */

static const struct baton_command cmd_show = {
    .name = "show",
    .summary = "show one dead letter",
    .usage = "ID [--json]\nID --value >FILE",
    .description = "ID is what `baton dlq list` shows: a turn id (or its first digits) of a parked "
                   "turn, service:partition:offset of a rejected record, or "
                   "coordinator:partition:offset of a rejected request.",
    .options = show_options,
    .n_options = COUNT_OF(show_options),
    .examples = "baton dlq show 7f3a90\nbaton dlq show example:2:17 --value >record.json\n",
    .args_min = 1,
    .args_max = 1,
    .run = run_show,
};

/* ---- replay ---- */

struct chosen {
    struct letter_id *ids;
    size_t count;
    size_t max;
    size_t left_out;
};

static bool on_chosen(void *arg, const struct dead *dead)
{
    struct chosen *chosen = arg;
    if (chosen->count == chosen->max) {
        chosen->left_out++;
        return true;
    }
    memcpy(chosen->ids[chosen->count++].s, dead->id, sizeof(dead->id));
    return true;
}

static void replayed_print(struct command *cmd, const char *id, const struct replay_result *result,
                           baton_code rc, const struct baton_error *err)
{
    struct buf out = BUF_INIT;
    if (cmd->json) {
        struct jsonw w = jsonw_to(&out);
        jsonw_begin_object(&w);
        jsonw_key_text(&w, "id", id);
        jsonw_key_text(&w, "turn_id", or_null(result->turn_id));
        jsonw_key_text(&w, "status", rc == BATON_OK ? replayed_word(result->what) : "failed");
        jsonw_key_text(&w, "service", or_null(result->service));
        jsonw_key_text(&w, "to", or_null(result->to));
        jsonw_key_text(&w, "role", or_null(result->role));
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
    struct dead_filter filter = {0};
    struct chosen chosen = {.max = (size_t)command_int(cmd, "limit")};
    baton_code first = BATON_OK;
    baton_code rc = filter_of(cmd, &filter, err);
    if (rc == BATON_OK && (chosen.ids = calloc(chosen.max, sizeof(*chosen.ids))) == NULL) {
        rc = baton_fail(err, BATON_E_no_memory, "no memory for a list");
    }
    if (rc == BATON_OK) {
        rc = dead_each(session, &filter, on_chosen, &chosen, err);
    }
    for (size_t i = 0; rc == BATON_OK && i < chosen.count; i++) {
        baton_code one = replay_one(cmd, session, chosen.ids[i].s, request);
        first = first == BATON_OK ? one : first;
    }
    if (rc == BATON_OK && chosen.count == 0) {
        command_note(cmd, "no dead letter is so");
    } else if (rc == BATON_OK && chosen.left_out > 0) {
        command_note(cmd, "and %zu more, beyond --limit", chosen.left_out);
    }
    free(chosen.ids);
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
    if (cmd->n_args > 0 && (filtered(cmd) || command_given(cmd, "limit"))) {
        return command_usage(
            cmd, "name turns, or choose them by --service, --role, --class, --code; not "
                 "both. A replay keeps the role that the turn has");
    }
    if (cmd->n_args == 0 && !filtered(cmd)) {
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
    FILTER_OPTIONS,
    {.name = "limit", .letter = 'n', .argument = "N", .kind = OPTION_int, .fallback = "50", .min = 1,
     .max = LIST_MAX, .help = "At most N of those that were chosen."},
    {.name = "to", .argument = "SERVICE", .kind = OPTION_text,
     .help = "Passes a parked turn on to another service: one that serves its role, to which its "
             "service may pass that role, and which has not had the turn."},
    {.name = "again", .kind = OPTION_flag,
     .help = "Also when the budget of replays is spent."},
    {.name = "dry-run", .kind = OPTION_flag, .help = "Says what would be replayed, does nothing."},
    {.name = "timeout", .argument = "DURATION", .kind = OPTION_duration, .fallback = OPERATE_TIMEOUT,
     .help = "How long to wait for the owner's answer; not at all where no worker lives."},
};
/* clang-format on */

static const struct baton_command cmd_replay = {
    .name = "replay",
    .summary = "give parked turns their next attempt; write rejected records again",
    .usage = "ID... [--again] [--to SERVICE] [--dry-run] [--json]\n"
             "--service S|--role R|--class CLASS|--code CODE [--limit N] [--dry-run] [--json]",
    .description =
        "A parked turn gets its next attempt: same turn, same role. The replay names the attempt "
        "that "
        "was parked, so replaying twice is one replay. A rejected record is written to its topic "
        "again, byte for byte: after its key was trusted, say.",
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

static const struct baton_command *const subcommands[] = {&cmd_list, &cmd_show, &cmd_replay};

const struct baton_command cmd_dlq = {
    .name = "dlq",
    .summary = "list, show and replay dead letters",
    .usage = "list|show|replay",
    .description = "Dead letters are parked turns and rejected records. Nothing is lost: a parked "
                   "turn stays open with its role until it is replayed or cancelled.",
    .subcommands = subcommands,
    .n_subcommands = COUNT_OF(subcommands),
    .examples = "baton dlq list\nbaton dlq replay 7f3a90\n",
};
