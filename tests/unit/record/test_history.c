/*
 * The history of earlier attempts that travels with a pass: shown beside a turn, never believed.
 * Whatever a header says, only closed attempts before the present one, at services that a hop
 * names, get into a record, in order and bounded.
 */
#include "fixture.h"

#include "common/record/turn_record.h"

static const char *const services[] = {"alpha", "beta"};

/* The numbers that a history adds to a record at attempt 5, as text. */
static const char *added(const char *history)
{
    static char text[512];
    struct turn_record record;
    turn_record_init(&record);
    record.attempt = 5;
    turn_record_add_history(&record, history, strlen(history), services, 2);
    text[0] = '\0';
    for (size_t i = 0; i < record.n_attempts; i++) {
        size_t n = strlen(text);
        snprintf(text + n, sizeof(text) - n, "%s%d%s", n > 0 ? " " : "", record.attempts[i].no,
                 record.attempts[i].service.s);
    }
    turn_record_done(&record);
    return text;
}

static void only_what_may_be_is_added(void **state)
{
    (void)state;
    static const struct {
        const char *history;
        const char *added;
    } rows[] = {
        {"[{\"no\":1,\"service\":\"alpha\",\"state\":\"failed\",\"class\":\"auth\",\"note\":\"x\"},"
         "{\"no\":4,\"service\":\"beta\",\"state\":\"delegated\"}]",
         "1alpha 4beta"},
        {"", ""},
        {"{}", ""},
        {"[1,null,\"x\",[]]", ""},
        {"[{\"no\":1}]", ""},
        {"[{\"no\":0,\"service\":\"alpha\",\"state\":\"failed\"}]", ""},
        {"[{\"no\":5,\"service\":\"alpha\",\"state\":\"failed\"}]", ""}, /* the present one */
        {"[{\"no\":9,\"service\":\"alpha\",\"state\":\"failed\"}]", ""},
        {"[{\"no\":2,\"service\":\"gamma\",\"state\":\"failed\"}]", ""}, /* in no hop */
        {"[{\"no\":2,\"service\":\"alpha\",\"state\":\"running\"}]", ""},
        {"[{\"no\":2,\"service\":\"alpha\",\"state\":\"won\"}]", ""},
        {"[{\"no\":2,\"service\":\"alpha\",\"state\":\"failed\",\"class\":\"bad luck\"}]", ""},
        {"[{\"no\":2,\"service\":\"alpha\",\"state\":\"failed\",\"more\":1}]", ""},
        {"[{\"no\":3,\"service\":\"alpha\",\"state\":\"failed\"},"
         "{\"no\":3,\"service\":\"beta\",\"state\":\"failed\"},"
         "{\"no\":2,\"service\":\"beta\",\"state\":\"failed\"},"
         "{\"no\":4,\"service\":\"beta\",\"state\":\"failed\"}]",
         "3alpha 4beta"},
        {"[{\"no\":1,\"service\":\"alpha\",\"state\":\"failed\"}] x", ""},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (strcmp(added(rows[i].history), rows[i].added) != 0) {
            fail_msg("%s: '%s', not '%s'", rows[i].history, added(rows[i].history), rows[i].added);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_what_may_be_is_added),
    };
    return cmocka_run_group_tests_name("record: history", tests, NULL, NULL);
}
