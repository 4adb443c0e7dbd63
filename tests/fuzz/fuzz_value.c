/*
 * Values of records: whatever comes in is refused or read, and what was read is written so that it
 * is read again and written the same. The first byte says which kind of record it is. Parts: record
 */
#include "common/record/control.h"
#include "common/record/outcome.h"
#include "common/record/pass.h"
#include "common/record/request.h"
#include "common/record/turn.h"
#include "common/record/turn_record.h"

#include <stdlib.h>
#include <string.h>

#define CHECK(x)                                                                                   \
    do {                                                                                           \
        if (!(x)) {                                                                                \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

static void expected(baton_code rc, const struct baton_error *err)
{
    CHECK(rc == BATON_E_invalid_envelope || rc == BATON_E_schema_unsupported ||
          rc == BATON_E_role_unresolved || rc == BATON_E_record_too_large);
    CHECK(err->code == rc && err->text[0] != '\0');
}

static void try_turn(const char *text, size_t len)
{
    struct turn *turn = NULL;
    struct turn *again = NULL;
    struct baton_error err = {BATON_OK, ""};
    baton_code rc = turn_parse("prod", text, len, &turn, &err);
    if (rc != BATON_OK) {
        expected(rc, &err);
        return;
    }
    CHECK(turn->len == len && memcmp(turn->bytes, text, len) == 0);
    CHECK(turn->data.at >= turn->bytes && turn->data.at + turn->data.len <= turn->bytes + len);
    CHECK(turn->payload.at >= turn->bytes &&
          turn->payload.at + turn->payload.len <= turn->bytes + len);
    CHECK((unsigned)turn->role < ROLE_COUNT && turn->summary[0] != '\0');
    CHECK(turn_parse("prod", turn->bytes, turn->len, &again, &err) == BATON_OK);
    CHECK(memcmp(&turn->content, &again->content, sizeof(turn->content)) == 0);
    turn_free(again);
    turn_free(turn);
}

static void try_record(const char *text, size_t len)
{
    struct turn_record record;
    struct turn_record again;
    struct buf one = BUF_INIT;
    struct buf two = BUF_INIT;
    struct baton_error err = {BATON_OK, ""};
    baton_code rc = turn_record_parse(text, len, &record, &err);
    if (rc != BATON_OK) {
        expected(rc, &err);
        return;
    }
    turn_record_encode(&record, &one);
    CHECK(turn_record_parse(one.data, one.len, &again, &err) == BATON_OK);
    turn_record_encode(&again, &two);
    CHECK(one.len == two.len && memcmp(one.data, two.data, one.len) == 0);
    turn_record_done(&record);
    turn_record_done(&again);
    buf_done(&one);
    buf_done(&two);
}

static void try_control(const char *text, size_t len)
{
    struct control *control = NULL;
    struct control *again = NULL;
    struct buf one = BUF_INIT;
    struct buf two = BUF_INIT;
    struct baton_error err = {BATON_OK, ""};
    baton_code rc = control_parse(text, len, &control, &err);
    if (rc != BATON_OK) {
        expected(rc, &err);
        return;
    }
    control_encode(control, &one);
    CHECK(control_parse(one.data, one.len, &again, &err) == BATON_OK);
    control_encode(again, &two);
    CHECK(one.len == two.len && memcmp(one.data, two.data, one.len) == 0);
    control_free(control);
    control_free(again);
    buf_done(&one);
    buf_done(&two);
}

static void try_outcome(const char *text, size_t len)
{
    struct outcome *outcome = NULL;
    struct outcome *again = NULL;
    struct buf one = BUF_INIT;
    struct buf two = BUF_INIT;
    struct baton_error err = {BATON_OK, ""};
    baton_code rc = outcome_parse(text, len, &outcome, &err);
    if (rc != BATON_OK) {
        expected(rc, &err);
        return;
    }
    outcome_encode(outcome, &one);
    CHECK(outcome_parse(one.data, one.len, &again, &err) == BATON_OK);
    outcome_encode(again, &two);
    CHECK(one.len == two.len && memcmp(one.data, two.data, one.len) == 0);
    outcome_free(outcome);
    outcome_free(again);
    buf_done(&one);
    buf_done(&two);
}

static void try_request(const char *text, size_t len)
{
    struct request *request = NULL;
    struct request *again = NULL;
    struct buf one = BUF_INIT;
    struct buf two = BUF_INIT;
    struct baton_error err = {BATON_OK, ""};
    baton_code rc = request_parse(text, len, &request, &err);
    if (rc != BATON_OK) {
        expected(rc, &err);
        return;
    }
    request_encode(request, &one);
    /* Escapes of another spelling may make it longer than one that is taken. */
    rc = request_parse(one.data, one.len, &again, &err);
    if (rc == BATON_E_record_too_large && one.len > len) {
        goto out;
    }
    CHECK(rc == BATON_OK);
    request_encode(again, &two);
    CHECK(one.len == two.len && memcmp(one.data, two.data, one.len) == 0);
out:
    request_free(request);
    request_free(again);
    buf_done(&one);
    buf_done(&two);
}

static void try_pass(const char *text, size_t len)
{
    struct pass_parts parts;
    struct pass pass;
    struct baton_error err = {BATON_OK, ""};
    struct digest digest = {{0}};
    char *made = NULL;
    if (!pass_split(text, len, &parts)) {
        return;
    }
    baton_code rc = pass_parse(parts.statement, &pass, &err);
    if (rc != BATON_OK) {
        expected(rc, &err);
        return;
    }
    CHECK(pass_make(&pass, NULL, "prod", "id", &digest, &made, &err) == BATON_OK);
    CHECK(strcmp(made, parts.statement) == 0); /* one way to write each hop */
    free(made);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) {
        return 0;
    }
    const char *text = (const char *)data + 1;
    switch (data[0] % 6) {
    case 0:
        try_turn(text, size - 1);
        break;
    case 1:
        try_record(text, size - 1);
        break;
    case 2:
        try_control(text, size - 1);
        break;
    case 3:
        try_outcome(text, size - 1);
        break;
    case 4:
        try_pass(text, size - 1);
        break;
    default:
        try_request(text, size - 1);
        break;
    }
    return 0;
}
