/*
 * Long-lived children: what run_child.c (their lives) and child_wire.c (their lines) share.
 * Thread: executors.
 */
#ifndef BATON_WORKER_EXECUTOR_RUN_CHILD_H
#define BATON_WORKER_EXECUTOR_RUN_CHILD_H

#include "common/base/limits.h"
#include "worker/executor/pool.h"

#define CHILD_PROTOCOL 1
#define CHILD_PARALLEL_MAX LIMIT_PARALLEL

enum child_phase {
    CHILD_PHASE_hello,   /* started, its hello is due */
    CHILD_PHASE_ready,   /* takes turns */
    CHILD_PHASE_deaf,    /* its standard output has ended, it has not yet */
    CHILD_PHASE_leaving, /* its standard input was closed */
    CHILD_PHASE_asked,   /* TERM */
    CHILD_PHASE_killed,
};

struct child_state {
    struct child_group *groups;
};

struct child_group {
    struct child_group *next;
    struct plain_id profile;
    struct child_run *children;
    struct attempt_queue queue; /* attempts that wait for a child */
    int width;                  /* `parallel` of its last hello; 0: none yet */
    int deaths;                 /* in a row, young and without a result */
    int64_t not_before_ms;      /* no child is started earlier */
    struct timer timer;
};

/* A turn on a child. */
struct child_slot {
    struct child_slot *next;
    struct child_run *run;
    struct attempt *attempt;
    char id[64];        /* <turn>.<attempt> */
    uint64_t sent_from; /* where its line begins in all that was written */
};

struct child_run {
    struct child_run *next;
    struct child_group *group;
    struct child child;
    enum child_phase phase;
    bool greeted;  /* its hello was good */
    bool given_up; /* it could not be killed */
    int parallel;
    int n_slots;
    int n_results;
    int64_t born_ms;
    struct child_slot *slots;
    struct source pid;
    struct source in;
    struct source out;
    struct source error;
    struct buf in_waiting; /* lines, or the rest of one, that its pipe had no room for */
    uint64_t in_queued;    /* bytes ever queued */
    uint64_t in_sent;      /* bytes ever written to the pipe */
    struct line_reader frames;
    struct output error_text;
    struct timer timer;
    char *scratch;
    struct executor_env *env;
};

/* ---- run_child.c ---- */

/* Kills the child; the turns on it end with this failure. */
void child_run_end(struct executor_pool *pool, struct child_run *run, enum failure failure,
                   const char *message);
/* Its hello was good. */
void child_run_ready(struct executor_pool *pool, struct child_run *run, int parallel);
/* Its standard output has ended. */
void child_run_deaf(struct executor_pool *pool, struct child_run *run);
/* A result for a turn on it; object is masked. The slot is gone afterwards. */
void child_run_result(struct executor_pool *pool, struct child_run *run, struct child_slot *slot,
                      const char *object, size_t len);

/* ---- child_wire.c ---- */

void child_say_hello(struct executor_pool *pool, struct child_run *run);
/* Gives it the turn. */
void child_give(struct executor_pool *pool, struct child_run *run, struct attempt *attempt);
void child_cancel(struct executor_pool *pool, struct child_run *run, const struct child_slot *slot,
                  const char *why);
/* Writes what its pipe takes. */
void child_in_flush(struct executor_pool *pool, struct child_run *run);
/* Reads its lines and acts on them; to_end: it has ended, read all that is there. */
void child_frames_read(struct executor_pool *pool, struct child_run *run, bool to_end);
/* Reads its standard error. False at its end. */
bool child_error_read(struct child_run *run);

#endif
