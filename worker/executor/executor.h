/*
 * Executors: what does a turn. One pool for each service of a worker, over the kinds exec, child,
 * agent and callback (worker/EXECUTOR.md).
 *
 * In: worker (claim) starts and stops attempts. Out: events in the worker's mailbox.
 *
 * Threads: the pool has its own thread "executors" (pipes, pidfds, deadlines, masking) and, for
 * kind callback, "callback" threads. Attempts are started by one thread, the engine's;
 * executor_stop and executor_kill may come from any (lease holders). All return at once, but for
 * executor_pool_new and executor_pool_free. Nothing calls back: all that happens comes as struct
 * executor_event in the mailbox given at the start, which wakes its reader by mailbox_fd. An
 * attempt that was started has exactly one end, whatever happens.
 *
 * Ownership: jobs and settings are borrowed and copied; an event belongs to who takes it.
 * Idle, a pool sleeps in one epoll_wait without a timer.
 */
#ifndef BATON_WORKER_EXECUTOR_EXECUTOR_H
#define BATON_WORKER_EXECUTOR_EXECUTOR_H

#include "baton/code.h"
#include "baton/executor.h"
#include "common/base/clock.h"
#include "common/base/config.h"
#include "common/base/failure.h"
#include "common/base/id.h"
#include "common/base/role.h"
#include "common/record/usage.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mailbox;
struct executor_pool;
struct usage; /* common/record/usage.h */

/* Bounds beside those of common/base/limits.h; worker/EXECUTOR.md has the same numbers. */
#define EXECUTOR_MESSAGE_MAX 512   /* a failure's text, bytes */
#define EXECUTOR_PROGRESS_MAX 4096 /* a progress text, bytes */
#define EXECUTOR_GRACE_MS 5000     /* from TERM, or from cancel, to KILL */
#define EXECUTOR_HELLO_MS 10000    /* a child's first line */

/* ---- declared environment ---- */

/* Resolved values of executor.env and a profile's env: secrets. Immutable; any thread may read it.
 */
struct executor_env;

/*
 * Reads base, then profile, whose names win: values as written, files without one trailing newline
 * (at most LIMIT_SECRET, no NUL), variables of this process. A reserved name (BATON_*), a file that
 * cannot be read or a variable that is not set is bad_config, naming it. Read it again for each
 * attempt to see rotated secrets: it costs one read for each file.
 */
baton_code executor_env_resolve(const struct config_env *base, size_t n_base,
                                const struct config_env *profile, size_t n_profile,
                                struct executor_env **ret_env, struct baton_error *err);
void executor_env_free(struct executor_env *env);

/* ---- pool ---- */

struct executor_settings {
    enum executor_kind kind;
    struct service_id service;
    struct plain_id worker;
    struct boot_id boot;
    int parallel;          /* attempts at a time, 1.. ; more are queued */
    const char *state_dir; /* absolute */
    /* Absolute: where scratch directories are made; NULL: <state_dir>/scratch. With a prefix its user has
     * to get there, which no folder of a store or log allows. */
    const char *scratch_dir;

    /* exec, child: argv; [0] an absolute path, or a name that is looked up in the fixed PATH now.
     * agent: the same, what the agent is given comes behind it; none: the program's usual name */
    const char *const *command;
    size_t n_command;
    const char *const *prefix; /* argv in front of it: setpriv, bwrap; may be empty */
    size_t n_prefix;

    const char *agent;           /* agent: which program (common/base/tbl/agents.h) */
    const char *model;           /* agent: NULL: the program's own */
    const char *prompts;         /* agent: folder of <role>.txt; NULL: the shipped ones */
    const char *home;            /* agent: its HOME; NULL: the scratch directory */
    bool resume;                 /* agent: its sessions are kept, for executor_job.session */
    struct usage_prices prices;  /* agent: of its model, where it tells no costs */
    enum executor_access access; /* agent: what it may do to its place */

    baton_executor_fn callback; /* callback; called with callback_arg */
    void *callback_arg;
    int callback_threads; /* 0: 1 */

    const char *guard_path; /* NULL: baton-guard beside this program, then in libexec */
    int64_t grace_ms;       /* 0: EXECUTOR_GRACE_MS */
    int64_t hello_ms;       /* 0: EXECUTOR_HELLO_MS */
};

/*
 * Kills what an earlier boot of this worker left behind (so call it after the store's lock is
 * held), empties its scratch folder, resolves the programs, starts the threads. events: where
 * events go; it must outlive the pool; a capacity of 4 * parallel or more never makes the pool
 * wait. Expected: bad_config (program or guard not found or not executable), usage, unexpected.
 */
baton_code executor_pool_new(const struct executor_settings *settings, struct mailbox *events,
                             struct executor_pool **ret_pool, struct baton_error *err);
/*
 * Kills what still runs, at once and whole, and waits for the threads. Ends that are not in the
 * mailbox by then are not given any more: stop attempts and take their ends first (a clean stop).
 * A callback that does not return is left behind with its thread. Accepts NULL.
 */
void executor_pool_free(struct executor_pool *pool);

/* ---- attempts ---- */

struct executor_job {
    struct turn_id turn;
    int32_t attempt;
    struct boot_id boot;  /* third part of the lease token; comes back in the events */
    enum role role;       /* from the verified bytes, never from a column */
    verdict_set verdicts; /* from there, too; 0: all of the role */
    struct task_id task;
    int32_t task_rev;
    struct plain_id run; /* "" outside a run */
    struct plain_id intent;
    struct plain_id profile; /* children are kept apart by it */
    const void *json;        /* the turn's bytes, verified: one JSON object */
    size_t json_len;
    const struct executor_env *env; /* NULL: none */
    const char *place;              /* an absolute directory, or NULL: the scratch directory */
    int64_t deadline_ms;            /* from now, on the monotonic clock; at least 1 */
    int64_t
        heartbeat_ms; /* it ends, too, when its executor shows no progress for so long; 0: no bound */
    bool read_only;
    const char *session; /* agent: go on in this one of the program's; NULL: begin anew */
    const struct usage *session_usage; /* what attempts in that session took; NULL: nothing */
    const char *traceparent;           /* of the attempt (W3C Trace Context); NULL: none */
    int64_t max_cost_micros;           /* 0: no bound; millionths of a US dollar. Who can is told */
};

/*
 * Starts an attempt. Returns service_unavailable, and starts nothing, when the pool's inbox is full
 * (4 * parallel + 64 requests) or memory is out; everything else comes as its end.
 */
baton_code executor_start(struct executor_pool *pool, const struct executor_job *job,
                          struct baton_error *err);

enum executor_stop_reason {
    EXECUTOR_STOP_stop,   /* clean stop, lost lease: the end is `killed` with killed_by_stop */
    EXECUTOR_STOP_cancel, /* the turn was cancelled: the same, for the log line */
};

/*
 * Asks an attempt to end: TERM (child: a cancel line; callback: baton_attempt_stopped), after the
 * grace KILL of its whole tree. Its end comes as an event; if it has ended already, or is not
 * known, nothing happens. A verdict that comes with exit 0 before the KILL is still its result.
 */
void executor_stop(struct executor_pool *pool, const struct turn_id *turn, int32_t attempt,
                   enum executor_stop_reason reason);
/* The same without a grace: the tree is killed now (a lease has run out). */
void executor_kill(struct executor_pool *pool, const struct turn_id *turn, int32_t attempt);

/* ---- events ---- */

enum executor_event_kind {
    EXECUTOR_EVENT_progress, /* text */
    EXECUTOR_EVENT_end,      /* end */
};

struct executor_end {
    bool ok;              /* a verdict legal for the role; else failure says what */
    enum verdict verdict; /* ok */
    enum failure failure; /* !ok */
    char *result; /* ok: the executor's object, masked, valid JSON, at most 64 KiB; else NULL */
    size_t result_len;
    char *message;          /* !ok: one masked line for people, what happened; never NULL then */
    int64_t retry_after_ms; /* !ok: what the provider asked for, 0 if nothing */
    char *output; /* masked, valid UTF-8 without NUL, at most 64 KiB; "" if there is none */
    size_t output_len;
    bool output_truncated;
    char *usage;               /* what it took, as JSON (common/record/usage.h); NULL: not told */
    struct wall_ms started_at; /* of the program, or of the turn's line to a child; 0 if never */
    struct wall_ms ended_at;
    bool never_started;  /* provably no byte of the turn reached an executor: counts in no budget */
    bool killed_by_stop; /* executor_stop or executor_kill ended it: counts in no budget */
};

struct executor_event {
    enum executor_event_kind kind;
    struct turn_id turn;
    int32_t attempt;
    struct boot_id boot;
    char *text;              /* progress: masked, at most 4 KiB */
    struct executor_end end; /* end */
};

void executor_event_free(struct executor_event *event);

#endif
