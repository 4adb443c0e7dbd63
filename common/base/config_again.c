/* The configuration read again while a process runs. Called by worker/reload.c and
 * producer/coordinator/reload.c. */
#include "common/base/config_again.h"

#include "common/base/clock.h"
#include "common/base/diag.h"
#include "common/base/metrics.h"
#include "common/base/text.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#define TOLD_MAX 5  /* findings in the log; `baton config check` shows all of them */
#define STILL_MS 30 /* nobody has written for so long */
#define STILL_WAIT_MS 1000
#define STILL_LOOK_NS 10000000L

static void tell_findings(const struct config *old, const struct buf *findings,
                          const struct baton_error *err)
{
    const char *at = buf_ok(findings) && findings->len > 0 ? findings->data : NULL;
    int told = 0;
    for (; at != NULL && *at != '\0' && told < TOLD_MAX; told++) {
        const size_t len = strcspn(at, "\n");
        diag_line(DIAG_error, "config.not_read", D_BYTES("error", at, len),
                  D_TEXT("meaning", "what was read before stays in force"),
                  D_TEXT("mend", "baton config check says all of it; then SIGHUP again"));
        at += len + (at[len] == '\n' ? 1 : 0);
    }
    if (told == 0) {
        diag_line(DIAG_error, "config.not_read", D_TEXT("file", old->path),
                  D_TEXT("error", err->text),
                  D_TEXT("meaning", "what was read before stays in force"));
    }
}

/* ---- half a file ---- */

static bool same_file(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
           a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

/* A regular file: to open another kind could wait for ever, and the process with it. */
static baton_code look(const struct config *old, struct stat *ret_st, struct baton_error *err)
{
    if (stat(old->path, ret_st) != 0) {
        return baton_fail(err, BATON_E_bad_config, "cannot open the configuration %s: %s",
                          text_quote_of(old->path).s, strerror(errno));
    }
    return S_ISREG(ret_st->st_mode)
               ? BATON_OK
               : baton_fail(err, BATON_E_bad_config,
                            "%s is no regular file, and is not read again; put the file itself "
                            "there and send SIGHUP again",
                            text_quote_of(old->path).s);
}

/* Was it written just now? Of a clock that was set back: no. */
static bool is_fresh(const struct stat *st)
{
    const int64_t written = (int64_t)st->st_mtim.tv_sec * 1000 + st->st_mtim.tv_nsec / 1000000;
    const int64_t age = wall_now().v - written;
    return age >= 0 && age < STILL_MS;
}

/* The first half of a file may well be a configuration, with less in it: what was written just now is
 * looked at until nobody writes any more, and what has changed meanwhile is read once more. */
static baton_code load_whole(const struct config *old, const char *const *sets, size_t n_sets,
                             struct config **ret_fresh, struct buf *findings,
                             struct baton_error *err)
{
    const struct mono_ms until = {mono_now().v + STILL_WAIT_MS};
    struct stat before;
    struct stat after;
    while (mono_now().v < until.v) {
        struct config *fresh = NULL;
        baton_code rc = look(old, &before, err);
        if (rc == BATON_OK && is_fresh(&before)) {
            nanosleep(&(struct timespec){0, STILL_LOOK_NS}, NULL);
            continue;
        }
        if (rc == BATON_OK) {
            buf_clear(findings);
            rc = config_load(old->path, sets, n_sets, &fresh, findings, err);
        }
        if (rc == BATON_OK &&
            ((rc = look(old, &after, err)) != BATON_OK || !same_file(&before, &after))) {
            config_free(fresh);
            fresh = NULL;
        }
        if (rc != BATON_OK || fresh != NULL) {
            *ret_fresh = fresh;
            return rc;
        }
    }
    return baton_fail(err, BATON_E_bad_config,
                      "%s is being written; write another file and rename it, or send SIGHUP again "
                      "when it is whole",
                      text_quote_of(old->path).s);
}

baton_code config_load_again(const struct config *old, const char *const *sets, size_t n_sets,
                             struct config **ret_fresh, struct baton_error *err)
{
    struct buf findings = BUF_INIT;
    struct config *fresh = NULL;
    const baton_code rc = load_whole(old, sets, n_sets, &fresh, &findings, err);
    if (rc != BATON_OK) {
        tell_findings(old, &findings, err);
    } else {
        *ret_fresh = fresh;
    }
    buf_done(&findings);
    return rc;
}

/* ---- what differs ---- */

static const char *value_of(const struct config *config, const char *key)
{
    for (size_t i = 0; i < config->n_settings; i++) {
        if (strcmp(config->settings[i].key, key) == 0) {
            return config->settings[i].value;
        }
    }
    return NULL;
}

static void add(struct buf *keys, const char *key)
{
    buf_printf(keys, "%s%s", keys->len > 0 ? ", " : "", key);
}

void config_differs(const struct config *old, const struct config *fresh,
                    enum config_effect (*effect_of)(const char *key, const void *arg),
                    const void *arg, enum config_effect effect, struct buf *ret_keys)
{
    for (size_t i = 0; i < fresh->n_settings; i++) {
        const char *key = fresh->settings[i].key;
        const char *before = value_of(old, key);
        if ((before == NULL || strcmp(before, fresh->settings[i].value) != 0) &&
            effect_of(key, arg) == effect) {
            add(ret_keys, key);
        }
    }
    for (size_t i = 0; i < old->n_settings; i++) { /* what is not there any more */
        const char *key = old->settings[i].key;
        if (value_of(fresh, key) == NULL && effect_of(key, arg) == effect) {
            add(ret_keys, key);
        }
    }
}

/* ---- what is told ---- */

void config_again_tell_not(const char *event, const char *what, baton_code code,
                           const struct baton_error *err)
{
    diag_line(
        DIAG_error, event, D_TEXT("what", what), D_CODE("code", code), D_TEXT("error", err->text),
        D_TEXT("meaning", "what was read before stays in force; mend it and send SIGHUP again"));
    metric_add(METRIC_reloads_failed, 1);
}

void config_again_tell_restart(const struct buf *keys, const char *whose)
{
    char meaning[128];
    if (keys->len > 0 && buf_ok(keys)) {
        snprintf(meaning, sizeof(meaning), "these stay as they were until this %s is restarted",
                 whose);
        diag_line(DIAG_warn, "config.needs_restart", D_TEXT("keys", keys->data),
                  D_TEXT("meaning", meaning));
    }
}
