/* A private key read again: which other key is taken, and which is refused (RECORD.md section 4). */
#include "fixture.h"

#include "common/record/signer_again.h"

struct again {
    struct box box;
    struct trust *trust;
    struct signer *held;
    struct signer_again spec;
};

static int open_again(void **state)
{
    struct again *a = calloc(1, sizeof(*a));
    assert_non_null(a);
    box_fleet(&a->box);
    a->trust = load_trust(&a->box);
    a->held = load_signer(&a->box, "claude");
    a->spec = (struct signer_again){a->box.keys, "claude", a->trust, a->box.trust, true};
    *state = a;
    return 0;
}

static int close_again(void **state)
{
    struct again *a = *state;
    signer_free(a->held);
    trust_free(a->trust);
    box_close(&a->box);
    free(a);
    return 0;
}

/* Another key lies in claude's place, which nobody knows. */
static void put_other(const struct again *a)
{
    put_private(&a->box, "claude",
                "0909090909090909090909090909090909090909090909090909090909090909");
}

static void the_same_key_changes_nothing(void **state)
{
    struct again *a = *state;
    struct signer *fresh = a->held;
    struct baton_error err = {BATON_OK, ""};
    assert_int_equal(signer_load_again(&a->spec, a->held, &fresh, &err), BATON_OK);
    assert_null(fresh);
}

static void another_key_is_taken_once_it_is_trusted(void **state)
{
    struct again *a = *state;
    struct signer *fresh = a->held;
    struct baton_error err = {BATON_OK, ""};
    put_other(a);
    assert_int_equal(signer_load_again(&a->spec, a->held, &fresh, &err), BATON_E_unauthenticated);
    assert_ptr_equal(fresh, a->held); /* untouched */
    assert_non_null(strstr(err.text, "is not known in"));
    assert_non_null(strstr(err.text, "baton keys rotate claude"));
    const struct key_id id = put_public(&a->box, "claude", "claude");
    trust_free(a->trust);
    a->spec.trust = a->trust = load_trust(&a->box);
    assert_int_equal(signer_load_again(&a->spec, a->held, &fresh, &err), BATON_OK);
    assert_string_equal(signer_key_id(fresh).s, id.s);
    signer_free(fresh);
    char revoked[64];
    snprintf(revoked, sizeof(revoked), "%s.revoked", id.s);
    write_file(a->box.trust, revoked, "", 0644);
    trust_free(a->trust);
    a->spec.trust = a->trust = load_trust(&a->box);
    assert_int_equal(signer_load_again(&a->spec, a->held, &fresh, &err), BATON_E_unauthenticated);
    assert_non_null(strstr(err.text, "is revoked in"));
}

static void without_proof_it_need_not_be_known(void **state)
{
    struct again *a = *state;
    struct signer *fresh = NULL;
    struct baton_error err = {BATON_OK, ""};
    put_other(a);
    a->spec.required = false;
    assert_int_equal(signer_load_again(&a->spec, a->held, &fresh, &err), BATON_OK);
    assert_non_null(fresh);
    signer_free(fresh);
}

static void none_is_needed_where_none_was(void **state)
{
    struct again *a = *state;
    struct signer *fresh = a->held;
    struct baton_error err = {BATON_OK, ""};
    a->spec.principal = "nobody";
    a->spec.required = false;
    assert_int_equal(signer_load_again(&a->spec, NULL, &fresh, &err), BATON_OK);
    assert_null(fresh);
    assert_int_equal(signer_load_again(&a->spec, a->held, &fresh, &err), BATON_E_unauthenticated);
    a->spec.required = true;
    assert_int_equal(signer_load_again(&a->spec, NULL, &fresh, &err), BATON_E_unauthenticated);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, open_again, close_again)
    const struct CMUnitTest tests[] = {
        T(the_same_key_changes_nothing),
        T(another_key_is_taken_once_it_is_trusted),
        T(without_proof_it_need_not_be_known),
        T(none_is_needed_where_none_was),
    };
#undef T
    return cmocka_run_group_tests_name("a key read again", tests, NULL, NULL);
}
