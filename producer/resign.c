/* Signs an expired handoff again. See resign.h for who calls it. */
#include "producer/resign.h"

#include "common/base/check.h"
#include "common/base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void resigner_done(struct resigner *resigner)
{
    if (!resigner->borrowed) {
        signer_free(resigner->signer);
    }
    *resigner = (struct resigner){.session = resigner->session};
}

static baton_code find_key(struct resigner *resigner, const struct turn *turn,
                           struct baton_error *err)
{
    struct session *session = resigner->session;
    const struct identity *identity = &session->identity;
    struct baton_error why = {BATON_OK, ""};
    if (strcmp(resigner->origin, turn->origin.s) == 0) {
        return BATON_OK;
    }
    resigner_done(resigner);
    if (strcmp(turn->origin.s, identity->name) == 0) {
        resigner->borrowed = true;
        resigner->signer = identity->signer;
    } else {
        const baton_code rc =
            signer_load(session->config->keys, turn->origin.s, &resigner->signer, &why);
        if (rc == BATON_E_unauthenticated && identity->required) {
            return baton_fail(err, rc,
                              "turn %s expired, and only its origin %s may sign it again: %s; "
                              "replay it where that key is",
                              turn->id.s, turn->origin.s, why.text);
        }
        if (rc != BATON_OK && rc != BATON_E_unauthenticated) {
            return baton_fail(err, rc, "turn %s expired, and %s is to sign it again: %s",
                              turn->id.s, turn->origin.s, why.text);
        }
    }
    if (resigner->signer != NULL && identity->trust != NULL &&
        trust_revokes(identity->trust, signer_key_id(resigner->signer).s)) {
        const struct key_id id = signer_key_id(resigner->signer);
        resigner_done(resigner);
        return baton_fail(err, BATON_E_unauthenticated,
                          "turn %s expired, and the key %s of its origin %s is revoked; `baton "
                          "keys rotate %s` makes another",
                          turn->id.s, id.s, turn->origin.s, turn->origin.s);
    }
    snprintf(resigner->origin, sizeof(resigner->origin), "%s", turn->origin.s);
    return BATON_OK;
}

static baton_code may_create(const struct resigner *resigner, const struct turn *turn,
                             struct baton_error *err)
{
    const struct identity *identity = &resigner->session->identity;
    if (!identity->required ||
        trust_may_create(trust_principal_find(identity->trust, turn->origin.s), turn->service.s,
                         turn->role)) {
        return BATON_OK;
    }
    return baton_fail(err, BATON_E_not_permitted,
                      "turn %s expired, and its origin %s may not create the role %s at %s any "
                      "more: it would be rejected again",
                      turn->id.s, turn->origin.s, role_word(turn->role), turn->service.s);
}

/* Other times in the same bytes: everything else stands as its origin wrote it, so the content is the same. */
static baton_code with_times(const struct turn *turn, struct wall_ms now, struct buf *out,
                             struct baton_error *err)
{
    struct json_doc *doc = NULL;
    baton_code rc = json_parse(turn->bytes, turn->len, TURN_BYTES_MAX, LIMIT_JSON_DEPTH, &doc, err);
    if (rc != BATON_OK) {
        return rc;
    }
    struct json_span spans[] = {json_raw(doc, "created_at"), json_raw(doc, "expires_at")};
    struct wall_ms times[] = {now, {now.v + (turn->expires_at.v - turn->created_at.v)}};
    const size_t first = spans[0].at < spans[1].at ? 0 : 1;
    const char *at = turn->bytes;
    for (size_t i = 0; i < COUNT_OF(spans); i++) {
        const size_t which = i == 0 ? first : 1 - first;
        buf_add(out, at, (size_t)(spans[which].at - at));
        buf_printf(out, "\"%s\"", wall_text(times[which]).s);
        at = spans[which].at + spans[which].len;
    }
    buf_add(out, at, turn->len - (size_t)(at - turn->bytes));
    json_free(doc);
    return buf_ok(out) ? BATON_OK : baton_fail(err, BATON_E_no_memory, "no memory for a turn");
}

baton_code resign(struct resigner *resigner, const char *service, const void *value, size_t len,
                  struct resigned *ret_resigned, struct baton_error *err)
{
    const struct identity *identity = &resigner->session->identity;
    struct buf bytes = BUF_INIT;
    struct turn *old = NULL;
    memset(ret_resigned, 0, sizeof(*ret_resigned));
    baton_code rc = turn_parse(identity->fleet, value, len, &old, err);
    if (rc == BATON_OK && strcmp(old->service.s, service) != 0) {
        rc = baton_fail(err, BATON_E_handoff_expired,
                        "turn %s was passed on to %s and is too old there; only a new turn at %s "
                        "does its work",
                        old->id.s, service, old->service.s);
    }
    if (rc == BATON_OK && (rc = may_create(resigner, old, err)) == BATON_OK &&
        (rc = find_key(resigner, old, err)) == BATON_OK &&
        (rc = with_times(old, log_date(resigner->session->log), &bytes, err)) == BATON_OK) {
        rc = turn_parse(identity->fleet, bytes.data, bytes.len, &ret_resigned->turn, err);
    }
    if (rc == BATON_OK) {
        const struct turn *made = ret_resigned->turn;
        BATON_INVARIANT(memcmp(&made->content, &old->content, sizeof(old->content)) == 0);
        if (resigner->signer != NULL) {
            rc = signer_sign(resigner->signer, identity->fleet, PROOF_turn, made->id.s,
                             strlen(made->id.s), NULL, &made->digest, &ret_resigned->proof, err);
        }
    }
    if (rc != BATON_OK) {
        turn_free(ret_resigned->turn);
        ret_resigned->turn = NULL;
    }
    turn_free(old);
    buf_done(&bytes);
    return rc;
}
