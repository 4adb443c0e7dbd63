/*
 * What the tests of common/record share: a folder of their own, the keys of RFC 8032 section 7.1 as
 * principals of a fleet, and records that are signed as a test says, rightly or wrongly.
 */
#ifndef BATON_TESTS_RECORD_FIXTURE_H
#define BATON_TESTS_RECORD_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/base/check.h"
#include "common/log/log.h"
#include "common/record/payload.h"
#include "common/record/proof.h"
#include "common/record/receipt.h"
#include "common/record/signer.h"
#include "common/record/trust.h"
#include "common/record/turn.h"

#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FLEET "prod"
#define PARTITIONS 4

/* Seeds of RFC 8032 (tests 1, 2, 3), and more of the same length. */
#define SEED_1 "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60"
#define SEED_2 "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb"
#define SEED_3 "c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7"

struct box {
    char dir[64];
    char keys[80];
    char trust[80];
};

__attribute__((unused)) static void write_file(const char *dir, const char *name, const char *text,
                                               mode_t mode)
{
    char path[256];
    snprintf(path, sizeof(path), "%s/%s", dir, name);
    unlink(path);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    assert_int_equal(fchmod(fd, mode), 0);
    close(fd);
}

static void pem_of(const char *label, const uint8_t *der, size_t len, char *ret_pem, size_t size)
{
    struct buf text = BUF_INIT;
    base64_encode(&text, der, len);
    assert_true(buf_ok(&text));
    snprintf(ret_pem, size, "-----BEGIN %s-----\n%s\n-----END %s-----\n", label, text.data, label);
    buf_done(&text);
}

/* Writes keys/NAME.pem from a seed. */
__attribute__((unused)) static void put_private(const struct box *box, const char *name,
                                                const char *seed_hex)
{
    static const uint8_t head[] = {0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06,
                                   0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20};
    uint8_t der[sizeof(head) + 32];
    char pem[256];
    char file[100];
    memcpy(der, head, sizeof(head));
    assert_true(hex_decode(seed_hex, strlen(seed_hex), der + sizeof(head), 32));
    pem_of("PRIVATE KEY", der, sizeof(der), pem, sizeof(pem));
    snprintf(file, sizeof(file), "%s.pem", name);
    write_file(box->keys, file, pem, 0600);
}

/* Writes the public key that belongs to keys/NAME.pem to trust/ as OWNER's. Returns its id. */
__attribute__((unused)) static struct key_id put_public(const struct box *box, const char *name,
                                                        const char *owner);

__attribute__((unused)) static struct signer *load_signer(const struct box *box, const char *name)
{
    struct signer *signer = NULL;
    struct baton_error err;
    baton_code rc = signer_load(box->keys, name, &signer, &err);
    if (rc != BATON_OK) {
        fail_msg("signer %s: %s", name, err.text);
    }
    return signer;
}

__attribute__((unused)) static struct trust *load_trust(const struct box *box)
{
    struct trust *trust = NULL;
    struct baton_error err;
    baton_code rc = trust_load(box->trust, &trust, NULL, &err);
    if (rc != BATON_OK) {
        fail_msg("trust: %s", err.text);
    }
    return trust;
}

#include "common/record/keyfile.h"

static struct key_id put_public(const struct box *box, const char *name, const char *owner)
{
    char path[256];
    struct evp_pkey_st *pair = NULL;
    struct key_id id;
    struct baton_error err;
    snprintf(path, sizeof(path), "%s/%s.pem", box->keys, name);
    assert_int_equal(keyfile_read_private(path, &pair, &err), BATON_OK);
    assert_true(keyfile_id(pair, &id));
    snprintf(path, sizeof(path), "%s/%s.%s.pem", box->trust, owner, id.s);
    assert_int_equal(keyfile_write_public(path, pair, &err), BATON_OK);
    keyfile_free(pair);
    return id;
}

static void box_open(struct box *box)
{
    const char *tmp = getenv("TMPDIR");
    snprintf(box->dir, sizeof(box->dir), "%s/baton-record.XXXXXX",
             tmp != NULL && strlen(tmp) < 32 ? tmp : "/tmp");
    assert_non_null(mkdtemp(box->dir));
    snprintf(box->keys, sizeof(box->keys), "%s/keys", box->dir);
    snprintf(box->trust, sizeof(box->trust), "%s/trust", box->dir);
    assert_int_equal(mkdir(box->keys, 0700), 0);
    assert_int_equal(mkdir(box->trust, 0755), 0);
    assert_int_equal(chmod(box->trust, 0755), 0);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

__attribute__((unused)) static void box_close(struct box *box)
{
    nftw(box->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/*
 * The fleet of RECORD.md's example: coordinator (creates everywhere), service claude, and
 * codex-review, lint, alice (person: owner turns at claude, operates codex-review), ci (program:
 * operates claude).
 */
__attribute__((unused)) static void box_fleet(struct box *box)
{
    box_open(box);
    write_file(box->trust, "fleet.yaml", "version: 1\nfleet: prod\n", 0644);
    write_file(box->trust, "coordinator.yaml",
               "kind: program\ncoordinate: true\ncreate: {'*': [owner, reviewer, arbiter]}\n",
               0644);
    write_file(box->trust, "claude.yaml",
               "kind: service\nserve: [owner, reviewer]\npass: {codex-review: [reviewer]}\n", 0644);
    write_file(box->trust, "codex-review.yaml",
               "kind: service\nserve: [reviewer]\npass: {lint: [reviewer]}\n", 0644);
    write_file(box->trust, "lint.yaml",
               "kind: service\nserve: [reviewer]\npass: {codex-review: [reviewer]}\n", 0644);
    write_file(box->trust, "alice.yaml",
               "kind: person\ncreate: {claude: [owner]}\noperate: [codex-review]\n"
               "request: [start, handoff, touch, cancel, reopen, answer]\n",
               0644);
    write_file(box->trust, "ci.yaml",
               "kind: program\noperate: [claude]\ncreate: {claude: [owner]}\n", 0644);
    put_private(box, "coordinator", SEED_1);
    put_private(box, "claude", SEED_2);
    put_private(box, "codex-review", SEED_3);
    put_private(box, "lint", "0404040404040404040404040404040404040404040404040404040404040404");
    put_private(box, "alice", "0505050505050505050505050505050505050505050505050505050505050505");
    put_private(box, "ci", "0606060606060606060606060606060606060606060606060606060606060606");
    put_private(box, "stranger",
                "0707070707070707070707070707070707070707070707070707070707070707");
    put_public(box, "coordinator", "coordinator");
    put_public(box, "claude", "claude");
    put_public(box, "codex-review", "codex-review");
    put_public(box, "lint", "lint");
    put_public(box, "alice", "alice");
    put_public(box, "ci", "ci");
}

/* 2026-11-29T14:20:43.120Z, the example's time. */
#define EXAMPLE_MS 1795962043120LL

__attribute__((unused)) static struct turn_draft example_draft(void)
{
    struct turn_draft d;
    memset(&d, 0, sizeof(d));
    d.fleet = FLEET;
    d.origin = "coordinator";
    d.service = "claude";
    d.role = ROLE_reviewer;
    d.task_id = "t-41";
    d.task_rev = 7;
    d.run_id = "r-9";
    d.epoch = 1;
    d.intent = "review";
    d.key = "r-9.1.2";
    d.parent = "";
    d.created_at.v = EXAMPLE_MS;
    d.summary = "Review fix.diff";
    d.payload = "hello";
    d.payload_len = 5;
    return d;
}

__attribute__((unused)) static struct turn *make_turn(const struct turn_draft *draft)
{
    struct turn *turn = NULL;
    struct baton_error err;
    baton_code rc = turn_encode(draft, &turn, &err);
    if (rc != BATON_OK) {
        fail_msg("turn: %s", err.text);
    }
    return turn;
}

/* A record with its own copies, so that a test may change any byte. */
struct post {
    struct log_record record;
    struct log_header headers[40];
    char key[80];
    char *value;
    char texts[40][520];
};

__attribute__((unused)) static void post_value(struct post *post, const char *key,
                                               const void *value, size_t len)
{
    memset(post, 0, sizeof(*post));
    snprintf(post->key, sizeof(post->key), "%s", key);
    post->value = malloc(len + 1);
    assert_non_null(post->value);
    memcpy(post->value, value, len);
    post->record.topic = "t";
    post->record.key = post->key;
    post->record.key_len = strlen(post->key);
    post->value[len] = '\0'; /* tests look for words in it */
    post->record.value = post->value;
    post->record.value_len = len;
    post->record.headers = post->headers;
    post->record.partition = log_partition_of(post->key, strlen(post->key), PARTITIONS);
    post->record.at.v = EXAMPLE_MS + 1000;
}

__attribute__((unused)) static void post_header(struct post *post, const char *name,
                                                const char *value)
{
    size_t i = post->record.n_headers++;
    const size_t len = strlen(value);
    assert_true(i < COUNT_OF(post->headers) && len < sizeof(post->texts[i]));
    memcpy(post->texts[i], value, len + 1);
    post->headers[i] = (struct log_header){name, post->texts[i], len};
}

/* Signs value and key as they stand, by whom, for which fleet and class. */
__attribute__((unused)) static void post_sign(struct post *post, const struct signer *signer,
                                              const char *fleet, enum proof_class class)
{
    struct digest digest = digest_of(post->record.value, post->record.value_len);
    struct proof_text proof;
    struct baton_error err;
    assert_int_equal(signer_sign(signer, fleet, class, post->record.key, post->record.key_len,
                                 class == PROOF_pass ? "1" : NULL, &digest, &proof, &err),
                     BATON_OK);
    post_header(post, "baton-sig", proof.s);
}

/* Adds a hop with a statement as the test writes it. */
__attribute__((unused)) static void post_pass(struct post *post, const struct signer *signer,
                                              const char *statement)
{
    struct digest digest = digest_of(post->record.value, post->record.value_len);
    struct proof_text proof;
    struct baton_error err;
    char text[520];
    assert_int_equal(signer_sign(signer, FLEET, PROOF_pass, post->record.key, post->record.key_len,
                                 statement, &digest, &proof, &err),
                     BATON_OK);
    snprintf(text, sizeof(text), "%s %s", statement, proof.s + 2);
    post_header(post, "baton-pass", text);
}

__attribute__((unused)) static void post_done(struct post *post)
{
    free(post->value);
    post->value = NULL;
}

__attribute__((unused)) static struct receiver receiver_of(const struct trust *trust,
                                                           const char *service)
{
    return (struct receiver){.trust = trust,
                             .fleet = FLEET,
                             .proof_required = true,
                             .service = service,
                             .partitions = PARTITIONS};
}

/* Judges, checks the code, and that a refused record leaves nothing to act on. */
__attribute__((unused)) static void expect_handoff(const struct receiver *receiver,
                                                   const struct post *post, baton_code code)
{
    struct receipt receipt;
    baton_code rc = receipt_handoff(receiver, &post->record, &receipt);
    if (rc != code) {
        fail_msg("%s (%s) instead of %s", baton_code_word(rc), receipt.note, baton_code_word(code));
    }
    assert_int_equal(receipt.code, code);
    if (code != BATON_OK) {
        assert_null(receipt.turn);
        assert_true(receipt.note[0] != '\0');
    } else {
        assert_non_null(receipt.turn);
        assert_true(receipt.proven);
    }
    receipt_done(&receipt);
}

__attribute__((unused)) static void expect_control(const struct receiver *receiver,
                                                   const struct post *post, baton_code code)
{
    struct receipt receipt;
    baton_code rc = receipt_control(receiver, &post->record, &receipt);
    if (rc != code) {
        fail_msg("%s (%s) instead of %s", baton_code_word(rc), receipt.note, baton_code_word(code));
    }
    assert_true((receipt.control != NULL) == (code == BATON_OK));
    receipt_done(&receipt);
}

#endif
