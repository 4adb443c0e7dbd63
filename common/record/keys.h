/*
 * Making and ending keys: what the commands `baton keys` do to the folders of keys and of trust
 * (RECORD.md section 4). Private keys are written 0600 and atomically, public ones and rights 0644;
 * nothing here prints, and no private byte leaves it. Main thread: a passphrase may be asked.
 */
#ifndef BATON_RECORD_KEYS_H
#define BATON_RECORD_KEYS_H

#include "baton/code.h"
#include "common/base/buf.h"
#include "common/base/clock.h"
#include "common/base/config.h"
#include "common/base/id.h"
#include "common/record/trust.h"

#include <stdbool.h>
#include <stddef.h>

#define KEYS_RETIRE_AFTER_MS                                                                       \
    (31LL * 24 * 3600 * 1000) /* a turn may wait 7 days, a dead letter 30 */

struct keys_folders {
    const char *keys;
    const char *trust;
};

/* ---- what a configuration needs ---- */

/* KEYS_STEP(word, text) */
#define KEYS_STEPS(KEYS_STEP)                                                                      \
    KEYS_STEP(fleet, "names the fleet")                                                            \
    KEYS_STEP(rights, "writes kind and rights")                                                    \
    KEYS_STEP(pair, "makes a key")                                                                 \
    KEYS_STEP(publish, "writes the public key of the private one that is here")

#define KEYS_STEP_ENUM(word, text) KEYS_STEP_##word,
enum keys_step_kind { KEYS_STEPS(KEYS_STEP_ENUM) KEYS_STEP_COUNT };
#undef KEYS_STEP_ENUM

struct keys_step {
    enum keys_step_kind kind;
    struct plain_id name; /* the principal, or the fleet */
    char text[400]; /* one line: what is lacking and will be made; the key's id once it is made */
};

struct keys_plan {
    struct keys_step *steps;
    size_t count;
};
void keys_plan_done(struct keys_plan *plan);
const char *keys_step_word(enum keys_step_kind kind);

/*
 * What the configuration needs and the trust folder lacks: a fleet's name (`local-` and 8 random
 * digits), a key and rights for `identity` (a person who may create, operate and ask everything),
 * for `coordinator`, and for each service (serve: its roles; pass: along the chains). Principals
 * that are there keep what they have; rights are only added, and only to services. Changes nothing.
 * key_unsafe, and those of trust_read.
 */
baton_code keys_plan_config(const struct config *config, struct keys_plan *ret_plan,
                            struct baton_error *err);
/*
 * Makes all of it, the folders too (keys 0700, trust 0755), and loads the trust folder at the end
 * to prove that it is whole. *ret_plan says what was done; keys_plan_done in any case.
 */
baton_code keys_apply_config(const struct config *config, struct keys_plan *ret_plan,
                             struct baton_error *err);

/* ---- single keys ---- */

/* Rights as they are typed: ROLES is `owner,reviewer`, or `all`. */
struct keys_wish {
    const char *kind;        /* NULL: service with serve, else person */
    const char *serve;       /* ROLES */
    const char *const *pass; /* SERVICE=ROLES */
    size_t n_pass;
    const char *const *create; /* SERVICE=ROLES, `*` is every service */
    size_t n_create;
    const char *const *operate; /* SERVICE or `*` */
    size_t n_operate;
    const char *const *request; /* KIND, or `all` */
    size_t n_request;
    bool coordinate;
};

struct keys_made {
    struct key_id id;
    bool new_rights;        /* trust/NAME.yaml was written */
    char private_path[512]; /* what stays here */
    char public_path[512];  /* what is to be copied to every host */
};

/*
 * A new pair for NAME. duplicate: it has a private key here (rotate it). invalid_request: rights
 * for a principal that is there already, or rights that its kind cannot have.
 */
baton_code keys_generate(const struct keys_folders *folders, const char *name,
                         const struct keys_wish *wish, bool with_passphrase,
                         struct keys_made *ret_made, struct baton_error *err);
/*
 * A new pair in place of the one that signs. stage: its public key only goes to trust, the private
 * one waits as NAME.next.pem; without stage a waiting one is switched to, or a new one made and
 * switched to at once. The old public key stays. unauthenticated: NAME has no private key here;
 * duplicate: one waits already.
 */
baton_code keys_rotate(const struct keys_folders *folders, const char *name, bool stage,
                       bool with_passphrase, struct keys_made *ret_made, struct baton_error *err);
/*
 * Removes a public key that nothing can need. key_not_found; not_permitted: it still signs here, or
 * is revoked (the mark must find it), or has no successor, or one younger than 31 days. Whether an
 * open turn was signed by it the caller asks the turn logs before.
 */
baton_code keys_retire(const struct keys_folders *folders, const char *key_id, struct wall_ms now,
                       struct baton_error *err);
/* The checks of keys_retire, without removing. */
baton_code keys_retire_check(const struct keys_folders *folders, const char *key_id,
                             struct wall_ms now, struct baton_error *err);
/* Marks a key as never trusted. *ret_known: it is in the folder. duplicate: it was marked before.
 */
baton_code keys_revoke(const struct keys_folders *folders, const char *key_id, bool *ret_known,
                       struct baton_error *err);

/* KEYS_HERE(word, text): what this host has of a key's private half. */
#define KEYS_HERES(KEYS_HERE)                                                                      \
    KEYS_HERE(no, "-")                                                                             \
    KEYS_HERE(signs, "signs")                                                                      \
    KEYS_HERE(staged, "staged")                                                                    \
    KEYS_HERE(encrypted, "has passphrase")

#define KEYS_HERE_ENUM(word, text) KEYS_HERE_##word,
enum keys_here { KEYS_HERES(KEYS_HERE_ENUM) KEYS_HERE_COUNT };
#undef KEYS_HERE_ENUM

const char *keys_here_text(enum keys_here here);
/* encrypted: NAME.pem is here, and only its passphrase tells which key of NAME it is. Unsafe files
 * are a line in findings. */
enum keys_here keys_here(const struct keys_folders *folders, const struct trust_key *key,
                         struct buf *findings);

#endif
