/* The golden records: valid and invalid ones, each read with the code that expected.txt says. */
#include "fixture.h"

#include "common/record/control.h"
#include "common/record/outcome.h"
#include "common/record/pass.h"
#include "common/record/request.h"
#include "common/record/turn_record.h"

static char root[512];

static char *read_whole(const char *path, size_t *ret_len)
{
    struct buf bytes = BUF_INIT;
    char chunk[4096];
    size_t n;
    FILE *file = fopen(path, "rbe");
    if (file == NULL) {
        fail_msg("%s cannot be read", path);
    }
    while ((n = fread(chunk, 1, sizeof(chunk), file)) > 0) {
        buf_add(&bytes, chunk, n);
    }
    fclose(file);
    char *data = buf_take(&bytes, ret_len);
    assert_non_null(data);
    return data;
}

/* Reads the bytes, writes what was read, and reads that again: the same code and the same bytes. */
static baton_code read_turn(const char *bytes, size_t len, struct baton_error *err)
{
    struct turn *turn = NULL;
    baton_code rc = turn_parse("prod", bytes, len, &turn, err);
    if (rc == BATON_OK) {
        assert_int_equal(turn->len, len);
        assert_memory_equal(turn->bytes, bytes, len);
    }
    turn_free(turn);
    return rc;
}

static baton_code read_control(const char *bytes, size_t len, struct baton_error *err)
{
    struct control *control = NULL;
    baton_code rc = control_parse(bytes, len, &control, err);
    if (rc == BATON_OK) {
        struct buf again = BUF_INIT;
        control_encode(control, &again);
        assert_int_equal(again.len, len);
        assert_memory_equal(again.data, bytes, len);
        buf_done(&again);
    }
    control_free(control);
    return rc;
}

static baton_code read_request(const char *bytes, size_t len, struct baton_error *err)
{
    struct request *request = NULL;
    baton_code rc = request_parse(bytes, len, &request, err);
    if (rc == BATON_OK) {
        struct buf again = BUF_INIT;
        request_encode(request, &again);
        assert_int_equal(again.len, len);
        assert_memory_equal(again.data, bytes, len);
        buf_done(&again);
    }
    request_free(request);
    return rc;
}

static baton_code read_turn_record(const char *bytes, size_t len, struct baton_error *err)
{
    struct turn_record record;
    baton_code rc = turn_record_parse(bytes, len, &record, err);
    if (rc == BATON_OK) {
        struct buf again = BUF_INIT;
        struct turn_record copy;
        assert_int_equal(turn_record_copy(&record, &copy), BATON_OK);
        turn_record_encode(&copy, &again);
        turn_record_done(&copy);
        assert_int_equal(again.len, len);
        assert_memory_equal(again.data, bytes, len);
        buf_done(&again);
        turn_record_done(&record);
    }
    return rc;
}

static baton_code read_outcome(const char *bytes, size_t len, struct baton_error *err)
{
    struct outcome *outcome = NULL;
    baton_code rc = outcome_parse(bytes, len, &outcome, err);
    if (rc == BATON_OK) {
        struct buf again = BUF_INIT;
        outcome_encode(outcome, &again);
        assert_int_equal(again.len, len);
        assert_memory_equal(again.data, bytes, len);
        buf_done(&again);
    }
    outcome_free(outcome);
    return rc;
}

static baton_code read_pass(const char *bytes, size_t len, struct baton_error *err)
{
    struct pass pass;
    (void)len;
    return pass_parse(bytes, &pass, err);
}

static const struct {
    const char *folder;
    baton_code (*read)(const char *bytes, size_t len, struct baton_error *err);
} readers[] = {
    {"turn/", read_turn},       {"control/", read_control}, {"turn_record/", read_turn_record},
    {"outcome/", read_outcome}, {"pass/", read_pass},       {"request/", read_request},
};

static size_t check_file(const char *file, const char *code_word)
{
    char path[1024];
    struct baton_error err = {0};
    baton_code code = BATON_OK;
    size_t len;
    snprintf(path, sizeof(path), "%s/%s", root, file);
    char *bytes = read_whole(path, &len);
    assert_true(baton_code_parse(code_word, &code));
    for (size_t i = 0; i < COUNT_OF(readers); i++) {
        if (strncmp(file, readers[i].folder, strlen(readers[i].folder)) == 0) {
            baton_code rc = readers[i].read(bytes, len, &err);
            if (rc != code) {
                fail_msg("%s: %s (%s) instead of %s", file, baton_code_word(rc), err.text,
                         code_word);
            }
            if (rc != BATON_OK) {
                assert_int_equal(err.code, rc);
                assert_true(strlen(err.text) > 10);
            }
            free(bytes);
            return 1;
        }
    }
    fail_msg("%s lies in no known folder", file);
    return 0;
}

static void golden_records_have_their_codes(void **state)
{
    (void)state;
    char path[1024];
    char line[512];
    size_t checked = 0;
    snprintf(path, sizeof(path), "%s/expected.txt", root);
    FILE *list = fopen(path, "re");
    assert_non_null(list);
    while (fgets(line, sizeof(line), list) != NULL) {
        char file[256];
        char code[64];
        if (line[0] != '#' && sscanf(line, "%255s %63s", file, code) == 2) {
            checked += check_file(file, code);
        }
    }
    fclose(list);
    assert_true(checked > 150);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(golden_records_have_their_codes)};
    const char *end = strstr(__FILE__, "tests/unit/record/");
    snprintf(root, sizeof(root), "%.*stests/golden/record", (int)(end - __FILE__), __FILE__);
    return cmocka_run_group_tests_name("golden records", tests, NULL, NULL);
}
