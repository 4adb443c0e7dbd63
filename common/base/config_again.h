/*
 * The configuration read again while a process runs (SIGHUP): what it says now, what differs from what
 * is in force, and what of that only a restart can change.
 *
 * In: worker/reload.c, producer/coordinator/reload.c. A configuration stays const: a process that takes
 * some of a new one over makes itself a view of both, and frees the new one when the next has come.
 */
#ifndef BATON_BASE_CONFIG_AGAIN_H
#define BATON_BASE_CONFIG_AGAIN_H

#include "common/base/config.h"

/* What becomes of a key whose value is another one now. */
enum config_effect {
    CONFIG_EFFECT_now,     /* holds from now on */
    CONFIG_EFFECT_restart, /* holds from the next start on */
    CONFIG_EFFECT_none,    /* this process does not look at it */
};

/*
 * Reads the file of `old` again, with the same --set. What is wrong with it is logged, a line for each
 * finding with its place in the file (`config.not_read`), and bad_config is returned: what is in force
 * stays. In that case reload.c's caller does nothing.
 */
baton_code config_load_again(const struct config *old, const char *const *sets, size_t n_sets,
                             struct config **ret_fresh, struct baton_error *err);

/* Adds the keys of that effect whose values differ, sorted as in the file, with ", " between. */
void config_differs(const struct config *old, const struct config *fresh,
                    enum config_effect (*effect_of)(const char *key, const void *arg),
                    const void *arg, enum config_effect effect, struct buf *ret_keys);

/* In the log, and counted: what could not be read again. event is the process's own: worker.not_reloaded. */
void config_again_tell_not(const char *event, const char *what, baton_code code,
                           const struct baton_error *err);
/* In the log: keys, by config_differs, that only a restart of `whose` ("worker") takes over; none: nothing. */
void config_again_tell_restart(const struct buf *keys, const char *whose);

#endif
