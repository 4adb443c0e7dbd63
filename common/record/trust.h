/*
 * The trust folder: who is who, with which public keys and rights (RECORD.md section 4).
 *
 * A struct trust is const after loading: any thread may use it until it is freed. Reloading makes a
 * new one. All findings are reported at once.
 */
#ifndef BATON_RECORD_TRUST_H
#define BATON_RECORD_TRUST_H

#include "baton/code.h"
#include "common/base/buf.h"
#include "common/base/clock.h"
#include "common/base/id.h"
#include "common/base/role.h"
#include "common/record/signer.h"

#include <stdbool.h>
#include <stddef.h>

struct trust;
struct trust_key;
struct trust_principal;

/* REQUEST_KIND(word): what may be asked of runs. */
#define REQUEST_KINDS(REQUEST_KIND)                                                                \
    REQUEST_KIND(start)                                                                            \
    REQUEST_KIND(handoff)                                                                          \
    REQUEST_KIND(touch)                                                                            \
    REQUEST_KIND(cancel)                                                                           \
    REQUEST_KIND(reopen)                                                                           \
    REQUEST_KIND(answer)

enum principal_kind { PRINCIPAL_service, PRINCIPAL_program, PRINCIPAL_person };

/* key_unsafe (owner, permissions), bad_config (findings: one line each), service_unavailable
 * (unreadable). */
baton_code trust_load(const char *dir, struct trust **ret_trust, struct buf *findings,
                      struct baton_error *err);
/*
 * The same for who mends the folder or shows it: what could be read is there in spite of findings,
 * and their number is in *ret_findings. Nothing is verified with it.
 */
baton_code trust_read(const char *dir, struct trust **ret_trust, struct buf *findings,
                      size_t *ret_findings, struct baton_error *err);
void trust_free(struct trust *trust);
const char *trust_fleet(const struct trust *trust);
/* Has anything in the folder changed since it was loaded (names, times, sizes)? */
bool trust_changed(const struct trust *trust);

/* A key by its id; NULL if unknown or revoked. */
const struct trust_key *trust_key_find(const struct trust *trust, const char *key_id);
/* Does the folder say that the key with this id is revoked? */
bool trust_revokes(const struct trust *trust, const char *key_id);
const struct trust_principal *trust_key_owner(const struct trust_key *key);
const struct trust_principal *trust_principal_find(const struct trust *trust, const char *name);
const char *trust_principal_name(const struct trust_principal *principal);
enum principal_kind trust_principal_kind(const struct trust_principal *principal);
/* "service", "program", "person". */
const char *principal_kind_word(enum principal_kind kind);

/* Everything in the folder: principals by name, keys by id (revoked ones too). */
size_t trust_principals(const struct trust *trust);
const struct trust_principal *trust_principal_at(const struct trust *trust, size_t i);
size_t trust_keys(const struct trust *trust);
const struct trust_key *trust_key_at(const struct trust *trust, size_t i);
const char *trust_key_id(const struct trust_key *key);
bool trust_key_revoked(const struct trust_key *key);
/* When its file was written. */
struct wall_ms trust_key_made_at(const struct trust_key *key);

/* Rights. NULL principals have none. */
bool trust_may_create(const struct trust_principal *who, const char *service, enum role role);
bool trust_may_serve(const struct trust_principal *who, enum role role);
bool trust_may_pass(const struct trust_principal *who, const char *to, enum role role);
bool trust_may_operate(const struct trust_principal *who, const char *service);
/* At any service. */
bool trust_may_create_any(const struct trust_principal *who);
bool trust_may_operate_any(const struct trust_principal *who);
bool trust_may_coordinate(const struct trust_principal *who);
/* kind: a word of REQUEST_KINDS. */
bool trust_may_request(const struct trust_principal *who, const char *kind);
/* Rights that are given for a place: a service, or every one. */
enum trust_right { TRUST_RIGHT_create, TRUST_RIGHT_pass, TRUST_RIGHT_operate };
/* The place of that right with number i, "*" for every service; NULL behind the last. A grant without
 * a role is a place, too: it permits nothing. */
const char *trust_place(const struct trust_principal *who, enum trust_right right, size_t i);
/* Every right as a sentence and a newline: `claude may pass reviewer to codex-review`. */
void trust_rights(const struct trust_principal *who, struct buf *out);

/* Ed25519 over the bytes of RECORD.md section 2; true if it verifies. Any thread, about 104 us. */
bool trust_key_verify(const struct trust_key *key, const char *fleet, enum proof_class class,
                      const void *record_key, size_t record_key_len, const char *statement,
                      const struct digest *digest, const char *signature_hex);

#endif
