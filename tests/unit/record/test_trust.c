/* The trust folder and private keys: what is unsafe is refused before it is read (X30), the rest
 * said at once. */
#include "fixture.h"

#include "common/base/safe_file.h"

static baton_code load(const struct box *box, struct buf *findings, struct baton_error *err)
{
    struct trust *trust = NULL;
    baton_code rc = trust_load(box->trust, &trust, findings, err);
    assert_true((trust != NULL) == (rc == BATON_OK));
    trust_free(trust);
    return rc;
}

static void expect(const struct box *box, baton_code code)
{
    struct baton_error err = {0};
    baton_code rc = load(box, NULL, &err);
    if (rc != code) {
        fail_msg("%s (%s) instead of %s", baton_code_word(rc), err.text, baton_code_word(code));
    }
}

static baton_code load_key(const struct box *box, const char *name, struct baton_error *err)
{
    struct signer *signer = NULL;
    baton_code rc = signer_load(box->keys, name, &signer, err);
    assert_true((signer != NULL) == (rc == BATON_OK));
    signer_free(signer);
    return rc;
}

static int open_box(void **state)
{
    struct box *box = calloc(1, sizeof(*box));
    assert_non_null(box);
    box_fleet(box);
    *state = box;
    return 0;
}

static int close_box(void **state)
{
    box_close(*state);
    free(*state);
    return 0;
}

static char *path_in(const char *dir, const char *name)
{
    static char path[256];
    assert_true((size_t)snprintf(path, sizeof(path), "%s/%s", dir, name) < sizeof(path));
    return path;
}

static void the_folder_says_who_is_who(void **state)
{
    struct box *box = *state;
    struct trust *trust = load_trust(box);
    const struct trust_key *key = trust_key_find(trust, "deb2ded39dc26fce");
    assert_string_equal(trust_fleet(trust), "prod");
    assert_non_null(key);
    assert_string_equal(trust_principal_name(trust_key_owner(key)), "claude");
    assert_null(trust_key_find(trust, "0000000000000000"));
    assert_null(trust_key_find(trust, ""));
    assert_null(trust_principal_find(trust, "nobody"));
    assert_int_equal(trust_principals(trust), 6);
    assert_int_equal(trust_keys(trust), 6);
    assert_false(trust_changed(trust));
    trust_free(trust);
}

/* Every right, asked of each kind of principal. */
static void rights_are_what_the_files_say(void **state)
{
    struct box *box = *state;
    struct trust *trust = load_trust(box);
    const struct trust_principal *coordinator = trust_principal_find(trust, "coordinator");
    const struct trust_principal *claude = trust_principal_find(trust, "claude");
    const struct trust_principal *alice = trust_principal_find(trust, "alice");
    const struct trust_principal *ci = trust_principal_find(trust, "ci");
    assert_true(trust_may_create(coordinator, "anything", ROLE_arbiter));
    assert_true(trust_may_coordinate(coordinator));
    assert_false(trust_may_operate(coordinator, "claude"));
    assert_true(trust_may_serve(claude, ROLE_owner));
    assert_false(trust_may_serve(claude, ROLE_arbiter));
    assert_true(trust_may_pass(claude, "codex-review", ROLE_reviewer));
    assert_false(trust_may_pass(claude, "codex-review", ROLE_owner));
    assert_false(trust_may_pass(claude, "lint", ROLE_reviewer));
    assert_false(trust_may_create(claude, "claude", ROLE_owner));
    assert_true(trust_may_create(alice, "claude", ROLE_owner));
    assert_false(trust_may_create(alice, "claude", ROLE_reviewer));
    assert_false(trust_may_create(alice, "codex-review", ROLE_owner));
    assert_true(trust_may_operate(alice, "codex-review"));
    assert_false(trust_may_operate(alice, "claude"));
    assert_true(trust_may_request(alice, "start"));
    assert_false(trust_may_request(alice, "stop"));
    assert_false(trust_may_request(ci, "start"));
    assert_false(trust_may_serve(alice, ROLE_owner));
    assert_false(trust_may_coordinate(alice));
    assert_false(trust_may_create(NULL, "claude", ROLE_owner));
    assert_false(trust_may_operate(NULL, "claude"));
    assert_false(trust_may_pass(NULL, "claude", ROLE_owner));
    assert_false(trust_may_serve(NULL, ROLE_owner));
    assert_false(trust_may_coordinate(NULL));
    assert_false(trust_may_request(NULL, "start"));
    struct buf text = BUF_INIT;
    trust_rights(claude, &text);
    assert_string_equal(text.data, "claude may serve owner, reviewer\n"
                                   "claude may pass reviewer to codex-review\n");
    buf_done(&text);
    trust_free(trust);
}

static void x30_folder_writable_by_others(void **state)
{
    struct box *box = *state;
    static const mode_t modes[] = {0775, 0757, 0777, 01777};
    for (size_t i = 0; i < COUNT_OF(modes); i++) {
        assert_int_equal(chmod(box->trust, modes[i]), 0);
        expect(box, BATON_E_key_unsafe);
    }
    assert_int_equal(chmod(box->trust, 0755), 0);
    expect(box, BATON_OK);
}

static void x30_files_writable_by_others(void **state)
{
    struct box *box = *state;
    static const char *const names[] = {"fleet.yaml", "claude.yaml", "claude.deb2ded39dc26fce.pem"};
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        assert_int_equal(chmod(path_in(box->trust, names[i]), 0664), 0);
        expect(box, BATON_E_key_unsafe);
        assert_int_equal(chmod(path_in(box->trust, names[i]), 0646), 0);
        expect(box, BATON_E_key_unsafe);
        assert_int_equal(chmod(path_in(box->trust, names[i]), 0644), 0);
    }
    write_file(box->trust, "0000000000000000.revoked", "", 0666);
    expect(box, BATON_E_key_unsafe);
}

/* Unsafe comes before wrong: a folder that is both is not even parsed. */
static void x30_unsafe_before_anything_else(void **state)
{
    struct box *box = *state;
    struct buf findings = BUF_INIT;
    struct baton_error err;
    write_file(box->trust, "alice.yaml", "kind: [", 0644);
    write_file(box->trust, "lint.yaml", "kind: service\n", 0666);
    assert_int_equal(load(box, &findings, &err), BATON_E_key_unsafe);
    assert_int_equal(findings.len, 0);
    buf_done(&findings);
}

static void x30_id_that_does_not_match_its_name(void **state)
{
    struct box *box = *state;
    char from[256];
    snprintf(from, sizeof(from), "%s", path_in(box->trust, "claude.deb2ded39dc26fce.pem"));
    assert_int_equal(rename(from, path_in(box->trust, "claude.deb2ded39dc26fcf.pem")), 0);
    expect(box, BATON_E_key_unsafe);
}

static void x30_folder_of_another_user(void **state)
{
    struct box *box = *state;
    if (geteuid() != 0) {
        skip(); /* only root can give files away */
    }
    assert_int_equal(chown(box->trust, 12345, 0), 0);
    expect(box, BATON_E_key_unsafe);
    assert_int_equal(chown(box->trust, 0, 0), 0);
    assert_int_equal(chown(path_in(box->trust, "claude.yaml"), 12345, 0), 0);
    expect(box, BATON_E_key_unsafe);
}

static void x30_things_that_are_no_files(void **state)
{
    struct box *box = *state;
    assert_int_equal(mkfifo(path_in(box->trust, "mallory.yaml"), 0644), 0);
    expect(box, BATON_E_key_unsafe);
    assert_int_equal(unlink(path_in(box->trust, "mallory.yaml")), 0);
    assert_int_equal(mkdir(path_in(box->trust, "mallory.yaml"), 0755), 0);
    expect(box, BATON_E_key_unsafe);
    assert_int_equal(rmdir(path_in(box->trust, "mallory.yaml")), 0);
    assert_int_equal(symlink("/nowhere/at/all", path_in(box->trust, "mallory.yaml")), 0);
    struct baton_error err;
    assert_int_not_equal(load(box, NULL, &err), BATON_OK);
}

static void links_are_followed(void **state)
{
    struct box *box = *state;
    char data[256];
    snprintf(data, sizeof(data), "%s", path_in(box->trust, "..data"));
    assert_int_equal(mkdir(data, 0755), 0);
    write_file(data, "bob.yaml", "kind: person\n", 0644);
    assert_int_equal(symlink("..data/bob.yaml", path_in(box->trust, "bob.yaml")), 0);
    put_private(box, "bob", "0808080808080808080808080808080808080808080808080808080808080808");
    put_public(box, "bob", "bob");
    expect(box, BATON_OK);
    assert_int_equal(chmod(path_in(data, "bob.yaml"), 0666), 0);
    expect(box, BATON_E_key_unsafe);
}

static void a_folder_that_is_not_there(void **state)
{
    struct box *box = *state;
    struct trust *trust = NULL;
    struct baton_error err;
    assert_int_equal(trust_load(path_in(box->dir, "nothing"), &trust, NULL, &err),
                     BATON_E_bad_config);
    assert_int_equal(trust_load(path_in(box->trust, "fleet.yaml"), &trust, NULL, &err),
                     BATON_E_key_unsafe);
    assert_null(trust);
}

static void findings_are_told_at_once(void **state)
{
    struct box *box = *state;
    struct buf findings = BUF_INIT;
    struct baton_error err;
    write_file(box->trust, "claude.yaml",
               "kind: service\ncreate: {lint: [owner]}\nserve: [boss]\nserv: [owner]\n", 0644);
    write_file(box->trust, "alice.yaml", "kind: person\ncoordinate: true\nrequest: [stop]\n", 0644);
    write_file(box->trust, "ghost.yaml", "kind: person\n", 0644);
    write_file(box->trust, "notes.txt", "x", 0644);
    write_file(box->trust, "bad.1234.pem", "x", 0644);
    assert_int_equal(load(box, &findings, &err), BATON_E_bad_config);
    static const char *const words[] = {"cannot have the right `create`",
                                        "'boss' is no role",
                                        "unknown key 'serv'",
                                        "cannot have the right `coordinate`",
                                        "'stop' is no kind of request",
                                        "ghost",
                                        "notes.txt",
                                        "bad.1234.pem",
                                        "claude.yaml:2:"};
    for (size_t i = 0; i < COUNT_OF(words); i++) {
        if (strstr(findings.data, words[i]) == NULL) {
            fail_msg("'%s' is not in:\n%s", words[i], findings.data);
        }
    }
    buf_done(&findings);
}

/* X33: what YAML can do and a trust file may not. */
static void x33_yaml_in_trust_files(void **state)
{
    struct box *box = *state;
    static const char *const bad[] = {
        "kind: service\nkind: person\n",
        "kind: &a service\nserve: [*a]\n",
        "kind: !!str service\n",
        "kind: service\n---\nkind: person\n",
        "kind: service\n<<: {serve: [owner]}\n",
        "kind: [service]\n",
        "[kind, service]\n",
        "kind: Service\n",
        "serve: [owner]\n",
        "kind: service\nserve: owner\n",
        "kind: service\npass: [lint]\n",
        "kind: service\npass: {'*': [owner]}\n",
        "kind: service\nserve: [owner\n",
        "kind: service\x01\n",
    };
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        struct baton_error err = {0};
        write_file(box->trust, "lint.yaml", bad[i], 0644);
        baton_code rc = load(box, NULL, &err);
        if (rc != BATON_E_bad_config || strstr(err.text, "lint.yaml") == NULL) {
            fail_msg("%s: %s (%s)", bad[i], baton_code_word(rc), err.text);
        }
    }
}

static void one_key_has_one_principal(void **state)
{
    struct box *box = *state;
    struct buf findings = BUF_INIT;
    struct baton_error err;
    put_public(box, "claude", "lint");
    assert_int_equal(load(box, &findings, &err), BATON_E_bad_config);
    assert_non_null(strstr(findings.data, "belongs to"));
    buf_done(&findings);
}

static void a_fleet_must_have_a_name(void **state)
{
    struct box *box = *state;
    static const char *const bad[] = {"",
                                      "version: 1\n",
                                      "fleet: prod\n",
                                      "version: 2\nfleet: prod\n",
                                      "version: 1\nfleet: Prod\n",
                                      "version: 1\nfleet: prod\nx: 1\n"};
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        write_file(box->trust, "fleet.yaml", bad[i], 0644);
        expect(box, BATON_E_bad_config);
    }
    assert_int_equal(unlink(path_in(box->trust, "fleet.yaml")), 0);
    expect(box, BATON_E_bad_config);
}

static void only_ed25519_keys(void **state)
{
    struct box *box = *state;
    /* An X25519 public key: another algorithm of the same size. */
    write_file(box->trust, "lint.0123456789abcdef.pem",
               "-----BEGIN PUBLIC KEY-----\n"
               "MCowBQYDK2VuAyEAhSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo=\n"
               "-----END PUBLIC KEY-----\n",
               0644);
    expect(box, BATON_E_bad_config);
}

static void changes_of_the_folder_are_seen(void **state)
{
    struct box *box = *state;
    struct trust *trust = load_trust(box);
    assert_false(trust_changed(trust));
    write_file(box->trust, "0000000000000000.revoked", "", 0644);
    assert_true(trust_changed(trust));
    trust_free(trust);
    trust = load_trust(box);
    assert_false(trust_changed(trust));
    assert_int_equal(chmod(path_in(box->trust, "lint.yaml"), 0640), 0);
    assert_true(trust_changed(trust));
    trust_free(trust);
}

/* Mutants: drop fleet, class, key, statement or digest from the signed bytes. */
static void each_part_of_the_proof_counts(void **state)
{
    struct box *box = *state;
    struct trust *trust = load_trust(box);
    struct signer *signer = load_signer(box, "claude");
    const struct trust_key *key = trust_key_find(trust, signer_key_id(signer).s);
    struct digest digest = digest_of("value", 5);
    struct digest other = digest_of("Value", 5);
    struct proof_text proof;
    struct baton_error err;
    assert_int_equal(
        signer_sign(signer, FLEET, PROOF_pass, "key", 3, "statement", &digest, &proof, &err),
        BATON_OK);
    const char *sig = proof.s + 19;
    assert_true(trust_key_verify(key, FLEET, PROOF_pass, "key", 3, "statement", &digest, sig));
    assert_false(trust_key_verify(key, "proc", PROOF_pass, "key", 3, "statement", &digest, sig));
    assert_false(trust_key_verify(key, FLEET, PROOF_turn, "key", 3, "statement", &digest, sig));
    assert_false(trust_key_verify(key, FLEET, PROOF_pass, "kez", 3, "statement", &digest, sig));
    assert_false(trust_key_verify(key, FLEET, PROOF_pass, "key", 2, "statement", &digest, sig));
    assert_false(trust_key_verify(key, FLEET, PROOF_pass, "keys", 4, "tatement", &digest, sig));
    assert_false(trust_key_verify(key, FLEET, PROOF_pass, "key", 3, "statemenu", &digest, sig));
    assert_false(trust_key_verify(key, FLEET, PROOF_pass, "key", 3, NULL, &digest, sig));
    assert_false(trust_key_verify(key, FLEET, PROOF_pass, "key", 3, "statement", &other, sig));
    const struct trust_key *wrong = trust_key_find(trust, "06e3fd8fda29bb60");
    assert_false(trust_key_verify(wrong, FLEET, PROOF_pass, "key", 3, "statement", &digest, sig));
    signer_free(signer);
    trust_free(trust);
}

static void x30_private_keys_open_to_others(void **state)
{
    struct box *box = *state;
    static const mode_t bad[] = {0644, 0604, 0602, 0601, 0660, 0620, 0610, 0666, 0777};
    static const mode_t fine[] = {0600, 0400};
    struct baton_error err;
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        assert_int_equal(chmod(path_in(box->keys, "claude.pem"), bad[i]), 0);
        assert_int_equal(load_key(box, "claude", &err), BATON_E_key_unsafe);
        assert_non_null(strstr(err.text, "chmod 600"));
    }
    for (size_t i = 0; i < COUNT_OF(fine); i++) {
        assert_int_equal(chmod(path_in(box->keys, "claude.pem"), fine[i]), 0);
        assert_int_equal(load_key(box, "claude", &err), BATON_OK);
    }
    /* Readable by a group only where root owns it. */
    assert_int_equal(chmod(path_in(box->keys, "claude.pem"), 0640), 0);
    assert_int_equal(load_key(box, "claude", &err), geteuid() == 0 ? BATON_OK : BATON_E_key_unsafe);
}

static void x30_private_keys_that_are_no_files(void **state)
{
    struct box *box = *state;
    struct baton_error err;
    assert_int_equal(mkdir(path_in(box->keys, "dir.pem"), 0700), 0);
    assert_int_equal(mkfifo(path_in(box->keys, "fifo.pem"), 0600), 0);
    assert_int_equal(load_key(box, "dir", &err), BATON_E_key_unsafe);
    assert_int_equal(load_key(box, "fifo", &err), BATON_E_key_unsafe);
    assert_int_equal(symlink("claude.pem", path_in(box->keys, "link.pem")), 0);
    assert_int_equal(load_key(box, "link", &err), BATON_OK);
    assert_int_equal(chmod(path_in(box->keys, "claude.pem"), 0644), 0);
    assert_int_equal(load_key(box, "link", &err), BATON_E_key_unsafe);
}

static void x30_private_key_of_another_user(void **state)
{
    struct box *box = *state;
    struct baton_error err;
    if (geteuid() != 0) {
        skip(); /* only root can give files away */
    }
    assert_int_equal(chown(path_in(box->keys, "claude.pem"), 12345, 0), 0);
    assert_int_equal(load_key(box, "claude", &err), BATON_E_key_unsafe);
}

static void x30_folder_of_keys_writable_by_others(void **state)
{
    struct box *box = *state;
    struct baton_error err;
    static const struct {
        mode_t mode;
        baton_code code;
    } rows[] = {{0770, BATON_E_key_unsafe}, {0702, BATON_E_key_unsafe}, {0777, BATON_E_key_unsafe},
                {01777, BATON_OK},          {0755, BATON_OK},           {0700, BATON_OK}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        assert_int_equal(chmod(box->keys, rows[i].mode), 0);
        assert_int_equal(load_key(box, "claude", &err), rows[i].code);
    }
    struct signer *signer = NULL;
    assert_int_equal(signer_load("/nowhere/at/all", "claude", &signer, &err),
                     BATON_E_unauthenticated);
}

static void private_keys_that_are_missing_or_broken(void **state)
{
    struct box *box = *state;
    struct baton_error err;
    assert_int_equal(load_key(box, "nobody", &err), BATON_E_unauthenticated);
    assert_non_null(strstr(err.text, "baton keys generate nobody"));
    assert_int_equal(load_key(box, "../trust/x", &err), BATON_E_invalid_request);
    assert_int_equal(load_key(box, "", &err), BATON_E_invalid_request);
    write_file(box->keys, "empty.pem", "", 0600);
    assert_int_equal(load_key(box, "empty", &err), BATON_E_bad_config);
    write_file(box->keys, "text.pem", "not a key\n", 0600);
    assert_int_equal(load_key(box, "text", &err), BATON_E_bad_config);
}

/* X31: the bytes of a private key are in no error text. */
static void x31_errors_hold_no_key(void **state)
{
    struct box *box = *state;
    struct baton_error err;
    write_file(box->keys, "canary.pem",
               "-----BEGIN PRIVATE KEY-----\nCANARYCANARYCANARY\n-----END PRIVATE KEY-----\n",
               0600);
    assert_int_equal(load_key(box, "canary", &err), BATON_E_bad_config);
    assert_null(strstr(err.text, "CANARY"));
}

static void files_are_written_whole_or_not_at_all(void **state)
{
    struct box *box = *state;
    struct baton_error err;
    struct stat st;
    char bytes[16];
    size_t len;
    char path[256];
    snprintf(path, sizeof(path), "%s", path_in(box->dir, "file"));
    mode_t mask = umask(0);
    assert_int_equal(safe_write(path, "one", 3, 0600, false, &err), BATON_OK);
    assert_int_equal(safe_write(path, "two", 3, 0600, false, &err), BATON_E_duplicate);
    assert_int_equal(safe_read(path, SAFE_secret, 15, bytes, &len, &err), BATON_OK);
    assert_string_equal(bytes, "one");
    assert_int_equal(safe_write(path, "two", 3, 0640, true, &err), BATON_OK);
    umask(mask);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0640);
    assert_int_equal(safe_read(path, SAFE_public, 2, bytes, &len, &err), BATON_E_bad_config);
    assert_int_equal(safe_write(path_in(box->dir, "no/such/file"), "x", 1, 0600, true, &err),
                     BATON_E_service_unavailable);
    /* nothing is left beside it */
    assert_int_equal(unlink(path), 0);
    assert_int_equal(chmod(box->keys, 0700), 0);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, open_box, close_box)
    const struct CMUnitTest tests[] = {
        T(the_folder_says_who_is_who),
        T(rights_are_what_the_files_say),
        T(x30_folder_writable_by_others),
        T(x30_files_writable_by_others),
        T(x30_unsafe_before_anything_else),
        T(x30_id_that_does_not_match_its_name),
        T(x30_folder_of_another_user),
        T(x30_things_that_are_no_files),
        T(links_are_followed),
        T(a_folder_that_is_not_there),
        T(findings_are_told_at_once),
        T(x33_yaml_in_trust_files),
        T(one_key_has_one_principal),
        T(a_fleet_must_have_a_name),
        T(only_ed25519_keys),
        T(changes_of_the_folder_are_seen),
        T(each_part_of_the_proof_counts),
        T(x30_private_keys_open_to_others),
        T(x30_private_keys_that_are_no_files),
        T(x30_private_key_of_another_user),
        T(x30_folder_of_keys_writable_by_others),
        T(private_keys_that_are_missing_or_broken),
        T(x31_errors_hold_no_key),
        T(files_are_written_whole_or_not_at_all),
    };
#undef T
    return cmocka_run_group_tests_name("trust and keys", tests, NULL, NULL);
}
