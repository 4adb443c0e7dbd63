/*
 * The inside of an executor pool: what its thread, and the three kinds, share.
 *
 * Thread: executors, for everything here, unless a line says otherwise. Nothing in it is locked;
 * the engine's thread and callback threads reach it through mailboxes.
 */
#ifndef BATON_WORKER_EXECUTOR_POOL_H
#define BATON_WORKER_EXECUTOR_POOL_H

#include "common/base/buf.h"
#include "common/base/traceparent.h"
#include "common/process/child.h"
#include "worker/agent/agent.h"
#include "worker/executor/environment.h"
#include "worker/executor/executor.h"
#include "worker/executor/output.h"
#include "worker/executor/result.h"

#include <pthread.h>

/* After KILL an attempt waits so long for its tree to be gone, then it ends without it. */
#define POOL_KILL_WAIT_MS 10000
/* One piece of a pipe: what it holds by default. */
#define POOL_PIECE (64 * 1024)

struct executor_pool;
struct launch_plan;

/* A descriptor in the epoll set. Its owner embeds it; -1: not watched. */
struct source {
    int fd;
    void (*ready)(struct executor_pool *pool, void *owner);
    void *owner;
};
#define SOURCE_NONE ((struct source){-1, NULL, NULL})

/* A moment on the monotonic clock. Its owner embeds it, zeroed. */
struct timer {
    int64_t at_ms; /* 0: not armed */
    void (*due)(struct executor_pool *pool, void *owner);
    void *owner;
    struct timer *next;
    struct timer **back;
};

enum attempt_phase {
    ATTEMPT_PHASE_waiting, /* no byte of it has left the pool */
    ATTEMPT_PHASE_running,
    ATTEMPT_PHASE_asked,  /* to end: TERM, cancel, flag; the grace runs */
    ATTEMPT_PHASE_killed, /* the tree was killed; waiting until it is gone */
};

struct attempt {
    struct attempt *next; /* all attempts of the pool */
    struct attempt **back;
    struct attempt *queue_next; /* the one queue it waits in */
    struct turn_id turn;
    int32_t no;
    struct boot_id boot;
    enum role role;
    verdict_set verdicts;
    struct task_id task;
    int32_t task_rev;
    struct plain_id run;
    struct plain_id intent;
    struct plain_id profile;
    char *json;
    size_t json_len;
    char *place; /* NULL: the scratch directory */
    struct executor_env *env;
    bool read_only;
    char *session; /* NULL: the program begins anew */
    struct usage session_usage;
    int64_t max_cost_micros;
    char traceparent[TRACEPARENT_LEN + 1]; /* "": none */
    int64_t deadline_ms;                   /* as given, for messages */
    int64_t deadline_at_ms;                /* monotonic */
    int64_t heartbeat_ms;                  /* 0: no bound */
    int64_t heard_at_ms; /* running: when its executor showed progress last, or began; monotonic */

    enum attempt_phase phase;
    bool admitted; /* counts against parallel */
    bool timed_out;
    bool silent; /* timed out because its executor showed no progress */
    bool stopped;
    enum executor_stop_reason reason;
    struct wall_ms started_at;
    struct timer timer;
    void *work; /* the kind's own; NULL while waiting */
};

struct attempt_queue {
    struct attempt *first;
    struct attempt **last;
};

/* What a kind does. Each may end the attempt before it returns (attempt_settle). */
struct kind {
    const char *word;
    baton_code (*open)(struct executor_pool *pool, struct baton_error *err);
    void (*start)(struct executor_pool *pool, struct attempt *attempt);
    /* What is started for an attempt instead of the bare command: launch_start. May be NULL. */
    baton_code (*prepare)(struct executor_pool *pool, const struct attempt *attempt,
                          const struct executor_env *env, const char *scratch,
                          struct launch_plan *ret_plan, struct baton_error *err);
    /* Asks it to end; why: "deadline", "stop", "cancel". Only in phase running. */
    void (*ask)(struct executor_pool *pool, struct attempt *attempt, const char *why);
    /* Ends it by force. Only when it has work. */
    void (*kill)(struct executor_pool *pool, struct attempt *attempt);
    /* The attempt is over (or given up); its work must forget it. May be NULL. */
    void (*forget)(struct executor_pool *pool, struct attempt *attempt);
    /* A waiting attempt is over: takes it out of the kind's own queue. False: it has begun
     * meanwhile (a callback), and is to be asked. May be NULL. */
    bool (*withdraw)(struct executor_pool *pool, struct attempt *attempt);
    /* The pool closes: ends what is no attempt (children). May be NULL. */
    void (*close)(struct executor_pool *pool);
    /* Nothing of it is left alive? May be NULL: nothing ever is without attempts. */
    bool (*empty)(struct executor_pool *pool);
    /* Frees its state; the thread has ended. May be NULL. Thread: who frees the pool. */
    void (*free)(struct executor_pool *pool);
};

extern const struct kind kind_exec;
extern const struct kind kind_child;
extern const struct kind kind_agent;
extern const struct kind kind_callback;

struct executor_pool {
    const struct kind *kind;
    void *state;                  /* the kind's own */
    struct executor_settings set; /* its pointers are ours */
    char **argv;                  /* prefix and command, ended by NULL; [0] absolute */
    char *guard;
    char *scratch;     /* folder */
    char *worker_mark; /* <service>/<worker> */

    pthread_t thread;
    struct mailbox *inbox;  /* struct request, from the engine's thread */
    struct mailbox *events; /* the worker's */
    int epoll;
    bool closing;

    struct attempt *attempts;
    int admitted;
    struct attempt_queue queue; /* beyond parallel */
    struct timer *timers;
    struct executor_event **unposted; /* the mailbox was full */
    size_t n_unposted;
    size_t cap_unposted;
    char **removals; /* scratch directories to remove */
    size_t n_removals;
    size_t cap_removals;
    void **buried; /* freed after the events of this round: some may still name them */
    size_t n_buried;
    size_t cap_buried;
    char piece[POOL_PIECE];
};

/* ---- pool.c ---- */

/* Takes fd, non-blocking, in: ready is called while it is readable or ended. */
bool source_watch(struct executor_pool *pool, struct source *source, int fd,
                  void (*ready)(struct executor_pool *, void *), void *owner);
/* The same, while it is writable. */
bool source_watch_write(struct executor_pool *pool, struct source *source, int fd,
                        void (*ready)(struct executor_pool *, void *), void *owner);
/* Closes it. Nothing for SOURCE_NONE. */
void source_close(struct executor_pool *pool, struct source *source);

void timer_set(struct executor_pool *pool, struct timer *timer, int64_t at_ms,
               void (*due)(struct executor_pool *, void *), void *owner);
void timer_clear(struct timer *timer);

/* Frees memory that holds sources when no event of this round can name it any more. */
void pool_bury(struct executor_pool *pool, void *memory);
/* Removes a scratch directory, little by little. Takes the path; NULL is nothing. */
void pool_remove(struct executor_pool *pool, char *take_path);

/* ---- attempt.c ---- */

void attempt_queue_init(struct attempt_queue *queue);
void attempt_queue_add(struct attempt_queue *queue, struct attempt *attempt);
struct attempt *attempt_queue_take(struct attempt_queue *queue);
void attempt_queue_remove(struct attempt_queue *queue, struct attempt *attempt);

/* Any thread. NULL: no memory. */
struct attempt *attempt_new(const struct executor_job *job);
/* Any thread; not in any list. */
void attempt_free(struct attempt *attempt);
struct attempt *attempt_find(struct executor_pool *pool, const struct turn_id *turn, int32_t no);

/* Takes it in: starts it, or queues it beyond parallel. */
void attempt_admit(struct executor_pool *pool, struct attempt *take_attempt);
/* A kind's start has handed the turn to an executor: from now on it has started. */
void attempt_running(struct executor_pool *pool, struct attempt *attempt);
/* Its executor has shown progress: that renews the heartbeat. */
void attempt_heard(struct attempt *attempt);
/* Stop, cancel; now: without grace. */
void attempt_stop(struct executor_pool *pool, struct attempt *attempt,
                  enum executor_stop_reason reason, bool now);

/*
 * Ends it: posts its one end and frees it. The outcome is what the executor did; a deadline and a
 * stop of ours go before it. output is given away (may be NULL); object: the outcome's bytes.
 */
void attempt_settle(struct executor_pool *pool, struct attempt *attempt,
                    const struct executor_outcome *outcome, const char *object,
                    struct buf *take_output, bool output_truncated);
/* The same for an end that is ours, with a formatted message. */
void attempt_fail(struct executor_pool *pool, struct attempt *attempt, enum failure failure,
                  const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Tells a progress text (masked already); dropped while the mailbox is more than half full. */
void attempt_progress(struct executor_pool *pool, const struct attempt *attempt, const char *text,
                      size_t len);
/* An event for the attempt, or NULL without memory. Any thread. */
struct executor_event *event_new(enum executor_event_kind kind, const struct turn_id *turn,
                                 int32_t no, const struct boot_id *boot);
/* Gives it to the worker, now or as soon as there is room. */
void event_post(struct executor_pool *pool, struct executor_event *take_event);

/* ---- launch.c ---- */

/* What is started for one attempt where that is more than the pool's command and the turn's bytes. */
struct launch_plan {
    struct agent_setup setup; /* argv behind the command, environment below what is declared */
    struct buf in;            /* standard input */
    const char *home;         /* HOME; NULL: the scratch directory. Borrowed from the pool */
    bool may_write;           /* whatever the role says: its place is not looked at */
};
void launch_plan_done(struct launch_plan *plan);

/* The pipes and directory of a process that was started. */
struct launch {
    struct child child;
    char *scratch;
    int in;  /* write end, non-blocking; -1 if bytes were given */
    int out; /* read ends, non-blocking */
    int error;
    int result; /* -1 for a long-lived child, and where a plan says what is started */
};

/*
 * Starts the pool's command. attempt: the one it is for, or NULL for a long-lived child, which then
 * has standard input as a pipe and no descriptor 3. Codes as child_spawn, and those of scratch_new.
 */
baton_code launch_start(struct executor_pool *pool, const struct attempt *attempt,
                        const struct plain_id *profile, const struct executor_env *env,
                        struct launch *ret_launch, struct baton_error *err);
/* Resolves prefix and command to absolute paths. */
baton_code launch_resolve(struct executor_pool *pool, struct baton_error *err);
/* After CHILD_END_guard_lost: kills what carries the scratch directory in its environment. */
void launch_sweep(const char *scratch);

#endif
