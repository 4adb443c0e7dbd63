/* The configuration read again while a process runs. Called by worker/reload.c and
 * producer/coordinator/reload.c. */
#include "common/base/config_again.h"

#include "common/base/diag.h"

#include <string.h>

#define TOLD_MAX 5 /* findings in the log; `baton config check` shows all of them */

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

baton_code config_load_again(const struct config *old, const char *const *sets, size_t n_sets,
                             struct config **ret_fresh, struct baton_error *err)
{
    struct buf findings = BUF_INIT;
    const baton_code rc = config_load(old->path, sets, n_sets, ret_fresh, &findings, err);
    if (rc != BATON_OK) {
        tell_findings(old, &findings, err);
    }
    buf_done(&findings);
    return rc;
}

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
