/*
 * `baton runs show`, and the table of the others.
 * In: deploy/baton.c
 * Out: producer/run_log.c
 */
#include "producer/cmd_runs.h"

#include "common/base/check.h"
#include "common/base/jsonw.h"
#include "common/base/limits.h"
#include "common/base/quantity.h"
#include "common/base/text.h"
#include "common/base/word.h"
#include "producer/run/draw.h"
#include "producer/run_log.h"
#include "producer/session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- one run ---- */

static void text_or_null(struct jsonw *w, const char *key, const char *text)
{
    jsonw_key_text(w, key, text != NULL && text[0] != '\0' ? text : NULL);
}

static void time_or_null(struct jsonw *w, const char *key, struct wall_ms at)
{
    jsonw_key_text(w, key, at.v != 0 ? wall_text(at).s : NULL);
}

static void json_turn(struct jsonw *w, const struct run_turn *turn)
{
    jsonw_begin_object(w);
    jsonw_key_int(w, "no", turn->no);
    jsonw_key_text(w, "turn_id", turn->id.s);
    jsonw_key_int(w, "epoch", turn->epoch);
    jsonw_key_int(w, "task_rev", turn->task_rev);
    jsonw_key_text(w, "by", turn->by.s);
    text_or_null(w, "from", turn->from.s);
    jsonw_key_text(w, "slot", turn->slot.s);
    jsonw_key_text(w, "role", role_word(turn->role));
    jsonw_key_text(w, "service", turn->service.s);
    jsonw_key_text(w, "born", turn->born.s);
    jsonw_key_int(w, "attempt", turn->attempt);
    jsonw_key_text(w, "state", turn_state_word(turn->state));
    text_or_null(w, "verdict", turn->has_verdict ? verdict_word(turn->verdict) : NULL);
    text_or_null(w, "code", turn->code != BATON_OK ? baton_code_word(turn->code) : NULL);
    jsonw_key_int(w, "cost_micros", turn->cost);
    time_or_null(w, "begun_at", turn->begun_at);
    time_or_null(w, "claimed_at", turn->claimed_at);
    time_or_null(w, "ended_at", turn->ended_at);
    jsonw_end(w);
}

/* 0: none, or what began the run. */
static int cap_of(const struct run *run, const struct run_edge *edge)
{
    for (size_t i = 0; i < run->workflow->n_transitions; i++) {
        if (strcmp(run->workflow->transitions[i].name.s, edge->name.s) == 0) {
            return run->workflow->transitions[i].cap;
        }
    }
    return 0;
}

static void json_edge(struct jsonw *w, const struct run *run, const struct run_edge *edge)
{
    jsonw_begin_object(w);
    jsonw_key_text(w, "name", edge->name.s);
    jsonw_key_int(w, "taken", edge->taken);
    jsonw_key_int(w, "cap", cap_of(run, edge));
    jsonw_key_int(w, "total", edge->total);
    jsonw_key_int(w, "cost_micros", edge->cost);
    jsonw_key_int(w, "time_ms", edge->time_ms);
    jsonw_end(w);
}

/* still: NULL where it is not part of the object. */
static void print_json(const struct run *run, const enum run_still *still, struct buf *out)
{
    struct jsonw w = jsonw_to(out);
    jsonw_begin_object(&w);
    jsonw_key_text(&w, "run_id", run->id.s);
    jsonw_key_text(&w, "workflow", run->workflow->name.s);
    jsonw_key_text(&w, "digest", run->workflow->digest);
    jsonw_key_int(&w, "epoch", run->epoch);
    jsonw_key_text(&w, "state", run_state_word(run->state));
    text_or_null(&w, "why", run->why);
    text_or_null(&w, "code", run->code != BATON_OK ? baton_code_word(run->code) : NULL);
    text_or_null(&w, "stage", run->stage.s);
    text_or_null(&w, "pending", run->pending.turn.s);
    if (still != NULL && *still != RUN_STILL_unseen) {
        jsonw_key_bool(&w, "no_coordinator", *still == RUN_STILL_yes);
    } else if (still != NULL) {
        jsonw_key_text(&w, "no_coordinator", NULL);
    }
    jsonw_key_text(&w, "task_id", run->task_id.s);
    jsonw_key_int(&w, "task_rev", run->task_rev);
    jsonw_key_text(&w, "task_status", task_status_word(run->task_status));
    jsonw_key_text(&w, "by", run->by.s);
    jsonw_key_text(&w, "summary", run->summary);
    jsonw_key_int(&w, "requests", run->request_no);
    jsonw_key_int(&w, "cost_micros", run_cost(run));
    time_or_null(&w, "started_at", run->started_at);
    time_or_null(&w, "deadline", run->deadline);
    time_or_null(&w, "updated_at", run->updated_at);
    time_or_null(&w, "ended_at", run->ended_at);
    jsonw_key(&w, "edges");
    jsonw_begin_array(&w);
    for (size_t i = 0; i < run->n_edges; i++) {
        json_edge(&w, run, &run->edges[i]);
    }
    jsonw_end(&w);
    jsonw_key(&w, "turns");
    jsonw_begin_array(&w);
    for (size_t i = 0; i < run->n_kept; i++) {
        json_turn(&w, &run->turns[i]);
    }
    jsonw_end(&w);
    jsonw_end(&w);
    buf_add_char(out, '\n');
}

void run_print_json(const struct run *run, struct buf *out)
{
    print_json(run, NULL, out);
}

/* "0.0125" dollars; "-" where nothing was told. */
static void money(struct table *table, int64_t micros)
{
    char text[32];
    snprintf(text, sizeof(text), "%lld.%04lld", (long long)(micros / 1000000),
             (long long)(micros % 1000000 / 100));
    table_whole(table, micros > 0 ? text : NULL);
}

/* What other commands want to be told of its turns. */
static void print_turns(const struct run *run, struct buf *out)
{
    static const char *const titles[] = {"NO", "TURN", "ROLE", "BEGUN"};
    struct table *table = table_new(titles, COUNT_OF(titles));
    for (size_t i = 0; table != NULL && i < run->n_kept; i++) {
        const struct run_turn *turn = &run->turns[i];
        table_int(table, turn->no);
        table_whole(table, turn->id.s);
        table_whole(table, role_word(turn->role));
        table_whole(table, command_time(turn->begun_at).s);
    }
    out->broken = out->broken || table == NULL || !table_print(table, command_width(), out);
    table_free(table);
}

static void print_edges(const struct run *run, struct buf *out)
{
    static const char *const titles[] = {"TRANSITION", "TAKEN", "CAP", "EVER", "COST", "TIME"};
    struct table *table = table_new(titles, COUNT_OF(titles));
    for (size_t i = 0; table != NULL && i < run->n_edges; i++) {
        const struct run_edge *edge = &run->edges[i];
        const int cap = cap_of(run, edge);
        table_text(table, edge->name.s);
        table_int(table, edge->taken);
        if (cap > 0) {
            table_int(table, cap);
        } else {
            table_text(table, NULL);
        }
        table_int(table, edge->total);
        money(table, edge->cost);
        table_whole(table, quantity_duration_text(edge->time_ms).s);
    }
    out->broken = out->broken || table == NULL || !table_print(table, command_width(), out);
    table_free(table);
}

static void run_print_text(const struct run *run, enum run_still still, struct buf *out)
{
    const struct wall_ms now = wall_now();
    buf_printf(out, "run %s  %s  %s, epoch %d\n", run->id.s, run->workflow->name.s,
               run_state_word(run->state), run->epoch);
    buf_printf(out, "task %s, revision %d, %s: ", run->task_id.s, run->task_rev,
               task_status_word(run->task_status));
    text_add(out, run->summary, strlen(run->summary), 200);
    buf_printf(out, "\nstarted by %s at %s", run->by.s, command_time(run->started_at).s);
    if (run->deadline.v > 0 && run_state_open(run->state)) {
        buf_printf(out, ", over at %s", command_time(run->deadline).s);
    }
    if (run->ended_at.v > 0) {
        buf_printf(out, ", ended at %s", command_time(run->ended_at).s);
    }
    buf_add_char(out, '\n');
    if (run->why[0] != '\0') {
        buf_add_text(out, run->state == RUN_waiting ? "waits for a person: " : "why: ");
        text_add(out, run->why, strlen(run->why), 0);
        buf_add_char(out, '\n');
    }
    if (still == RUN_STILL_yes) {
        buf_add_text(out, RUN_LOG_STILL "\n");
    }
    run_draw_now(run, now, out);
    buf_add_char(out, '\n');
    run_draw(run, now, out);
    buf_add_char(out, '\n');
    print_edges(run, out);
    buf_add_char(out, '\n');
    print_turns(run, out);
}

void run_print(struct command *cmd, const struct session *session, const struct run *run,
               int64_t timeout_ms)
{
    struct buf out = BUF_INIT;
    const enum run_still still = run_state_open(run->state)
                                     ? run_log_still(session->log, session->config, timeout_ms)
                                     : RUN_STILL_unseen;
    if (cmd->json) {
        print_json(run, &still, &out);
    } else {
        run_print_text(run, still, &out);
    }
    command_print(cmd, &out);
    buf_done(&out);
}

static int run_show(struct command *cmd)
{
    struct session session = {.log = NULL};
    struct run *run = NULL;
    struct baton_error err = {BATON_OK, ""};
    baton_code rc = session_open(cmd, &session, &err);
    if (rc == BATON_OK) {
        rc = run_log_find(session.log, session.config, cmd->args[0], &run, &err);
    }
    if (rc != BATON_OK) {
        session_done(&session);
        return command_fail(cmd, rc, &err);
    }
    run_print(cmd, &session, run, LOG_GROUP_MS);
    run_free(run);
    session_done(&session);
    return 0;
}

static const struct baton_command cmd_runs_show = {
    .name = "show",
    .summary = "show a run: who is at turn, the path so far, what each transition took",
    .usage = "RUN [--json]",
    .description =
        "RUN is the run's id, or its first characters. First stands who is at turn, since when and "
        "why, or what a person can do; then the path so far as a graph: each turn below the one "
        "that it follows, with the transition between them and its round, the turn's number, "
        "slot, service (and the one that took over, with the attempt), what it said, how long it "
        "took, and what it cost in dollars; dotted, what may come next. Below it stand the "
        "transitions that were taken: how often since a person touched the run, the cap, and what "
        "their turns cost; and the turns' ids, for `baton turns show`.\n\n"
        "With --json `no_coordinator` says whether an open run stands still since no coordinator "
        "runs; it is null where that cannot be seen, and of a run that has ended.",
    .args_min = 1,
    .args_max = 1,
    .examples = "baton runs show r-3f0c\nbaton runs show r-3f0c --json\n",
    .run = run_show,
};

static const struct baton_command *const subcommands[] = {
    &cmd_runs_start, &cmd_runs_list,  &cmd_runs_show,   &cmd_runs_watch,
    &cmd_runs_wait,  &cmd_runs_touch, &cmd_runs_cancel, &cmd_runs_reopen};

const struct baton_command cmd_runs = {
    .name = "runs",
    .summary = "start, follow, touch, cancel and reopen runs of workflows",
    .usage = "start|list|show|watch|wait|touch|cancel|reopen",
    .description = "A run is one execution of a workflow over a task. Coordinators move it; what "
                   "is asked of it "
                   "here is a signed request, which one of them answers.",
    .subcommands = subcommands,
    .n_subcommands = COUNT_OF(subcommands),
    .examples = "baton runs start --workflow paired-review --task fix-parser.md --wait\n"
                "baton runs list\n",
};
