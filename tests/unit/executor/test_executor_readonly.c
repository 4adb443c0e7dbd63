/*
 * L-36: an attempt that must leave its place as it is, and does not. Found by looking at the tree before
 * and after, without starting anything there.
 */
#include "common/base/check.h"
#include "pool_fixture.h"

struct readonly {
    struct fixture f;
    char place[96];
};

static void place_new(struct readonly *r, const char *script, bool read_only)
{
    char command[1024];
    fixture_new(&r->f, EXECUTOR_KIND_exec);
    snprintf(r->place, sizeof(r->place), "%s/place", r->f.dir);
    snprintf(
        command, sizeof(command),
        "mkdir -p %s/sub/deep/er %s/.git && cd %s && echo one >file && echo two >sub/deep/er/file "
        "&& ln -s file link && echo index >.git/index && echo ref >.git/HEAD && touch -d "
        "'2020-01-01' file && mkdir -p .git/modules/a/b/objects .git/modules/a/b/refs/heads "
        ".git/worktrees/w && touch .git/modules/a/b/HEAD .git/modules/a/b/index "
        ".git/modules/a/b/refs/heads/index .git/worktrees/w/HEAD .git/worktrees/w/commondir "
        ".git/worktrees/w/index",
        r->place, r->place, r->place);
    assert_int_equal(system(command), 0);
    r->f.job.place = r->place;
    r->f.job.read_only = read_only;
    char whole[1024];
    snprintf(whole, sizeof(whole), "%s\nprintf '{\"verdict\":\"approve\"}' >&3", script);
    fixture_open_script(&r->f, whole);
}

static const char *const changes[] = {
    "echo more >>file",
    "echo new >new",
    "rm file",
    "rm sub/deep/er/file",
    "echo xxx >sub/deep/er/file",               /* as long as it was */
    "echo One >file; touch -d 2020-01-01 file", /* with the time that it had */
    "chmod 700 file",
    "chmod 711 sub",
    "chmod 711 .",
    "mv file other",
    "mv sub/deep sub/deeper",
    "ln -sfn other link",
    "ln file hard",
    "mkdir empty",
    "mkfifo pipe",
    "echo other >.git/HEAD",
    "cp -p file copy && mv copy file",            /* the same content in another file */
    "(sleep 0.05; echo late >>file) & sleep 0.2", /* somebody it left behind */
    "setsid sh -c 'echo late >>file' & sleep 0.2",
    "rm -rf .git",
    "echo other >.git/modules/a/b/HEAD",
    "echo other >.git/modules/a/b/refs/heads/index", /* a branch */
};

static void test_l36_every_change_is_seen(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(changes); i++) {
        struct readonly r;
        place_new(&r, changes[i], true);
        struct executor_event *event = fixture_run(&r.f);
        if (event->end.ok || event->end.failure != FAILURE_readonly_violated) {
            fail_msg("not seen: %s", changes[i]);
        }
        expect_failure(event, FAILURE_readonly_violated, "/place as it is");
        fixture_done(&r.f);
    }
}

static const char *const looks[] = {
    "true",
    "cat file sub/deep/er/file link >/dev/null; ls -laR . >/dev/null",
    "echo new >x && rm x",                                              /* nothing is left of it */
    "echo refreshed >.git/index.lock && mv .git/index.lock .git/index", /* what `git status` does */
    "cd .git/modules/a/b && echo refreshed >index.lock && mv index.lock index", /* in a submodule */
    "cd .git/worktrees/w && echo refreshed >index.lock && mv index.lock index",
    "echo elsewhere >$TMPDIR/x; echo home >$HOME/y",
};

static void test_l36_looking_is_no_change(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(looks); i++) {
        struct readonly r;
        place_new(&r, looks[i], true);
        expect_ok(fixture_run(&r.f), VERDICT_approve, "{\"verdict\":\"approve\"}");
        fixture_done(&r.f);
    }
}

static void test_l36_an_owner_may_write(void **state)
{
    struct readonly r;
    (void)state;
    place_new(&r, "echo more >>file", false);
    expect_ok(fixture_run(&r.f), VERDICT_approve, "{\"verdict\":\"approve\"}");
    fixture_done(&r.f);
}

/* What went wrong besides does not hide it; a deadline and a stop of ours go before. */
static void test_l36_before_other_failures(void **state)
{
    struct readonly r;
    (void)state;
    place_new(&r, "echo more >>file; exit 77", true);
    expect_failure(fixture_run(&r.f), FAILURE_readonly_violated, "has changed");
    fixture_done(&r.f);
    place_new(&r, "echo more >>file; exec sleep 100", true);
    r.f.job.deadline_ms = 300;
    expect_failure(fixture_run(&r.f), FAILURE_timeout, "deadline");
    fixture_done(&r.f);
}

/* A verdict that came in time after a stop is judged like any other; without one the stop is the end. */
static void test_l36_a_stop_does_not_hide_it(void **state)
{
    static const char verdict[] = "printf '{\"verdict\":\"approve\"}' >&3;";
    (void)state;
    for (int with_verdict = 0; with_verdict < 2; with_verdict++) {
        struct readonly r;
        char script[512];
        snprintf(script, sizeof(script),
                 "end() { echo more >>file; %s exit 0; }; trap end TERM; echo 1 >../ready;"
                 "while :; do sleep 0.02; done",
                 with_verdict ? verdict : "");
        place_new(&r, script, true);
        executor_pool_free(r.f.pool);
        r.f.set.grace_ms = WAIT_MS;
        fixture_open_script(&r.f, script);
        fixture_start(&r.f);
        fixture_number(&r.f, "ready");
        executor_stop(r.f.pool, &r.f.job.turn, 1, EXECUTOR_STOP_stop);
        struct executor_event *event = fixture_next(&r.f, EXECUTOR_EVENT_end);
        assert_int_equal(event->end.killed_by_stop, !with_verdict);
        expect_failure(event, with_verdict ? FAILURE_readonly_violated : FAILURE_killed,
                       with_verdict ? "has changed" : "clean stop");
        fixture_done(&r.f);
    }
}

/* A guard that could not look, and says so (common/process/guard/wire.h): no verdict counts then. */
static void test_l36_what_was_not_looked_at_completes_nothing(void **state)
{
    struct readonly r;
    char path[128];
    (void)state;
    place_new(&r, "true", true);
    executor_pool_free(r.f.pool);
    snprintf(path, sizeof(path), "%s/guard", r.f.dir);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fprintf(file, "#!/bin/sh\nprintf '{\"verdict\":\"approve\"}' >&3\n"
                  "printf '\\1\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\2\\0\\0\\0' >&4\n");
    fclose(file);
    assert_int_equal(chmod(path, 0755), 0);
    r.f.set.guard_path = path;
    fixture_open_script(&r.f, "true");
    expect_failure(fixture_run(&r.f), FAILURE_crash, "could not be seen");
    fixture_done(&r.f);
}

/* A large tree takes its time beside the pool's thread: other attempts start and end meanwhile. */
static void test_a_large_tree_holds_nobody_up(void **state)
{
    struct readonly r;
    char command[512];
    (void)state;
    place_new(&r, "true", true);
    snprintf(command, sizeof(command),
             "cd %s && for d in $(seq 100); do mkdir d$d; (cd d$d && touch $(seq 200)); done",
             r.place);
    assert_int_equal(system(command), 0);
    expect_ok(fixture_run(&r.f), VERDICT_approve, "{\"verdict\":\"approve\"}");
    fixture_done(&r.f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_l36_every_change_is_seen),
        cmocka_unit_test(test_l36_looking_is_no_change),
        cmocka_unit_test(test_l36_an_owner_may_write),
        cmocka_unit_test(test_l36_before_other_failures),
        cmocka_unit_test(test_l36_a_stop_does_not_hide_it),
        cmocka_unit_test(test_l36_what_was_not_looked_at_completes_nothing),
        cmocka_unit_test(test_a_large_tree_holds_nobody_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
