/* The protocol's document: its tables of fields are the program's, and its example is executed. */
#include "fixture.h"

#include "common/base/limits.h"
#include "common/record/fields.h"
#include "common/record/tbl/control_fields.h"
#include "common/record/tbl/outcome_fields.h"
#include "common/record/request.h"
#include "common/record/tbl/payload_fields.h"
#include "common/record/tbl/request_fields.h"
#include "common/record/tbl/turn_fields.h"
#include "common/record/tbl/turn_record_fields.h"
#include "common/record/turn_record.h"
#include "common/record/usage.h"

static char *document;

static const struct field turn_rows[] = {TURN_FIELDS(FIELD_ROW)};
static const struct field payload_rows[] = {PAYLOAD_FIELDS(FIELD_ROW)};
static const struct field control_rows[] = {CONTROL_FIELDS(FIELD_ROW)};
static const struct field request_rows[] = {REQUEST_FIELDS(FIELD_ROW)};
static const struct field request_body_rows[] = {REQUEST_BODY_FIELDS(FIELD_ROW)};
static const struct field record_rows[] = {TURN_RECORD_FIELDS(FIELD_ROW)};
static const struct field attempt_rows[] = {ATTEMPT_FIELDS(FIELD_ROW)};
#define TEXT_ROW(name, max) FIELD_ROW(name, line, optional, max)
#define NUMBER_ROW(name) FIELD_ROW(name, count, optional, JSON_INT_MAX)
static const struct field usage_rows[] = {USAGE_TEXTS(TEXT_ROW) USAGE_NUMBERS(NUMBER_ROW)};
static const struct field outcome_rows[] = {OUTCOME_FIELDS(FIELD_ROW)};

static const struct {
    const char *name;
    const struct field *rows;
    size_t count;
} tables[] = {
    {"turn", turn_rows, COUNT_OF(turn_rows)},
    {"payload", payload_rows, COUNT_OF(payload_rows)},
    {"control", control_rows, COUNT_OF(control_rows)},
    {"request", request_rows, COUNT_OF(request_rows)},
    {"request_body", request_body_rows, COUNT_OF(request_body_rows)},
    {"turn_record", record_rows, COUNT_OF(record_rows)},
    {"attempt", attempt_rows, COUNT_OF(attempt_rows)},
    {"usage", usage_rows, COUNT_OF(usage_rows)},
    {"outcome", outcome_rows, COUNT_OF(outcome_rows)},
};

static const char *next_line(const char *at)
{
    const char *end = strchr(at, '\n');
    return end == NULL ? at + strlen(at) : end + 1;
}

static void document_tables_are_the_program_s(void **state)
{
    (void)state;
    for (size_t t = 0; t < COUNT_OF(tables); t++) {
        char mark[64];
        snprintf(mark, sizeof(mark), "<!-- fields: %s -->\n", tables[t].name);
        const char *at = strstr(document, mark);
        if (at == NULL) {
            fail_msg("no table for %s", tables[t].name);
        }
        at = next_line(next_line(next_line(at))); /* the mark and two lines of heading */
        for (size_t i = 0; i < tables[t].count; i++, at = next_line(at)) {
            const struct field *f = &tables[t].rows[i];
            char due[200];
            snprintf(due, sizeof(due), "| `%s` | %s | %s | %lld |", f->name,
                     field_kind_word(f->kind), f->need == FIELD_required ? "required" : "optional",
                     (long long)f->max);
            if (strncmp(at, due, strlen(due)) != 0) {
                fail_msg("%s: the document has\n%.100s\nand the program\n%s", tables[t].name, at,
                         due);
            }
        }
        assert_true(*at == '\n'); /* and no row more */
    }
}

/* The words behind `name` in the example. */
static void example_line(const char *name, char *ret_text, size_t size)
{
    char start[32];
    snprintf(start, sizeof(start), "\n    %-10s ", name);
    const char *at = strstr(strstr(document, "<!-- example -->"), start);
    if (at == NULL) {
        fail_msg("the example has no %s", name);
    }
    at += strlen(start);
    size_t n = strcspn(at, "\n");
    assert_true(n < size);
    memcpy(ret_text, at, n);
    ret_text[n] = '\0';
}

static void document_example_is_taken_in(void **state)
{
    (void)state;
    struct box box;
    struct post post;
    struct receipt receipt;
    char key[64];
    char value[1024];
    char text[512];
    char hex[65];
    box_fleet(&box);
    struct trust *trust = load_trust(&box);
    struct receiver receiver = receiver_of(trust, "codex-review");
    example_line("key", key, sizeof(key));
    example_line("value", value, sizeof(value));
    post_value(&post, key, value, strlen(value));
    example_line("baton-sig", text, sizeof(text));
    post_header(&post, "baton-sig", text);
    example_line("baton-pass", text, sizeof(text));
    post_header(&post, "baton-pass", text);
    baton_code rc = receipt_handoff(&receiver, &post.record, &receipt);
    if (rc != BATON_OK) {
        fail_msg("%s", receipt.note);
    }
    example_line("sha256", text, sizeof(text));
    hex_encode(receipt.turn->digest.b, DIGEST_LEN, hex);
    assert_string_equal(text, hex);
    example_line("partition", text, sizeof(text));
    snprintf(hex, sizeof(hex), "%d of %d", (int)post.record.partition, PARTITIONS);
    assert_string_equal(text, hex);
    assert_int_equal(strlen(value), 390);
    receipt_done(&receipt);
    post_done(&post);
    trust_free(trust);
    box_close(&box);
}

/* Every code that the document names is one. */
static void document_codes_are_codes(void **state)
{
    (void)state;
    const char *at = strstr(document, "## 8. Refusals");
    const char *end = strstr(document, "## 9.");
    size_t found = 0;
    assert_true(at != NULL && end != NULL);
    while ((at = strchr(at, '`')) != NULL && at < end) {
        size_t n = strcspn(at + 1, "`");
        char word[64];
        baton_code code;
        snprintf(word, sizeof(word), "%.*s", (int)n, at + 1);
        at += n + 2;
        if (strchr(word, '_') != NULL && strcmp(word, "turn_id") != 0 &&
            strcmp(word, "expires_at") != 0) {
            if (!baton_code_parse(word, &code)) {
                fail_msg("'%s' is no code", word);
            }
            found++;
        }
    }
    assert_true(found > 15);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(document_tables_are_the_program_s),
        cmocka_unit_test(document_example_is_taken_in),
        cmocka_unit_test(document_codes_are_codes),
    };
    char path[512];
    const char *end = strstr(__FILE__, "tests/unit/record/");
    snprintf(path, sizeof(path), "%.*scommon/record/RECORD.md", (int)(end - __FILE__), __FILE__);
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        fprintf(stderr, "%s cannot be read\n", path);
        return 1;
    }
    document = calloc(1, 65536);
    bool whole = document != NULL && fread(document, 1, 65535, file) < 65535;
    fclose(file);
    int failed = whole ? cmocka_run_group_tests_name("the document", tests, NULL, NULL) : 1;
    free(document);
    return failed;
}
