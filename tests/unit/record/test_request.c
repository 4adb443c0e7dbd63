/*
 * Requests (RECORD.md section 7): what is written can be read, each member is due where it is due and
 * nowhere else, and the run id of a start is the hash of who asks for what.
 */
#include "fixture.h"

#include "common/base/limits.h"
#include "common/record/request.h"

#define HEAD "{\"version\":1,\"kind\":\"%s\",\"id\":\"q-1\",\"run_id\":\"r-9\",\"request_no\":%d,"
#define AT "\"at\":\"2026-11-29T15:00:00.000Z\",\"body\":"

/* The members of the body of each kind, in the order in which they are written. */
static const struct kind_row {
    enum request_kind kind;
    const char *must[8];
    const char *may[4];
} kind_rows[] = {
    {REQUEST_start,
     {"\"workflow\":\"paired-review\"", "\"task_id\":\"T-41\"", "\"task_rev\":7", "\"key\":\"K#1\"",
      "\"summary\":\"Fix it\"", "\"data\":{\"a\":\"b\",\"c\":\"\"}"},
     {"\"payload\":{\"media_type\":\"text/plain\",\"text\":\"hello\"}",
      "\"deadline\":\"2026-12-06T14:20:43.120Z\"", "\"asker\":\"confirmed\""}},
    {REQUEST_handoff,
     {"\"from\":\"owner\"", "\"target\":\"review_2.lane-1\"", "\"summary\":\"Look\"",
      "\"data\":{}"},
     {"\"asker\":\"agent\""}},
    {REQUEST_touch, {NULL}, {"\"reason\":\"why\""}},
    {REQUEST_cancel, {NULL}, {"\"reason\":\"why\""}},
    {REQUEST_reopen, {"\"reason\":\"why\""}, {NULL}},
    {REQUEST_answer, {NULL}, {"\"reason\":\"why\""}},
};

/* All members of a kind, but the one with this number; -1: all. With an extra one in front. */
static void write_value(struct buf *out, const struct kind_row *row, bool may, int without,
                        const char *extra)
{
    int n = 0;
    bool first = true;
    buf_printf(out, HEAD AT "{", request_word(row->kind), row->kind == REQUEST_start ? 0 : 2);
    if (extra != NULL) {
        buf_add_text(out, extra);
        first = false;
    }
    for (size_t i = 0; row->must[i] != NULL; i++, n++) {
        if (n != without) {
            buf_printf(out, "%s%s", first ? "" : ",", row->must[i]);
            first = false;
        }
    }
    for (size_t i = 0; may && row->may[i] != NULL; i++) {
        buf_printf(out, "%s%s", first ? "" : ",", row->may[i]);
        first = false;
    }
    buf_add_text(out, "}}");
    assert_true(buf_ok(out));
}

static void expect_text(const char *text, size_t len, baton_code code)
{
    struct request *request = NULL;
    struct baton_error err = {BATON_OK, ""};
    baton_code rc = request_parse(text, len, &request, &err);
    if (rc != code) {
        fail_msg("%s (%s) instead of %s\n%.300s", baton_code_word(rc), err.text,
                 baton_code_word(code), text);
    }
    if (code == BATON_OK) {
        struct buf again = BUF_INIT;
        request_encode(request, &again);
        assert_int_equal(again.len, len);
        assert_memory_equal(again.data, text, len);
        buf_done(&again);
    } else {
        assert_null(request);
        assert_true(err.text[0] != '\0');
    }
    request_free(request);
}

static void expect(const struct kind_row *row, bool may, int without, const char *extra,
                   baton_code code)
{
    struct buf value = BUF_INIT;
    write_value(&value, row, may, without, extra);
    expect_text(value.data, value.len, code);
    buf_done(&value);
}

static void each_kind_holds_exactly_what_is_its_own(void **state)
{
    (void)state;
    assert_int_equal(COUNT_OF(kind_rows), REQUEST_COUNT);
    for (size_t k = 0; k < COUNT_OF(kind_rows); k++) {
        const struct kind_row *row = &kind_rows[k];
        assert_int_equal(row->kind, k);
        expect(row, true, -1, NULL, BATON_OK);
        expect(row, false, -1, NULL, BATON_OK);
        for (int i = 0; row->must[i] != NULL; i++) {
            expect(row, true, i, NULL, BATON_E_invalid_envelope);
        }
        expect(row, true, -1, "\"ext\":{}", BATON_E_invalid_envelope);
        /* what other kinds hold */
        for (size_t o = 0; o < COUNT_OF(kind_rows); o++) {
            for (size_t i = 0; kind_rows[o].must[i] != NULL; i++) {
                struct buf own = BUF_INIT;
                write_value(&own, row, true, -1, NULL);
                char name[32];
                snprintf(name, sizeof(name), "%.*s", (int)strcspn(kind_rows[o].must[i], ":") + 1,
                         kind_rows[o].must[i]);
                if (strstr(strstr(own.data, "\"body\""), name) == NULL) {
                    expect(row, true, -1, kind_rows[o].must[i], BATON_E_invalid_envelope);
                }
                buf_done(&own);
            }
        }
    }
}

/* One place of a good value is another text. */
static void expect_changed(enum request_kind kind, const char *from, const char *to,
                           baton_code code)
{
    struct buf value = BUF_INIT;
    struct buf other = BUF_INIT;
    write_value(&value, &kind_rows[kind], true, -1, NULL);
    const char *at = strstr(value.data, from);
    if (at == NULL) {
        fail_msg("%s is not in %s", from, value.data);
    }
    buf_add(&other, value.data, (size_t)(at - value.data));
    buf_add_text(&other, to);
    buf_add_text(&other, at + strlen(from));
    assert_true(buf_ok(&other));
    expect_text(other.data, other.len, code);
    buf_done(&value);
    buf_done(&other);
}

static void envelope_is_closed_and_whole(void **state)
{
    (void)state;
    static const struct {
        const char *from;
        const char *to;
        baton_code code;
    } rows[] = {
        {"\"version\":1,", "", BATON_E_invalid_envelope},
        {"\"version\":1,", "\"version\":2,", BATON_E_schema_unsupported},
        {"\"kind\":\"start\",", "", BATON_E_invalid_envelope},
        {"\"kind\":\"start\"", "\"kind\":\"stop\"", BATON_E_invalid_envelope},
        {"\"kind\":\"start\"", "\"kind\":\"Start\"", BATON_E_invalid_envelope},
        {"\"id\":\"q-1\",", "", BATON_E_invalid_envelope},
        {"\"id\":\"q-1\"", "\"id\":\"\"", BATON_E_invalid_envelope},
        {"\"run_id\":\"r-9\",", "", BATON_E_invalid_envelope},
        {"\"run_id\":\"r-9\"", "\"run_id\":\"\"", BATON_E_invalid_envelope},
        {"\"run_id\":\"r-9\"", "\"run_id\":\"R-9\"", BATON_E_invalid_envelope},
        {"\"request_no\":0,", "", BATON_E_invalid_envelope},
        {"\"request_no\":0", "\"request_no\":1", BATON_E_invalid_envelope},
        {"\"request_no\":0", "\"request_no\":-1", BATON_E_invalid_envelope},
        {"\"at\":\"2026-11-29T15:00:00.000Z\",", "", BATON_E_invalid_envelope},
        {"\"at\":\"2026-11-29T15:00:00.000Z\"", "\"at\":\"2026-11-29T15:00:00Z\"",
         BATON_E_invalid_envelope},
        {"\"body\":{", "\"role\":\"owner\",\"body\":{", BATON_E_invalid_envelope},
        {"\"body\":{", "\"body\":1,\"bodz\":{", BATON_E_invalid_envelope},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        expect_changed(REQUEST_start, rows[i].from, rows[i].to, rows[i].code);
    }
    /* Others count from 1. */
    expect_changed(REQUEST_touch, "\"request_no\":2", "\"request_no\":1", BATON_OK);
    expect_changed(REQUEST_touch, "\"request_no\":2", "\"request_no\":2147483647", BATON_OK);
    expect_changed(REQUEST_touch, "\"request_no\":2", "\"request_no\":2147483648",
                   BATON_E_invalid_envelope);
    expect_changed(REQUEST_touch, "\"request_no\":2", "\"request_no\":0", BATON_E_invalid_envelope);
    expect_text("", 0, BATON_E_invalid_envelope);
    expect_text("[]", 2, BATON_E_invalid_envelope);
}

static void values_of_the_body_have_their_forms(void **state)
{
    (void)state;
    static const struct {
        enum request_kind kind;
        const char *from;
        const char *to;
        baton_code code;
    } rows[] = {
        {REQUEST_start, "\"paired-review\"", "\"Paired\"", BATON_E_invalid_envelope},
        {REQUEST_start, "\"paired-review\"", "\"\"", BATON_E_invalid_envelope},
        {REQUEST_start, "\"T-41\"", "\"T 41\"", BATON_E_invalid_envelope},
        {REQUEST_start, "\"task_rev\":7", "\"task_rev\":2147483647", BATON_OK},
        {REQUEST_start, "\"task_rev\":7", "\"task_rev\":2147483648", BATON_E_invalid_envelope},
        {REQUEST_start, "\"task_rev\":7", "\"task_rev\":\"7\"", BATON_E_invalid_envelope},
        {REQUEST_start, "\"K#1\"", "\"\"", BATON_E_invalid_envelope},
        {REQUEST_start, "\"K#1\"", "\"k 1\"", BATON_E_invalid_envelope},
        {REQUEST_start, "\"Fix it\"", "\" \\n\\t\"", BATON_E_invalid_envelope},
        {REQUEST_start, "\"Fix it\"", "\"\"", BATON_E_invalid_envelope},
        {REQUEST_start, "\"c\":\"\"", "\"c\":1", BATON_E_invalid_envelope},
        {REQUEST_start, "\"c\":\"\"", "\"c\":{}", BATON_E_invalid_envelope},
        {REQUEST_start, "\"c\":\"\"", "\"\":\"\"", BATON_E_invalid_envelope},
        {REQUEST_start, "\"c\":\"\"", "\"a\":\"\"", BATON_E_invalid_envelope},
        {REQUEST_start, "\"text\":\"hello\"", "\"base64\":\"aGVsbG8=\"", BATON_OK},
        {REQUEST_start, "\"text\":\"hello\"", "\"base64\":\"aGVsbG8\"", BATON_E_invalid_envelope},
        {REQUEST_start, "\"text\":\"hello\"", "\"ref\":\"x\"", BATON_E_invalid_envelope},
        {REQUEST_start, "\"text\":\"hello\"", "\"txt\":\"hello\"", BATON_E_invalid_envelope},
        {REQUEST_start, "\"asker\":\"confirmed\"", "\"asker\":\"person\"",
         BATON_E_invalid_envelope},
        {REQUEST_start, "\"asker\":\"confirmed\"", "\"asker\":\"owner_of_key\"",
         BATON_E_invalid_envelope},
        {REQUEST_start, "\"deadline\":\"2026-12-06T14:20:43.120Z\"", "\"deadline\":\"soon\"",
         BATON_E_invalid_envelope},
        {REQUEST_handoff, "\"owner\"", "\"*\"", BATON_E_invalid_envelope},
        {REQUEST_handoff, "\"owner\"", "\"owner.\"", BATON_E_invalid_envelope},
        {REQUEST_handoff, "\"owner\"", "\".owner\"", BATON_E_invalid_envelope},
        {REQUEST_handoff, "\"owner\"", "\"a.b.c\"", BATON_E_invalid_envelope},
        {REQUEST_handoff, "\"owner\"", "\"Owner\"", BATON_E_invalid_envelope},
        {REQUEST_handoff, "\"review_2.lane-1\"", "\"*\"", BATON_OK},
        {REQUEST_handoff, "\"review_2.lane-1\"", "\"*.a\"", BATON_E_invalid_envelope},
        {REQUEST_handoff, "\"review_2.lane-1\"", "\"a b\"", BATON_E_invalid_envelope},
        {REQUEST_reopen, "\"why\"", "\"\"", BATON_E_invalid_envelope},
        {REQUEST_reopen, "\"why\"", "\"  \"", BATON_E_invalid_envelope},
        {REQUEST_cancel, "\"why\"", "7", BATON_E_invalid_envelope},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        expect_changed(rows[i].kind, rows[i].from, rows[i].to, rows[i].code);
    }
}

static char *letters(size_t n, const char *before, const char *behind)
{
    size_t head = strlen(before);
    char *text = malloc(head + n + strlen(behind) + 1);
    assert_non_null(text);
    memcpy(text, before, head);
    memset(text + head, 'a', n);
    memcpy(text + head + n, behind, strlen(behind) + 1);
    return text;
}

static void nothing_is_longer_than_its_limit(void **state)
{
    (void)state;
    static const struct {
        enum request_kind kind;
        const char *from;
        size_t max;
        const char *before;
    } rows[] = {
        {REQUEST_start, "\"q-1\"", ID_MAX, "\""},
        {REQUEST_start, "\"r-9\"", ID_MAX, "\""},
        {REQUEST_start, "\"paired-review\"", ID_MAX, "\""},
        {REQUEST_start, "\"T-41\"", ID_MAX, "\""},
        {REQUEST_start, "\"K#1\"", KEY_MAX, "\""},
        {REQUEST_start, "\"Fix it\"", LIMIT_SUMMARY, "\""},
        {REQUEST_start, "\"b\"", LIMIT_DATA_VALUE - 2, "\""}, /* with its quotation marks */
        {REQUEST_start, "\"a\":", ID_MAX, "\""},
        {REQUEST_start, "\"text/plain\"", 253, "\"b/"},
        {REQUEST_handoff, "\"owner\"", 48, "\""},
        {REQUEST_handoff, "\"owner\"", 48, "\"b."},
        {REQUEST_handoff, "\"review_2.lane-1\"", 48, "\""},
        {REQUEST_cancel, "\"why\"", LIMIT_REASON, "\""},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        const bool name = strchr(rows[i].from, ':') != NULL;
        char *most = letters(rows[i].max, rows[i].before, name ? "\":" : "\"");
        char *more = letters(rows[i].max + 1, rows[i].before, name ? "\":" : "\"");
        expect_changed(rows[i].kind, rows[i].from, most, BATON_OK);
        expect_changed(rows[i].kind, rows[i].from, more, BATON_E_invalid_envelope);
        free(most);
        free(more);
    }
    /* the number of members of data */
    for (int n = LIMIT_DATA_KEYS; n <= LIMIT_DATA_KEYS + 1; n++) {
        struct buf data = BUF_INIT;
        for (int i = 2; i < n; i++) {
            buf_printf(&data, "\"k%d\":\"\",", i);
        }
        buf_add_text(&data, "\"c\":\"\"");
        assert_true(buf_ok(&data));
        expect_changed(REQUEST_start, "\"c\":\"\"", data.data,
                       n <= LIMIT_DATA_KEYS ? BATON_OK : BATON_E_invalid_envelope);
        buf_done(&data);
    }
    /* the whole */
    struct buf value = BUF_INIT;
    write_value(&value, &kind_rows[REQUEST_start], true, -1, NULL);
    const size_t rest = REQUEST_BYTES_MAX - (value.len - strlen("hello"));
    buf_done(&value);
    char *most = letters(rest, "\"", "\"");
    char *more = letters(rest + 1, "\"", "\"");
    expect_changed(REQUEST_start, "\"hello\"", most, BATON_OK);
    expect_changed(REQUEST_start, "\"hello\"", more, BATON_E_record_too_large);
    free(most);
    free(more);
}

static void what_is_read_is_what_was_said(void **state)
{
    (void)state;
    struct request *r = NULL;
    struct buf value = BUF_INIT;
    write_value(&value, &kind_rows[REQUEST_start], true, -1, NULL);
    assert_int_equal(request_parse(value.data, value.len, &r, NULL), BATON_OK);
    assert_int_equal(r->kind, REQUEST_start);
    assert_string_equal(r->id.s, "q-1");
    assert_string_equal(r->run_id.s, "r-9");
    assert_int_equal(r->request_no, 0);
    assert_string_equal(wall_text(r->at).s, "2026-11-29T15:00:00.000Z");
    assert_string_equal(r->workflow.s, "paired-review");
    assert_string_equal(r->task_id.s, "T-41");
    assert_int_equal(r->task_rev, 7);
    assert_string_equal(r->key, "K#1");
    assert_string_equal(r->summary, "Fix it");
    assert_string_equal(r->data, "{\"a\":\"b\",\"c\":\"\"}");
    assert_int_equal(r->data_len, strlen(r->data));
    assert_string_equal(r->payload, "{\"media_type\":\"text/plain\",\"text\":\"hello\"}");
    assert_int_equal(r->payload_len, strlen(r->payload));
    assert_string_equal(wall_text(r->deadline).s, "2026-12-06T14:20:43.120Z");
    assert_null(r->reason);
    request_free(r);
    buf_done(&value);
    write_value(&value, &kind_rows[REQUEST_handoff], true, -1, NULL);
    assert_int_equal(request_parse(value.data, value.len, &r, NULL), BATON_OK);
    assert_int_equal(r->request_no, 2);
    assert_string_equal(r->from, "owner");
    assert_string_equal(r->target, "review_2.lane-1");
    assert_string_equal(r->data, "{}");
    assert_null(r->payload);
    assert_string_equal(r->workflow.s, "");
    request_free(r);
    buf_done(&value);
    write_value(&value, &kind_rows[REQUEST_answer], true, -1, NULL);
    assert_int_equal(request_parse(value.data, value.len, &r, NULL), BATON_OK);
    assert_string_equal(r->reason, "why");
    assert_null(r->summary);
    assert_null(r->data);
    request_free(r);
    buf_done(&value);
}

/* Texts of any kind come back, whatever must be escaped in them. */
static void foreign_text_comes_back(void **state)
{
    (void)state;
    static char text[] = "\"\\\n\x01\x7f\xc3\xa4\xf0\x9f\x98\x80/{";
    for (int kind = 0; kind < REQUEST_COUNT; kind++) {
        struct request r;
        struct request *back = NULL;
        struct buf value = BUF_INIT;
        struct baton_error err;
        memset(&r, 0, sizeof(r));
        r.kind = (enum request_kind)kind;
        r.id = plain_id_of("q");
        r.run_id = plain_id_of("r");
        r.request_no = kind == REQUEST_start ? 0 : 1;
        r.at.v = EXAMPLE_MS;
        r.workflow = plain_id_of("w");
        r.task_id = task_id_of("t");
        snprintf(r.key, sizeof(r.key), "k");
        snprintf(r.from, sizeof(r.from), "a.b");
        snprintf(r.target, sizeof(r.target), "*");
        r.summary = text;
        r.reason = text;
        request_encode(&r, &value);
        baton_code rc = request_parse(value.data, value.len, &back, &err);
        if (rc != BATON_OK) {
            fail_msg("%s\n%s", err.text, value.data);
        }
        if (kind == REQUEST_start || kind == REQUEST_handoff) {
            assert_string_equal(back->summary, text);
            assert_string_equal(back->data, "{}");
            assert_null(back->reason);
        } else {
            assert_string_equal(back->reason, text);
            assert_null(back->summary);
        }
        request_free(back);
        buf_done(&value);
    }
}

/* P-45: who asks again for the same finds the same run; what is hashed is the document's. */
static void p45_a_run_id_is_who_asks_for_what(void **state)
{
    (void)state;
    struct plain_id id = request_run_id("prod", "alice", "k-1");
    assert_string_equal(id.s, "r-f652d491e44517aa8467e291ba9d00");
    assert_string_equal(request_run_id("prod", "alice", "k-1").s, id.s);
    assert_string_not_equal(request_run_id("staging", "alice", "k-1").s, id.s);
    assert_string_not_equal(request_run_id("prod", "ci", "k-1").s, id.s);
    assert_string_not_equal(request_run_id("prod", "alice", "k-2").s, id.s);
    /* lengths are hashed: what ends here does not begin there */
    assert_string_not_equal(request_run_id("prod", "alicek", "-1").s, id.s);
    assert_true(plain_id_valid(id.s, strlen(id.s)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_kind_holds_exactly_what_is_its_own),
        cmocka_unit_test(envelope_is_closed_and_whole),
        cmocka_unit_test(values_of_the_body_have_their_forms),
        cmocka_unit_test(nothing_is_longer_than_its_limit),
        cmocka_unit_test(what_is_read_is_what_was_said),
        cmocka_unit_test(foreign_text_comes_back),
        cmocka_unit_test(p45_a_run_id_is_who_asks_for_what),
    };
    return cmocka_run_group_tests_name("requests", tests, NULL, NULL);
}
