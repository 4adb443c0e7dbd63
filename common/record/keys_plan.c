/*
 * What a configuration needs of keys and trust, and making it: `baton keys plan | apply` and `baton
 * init`. Planning and applying walk the same principals, so what is shown is what is made.
 */
#include "common/record/keys.h"

#include "common/base/check.h"
#include "common/base/safe_file.h"
#include "common/base/text.h"
#include "common/record/keyfile.h"
#include "common/record/keys_write.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COORDINATOR "coordinator"

#define STEP_WORD(word, text) #word,
static const char *const step_words[] = {KEYS_STEPS(STEP_WORD)};
#undef STEP_WORD

const char *keys_step_word(enum keys_step_kind kind)
{
    BATON_PRE((unsigned)kind < KEYS_STEP_COUNT);
    return step_words[kind];
}

void keys_plan_done(struct keys_plan *plan)
{
    free(plan->steps);
    *plan = (struct keys_plan){NULL, 0};
}

/* One walk over what is needed: plans, or makes as it goes. */
struct walk {
    const struct config *config;
    const struct trust *trust; /* NULL: there is no folder yet */
    bool make;
    struct keys_plan plan;
    struct baton_error *err;
};

BATON_PRINTF(4, 5)
static baton_code step(struct walk *w, enum keys_step_kind kind, const char *name,
                       const char *format, ...)
{
    struct keys_step *steps = realloc(w->plan.steps, (w->plan.count + 1) * sizeof(steps[0]));
    if (steps == NULL) {
        return baton_fail(w->err, BATON_E_no_memory, "no memory for a plan");
    }
    w->plan.steps = steps;
    struct keys_step *s = &steps[w->plan.count++];
    va_list args;
    s->kind = kind;
    s->name = plain_id_of(name);
    va_start(args, format);
    vsnprintf(s->text, sizeof(s->text), format, args);
    va_end(args);
    return BATON_OK;
}

static baton_code walk_fleet(struct walk *w)
{
    char fleet[32] = "local-";
    if (w->trust != NULL && trust_fleet(w->trust)[0] != '\0') {
        return BATON_OK;
    }
    random_hex(fleet + strlen(fleet), 8);
    baton_code rc = w->make ? keys_write_fleet(w->config->trust, fleet, w->err) : BATON_OK;
    return rc != BATON_OK ? rc
           : w->make      ? step(w, KEYS_STEP_fleet, fleet, "the fleet is called %s", fleet)
                          : step(w, KEYS_STEP_fleet, "fleet",
                                 "the fleet gets a name, local-<8 random digits>");
}

/* ---- rights ---- */

static bool want_person(struct trust_principal *who)
{
    who->kind = PRINCIPAL_person;
    who->operate = calloc(1, sizeof(who->operate[0]));
    if (who->operate == NULL) {
        return false;
    }
    who->operate[who->n_operate++] = service_id_of(TRUST_ANYWHERE);
#define REQUEST_BIT(word) 1u << REQUEST_##word |
#define REQUEST_ENUM(word) REQUEST_##word,
    enum { REQUEST_KINDS(REQUEST_ENUM) };
    who->requests = REQUEST_KINDS(REQUEST_BIT) 0u;
#undef REQUEST_BIT
#undef REQUEST_ENUM
    return keys_grant_add(&who->create, &who->n_create, TRUST_ANYWHERE, ROLE_SET_ALL);
}

static bool want_coordinator(struct trust_principal *who)
{
    who->kind = PRINCIPAL_program;
    who->coordinate = true;
    return keys_grant_add(&who->create, &who->n_create, TRUST_ANYWHERE, ROLE_SET_ALL);
}

/* A service serves its roles, and passes each along its chain to those that serve it, too. */
static bool want_service(const struct config *config, const struct config_service *service,
                         struct trust_principal *who)
{
    who->kind = PRINCIPAL_service;
    who->serve |= service->roles;
    for (int r = 0; r < ROLE_COUNT; r++) {
        const struct config_role *role = &config->roles[r];
        for (size_t i = 0; (service->roles & ROLE_BIT(r)) != 0 && i < role->n_chain; i++) {
            const struct config_service *to = config_service_find(config, role->chain[i].s);
            if (to != NULL && to != service && (to->roles & ROLE_BIT(r)) != 0 &&
                !keys_grant_add(&who->pass, &who->n_pass, to->name.s, ROLE_BIT(r))) {
                return false;
            }
        }
    }
    return true;
}

/* What `wanted` has and `had` lacks, as text; "" if nothing. */
static void lacking(const struct trust_principal *had, const struct trust_principal *wanted,
                    struct buf *out)
{
    role_set serve = wanted->serve & ~(had == NULL ? 0u : had->serve);
    if (serve != 0) {
        buf_add_text(out, "may serve ");
        keys_roles_text(serve, out);
    }
    for (size_t i = 0; i < wanted->n_pass; i++) {
        role_set roles = 0;
        for (int r = 0; r < ROLE_COUNT; r++) {
            if ((wanted->pass[i].roles & ROLE_BIT(r)) != 0 &&
                !trust_may_pass(had, wanted->pass[i].service.s, (enum role)r)) {
                roles |= ROLE_BIT(r);
            }
        }
        if (roles != 0) {
            buf_add_text(out, out->len > 0 ? "; may pass " : "may pass ");
            keys_roles_text(roles, out);
            buf_printf(out, " to %s", wanted->pass[i].service.s);
        }
    }
}

static baton_code walk_rights(struct walk *w, const struct trust_principal *had,
                              const struct trust_principal *wanted)
{
    struct buf text = BUF_INIT;
    const char *name = wanted->name.s;
    baton_code rc = BATON_OK;
    if (wanted->kind == PRINCIPAL_service) {
        lacking(had, wanted, &text);
    } else if (had == NULL) {
        buf_add_text(&text, wanted->coordinate
                                ? "may create every role everywhere, and coordinate"
                                : "may create every role everywhere, operate and ask everything");
    }
    if (!buf_ok(&text)) {
        rc = baton_fail(w->err, BATON_E_no_memory, "no memory for a plan");
    } else if (text.len > 0 || had == NULL) {
        rc = w->make ? keys_write_rights(w->config->trust, wanted, w->err) : BATON_OK;
        if (rc == BATON_OK) {
            rc =
                step(w, KEYS_STEP_rights, name, "%s, a %s: %s", name,
                     principal_kind_word(wanted->kind), text.len > 0 ? text.data : "no rights yet");
        }
    }
    buf_done(&text);
    return rc;
}

/* ---- keys ---- */

static bool has_key(const struct trust *trust, const char *name)
{
    for (size_t i = 0; trust != NULL && i < trust->n_keys; i++) {
        if (!trust->keys[i].revoked && strcmp(trust->keys[i].owner_name.s, name) == 0) {
            return true;
        }
    }
    return false;
}

/* Was the key of this principal revoked? Writing its public half again would change nothing. */
static bool has_revoked_key(const struct trust *trust, const char *name)
{
    for (size_t i = 0; trust != NULL && i < trust->n_keys; i++) {
        if (trust->keys[i].revoked && strcmp(trust->keys[i].owner_name.s, name) == 0) {
            return true;
        }
    }
    return false;
}

/* A private key that is here only needs its public half written; else a pair is made. */
static baton_code walk_key(struct walk *w, const char *name)
{
    char path[KEYS_PATH_MAX];
    struct evp_pkey_st *pair = NULL;
    struct key_id id = {""};
    if (has_key(w->trust, name)) {
        return BATON_OK;
    }
    baton_code rc = keys_path(w->config->keys, name, ".pem", path, w->err);
    if (rc != BATON_OK) {
        return rc;
    }
    bool here = keys_path_exists(path);
    if (here && has_revoked_key(w->trust, name)) {
        return baton_fail(w->err, BATON_E_unauthenticated,
                          "the key of %s is revoked; `baton keys rotate %s` makes another", name,
                          name);
    }
    enum keys_step_kind kind = here ? KEYS_STEP_publish : KEYS_STEP_pair;
    if (!w->make) {
        return here ? step(w, kind, name, "%s has a private key here, and no public one in trust",
                           name)
                    : step(w, kind, name, "%s gets a key", name);
    }
    rc = here ? keyfile_read_private(path, &pair, w->err) : keyfile_generate(&pair, w->err);
    if (rc == BATON_OK && !here) {
        rc = keyfile_write_private(path, pair, false, false, w->err);
    }
    if (rc == BATON_OK) {
        rc = keys_write_public(w->config->trust, name, pair, &id, NULL, 0, w->err);
    }
    keyfile_free(pair);
    return rc == BATON_OK ? step(w, kind, name, "%s has key %s", name, id.s) : rc;
}

typedef bool want_fn(struct trust_principal *who);

static baton_code walk_principal(struct walk *w, const char *name, want_fn *want,
                                 const struct config_service *service)
{
    const struct trust_principal *had =
        w->trust == NULL ? NULL : trust_principal_find(w->trust, name);
    struct trust_principal wanted;
    memset(&wanted, 0, sizeof(wanted));
    if (had != NULL && service != NULL && had->kind != PRINCIPAL_service) {
        return baton_fail(
            w->err, BATON_E_bad_config,
            "%s is a service in the configuration and a %s in the trust folder; rename one", name,
            principal_kind_word(had->kind));
    }
    bool ok = had == NULL || keys_rights_copy(had, &wanted);
    wanted.name = plain_id_of(name);
    if (ok && service != NULL) {
        ok = want_service(w->config, service, &wanted);
    } else if (ok && had == NULL) {
        ok = want(&wanted);
    }
    baton_code rc = ok ? walk_rights(w, had, &wanted)
                       : baton_fail(w->err, BATON_E_no_memory, "no memory for a plan");
    trust_principal_done(&wanted);
    return rc == BATON_OK ? walk_key(w, name) : rc;
}

static baton_code walk_all(struct walk *w)
{
    const struct config *config = w->config;
    const char *identity = config->identity.s;
    baton_code rc = walk_fleet(w);
    /* Who publishes under a login name has rights only if somebody gave them: `keys generate`. */
    if (rc == BATON_OK && identity[0] != '\0' && strcmp(identity, COORDINATOR) != 0 &&
        config_service_find(config, identity) == NULL) {
        rc = walk_principal(w, identity, want_person, NULL);
    }
    if (rc == BATON_OK) {
        rc = walk_principal(w, COORDINATOR, want_coordinator, NULL);
    }
    for (size_t i = 0; rc == BATON_OK && i < config->n_services; i++) {
        rc = walk_principal(w, config->services[i].name.s, NULL, &config->services[i]);
    }
    return rc;
}

/* Findings are what this is there to mend; what is unsafe stops it. */
static baton_code read_trust(const struct config *config, struct trust **ret_trust,
                             struct baton_error *err)
{
    size_t findings;
    if (!keys_path_exists(config->trust)) {
        *ret_trust = NULL;
        return BATON_OK;
    }
    return trust_read(config->trust, ret_trust, NULL, &findings, err);
}

baton_code keys_plan_config(const struct config *config, struct keys_plan *ret_plan,
                            struct baton_error *err)
{
    struct trust *trust = NULL;
    *ret_plan = (struct keys_plan){NULL, 0};
    baton_code rc = read_trust(config, &trust, err);
    if (rc == BATON_OK) {
        struct walk w = {.config = config, .trust = trust, .make = false, .err = err};
        rc = walk_all(&w);
        *ret_plan = w.plan;
    }
    trust_free(trust);
    return rc;
}

baton_code keys_apply_config(const struct config *config, struct keys_plan *ret_plan,
                             struct baton_error *err)
{
    struct trust *trust = NULL;
    *ret_plan = (struct keys_plan){NULL, 0};
    baton_code rc = keys_folder_make(config->keys, 0700, err);
    if (rc == BATON_OK) {
        rc = keys_folder_make(config->trust, 0755, err);
    }
    if (rc == BATON_OK && (rc = read_trust(config, &trust, err)) == BATON_OK) {
        struct walk w = {.config = config, .trust = trust, .make = true, .err = err};
        rc = walk_all(&w);
        *ret_plan = w.plan;
    }
    trust_free(trust);
    if (rc == BATON_OK && (rc = trust_load(config->trust, &trust, NULL, err)) == BATON_OK) {
        trust_free(trust);
    }
    return rc;
}
