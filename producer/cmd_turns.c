/*
 * `baton turns list | show`, and the table of the others.
 * In: deploy/baton.c
 * Out: topics/turn_log.c, producer/life.c
 */
#include "producer/cmd_turns.h"

#include "common/base/check.h"
#include "common/base/jsonw.h"
#include "common/base/limits.h"
#include "common/base/text.h"
#include "producer/life.h"
#include "producer/pace.h"

#include <stdio.h>
#include <string.h>

#define LIST_MAX 10000 /* rows held at a time: with 400 bytes each below 4 MB */

baton_code turns_find(struct session *session, const char *word, struct turn_id *ret_id,
                      struct turn_life *ret_life, const char **ret_waits_at,
                      struct baton_error *err)
{
    const char *waits_at = NULL;
    baton_code rc = turn_log_resolve(session->log, session->config, word, ret_id, err);
    memset(ret_life, 0, sizeof(*ret_life));
    if (ret_waits_at != NULL) {
        *ret_waits_at = NULL;
    }
    if (rc != BATON_OK ||
        (rc = turn_log_find(session->log, session->config, ret_id->s, ret_life, err)) != BATON_OK ||
        ret_life->found) {
        return rc;
    }
    rc = turn_log_waiting(session->log, session->config, ret_id->s, &waits_at, err);
    if (rc == BATON_OK && waits_at == NULL) {
        /* It may have been taken in between the two looks, and its handoff trimmed: then it is there now. */
        turn_life_done(ret_life);
        memset(ret_life, 0, sizeof(*ret_life));
        rc = turn_log_find(session->log, session->config, ret_id->s, ret_life, err);
    }
    if (rc != BATON_OK || ret_life->found) {
        return rc;
    }
    if (waits_at == NULL) {
        return baton_fail(err, BATON_E_turn_not_found,
                          "no turn %s is known; `baton turns list` shows those that are",
                          ret_id->s);
    }
    if (ret_waits_at != NULL) {
        *ret_waits_at = waits_at;
    }
    return baton_fail(err, BATON_E_turn_not_found,
                      "turn %s waits at %s: no worker has taken it in yet", ret_id->s, waits_at);
}

/* ---- list ---- */

struct row {
    struct turn_id id;
    struct service_id service;
    struct task_id task;
    int32_t task_rev;
    enum role role;
    enum turn_state state;
    int attempt;
    bool has_class;
    enum failure class;
    baton_code code;
    struct verdict_text verdict;
    struct wall_ms created_at;
    struct wall_ms updated_at;
    struct service_id to;
};

static struct row row_of(const struct turn_place *place, const struct turn_record *record)
{
    const struct attempt *last =
        record->n_attempts > 0 ? &record->attempts[record->n_attempts - 1] : NULL;
    return (struct row){
        .id = record->id,
        .service = service_id_of(place->service),
        .task = record->task_id,
        .task_rev = record->task_rev,
        .role = record->role,
        .state = record->state,
        .attempt = record->attempt,
        .has_class = last != NULL && last->has_class,
        .class = last != NULL ? last->class : (enum failure)0,
        .code = record->code,
        .verdict = result_verdict(record->result, record->result_len),
        .created_at = record->created_at,
        .updated_at = record->updated_at,
        .to = record->to_service,
    };
}

static void some(struct jsonw *w, const char *key, const char *text)
{
    jsonw_key_text(w, key, text != NULL && text[0] != '\0' ? text : NULL);
}

/* position: NULL where every one is asked for, in the order of the log. */
static void row_json(const struct row *row, const char *position, struct buf *out)
{
    struct jsonw w = jsonw_to(out);
    jsonw_begin_object(&w);
    jsonw_key_text(&w, "turn_id", row->id.s);
    jsonw_key_text(&w, "task_id", row->task.s);
    jsonw_key_int(&w, "task_rev", row->task_rev);
    jsonw_key_text(&w, "role", role_word(row->role));
    jsonw_key_text(&w, "service", row->service.s);
    jsonw_key_text(&w, "state", turn_state_word(row->state));
    some(&w, "verdict", row->verdict.s);
    jsonw_key_int(&w, "attempt", row->attempt);
    some(&w, "class", row->has_class ? failure_word(row->class) : NULL);
    some(&w, "code", row->code != BATON_OK ? baton_code_word(row->code) : NULL);
    some(&w, "to", row->to.s);
    jsonw_key_text(&w, "created_at", wall_text(row->created_at).s);
    jsonw_key_text(&w, "updated_at", wall_text(row->updated_at).s);
    if (position != NULL) {
        jsonw_key_text(&w, "position", position);
    }
    jsonw_end(&w);
    buf_add_char(out, '\n');
}

struct list {
    struct command *cmd;
    struct buf out;
};

static bool on_turn(void *arg, const struct turn_place *place, const struct turn_record *record)
{
    struct list *list = arg;
    const struct row row = row_of(place, record);
    row_json(&row, NULL, &list->out);
    return list->out.len < 65536 || command_print(list->cmd, &list->out);
}

static bool turn_row(void *arg, const struct turn_place *place, const struct turn_record *record,
                     void *ret_row)
{
    (void)arg;
    *(struct row *)ret_row = row_of(place, record);
    return true;
}

static void add_row(struct table *table, const struct row *row)
{
    table_bytes(table, row->id.s, 12);
    table_whole(table, turn_state_word(row->state));
    table_whole(table, role_word(row->role));
    table_text(table, row->service.s);
    table_text(table, row->task.s);
    table_int(table, row->attempt);
    table_text(table, row->verdict.s[0] != '\0'      ? row->verdict.s
                      : row->state == TURN_delegated ? row->to.s
                      : row->code != BATON_OK        ? baton_code_word(row->code)
                                                     : NULL);
    table_whole(table, command_time(row->updated_at).s);
}

static baton_code print_page(struct list *list, const struct tail *tail, struct baton_error *err)
{
    static const char *const titles[] = {"TURN", "STATE", "ROLE", "SERVICE",
                                         "TASK", "NO",    "END",  "CHANGED UTC"};
    struct table *table = list->cmd->json ? NULL : table_new(titles, COUNT_OF(titles));
    struct tail_place place = {.service = ""};
    if (table == NULL && !list->cmd->json) {
        return baton_fail(err, BATON_E_no_memory, "no memory for a table");
    }
    for (size_t i = 0; i < tail_count(tail); i++) {
        const struct row *row = tail_row(tail, i, &place);
        if (table != NULL) {
            add_row(table, row);
        } else {
            row_json(row, tail_position(&place).s, &list->out);
        }
    }
    if (table != NULL && tail_count(tail) > 0) {
        command_table(list->cmd, table);
    }
    table_free(table);
    if (tail_count(tail) == 0) {
        command_note(list->cmd, "no turns; `baton services` shows what no worker has taken in yet");
    } else if (tail_more(tail)) {
        command_note(list->cmd, "older ones: --before %s", tail_position(&place).s);
    }
    return BATON_OK;
}

static baton_code list_page(struct command *cmd, struct session *session,
                            const struct turn_filter *filter, struct list *list,
                            size_t *ret_unreadable, struct baton_error *err)
{
    struct turn_tail turns = {.filter = filter, .fn = turn_row};
    struct reading reading = reading_begin(cmd);
    struct tail *tail = NULL;
    const struct tail_spec page = {
        .log = session->log,
        .row_size = sizeof(struct row),
        .max = command_given(cmd, "limit") ? (size_t)command_int(cmd, "limit") : LIMIT_LIST,
        .before = command_text(cmd, "before"),
        .progress = reading_shows,
        .progress_arg = &reading,
    };
    baton_code rc = tail_new(&page, &tail, err);
    if (rc == BATON_OK && (rc = turn_log_tail(tail, session->config, &turns, err)) == BATON_OK) {
        rc = tail_read(tail, err);
    }
    reading_end(&reading);
    if (rc == BATON_OK) {
        rc = print_page(list, tail, err);
    }
    *ret_unreadable = turns.unreadable;
    tail_free(tail);
    return rc;
}

/* Words of --state and --role. False: one is none, told. */
static bool filter_of(struct command *cmd, struct turn_filter *filter, struct baton_error *err)
{
    size_t n_states = 0;
    size_t n_roles = 0;
    const char *const *states = command_list(cmd, "state", &n_states);
    const char *const *roles = command_list(cmd, "role", &n_roles);
    filter->service = command_text(cmd, "service");
    filter->task_id = command_text(cmd, "task");
    for (size_t i = 0; i < n_states; i++) {
        enum turn_state state;
        if (!turn_state_parse(states[i], strlen(states[i]), &state)) {
            struct buf known = BUF_INIT;
            for (int s = 0; s < TURN_STATE_COUNT; s++) {
                buf_printf(&known, "%s%s", s == 0 ? "" : ", ", turn_state_word((enum turn_state)s));
            }
            baton_fail(err, BATON_E_invalid_request, "'%s' is no state; states are: %s",
                       text_quote_of(states[i]).s, known.data != NULL ? known.data : "");
            buf_done(&known);
            return false;
        }
        filter->states |= 1u << (unsigned)state;
    }
    for (size_t i = 0; i < n_roles; i++) {
        enum role role;
        if (!role_parse(roles[i], strlen(roles[i]), &role)) {
            baton_fail(err, BATON_E_invalid_request, "'%s' is no role; roles are: %s",
                       text_quote_of(roles[i]).s, role_list());
            return false;
        }
        filter->roles |= ROLE_BIT(role);
    }
    return true;
}

static baton_code list_turns(struct command *cmd, struct session *session,
                             const struct turn_filter *filter, struct list *list,
                             struct baton_error *err)
{
    const bool page = !cmd->json || command_given(cmd, "limit") || command_given(cmd, "before");
    size_t unreadable = 0;
    baton_code rc = page ? list_page(cmd, session, filter, list, &unreadable, err)
                         : turn_log_each(session->log, session->config, filter, on_turn, list,
                                         &unreadable, err);
    if (rc == BATON_OK) {
        command_print(cmd, &list->out);
    }
    if (unreadable > 0) {
        command_note(cmd, "%zu records of turn logs cannot be read and are left out", unreadable);
    }
    return rc;
}

static int run_list(struct command *cmd)
{
    struct session session = {0};
    struct baton_error err = {BATON_OK, ""};
    struct turn_filter filter = {0};
    struct list list = {.cmd = cmd, .out = BUF_INIT};
    int status = 0;
    if (!filter_of(cmd, &filter, &err)) {
        return command_fail(cmd, err.code, &err);
    }
    baton_code rc = session_open(cmd, &session, &err);
    if (rc == BATON_OK) {
        rc = list_turns(cmd, &session, &filter, &list, &err);
    }
    if (rc != BATON_OK) {
        status = command_fail(cmd, rc, &err);
    }
    buf_done(&list.out);
    session_done(&session);
    return status;
}

/* clang-format off */
static const struct command_option list_options[] = {
    {.name = "state", .argument = "STATE", .kind = OPTION_multi,
     .help = "Only turns in this state: queued, running, parked, delegated, completed, cancelled."},
    {.name = "service", .letter = 's', .argument = "S", .kind = OPTION_text,
     .help = "Only turns of this service."},
    {.name = "role", .letter = 'r', .argument = "R", .kind = OPTION_multi,
     .help = "Only turns of this role."},
    {.name = "task", .letter = 't', .argument = "ID", .kind = OPTION_text,
     .help = "Only turns of this task."},
    {.name = "limit", .letter = 'n', .argument = "N", .kind = OPTION_int, .min = 1, .max = LIST_MAX,
     .help = "The newest N, changed last first. Without it 50 for people, and with --json every one, as it "
             "is read."},
    {.name = "before", .argument = "POSITION", .kind = OPTION_text,
     .help = "The next page: only what is older. A page says its position at its end, and with --json in "
             "each line."},
};
/* clang-format on */

static const struct baton_command cmd_list = {
    .name = "list",
    .summary = "list turns, those that changed last first",
    .usage = "[--state STATE]... [--service S] [--role R]... [--task ID] [--limit N] "
             "[--before POSITION] [--json]",
    .description =
        "Reads the turn logs from their ends, so it needs no worker, and a page costs the same "
        "however many turns there are; a filter that lets little through reads on. A turn that was "
        "passed on is listed "
        "at each service that had it. Handoffs that no worker has taken in yet are not in "
        "a turn log: `baton services` counts them.",
    .options = list_options,
    .n_options = COUNT_OF(list_options),
    .examples = "# what waits for an operator\nbaton turns list --state parked\n"
                "# every turn of a service, one JSON object a line\n"
                "baton turns list --service example --json\n",
    .run = run_list,
};

/* ---- show ---- */

void turns_print(struct command *cmd, const struct turn_life *life)
{
    struct buf out = BUF_INIT;
    if (cmd->json) {
        life_print_json(life, &out);
    } else {
        life_print_text(life, command_width(), &out);
    }
    command_print(cmd, &out);
    buf_done(&out);
}

static int run_show(struct command *cmd)
{
    struct session session = {0};
    struct baton_error err = {BATON_OK, ""};
    struct turn_life life = {.found = false};
    struct turn_id id;
    int status = 0;
    baton_code rc = session_open(cmd, &session, &err);
    if (rc == BATON_OK) {
        rc = turns_find(&session, cmd->args[0], &id, &life, NULL, &err);
    }
    if (rc == BATON_OK) {
        turns_print(cmd, &life);
    } else {
        status = command_fail(cmd, rc, &err);
    }
    turn_life_done(&life);
    session_done(&session);
    return status;
}

static const struct baton_command cmd_show = {
    .name = "show",
    .summary = "show a turn's whole life",
    .usage = "ID [--json]",
    .description =
        "Identity, state, verdict, and every attempt: who, when, under which profile, and "
        "why it ended. ID is a turn id, or its first digits (at least 6). A turn that was "
        "passed on is followed to where it is now. Times are UTC.",
    .examples = "baton turns show 7f3a90\nbaton turns show 7f3a90 --json\n",
    .args_min = 1,
    .args_max = 1,
    .run = run_show,
};

static const struct baton_command *const subcommands[] = {
    &cmd_list, &cmd_show, &cmd_turns_why, &cmd_turns_watch, &cmd_turns_wait, &cmd_turns_cancel,
};

const struct baton_command cmd_turns = {
    .name = "turns",
    .summary = "list, show, explain, follow and cancel turns",
    .usage = "list|show|why|watch|wait|cancel",
    .description = "A turn is one role's piece of work. These commands read the turn logs of the "
                   "configured services.",
    .subcommands = subcommands,
    .n_subcommands = COUNT_OF(subcommands),
    .examples = "baton turns list\nbaton turns show 7f3a90\nbaton turns why 7f3a90\n",
};
