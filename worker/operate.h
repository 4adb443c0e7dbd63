/*
 * What operators, origins and lease holders ask of the owner of a turn (operate.c), and replay, which has
 * a file of its own (replay.c).
 *
 * Included by worker.c, round.c, restore.c and claim.c. Engine's thread.
 */
#ifndef BATON_WORKER_OPERATE_H
#define BATON_WORKER_OPERATE_H

#include "baton/code.h"
#include "common/base/id.h"

#include <stdbool.h>
#include <stdint.h>

struct control;
struct engine_event;
struct turn_record;
struct worker;

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

/* ---- between operate.c and replay.c ---- */

/* A control record is taken without an effect but its answer. record: of the turn, or NULL. */
void operate_answer(struct worker *w, const struct control *control,
                    const struct turn_record *record, baton_code code);
/* Who signed the record of an event. */
const char *operate_actor(const struct engine_event *event);
/* Decides about a replay of a turn that is known; takes record. */
void replay_decide(struct worker *w, const struct engine_event *event,
                   struct turn_record *take_record);

#endif
