/*
 * `baton runs list`: the newest runs of the run log, or every one.
 * In: producer/cmd_runs.c
 * Out: producer/run_log.c
 */
#include "common/base/array.h"
#include "common/base/check.h"
#include "common/base/limits.h"
#include "common/base/quantity.h"
#include "common/base/text.h"
#include "producer/cmd_runs.h"
#include "producer/run_log.h"
#include "producer/session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SHORT_ID 10 /* as many as name a run among a million */
/* Rows of a page. With --json each holds a whole object: mostly some KiB, and below 128 with RUN_TURNS_MAX turns
 * and every transition of the largest workflow, so that a page is held in 128 MiB whatever it is of. Who wants
 * more has every one, as it is read. */
#define LIST_MAX 1000
#define LIST_SPARE 64 /* rows more, before those that changed first are let go */

/* What a line shows, or the line itself. */
struct row {
    struct wall_ms updated_at;
    struct plain_id id;
    struct plain_id workflow;
    struct task_id task;
    enum run_state state;
    char at[2 * ID_MAX + 8];
    int n_turns;
    char *why;  /* NULL: nothing */
    char *json; /* with --json */
};

struct listing {
    struct command *cmd;
    struct buf out;
    unsigned states;
    size_t limit; /* 0: every one, as it is read */
    struct row *rows;
    size_t count;
    size_t cap;
    size_t left_out;
    bool open; /* one is, and was chosen */
};

static void row_done(struct row *row)
{
    free(row->why);
    free(row->json);
}

/* The one that changed last first; of those that changed at once by their ids. */
static int newest_first(const void *a, const void *b)
{
    const struct row *one = a;
    const struct row *other = b;
    if (one->updated_at.v != other->updated_at.v) {
        return one->updated_at.v > other->updated_at.v ? -1 : 1;
    }
    return strcmp(one->id.s, other->id.s);
}

static void keep_newest(struct listing *listing)
{
    if (listing->count > 0) {
        qsort(listing->rows, listing->count, sizeof(*listing->rows), newest_first);
    }
    while (listing->count > listing->limit) {
        row_done(&listing->rows[--listing->count]);
        listing->left_out++;
    }
}

static char *copy_of(const char *text)
{
    char *copy = strdup(text);
    if (copy == NULL) {
        check_failed("allocation", "a row", __FILE__, __LINE__);
    }
    return copy;
}

static void fill(struct row *row, const struct run *run)
{
    const struct run_turn *last = run->n_kept > 0 ? &run->turns[run->n_kept - 1] : NULL;
    *row = (struct row){.updated_at = run->updated_at,
                        .id = run->id,
                        .workflow = plain_id_of(run->workflow->name.s),
                        .task = run->task_id,
                        .state = run->state,
                        .n_turns = run->n_turns};
    if (last != NULL) {
        snprintf(row->at, sizeof(row->at), "%s at %s", last->slot.s, last->service.s);
    }
    row->why = run->why[0] != '\0' ? copy_of(run->why) : NULL;
}

static bool on_run(void *arg, const struct run *run)
{
    struct listing *listing = arg;
    if (listing->states != 0 && (listing->states & (1u << run->state)) == 0) {
        return true;
    }
    listing->open = listing->open || run_state_open(run->state);
    if (listing->limit == 0) {
        run_print_json(run, &listing->out);
        return listing->out.len < 65536 || command_print(listing->cmd, &listing->out);
    }
    listing->rows =
        array_grown(listing->rows, listing->count, &listing->cap, sizeof(*listing->rows));
    struct row *row = &listing->rows[listing->count++];
    fill(row, run);
    if (listing->cmd->json) {
        struct buf line = BUF_INIT;
        run_print_json(run, &line);
        row->json = copy_of(buf_ok(&line) ? line.data : "");
        buf_done(&line);
    }
    if (listing->count >= 2 * listing->limit || listing->count == listing->limit + LIST_SPARE) {
        keep_newest(listing);
    }
    return true;
}

/* ---- a page ---- */

/* On a terminal what fits 80 columns: the first digits of an id name a run, too. */
static void add_row(struct table *table, const struct row *row, bool narrow)
{
    table_bytes(table, row->id.s, strnlen(row->id.s, narrow ? SHORT_ID : ID_MAX));
    table_text(table, row->workflow.s);
    table_text(table, row->task.s);
    table_whole(table, run_state_word(row->state));
    table_text(table, row->at[0] != '\0' ? row->at : NULL);
    table_int(table, row->n_turns);
    table_whole(table, narrow ? quantity_age_text(wall_now().v - row->updated_at.v).s
                              : command_time(row->updated_at).s);
    table_text(table, row->why);
}

static baton_code print_table(struct listing *listing, struct baton_error *err)
{
    static const char *const wide[] = {"RUN", "WORKFLOW", "TASK",    "STATE",
                                       "AT",  "TURNS",    "UPDATED", "WHY"};
    static const char *const narrow[] = {"RUN", "WORKFLOW", "TASK", "STATE",
                                         "AT",  "TURNS",    "AGE",  "WHY"};
    const bool terminal = command_width() > 0;
    struct table *table = table_new(terminal ? narrow : wide, COUNT_OF(wide));
    if (table == NULL) {
        return baton_fail(err, BATON_E_no_memory, "no memory for a table");
    }
    for (size_t i = 0; i < listing->count; i++) {
        add_row(table, &listing->rows[i], terminal);
    }
    command_table(listing->cmd, table);
    table_free(table);
    return BATON_OK;
}

static baton_code print_page(struct listing *listing, struct baton_error *err)
{
    baton_code rc = BATON_OK;
    keep_newest(listing);
    if (!listing->cmd->json) {
        rc = print_table(listing, err);
    }
    for (size_t i = 0; listing->cmd->json && i < listing->count; i++) {
        buf_add_text(&listing->out, listing->rows[i].json);
    }
    if (listing->left_out > 0) {
        command_note(listing->cmd, "and %zu that changed earlier, beyond --limit",
                     listing->left_out);
    }
    return rc;
}

static int run_list(struct command *cmd)
{
    struct session session = {.log = NULL};
    struct baton_error err = {BATON_OK, ""};
    struct listing listing = {.cmd = cmd, .out = BUF_INIT};
    const char *state = command_text(cmd, "state");
    enum run_state wanted;
    int status = 0;
    if (state != NULL && !run_state_parse(state, strlen(state), &wanted)) {
        return command_usage(cmd,
                             "'%s' is no state of a run: active, waiting, completed, failed, "
                             "expired, cancelled",
                             text_quote_of(state).s);
    }
    listing.states = state != NULL ? 1u << wanted : 0;
    listing.limit = command_given(cmd, "limit") ? (size_t)command_int(cmd, "limit")
                    : cmd->json                 ? 0
                                                : LIMIT_LIST;
    baton_code rc = session_open(cmd, &session, &err);
    if (rc == BATON_OK) {
        rc = run_log_each(session.log, session.config, on_run, &listing, &err);
    }
    if (rc == BATON_OK && listing.limit > 0) {
        rc = print_page(&listing, &err);
    }
    command_print(cmd, &listing.out);
    if (rc == BATON_OK && listing.open && !cmd->json && !cmd->quiet &&
        run_log_still(session.log, session.config, LOG_GROUP_MS) == RUN_STILL_yes) {
        command_note(cmd, RUN_LOG_STILL);
    }
    if (rc != BATON_OK) {
        status = command_fail(cmd, rc, &err);
    }
    for (size_t i = 0; i < listing.count; i++) {
        row_done(&listing.rows[i]);
    }
    free(listing.rows);
    buf_done(&listing.out);
    session_done(&session);
    return status;
}

/* clang-format off */
static const struct command_option list_options[] = {
    {.name = "state", .argument = "WORD", .kind = OPTION_text,
     .help = "Only runs in this state: active, waiting, completed, failed, expired or cancelled."},
    {.name = "limit", .letter = 'n', .argument = "N", .kind = OPTION_int, .min = 1, .max = LIST_MAX,
     .help = "The newest N, changed last first. Without it 50 for people, and with --json every one, as it is read. At most 1000: a page is held to be sorted."},
};
/* clang-format on */

const struct baton_command cmd_runs_list = {
    .name = "list",
    .summary = "list runs, those that changed last first: where each is, and what it waits for",
    .usage = "[--state WORD] [--limit N] [--json]",
    .description = "From the run log, without a coordinator. With --json one object a line.",
    .options = list_options,
    .n_options = COUNT_OF(list_options),
    .examples = "baton runs list\n# what waits for a person\nbaton runs list --state waiting\n",
    .run = run_list,
};
