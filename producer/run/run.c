/*
 * Runs: their moves, their counters and their turns. Called by the handoff operation and the
 * coordinator; run_record.c writes and reads them.
 */
#include "producer/run/run.h"

#include "common/base/check.h"
#include "common/base/diag.h"
#include "common/base/metrics.h"
#include "common/base/word.h"
#include "common/record/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RUN_WORD(word, flags, moves) #word,
static const char *const state_words[] = {RUN_STATES(RUN_WORD)};
#undef RUN_WORD
#define RUN_ROW(word, flags, moves) {flags, moves},
static const struct {
    unsigned flags;
    unsigned moves;
} state_rows[] = {RUN_STATES(RUN_ROW)};
#undef RUN_ROW

#define STATUS_ROW(role, verdict, status, rises)                                                   \
    {ROLE_##role, VERDICT_##verdict, TASK_STATUS_##status, rises},
static const struct {
    enum role role;
    enum verdict verdict;
    enum task_status status;
    bool rises;
} status_moves[] = {STATUS_MOVES(STATUS_ROW)};
#undef STATUS_ROW

const char *run_state_word(enum run_state state)
{
    BATON_PRE((unsigned)state < RUN_STATE_COUNT);
    return state_words[state];
}

bool run_state_parse(const char *text, size_t text_len, enum run_state *ret_state)
{
    const int i = word_find(state_words, COUNT_OF(state_words), text, text_len);
    if (i >= 0) {
        *ret_state = (enum run_state)i;
    }
    return i >= 0;
}

bool run_state_open(enum run_state state)
{
    BATON_PRE((unsigned)state < RUN_STATE_COUNT);
    return (state_rows[state].flags & STATE_OPEN) != 0;
}

bool run_state_may_move(enum run_state from, enum run_state to)
{
    BATON_PRE((unsigned)from < RUN_STATE_COUNT && (unsigned)to < RUN_STATE_COUNT);
    return (state_rows[from].moves & (1u << to)) != 0;
}

/* ---- life ---- */

static void forget_pending(struct run *run);

void run_free(struct run *run)
{
    if (run != NULL) {
        free(run->summary);
        free(run->data);
        free(run->payload);
        free(run->subject);
        forget_pending(run);
        run_ask_done(run);
        free(run->later);
        free(run->edges);
        free(run->turns);
        if (!run->shelved) {
            workflow_free(run->workflow);
        }
        free(run);
    }
}

baton_code run_copy(const struct run *from, struct run **ret_to)
{
    struct buf value = BUF_INIT;
    struct workflow *known[2] = {from->workflow};
    struct workflow_shelf shelf = {.list = known, .count = 1, .cap = COUNT_OF(known)};
    baton_code rc = BATON_E_no_memory;
    run_encode(from, &value);
    if (buf_ok(&value)) {
        rc = run_parse_shelved(value.data, value.len, from->shelved ? &shelf : NULL, ret_to, NULL);
    }
    if (rc == BATON_OK) {
        (*ret_to)->shelved = from->shelved && (*ret_to)->workflow == from->workflow;
    }
    buf_done(&value);
    return rc;
}

/* ---- moves ---- */

static void set_why(struct run *run, const char *why)
{
    snprintf(run->why, sizeof(run->why), "%s", why);
}

bool run_move(struct run *run, enum run_state to, const char *why, struct wall_ms now)
{
    if (!run_state_may_move(run->state, to) || !run_state_open(run->state)) {
        return false;
    }
    diag_line(DIAG_info, "run.moved", D_TEXT("run", run->id.s), D_INT("epoch", run->epoch),
              D_TEXT("from", run_state_word(run->state)), D_TEXT("to", run_state_word(to)),
              D_TEXT("why", why));
    run->state = to;
    set_why(run, why);
    run->updated_at = now;
    if (to != RUN_waiting) {
        run->code = BATON_OK;
        run->stage.s[0] = '\0';
    }
    if (!run_state_open(to)) {
        metric_add(METRIC_runs_ended, 1);
        forget_pending(run);
        run_ask_done(run);
    }
    run->ended_at = run_state_open(to) ? (struct wall_ms){0} : now;
    return true;
}

void run_reopen(struct run *run, const char *why, struct wall_ms now)
{
    BATON_PRE(!run_state_open(run->state));
    diag_line(DIAG_info, "run.moved", D_TEXT("run", run->id.s), D_INT("epoch", run->epoch + 1),
              D_TEXT("from", run_state_word(run->state)), D_TEXT("to", run_state_word(RUN_active)),
              D_TEXT("why", why));
    run->epoch++;
    run->state = RUN_active;
    run->task_status = TASK_STATUS_active;
    run->ended_at = (struct wall_ms){0};
    run->updated_at = now;
    free(run->subject);
    run->subject = NULL;
    set_why(run, why);
    run_touch(run);
}

void run_freeze_subject(struct run *run, const char *subject)
{
    if (run->subject == NULL) {
        run->subject = strdup(subject);
        BATON_INVARIANT(run->subject != NULL);
    }
}

void run_touch(struct run *run)
{
    for (size_t i = 0; i < run->n_edges; i++) {
        run->edges[i].taken = 0;
    }
}

void run_pend(struct run *run, const char *turn_id, char *take_target, char *take_summary,
              char *take_data)
{
    free(run->pending.target);
    free(run->pending.summary);
    free(run->pending.data);
    run->pending = (struct run_pending){turn_id_of(turn_id), take_target, take_summary, take_data};
}

/* Bytes of a text as it is written, at most. */
static size_t written(const char *text)
{
    size_t n = 0;
    for (const unsigned char *at = (const unsigned char *)text; at != NULL && *at != '\0'; at++) {
        const bool escaped = *at == '"' || *at == '\\';
        n += *at < 0x20 || *at == 0x7F ? 6 : *at >= 0x80 ? 3 : escaped ? 2 : 1;
    }
    return n;
}

static void leave_out(struct run *run, const char *turn_id, size_t room, char **text)
{
    if (*text != NULL && written(*text) > room) {
        diag_line(DIAG_warn, "run.end_cut", D_TEXT("run", run->id.s), D_TEXT("turn", turn_id),
                  D_INT("bytes", (int64_t)strlen(*text)), D_INT("room", (int64_t)room));
        free(*text);
        *text = NULL;
    }
}

bool run_pend_later(struct run *run, const char *turn_id, char *take_target, char *take_summary,
                    char *take_data)
{
    struct run_pending *more = realloc(run->later, (run->n_later + 1) * sizeof(*more));
    if (more == NULL) {
        return false;
    }
    run->later = more;
    size_t room = RUN_LATER_MAX;
    for (size_t i = 0; i < run->n_later; i++) {
        const size_t n = written(more[i].summary) + written(more[i].data);
        room -= n < room ? n : room;
    }
    leave_out(run, turn_id, room, &take_summary);
    leave_out(run, turn_id, room - written(take_summary), &take_data);
    run->later[run->n_later++] =
        (struct run_pending){turn_id_of(turn_id), take_target, take_summary, take_data};
    return true;
}

bool run_pend_next(struct run *run)
{
    if (run->n_later == 0) {
        return false;
    }
    BATON_PRE(run->pending.turn.s[0] == '\0');
    run->pending = run->later[0];
    run->n_later--;
    memmove(run->later, run->later + 1, run->n_later * sizeof(run->later[0]));
    return true;
}

void run_pend_answered(struct run *run, const char *slot)
{
    size_t kept = 0;
    run_pend(run, "", NULL, NULL, NULL);
    for (size_t i = 0; i < run->n_later; i++) {
        struct run_pending *one = &run->later[i];
        const struct run_turn *turn = run_turn_find(run, one->turn.s);
        if (turn != NULL && strcmp(turn->slot.s, slot) != 0) {
            run->later[kept++] = *one;
        } else {
            free(one->target);
            free(one->summary);
            free(one->data);
        }
    }
    run->n_later = kept;
}

void run_hold(struct run *run, const char *turn_id, char *take_summary)
{
    free(run->held.summary);
    run->held = (struct run_pending){.turn = turn_id_of(turn_id), .summary = take_summary};
}

bool run_ask(struct run *run, const struct run_asked *asked)
{
    if (strlen(asked->data) > RUN_DATA_MAX) {
        return false;
    }
    run_ask_done(run);
    run->asked = (struct run_asked){.request = asked->request,
                                    .by = asked->by,
                                    .person = asked->person,
                                    .from = strdup(asked->from),
                                    .target = strdup(asked->target),
                                    .summary = strdup(asked->summary),
                                    .data = strdup(asked->data)};
    BATON_INVARIANT(run->asked.from != NULL && run->asked.target != NULL &&
                    run->asked.summary != NULL && run->asked.data != NULL);
    return true;
}

void run_ask_done(struct run *run)
{
    free(run->asked.from);
    free(run->asked.target);
    free(run->asked.summary);
    free(run->asked.data);
    run->asked = (struct run_asked){.person = false};
}

static void forget_pending(struct run *run)
{
    run_hold(run, "", NULL);
    do {
        run_pend(run, "", NULL, NULL, NULL);
    } while (run_pend_next(run));
}

static struct run_edge *edge_find(const struct run *run, const char *transition)
{
    for (size_t i = 0; i < run->n_edges; i++) {
        if (strcmp(run->edges[i].name.s, transition) == 0) {
            return &run->edges[i];
        }
    }
    return NULL;
}

bool run_count(struct run *run, const char *transition)
{
    struct run_edge *edge = edge_find(run, transition);
    if (edge == NULL) {
        struct run_edge *more = realloc(run->edges, (run->n_edges + 1) * sizeof(*more));
        if (more == NULL) {
            return false;
        }
        run->edges = more;
        edge = &run->edges[run->n_edges++];
        *edge = (struct run_edge){.name = plain_id_of(transition)};
    }
    edge->taken++;
    edge->total++;
    run_hold(run, "", NULL);
    return true;
}

struct run_turn *run_add_turn(struct run *run)
{
    if (run->n_kept == RUN_TURNS_MAX) {
        size_t oldest = 0;
        while (oldest < run->n_kept && turn_state_open(run->turns[oldest].state)) {
            oldest++;
        }
        if (oldest == run->n_kept) {
            return NULL;
        }
        memmove(&run->turns[oldest], &run->turns[oldest + 1],
                (run->n_kept - oldest - 1) * sizeof(run->turns[0]));
        run->n_kept--;
    }
    if ((run->n_kept & (run->n_kept - 1)) == 0) { /* full at each power of two */
        struct run_turn *more =
            realloc(run->turns, (run->n_kept == 0 ? 1 : 2 * run->n_kept) * sizeof(*more));
        if (more == NULL) {
            return NULL;
        }
        run->turns = more;
    }
    struct run_turn *turn = &run->turns[run->n_kept++];
    *turn = (struct run_turn){.no = ++run->n_turns, .epoch = run->epoch, .state = TURN_queued};
    return turn;
}

static void status_follows(struct run *run, const struct run_turn *turn)
{
    for (size_t i = 0; i < COUNT_OF(status_moves); i++) {
        if (status_moves[i].role == turn->role && status_moves[i].verdict == turn->verdict) {
            run->task_status = status_moves[i].status;
            run->task_rev += status_moves[i].rises && run->task_rev < INT32_MAX ? 1 : 0;
        }
    }
}

void run_turn_end(struct run *run, struct run_turn *turn, enum turn_state state, struct wall_ms now)
{
    BATON_PRE(turn_state_open(turn->state) && state != TURN_delegated);
    turn->state = state;
    if (state == TURN_parked) {
        return;
    }
    turn->ended_at = now;
    struct run_edge *edge = edge_find(run, turn->by.s);
    if (edge != NULL) {
        edge->cost = run_sum(edge->cost, turn->cost);
        edge->time_ms =
            run_sum(edge->time_ms, now.v > turn->begun_at.v ? now.v - turn->begun_at.v : 0);
    }
    if (state == TURN_completed && turn->has_verdict) {
        status_follows(run, turn);
    }
}

/* ---- questions ---- */

struct run_turn *run_turn_find(struct run *run, const char *turn_id)
{
    for (size_t i = run->n_kept; i-- > 0;) {
        if (strcmp(run->turns[i].id.s, turn_id) == 0) {
            return &run->turns[i];
        }
    }
    return NULL;
}

size_t run_turns_open(const struct run *run)
{
    size_t n = 0;
    for (size_t i = 0; i < run->n_kept; i++) {
        n += turn_state_open(run->turns[i].state);
    }
    return n;
}

int run_taken(const struct run *run, const char *transition)
{
    const struct run_edge *edge = edge_find(run, transition);
    return edge != NULL ? edge->taken : 0;
}

int run_total(const struct run *run, const char *transition)
{
    const struct run_edge *edge = edge_find(run, transition);
    return edge != NULL ? edge->total : 0;
}

size_t run_slot(const struct run *run, const char *name)
{
    for (size_t slot = 0; slot < run->workflow->n_slots; slot++) {
        if (strcmp(workflow_slot_text(run->workflow, slot).s, name) == 0) {
            return slot;
        }
    }
    return SIZE_MAX;
}

bool run_begun(const struct run *run)
{
    for (size_t i = 0; i < run->n_kept; i++) {
        if (run->turns[i].epoch == run->epoch) {
            return true;
        }
    }
    return false;
}

int64_t run_sum(int64_t a, int64_t b)
{
    return a > JSON_INT_MAX - b ? JSON_INT_MAX : a + b;
}

int64_t run_cost(const struct run *run)
{
    int64_t cost = 0;
    for (size_t i = 0; i < run->n_edges; i++) {
        cost = run_sum(cost, run->edges[i].cost);
    }
    for (size_t i = 0; i < run->n_kept; i++) {
        cost = run_sum(cost, turn_state_open(run->turns[i].state) ? run->turns[i].cost : 0);
    }
    return cost;
}
