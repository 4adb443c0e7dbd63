/*
 * On receipt: from the bytes of a record to something that may change something (RECORD.md section
 * 3).
 *
 * In this order, over one buffer: size, headers, key ids known, signatures, strict JSON, schema, id
 * and origin, rights of the origin and of each hop, addressed to me, partition of the key, time.
 * What the log knows and whether the role is served come after it, in the engine's caller. Nothing
 * unproven gets further.
 *
 * Pure: no store, no log, no clock. Any thread; a receipt belongs to one at a time.
 */
#ifndef BATON_RECORD_RECEIPT_H
#define BATON_RECORD_RECEIPT_H

#include "baton/code.h"
#include "common/log/log.h"
#include "common/record/control.h"
#include "common/record/outcome.h"
#include "common/record/pass.h"
#include "common/record/request.h"
#include "common/record/trust.h"
#include "common/record/turn.h"

#include <stdbool.h>

/* Who receives: a worker of a service, or who reads what is said about runs (a coordinator, somebody who
 * waits for an outcome). */
struct receiver {
    const struct trust *trust; /* NULL only with proof: off and no trust folder */
    const char *fleet;
    bool proof_required;
    const char
        *service; /* NULL where none receives: requests and outcomes are addressed to nobody */
    int32_t partitions; /* of the topics: a service's, or those of requests, outcomes and runs */
};

struct receipt {
    baton_code code;         /* ok, or why the record is rejected */
    char note[200];          /* what exactly, one line, for the dead letter and the log */
    bool proven;             /* proof verified, or proof: off */
    struct turn *turn;       /* handoff: present when code is ok */
    struct control *control; /* control record: present when code is ok */
    struct request *request; /* request: present when code is ok */
    struct outcome *outcome; /* outcome: present when code is ok */
    /* Borrowed from the receiver's trust; NULL with proof: off and an unknown key. */
    const struct trust_principal *signer;
    struct key_id key_id;           /* "" where unsigned */
    char *signature;                /* value of baton-sig; NULL where unsigned */
    struct pass passes[PASSES_MAX]; /* of a handoff; of an outcome as they came, not verified */
    size_t n_passes;
    int attempt; /* handoff: of the last pass, or 1, 0, 0, 0 */
    int failures;
    int losses;
    int replays;
    char *traceparent; /* NULL if absent or malformed */
    bool wait_claimed; /* baton-wait: claimed */
    char *history;     /* baton-attempts as it came (information), or NULL */
};
void receipt_done(struct receipt *receipt);

/* Judges a record of the handoff topic. *ret_receipt is filled in any case; its code is returned.
 */
baton_code receipt_handoff(const struct receiver *receiver, const struct log_record *record,
                           struct receipt *ret_receipt);
/*
 * Judges a record of the control topic: proof, form, partition, and that its signer may send this
 * kind to this service (cancel: also a possible origin of the turn; the turn itself is judged by
 * the caller). The service's own key for renew and report.
 */
baton_code receipt_control(const struct receiver *receiver, const struct log_record *record,
                           struct receipt *ret_receipt);

/*
 * Judges a record of the topic of requests: proof, form, key, that a start's run id is the hash of its
 * signer's name and key, that its signer may send this kind, partition, and that it was appended within 7
 * days after it was signed. Whether the run is there and request_no is its next, is the caller's.
 */
baton_code receipt_request(const struct receiver *receiver, const struct log_record *record,
                           struct receipt *ret_receipt);
/*
 * Judges a record of the topic of outcomes: proof, form, key, partition, and who speaks. A run's end, and
 * an answer that names a run and no turn, are signed by who may coordinate and name OUTCOME_COORDINATOR;
 * everything else by the service that it names, which must serve the turn's role if it tells of work on it
 * (claimed, running, completed, a result). It is not addressed to anybody and has no time to keep. What it
 * means for a turn or run (content, attempt; receipt_outcome_chain: whether its service speaks for the turn) is
 * the caller's. A service's answer counts for control records only, whatever id it answers.
 */
baton_code receipt_outcome(const struct receiver *receiver, const struct log_record *record,
                           struct receipt *ret_receipt);

/* A turn as who made it knows it. */
struct receipt_turn {
    const char *id;
    const char *born; /* its first service */
    enum role role;
    const struct digest *digest; /* SHA-256 of its value */
};
/*
 * Does the service of an outcome that receipt_outcome let through speak for this turn: do the passes that
 * came along lead from its first service to that one, each signed over the turn by its `from`, which may
 * pass the role on? *ret_last is the last hop (attempt, counters, costs; text NULL), without one attempt
 * 1 and zeros. not_permitted: the chain ends elsewhere, or a hop lacks its right; bad_signature,
 * unknown_key, invalid_envelope, no_memory.
 */
baton_code receipt_outcome_chain(const struct receiver *receiver, const struct receipt *receipt,
                                 const struct receipt_turn *turn, struct pass *ret_last,
                                 struct baton_error *err);

/*
 * Judges a turn that comes back from turn log or store, before an executor starts: the same checks
 * without time and partition. bytes, signature and passes are those of the turn-log record.
 */
baton_code receipt_stored(const struct receiver *receiver, const char *turn_id, const void *bytes,
                          size_t len, const char *signature, char *const *passes, size_t n_passes,
                          struct receipt *ret_receipt);

/*
 * May the signer of a cancel end this turn? Its origin may, and who operates the service of its
 * birth or this one. To be asked for every cancel that receipt_control let through, once the turn
 * is known. With proof: off everybody may.
 */
bool receipt_may_cancel(const struct receiver *receiver, const struct receipt *receipt,
                        const char *origin, const char *born);

#endif
