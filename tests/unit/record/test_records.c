/*
 * What is written can be read: random contents of every struct go through encode and decode and
 * come back the same. The seed is printed, and given as an argument it repeats a failure.
 */
#include "fixture.h"

#include "common/record/control.h"
#include "common/record/outcome.h"
#include "common/record/turn_record.h"

#define ROUNDS 2000

static uint64_t random_state;

static uint32_t rnd(uint32_t below)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (uint32_t)((random_state >> 16) % below);
}

static bool coin(void)
{
    return rnd(2) == 0;
}

static void random_word(char *out, size_t max, const char *alphabet)
{
    size_t n = 1 + rnd((uint32_t)max);
    for (size_t i = 0; i < n; i++) {
        out[i] = alphabet[rnd((uint32_t)strlen(alphabet))];
    }
    out[n] = '\0';
}

#define LOWER "abcdefghijklmnopqrstuvwxyz0123456789"
#define HEX "0123456789abcdef"

static struct plain_id random_id(void)
{
    struct plain_id id;
    random_word(id.s, ID_MAX, LOWER "._-");
    return id;
}

static struct service_id random_service(void)
{
    struct service_id id;
    random_word(id.s, SERVICE_MAX, LOWER);
    return id;
}

static void hex_word(char *out, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        out[i] = HEX[rnd(16)];
    }
    out[n] = '\0';
}

static struct wall_ms random_time(void)
{
    return (struct wall_ms){1 + (int64_t)rnd(2000000000) * 1000 + rnd(1000)};
}

/* Text with everything that needs care in JSON: quotes, control characters, UTF-8 of each length.
 */
static char *random_text(size_t max)
{
    static const char *const parts[] = {"a",
                                        "\"",
                                        "\\",
                                        "\n",
                                        "\t",
                                        "\x01",
                                        "\x1f",
                                        "/",
                                        "\x7f",
                                        "\xc3\xa4",
                                        "\xe2\x82\xac",
                                        "\xf0\x9f\x98\x80",
                                        "\xe2\x80\xa8",
                                        "{",
                                        "0",
                                        " "};
    struct buf out = BUF_INIT;
    size_t n = 1 + rnd((uint32_t)max / 4);
    for (size_t i = 0; i < n; i++) {
        buf_add_text(&out, parts[rnd(COUNT_OF(parts))]);
    }
    char *text = buf_take(&out, NULL);
    assert_non_null(text);
    return text;
}

static char *random_result(size_t *ret_len)
{
    static const char *const results[] = {
        "{}", "{\"verdict\":\"approve\"}",
        "{ \"verdict\" : \"changes\", \"data\":{\"a\":[1,2,{\"b\":null}]} }",
        "{\"summary\":\"\\u00e4\\n\\\"\"}"};
    char *text = strdup(results[rnd(COUNT_OF(results))]);
    assert_non_null(text);
    *ret_len = strlen(text);
    return text;
}

static void random_identity(struct turn_record *r)
{
    hex_word(r->id.s, 32);
    r->origin = random_id();
    r->service = random_service();
    r->role = (enum role)rnd(ROLE_COUNT);
    random_word(r->task_id.s, ID_MAX, LOWER "ABC/#:._-");
    r->task_rev = (int32_t)rnd(INT32_MAX);
    if (coin()) {
        r->run_id = random_id();
        r->epoch = (int32_t)rnd(100);
    }
    r->intent = random_id();
    random_bytes(r->digest.b, DIGEST_LEN);
    random_bytes(r->content.b, DIGEST_LEN);
    r->created_at = random_time();
}

static void random_attempts(struct turn_record *r)
{
    size_t n = rnd(5) == 0 ? 64 + rnd(5) : rnd(6); /* also more than are kept */
    for (size_t i = 0; i < n; i++) {
        struct attempt *a = turn_record_add_attempt(r);
        assert_non_null(a);
        r->attempt += 1 + (int)rnd(3);
        a->no = r->attempt;
        a->service = random_service();
        a->worker = coin() ? random_id() : plain_id_of("");
        a->profile = coin() ? random_id() : plain_id_of("");
        bool last = i + 1 == n;
        a->state = last && turn_state_open(r->state) && coin() ? ATTEMPT_running : ATTEMPT_failed;
        a->has_class = coin();
        a->class = a->has_class ? (enum failure)rnd(FAILURE_COUNT) : (enum failure)0;
        a->started_at = coin() ? random_time() : (struct wall_ms){0};
        a->ended_at = coin() ? random_time() : (struct wall_ms){0};
        a->note = coin() ? random_text(100) : NULL;
        a->late = coin();
        a->probe = coin();
    }
}

static void random_open(struct turn_record *r)
{
    r->handoff = random_text(400);
    r->handoff_len = strlen(r->handoff);
    if (coin()) {
        r->signature = malloc(PROOF_TEXT_LEN + 1);
        assert_non_null(r->signature);
        memcpy(r->signature, "1 ", 2);
        hex_word(r->signature + 2, 16);
        r->signature[18] = ' ';
        hex_word(r->signature + 19, 128);
    }
    size_t n = rnd(4);
    r->passes = n == 0 ? NULL : calloc(n, sizeof(r->passes[0]));
    for (; r->n_passes < n; r->n_passes++) {
        r->passes[r->n_passes] = random_text(200);
    }
    if (coin()) {
        r->traceparent = strdup("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01");
    }
}

static void random_record(struct turn_record *r)
{
    turn_record_init(r);
    random_identity(r);
    r->state = (enum turn_state)rnd(TURN_STATE_COUNT);
    random_attempts(r);
    r->failures = (int)rnd(7);
    r->losses = (int)rnd(4);
    r->replays = (int)rnd(4);
    r->since = (int)rnd(4);
    r->probes = (int)rnd(3);
    r->cost_before = rnd(2) == 0 ? 0 : (int64_t)rnd(1000000);
    for (size_t n = rnd(TURN_TRIED_MAX + 1); r->n_tried < n; r->n_tried++) {
        r->tried[r->n_tried] = random_id();
    }
    r->not_before = coin() ? random_time() : (struct wall_ms){0};
    r->delay_ms = coin() ? (int64_t)rnd(UINT32_MAX) * 1000 : 0;
    r->wait = coin();
    r->updated_at = random_time();
    if (turn_state_open(r->state)) {
        random_open(r);
    } else {
        r->ended_at = random_time();
    }
    if (r->state == TURN_running) {
        r->lease_worker = random_id();
        hex_word(r->lease_boot.s, 32);
    } else if (r->state == TURN_parked) {
        r->code = coin() ? BATON_E_attempts_exhausted : BATON_E_role_not_served;
    } else if (r->state == TURN_delegated) {
        r->to_service = random_service();
        r->to_attempt = (int)rnd(60000);
    } else if (r->state == TURN_completed) {
        r->result = random_result(&r->result_len);
    } else if (r->state == TURN_cancelled) {
        r->cancel_by = random_id();
        r->cancel_reason = coin() ? random_text(100) : NULL;
    }
}

static void same_text(const char *a, const char *b)
{
    assert_true((a == NULL) == (b == NULL));
    if (a != NULL) {
        assert_string_equal(a, b);
    }
}

static void same_record(const struct turn_record *a, const struct turn_record *b)
{
#define SAME(member) assert_memory_equal(&a->member, &b->member, sizeof(a->member))
#define SAME_TEXT(member) assert_string_equal(a->member.s, b->member.s)
    SAME_TEXT(id);
    SAME_TEXT(origin);
    SAME_TEXT(service);
    SAME(role);
    SAME_TEXT(task_id);
    SAME(task_rev);
    SAME_TEXT(run_id);
    SAME(epoch);
    SAME_TEXT(intent);
    SAME(digest);
    SAME(content);
    SAME(created_at);
    SAME(state);
    SAME(attempt);
    SAME(failures);
    SAME(losses);
    SAME(replays);
    SAME(since);
    SAME(probes);
    SAME(n_tried);
    SAME(not_before);
    SAME(delay_ms);
    SAME(cost_before);
    SAME_TEXT(lease_worker);
    SAME_TEXT(lease_boot);
    SAME(n_attempts);
    SAME(code);
    SAME_TEXT(to_service);
    SAME(to_attempt);
    SAME_TEXT(cancel_by);
    SAME(wait);
    SAME(updated_at);
    SAME(ended_at);
    SAME(result_len);
    SAME(handoff_len);
    SAME(n_passes);
    same_text(a->result, b->result);
    same_text(a->cancel_reason, b->cancel_reason);
    same_text(a->handoff, b->handoff);
    same_text(a->signature, b->signature);
    same_text(a->traceparent, b->traceparent);
    for (size_t i = 0; i < a->n_tried; i++) {
        SAME_TEXT(tried[i]);
    }
    for (size_t i = 0; i < a->n_passes; i++) {
        same_text(a->passes[i], b->passes[i]);
    }
    for (size_t i = 0; i < a->n_attempts; i++) {
        SAME(attempts[i].no);
        SAME_TEXT(attempts[i].service);
        SAME_TEXT(attempts[i].worker);
        SAME_TEXT(attempts[i].profile);
        SAME(attempts[i].state);
        SAME(attempts[i].has_class);
        SAME(attempts[i].class);
        SAME(attempts[i].started_at);
        SAME(attempts[i].ended_at);
        SAME(attempts[i].late);
        SAME(attempts[i].probe);
        same_text(a->attempts[i].note, b->attempts[i].note);
    }
#undef SAME
#undef SAME_TEXT
}

static void turn_records_come_back(void **state)
{
    (void)state;
    for (int i = 0; i < ROUNDS; i++) {
        struct turn_record r;
        struct turn_record copy;
        struct turn_record back;
        struct buf value = BUF_INIT;
        struct baton_error err;
        random_record(&r);
        assert_int_equal(turn_record_copy(&r, &copy), BATON_OK);
        same_record(&r, &copy);
        turn_record_encode(&copy, &value);
        assert_true(buf_ok(&value));
        baton_code rc = turn_record_parse(value.data, value.len, &back, &err);
        if (rc != BATON_OK) {
            fail_msg("%s\n%s", err.text, value.data);
        }
        same_record(&r, &back);
        turn_record_done(&back);
        turn_record_done(&copy);
        turn_record_done(&r);
        buf_done(&value);
    }
}

/* Whatever an executor or operator wrote, the owner can read its own record again. */
static void foreign_text_never_makes_a_record_unreadable(void **state)
{
    (void)state;
    static const char *const texts[] = {"\xff\xfe bytes", "\xc3", "\xed\xa0\x80", "a\nb\tc\x1b[2J",
                                        ""};
    char *huge = malloc(10001);
    assert_non_null(huge);
    for (size_t i = 0; i <= COUNT_OF(texts); i++) {
        struct turn_record r;
        struct turn_record back;
        struct buf value = BUF_INIT;
        struct baton_error err = {0};
        turn_record_init(&r);
        random_identity(&r);
        r.state = TURN_cancelled;
        r.attempt = 1;
        r.updated_at = r.ended_at = random_time();
        r.cancel_by = plain_id_of("alice");
        struct attempt *a = turn_record_add_attempt(&r);
        a->no = 1;
        a->service = service_id_of("claude");
        a->state = ATTEMPT_failed;
        memset(huge, 0xF0, 10000); /* each byte becomes a replacement character */
        huge[10000] = '\0';
        a->note = strdup(i < COUNT_OF(texts) ? texts[i] : huge);
        r.cancel_reason = strdup(i < COUNT_OF(texts) ? texts[i] : huge);
        turn_record_encode(&r, &value);
        baton_code rc = turn_record_parse(value.data, value.len, &back, &err);
        if (rc != BATON_OK) {
            fail_msg("%s", err.text);
        }
        turn_record_done(&back);
        turn_record_done(&r);
        buf_done(&value);
    }
    free(huge);
}

static void the_largest_turn_fits_into_a_record(void **state)
{
    (void)state;
    struct turn_record r;
    struct turn_record back;
    struct buf value = BUF_INIT;
    struct baton_error err;
    turn_record_init(&r);
    random_identity(&r);
    r.state = TURN_queued;
    r.updated_at = random_time();
    r.handoff = malloc(TURN_BYTES_MAX + 1);
    assert_non_null(r.handoff);
    memset(r.handoff, '"', TURN_BYTES_MAX); /* each doubles in JSON */
    r.handoff[TURN_BYTES_MAX] = '\0';
    r.handoff_len = TURN_BYTES_MAX;
    for (int i = 0; i < TURN_ATTEMPTS_MAX; i++) {
        struct attempt *a = turn_record_add_attempt(&r);
        memset(a->service.s, 's', SERVICE_MAX);
        memset(a->worker.s, 'w', ID_MAX);
        memset(a->profile.s, 'p', ID_MAX);
        a->no = r.attempt = i + 1;
        a->state = ATTEMPT_failed;
        a->note = malloc(2001);
        memset(a->note, '\x01', 2000);
        a->note[2000] = '\0';
    }
    turn_record_encode(&r, &value);
    assert_true(value.len <= 1024 * 1024);
    baton_code rc = turn_record_parse(value.data, value.len, &back, &err);
    if (rc != BATON_OK) {
        fail_msg("%s", err.text);
    }
    assert_int_equal(back.handoff_len, TURN_BYTES_MAX);
    turn_record_done(&back);
    turn_record_done(&r);
    buf_done(&value);
}

static void attempts_are_found_and_the_oldest_go(void **state)
{
    (void)state;
    struct turn_record r;
    turn_record_init(&r);
    for (int i = 1; i <= TURN_ATTEMPTS_MAX + 3; i++) {
        turn_record_add_attempt(&r)->no = i;
    }
    assert_int_equal(r.n_attempts, TURN_ATTEMPTS_MAX);
    assert_null(turn_record_attempt(&r, 3));
    assert_int_equal(turn_record_attempt(&r, 4)->no, 4);
    assert_ptr_equal(turn_record_attempt(&r, TURN_ATTEMPTS_MAX + 3), &r.attempts[r.n_attempts - 1]);
    turn_record_done(&r);
}

static void random_outcome(struct outcome *o)
{
    struct turn_record r;
    random_record(&r);
    outcome_of(&r, (enum outcome_event)rnd(OUTCOME_run_ended), "claude", random_time(), o);
    if (o->result != NULL) {
        o->result = strdup(r.result);
    }
    if (rnd(4) == 0) {
        o->event = OUTCOME_answer;
        o->answers_id = random_id();
        snprintf(o->answers_kind, sizeof(o->answers_kind), "replay");
        o->code = coin() ? BATON_E_not_parked : BATON_OK;
    }
    turn_record_done(&r);
}

static void outcomes_come_back(void **state)
{
    (void)state;
    for (int i = 0; i < ROUNDS; i++) {
        struct outcome o;
        struct outcome *back = NULL;
        struct buf value = BUF_INIT;
        struct buf again = BUF_INIT;
        struct baton_error err;
        random_outcome(&o);
        outcome_encode(&o, &value);
        baton_code rc = outcome_parse(value.data, value.len, &back, &err);
        if (rc != BATON_OK) {
            fail_msg("%s\n%s", err.text, value.data);
        }
        assert_int_equal(back->event, o.event);
        assert_int_equal(back->role, o.role);
        assert_int_equal(back->code, o.code);
        assert_int_equal(back->attempt, o.attempt);
        assert_int_equal(back->state, o.state);
        assert_memory_equal(&back->content, &o.content, sizeof(o.content));
        assert_string_equal(back->born.s, o.born.s);
        assert_string_equal(back->to.s, o.to.s);
        assert_string_equal(back->answers_id.s, o.answers_id.s);
        same_text(back->result, o.result);
        outcome_encode(back, &again);
        assert_int_equal(value.len, again.len);
        assert_memory_equal(value.data, again.data, value.len);
        free(o.result);
        outcome_free(back);
        buf_done(&value);
        buf_done(&again);
    }
}

static void control_records_come_back(void **state)
{
    (void)state;
    for (int i = 0; i < ROUNDS; i++) {
        struct control c;
        struct control *back = NULL;
        struct buf value = BUF_INIT;
        struct buf again = BUF_INIT;
        struct baton_error err;
        memset(&c, 0, sizeof(c));
        c.kind = (enum control_kind)rnd(CONTROL_COUNT);
        c.id = random_id();
        hex_word(c.turn_id.s, 32);
        c.at = random_time();
        c.reason = coin() ? random_text(100) : NULL;
        c.attempt = 1 + (int)rnd(1000);
        c.to = coin() ? random_service() : service_id_of("");
        c.again = coin();
        c.profile = coin() ? random_id() : plain_id_of("");
        hex_word(c.boot.s, 32);
        c.seq = (int64_t)rnd(UINT32_MAX) * 4096;
        c.failed = coin();
        c.class = (enum failure)rnd(FAILURE_COUNT);
        c.result = !c.failed || coin() ? random_result(&c.result_len) : NULL;
        control_encode(&c, &value);
        baton_code rc = control_parse(value.data, value.len, &back, &err);
        if (rc != BATON_OK) {
            fail_msg("%s\n%s", err.text, value.data);
        }
        assert_int_equal(back->kind, c.kind);
        assert_string_equal(back->id.s, c.id.s);
        assert_true(back->at.v == c.at.v);
        if (c.kind == CONTROL_cancel) {
            same_text(back->reason, c.reason);
            assert_string_equal(back->turn_id.s, c.turn_id.s);
        } else if (c.kind == CONTROL_replay) {
            assert_int_equal(back->attempt, c.attempt);
            assert_string_equal(back->to.s, c.to.s);
            assert_int_equal(back->again, c.again);
        } else if (c.kind == CONTROL_renew) {
            assert_true(back->seq == c.seq);
            assert_string_equal(back->boot.s, c.boot.s);
        } else if (c.kind == CONTROL_clear) {
            assert_string_equal(back->profile.s, c.profile.s);
            same_text(back->reason, c.reason);
        } else if (c.kind == CONTROL_report) {
            assert_int_equal(back->failed, c.failed);
            same_text(back->result, c.result);
        }
        control_encode(back, &again);
        assert_int_equal(value.len, again.len);
        assert_memory_equal(value.data, again.data, value.len);
        free(c.reason);
        free(c.result);
        control_free(back);
        buf_done(&value);
        buf_done(&again);
    }
}

static void turns_come_back(void **state)
{
    (void)state;
    for (int i = 0; i < ROUNDS; i++) {
        struct turn_draft d = example_draft();
        struct turn *back = NULL;
        struct baton_error err;
        struct plain_id origin = random_id();
        struct service_id service = random_service();
        struct task_id task;
        char key[KEY_MAX + 1];
        char payload[64];
        random_word(task.s, ID_MAX, LOWER "ABC/#:._-");
        random_word(key, KEY_MAX, LOWER "ABC/#:._-");
        random_bytes(payload, sizeof(payload));
        char *summary = random_text(1000);
        d.origin = origin.s;
        d.service = service.s;
        d.task_id = task.s;
        d.key = key;
        d.summary = summary;
        d.role = (enum role)rnd(ROLE_COUNT);
        d.payload = payload;
        d.payload_len = rnd(sizeof(payload));
        d.not_before = coin() ? random_time() : (struct wall_ms){0};
        d.deadline = coin() ? random_time() : (struct wall_ms){0};
        if (summary[strspn(summary, " \n\t")] != '\0') {
            struct turn *turn = make_turn(&d);
            assert_int_equal(turn_parse(FLEET, turn->bytes, turn->len, &back, &err), BATON_OK);
            assert_string_equal(back->summary, summary);
            assert_string_equal(back->key, key);
            assert_string_equal(back->task_id.s, task.s);
            assert_string_equal(back->origin.s, origin.s);
            assert_int_equal(back->role, d.role);
            assert_true(back->not_before.v == d.not_before.v && back->deadline.v == d.deadline.v);
            assert_string_equal(back->id.s, turn->id.s);
            assert_memory_equal(back->content.b, turn->content.b, DIGEST_LEN);
            turn_free(back);
            turn_free(turn);
        }
        free(summary);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(turns_come_back),
        cmocka_unit_test(turn_records_come_back),
        cmocka_unit_test(outcomes_come_back),
        cmocka_unit_test(control_records_come_back),
        cmocka_unit_test(foreign_text_never_makes_a_record_unreadable),
        cmocka_unit_test(the_largest_turn_fits_into_a_record),
        cmocka_unit_test(attempts_are_found_and_the_oldest_go),
    };
    random_bytes(&random_state, sizeof(random_state));
    random_state = argc > 1 ? strtoull(argv[1], NULL, 10) : random_state | 1;
    printf("seed %llu\n", (unsigned long long)random_state);
    return cmocka_run_group_tests_name("what is written can be read", tests, NULL, NULL);
}
