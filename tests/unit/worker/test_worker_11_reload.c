/*
 * Memory runs out at every allocation of a reload, one after the other (STYLE M5): what was read before
 * stays in force, whole, and nothing is read that is freed or left behind. The allocator is replaced for
 * this program, and spoils what is freed; sanitizers have their own, so there only the good case runs.
 * What a fleet sees of a reload is in tests/fleet/test_88_reload.py.
 */
#include "worker/reload.h"

#include "tests/unit/failing_memory.h"
#include "worker/executor/executor.h"
#include "worker/internal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WITH(profiles, failures)                                                                   \
    "version: 1\n"                                                                                 \
    "proof: off\n"                                                                                 \
    "budget: {failures: " failures "}\n"                                                           \
    "services:\n"                                                                                  \
    "  lint:\n"                                                                                    \
    "    roles: [reviewer]\n"                                                                      \
    "    executor: {kind: callback}\n"                                                             \
    "    profiles:\n" profiles
#define PROFILE(name) "      - {name: " name ", env: {KEY: {value: " name "}}}\n"

static const char before[] = WITH(PROFILE("one") PROFILE("two"), "5");
static const char after[] = WITH(PROFILE("three") PROFILE("two") PROFILE("one"), "7");

static char dir[] = "/tmp/baton-reload-XXXXXX";
static char path[64];

static void write_config(const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0 && fclose(file) == 0);
}

/* A worker as far as a reload looks at it, with its configuration in force. */
static void begin(struct worker *w, struct worker_options *options)
{
    struct config *config = NULL;
    struct baton_error err = {BATON_OK, ""};
    if (config_parse(path, before, strlen(before), NULL, 0, &config, NULL, &err) != BATON_OK) {
        fail_msg("%s", err.text);
    }
    *options = (struct worker_options){.config = config, .service = "lint", .wake_fd = -1};
    *w = (struct worker){.config = config, .options = options};
    w->service = config_service_find(config, "lint");
    w->envs = calloc(w->service->n_profiles, sizeof(struct executor_env *));
    assert_non_null(w->envs);
    for (size_t i = 0; i < w->service->n_profiles; i++) {
        const struct config_profile *profile = &w->service->profiles[i];
        assert_int_equal(
            executor_env_resolve(NULL, 0, profile->env, profile->n_env, &w->envs[i], &err),
            BATON_OK);
    }
}

static void end(struct worker *w)
{
    for (size_t i = 0; i < w->service->n_profiles; i++) {
        executor_env_free(w->envs[i]);
    }
    free(w->envs);
    reloaded_free(w->reloaded);
    config_free((struct config *)(uintptr_t)w->options->config);
}

/* With its k-th allocation failing. *ret_needed: there was one. True: it has taken the new one. */
static bool reload_once(long k, bool *ret_needed)
{
    struct worker_options options;
    struct worker w;
    begin(&w, &options);
    const struct config_service *old = w.service;
    w.rests[1].class = FAILURE_auth;
    w.reload_asked = true;
    fail_at = k;
    worker_reload_due(&w);
    *ret_needed = k > 0 && fail_at == 0;
    fail_at = 0;
    const bool taken = w.service != old;
    if (taken) {
        assert_int_equal(w.config->budget.failures, 7);
        assert_int_equal(w.service->n_profiles, 3);
        assert_int_equal(w.rests[1].class, FAILURE_auth); /* of two, by its name */
    } else {
        assert_ptr_equal(w.config, options.config);
        assert_null(w.reloaded);
        assert_int_equal(w.service->n_profiles, 2);
    }
    end(&w);
    return taken;
}

static void test_memory_that_runs_out_changes_nothing(void **state)
{
    bool needed = false;
    (void)state;
    write_config(after);
    assert_true(reload_once(0, &needed)); /* what is made once, and kept, is there now */
    needed = OWN_ALLOCATOR;
    for (long k = 1; needed; k++) {
        assert_true(k < 100000);
        live = 0;
        const bool taken = reload_once(k, &needed);
        if (live != 0 || (!needed && !taken)) {
            fail_msg("allocation %ld failed: %ld are left", k, live);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_memory_that_runs_out_changes_nothing),
    };
    if (mkdtemp(dir) == NULL) {
        return 1;
    }
    snprintf(path, sizeof(path), "%s/baton.yaml", dir);
    const int failed = cmocka_run_group_tests_name("worker: reload", tests, NULL, NULL);
    unlink(path);
    rmdir(dir);
    return failed;
}
