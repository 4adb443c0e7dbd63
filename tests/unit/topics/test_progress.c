/* Progress files: what is written is read by who may, the newest of several, and nothing that is none. */
#include "common/base/check.h"
#include "topics/progress.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define TURN "0123456789abcdef0123456789abcdef"

static char state_dir[] = "/tmp/baton-progress-XXXXXX";
static struct config_service service;
static struct config config = {.state_dir = state_dir, .services = &service, .n_services = 1};

static char *dir_of(const char *worker)
{
    static char dir[128];
    snprintf(dir, sizeof(dir), "%s/lint", state_dir);
    mkdir(dir, 0700);
    snprintf(dir, sizeof(dir), "%s/lint/%s", state_dir, worker);
    mkdir(dir, 0700);
    return dir;
}

static void write_one(const char *worker, int64_t at, const char *text)
{
    struct progress progress = {
        .attempt = 2, .service = service_id_of("lint"), .worker = plain_id_of(worker), .at = {at}};
    snprintf(progress.text, sizeof(progress.text), "%s", text);
    progress_write(dir_of(worker), TURN, &progress);
}

static void test_what_is_written_is_read(void **state)
{
    struct progress read;
    char longest[PROGRESS_TEXT_MAX + 1];
    (void)state;
    assert_false(progress_read(&config, TURN, &read));
    progress_clear(dir_of("w1"));
    progress_clear(dir_of("w2"));
    write_one("w1", 1795962044000, "reads \"a\"\n\x1b[2J");
    assert_true(progress_read(&config, TURN, &read));
    assert_string_equal(read.text, "reads \"a\"\n\x1b[2J");
    assert_string_equal(read.worker.s, "w1");
    assert_int_equal(read.attempt, 2);
    write_one("w2", 1795962043000, "older, elsewhere");
    assert_true(progress_read(&config, TURN, &read));
    assert_string_equal(read.worker.s, "w1");
    memset(longest, 1, sizeof(longest)); /* each byte is written as six */
    longest[PROGRESS_TEXT_MAX] = '\0';
    write_one("w2", 1795962045000, longest);
    assert_true(progress_read(&config, TURN, &read));
    assert_string_equal(read.text, longest);
    progress_remove(dir_of("w2"), TURN);
    assert_true(progress_read(&config, TURN, &read));
    assert_string_equal(read.worker.s, "w1");
    progress_clear(dir_of("w1")); /* a worker that starts again */
    assert_false(progress_read(&config, TURN, &read));
}

static void put(const char *text, mode_t mode)
{
    char path[256];
    snprintf(path, sizeof(path), "%s/progress/" TURN, dir_of("w1"));
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
    chmod(path, mode);
}

#define GOOD                                                                                       \
    "{\"attempt\":1,\"service\":\"lint\",\"worker\":\"w1\",\"at\":\"2026-11-30T00:00:00.000Z\","   \
    "\"text\":\"t\"}"

static void test_what_is_none_is_not_read(void **state)
{
    static const char *const bad[] = {
        "",
        "[]",
        "{\"attempt\":0,\"service\":\"lint\",\"worker\":\"w1\",\"at\":\"2026-11-30T00:00:00."
        "000Z\"}",
        "{\"attempt\":1,\"service\":\"../"
        "x\",\"worker\":\"w1\",\"at\":\"2026-11-30T00:00:00.000Z\"}",
        "{\"attempt\":1,\"service\":\"lint\",\"worker\":\"w1\",\"at\":\"soon\"}",
        GOOD GOOD,
    };
    struct progress read;
    (void)state;
    progress_clear(dir_of("w1"));
    put(GOOD, 0600);
    assert_true(progress_read(&config, TURN, &read));
    put(GOOD, 0666); /* somebody else could have written it */
    assert_false(progress_read(&config, TURN, &read));
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        put(bad[i], 0600);
        if (progress_read(&config, TURN, &read)) {
            fail_msg("read: %s", bad[i]);
        }
    }
}

static int set_up(void **state)
{
    (void)state;
    service.name = service_id_of("lint");
    return mkdtemp(state_dir) != NULL ? 0 : -1;
}

static int tear_down(void **state)
{
    char command[64];
    (void)state;
    snprintf(command, sizeof(command), "rm -rf %s", state_dir);
    return system(command);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_written_is_read),
        cmocka_unit_test(test_what_is_none_is_not_read),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
