/* Inside of the coordinator: one thread, the engine's caller. Included by its files only. */
#ifndef BATON_PRODUCER_COORDINATOR_INTERNAL_H
#define BATON_PRODUCER_COORDINATOR_INTERNAL_H

#include "common/base/buf.h"
#include "common/base/diag.h"
#include "common/engine/engine.h"
#include "common/http/listen.h"
#include "common/record/outcome.h"
#include "common/record/request.h"
#include "common/record/signer.h"
#include "common/record/trust.h"
#include "common/trace/tracer.h"
#include "producer/coordinator/coordinator.h"
#include "producer/handoff/handoff.h"
#include "producer/hook/hook.h"
#include "producer/run/run.h"
#include "topics/catalogue.h"

/* ---- the image of the run log (image.c) ---- */

/* What is known of a run: all of it while it is open, then where its record lies. */
struct image_row {
    struct image_row *next; /* of its bucket */
    struct plain_id id;
    int32_t partition;
    int64_t offset;    /* of its newest record */
    struct wall_ms at; /* when that was appended, by the log's dates; 0: not known */
    struct run *run;   /* open; NULL: it has ended, or cannot be read */
};

struct image {
    struct image_row **buckets;
    size_t n_buckets;
    size_t count;
    size_t n_open;
};

void image_done(struct image *image);
struct image_row *image_find(const struct image *image, const char *run_id);
/* Takes the run as the newest state; an ended one is freed and only its place kept. */
bool image_fold(struct image *image, struct run *take_run, int32_t partition, int64_t offset,
                struct wall_ms at);
void image_forget(struct image *image, const char *run_id);
/* There is a run of which no more is known than where its newest record lies, since it has ended or cannot
 * be read: neither does an older one count, nor may it begin anew. False: no memory. */
bool image_place(struct image *image, const char *run_id, int32_t partition, int64_t offset,
                 struct wall_ms at);
/* Rows of ended runs of the partition whose newest record is older; at most max. */
size_t image_ended(const struct image *image, int32_t partition, struct wall_ms before,
                   const struct image_row **ret_rows, size_t max);
void image_drop_partition(struct image *image, int32_t partition);
/* Calls each for every open run. */
void image_each(const struct image *image, void (*each)(void *arg, const struct image_row *row),
                void *arg);

/* ---- decisions of the present batch ---- */

/* A run as it will be; its record is written once, when the batch is committed. */
struct change {
    int32_t partition;
    struct run *run;      /* NULL: it leaves the run log */
    struct plain_id gone; /* which, then */
    size_t put;
};

#define HOOKS_AT_ONCE 16 /* each is a program with a thread; others wait */
struct hooking;          /* hooks.c */

struct reloaded; /* reload.c */

struct coordinator {
    const struct config *config;
    struct reloaded
        *reloaded; /* what SIGHUP has brought, in which config points; NULL: nothing yet */
    const struct coordinator_options *options;
    struct plain_id id;
    struct boot_id boot;
    struct plain_id fleet;
    struct trust *trust;
    struct mono_ms trust_seen;
    struct signer *signer; /* NULL: proof is off and there is no key */
    struct log *log;
    struct topic_name requests;
    struct topic_name outcomes;
    struct topic_name runs;
    struct topic_name dlq;
    struct topic_name group;
    struct engine *engine;
    struct mailbox *mail;
    struct workflow_shelf shelf; /* of all runs' workflows */
    struct image image;
    struct change *changes;
    size_t n_changes;
    size_t cap_changes;
    struct mono_ms look_at; /* when open runs are looked through: deadlines, what is pending */
    struct mono_ms trim_at;
    struct hooking *hooks; /* of pending ends; oldest first */
    size_t n_hooks_run;
    char *hook_scratch; /* NULL: none has run yet */
    struct diag_limit limit;
    struct http_listener *http; /* NULL: nobody may ask */
    struct tracer *tracer;      /* NULL: no traces.endpoint */
    struct span_list spans;     /* of what the batch decides */
    struct mono_ms gauges_due;
    bool ready_told;
    bool stopping;
};

/* coordinator.c: what signals ask for, at the start, too, before there is an engine. */
void coordinator_read_wake(struct coordinator *c);

/* start.c */
baton_code coordinator_start(struct coordinator *c, struct baton_error *err);
bool coordinator_reload_trust(struct coordinator *c);
/* reload.c: reads configuration and key again (SIGHUP); between two events, when no batch is decided. */
void coordinator_reload(struct coordinator *c);
void coordinator_reloaded_free(struct reloaded *reloaded);
struct receiver coordinator_receiver(const struct coordinator *c);

/* changes.c: the run to be changed in this batch; what *ret_run points to is the batch's. run_not_found;
 * service_unavailable: it has ended and cannot be read just now; store_failed: its record is none. */
baton_code change_of(struct coordinator *c, const char *run_id, struct run **ret_run);
/* The batch takes a run that has just begun. */
void change_add(struct coordinator *c, struct run *take_run, int32_t partition);
/* The batch takes the run out of the run log, unless it changes it. */
void change_forget(struct coordinator *c, const struct image_row *row);
void changes_put(struct coordinator *c);
void changes_committed(struct coordinator *c);
void changes_drop(struct coordinator *c);

/* requests.c: what a handoff came to, as an answer's result. */
void requests_print_handoff(const struct run *run, const struct handoff_result *result,
                            struct buf *out);

/* gauges.c: whether it can do its work, and what waits, when it is time to look. */
void coordinator_gauges(struct coordinator *c);

/* requests.c, outcomes.c: one record each; it is taken in, or left for later. */
void requests_take(struct coordinator *c, const struct engine_event *event);
void outcomes_take(struct coordinator *c, const struct engine_event *event);

/* advance.c */
/* The first turns of an epoch. */
void advance_start(struct coordinator *c, struct run *run);
/* Answers the pending end by a transition, an end, or by waiting for a person. */
void advance_pending(struct coordinator *c, struct run *run);
/* Decides once more about what waits to be sent: the pending end, or the first turn. */
void advance_again(struct coordinator *c, struct run *run);
/* Makes a run wait, and says for what; code and stage of what was refused, or BATON_OK and "". */
void advance_wait(struct run *run, baton_code code, const char *stage, const char *why);
/* The task's revision has risen: open turns of older ones are cancelled where they are */
void advance_stale(struct coordinator *c, struct run *run);
/* An end that was reached while other turns were open counts, now that none is. False: none was. */
bool advance_held(struct coordinator *c, struct run *run);
/* A handoff that may pass: counted once, a turn for each target (I9). False: none could be sent; the
 * run waits, and the result says so, too. */
bool advance_take(struct coordinator *c, struct run *run, const struct handoff_ask *ask,
                  struct handoff_result *result, const char *parent, const char *data);
/* handoff_reachable; arg: coordinator and run, two pointers. */
bool advance_can_reach(void *arg, size_t slot, baton_code *ret_code);
/* Ends the run: cancels what is open, tells it. */
void advance_end(struct coordinator *c, struct run *run, enum run_state state, const char *why);
/* Deadlines, and pending ends whose targets could not be written to. */
void advance_look(struct coordinator *c);

/* asked.c: handoffs that people and programs ask for */
/* What came of it in *ret_result; false: its hook is to look at it first, and the answer comes later. */
bool asked_take(struct coordinator *c, struct run *run, const struct request *request,
                const char *by, bool person, struct handoff_result *ret_result);
/* Decides once more about the one that waits for its hook, and answers it. */
void asked_again(struct coordinator *c, struct run *run);
/* One waits for a hook that nobody knows of: it ran in an earlier coordinator. */
bool asked_lost(const struct coordinator *c, const struct run *run);
/* The run ends: one that still waits is refused. */
void asked_over(struct coordinator *c, struct run *run);

/* hooks.c: each of the run's pending end, or of the handoff that was asked for */
/* It is to run, once the batch is committed; nothing if it does already. asked NULL: for the pending end;
 * turn may be NULL with it only. */
void hooks_want(struct coordinator *c, const struct run *run, const struct run_turn *turn,
                const struct handoff_result *result, const char *summary, const char *data,
                const struct run_asked *asked);
/* What it said, borrowed; NULL: it has not ended. */
const struct hook_end *hooks_end_of(const struct coordinator *c, const struct run *run,
                                    const struct run_asked *asked);
/* Is there none for what was asked? */
bool hooks_none_for(const struct coordinator *c, const struct run *run,
                    const struct run_asked *asked);
/* Is there a pending end at which a hook looks, or will by itself? */
bool hooks_may_look(const struct run *run);
/* The end waits for a hook that nobody knows of: it ran in an earlier coordinator. */
bool hooks_lost(const struct coordinator *c, const struct run *run);
/* A person asks anew: one that did not let it pass runs again. */
void hooks_forget(struct coordinator *c, const struct run *run);
/* The message of one that has ended. */
void hooks_heard(struct coordinator *c, void *mail);
/* Starts those that are committed, decides about those that have ended, ends those that nobody waits for.
 * At the beginning of a round, when the batch is empty. */
void hooks_look(struct coordinator *c);
/* Kills and frees all. */
void hooks_done(struct coordinator *c);

/* retention.c: trims what was taken; ended runs leave the run log after 90 days. False: more of them wait. */
bool runs_forget(struct coordinator *c);

/* told.c */
/* Task, sender and verdict as data beside what the sender gave (H-46), and the run's subject where the
 * transition's hook has one and the sender named none: a JSON object. turn may be NULL. */
void told_data(const struct run *run, const char *from, const struct run_turn *turn,
               const struct workflow_transition *transition, const char *data, struct buf *out);
struct json_doc;
/* The names of an object's members, at most LIMIT_DATA_KEYS, borrowed from the document that *ret_doc keeps. */
size_t told_names(const char *data, const char **names, struct json_doc **ret_doc);

/* spans.c: what was decided, for the collector (traces.endpoint) */
/* The span that a decision follows from, and when that had ended; none: zeroed. */
struct spans_cause {
    struct span_id span;
    struct wall_ms at;
};
struct spans_cause spans_cause_of(const struct run_turn *turn);
/* The traceparent of a turn's handoff. n: how often `by` was taken, with this one. */
struct traceparent_text spans_send(struct coordinator *c, const struct run *run,
                                   const struct turn *turn, const char *by, int n,
                                   const char *slot);
void spans_decided(struct coordinator *c, const struct run *run, const char *by, int n,
                   const struct spans_cause *cause);
void spans_run_ended(struct coordinator *c, const struct run *run);

/* send.c: into the batch */
/* A turn of the run for a slot; false: why it cannot be. Turns of the run are to be found again. */
bool send_turn(struct coordinator *c, struct run *run, const char *by, const char *from,
               const char *parent, size_t slot, const char *summary, const char *data, int n,
               struct baton_error *err);
bool send_reachable(struct coordinator *c, const struct run *run, size_t slot,
                    baton_code *ret_code);
void send_cancel(struct coordinator *c, const struct run_turn *turn, const char *reason);
void send_answer(struct coordinator *c, const struct request *request, const char *result,
                 baton_code code);
void send_run_ended(struct coordinator *c, const struct run *run);
void send_dead_letter(struct coordinator *c, const struct log_record *record, baton_code code,
                      const char *note);
bool send_can_tell(const struct coordinator *c);
bool send_can_bury(const struct coordinator *c);

#endif
