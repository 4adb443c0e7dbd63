/*
 * A key with a passphrase, on a terminal: a child process on a pseudo terminal makes one and signs
 * with it, the test types. What is typed is never echoed.
 */
#include "fixture.h"

#include "common/record/keyfile.h"

#include <poll.h>
#include <pty.h>
#include <sys/wait.h>

#define SECRET "correct horse battery"

static struct box box;

/* Shown by the child's terminal so far. */
struct screen {
    int fd;
    char text[4096];
    size_t len;
};

/* Waits until the terminal has shown words, count times in all. */
static void await(struct screen *screen, const char *words, int count)
{
    for (;;) {
        int seen = 0;
        for (const char *at = screen->text; (at = strstr(at, words)) != NULL; at++) {
            seen++;
        }
        if (seen >= count) {
            return;
        }
        struct pollfd ready = {screen->fd, POLLIN, 0};
        assert_int_equal(poll(&ready, 1, 20000), 1);
        ssize_t n =
            read(screen->fd, screen->text + screen->len, sizeof(screen->text) - 1 - screen->len);
        if (n <= 0) {
            fail_msg("the terminal ended with: %s", screen->text);
        }
        screen->len += (size_t)n;
        screen->text[screen->len] = '\0';
    }
}

static void type(const struct screen *screen, const char *line)
{
    assert_int_equal(write(screen->fd, line, strlen(line)), (ssize_t)strlen(line));
    assert_int_equal(write(screen->fd, "\n", 1), 1);
}

/* What the child does; its exit status is the code of the last step. */
static baton_code make_key(void)
{
    char path[256];
    struct evp_pkey_st *pair = NULL;
    snprintf(path, sizeof(path), "%s/alice.pem", box.keys);
    baton_code rc = keyfile_generate(&pair, NULL);
    if (rc == BATON_OK) {
        rc = keyfile_write_private(path, pair, true, false, NULL);
    }
    keyfile_free(pair);
    return rc;
}

static baton_code use_key(void)
{
    struct signer *signer = NULL;
    baton_code rc = signer_load(box.keys, "alice", &signer, NULL);
    signer_free(signer);
    return rc;
}

static pid_t start(baton_code (*act)(void), struct screen *screen)
{
    memset(screen, 0, sizeof(*screen));
    pid_t pid = forkpty(&screen->fd, NULL, NULL, NULL);
    assert_true(pid >= 0);
    if (pid == 0) {
        static const char *const names[] = {"CI", "BATON_ATTEMPT", "CLAUDECODE", "GEMINI_CLI",
                                            "CODEX_SANDBOX"};
        for (size_t i = 0; i < COUNT_OF(names); i++) {
            unsetenv(names[i]);
        }
        setenv("BATON_MODE", "attended", 1);
        _exit((int)act());
    }
    return pid;
}

static void ends_with(pid_t pid, struct screen *screen, baton_code code)
{
    int status = 0;
    ssize_t n;
    /* Read on until it has ended: whoever is not read does not get away from its terminal. */
    struct pollfd ready = {screen->fd, POLLIN, 0};
    while (poll(&ready, 1, 20000) == 1 && (n = read(screen->fd, screen->text + screen->len,
                                                    sizeof(screen->text) - 1 - screen->len)) > 0) {
        screen->len += (size_t)n;
        screen->text[screen->len] = '\0';
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), code);
    assert_null(strstr(screen->text, "horse"));
    close(screen->fd);
}

static void a_passphrase_makes_a_key_a_person_s(void **state)
{
    (void)state;
    struct screen screen;
    char path[256];
    char pem[1024] = "";
    pid_t pid = start(make_key, &screen);
    await(&screen, "new passphrase: ", 1);
    type(&screen, SECRET);
    await(&screen, "again: ", 1);
    type(&screen, SECRET);
    ends_with(pid, &screen, BATON_OK);
    snprintf(path, sizeof(path), "%s/alice.pem", box.keys);
    FILE *file = fopen(path, "re");
    assert_non_null(file);
    assert_true(fread(pem, 1, sizeof(pem) - 1, file) > 100);
    fclose(file);
    assert_non_null(strstr(pem, "BEGIN ENCRYPTED PRIVATE KEY"));

    pid = start(use_key, &screen);
    await(&screen, "passphrase of ", 1);
    await(&screen, "alice.pem: ", 1);
    type(&screen, SECRET);
    ends_with(pid, &screen, BATON_OK);

    pid = start(use_key, &screen);
    await(&screen, "alice.pem: ", 1);
    type(&screen, "wrong horse");
    ends_with(pid, &screen, BATON_E_bad_config);

    pid = start(use_key, &screen);
    await(&screen, "alice.pem: ", 1);
    type(&screen, "");
    ends_with(pid, &screen, BATON_E_invalid_request);
}

static void two_passphrases_that_differ_make_no_key(void **state)
{
    (void)state;
    struct screen screen;
    struct stat st;
    char path[256];
    snprintf(path, sizeof(path), "%s/alice.pem", box.keys);
    pid_t pid = start(make_key, &screen);
    await(&screen, "new passphrase: ", 1);
    type(&screen, SECRET);
    await(&screen, "again: ", 1);
    type(&screen, "another horse");
    ends_with(pid, &screen, BATON_E_invalid_request);
    pid = start(make_key, &screen);
    await(&screen, "new passphrase: ", 1);
    type(&screen, "short");
    ends_with(pid, &screen, BATON_E_invalid_request);
    assert_int_not_equal(stat(path, &st), 0);
}

static int open_box(void **state)
{
    (void)state;
    box_open(&box);
    return 0;
}

static int close_box(void **state)
{
    (void)state;
    box_close(&box);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_passphrase_makes_a_key_a_person_s, open_box, close_box),
        cmocka_unit_test_setup_teardown(two_passphrases_that_differ_make_no_key, open_box,
                                        close_box),
    };
    return cmocka_run_group_tests_name("passphrases", tests, NULL, NULL);
}
