/*
 * What the files of the worker share; nobody else includes it.
 *
 * All of it belongs to the engine's thread, except struct leases, which has a thread of its own.
 */
#ifndef BATON_WORKER_INTERNAL_H
#define BATON_WORKER_INTERNAL_H

#include "common/base/buf.h"
#include "common/base/config.h"
#include "common/base/diag.h"
#include "common/base/mailbox.h"
#include "common/engine/engine.h"
#include "common/http/listen.h"
#include "common/record/outcome.h"
#include "common/record/receipt.h"
#include "common/record/rest_note.h"
#include "common/record/signer.h"
#include "common/record/trust.h"
#include "common/record/turn.h"
#include "common/record/turn_record.h"
#include "common/store/store.h"
#include "common/trace/tracer.h"
#include "topics/catalogue.h"
#include "worker/circuit.h"
#include "worker/executor/executor.h"
#include "worker/lease/lease.h"
#include "worker/worker.h"

#define TICK_DUE_MAX 1024            /* queued turns claimed in one round */
#define OUTPUT_KEPT_MAX LIMIT_OUTPUT /* escaped, beside a result, it fits a report */
#define TRUST_RELOAD_MS 1000
#define TELL_LEASES_MS 200
#define HOUSEKEEPING_MS 60000
#define TOMBSTONE_AFTER_MS (14LL * 24 * 3600 * 1000)
#define CHECKPOINT_AHEAD_MS (3600LL * 1000)
#define CHECKPOINT_MAX_AGE_MS (7LL * 24 * 3600 * 1000) /* half a tombstone's life (rule 16) */

/* ---- live.c: attempts that run here, or have run and are not settled ---- */

enum live_phase {
    LIVE_running, /* its executor was started by this boot */
    LIVE_ended,   /* its end is a fact in the store */
};

struct live {
    struct turn_record record; /* as the log has it */
    int32_t partition;
    enum live_phase phase;
    bool held;     /* its partition has moved: worker/lease/lease.c looks after it */
    bool in_batch; /* its end is in the batch that is being decided */
    bool heard;    /* its failure was told to the circuit */
    struct recorded_end end;
    struct mono_ms progress_due; /* its progress is told no earlier */
    struct live *next;           /* of the hash chain */
    struct live *ended_prev;     /* of those that have ended */
    struct live *ended_next;
};

#define LIVES_STARTS 2048

struct lives {
    struct live **slots;
    size_t n_slots;
    size_t count;
    size_t running;
    unsigned long changes; /* of what runs */
    struct live *ended;    /* list, oldest first */
    struct live *ended_last;
    uint64_t starts[LIVES_STARTS]; /* the newest attempts whose executor was started here */
    size_t n_starts;
};

/* For tables of turns by id. */
size_t turn_hash(const char *turn_id);

bool lives_init(struct lives *lives);
void lives_done(struct lives *lives);
struct live *lives_find(const struct lives *lives, const char *turn_id);
/* Takes the record. NULL without memory. */
struct live *lives_add(struct lives *lives, struct turn_record *take_record, int32_t partition);
/* Notes that the executor of this attempt is started; false: it was before (rule 19). */
bool lives_start_once(struct lives *lives, const char *turn_id, int attempt);
void lives_end(struct lives *lives, struct live *live, const struct recorded_end *take_end);
void lives_remove(struct lives *lives, struct live *live);
/* Calls fn for each; fn may remove the one that it is given. */
void lives_each(struct lives *lives, void (*fn)(struct live *, void *), void *arg);

/* ---- decision.c: what was decided in this round, and what the log has taken but the store has not
 * ---- */

struct decision {
    struct turn_record record; /* the new state */
    int32_t partition;
    struct buf bytes;  /* its value */
    size_t put;        /* index in the batch */
    int64_t offset;    /* once committed */
    struct wall_ms at; /* the same: when, by the log's time */
    struct turn *turn; /* a claim: the verified bytes; its executor starts once this is folded */
    struct wall_ms appended; /* a claim: when its handoff was appended; 0 for a later attempt */
    int settled_attempt;     /* the fact that this decision ends, 0: none */
    struct boot_id settled_boot;
    bool tombstone;   /* the record leaves the log */
    size_t slot_next; /* of its slot: index + 1 of the next decision, 0: none */
};

/* A change of an owner's note. */
struct note_change {
    int32_t partition;
    char key[160];
    struct buf value;
    bool drop;
    size_t put;
    int64_t offset;
};

/* An outcome that goes out with the batch; signed in parallel just before the commit. */
struct telling {
    struct buf value;
    char key[ID_MAX + 1];
    struct proof_text proof;
    bool is_signed;
    char *traceparent;
    char **passes;
    size_t n_passes;
};

#define DECISION_SLOTS 2048 /* a round of LIMIT_PARALLEL turns ends as many as it claims */
struct decisions {
    struct decision *list;
    size_t count;
    size_t cap;
    uint32_t slots[DECISION_SLOTS]; /* by turn: index + 1 of its first decision, 0: none */
    struct note_change *notes;
    size_t n_notes;
    size_t cap_notes;
};

void decisions_clear(struct decisions *decisions);
void decisions_done(struct decisions *decisions);

struct worker;
/* A copy for a record; NULL of NULL. Without memory the program ends: the log has what this worker
 * knew, so nothing is lost, and a text left out would change what a turn is. Any thread. */
char *decision_text(const char *text);
/* Is something about this turn decided already in this round? (rule 10: one decision at a time) */
bool decided(const struct worker *w, const char *turn_id);
/*
 * Puts a turn's new record into the batch. Takes record and turn. The state must be a legal move of
 * the table from the record's former state: that is worker/move.c's business, before.
 */
struct decision *decide(struct worker *w, int32_t partition, struct turn_record *take_record,
                        struct turn *take_turn);
/* Sets a note of the owner, or drops it. */
void decide_note(struct worker *w, int32_t partition, const char *key, const struct buf *value);
void decide_note_gone(struct worker *w, int32_t partition, const char *key);
void decide_tombstone(struct worker *w, int32_t partition, const char *turn_id);

/* ---- move.c: the only place where states change ---- */

/* Moves a turn; logs and counts. birth: it had no state. Contract: the table permits it. */
void turn_move(struct worker *w, struct turn_record *record, bool birth, enum turn_state to);
/* The newest attempt, added as queued, running or failed with the number of the record. */
struct attempt *attempt_begin(struct worker *w, struct turn_record *record,
                              enum attempt_state state, const char *profile);
void attempt_move(struct turn_record *record, struct attempt *attempt, enum attempt_state to,
                  struct wall_ms at);
void attempt_note(struct attempt *attempt, const char *note);
/* The same for what it took; "": not told. */
void attempt_usage(struct attempt *attempt, const char *usage);

/* ---- claim.c ---- */

/* Decides about a record of the handoff topic. */
baton_code claim_record(struct worker *w, const struct engine_event *event,
                        struct baton_error *err);
/* Claims queued turns whose time has come, at most max; parks those that must not start. */
baton_code claim_due(struct worker *w, size_t max, size_t *ret_claimed, struct baton_error *err);
/* A record that the log shows claimed by this boot, and nothing runs: it is started. */
baton_code claim_resume(struct worker *w, int32_t partition, struct turn_record *take_record,
                        enum role column_role, struct baton_error *err);
/* Starts the executor of a claim that is in log and store. */
void claim_start(struct worker *w, struct decision *decision);

/* ---- spans.c: what was done to a turn, for the collector (traces.endpoint) ---- */

/* The traceparent of a turn that is taken in: the one it came with, or a new one. */
char *spans_context(const struct receipt *receipt);
/* A handoff was taken in. */
void spans_taken(struct worker *w, const struct turn_record *record,
                 const struct log_record *handoff);
/* A turn has moved, and its newest attempt has before it. */
void spans_moved(struct worker *w, const struct turn_record *record, bool birth,
                 enum turn_state from);
/* For the executor of its newest attempt, and for the record by which it is passed on (which has one).
 * False: the turn has none. */
bool spans_attempt(const struct worker *w, const struct turn_record *record,
                   struct traceparent_text *ret_text);
struct traceparent_text spans_pass(const struct worker *w, const struct turn_record *record);

/* ---- settle.c, failure_table.c ---- */

/*
 * Decides what follows from a recorded end; takes record (running, under the end's token). False,
 * and nothing is decided: a topic that it must write to is known to fail now.
 */
bool settle_end(struct worker *w, int32_t partition, struct turn_record *take_record,
                const struct recorded_end *end);
/* Decides about every attempt that has ended here and is not settled. */
void settle_ended(struct worker *w);
/* The attempt is lost: its worker is gone. counted: it may have started. */
bool settle_lost(struct worker *w, int32_t partition, struct turn_record *take_record, bool counted,
                 const char *note);
/* Parks a turn whose next attempt must not start, or that must not run here. attempt: its newest,
 * live or new. */
void settle_park(struct worker *w, int32_t partition, struct turn_record *take_record, bool birth,
                 baton_code code, const char *note, const struct log_record *source);

enum next_kind { NEXT_start, NEXT_retry, NEXT_rotate, NEXT_delegate, NEXT_park, NEXT_hold };
struct next_step {
    enum next_kind kind;
    int64_t delay_ms;    /* retry */
    const char *profile; /* start, retry, rotate: of the next attempt */
    const char *to;      /* delegate: the service; the caller's */
    baton_code code;     /* park: why */
};
/* What can be had beside what record and configuration say: whoever decides has looked. */
struct chances {
    const char *delegate_to; /* where the turn could go on now; NULL: nowhere */
    unsigned resting;        /* bit i: profile i of the service rests */
};
/* What follows a failure: the first possible action of the class's list. Pure. */
struct next_step failure_next(const struct config *config, const struct config_service *service,
                              const struct turn_record *record, enum failure class,
                              int64_t retry_after_ms, const struct chances *chances, double draw);
/*
 * What follows an attempt that counts in no budget but the attempts': a clean stop ended it, or it
 * provably never started. The same again; ever later, while nothing starts. Pure.
 */
struct next_step uncounted_next(const struct config *config, const struct turn_record *record,
                                enum failure class, double draw);
/* Why and for how long all profiles of a service rest. */
struct all_rest {
    enum failure class;  /* of the one that is up first */
    int64_t wait_ms;     /* until then */
    bool named;          /* the provider named that time */
    const char *profile; /* that one */
};
/*
 * How the first attempt of a series begins: with the first profile that does not rest. While all of
 * them rest: what the list of the class says, but where it comes to park a try costs nothing more.
 * waited: it has waited already, and is not made to wait again. Pure.
 */
struct next_step first_next(const struct config *config, const struct config_service *service,
                            const struct chances *chances, const struct all_rest *rest,
                            bool waited);

/* ---- rest.c: credential profiles that the provider has refused ---- */

/* An attempt with it has ended here: the profile rests, is refused, or is up again. */
void rest_note(struct worker *w, const char *profile, const struct recorded_end *end);
/* Does not rest any more; why: for the log. */
void rest_over(struct worker *w, size_t profile, const char *why);
/* What the note of another boot says of a profile: one that was refused stays so, with the same credential. */
void rest_adopt(struct worker *w, const struct rest_profile *told);
/* An operator has said at that time that the profile is mended; "": every one. A word that is older than
 * the refusal by more than a day (clocks differ) is about another one. */
void rest_clear(struct worker *w, const char *profile, struct wall_ms at);
/* Its secrets were read again: another credential is worth another try. */
void rest_look_again(struct worker *w, size_t profile, bool env_changed);
/* The service's key is another one: the marks of refused credentials are made with it. */
void rest_mark_anew(struct worker *w);
/* Does any wait to be cleared? */
bool rest_any_refused(const struct worker *w);
/* Which profiles rest (bits). *ret_rest is set if all of them do. */
unsigned rest_look(const struct worker *w, struct all_rest *ret_rest);

/* ---- rest_note.c: the same, shown by a note ---- */

/* Reads a partition's note after a restore, and after a fold; takes over what the owner of before knew to
 * be refused. */
baton_code rest_restore(struct worker *w, int32_t partition, struct baton_error *err);
/* Writes the notes of those partitions that tell something else. */
void rest_tell(struct worker *w);

/* ---- took.c: what the attempts of a turn took, for its next one ---- */

/* What is left of the turn's budget of costs; all of it where an operator has it tried beyond. 0: no
 * bound. */
int64_t took_cost_left(const struct worker *w, const struct turn_record *record);
/* Have the services before this one spent all that the turn may cost here, and no operator has had it
 * replayed since? It is not tried here, then: bounds may differ between hosts, and a service may ignore its own. */
bool took_all_before(const struct worker *w, const struct receipt *receipt);
/* The session of the newest attempt here that told one, and what attempts in it took; NULL: none, or the
 * configuration does not want it. Borrowed from ret_usage. */
const char *took_session(const struct worker *w, const struct turn_record *record,
                         struct usage *ret_usage);

/* ---- begin.c ---- */

/* How the next attempt begins: start (with which profile), retry (wait first), hold (the circuit is
 * open) or delegate, with its pass, for a refusal of *ret_class; the caller frees it. birth: the turn
 * has no record yet. */
struct next_step begin_next(struct worker *w, const struct turn_record *record, bool birth,
                            enum failure *ret_class, char **ret_pass);
/* Every profile rests, or the circuit is open, and the turn goes on at another service: its attempt
 * never starts here. */
void begin_elsewhere(struct worker *w, int32_t partition, struct turn_record *take_record,
                     bool birth, const char *to, enum failure class, char *take_pass);

/* ---- delegate.c: the turn goes on at another service ---- */

/* A service that turns may be passed on to, whose topics were looked for. */
struct target {
    struct service_id service;
    baton_code code;         /* ok, or why a topic of it cannot be written */
    struct mono_ms asked_at; /* when that was found */
};
/* Looks for the topics of every service that turns may be passed on to, and tells which are not
 * there: those services are no fallback until they are. */
baton_code delegate_open(struct worker *w, struct baton_error *err);
/* Their topics, which the member opens; *ret_names and its names are the caller's. */
bool delegate_topics(const struct worker *w, char ***ret_names, size_t *ret_count);
/* The next service of the role's chain that this turn has not had and that can be had now, or NULL. */
const char *delegate_target(struct worker *w, const struct turn_record *record);
/* Is there any service that the chain of any role here leads to, and that can be had? */
bool delegate_any(const struct worker *w);
/* ok, or why this turn cannot be passed on to that service: not_permitted, or the code of its topic. */
baton_code delegate_may(struct worker *w, const struct turn_record *record, const char *to,
                        const char **ret_note);
/* The pass by which the turn goes to that service as its next attempt; NULL: it cannot be made
 * (logged). The caller frees it. */
char *delegate_sign(struct worker *w, const struct turn_record *record, const char *to,
                    enum failure class);
/* The record becomes delegated, and the turn's bytes go to the service under its pass; told. */
void delegate_put(struct worker *w, struct turn_record *record, const char *to, char *take_pass);

/* ---- operate.c, replay.c, lease/owner.c ---- */

/* A control record is taken without an effect but its answer. record: of the turn, or NULL. */
void operate_answer(struct worker *w, const struct control *control,
                    const struct turn_record *record, baton_code code);
/* Who signed the record of an event. */
const char *operate_actor(const struct engine_event *event);
/* Decides about a replay of a turn that is known; takes record. */
void replay_decide(struct worker *w, const struct engine_event *event,
                   struct turn_record *take_record);

/* Decides about a record of the control topic. */
baton_code operate_record(struct worker *w, const struct engine_event *event,
                          struct baton_error *err);
/* Has this round noted a cancel of a turn that is not known? Its handoff is judged in the next
 * round, by the note. */
bool operate_cancel_noted(const struct worker *w, const char *turn_id);
/* A cancel that came before its handoff, by who may: *ret_by and *ret_reason (caller frees). */
baton_code operate_early_cancel(struct worker *w, int32_t partition,
                                const struct turn_record *record, bool *ret_cancelled,
                                struct plain_id *ret_by, char **ret_reason,
                                struct baton_error *err);
/* Restores what the notes of a partition say (pause). */
baton_code operate_restore(struct worker *w, int32_t partition, struct baton_error *err);

/* ---- blocked.c: topics that cannot be written, shown by a note ---- */

/* Reads a partition's note after a restore, and after a fold. */
baton_code blocked_restore(struct worker *w, int32_t partition, struct baton_error *err);
/* Writes the notes of those partitions that tell something else; without `decides` (no round is being
 * decided) only the file that stands for them while the turn log cannot be written. */
void blocked_tell(struct worker *w, bool decides);

/* An attempt that somebody else runs under a lease, seen by the owner of its partition. */
struct foreign {
    struct turn_id turn;
    int attempt;
    struct boot_id boot;
    int32_t partition;
    struct mono_ms deadline;
    int64_t seq;     /* of the newest renewal */
    int64_t read_to; /* control topic's end when the deadline passed; -1: it has not */
    bool died;       /* its worker, as the log knows: a renewal that is read now was sent before */
};
/* Starts the lease timer of such an attempt from now, unless it runs already. */
void foreign_watch(struct worker *w, int32_t partition, const struct turn_record *record);
void foreign_renewed(struct worker *w, const struct control *control);
void foreign_remove(struct worker *w, const char *turn_id);
void foreign_drop_all(struct worker *w);
/* Declares lost what was not renewed in time, and the control topic is read to its end (rule 25).
 */
baton_code foreign_expire(struct worker *w, struct baton_error *err);
bool foreign_next(const struct worker *w, struct mono_ms *ret_at);

/* ---- dead_letter.c, tell.c ---- */

/* The dead letter of a record that was rejected: as it came, with code and note. */
void dead_letter_rejected(struct worker *w, const struct log_record *record, baton_code code,
                          const char *note);
/* The dead letter of a turn that is parked. source: its handoff record, or NULL if it was taken in
 * before. */
void dead_letter_parked(struct worker *w, const struct turn_record *record,
                        const struct log_record *source);
/* The newest attempts as JSON: at most 16 of them, and 8 KiB. */
void attempts_write(const struct turn_record *record, struct buf *out);
/* Can outcomes (dead letters) be written, as far as is known? What needs one waits otherwise, the
 * rest goes on. */
bool can_tell(const struct worker *w);
bool can_bury(const struct worker *w);

void tell_turn(struct worker *w, const struct turn_record *record, enum outcome_event event);
void tell_answer(struct worker *w, const struct turn_record *record, const char *turn_id,
                 const char *answers_id, const char *answers_kind, baton_code code);
/* Signs what is to be told and puts it into the batch. */
void tell_all(struct worker *w);
void tell_clear(struct worker *w);

/* ---- restore.c ---- */

baton_code restore_begin(struct worker *w, const struct engine_event *event,
                         struct baton_error *err);
baton_code restore_fold(struct worker *w, const struct engine_event *event,
                        struct baton_error *err);
baton_code restore_end(struct worker *w, int32_t partition, struct baton_error *err);
/* Every turn that runs gets its continuation again: w->reopen. */
baton_code restore_again(struct worker *w, struct baton_error *err);
/* Facts of attempts that the log does not show claimed are forgotten, those of others' partitions
 * reported. */
baton_code restore_facts(struct worker *w, struct baton_error *err);
/* Sets when each queued turn of a partition may start: as its record says, or never while the
 * service is paused. */
baton_code restore_dues(struct worker *w, int32_t partition, bool paused, struct baton_error *err);
/* When a queued turn may start, on the monotonic clock: not_before - now, within 0..delay_ms. */
struct mono_ms due_of(struct log *log, const struct turn_record *record);
/* Where the log has a turn's record. at: what it was dated with; 0 (no log that is as it should be
 * leaves it out): the record's own time. */
struct log_place place_of(const struct turn_record *record, int32_t partition, int64_t offset,
                          struct wall_ms at);

/* ---- round.c ---- */

baton_code round_tick(struct worker *w, struct baton_error *err);
/* Folds what the log has taken and records the ends that have arrived; starts the claims if asked.
 */
baton_code round_fold(struct worker *w, bool start, struct baton_error *err);
baton_code round_commit(struct worker *w, struct baton_error *err);
void round_mail(struct worker *w, void *mail);
/* An end to be recorded as a fact in the next tick; takes what it owns. */
void round_arrived(struct worker *w, const struct recorded_end *take_end);
/* The fact of a token is forgotten in the next tick. */
void round_forget(struct worker *w, const char *turn_id, int attempt, const char *boot);
/* Drops what was decided and is not in the log. */
void round_drop(struct worker *w);
/* Tells the leases what runs here, a few times a second at most. */
void round_tell_leases(struct worker *w);
/* Hands what runs or has ended in these partitions to the leases. */
void round_hold(struct worker *w, const int32_t *partitions, size_t count, bool lost);
void round_moved(struct worker *w, const struct engine_event *event);

/* ---- retention.c ---- */
baton_code retention_tick(struct worker *w, struct baton_error *err);

#define REST_NO_END INT64_MAX /* until it is cleared */
/* A credential profile: whether and why it rests. */
struct rest {
    struct mono_ms until; /* 0: it does not rest; REST_NO_END: it is refused */
    enum failure class;
    bool named; /* the provider named that time */
    struct wall_ms since;
    struct wall_ms until_wall; /* the same as until, for people; 0: no end */
    struct rest_mark mark;     /* refused: of the credential that was */
    struct mono_ms tried;      /* when an attempt with it ended last */
    struct wall_ms worked;     /* when one succeeded last */
    struct wall_ms changed;    /* when its credential was another one for the first time */
};

#define CLEARS_KEPT 32

/* Which record is first in line in an input, and since when this process has seen it there. */
struct first {
    int64_t position;
    int64_t since_ms; /* monotonic */
};

/* An end that has arrived and is not in the store yet. */
struct arrived {
    struct recorded_end end;
    bool forget; /* not an end: the fact of this token is not needed any more */
};

struct reloaded; /* reload.c */

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

/* ---- gauges.c ---- */
/* The log whose brokers may be away, for /readyz; NULL before it is closed. */
void gauges_log(const struct log *log);
/* Whether this worker can do its work, for /readyz. */
void gauges_health(const struct worker *w);
/* Looks at what waits here, when it is time; w->gauges_due. */
void gauges_tick(struct worker *w);

/* ---- start.c ---- */
/* This worker as who receives: with the trust that is in force now. */
struct receiver worker_receiver(const struct worker *w);
baton_code worker_start(struct worker *w, struct baton_error *err);
/* Reads the trust folder again; true if it was read. unknown: a key was not known, so only if it
 * has changed. */
bool worker_reload_trust(struct worker *w, bool unknown);
void worker_reread_envs(struct worker *w);
/* The next worker_reread_envs reads them, whenever they were read last. */
void worker_envs_stale(struct worker *w);
/* When that is to be looked at again. */
struct mono_ms worker_envs_due(const struct worker *w);

/* ---- reload.c ---- */
/* Reads configuration, profiles and key again, if that was asked for. When nothing is decided that the log
 * has not taken, and no claim waits for its start. */
void worker_reload_due(struct worker *w);
void reloaded_free(struct reloaded *reloaded);

/* ---- stop.c ---- */
#define CLOSE_TIMEOUT_MS 5000
void stop_read_wake(struct worker *w);
/* The grace is over, or somebody asked twice: what still runs is told to end. */
void stop_end_what_runs(struct worker *w);
/* It has waited long enough for what runs to be settled: others shall take over. */
bool stop_waited(const struct worker *w);
/* Nothing runs here and nothing waits for log or store. */
bool stop_settled(struct worker *w);
/* Nothing is left to do at all (--drain). */
bool stop_drained(struct worker *w);
/* service_unavailable where ends are recorded that the log could not be told of. */
baton_code stop_left_nothing(struct worker *w, struct baton_error *err);
baton_code stop_as_holder(struct worker *w, struct baton_error *err);

/* Fields that every log line of the pipeline carries. */
#define D_TURN(record)                                                                             \
    D_TEXT("turn", (record)->id.s), D_TEXT("role", role_word((record)->role)),                     \
        D_INT("attempt", (record)->attempt), D_TEXT("service", (record)->service.s)

#endif
