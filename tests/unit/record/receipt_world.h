/*
 * Who sends and who receives, for the tests of what happens on receipt: the fleet of fixture.h with its
 * signers, and receivers at some of its services.
 *
 * Included by test_receipt_*.c, each a program.
 */
#ifndef BATON_TESTS_RECEIPT_WORLD_H
#define BATON_TESTS_RECEIPT_WORLD_H

#include "fixture.h"

struct world {
    struct box box;
    struct trust *trust;
    struct signer *coordinator;
    struct signer *claude;
    struct signer *codex;
    struct signer *lint;
    struct signer *alice;
    struct signer *ci;
    struct signer *stranger;
    struct receiver at_claude;
    struct receiver at_codex;
    struct receiver at_lint;
    struct receiver at_coordinator; /* of no service */
};

/* The files of the fleet, which may be changed before they are loaded. */
static struct world *make_world(void)
{
    struct world *w = calloc(1, sizeof(*w));
    assert_non_null(w);
    box_fleet(&w->box);
    return w;
}

static int load_world(struct world *w, void **state)
{
    w->trust = load_trust(&w->box);
    w->coordinator = load_signer(&w->box, "coordinator");
    w->claude = load_signer(&w->box, "claude");
    w->codex = load_signer(&w->box, "codex-review");
    w->lint = load_signer(&w->box, "lint");
    w->alice = load_signer(&w->box, "alice");
    w->ci = load_signer(&w->box, "ci");
    w->stranger = load_signer(&w->box, "stranger");
    w->at_claude = receiver_of(w->trust, "claude");
    w->at_codex = receiver_of(w->trust, "codex-review");
    w->at_lint = receiver_of(w->trust, "lint");
    w->at_coordinator = receiver_of(w->trust, NULL);
    *state = w;
    return 0;
}

__attribute__((unused)) static int open_world(void **state)
{
    return load_world(make_world(), state);
}

static int close_world(void **state)
{
    struct world *w = *state;
    signer_free(w->coordinator);
    signer_free(w->claude);
    signer_free(w->codex);
    signer_free(w->lint);
    signer_free(w->alice);
    signer_free(w->ci);
    signer_free(w->stranger);
    trust_free(w->trust);
    box_close(&w->box);
    free(w);
    return 0;
}

/* The turn of a draft, signed by its origin, on its partition. */
__attribute__((unused)) static struct post post_draft(const struct turn_draft *draft,
                                                      const struct signer *signer)
{
    struct post post;
    struct turn *turn = make_turn(draft);
    post_value(&post, turn->id.s, turn->bytes, turn->len);
    post_sign(&post, signer, FLEET, PROOF_turn);
    turn_free(turn);
    return post;
}

/* A post is moved by the return above: its pointers must lead to where it is now. */
__attribute__((unused)) static void settle_post(struct post *post)
{
    post->record.key = post->key;
    post->record.headers = post->headers;
    for (size_t i = 0; i < post->record.n_headers; i++) {
        post->headers[i].value = post->texts[i];
    }
}

__attribute__((unused)) static struct post *good(struct post *post, const struct world *w)
{
    struct turn_draft draft = example_draft();
    *post = post_draft(&draft, w->coordinator);
    settle_post(post);
    return post;
}

#endif
