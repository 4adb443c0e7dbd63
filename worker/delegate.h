/*
 * Delegation: the turn goes on at another service (delegate.c).
 *
 * Included by start.c, and by what settles, begins, replays and holds turns. Engine's thread.
 */
#ifndef BATON_WORKER_DELEGATE_H
#define BATON_WORKER_DELEGATE_H

#include "baton/code.h"
#include "common/base/clock.h"
#include "common/base/failure.h"
#include "common/base/id.h"

#include <stdbool.h>
#include <stddef.h>

struct turn_record;
struct worker;

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

#endif
