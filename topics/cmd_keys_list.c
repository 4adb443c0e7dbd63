/* `baton keys list`: who is trusted, with which keys and rights. A part of the verb in cmd_keys.c.
 */
#include "topics/cmd_keys.h"

#include "common/base/check.h"
#include "common/base/jsonw.h"
#include "common/record/keys.h"

#include <stdio.h>
#include <string.h>

static struct keys_folders folders_of(const struct config *config)
{
    return (struct keys_folders){config->keys, config->trust};
}

/* Gets each key, by the name of its principal; those of nobody last. */
typedef void key_fn(const struct trust_key *key, void *arg);

static void each_key(const struct trust *trust, key_fn *fn, void *arg)
{
    for (size_t p = 0; p <= trust_principals(trust); p++) {
        const struct trust_principal *who =
            p < trust_principals(trust) ? trust_principal_at(trust, p) : NULL;
        for (size_t i = 0; i < trust_keys(trust); i++) {
            if (trust_key_owner(trust_key_at(trust, i)) == who) {
                fn(trust_key_at(trust, i), arg);
            }
        }
    }
}

struct listing {
    struct table *table; /* text */
    struct buf *out;     /* JSON */
    const struct keys_folders *folders;
    struct buf *findings;
    struct wall_ms now;
};

static void key_row(const struct trust_key *key, void *arg)
{
    struct listing *l = arg;
    const struct trust_principal *who = trust_key_owner(key);
    int64_t days = (l->now.v - trust_key_made_at(key).v) / (24LL * 3600 * 1000);
    char age[40];
    snprintf(age, sizeof(age), days == 1 ? "%lld day" : "%lld days",
             (long long)(days < 0 ? 0 : days));
    table_text(l->table, who == NULL ? "(nobody)" : trust_principal_name(who));
    table_text(l->table, who == NULL ? NULL : principal_kind_word(trust_principal_kind(who)));
    table_text(l->table, trust_key_id(key));
    table_text(l->table, age);
    table_text(l->table, keys_here_text(keys_here(l->folders, key, l->findings)));
    table_text(l->table, trust_key_revoked(key) ? "revoked" : "trusted");
}

static bool list_table(struct command *cmd, const struct trust *trust,
                       const struct keys_folders *folders, struct buf *findings)
{
    static const char *const titles[] = {"NAME", "KIND", "KEY", "AGE", "PRIVATE HERE", "STATE"};
    struct listing l = {.folders = folders, .findings = findings, .now = wall_now()};
    l.table = table_new(titles, COUNT_OF(titles));
    if (l.table == NULL) {
        return false;
    }
    each_key(trust, key_row, &l);
    bool ok = command_table(cmd, l.table);
    table_free(l.table);
    return ok;
}

static void key_json(const struct trust_key *key, void *arg)
{
    struct listing *l = arg;
    const struct trust_principal *who = trust_key_owner(key);
    enum keys_here here = keys_here(l->folders, key, l->findings);
    struct buf rights = BUF_INIT;
    struct jsonw w = jsonw_to(l->out);
    jsonw_begin_object(&w);
    jsonw_key_text(&w, "name", who == NULL ? NULL : trust_principal_name(who));
    jsonw_key_text(&w, "kind", who == NULL ? NULL : principal_kind_word(trust_principal_kind(who)));
    jsonw_key_text(&w, "key", trust_key_id(key));
    jsonw_key_bool(&w, "revoked", trust_key_revoked(key));
    jsonw_key_text(&w, "made_at", wall_text(trust_key_made_at(key)).s);
    jsonw_key_text(&w, "private_here", here == KEYS_HERE_no ? NULL : keys_here_text(here));
    jsonw_key(&w, "rights");
    jsonw_begin_array(&w);
    if (who != NULL) {
        trust_rights(who, &rights);
    }
    for (const char *at = rights.data; at != NULL && *at != '\0';) {
        size_t n = strcspn(at, "\n");
        jsonw_bytes(&w, at, n);
        at += n + (at[n] == '\n' ? 1 : 0);
    }
    jsonw_end(&w);
    jsonw_end(&w);
    buf_add_char(l->out, '\n');
    buf_done(&rights);
}

static void list_text(struct command *cmd, const struct trust *trust,
                      const struct keys_folders *folders, struct buf *findings)
{
    struct buf out = BUF_INIT;
    buf_printf(&out, "fleet %s\n\n", trust_fleet(trust));
    if (command_print(cmd, &out) && list_table(cmd, trust, folders, findings)) {
        buf_add_char(&out, '\n');
        for (size_t i = 0; i < trust_principals(trust); i++) {
            trust_rights(trust_principal_at(trust, i), &out);
        }
        command_print(cmd, &out);
    }
    buf_done(&out);
}

static void list_json(struct command *cmd, const struct trust *trust,
                      const struct keys_folders *folders, struct buf *findings)
{
    struct buf out = BUF_INIT;
    struct listing l = {.out = &out, .folders = folders, .findings = findings};
    each_key(trust, key_json, &l);
    command_print(cmd, &out);
    buf_done(&out);
}

/* Each finding is a line of its own for people; a program gets the first one in the error. */
static baton_code tell_findings(struct command *cmd, const char *findings, struct baton_error *err)
{
    size_t count = 0;
    for (const char *at = findings; *at != '\0'; count++) {
        size_t n = strcspn(at, "\n");
        command_note(cmd, "%.*s", (int)n, at);
        at += n + (at[n] == '\n' ? 1 : 0);
    }
    return baton_fail(err, BATON_E_bad_config, "%zu findings in keys and trust, the first: %.*s",
                      count, (int)strcspn(findings, "\n"), findings);
}

static int run_list(struct command *cmd)
{
    struct config *config = NULL;
    struct trust *trust = NULL;
    struct buf findings = BUF_INIT;
    struct baton_error err = {BATON_OK, ""};
    size_t count = 0;
    baton_code rc = command_config(cmd, &config, &err);
    int status = 0;
    if (rc == BATON_OK) {
        rc = trust_read(config->trust, &trust, &findings, &count, &err);
    }
    if (rc == BATON_OK) {
        struct keys_folders folders = folders_of(config);
        if (cmd->json) {
            list_json(cmd, trust, &folders, &findings);
        } else {
            list_text(cmd, trust, &folders, &findings);
        }
        if (findings.len > 0) {
            rc = tell_findings(cmd, findings.data, &err);
        }
    }
    if (rc != BATON_OK) {
        status = command_fail(cmd, rc, &err);
    }
    buf_done(&findings);
    trust_free(trust);
    config_free(config);
    return status;
}

const struct baton_command cmd_keys_list = {
    .name = "list",
    .summary = "show who is trusted, with which keys and rights",
    .usage = "[--json]",
    .description =
        "Shows every key of the trust folder: whose it is, its id and age, whether this host holds "
        "the private half, and the rights of each principal as sentences. Findings end the "
        "list and set the exit status.",
    .examples = "baton keys list\n# who may create turns, for a script\nbaton keys list --json\n",
    .run = run_list,
};
