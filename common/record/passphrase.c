/* Passphrases. Called by keyfile.c. */
#include "common/record/passphrase.h"

#include "common/base/agent_mark.h"
#include "common/base/check.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#define NEW_MIN 8

static baton_code check_person(struct baton_error *err)
{
    const char *mode = getenv("BATON_MODE");
    const char *ci = getenv("CI");
    const char *mark = agent_mark();
    if (mark != NULL) {
        return baton_fail(err, BATON_E_person_required,
                          "the key has a passphrase, which only a person may give, and %s says "
                          "that an agent runs this",
                          mark);
    }
    if (mode != NULL && strcmp(mode, "attended") != 0 && strcmp(mode, "unattended") != 0) {
        return baton_fail(err, BATON_E_bad_mode, "BATON_MODE is neither attended nor unattended");
    }
    bool unattended = mode != NULL ? strcmp(mode, "unattended") == 0 : ci != NULL && ci[0] != '\0';
    if (unattended) {
        return baton_fail(err, BATON_E_unattended_denied,
                          "the key has a passphrase, and nobody is there to give it; run this on a "
                          "terminal, or use a key without one");
    }
    return BATON_OK;
}

/* One line without its newline. */
static baton_code read_line(int tty, const char *prompt, char text[PASSPHRASE_MAX + 1],
                            struct baton_error *err)
{
    size_t len = 0;
    bool too_long = false;
    dprintf(tty, "%s: ", prompt);
    for (;;) {
        char c;
        ssize_t n = read(tty, &c, 1);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0 || c == '\n') {
            break;
        }
        if (len < PASSPHRASE_MAX) {
            text[len++] = c;
        } else {
            too_long = true;
        }
    }
    text[len] = '\0';
    dprintf(tty, "\n");
    if (len == 0 || too_long) {
        return baton_fail(err, BATON_E_invalid_request, "a passphrase has 1 to %d bytes",
                          PASSPHRASE_MAX);
    }
    return BATON_OK;
}

static baton_code ask(int tty, const char *prompt, bool twice, char text[PASSPHRASE_MAX + 1],
                      struct baton_error *err)
{
    char again[PASSPHRASE_MAX + 1] = "";
    baton_code rc = read_line(tty, prompt, text, err);
    if (rc == BATON_OK && twice && strlen(text) < NEW_MIN) {
        rc = baton_fail(err, BATON_E_invalid_request, "a new passphrase has %d bytes at least",
                        NEW_MIN);
    }
    if (rc == BATON_OK && twice && (rc = read_line(tty, "again", again, err)) == BATON_OK &&
        strcmp(text, again) != 0) {
        rc = baton_fail(err, BATON_E_invalid_request, "the two passphrases are not the same");
    }
    OPENSSL_cleanse(again, sizeof(again));
    return rc;
}

baton_code passphrase_ask(const char *prompt, bool twice, char ret_text[PASSPHRASE_MAX + 1],
                          struct baton_error *err)
{
    struct termios before;
    struct termios silent;
    baton_code rc = check_person(err);
    if (rc != BATON_OK) {
        return rc;
    }
    int tty = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);
    if (tty < 0 || tcgetattr(tty, &before) != 0) {
        if (tty >= 0) {
            close(tty);
        }
        return baton_fail(err, BATON_E_unattended_denied,
                          "the key has a passphrase, and there is no terminal to ask for it");
    }
    silent = before;
    silent.c_lflag &= ~(tcflag_t)(ECHO | ECHONL);
    silent.c_lflag |= ICANON;
    tcsetattr(tty, TCSAFLUSH, &silent);
    rc = ask(tty, prompt, twice, ret_text, err);
    tcsetattr(tty, TCSAFLUSH, &before);
    close(tty);
    if (rc != BATON_OK) {
        OPENSSL_cleanse(ret_text, PASSPHRASE_MAX + 1);
    }
    return rc;
}
