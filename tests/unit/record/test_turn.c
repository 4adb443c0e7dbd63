/* The turn: what its id and its content depend on, and what a draft may not say. */
#include "fixture.h"

static void expect_draft(const struct turn_draft *draft, baton_code code)
{
    struct turn *turn = NULL;
    struct baton_error err = {0};
    baton_code rc = turn_encode(draft, &turn, &err);
    if (rc != code) {
        fail_msg("%s (%s) instead of %s", baton_code_word(rc), err.text, baton_code_word(code));
    }
    turn_free(turn);
}

static struct turn *parse_ok(const char *text)
{
    struct turn *turn = NULL;
    struct baton_error err;
    if (turn_parse(FLEET, text, strlen(text), &turn, &err) != BATON_OK) {
        fail_msg("%s", err.text);
    }
    return turn;
}

/* Each member of the identity changes the id; the role is one of them. */
static void turn_id_commits_to_the_whole_identity(void **state)
{
    (void)state;
    struct turn_draft drafts[11];
    struct turn *turns[COUNT_OF(drafts)];
    for (size_t i = 0; i < COUNT_OF(drafts); i++) {
        drafts[i] = example_draft();
    }
    drafts[1].fleet = "staging";
    drafts[2].origin = "alice";
    drafts[3].service = "codex";
    drafts[4].role = ROLE_owner;
    drafts[5].task_id = "t-42";
    drafts[6].task_rev = 8;
    drafts[7].run_id = "r-10";
    drafts[8].epoch = 2;
    drafts[9].intent = "rework";
    drafts[10].key = "r-9.1.3";
    for (size_t i = 0; i < COUNT_OF(drafts); i++) {
        turns[i] = make_turn(&drafts[i]);
        for (size_t k = 0; k < i; k++) {
            assert_string_not_equal(turns[i]->id.s, turns[k]->id.s);
        }
    }
    for (size_t i = 0; i < COUNT_OF(drafts); i++) {
        turn_free(turns[i]);
    }
}

/* Lengths stand in front, so moving a character from one member to the next is another id. */
static void turn_id_members_do_not_run_together(void **state)
{
    (void)state;
    struct turn_draft a = example_draft();
    struct turn_draft b = example_draft();
    a.task_id = "ab";
    a.run_id = "c";
    b.task_id = "a";
    b.run_id = "bc";
    a.task_rev = b.task_rev = 1;
    struct turn *x = make_turn(&a);
    struct turn *y = make_turn(&b);
    assert_string_not_equal(x->id.s, y->id.s);
    turn_free(x);
    turn_free(y);
}

/* X9: same id, other content is a conflict; a repeat after a doubt writes new times and is the
 * same. */
static void content_ignores_times_and_sees_the_rest(void **state)
{
    (void)state;
    struct turn_draft d = example_draft();
    struct turn *first = make_turn(&d);
    d.created_at.v += 60000;
    struct turn *repeat = make_turn(&d);
    assert_string_equal(first->id.s, repeat->id.s);
    assert_memory_equal(first->content.b, repeat->content.b, DIGEST_LEN);
    assert_memory_not_equal(first->digest.b, repeat->digest.b, DIGEST_LEN);
    struct turn_draft others[7];
    for (size_t i = 0; i < COUNT_OF(others); i++) {
        others[i] = example_draft();
    }
    others[0].summary = "Review other.diff";
    others[1].payload = "hellp";
    others[2].data = "{\"a\":1}";
    others[2].data_len = 7;
    others[3].parent = "r-9";
    others[4].not_before.v = EXAMPLE_MS + 1;
    others[5].deadline.v = EXAMPLE_MS + 1;
    others[6].place = "/srv";
    for (size_t i = 0; i < COUNT_OF(others); i++) {
        struct turn *other = make_turn(&others[i]);
        assert_string_equal(first->id.s, other->id.s);
        assert_memory_not_equal(first->content.b, other->content.b, DIGEST_LEN);
        turn_free(other);
    }
    turn_free(first);
    turn_free(repeat);
}

static void content_holds_ext_and_raw_bytes(void **state)
{
    (void)state;
    struct turn_draft d = example_draft();
    struct turn *plain = make_turn(&d);
    char text[1024];
    snprintf(text, sizeof(text), "%.*s,\"ext\":{}}", (int)plain->len - 1, plain->bytes);
    struct turn *with_ext = parse_ok(text);
    assert_memory_not_equal(plain->content.b, with_ext->content.b, DIGEST_LEN);
    turn_free(with_ext);
    turn_free(plain);
}

static void turn_keeps_its_bytes(void **state)
{
    (void)state;
    struct turn_draft d = example_draft();
    d.data = "{ \"n\" :  1 }";
    d.data_len = strlen(d.data);
    struct turn *turn = make_turn(&d);
    struct turn *again = NULL;
    struct baton_error err;
    assert_int_equal(turn_parse(FLEET, turn->bytes, turn->len, &again, &err), BATON_OK);
    assert_int_equal(again->len, turn->len);
    assert_memory_equal(again->bytes, turn->bytes, turn->len);
    assert_int_equal(again->data.len, d.data_len);
    assert_memory_equal(again->data.at, d.data, d.data_len);
    assert_true(again->data.at > again->bytes && again->data.at < again->bytes + again->len);
    assert_int_equal(again->role, ROLE_reviewer);
    assert_true(again->expires_at.v == EXAMPLE_MS + TURN_LIFE_MAX_MS);
    turn_free(again);
    turn_free(turn);
}

static void payload_of_any_bytes(void **state)
{
    (void)state;
    static const char nul[] = "a\0b";
    static const struct {
        const char *bytes;
        size_t len;
        const char *member;
    } rows[] = {
        {"text", 4, "{\"media_type\":\"text/plain\",\"text\":\"text\"}"},
        {NULL, 0, "{\"media_type\":\"text/plain\",\"text\":\"\"}"},
        {nul, 3, "{\"media_type\":\"application/octet-stream\",\"base64\":\"YQBi\"}"},
        {"\xff", 1, "{\"media_type\":\"application/octet-stream\",\"base64\":\"/w==\"}"},
        {"\xff\xfe", 2, "{\"media_type\":\"application/octet-stream\",\"base64\":\"//4=\"}"},
        {"\"\\\n", 3, "{\"media_type\":\"text/plain\",\"text\":\"\\\"\\\\\\n\"}"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct turn_draft d = example_draft();
        d.payload = rows[i].bytes;
        d.payload_len = rows[i].len;
        struct turn *turn = make_turn(&d);
        assert_int_equal(turn->payload.len, strlen(rows[i].member));
        assert_memory_equal(turn->payload.at, rows[i].member, turn->payload.len);
        turn_free(turn);
    }
}

static void base64_round_trip(void **state)
{
    (void)state;
    uint8_t bytes[64];
    for (size_t len = 0; len <= sizeof(bytes); len++) {
        struct buf text = BUF_INIT;
        struct buf back = BUF_INIT;
        random_bytes(bytes, sizeof(bytes));
        base64_encode(&text, bytes, len);
        assert_true(base64_decode(&back, text.data, text.len));
        assert_int_equal(back.len, len);
        assert_true(len == 0 || memcmp(back.data, bytes, len) == 0);
        buf_done(&text);
        buf_done(&back);
    }
}

static void drafts_that_are_no_turn(void **state)
{
    (void)state;
    struct turn_draft good = example_draft();
    struct turn_draft d;
    expect_draft(&good, BATON_OK);
#define BAD(member, value, code)                                                                   \
    d = good;                                                                                      \
    d.member = value;                                                                              \
    expect_draft(&d, code)
    BAD(service, "Claude", BATON_E_invalid_request);
    BAD(service, "coordinator", BATON_E_invalid_request);
    BAD(task_id, "a b", BATON_E_invalid_request);
    BAD(task_id, "", BATON_E_invalid_request);
    BAD(task_id, NULL, BATON_E_invalid_request);
    BAD(task_rev, -1, BATON_E_invalid_request);
    BAD(intent, "Review", BATON_E_invalid_request);
    BAD(key, "", BATON_E_invalid_request);
    BAD(summary, "", BATON_E_invalid_request);
    BAD(summary, "  ", BATON_E_invalid_request);
    BAD(summary, "a\xff", BATON_E_invalid_request);
    BAD(place, "/a\nb", BATON_E_invalid_request);
    BAD(media_type, "text", BATON_E_invalid_request);
    BAD(run_id, "", BATON_E_invalid_request); /* with an epoch */
    BAD(role, ROLE_COUNT, BATON_E_invalid_request);
    BAD(created_at.v, 0, BATON_E_invalid_request);
    BAD(expires_at.v, EXAMPLE_MS + TURN_LIFE_MAX_MS + 1, BATON_E_invalid_request);
#undef BAD
}

/* Raw data is checked alone: it cannot close its object and write further fields of the turn. */
static void draft_data_cannot_write_other_fields(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "{},\"place\":\"/etc\",\"x\":{}", "{}}", "[]", "1", "", "{\"a\":1.5}"};
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        struct turn_draft d = example_draft();
        d.data = bad[i];
        d.data_len = strlen(bad[i]);
        expect_draft(&d, BATON_E_invalid_request);
    }
}

/* A payload that a request carries becomes the turn's as it stands, by reference, too. */
static void a_written_payload_is_kept_as_it_stands(void **state)
{
    (void)state;
    static const char *const good[] = {
        "{\"media_type\":\"text/plain\", \"text\":\"\\u0061\"}",
        "{\"media_type\":\"a/b\",\"base64\":\"/w==\"}",
        ("{\"media_type\":\"a/b\",\"ref\":\"x\",\"size\":1,\"sha256\":"
         "\"e49971cb84165a932b50f4066edab16fc855f4ddf1b4e49daff933b4c819a917\"}")};
    static const char *const bad[] = {"{\"media_type\":\"a/b\",\"text\":\"x\"},\"place\":\"/etc\"",
                                      "[]", "", "{\"media_type\":\"a/b\"}",
                                      "{\"media_type\":\"a/b\",\"text\":\"x\",\"ref\":\"y\"}"};
    struct turn_draft d = example_draft();
    for (size_t i = 0; i < COUNT_OF(good); i++) {
        d.payload_json = good[i];
        d.payload_json_len = strlen(good[i]);
        struct turn *turn = make_turn(&d);
        assert_int_equal(turn->payload.len, strlen(good[i]));
        assert_memory_equal(turn->payload.at, good[i], strlen(good[i]));
        assert_int_equal(turn->payload_by_reference, i == 2);
        turn_free(turn);
    }
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        d.payload_json = bad[i];
        d.payload_json_len = strlen(bad[i]);
        expect_draft(&d, BATON_E_invalid_request);
    }
}

static void draft_too_large(void **state)
{
    (void)state;
    struct turn_draft d = example_draft();
    char *big = malloc(TURN_BYTES_MAX + 1);
    assert_non_null(big);
    memset(big, 'x', TURN_BYTES_MAX + 1);
    d.payload = big;
    d.payload_len = TURN_BYTES_MAX + 1;
    expect_draft(&d, BATON_E_record_too_large);
    d.payload_len = TURN_BYTES_MAX - 100;
    expect_draft(&d, BATON_E_record_too_large);
    d.payload_len = TURN_BYTES_MAX - 500;
    expect_draft(&d, BATON_OK);
    free(big);
}

/* Each size around the limit: taken whole or refused, never cut. */
static void value_of_exactly_the_limit(void **state)
{
    (void)state;
    struct turn_draft d = example_draft();
    char *big = malloc(TURN_BYTES_MAX);
    struct turn *turn = NULL;
    struct baton_error err;
    assert_non_null(big);
    memset(big, 'x', TURN_BYTES_MAX);
    d.payload = big;
    for (size_t around = 0; around < 4; around++) {
        d.payload_len =
            TURN_BYTES_MAX - 385 - 1 + around; /* 385: the example without its payload */
        baton_code rc = turn_encode(&d, &turn, &err);
        size_t len = 385 + d.payload_len;
        assert_int_equal(rc, len <= TURN_BYTES_MAX ? BATON_OK : BATON_E_record_too_large);
        if (rc == BATON_OK) {
            assert_int_equal(turn->len, len);
            turn_free(turn);
        }
    }
    free(big);
}

static void empty_and_null_values(void **state)
{
    (void)state;
    struct turn *turn = NULL;
    struct baton_error err;
    assert_int_equal(turn_parse(FLEET, NULL, 0, &turn, &err), BATON_E_invalid_envelope);
    assert_int_equal(turn_parse(FLEET, "", 0, &turn, &err), BATON_E_invalid_envelope);
    assert_null(turn);
}

/* S6: what an origin leaves of the role's verdicts stands in `ext`; what is no such list narrows nothing. */
static void s6_verdicts_that_are_left(void **state)
{
    static const struct {
        const char *ext;
        verdict_set verdicts; /* 0: all */
    } rows[] = {
        {"{\"verdicts\":[\"approve\",\"changes\"]}",
         VERDICT_BIT(VERDICT_approve) | VERDICT_BIT(VERDICT_changes)},
        {"{\"x\":1,\"verdicts\":[\"escalate\"]}", VERDICT_BIT(VERDICT_escalate)},
        {"{\"verdicts\":[]}", 0},
        {"{\"verdicts\":\"approve\"}", 0},
        {"{\"verdicts\":[\"approve\",\"done\"]}", 0}, /* never more than the role's */
        {"{\"verdicts\":[\"approve\",1]}", 0},
        {"{\"verdict\":[\"approve\"]}", 0},
    };
    struct turn_draft draft = example_draft();
    struct turn *plain = make_turn(&draft);
    (void)state;
    assert_int_equal(plain->verdicts, verdicts_of(ROLE_reviewer));
    draft.verdicts = verdicts_of(ROLE_reviewer);
    struct turn *whole = make_turn(&draft);
    assert_string_equal(whole->bytes,
                        plain->bytes); /* what is not narrowed has the bytes of before */
    turn_free(whole);
    draft.verdicts = rows[0].verdicts;
    struct turn *narrow = make_turn(&draft);
    assert_int_equal(narrow->verdicts, rows[0].verdicts);
    assert_non_null(strstr(narrow->bytes, rows[0].ext));
    assert_string_equal(narrow->id.s, plain->id.s);
    assert_memory_not_equal(narrow->content.b, plain->content.b, DIGEST_LEN);
    turn_free(narrow);
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        char text[4096];
        snprintf(text, sizeof(text), "%.*s,\"ext\":%s}", (int)plain->len - 1, plain->bytes,
                 rows[i].ext);
        struct turn *turn = parse_ok(text);
        assert_int_equal(turn->verdicts,
                         rows[i].verdicts != 0 ? rows[i].verdicts : verdicts_of(ROLE_reviewer));
        turn_free(turn);
    }
    turn_free(plain);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(turn_id_commits_to_the_whole_identity),
        cmocka_unit_test(turn_id_members_do_not_run_together),
        cmocka_unit_test(content_ignores_times_and_sees_the_rest),
        cmocka_unit_test(s6_verdicts_that_are_left),
        cmocka_unit_test(content_holds_ext_and_raw_bytes),
        cmocka_unit_test(turn_keeps_its_bytes),
        cmocka_unit_test(payload_of_any_bytes),
        cmocka_unit_test(base64_round_trip),
        cmocka_unit_test(drafts_that_are_no_turn),
        cmocka_unit_test(draft_data_cannot_write_other_fields),
        cmocka_unit_test(a_written_payload_is_kept_as_it_stands),
        cmocka_unit_test(draft_too_large),
        cmocka_unit_test(value_of_exactly_the_limit),
        cmocka_unit_test(empty_and_null_values),
    };
    return cmocka_run_group_tests_name("the turn", tests, NULL, NULL);
}
