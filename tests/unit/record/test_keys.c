/* Keys are planned, made, rotated, retired and revoked; a rotation refuses no record (X28). */
#include "fixture.h"

#include "common/record/keys.h"

#include <time.h>

static const char config_text[] =
    "version: 1\nlog: local\nlocal: {path: data/log.db}\nstate_dir: data\nidentity: alice\n"
    "keys: keys\ntrust: trust\n"
    "roles:\n"
    "  owner: {chain: [claude]}\n"
    "  reviewer: {chain: [claude, codex-review, lint]}\n"
    "services:\n"
    "  claude: {roles: [owner, reviewer], executor: {kind: exec, command: [/bin/true]}}\n"
    "  codex-review: {roles: [reviewer], executor: {kind: exec, command: [/bin/true]}}\n"
    "  lint: {roles: [reviewer], executor: {kind: exec, command: [/bin/true]}}\n";

struct desk {
    struct box box;
    struct config *config;
    struct keys_folders folders;
};

static int open_desk(void **state)
{
    struct desk *d = calloc(1, sizeof(*d));
    struct baton_error err;
    char path[128];
    assert_non_null(d);
    box_open(&d->box);
    assert_int_equal(rmdir(d->box.keys), 0);
    assert_int_equal(rmdir(d->box.trust), 0);
    write_file(d->box.dir, "baton.yaml", config_text, 0644);
    snprintf(path, sizeof(path), "%s/baton.yaml", d->box.dir);
    baton_code rc = config_load(path, NULL, 0, &d->config, NULL, &err);
    if (rc != BATON_OK) {
        fail_msg("%s", err.text);
    }
    d->folders = (struct keys_folders){d->config->keys, d->config->trust};
    *state = d;
    return 0;
}

static int close_desk(void **state)
{
    struct desk *d = *state;
    config_free(d->config);
    box_close(&d->box);
    free(d);
    return 0;
}

static size_t plan_count(const struct desk *d)
{
    struct keys_plan plan;
    struct baton_error err = {0};
    baton_code rc = keys_plan_config(d->config, &plan, &err);
    if (rc != BATON_OK) {
        fail_msg("%s", err.text);
    }
    size_t count = plan.count;
    keys_plan_done(&plan);
    return count;
}

static size_t apply(const struct desk *d)
{
    struct keys_plan plan;
    struct baton_error err = {0};
    baton_code rc = keys_apply_config(d->config, &plan, &err);
    if (rc != BATON_OK) {
        fail_msg("%s", err.text);
    }
    size_t count = plan.count;
    keys_plan_done(&plan);
    return count;
}

static mode_t mode_of(const char *dir, const char *name)
{
    struct stat st;
    char path[256];
    snprintf(path, sizeof(path), "%s/%s", dir, name);
    assert_int_equal(stat(path, &st), 0);
    return st.st_mode & 07777;
}

static void apply_makes_what_plan_shows(void **state)
{
    struct desk *d = *state;
    mode_t mask = umask(077); /* modes are as said whatever the umask is */
    size_t planned = plan_count(d);
    assert_int_equal(planned,
                     1 + 2 * 5); /* fleet; rights and key of alice, coordinator, 3 services */
    struct stat st;
    assert_int_not_equal(stat(d->config->trust, &st), 0); /* planning changes nothing */
    assert_int_equal(apply(d), planned);
    umask(mask);
    assert_int_equal(plan_count(d), 0);
    assert_int_equal(apply(d), 0);
    assert_int_equal(mode_of(d->config->keys, ""), 0700);
    assert_int_equal(mode_of(d->config->trust, ""), 0755);
    assert_int_equal(mode_of(d->config->keys, "alice.pem"), 0600);
    assert_int_equal(mode_of(d->config->trust, "alice.yaml"), 0644);
    struct trust *trust = load_trust(&d->box);
    assert_int_equal(strncmp(trust_fleet(trust), "local-", 6), 0);
    assert_true(hex_valid(trust_fleet(trust) + 6, strlen(trust_fleet(trust) + 6), 8));
    const struct trust_principal *alice = trust_principal_find(trust, "alice");
    const struct trust_principal *claude = trust_principal_find(trust, "claude");
    const struct trust_principal *lint = trust_principal_find(trust, "lint");
    const struct trust_principal *coordinator = trust_principal_find(trust, "coordinator");
    assert_int_equal(trust_principal_kind(alice), PRINCIPAL_person);
    assert_true(trust_may_create(alice, "lint", ROLE_arbiter) && trust_may_operate(alice, "lint"));
    assert_true(trust_may_request(alice, "start") && trust_may_request(alice, "answer"));
    assert_true(trust_may_coordinate(coordinator) &&
                trust_may_create(coordinator, "x", ROLE_owner));
    assert_true(trust_may_serve(claude, ROLE_owner) && !trust_may_serve(claude, ROLE_arbiter));
    assert_true(trust_may_pass(claude, "lint", ROLE_reviewer));
    assert_false(trust_may_pass(claude, "lint", ROLE_owner));
    assert_true(trust_may_pass(lint, "claude", ROLE_reviewer));
    trust_free(trust);
}

/* Only what is lacking is added; what a principal has stays, also more than the configuration says.
 */
static void apply_adds_and_never_takes_away(void **state)
{
    struct desk *d = *state;
    struct key_id before;
    struct signer *signer;
    apply(d);
    signer = load_signer(&d->box, "lint");
    before = signer_key_id(signer);
    signer_free(signer);
    write_file(d->config->trust, "lint.yaml",
               "kind: service\nserve: [owner]\npass: {elsewhere: [owner]}\n", 0644);
    write_file(d->config->trust, "alice.yaml", "kind: person\ncreate: {lint: [reviewer]}\n", 0644);
    assert_int_equal(apply(d), 1); /* lint's rights; alice keeps her narrow ones */
    struct trust *trust = load_trust(&d->box);
    const struct trust_principal *lint = trust_principal_find(trust, "lint");
    assert_true(trust_may_serve(lint, ROLE_owner) && trust_may_serve(lint, ROLE_reviewer));
    assert_true(trust_may_pass(lint, "elsewhere", ROLE_owner));
    assert_true(trust_may_pass(lint, "claude", ROLE_reviewer));
    assert_false(trust_may_operate(trust_principal_find(trust, "alice"), "lint"));
    assert_non_null(trust_key_find(trust, before.s));
    trust_free(trust);
}

/* A private key that is here is published, not replaced. */
static void apply_publishes_a_private_key_that_is_here(void **state)
{
    struct desk *d = *state;
    apply(d);
    struct signer *signer = load_signer(&d->box, "lint");
    char path[256];
    snprintf(path, sizeof(path), "%s/lint.%s.pem", d->config->trust, signer_key_id(signer).s);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(apply(d), 1);
    struct trust *trust = load_trust(&d->box);
    assert_non_null(trust_key_find(trust, signer_key_id(signer).s));
    trust_free(trust);
    signer_free(signer);
}

static void x30_apply_stops_at_an_unsafe_folder(void **state)
{
    struct desk *d = *state;
    struct keys_plan plan;
    struct baton_error err;
    apply(d);
    assert_int_equal(chmod(d->config->trust, 0777), 0);
    assert_int_equal(keys_apply_config(d->config, &plan, &err), BATON_E_key_unsafe);
    keys_plan_done(&plan);
    assert_int_equal(keys_plan_config(d->config, &plan, &err), BATON_E_key_unsafe);
    keys_plan_done(&plan);
}

static baton_code generate(const struct desk *d, const char *name, const struct keys_wish *wish,
                           struct keys_made *made)
{
    struct baton_error err;
    return keys_generate(&d->folders, name, wish, false, made, &err);
}

static void generate_writes_key_and_rights(void **state)
{
    struct desk *d = *state;
    struct keys_made made;
    static const char *const create[] = {"claude=owner,reviewer", "lint=all"};
    static const char *const operate[] = {"*"};
    static const char *const request[] = {"all"};
    struct keys_wish ci = {.kind = "program",
                           .create = create,
                           .n_create = 2,
                           .operate = operate,
                           .n_operate = 1,
                           .request = request,
                           .n_request = 1};
    struct keys_wish none = {0};
    apply(d);
    assert_int_equal(generate(d, "ci", &ci, &made), BATON_OK);
    assert_true(made.new_rights);
    assert_int_equal(generate(d, "ci", &none, &made), BATON_E_duplicate);
    struct trust *trust = load_trust(&d->box);
    const struct trust_principal *who = trust_principal_find(trust, "ci");
    assert_int_equal(trust_principal_kind(who), PRINCIPAL_program);
    assert_true(trust_may_create(who, "claude", ROLE_reviewer));
    assert_false(trust_may_create(who, "claude", ROLE_arbiter));
    assert_true(trust_may_create(who, "lint", ROLE_arbiter));
    assert_false(trust_may_create(who, "codex-review", ROLE_reviewer));
    assert_true(trust_may_operate(who, "codex-review") && trust_may_request(who, "reopen"));
    trust_free(trust);
    /* Another host: the principal is known, its private key is elsewhere. */
    assert_int_equal(unlink(made.private_path), 0);
    assert_int_equal(generate(d, "ci", &ci, &made), BATON_E_invalid_request);
    assert_int_equal(generate(d, "ci", &none, &made), BATON_OK);
    assert_false(made.new_rights);
}

static void generate_refuses_what_no_kind_has(void **state)
{
    struct desk *d = *state;
    struct keys_made made;
    static const char *const pass[] = {"lint=reviewer"};
    static const char *const bad_pass[] = {"*=reviewer"};
    static const char *const bad_create[] = {"claude=boss"};
    static const char *const no_equals[] = {"claude"};
    const struct keys_wish bad[] = {
        {.kind = "robot"},
        {.serve = "boss"},
        {.serve = ""},
        {.serve = "owner", .coordinate = true},
        {.serve = "owner", .create = pass, .n_create = 1},
        {.kind = "person", .pass = pass, .n_pass = 1},
        {.kind = "person", .coordinate = true},
        {.pass = bad_pass, .n_pass = 1},
        {.create = bad_create, .n_create = 1},
        {.create = no_equals, .n_create = 1},
        {.operate = bad_create, .n_operate = 1},
        {.request = no_equals, .n_request = 1},
    };
    const struct keys_wish fine = {.serve = "owner"};
    apply(d);
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        assert_int_equal(generate(d, "new", &bad[i], &made), BATON_E_invalid_request);
    }
    assert_int_equal(generate(d, "fleet", &fine, &made), BATON_E_invalid_request);
    assert_int_equal(generate(d, "../x", &fine, &made), BATON_E_invalid_request);
    assert_int_equal(generate(d, "UPPER", &fine, &made), BATON_E_invalid_request);
    assert_int_equal(generate(d, "not_a_service", &fine, &made), BATON_E_invalid_request);
    assert_int_equal(generate(d, "new", &fine, &made), BATON_OK);
}

/* A passphrase is asked on a terminal only, and never of an agent or where nobody is. */
static void passphrases_are_never_taken_unattended(void **state)
{
    struct desk *d = *state;
    struct keys_made made;
    struct keys_wish wish = {0};
    struct baton_error err;
    apply(d);
    setenv("BATON_MODE", "unattended", 1);
    assert_int_equal(keys_generate(&d->folders, "bob", &wish, true, &made, &err),
                     BATON_E_unattended_denied);
    setenv("BATON_MODE", "sometimes", 1);
    assert_int_equal(keys_generate(&d->folders, "bob", &wish, true, &made, &err), BATON_E_bad_mode);
    setenv("BATON_MODE", "attended", 1);
    setenv("BATON_ATTEMPT", "1", 1);
    assert_int_equal(keys_generate(&d->folders, "bob", &wish, true, &made, &err),
                     BATON_E_person_required);
    unsetenv("BATON_ATTEMPT");
    unsetenv("BATON_MODE");
    struct stat st;
    char path[256];
    snprintf(path, sizeof(path), "%s/bob.pem", d->config->keys);
    assert_int_not_equal(stat(path, &st), 0);
    struct trust *trust = load_trust(&d->box);
    assert_null(trust_principal_find(trust, "bob"));
    trust_free(trust);
}

/* An encrypted key (PKCS#8, made elsewhere) is refused unattended, and its id is not guessed. */
static void a_key_with_passphrase_signs_for_nobody_unattended(void **state)
{
    struct desk *d = *state;
    struct signer *signer = NULL;
    struct baton_error err;
    struct key_id id;
    bool encrypted = false;
    char path[256];
    static const char pem[] = "-----BEGIN ENCRYPTED PRIVATE KEY-----\n"
                              "MIGbMFcGCSqGSIb3DQEFDTBKMCkGCSqGSIb3DQEFDDAcBAjsu5qmJatgmgICCAAw\n"
                              "DAYIKoZIhvcNAgkFADAdBglghkgBZQMEASoEEHmOqrEDXh7XfRH+v5aKjyAEQJvs\n"
                              "a1cx23/D/gorbgPv/wLiOFXCZgsLJfQzDZe8I3pw94fApGzO+Twck4YLGH0+/byd\n"
                              "KBDkYceYlIhl6lqaso0=\n"
                              "-----END ENCRYPTED PRIVATE KEY-----\n";
    apply(d);
    write_file(d->config->keys, "carol.pem", pem, 0600);
    snprintf(path, sizeof(path), "%s/carol.pem", d->config->keys);
    setenv("BATON_MODE", "unattended", 1);
    assert_int_equal(signer_load(d->config->keys, "carol", &signer, &err),
                     BATON_E_unattended_denied);
    unsetenv("BATON_MODE");
    assert_int_equal(keyfile_private_id(path, &id, &encrypted, &err), BATON_OK);
    assert_true(encrypted);
    assert_string_equal(id.s, "");
}

static struct proof_text sign(const struct desk *d, const char *name)
{
    struct signer *signer = load_signer(&d->box, name);
    struct digest digest = digest_of("v", 1);
    struct proof_text proof;
    struct baton_error err;
    assert_int_equal(signer_sign(signer, "f", PROOF_turn, "k", 1, NULL, &digest, &proof, &err),
                     BATON_OK);
    signer_free(signer);
    return proof;
}

static bool verifies(const struct desk *d, const struct proof_text *proof)
{
    struct trust *trust = load_trust(&d->box);
    struct key_id id;
    const char *hex;
    struct digest digest = digest_of("v", 1);
    assert_true(proof_text_parse(proof->s, PROOF_TEXT_LEN, &id, &hex));
    const struct trust_key *key = trust_key_find(trust, id.s);
    bool ok = key != NULL && trust_key_verify(key, "f", PROOF_turn, "k", 1, NULL, &digest, hex);
    trust_free(trust);
    return ok;
}

static bool same_key(const struct proof_text *a, const struct proof_text *b)
{
    return memcmp(a->s + 2, b->s + 2, 16) == 0;
}

static void x28_rotation_refuses_no_record(void **state)
{
    struct desk *d = *state;
    struct keys_made staged;
    struct keys_made switched;
    struct baton_error err;
    apply(d);
    struct proof_text before = sign(d, "claude");
    assert_int_equal(keys_rotate(&d->folders, "claude", true, false, &staged, &err), BATON_OK);
    assert_int_equal(keys_rotate(&d->folders, "claude", true, false, &switched, &err),
                     BATON_E_duplicate);
    struct proof_text waiting = sign(d, "claude");
    assert_true(same_key(&before, &waiting)); /* the old one still signs */
    assert_true(verifies(d, &before));
    assert_int_equal(keys_rotate(&d->folders, "claude", false, false, &switched, &err), BATON_OK);
    assert_string_equal(staged.id.s, switched.id.s);
    struct proof_text after = sign(d, "claude");
    assert_false(same_key(&before, &after));
    assert_memory_equal(after.s + 2, staged.id.s, 16);
    assert_true(verifies(d, &before));
    assert_true(verifies(d, &after));
    struct stat st;
    assert_int_not_equal(stat(staged.private_path, &st), 0); /* NAME.next.pem became NAME.pem */
    /* and at once, on one host */
    assert_int_equal(keys_rotate(&d->folders, "claude", false, false, &switched, &err), BATON_OK);
    struct proof_text third = sign(d, "claude");
    assert_false(same_key(&after, &third));
    assert_true(verifies(d, &before) && verifies(d, &after) && verifies(d, &third));
    assert_int_equal(keys_rotate(&d->folders, "nobody", false, false, &switched, &err),
                     BATON_E_unauthenticated);
}

/* Makes a file as old as it says. */
static void age_file(const char *path, int64_t days)
{
    struct timespec times[2];
    clock_gettime(CLOCK_REALTIME, &times[0]);
    times[0].tv_sec -= (time_t)(days * 24 * 3600);
    times[1] = times[0];
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

static void x28_retire_too_early_is_refused(void **state)
{
    struct desk *d = *state;
    struct keys_made next;
    struct baton_error err;
    char old_path[256];
    apply(d);
    struct signer *signer = load_signer(&d->box, "claude");
    struct key_id old = signer_key_id(signer);
    signer_free(signer);
    snprintf(old_path, sizeof(old_path), "%s/claude.%s.pem", d->config->trust, old.s);
    struct wall_ms now = wall_now();
    /* the one that signs */
    assert_int_equal(keys_retire(&d->folders, old.s, now, &err), BATON_E_not_permitted);
    assert_int_equal(keys_rotate(&d->folders, "claude", false, false, &next, &err), BATON_OK);
    age_file(old_path, 400);
    age_file(next.public_path, 30);
    assert_int_equal(keys_retire(&d->folders, old.s, now, &err), BATON_E_not_permitted);
    assert_non_null(strstr(err.text, "31 days"));
    age_file(next.public_path, 32);
    assert_int_equal(keys_retire_check(&d->folders, old.s, now, &err), BATON_OK);
    /* its successor has none itself, and signs */
    assert_int_equal(keys_retire(&d->folders, next.id.s, now, &err), BATON_E_not_permitted);
    assert_int_equal(keys_retire(&d->folders, old.s, now, &err), BATON_OK);
    assert_int_equal(keys_retire(&d->folders, old.s, now, &err), BATON_E_key_not_found);
    struct trust *trust = load_trust(&d->box);
    assert_null(trust_key_find(trust, old.s));
    assert_non_null(trust_key_find(trust, next.id.s));
    trust_free(trust);
}

static void revoke_is_at_once_and_for_ever(void **state)
{
    struct desk *d = *state;
    struct baton_error err;
    bool known = false;
    apply(d);
    struct proof_text proof = sign(d, "claude");
    char id[17] = "";
    memcpy(id, proof.s + 2, 16);
    assert_true(verifies(d, &proof));
    assert_int_equal(keys_revoke(&d->folders, id, &known, &err), BATON_OK);
    assert_true(known);
    assert_false(verifies(d, &proof));
    assert_int_equal(keys_revoke(&d->folders, id, &known, &err), BATON_E_duplicate);
    assert_int_equal(keys_revoke(&d->folders, "0123456789abcdef", &known, &err), BATON_OK);
    assert_false(known);
    assert_int_equal(keys_revoke(&d->folders, "../x", &known, &err), BATON_E_invalid_request);
    assert_int_equal(keys_retire(&d->folders, id, wall_now(), &err), BATON_E_not_permitted);
    /* apply does not write the same public key again, and names the command that helps */
    struct keys_plan plan = {NULL, 0};
    assert_int_equal(keys_apply_config(d->config, &plan, &err), BATON_E_unauthenticated);
    assert_non_null(strstr(err.text, "baton keys rotate claude"));
    keys_plan_done(&plan);
    /* without the private one, apply makes a new key in its place */
    char path[256];
    snprintf(path, sizeof(path), "%s/claude.pem", d->config->keys);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(apply(d), 1);
    struct proof_text again = sign(d, "claude");
    assert_false(same_key(&proof, &again));
    assert_true(verifies(d, &again));
}

static void what_this_host_has_of_a_key(void **state)
{
    struct desk *d = *state;
    struct keys_made staged;
    struct baton_error err;
    struct buf findings = BUF_INIT;
    apply(d);
    assert_int_equal(keys_rotate(&d->folders, "claude", true, false, &staged, &err), BATON_OK);
    struct trust *trust = load_trust(&d->box);
    struct signer *signer = load_signer(&d->box, "claude");
    assert_int_equal(
        keys_here(&d->folders, trust_key_find(trust, signer_key_id(signer).s), &findings),
        KEYS_HERE_signs);
    assert_int_equal(keys_here(&d->folders, trust_key_find(trust, staged.id.s), &findings),
                     KEYS_HERE_staged);
    assert_int_equal(findings.len, 0);
    assert_int_equal(chmod(staged.private_path, 0644), 0);
    assert_int_equal(keys_here(&d->folders, trust_key_find(trust, staged.id.s), &findings),
                     KEYS_HERE_no);
    assert_non_null(strstr(findings.data, "chmod 600"));
    buf_done(&findings);
    signer_free(signer);
    trust_free(trust);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, open_desk, close_desk)
    const struct CMUnitTest tests[] = {
        T(apply_makes_what_plan_shows),
        T(apply_adds_and_never_takes_away),
        T(apply_publishes_a_private_key_that_is_here),
        T(x30_apply_stops_at_an_unsafe_folder),
        T(generate_writes_key_and_rights),
        T(generate_refuses_what_no_kind_has),
        T(passphrases_are_never_taken_unattended),
        T(a_key_with_passphrase_signs_for_nobody_unattended),
        T(x28_rotation_refuses_no_record),
        T(x28_retire_too_early_is_refused),
        T(revoke_is_at_once_and_for_ever),
        T(what_this_host_has_of_a_key),
    };
#undef T
    unsetenv("CI");
    unsetenv("BATON_MODE");
    return cmocka_run_group_tests_name("keys", tests, NULL, NULL);
}
