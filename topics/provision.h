/*
 * Provisioning: which topics the configuration needs, what is there, and what would change.
 *
 * A plan is made from configuration and log, shown, then applied: topics are created and their
 * settings mended. The number of partitions is never changed, nothing is ever deleted. Works
 * through common/log only. A plan borrows configuration and log for its life. Any thread, one at a
 * time.
 */
#ifndef BATON_TOPICS_PROVISION_H
#define BATON_TOPICS_PROVISION_H

#include "baton/code.h"
#include "common/base/config.h"
#include "common/log/log.h"
#include "topics/catalogue.h"

#include <stdbool.h>
#include <stddef.h>

/* PROVISION(word, text): what applying does about a topic. */
#define PROVISIONS(PROVISION)                                                                      \
    PROVISION(keep, "is as it should be")                                                          \
    PROVISION(create, "is missing and will be made")                                               \
    PROVISION(mend, "has other settings, which will be mended")                                    \
    PROVISION(note, "works, but has not as many copies as the configuration says")                 \
    PROVISION(hidden, "may not be looked at by this principal")                                    \
    PROVISION(refuse, "cannot be mended by this program")                                          \
    PROVISION(surplus, "belongs to no configured service and is left alone")

#define PROVISION_ENUM(word, text) PROVISION_##word,
enum provision { PROVISIONS(PROVISION_ENUM) PROVISION_COUNT };
#undef PROVISION_ENUM

struct provision_step {
    struct topic_name name;
    enum topic_kind kind;
    struct service_id service; /* "" for topics of no service */
    enum provision what;
    struct log_topic wanted; /* name points into this step; of a surplus: what is there */
    struct log_topic found;  /* the same; not set for create and hidden */
    char text[640];          /* why, for mend, note, hidden and refuse; else "" */
};

struct provision_plan {
    struct provision_step *steps;
    size_t count;
    size_t n_changes; /* create and mend */
    size_t n_refused;
    size_t n_hidden;
};

const char *provision_word(enum provision what);
const char *provision_text(enum provision what);

/* Looks at every topic that the configuration needs, and names those of services that it lacks. */
baton_code provision_plan_make(const struct config *config, struct log *log,
                               struct provision_plan *ret_plan, struct baton_error *err);
/*
 * Creates and mends. Topics that cannot be mended are left; topic_missing names the first of them
 * after everything else was done, or not_permitted the first that may not be looked at.
 */
baton_code provision_apply(struct log *log, const struct provision_plan *plan,
                           struct baton_error *err);
void provision_plan_done(struct provision_plan *plan);

/* All of it: makes the log where there is none (local), plans and applies. *ret_changes may be
 * NULL. */
baton_code provision_all(const struct config *config, size_t *ret_changes, struct baton_error *err);

#endif
