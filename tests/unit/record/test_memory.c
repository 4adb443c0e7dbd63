/*
 * Running out of memory at the k-th allocation, for every k: no_memory, nothing leaked, nothing
 * half-made. malloc is replaced by one that fails on demand; OpenSSL keeps the real one, since a
 * digest without memory stops the program.
 */
#include "fixture.h"

#include "common/record/control.h"
#include "common/record/outcome.h"
#include "common/record/request.h"
#include "common/record/turn_record.h"

#include <errno.h>
#include <openssl/crypto.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define REPLACED 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define REPLACED 0
#endif
#endif
#ifndef REPLACED
#define REPLACED 1
#endif

#if REPLACED
extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *old, size_t size);
extern void __libc_free(void *memory);

static bool counting;
static long left; /* allocations until one fails */
static long held; /* allocated and not freed while counting */
static bool failed;

static bool fails(void)
{
    if (counting && left-- == 0) {
        failed = true;
        errno = ENOMEM;
        return true;
    }
    return false;
}

static void *note(void *memory)
{
    held += counting && memory != NULL ? 1 : 0;
    return memory;
}

void *malloc(size_t size)
{
    return fails() ? NULL : note(__libc_malloc(size));
}

void *calloc(size_t count, size_t size)
{
    return fails() ? NULL : note(__libc_calloc(count, size));
}

void *realloc(void *old, size_t size)
{
    if (fails()) {
        return NULL;
    }
    void *memory = __libc_realloc(old, size);
    if (old == NULL) {
        note(memory);
    }
    return memory;
}

void free(void *memory)
{
    held -= counting && memory != NULL ? 1 : 0;
    __libc_free(memory);
}

static void *crypto_malloc(size_t size, const char *file, int line)
{
    (void)file;
    (void)line;
    return __libc_malloc(size);
}

static void *crypto_realloc(void *old, size_t size, const char *file, int line)
{
    (void)file;
    (void)line;
    return __libc_realloc(old, size);
}

static void crypto_free(void *memory, const char *file, int line)
{
    (void)file;
    (void)line;
    __libc_free(memory);
}

typedef baton_code act(void *arg);

/* Runs with the k-th allocation failing until none fails any more. */
static void each_allocation(act *run, void *arg)
{
    for (long k = 0;; k++) {
        assert_true(k < 10000);
        failed = false;
        held = 0;
        left = k;
        counting = true;
        baton_code rc = run(arg);
        counting = false;
        if (held != 0 || rc != (failed ? BATON_E_no_memory : BATON_OK)) {
            fail_msg("allocation %ld: %s, %ld not freed", k, baton_code_word(rc), held);
        }
        if (!failed) {
            assert_true(k > 3);
            return;
        }
    }
}

static baton_code run_turn(void *arg)
{
    const struct turn *from = arg;
    struct turn *turn = NULL;
    baton_code rc = turn_parse(FLEET, from->bytes, from->len, &turn, NULL);
    turn_free(turn);
    return rc;
}

static baton_code run_draft(void *arg)
{
    struct turn *turn = NULL;
    baton_code rc = turn_encode(arg, &turn, NULL);
    turn_free(turn);
    return rc;
}

static baton_code run_record(void *arg)
{
    const struct buf *value = arg;
    struct turn_record record;
    struct turn_record copy;
    baton_code rc = turn_record_parse(value->data, value->len, &record, NULL);
    if (rc == BATON_OK) {
        rc = turn_record_copy(&record, &copy);
        if (rc == BATON_OK) {
            turn_record_done(&copy);
        }
        turn_record_done(&record);
    }
    return rc;
}

static baton_code run_control(void *arg)
{
    const char *text = arg;
    struct control *control = NULL;
    baton_code rc = control_parse(text, strlen(text), &control, NULL);
    control_free(control);
    return rc;
}

static baton_code run_outcome(void *arg)
{
    const char *text = arg;
    struct outcome *outcome = NULL;
    baton_code rc = outcome_parse(text, strlen(text), &outcome, NULL);
    outcome_free(outcome);
    return rc;
}

static baton_code run_request(void *arg)
{
    const char *text = arg;
    struct request *request = NULL;
    baton_code rc = request_parse(text, strlen(text), &request, NULL);
    request_free(request);
    return rc;
}

static void memory_of_turns(void **state)
{
    (void)state;
    struct turn_draft draft = example_draft();
    draft.place = "/srv";
    draft.payload = "\xff";
    draft.payload_len = 1;
    draft.data = "{\"a\":{\"b\":[1,2,3]}}";
    draft.data_len = strlen(draft.data);
    struct turn *turn = make_turn(&draft);
    each_allocation(run_turn, turn);
    each_allocation(run_draft, &draft);
    turn_free(turn);
}

static void memory_of_turn_records(void **state)
{
    (void)state;
    struct turn_draft draft = example_draft();
    struct turn *turn = make_turn(&draft);
    struct turn_record r;
    struct buf value = BUF_INIT;
    char *passes[] = {(char[]){"1 2 a b"}, (char[]){"1 3 b c"}};
    turn_record_init(&r);
    r.id = turn->id;
    r.origin = turn->origin;
    r.service = turn->service;
    r.role = turn->role;
    r.task_id = turn->task_id;
    r.intent = turn->intent;
    r.created_at = r.updated_at = turn->created_at;
    r.state = TURN_running;
    r.lease_worker = plain_id_of("w-1");
    r.lease_boot = boot_id_new();
    for (int i = 1; i < 4; i++) {
        struct attempt *a = turn_record_add_attempt(&r);
        a->no = r.attempt = i;
        a->service = turn->service;
        a->state = ATTEMPT_failed;
        a->note = strdup("note");
    }
    r.handoff = strdup(turn->bytes);
    r.handoff_len = turn->len;
    r.signature = strdup("signature");
    r.traceparent = strdup("trace");
    r.passes = passes;
    r.n_passes = 2;
    turn_record_encode(&r, &value);
    each_allocation(run_record, &value);
    r.n_passes = 0;
    r.passes = NULL;
    turn_record_done(&r);
    turn_free(turn);
    buf_done(&value);
}

static void memory_of_control_records_and_outcomes(void **state)
{
    (void)state;
    char report[] =
        "{\"version\":1,\"kind\":\"report\",\"id\":\"c\",\"turn_id\":"
        "\"a97714f129ea975fdcb2f1a8ed9d4087\","
        "\"at\":\"2026-11-29T15:00:00.000Z\",\"attempt\":1,"
        "\"boot\":\"a97714f129ea975fdcb2f1a8ed9d4087\",\"result\":{\"verdict\":\"approve\"}}";
    char answer[] =
        "{\"version\":1,\"event\":\"answer\",\"service\":\"claude\",\"at\":\"2026-11-29T15:00:00."
        "000Z\","
        "\"result\":{},\"answers\":{\"id\":\"c-1\",\"kind\":\"cancel\",\"code\":\"ok\"}}";
    each_allocation(run_control, report);
    each_allocation(run_outcome, answer);
}

static void memory_of_requests(void **state)
{
    (void)state;
    char start[] =
        "{\"version\":1,\"kind\":\"start\",\"id\":\"q\",\"run_id\":\"r\",\"request_no\":0,"
        "\"at\":\"2026-11-29T15:00:00.000Z\",\"body\":{\"workflow\":\"w\",\"task_id\":\"t\","
        "\"task_rev\":1,\"key\":\"k\",\"summary\":\"s\",\"data\":{\"a\":\"b\"},"
        "\"payload\":{\"media_type\":\"text/plain\",\"text\":\"x\"}}}";
    char cancel[] =
        "{\"version\":1,\"kind\":\"cancel\",\"id\":\"q\",\"run_id\":\"r\",\"request_no\":1,"
        "\"at\":\"2026-11-29T15:00:00.000Z\",\"body\":{\"reason\":\"why\"}}";
    each_allocation(run_request, start);
    each_allocation(run_request, cancel);
}

struct intake {
    struct receiver receiver;
    struct post post;
    baton_code (*judge)(const struct receiver *receiver, const struct log_record *record,
                        struct receipt *ret_receipt);
};

static baton_code run_intake(void *arg)
{
    const struct intake *in = arg;
    struct receipt receipt;
    baton_code rc = in->judge(&in->receiver, &in->post.record, &receipt);
    receipt_done(&receipt);
    return rc;
}

static void memory_of_receipts(void **state)
{
    (void)state;
    struct box box;
    static struct intake in;
    box_fleet(&box);
    struct trust *trust = load_trust(&box);
    struct signer *coordinator = load_signer(&box, "coordinator");
    struct signer *claude = load_signer(&box, "claude");
    struct signer *alice = load_signer(&box, "alice");
    struct turn_draft draft = example_draft();
    struct turn *turn = make_turn(&draft);
    in.receiver = receiver_of(trust, "codex-review");
    in.judge = receipt_handoff;
    post_value(&in.post, turn->id.s, turn->bytes, turn->len);
    post_sign(&in.post, coordinator, FLEET, PROOF_turn);
    post_pass(&in.post, claude, "1 2 claude codex-review 1 0 0 auth 2026-11-29T14:20:44.020Z");
    post_header(&in.post, "traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01");
    post_header(&in.post, "baton-attempts", "[]");
    each_allocation(run_intake, &in);
    post_done(&in.post);

    char end[] =
        "{\"version\":1,\"event\":\"run_ended\",\"run_id\":\"r-9\",\"service\":\"coordinator\","
        "\"at\":\"2026-11-29T15:00:00.000Z\",\"result\":{}}";
    post_value(&in.post, "r-9", end, strlen(end));
    post_sign(&in.post, coordinator, FLEET, PROOF_outcome);
    post_pass(&in.post, claude, "1 2 claude codex-review 1 0 0 auth 2026-11-29T14:20:44.020Z");
    post_header(&in.post, "traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01");
    in.judge = receipt_outcome;
    each_allocation(run_intake, &in);
    post_done(&in.post);

    char touch[] =
        "{\"version\":1,\"kind\":\"touch\",\"id\":\"q\",\"run_id\":\"r-9\",\"request_no\":1,"
        "\"at\":\"2026-11-29T14:20:43.120Z\",\"body\":{}}";
    post_value(&in.post, "r-9", touch, strlen(touch));
    post_sign(&in.post, alice, FLEET, PROOF_request);
    post_header(&in.post, "traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01");
    in.judge = receipt_request;
    each_allocation(run_intake, &in);
    post_done(&in.post);
    turn_free(turn);
    signer_free(coordinator);
    signer_free(claude);
    signer_free(alice);
    trust_free(trust);
    box_close(&box);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_of_turns),
        cmocka_unit_test(memory_of_turn_records),
        cmocka_unit_test(memory_of_control_records_and_outcomes),
        cmocka_unit_test(memory_of_requests),
        cmocka_unit_test(memory_of_receipts),
    };
    assert_int_equal(CRYPTO_set_mem_functions(crypto_malloc, crypto_realloc, crypto_free), 1);
    return cmocka_run_group_tests_name("out of memory", tests, NULL, NULL);
}
#else
int main(void)
{
    printf("a sanitizer has malloc: nothing to try here\n");
    return 0;
}
#endif
