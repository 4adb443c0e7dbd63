/*
 * Draws the path of a run.
 *
 *   start
 *    |
 *   #1 owner at alpha                      done     12s  0.0125
 *    |  review
 *   #2 reviewer at beta -> gamma (2)    running   3m05s
 *    :  changes -> owner (3 left)
 *    :  approve -> the run is completed
 *
 * A turn stands below the one that it follows. Where several follow one, each gets a branch.
 *
 * In: producer/cmd_runs.c
 * Out: producer/run/run.h
 */
#include "producer/run/draw.h"

#include "common/base/check.h"
#include "common/base/text.h"

#include <stdio.h>
#include <string.h>

#define LEFT_WIDTH 40 /* of slot and services; longer ones move what stands to the right of them */
#define INDENT_MAX 40 /* deeper branches are not moved any further to the right */
#define RUN_SHOWN 10  /* characters of its id that commands are told with */
#define NONE SIZE_MAX

struct drawing {
    const struct run *run;
    struct wall_ms now;
    struct buf *out;
    size_t follows[RUN_TURNS_MAX]; /* of each turn: the one that it follows, or NONE */
    int state_width;
    int time_width;
    int cost_width; /* 0: nothing has cost anything */
};

/* ---- words ---- */

struct word {
    char s[48];
};

static struct word time_word(int64_t ms)
{
    struct word word;
    const long long s = ms > 0 ? ms / 1000 : 0;
    if (s == 0) {
        snprintf(word.s, sizeof(word.s), "%lldms", ms > 0 ? (long long)ms : 0LL);
    } else if (s < 60) {
        snprintf(word.s, sizeof(word.s), "%llds", s);
    } else if (s < 3600) {
        snprintf(word.s, sizeof(word.s), "%lldm%02llds", s / 60, s % 60);
    } else if (s < 86400) {
        snprintf(word.s, sizeof(word.s), "%lldh%02lldm", s / 3600, s / 60 % 60);
    } else {
        snprintf(word.s, sizeof(word.s), "%lldd%02lldh", s / 86400, s / 3600 % 24);
    }
    return word;
}

static struct word cost_word(int64_t micros)
{
    struct word word = {""};
    if (micros > 0) {
        snprintf(word.s, sizeof(word.s), "%lld.%04lld", (long long)(micros / 1000000),
                 (long long)(micros % 1000000 / 100));
    }
    return word;
}

static const char *state_of(const struct run_turn *turn)
{
    return turn->has_verdict && !turn_state_open(turn->state) ? verdict_word(turn->verdict)
                                                              : turn_state_word(turn->state);
}

static int64_t lasts(const struct drawing *d, const struct run_turn *turn)
{
    const struct wall_ms end = turn->ended_at.v > 0 ? turn->ended_at : d->now;
    return end.v - turn->begun_at.v;
}

/* ---- what follows what ---- */

/* The newest turn before it that had the sender's slot. */
static size_t follows(const struct run *run, size_t at)
{
    const struct run_turn *turn = &run->turns[at];
    for (size_t i = at; turn->from.s[0] != '\0' && i-- > 0;) {
        const struct run_turn *one = &run->turns[i];
        if (one->epoch == turn->epoch && strcmp(one->slot.s, turn->from.s) == 0) {
            return i;
        }
    }
    return NONE;
}

/* Is it of the same taking as the turn before it: a transition to several slots? */
static bool same_taking(const struct run *run, size_t at)
{
    for (size_t i = at; i-- > 0;) {
        const struct run_turn *one = &run->turns[i];
        if (one->no != run->turns[at].no - (int)(at - i) || one->epoch != run->turns[at].epoch ||
            strcmp(one->by.s, run->turns[at].by.s) != 0 ||
            strcmp(one->from.s, run->turns[at].from.s) != 0 ||
            strcmp(one->slot.s, run->turns[at].slot.s) == 0) {
            return i + 1 < at;
        }
    }
    return at > 0;
}

/* The how manieth taking of its transition it came by, from 1; older ones may not be kept any more. */
static int round_of(const struct run *run, size_t at)
{
    int later = 0;
    for (size_t i = at + 1; i < run->n_kept; i++) {
        later += strcmp(run->turns[i].by.s, run->turns[at].by.s) == 0 && !same_taking(run, i);
    }
    return run_total(run, run->turns[at].by.s) - later;
}

/* ---- lines ---- */

static void line(struct buf *out, const char *indent, const char *text)
{
    const size_t room = RUN_DRAW_WIDTH - strlen(indent);
    const bool cut = strlen(text) > room;
    buf_printf(out, "%s%.*s%s\n", indent, (int)(cut ? room - 3 : room), text, cut ? "..." : "");
}

static void draw_turn(const struct drawing *d, const char *indent, const struct run_turn *turn)
{
    char left[256];
    char right[128];
    const bool moved = strcmp(turn->born.s, turn->service.s) != 0;
    int n = snprintf(left, sizeof(left), "%s#%d %s at %s%s%s", indent, turn->no, turn->slot.s,
                     turn->born.s, moved ? " -> " : "", moved ? turn->service.s : "");
    if (turn->attempt > 1) {
        n += snprintf(left + n, sizeof(left) - (size_t)n, " (%d)", turn->attempt);
    }
    const int m = snprintf(right, sizeof(right), "  %-*s  %*s%*s", d->state_width, state_of(turn),
                           d->time_width, time_word(lasts(d, turn)).s,
                           d->cost_width > 0 ? d->cost_width + 2 : 0, cost_word(turn->cost).s);
    const int most = RUN_DRAW_WIDTH - m;
    const int room = n < LEFT_WIDTH && LEFT_WIDTH < most ? LEFT_WIDTH : n < most ? n : most;
    if (n > room) {
        snprintf(left + room - 3, 4, "...");
    }
    for (int end = m; end > 0 && right[end - 1] == ' '; end--) {
        right[end - 1] = '\0';
    }
    buf_printf(d->out, "%-*s%s\n", room, left, right);
}

/* "review", "changes, round 2". */
static struct word edge_word(const struct run *run, size_t at)
{
    struct word word;
    const struct run_turn *turn = &run->turns[at];
    const int round = round_of(run, at);
    snprintf(word.s, sizeof(word.s), round > 1 ? "%.30s, round %d" : "%.30s", turn->by.s, round);
    return word;
}

/* What the verdicts of a slot would lead to: a line each. */
static void add_next(const struct drawing *d, const char *indent, size_t slot)
{
    const struct run *run = d->run;
    char text[256];
    for (size_t i = 0; i < run->workflow->n_transitions; i++) {
        const struct workflow_transition *one = &run->workflow->transitions[i];
        const int left = one->cap - run_taken(run, one->name.s);
        if (one->from == slot && one->on != 0) {
            const int n = snprintf(text, sizeof(text), " :  %s -> %.100s", one->name.s, one->to);
            if (one->cap > 0 && left > 0) {
                snprintf(text + n, sizeof(text) - (size_t)n, " (%d left)", left);
            } else if (one->cap > 0) {
                snprintf(text + n, sizeof(text) - (size_t)n, " (at its cap)");
            }
            line(d->out, indent, text);
        }
    }
    for (size_t i = 0; i < run->workflow->n_ends; i++) {
        const struct workflow_end *one = &run->workflow->ends[i];
        if (one->from == slot) {
            snprintf(text, sizeof(text), " :  %s -> the run is %s", one->name.s,
                     one->as == WORKFLOW_END_completed ? "completed" : "failed");
            line(d->out, indent, text);
        }
    }
}

static void draw_next(const struct drawing *d, const char *indent, const struct run_turn *turn)
{
    const size_t slot = run_slot(d->run, turn->slot.s);
    if (turn_state_open(turn->state) && run_state_open(d->run->state) && slot != NONE) {
        add_next(d, indent, slot);
    }
}

/* The end that this turn led to, where it is the one that ended the run. */
static void draw_end(const struct drawing *d, const char *indent, const struct run_turn *turn)
{
    const size_t slot = run_slot(d->run, turn->slot.s);
    const struct workflow_end *end = slot != NONE && turn->has_verdict
                                         ? workflow_end_on(d->run->workflow, slot, turn->verdict)
                                         : NULL;
    if (end != NULL && turn->epoch == d->run->epoch && turn->state == TURN_completed) {
        char text[96];
        snprintf(text, sizeof(text), " |  %s", end->name.s);
        line(d->out, indent, text);
        const bool over = d->run->state == RUN_completed || d->run->state == RUN_failed;
        line(d->out, indent, over ? run_state_word(d->run->state) : "end");
    }
}

/* ---- the graph ---- */

static size_t next_of(const struct drawing *d, size_t parent, size_t from)
{
    for (size_t i = from; i < d->run->n_kept; i++) {
        if (d->follows[i] == parent) {
            return i;
        }
    }
    return NONE;
}

/* A turn and all that follows from it. Recursion: as deep as branches nest, at most RUN_TURNS_MAX. */
static void draw_from(const struct drawing *d, const char *indent, size_t at)
{
    for (;;) {
        const struct run_turn *turn = &d->run->turns[at];
        const size_t first = next_of(d, at, at + 1);
        const size_t second = first != NONE ? next_of(d, at, first + 1) : NONE;
        draw_turn(d, indent, turn);
        if (first == NONE) {
            draw_next(d, indent, turn);
            draw_end(d, indent, turn);
            return;
        }
        if (second == NONE) {
            char text[64];
            snprintf(text, sizeof(text), " |  %s", edge_word(d->run, first).s);
            line(d->out, indent, text);
            at = first;
            continue;
        }
        for (size_t child = first; child != NONE;) {
            const size_t sibling = next_of(d, at, child + 1);
            char text[64];
            char deeper[INDENT_MAX + 8];
            snprintf(text, sizeof(text), " +- %s", edge_word(d->run, child).s);
            line(d->out, indent, text);
            const bool room = strlen(indent) + 4 <= INDENT_MAX;
            snprintf(deeper, sizeof(deeper), "%s%s", indent,
                     !room             ? ""
                     : sibling != NONE ? " |  "
                                       : "    ");
            draw_from(d, deeper, child);
            child = sibling;
        }
        return;
    }
}

static void measure(struct drawing *d)
{
    for (size_t i = 0; i < d->run->n_kept; i++) {
        const struct run_turn *turn = &d->run->turns[i];
        const int state = (int)strlen(state_of(turn));
        const int time = (int)strlen(time_word(lasts(d, turn)).s);
        const int cost = (int)strlen(cost_word(turn->cost).s);
        d->follows[i] = follows(d->run, i);
        d->state_width = state > d->state_width ? state : d->state_width;
        d->time_width = time > d->time_width ? time : d->time_width;
        d->cost_width = cost > d->cost_width ? cost : d->cost_width;
    }
}

void run_draw(const struct run *run, struct wall_ms now, struct buf *out)
{
    struct drawing d = {.run = run, .now = now, .out = out};
    measure(&d);
    if (run->n_turns > (int)run->n_kept) {
        buf_printf(out, "(%d earlier turns are not kept)\n", run->n_turns - (int)run->n_kept);
    }
    for (size_t i = 0; i < run->n_kept; i++) {
        const struct run_turn *turn = &run->turns[i];
        if (d.follows[i] != NONE) {
            continue;
        }
        if (i == 0 || strcmp(turn->by.s, RUN_START) != 0 || !same_taking(run, i)) {
            buf_add_text(out, strcmp(turn->by.s, RUN_START) == 0 ? RUN_START : edge_word(run, i).s);
            if (turn->epoch > 1 && strcmp(turn->by.s, RUN_START) == 0) {
                buf_printf(out, ", epoch %d", turn->epoch);
            }
            buf_add_text(out, "\n |\n");
        }
        draw_from(&d, "", i);
    }
}

/* ---- now ---- */

static const struct run_turn *before(const struct run *run, const struct run_turn *turn)
{
    const size_t at = follows(run, (size_t)(turn - run->turns));
    return at != NONE ? &run->turns[at] : NULL;
}

static void add_at_turn(const struct run *run, const struct run_turn *turn, struct wall_ms now,
                        struct buf *out)
{
    const struct run_turn *sender = before(run, turn);
    const bool runs = turn->state == TURN_running && turn->claimed_at.v > 0;
    const struct wall_ms since = runs ? turn->claimed_at : turn->begun_at;
    buf_printf(out, "at turn: %s at %s as %s, %s", turn->slot.s, turn->service.s,
               role_word(turn->role), turn_state_word(turn->state));
    /* Of a parked one the run knows when it began, and not when it was parked. */
    buf_printf(
        out, turn->state == TURN_parked ? "; it began %s ago, at %.19sZ" : " for %s, since %.19sZ",
        time_word(now.v - since.v).s, wall_text(since).s);
    if (turn->attempt > 1) {
        buf_printf(out, ", attempt %d", turn->attempt);
    }
    if (turn->state == TURN_parked) {
        buf_printf(out, "\n    because: %s", baton_code_word(turn->code));
    } else if (sender != NULL && sender->has_verdict) {
        buf_printf(out, "\n    because: %s said %s (%s)", sender->slot.s,
                   verdict_word(sender->verdict), turn->by.s);
    } else {
        buf_printf(out, "\n    because: %s", turn->by.s);
    }
    buf_add_char(out, '\n');
}

/* Does its target tell it apart from the sender's other transitions? */
static bool only_one_to(const struct workflow *workflow, const struct workflow_transition *one)
{
    for (size_t i = 0; i < workflow->n_transitions; i++) {
        const struct workflow_transition *other = &workflow->transitions[i];
        if (other != one && other->from == one->from && strcmp(other->to, one->to) == 0) {
            return false;
        }
    }
    return true;
}

/* What a person can do who finds it waiting. */
static void add_help(const struct run *run, struct buf *out)
{
    const struct run_turn *last = run->n_kept > 0 ? &run->turns[run->n_kept - 1] : NULL;
    for (size_t i = 0; i < run->n_kept; i++) {
        if (run->turns[i].state == TURN_parked) {
            buf_printf(out, "next: `baton dlq replay %s`\n", run->turns[i].id.s);
            return;
        }
    }
    const struct run_turn *sender = NULL;
    for (size_t i = 0; i < run->n_kept && run->pending.turn.s[0] != '\0'; i++) {
        sender = strcmp(run->turns[i].id.s, run->pending.turn.s) == 0 ? &run->turns[i] : sender;
    }
    sender = sender != NULL ? sender : last;
    if (run->stage.s[0] != '\0') {
        buf_printf(out, "next: `baton runs touch %.*s` decides again\n", RUN_SHOWN, run->id.s);
    }
    const size_t slot = sender != NULL ? run_slot(run, sender->slot.s) : NONE;
    for (size_t i = 0; slot != NONE && i < run->workflow->n_transitions; i++) {
        const struct workflow_transition *one = &run->workflow->transitions[i];
        if (one->from == slot && (one->cap == 0 || run_taken(run, one->name.s) < one->cap)) {
            const char *to = only_one_to(run->workflow, one) ? one->to : one->name.s;
            const char *quote = strcmp(to, "*") == 0 ? "'" : "";
            buf_printf(out,
                       "next: `baton handoff --run %.*s --from %s --to %s%s%s --summary TEXT`\n",
                       RUN_SHOWN, run->id.s, sender->slot.s, quote, to, quote);
        }
    }
}

void run_draw_next(const struct run *run, struct buf *out)
{
    if (run->asked.request.s[0] != '\0') {
        buf_printf(out, "hook: looks at the handoff %s -> %s that %s asks for\n", run->asked.from,
                   run->asked.target, run->asked.by.s);
    } else if (run->state == RUN_waiting) {
        add_help(run, out);
    } else if (!run_state_open(run->state)) {
        buf_printf(out, "next: `baton runs reopen %.*s --reason TEXT` begins it anew\n", RUN_SHOWN,
                   run->id.s);
    }
}

void run_draw_now(const struct run *run, struct wall_ms now, struct buf *out)
{
    for (size_t i = 0; i < run->n_kept && run_state_open(run->state); i++) {
        if (turn_state_open(run->turns[i].state)) {
            add_at_turn(run, &run->turns[i], now, out);
        }
    }
    run_draw_next(run, out);
}
