/*
 * One worker: what it was started with, has open, and knows of what waits and runs here. The files of
 * the worker share it, and nobody else includes it; what each of them does is in the header of its name.
 *
 * All of it belongs to the engine's thread, except struct leases, which has a thread of its own.
 */
#ifndef BATON_WORKER_INTERNAL_H
#define BATON_WORKER_INTERNAL_H

#include "common/base/clock.h"
#include "common/base/config.h"
#include "common/base/diag.h"
#include "common/base/id.h"
#include "common/base/limits.h"
#include "common/log/log.h"
#include "common/trace/span.h"
#include "topics/catalogue.h"
#include "worker/circuit.h"
#include "worker/decision.h"
#include "worker/gauges.h"
#include "worker/live.h"
#include "worker/rest.h"
#include "worker/worker.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arrived;
struct engine;
struct executor_env;
struct executor_pool;
struct foreign;
struct http_listener;
struct leases;
struct mailbox;
struct reloaded;
struct signer;
struct store;
struct target;
struct telling;
struct tracer;
struct trust;
struct verify;

#define CLEARS_KEPT 32 /* control records that operators sent to clear profiles */

struct worker {
    const struct config *config;
    const struct config_service *service;
    struct reloaded *
        reloaded; /* what SIGHUP has brought, in which config and service point; NULL: nothing yet */
    bool reload_asked;
    const struct worker_options *options;
    struct plain_id id;
    char full[SERVICE_MAX + ID_MAX + 2]; /* <service>/<id> */
    char state_dir[4096];
    struct boot_id boot;

    struct topic_name names[TOPIC_COUNT];
    struct topic_name group;

    struct log *log;
    struct store *store;
    struct engine *engine;
    struct executor_pool *pool;
    struct mailbox *mail;
    struct leases *leases;
    struct trust *trust;
    struct signer *signer;
    struct plain_id fleet;
    struct verify *signing;     /* helpers for signatures */
    struct mono_ms trust_read;  /* when it was read last */
    bool trust_failed;          /* and could not be */
    struct mono_ms trust_seen;  /* when it was looked at last: a revocation needs no other sign */
    struct executor_env **envs; /* one for each profile */
    struct mono_ms envs_read;
    struct rest rests[LIMIT_PROFILES];      /* of the profiles */
    struct plain_id clears[CLEARS_KEPT];    /* the newest control records that cleared some */
    size_t n_clears;                        /* of them so far: the next one's place */
    uint64_t rest_told[LOG_PARTITIONS_MAX]; /* what the notes of rest_note.c say; 0: none */
    struct circuit circuit;
    struct circuit_told circuit_told[LOG_PARTITIONS_MAX];
    uint64_t blocked_told[LOG_PARTITIONS_MAX]; /* what the notes of blocked.c say; 0: none */
    uint64_t blocked_file;                     /* the same of its file */
    struct target *targets;                    /* services that turns may be passed on to */
    size_t n_targets;

    struct lives lives;
    struct decisions batch;     /* of this round */
    struct decisions committed; /* in the log, not in the store */
    struct telling *tellings;
    size_t n_tellings;
    size_t cap_tellings;
    struct arrived *arrived;
    size_t n_arrived;
    size_t cap_arrived;
    struct foreign *foreign;
    size_t n_foreign;
    size_t cap_foreign;
    struct turn_id
        *unstarted; /* claims of the last boot that the store never had: they never ran */
    size_t n_unstarted;
    bool paused[LOG_PARTITIONS_MAX]; /* by the owner's note: neither handoffs nor queued attempts
                                        start */
    bool
        dropped[LOG_PARTITIONS_MAX]; /* the image of this partition is not what an older boot saw */
    int64_t to_show[LOG_PARTITIONS_MAX]; /* a restore must be given this record; NONE: it was */
    bool undone[LOG_PARTITIONS_MAX];     /* it was not: the image is dropped */

    bool stopping;
    bool leave;    /* at the end the group hears that this worker is gone: not where a twin has its
                      place */
    bool kill_now; /* asked twice to stop */
    struct mono_ms kill_asked;
    bool killed; /* what ran was told to end */
    bool ready_told;
    bool facts_due; /* the assignment has changed: look at every fact */
    bool reopen; /* what was decided about turns that run was dropped, or could not be decided: look
                    again */
    bool blocked; /* the store could not be written: nothing is decided */
    struct mono_ms stop_asked;
    struct mono_ms store_wait;  /* blocked: until the next try */
    unsigned long told_changes; /* what the leases know of what runs */
    struct mono_ms told_at;
    struct mono_ms next_due; /* of queued turns; INT64_MAX: none */
    struct mono_ms housekeeping;
    struct diag_limit limit;

    struct http_listener *http; /* NULL: nobody may ask */
    struct tracer *tracer;      /* NULL: no traces.endpoint */
    struct span_list spans;     /* of what the batch decides */
    struct mono_ms gauges_due;
    struct first firsts[LOG_INPUTS][LOG_PARTITIONS_MAX]; /* of what is not taken in */
    struct diag_limit old_handoff;                       /* told so often */
    struct diag_limit old_turn;
};

/* Fields that every log line of the pipeline carries. */
#define D_TURN(record)                                                                             \
    D_TEXT("turn", (record)->id.s), D_TEXT("role", role_word((record)->role)),                     \
        D_INT("attempt", (record)->attempt), D_TEXT("service", (record)->service.s)

#endif
