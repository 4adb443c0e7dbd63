/*
 * Single keys: generate, rotate, retire, revoke. Called by the commands `baton keys`.
 */
#include "common/record/keys.h"

#include "common/base/check.h"
#include "common/base/safe_file.h"
#include "common/base/text.h"
#include "common/base/word.h"
#include "common/record/keyfile.h"
#include "common/record/keys_write.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define HERE_TEXT(word, text) text,
static const char *const here_texts[] = {KEYS_HERES(HERE_TEXT)};
#undef HERE_TEXT
#define REQUEST_WORD(word) #word,
static const char *const request_words[] = {REQUEST_KINDS(REQUEST_WORD)};
#undef REQUEST_WORD

const char *keys_here_text(enum keys_here here)
{
    BATON_PRE((unsigned)here < KEYS_HERE_COUNT);
    return here_texts[here];
}

/* ---- rights as they are typed ---- */

static baton_code roles_of(const char *text, role_set *ret_roles, struct baton_error *err)
{
    role_set roles = 0;
    if (strcmp(text, "all") == 0) {
        *ret_roles = ROLE_SET_ALL;
        return BATON_OK;
    }
    for (const char *at = text;;) {
        size_t n = strcspn(at, ",");
        enum role role;
        if (!role_parse(at, n, &role)) {
            return baton_fail(err, BATON_E_invalid_request,
                              "'%s' is no role; roles are: %s, with commas between, or all",
                              text_quote(at, n).s, role_list());
        }
        roles |= ROLE_BIT(role);
        if (at[n] == '\0') {
            break;
        }
        at += n + 1;
    }
    *ret_roles = roles;
    return BATON_OK;
}

/* SERVICE=ROLES */
static baton_code grant_of(const char *text, bool any, struct grant **grants, size_t *count,
                           struct baton_error *err)
{
    const char *equals = strchr(text, '=');
    size_t n = equals == NULL ? 0 : (size_t)(equals - text);
    char service[SERVICE_MAX + 1];
    role_set roles = 0;
    bool anywhere = any && n == 1 && text[0] == '*';
    if (equals == NULL || (!anywhere && !service_id_valid(text, n))) {
        return baton_fail(err, BATON_E_invalid_request,
                          "'%s' is not SERVICE=ROLES, like claude=owner,reviewer",
                          text_quote_of(text).s);
    }
    memcpy(service, text, n);
    service[n] = '\0';
    baton_code rc = roles_of(equals + 1, &roles, err);
    if (rc == BATON_OK && !keys_grant_add(grants, count, service, roles)) {
        rc = baton_fail(err, BATON_E_no_memory, "no memory for rights");
    }
    return rc;
}

static baton_code request_of(const char *text, unsigned *requests, struct baton_error *err)
{
    int i = word_find(request_words, COUNT_OF(request_words), text, strlen(text));
    if (strcmp(text, "all") == 0) {
        *requests = (1u << COUNT_OF(request_words)) - 1u;
    } else if (i >= 0) {
        *requests |= 1u << (unsigned)i;
    } else {
        return baton_fail(err, BATON_E_invalid_request, "'%s' is no kind of request",
                          text_quote_of(text).s);
    }
    return BATON_OK;
}

static baton_code kind_of(const struct keys_wish *wish, enum principal_kind *ret_kind,
                          struct baton_error *err)
{
    static const enum principal_kind kinds[] = {PRINCIPAL_service, PRINCIPAL_program,
                                                PRINCIPAL_person};
    if (wish->kind == NULL) {
        *ret_kind = wish->serve != NULL || wish->n_pass > 0 ? PRINCIPAL_service
                    : wish->coordinate                      ? PRINCIPAL_program
                                                            : PRINCIPAL_person;
        return BATON_OK;
    }
    for (size_t i = 0; i < COUNT_OF(kinds); i++) {
        if (strcmp(wish->kind, principal_kind_word(kinds[i])) == 0) {
            *ret_kind = kinds[i];
            return BATON_OK;
        }
    }
    return baton_fail(err, BATON_E_invalid_request, "'%s' is no kind: service, program, person",
                      text_quote_of(wish->kind).s);
}

static bool any_right(const struct keys_wish *wish)
{
    return wish->serve != NULL || wish->n_pass > 0 || wish->n_create > 0 || wish->n_operate > 0 ||
           wish->n_request > 0 || wish->coordinate || wish->kind != NULL;
}

static baton_code rights_of(const char *name, const struct keys_wish *wish,
                            struct trust_principal *who, struct baton_error *err)
{
    baton_code rc;
    who->name = plain_id_of(name);
    if ((rc = kind_of(wish, &who->kind, err)) != BATON_OK ||
        (wish->serve != NULL && (rc = roles_of(wish->serve, &who->serve, err)) != BATON_OK)) {
        return rc;
    }
    for (size_t i = 0; rc == BATON_OK && i < wish->n_pass; i++) {
        rc = grant_of(wish->pass[i], false, &who->pass, &who->n_pass, err);
    }
    for (size_t i = 0; rc == BATON_OK && i < wish->n_create; i++) {
        rc = grant_of(wish->create[i], true, &who->create, &who->n_create, err);
    }
    for (size_t i = 0; rc == BATON_OK && i < wish->n_request; i++) {
        rc = request_of(wish->request[i], &who->requests, err);
    }
    who->operate = calloc(wish->n_operate + 1, sizeof(who->operate[0]));
    if (rc == BATON_OK && who->operate == NULL) {
        rc = baton_fail(err, BATON_E_no_memory, "no memory for rights");
    }
    for (size_t i = 0; rc == BATON_OK && i < wish->n_operate; i++) {
        const char *at = wish->operate[i];
        if (strcmp(at, TRUST_ANYWHERE) != 0 && !service_id_valid(at, strlen(at))) {
            return baton_fail(err, BATON_E_invalid_request, "'%s' is neither a service nor '*'",
                              text_quote_of(at).s);
        }
        who->operate[who->n_operate++] = service_id_of(at);
    }
    who->coordinate = wish->coordinate;
    if (rc != BATON_OK) {
        return rc;
    }
    bool service = who->kind == PRINCIPAL_service;
    if (service ? who->n_create + who->n_operate > 0 || who->requests != 0 || who->coordinate
                : who->serve != 0 || who->n_pass > 0) {
        return baton_fail(err, BATON_E_invalid_request,
                          "a service may serve and pass, and a program or person create, operate "
                          "and request; %s is a %s",
                          name, principal_kind_word(who->kind));
    }
    if ((service && !service_id_valid(name, strlen(name))) ||
        (who->coordinate && who->kind != PRINCIPAL_program)) {
        return baton_fail(err, BATON_E_invalid_request,
                          service ? "'%s' is no name of a service, [a-z0-9-]{1,48} but coordinator"
                                  : "%s is a person, and only a program may coordinate",
                          name);
    }
    return BATON_OK;
}

/* ---- generate ---- */

static baton_code check_name(const char *name, struct baton_error *err)
{
    if (!file_id_valid(name, strlen(name)) || strcmp(name, "fleet") == 0) {
        return baton_fail(
            err, BATON_E_invalid_request,
            "'%s' is no name of a principal, [a-z0-9._-]{1,64} without a dot before, but fleet",
            text_quote_of(name).s);
    }
    return BATON_OK;
}

static baton_code open_folders(const struct keys_folders *folders, struct trust **ret_trust,
                               struct baton_error *err)
{
    size_t findings;
    return trust_read(folders->trust, ret_trust, NULL, &findings, err);
}

static void set_private_path(struct keys_made *made, const char *path)
{
    size_t n = strnlen(path, sizeof(made->private_path) - 1);
    memcpy(made->private_path, path, n);
    made->private_path[n] = '\0';
}

/* A pair whose private half goes to path and whose public half to trust. The public one is written
 * first where the private one takes effect at once: nothing is signed that cannot be verified. */
static baton_code make_pair(const struct keys_folders *folders, const char *name, const char *path,
                            bool with_passphrase, bool replace, struct keys_made *made,
                            struct baton_error *err)
{
    struct evp_pkey_st *pair = NULL;
    baton_code rc = keyfile_generate(&pair, err);
    if (rc == BATON_OK && !replace) {
        rc = keyfile_write_private(path, pair, with_passphrase, false, err);
    }
    if (rc == BATON_OK) {
        rc = keys_write_public(folders->trust, name, pair, &made->id, made->public_path,
                               sizeof(made->public_path), err);
    }
    if (rc == BATON_OK && replace) {
        rc = keyfile_write_private(path, pair, with_passphrase, true, err);
    }
    keyfile_free(pair);
    set_private_path(made, path);
    return rc;
}

baton_code keys_generate(const struct keys_folders *folders, const char *name,
                         const struct keys_wish *wish, bool with_passphrase,
                         struct keys_made *ret_made, struct baton_error *err)
{
    char path[KEYS_PATH_MAX];
    struct trust *trust = NULL;
    struct trust_principal who;
    struct keys_made made;
    baton_code rc;
    memset(&who, 0, sizeof(who));
    memset(&made, 0, sizeof(made));
    if ((rc = check_name(name, err)) != BATON_OK ||
        (rc = rights_of(name, wish, &who, err)) != BATON_OK ||
        (rc = keys_folder_make(folders->keys, 0700, err)) != BATON_OK ||
        (rc = open_folders(folders, &trust, err)) != BATON_OK ||
        (rc = keys_path(folders->keys, name, ".pem", path, err)) != BATON_OK) {
        goto out;
    }
    bool known = trust_principal_find(trust, name) != NULL;
    if (known && any_right(wish)) {
        rc = baton_fail(err, BATON_E_invalid_request,
                        "%s is in the trust folder already; edit %s/%s.yaml to change its rights",
                        name, text_quote_of(folders->trust).s, name);
        goto out;
    }
    if (keys_path_exists(path)) {
        rc = baton_fail(err, BATON_E_duplicate,
                        "%s has a private key here, %s; `baton keys rotate %s` makes another one",
                        name, text_quote_of(path).s, name);
        goto out;
    }
    if ((rc = make_pair(folders, name, path, with_passphrase, false, &made, err)) == BATON_OK &&
        !known && (rc = keys_write_rights(folders->trust, &who, err)) == BATON_OK) {
        made.new_rights = true;
    }
    if (rc == BATON_OK) {
        *ret_made = made;
    }
out:
    trust_principal_done(&who);
    trust_free(trust);
    return rc;
}

/* ---- rotate ---- */

/* The waiting key signs from now on; its public half must be in trust already, here and elsewhere.
 */
static baton_code switch_to(const struct keys_folders *folders, const char *name, const char *next,
                            const char *path, struct keys_made *made, struct baton_error *err)
{
    struct evp_pkey_st *pair = NULL;
    baton_code rc = keyfile_read_private(next, &pair, err);
    if (rc == BATON_OK) {
        rc = keys_write_public(folders->trust, name, pair, &made->id, made->public_path,
                               sizeof(made->public_path), err);
    }
    keyfile_free(pair);
    if (rc == BATON_OK && rename(next, path) != 0) {
        rc = baton_fail(err, BATON_E_service_unavailable, "cannot replace %s: %s",
                        text_quote_of(path).s, strerror(errno));
    }
    set_private_path(made, path);
    return rc;
}

baton_code keys_rotate(const struct keys_folders *folders, const char *name, bool stage,
                       bool with_passphrase, struct keys_made *ret_made, struct baton_error *err)
{
    char path[KEYS_PATH_MAX];
    char next[KEYS_PATH_MAX];
    struct trust *trust = NULL;
    struct keys_made made;
    baton_code rc;
    memset(&made, 0, sizeof(made));
    if ((rc = check_name(name, err)) != BATON_OK ||
        (rc = open_folders(folders, &trust, err)) != BATON_OK ||
        (rc = keys_path(folders->keys, name, ".pem", path, err)) != BATON_OK ||
        (rc = keys_path(folders->keys, name, ".next.pem", next, err)) != BATON_OK) {
        goto out;
    }
    bool waits = keys_path_exists(next);
    if (trust_principal_find(trust, name) == NULL || !keys_path_exists(path)) {
        rc = baton_fail(
            err, BATON_E_unauthenticated,
            "%s has no private key here to be replaced; `baton keys generate %s` makes one", name,
            name);
    } else if (stage && waits) {
        rc = baton_fail(err, BATON_E_duplicate,
                        "a key of %s waits already, %s; copy the trust folder to every host, then "
                        "`baton keys rotate %s`",
                        name, text_quote_of(next).s, name);
    } else if (stage) {
        rc = make_pair(folders, name, next, with_passphrase, false, &made, err);
    } else if (waits) {
        rc = switch_to(folders, name, next, path, &made, err);
    } else {
        rc = make_pair(folders, name, path, with_passphrase, true, &made, err);
    }
    if (rc == BATON_OK) {
        *ret_made = made;
    }
out:
    trust_free(trust);
    return rc;
}

/* ---- retire, revoke ---- */

static const struct trust_key *any_key(const struct trust *trust, const char *key_id)
{
    for (size_t i = 0; i < trust->n_keys; i++) {
        if (strcmp(trust->keys[i].id.s, key_id) == 0) {
            return &trust->keys[i];
        }
    }
    return NULL;
}

/* When the key was superseded: the oldest younger key of its principal. False: there is none. */
static bool superseded_at(const struct trust *trust, const struct trust_key *key,
                          struct wall_ms *ret_at)
{
    bool found = false;
    for (size_t i = 0; i < trust->n_keys; i++) {
        const struct trust_key *other = &trust->keys[i];
        if (other != key && other->owner == key->owner && !other->revoked &&
            other->made_at.v >= key->made_at.v && (!found || other->made_at.v < ret_at->v)) {
            *ret_at = other->made_at;
            found = true;
        }
    }
    return found;
}

static baton_code retire_check(const struct keys_folders *folders, const struct trust *trust,
                               const char *key_id, struct wall_ms now,
                               const struct trust_key **ret_key, struct baton_error *err)
{
    const struct trust_key *key = any_key(trust, key_id);
    struct wall_ms since = {0};
    if (key == NULL) {
        return baton_fail(err, BATON_E_key_not_found,
                          "no key %s in %s; `baton keys list` shows them", text_quote_of(key_id).s,
                          text_quote_of(folders->trust).s);
    }
    if (key->revoked) {
        return baton_fail(err, BATON_E_not_permitted,
                          "key %s is revoked; it stays, so that its mark is understood", key_id);
    }
    enum keys_here here = keys_here(folders, key, NULL);
    if (here == KEYS_HERE_signs || here == KEYS_HERE_staged) {
        return baton_fail(err, BATON_E_not_permitted,
                          "key %s is %s on this host; `baton keys rotate %s` makes its successor",
                          key_id, here == KEYS_HERE_signs ? "the one that signs" : "staged to sign",
                          key->owner_name.s);
    }
    if (!superseded_at(trust, key, &since)) {
        return baton_fail(err, BATON_E_not_permitted,
                          "key %s has no successor; `baton keys rotate %s` makes one", key_id,
                          key->owner_name.s);
    }
    if (now.v - since.v < KEYS_RETIRE_AFTER_MS) {
        return baton_fail(
            err, BATON_E_not_permitted,
            "the successor of key %s was made %s; what it signed may be needed for 31 days", key_id,
            wall_text(since).s);
    }
    *ret_key = key;
    return BATON_OK;
}

baton_code keys_retire_check(const struct keys_folders *folders, const char *key_id,
                             struct wall_ms now, struct baton_error *err)
{
    struct trust *trust = NULL;
    const struct trust_key *key = NULL;
    baton_code rc = open_folders(folders, &trust, err);
    if (rc == BATON_OK) {
        rc = retire_check(folders, trust, key_id, now, &key, err);
    }
    trust_free(trust);
    return rc;
}

baton_code keys_retire(const struct keys_folders *folders, const char *key_id, struct wall_ms now,
                       struct baton_error *err)
{
    struct trust *trust = NULL;
    const struct trust_key *key = NULL;
    char path[KEYS_PATH_MAX];
    char ending[32];
    baton_code rc = open_folders(folders, &trust, err);
    if (rc == BATON_OK && (rc = retire_check(folders, trust, key_id, now, &key, err)) == BATON_OK) {
        snprintf(ending, sizeof(ending), ".%s.pem", key->id.s);
        rc = keys_path(folders->trust, key->owner_name.s, ending, path, err);
        if (rc == BATON_OK && unlink(path) != 0) {
            rc = baton_fail(err, BATON_E_service_unavailable, "cannot remove %s: %s",
                            text_quote_of(path).s, strerror(errno));
        }
    }
    trust_free(trust);
    return rc;
}

baton_code keys_revoke(const struct keys_folders *folders, const char *key_id, bool *ret_known,
                       struct baton_error *err)
{
    struct trust *trust = NULL;
    char path[KEYS_PATH_MAX];
    if (!hex_valid(key_id, strlen(key_id), 16)) {
        return baton_fail(err, BATON_E_invalid_request,
                          "'%s' is no key id, 16 hexadecimal digits; `baton keys list` shows them",
                          text_quote_of(key_id).s);
    }
    baton_code rc = open_folders(folders, &trust, err);
    if (rc == BATON_OK &&
        (rc = keys_path(folders->trust, key_id, ".revoked", path, err)) == BATON_OK) {
        rc = safe_write(path, "", 0, 0644, false, err);
        if (rc == BATON_E_duplicate) {
            rc = baton_fail(err, rc, "key %s was revoked before", key_id);
        }
    }
    if (rc == BATON_OK) {
        *ret_known = any_key(trust, key_id) != NULL;
    }
    trust_free(trust);
    return rc;
}

/* ---- what is here ---- */

static bool is_in(const char *dir, const char *name, const char *ending, const char *key_id,
                  bool *ret_encrypted, struct buf *findings)
{
    char path[KEYS_PATH_MAX];
    struct key_id id;
    struct baton_error err;
    *ret_encrypted = false;
    if (keys_path(dir, name, ending, path, &err) != BATON_OK || !keys_path_exists(path)) {
        return false;
    }
    if (keyfile_private_id(path, &id, ret_encrypted, &err) != BATON_OK) {
        if (findings != NULL) {
            buf_printf(findings, "%s\n", err.text);
        }
        return false;
    }
    return strcmp(id.s, key_id) == 0;
}

enum keys_here keys_here(const struct keys_folders *folders, const struct trust_key *key,
                         struct buf *findings)
{
    bool encrypted;
    bool next_encrypted;
    if (is_in(folders->keys, key->owner_name.s, ".pem", key->id.s, &encrypted, findings)) {
        return KEYS_HERE_signs;
    }
    if (is_in(folders->keys, key->owner_name.s, ".next.pem", key->id.s, &next_encrypted,
              findings)) {
        return KEYS_HERE_staged;
    }
    return encrypted ? KEYS_HERE_encrypted : KEYS_HERE_no;
}
