/*
 * A record with any headers, on receipt: with proofs nothing but the signed bytes gets through, and
 * without them the chain of passes must hold all that it promises.
 * Parts: record
 *
 * Input: one byte of flags, then headers as one byte of name, two of length, and the value; what is
 * left of a header that is cut short counts as its value.
 */
#include "common/base/check.h"
#include "common/record/headers.h"
#include "common/record/receipt.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CHECK(x)                                                                                   \
    do {                                                                                           \
        if (!(x)) {                                                                                \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

#define KEY "a97714f129ea975fdcb2f1a8ed9d4087"

static const char value[] =
    "{\"version\":1,\"turn_id\":\"" KEY "\",\"origin\":\"coordinator\",\"service\":\"claude\","
    "\"role\":\"reviewer\",\"task_id\":\"t-41\",\"task_rev\":7,\"run_id\":\"r-9\",\"epoch\":1,"
    "\"intent\":\"review\",\"key\":\"r-9.1.2\",\"parent\":\"\","
    "\"created_at\":\"2026-11-29T14:20:43.120Z\",\"expires_at\":\"2026-12-06T14:20:43.120Z\","
    "\"summary\":\"Review fix.diff\",\"data\":{},"
    "\"payload\":{\"media_type\":\"text/plain\",\"text\":\"hello\"}}";

static const char *const names[] = {HEADER_SIG,      HEADER_PASS,        HEADER_WAIT,
                                    HEADER_ATTEMPTS, HEADER_TRACEPARENT, HEADER_CODE,
                                    "baton-x",       "Baton-Sig",        "other"};

static struct trust *trust;

static void put(const char *dir, const char *name, const char *text)
{
    char path[200];
    snprintf(path, sizeof(path), "%s/%s", dir, name);
    FILE *file = fopen(path, "we");
    CHECK(file != NULL && fputs(text, file) >= 0 && fclose(file) == 0 && chmod(path, 0644) == 0);
}

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    static const char *const files[][2] = {
        {"fleet.yaml", "version: 1\nfleet: prod\n"},
        {"coordinator.yaml", "kind: program\ncreate: {'*': [owner, reviewer, arbiter]}\n"},
        {"coordinator.06e3fd8fda29bb60.pem",
         "-----BEGIN PUBLIC KEY-----\n"
         "MCowBQYDK2VwAyEA11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=\n"
         "-----END PUBLIC KEY-----\n"},
    };
    char dir[] = "/tmp/baton-fuzz.XXXXXX";
    struct baton_error err;
    (void)argc;
    (void)argv;
    CHECK(mkdtemp(dir) != NULL && chmod(dir, 0755) == 0);
    for (size_t i = 0; i < COUNT_OF(files); i++) {
        put(dir, files[i][0], files[i][1]);
    }
    baton_code rc = trust_load(dir, &trust, NULL, &err);
    for (size_t i = 0; i < COUNT_OF(files); i++) {
        char path[200];
        snprintf(path, sizeof(path), "%s/%s", dir, files[i][0]);
        unlink(path);
    }
    rmdir(dir);
    if (rc != BATON_OK) {
        fprintf(stderr, "%s\n", err.text);
        abort();
    }
    return 0;
}

static size_t take_headers(const uint8_t *data, size_t size, struct log_header *headers, size_t max)
{
    size_t count = 0;
    while (size >= 3 && count < max) {
        size_t len = (size_t)data[1] << 8 | data[2];
        headers[count].name = names[data[0] % COUNT_OF(names)];
        data += 3;
        size -= 3;
        len = len < size ? len : size;
        headers[count].value = data;
        headers[count].value_len = len;
        count++;
        data += len;
        size -= len;
    }
    return count;
}

/* What a chain promises, said once more. */
static void check_chain(const struct receipt *r, const char *me)
{
    const char *at = r->turn->service.s;
    int attempt = 1;
    for (size_t i = 0; i < r->n_passes; i++) {
        CHECK(strcmp(r->passes[i].from.s, at) == 0);
        CHECK(r->passes[i].attempt > attempt && r->passes[i].attempt <= PASS_COUNT_MAX);
        at = r->passes[i].to.s;
        attempt = r->passes[i].attempt;
        CHECK(strcmp(at, r->turn->service.s) != 0);
        for (size_t k = 0; k < i; k++) {
            CHECK(strcmp(at, r->passes[k].to.s) != 0);
        }
    }
    CHECK(strcmp(at, me) == 0 && r->attempt == attempt && r->n_passes <= PASSES_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct log_header headers[64];
    struct receipt receipt;
    if (size == 0) {
        return 0;
    }
    bool required = (data[0] & 1) != 0;
    const char *me = (data[0] & 2) != 0 ? "codex-review" : "claude";
    struct receiver receiver = {trust, "prod", required, me, 4};
    struct log_record record = {.topic = "t",
                                .partition = 1,
                                .at = {1795962044000LL},
                                .key = KEY,
                                .key_len = 32,
                                .value = value,
                                .value_len = sizeof(value) - 1,
                                .headers = headers};
    record.n_headers = take_headers(data + 1, size - 1, headers, COUNT_OF(headers));
    baton_code rc = (data[0] & 4) != 0 ? receipt_control(&receiver, &record, &receipt)
                                       : receipt_handoff(&receiver, &record, &receipt);
    CHECK(receipt.code == rc);
    if (rc == BATON_OK) {
        CHECK(receipt.turn != NULL && receipt.proven);
        check_chain(&receipt, me);
        /* Only coordinator's key is trusted, so no pass can have been proven. */
        CHECK(!required || (receipt.n_passes == 0 && receipt.signature != NULL));
    } else {
        CHECK(receipt.turn == NULL && receipt.control == NULL && receipt.note[0] != '\0');
    }
    receipt_done(&receipt);
    return 0;
}
