/*
 * A run: one execution of a workflow over a task, as its record in the run log says. The newest
 * record of a run is the truth about it; the coordinator that owns its partition writes it.
 *
 *                 +------ a person's answer, a replay ------+
 *                 v                                         |
 *   (none) ----> active ----> waiting (for a person) -------+
 *                 |  |           |
 *                 |  +-----------+--> completed, failed, expired, cancelled
 *                 +<------------------ reopen: epoch + 1, a person's
 *
 * Counted in it: how often each transition was taken (I9), since a person touched the run. Owned
 * strings; not shared between threads.
 */
#ifndef BATON_PRODUCER_RUN_RUN_H
#define BATON_PRODUCER_RUN_RUN_H

#include "baton/code.h"
#include "common/base/buf.h"
#include "common/base/clock.h"
#include "common/base/limits.h"
#include "common/base/state.h"
#include "producer/run/tbl/run_states.h"
#include "producer/workflow/shelf.h"
#include "producer/workflow/workflow.h"

#define RUN_TURNS_MAX 64 /* kept in the record: every open one, and the newest of the others */
#define RUN_WHY_MAX 1024
#define RUN_SUBJECT_MAX 512 /* bytes of what a run is about: a reference, no text */
#define RUN_TARGET_MAX 256  /* no slot's name is as long: nothing fits what was cut */
#define RUN_SUMMARY_MAX (LIMIT_SUMMARY + 16) /* one that was too long still is, and is refused */
#define RUN_DATA_MAX LIMIT_RESULT
#define RUN_LATER_MAX                                                                              \
    (128 *                                                                                         \
     1024) /* of all ends that wait for their time, as written: the record stays below LIMIT_RECORD */
#define RUN_START "start" /* what began a run's first turns: no transition may be called so */

#define RUN_ENUM(word, flags, moves) RUN_##word,
enum run_state { RUN_STATES(RUN_ENUM) RUN_STATE_COUNT };
#undef RUN_ENUM

const char *run_state_word(enum run_state state);
bool run_state_parse(const char *text, size_t text_len, enum run_state *ret_state);
bool run_state_open(enum run_state state);
bool run_state_may_move(enum run_state from, enum run_state to);

/* One turn of the run. */
struct run_turn {
    int no; /* from 1, over all epochs */
    struct turn_id id;
    int32_t epoch;
    int32_t task_rev;
    struct plain_id by;        /* the transition that was taken, or RUN_START */
    struct plain_id from;      /* slot of the sender, "" for the first */
    struct plain_id slot;      /* NODE or NODE.SLOT */
    enum role role;            /* of the slot: what its turn was signed with */
    struct service_id born;    /* where it was sent */
    struct service_id service; /* where it is now */
    int attempt;
    enum turn_state state; /* queued: sent, running: claimed; delegated never: it goes on there */
    bool has_verdict;
    enum verdict verdict;
    baton_code code;       /* parked: why */
    struct digest content; /* of the turn: what an outcome must name */
    struct digest digest;  /* of its value: what passes are signed over */
    int64_t cost;          /* millionths of a US dollar, as far as told */
    struct wall_ms begun_at;
    struct wall_ms claimed_at; /* 0: not yet */
    struct wall_ms ended_at;   /* 0: open */
};

/* An end that is not answered yet: what the next turn would be about. */
struct run_pending {
    struct turn_id turn; /* "": nothing is pending */
    char *
        target; /* what its result asked for, at most RUN_TARGET_MAX; NULL: what its verdict takes */
    char *summary; /* at most RUN_SUMMARY_MAX; NULL: none was said */
    char *data;    /* raw JSON object, at most RUN_DATA_MAX, or NULL */
};

/* A handoff that somebody has asked for, while the hook of its transition looks at it. */
struct run_asked {
    struct plain_id request; /* what is to be answered; "": nothing is asked */
    struct plain_id by;
    bool person;
    char *from; /* texts as in the request */
    char *target;
    char *summary;
    char *data; /* raw JSON object, at most RUN_DATA_MAX */
};

/* How often a transition was taken, and what its turns took. */
struct run_edge {
    struct plain_id name;
    int taken; /* since a person touched the run: what a cap is compared with */
    int total;
    int64_t cost;
    int64_t time_ms; /* from the taking to the end of the turn */
};

struct run {
    struct plain_id id;
    int32_t epoch;
    struct task_id task_id;
    int32_t task_rev;
    enum task_status task_status;
    enum run_state state;
    char why[RUN_WHY_MAX + 1]; /* waiting, or how it ended: one line for people */
    baton_code code;           /* waiting: of what was refused; ok: nothing was */
    struct plain_id stage;     /* with a code: where */
    struct run_pending pending;
    struct run_pending
        *later; /* ends that came while it waited, or a hook looked at it; oldest first */
    size_t n_later;
    struct run_pending
        held; /* an end that was reached while other turns were open: turn and summary */
    struct run_asked asked;
    int32_t request_no; /* requests taken so far */
    struct plain_id by; /* who started it */
    char *summary;      /* of the task */
    char *data;         /* raw JSON object, or NULL */
    char *payload;      /* raw JSON object of a turn's payload, or NULL */
    char *subject; /* what it is about: said by a handoff, and since then the same (H-40); NULL */
    struct wall_ms started_at;
    struct wall_ms deadline; /* 0: none */
    struct wall_ms updated_at;
    struct wall_ms ended_at; /* 0: open */
    int n_turns;             /* begun so far: the newest turn's number */
    struct run_edge *edges;  /* only those that were ever taken */
    size_t n_edges;
    struct run_turn *turns; /* oldest first, at most RUN_TURNS_MAX */
    size_t n_kept;
    struct workflow *workflow; /* frozen: from the record's own text */
    bool shelved;              /* the workflow is a shelf's, not the run's own */
};

void run_free(struct run *run);
/* A workflow of its own the copy reads again; a shelf's it shares. */
baton_code run_copy(const struct run *from, struct run **ret_to);

/* ---- moves: the only places where these change ---- */

/* Moves the run if the table permits, with one log line; false: it does not. why: one line. */
bool run_move(struct run *run, enum run_state to, const char *why, struct wall_ms now);
/* Reopens an ended run: epoch + 1, counters 0. Contract: it has ended. */
void run_reopen(struct run *run, const char *why, struct wall_ms now);
/* What it is about was said; once. */
void run_freeze_subject(struct run *run, const char *subject);
/* A person touched it: the counters of all transitions begin anew (H-47). */
void run_touch(struct run *run);
/* The end of this turn is to be answered (takes the texts, which may be NULL), or was (turn ""). */
void run_pend(struct run *run, const char *turn_id, char *take_target, char *take_summary,
              char *take_data);
/* The same for an end that comes while another is pending; it waits for its time. What would make the
 * record too large is left out, with a log line: its data, then its summary. False: no memory, and the
 * texts are the caller's. */
bool run_pend_later(struct run *run, const char *turn_id, char *take_target, char *take_summary,
                    char *take_data);
/* A person answered for that slot: what is pending, and what waits of that slot, is answered. */
void run_pend_answered(struct run *run, const char *slot);
/* The oldest of those becomes what is pending. False: there is none. Contract: nothing is pending. */
bool run_pend_next(struct run *run);
/* An end was reached while other turns are open: it counts once they have ended and led nowhere (takes the
 * summary, which may be NULL). What is taken after it makes it count no more. */
void run_hold(struct run *run, const char *turn_id, char *take_summary);
/* Somebody's handoff waits for its hook (copies the texts); false: its data is too large. */
bool run_ask(struct run *run, const struct run_asked *asked);
/* It was answered. */
void run_ask_done(struct run *run);
/* A transition was taken (or RUN_START): counts it, whichever number of turns it begins (I9). False:
 * no memory. */
bool run_count(struct run *run, const char *transition);
/* Adds a turn; the oldest ended one makes room. NULL: 64 are open, or no memory. Turns that were
 * found before are to be found again. */
struct run_turn *run_add_turn(struct run *run);
/* An open turn ends (completed, cancelled) or parks; its edge gets its cost and time. The task's status and
 * revision follow the verdict by the table. */
void run_turn_end(struct run *run, struct run_turn *turn, enum turn_state state,
                  struct wall_ms now);

/* ---- questions ---- */

/* The newest turn with that id, or NULL. */
struct run_turn *run_turn_find(struct run *run, const char *turn_id);
size_t run_turns_open(const struct run *run);
/* How often since the last touch. */
int run_taken(const struct run *run, const char *transition);
/* How often ever: the n of the next turn's key. */
int run_total(const struct run *run, const char *transition);
/* The workflow's slot of that name, or SIZE_MAX. */
size_t run_slot(const struct run *run, const char *name);
int64_t run_cost(const struct run *run);
/* Has a turn of this epoch been sent? */
bool run_begun(const struct run *run);
/* a + b, both from 0; no more than a record can hold, whatever services tell. */
int64_t run_sum(int64_t a, int64_t b);

/* ---- its record ---- */

void run_encode(const struct run *run, struct buf *value);
/* Strict. invalid_envelope, schema_unsupported, no_memory. */
baton_code run_parse(const void *bytes, size_t len, struct run **ret_run, struct baton_error *err);
/* The same; its workflow is the shelf's, which outlives the run. */
baton_code run_parse_shelved(const void *bytes, size_t len, struct workflow_shelf *shelf,
                             struct run **ret_run, struct baton_error *err);
/* Is it the record of a run that has ended, as run_encode writes one? Looks at its beginning only: for whoever
 * meets thousands of them and needs few. False, too, for what run_parse should judge. */
bool run_record_ended(const void *bytes, size_t len);

#endif
