/*
 * `baton config check | show`. Stands here because a check looks at configuration, trust and
 * programs together. Listed by deploy/baton.c.
 */
#include "deploy/verbs.h"

#include "common/base/check.h"
#include "common/base/jsonw.h"
#include "common/base/limits.h"
#include "common/base/safe_file.h"
#include "common/base/text.h"
#include "common/log/log.h"
#include "common/record/trust.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* ---- show ---- */

static int run_show(struct command *cmd)
{
    struct config *config = NULL;
    struct baton_error err = {BATON_OK, ""};
    struct buf out = BUF_INIT;
    if (command_flag(cmd, "keys")) { /* the same for every configuration, and without one */
        config_document(cmd->json, &out);
        command_print(cmd, &out);
        buf_done(&out);
        return 0;
    }
    baton_code rc = command_config(cmd, &config, &err);
    if (rc != BATON_OK) {
        return command_fail(cmd, rc, &err);
    }
    config_show(config, cmd->json, &out);
    command_print(cmd, &out);
    buf_done(&out);
    config_free(config);
    return 0;
}

/* clang-format off */
static const struct command_option show_options[] = {
    {.name = "keys", .kind = OPTION_flag,
     .help = "Documents every key instead: type, default, range, meaning."},
};
/* clang-format on */

static const struct baton_command cmd_config_show = {
    .name = "show",
    .summary = "print every key with its value and where it comes from",
    .usage = "[--keys] [--json]",
    .description =
        "Values come from the default, the file, or --set. Secrets never appear: a file's "
        "path and a variable's name do.",
    .options = show_options,
    .n_options = COUNT_OF(show_options),
    .examples = "baton config show\n# what the keys mean\nbaton config show --keys\n",
    .run = run_show,
};

/* ---- check ---- */

/* May this service pass the role along its chain? Otherwise the line that is missing. */
static void check_passes(const struct config *config, const struct trust *trust,
                         const struct config_service *service, enum role role, struct buf *warnings)
{
    const struct trust_principal *who = trust_principal_find(trust, service->name.s);
    const struct config_role *ours = &config->roles[role];
    for (size_t i = 0; i < ours->n_chain; i++) {
        const char *to = ours->chain[i].s;
        if (strcmp(to, service->name.s) != 0 && !trust_may_pass(who, to, role)) {
            buf_printf(warnings,
                       "trust: %s may not pass %s to %s, so no such turn is delegated there; in "
                       "%s.yaml put `pass: {%s: [%s]}`, or let `baton keys apply` do it\n",
                       service->name.s, role_word(role), to, service->name.s, to, role_word(role));
        }
    }
}

/* Does every service have a principal that may serve its roles and pass them on? Not a mistake of
 * the file: a warning. */
static void check_rights(const struct config *config, const struct trust *trust,
                         struct buf *warnings)
{
    for (size_t i = 0; i < config->n_services; i++) {
        const struct config_service *service = &config->services[i];
        const struct trust_principal *who = trust_principal_find(trust, service->name.s);
        for (int role = 0; role < ROLE_COUNT; role++) {
            if ((service->roles & ROLE_BIT(role)) == 0) {
                continue;
            }
            if (!trust_may_serve(who, (enum role)role)) {
                buf_printf(warnings,
                           "trust: service %s may not serve the role %s; in %s.yaml put `serve: "
                           "[%s]`, or let `baton keys apply` do it\n",
                           service->name.s, role_word((enum role)role), service->name.s,
                           role_word((enum role)role));
            }
            check_passes(config, trust, service, (enum role)role, warnings);
        }
    }
}

/* A file of a secret that the driver will read: the rules are those of a private key. */
static baton_code check_secret(const char *path, const char *key, struct buf *findings,
                               struct baton_error *err)
{
    static char bytes[LIMIT_SECRET + 1];
    struct baton_error own = {BATON_OK, ""};
    size_t len = 0;
    if (path == NULL) {
        return BATON_OK;
    }
    baton_code rc = safe_read(path, SAFE_secret, LIMIT_SECRET, bytes, &len, &own);
    explicit_bzero(bytes, sizeof(bytes));
    if (rc != BATON_OK) {
        buf_printf(findings, "%s: %s\n", key, own.text);
    }
    return rc != BATON_OK && err->code == BATON_OK ? baton_fail(err, rc, "%s: %s", key, own.text)
                                                   : err->code;
}

/* What a driver says of its section, and the files that it will need; no broker is asked. */
static baton_code check_log(const struct config *config, struct buf *findings,
                            struct baton_error *err)
{
    if (config->log != LOG_KIND_kafka ||
        log_settings_check(config, findings, err) == BATON_E_no_memory) {
        return err->code;
    }
    check_secret(config->kafka.sasl_password_file, "kafka.sasl.password.file", findings, err);
    check_secret(config->kafka.key, "kafka.key", findings, err);
    const struct {
        const char *key;
        const char *path;
    } public[] = {{"kafka.ca", config->kafka.ca}, {"kafka.certificate", config->kafka.certificate}};
    for (size_t i = 0; i < COUNT_OF(public); i++) {
        if (public[i].path != NULL && access(public[i].path, R_OK) != 0) {
            buf_printf(findings, "%s: cannot read %s: %s\n", public[i].key,
                       text_quote_of(public[i].path).s, strerror(errno));
            if (err->code == BATON_OK) {
                baton_fail(err, BATON_E_bad_config, "%s: cannot read %s: %s", public[i].key,
                           text_quote_of(public[i].path).s, strerror(errno));
            }
        }
    }
    return err->code;
}

/* findings: what is wrong; warnings: what will not work on this host as it is. */
static baton_code check(const struct config *config, struct buf *findings, struct buf *warnings,
                        struct baton_error *err)
{
    struct trust *trust = NULL;
    struct baton_error log_err = {BATON_OK, ""};
    baton_code log_rc = check_log(config, findings, &log_err);
    baton_code rc = trust_load(config->trust, &trust, findings, err);
    if (rc == BATON_OK) {
        check_rights(config, trust, warnings);
    } else if (!config->proof_required && rc != BATON_E_key_unsafe && rc != BATON_E_bad_config) {
        buf_add_text(warnings, "proof is off and there is no trust folder\n");
        rc = BATON_OK;
    }
    trust_free(trust);
    config_warnings(config, warnings);
    return log_rc != BATON_OK ? baton_fail(err, log_rc, "%s", log_err.text) : rc;
}

static int run_check(struct command *cmd)
{
    struct config *config = NULL;
    struct baton_error err = {BATON_OK, ""};
    struct buf findings = BUF_INIT;
    struct buf warnings = BUF_INIT;
    struct buf out = BUF_INIT;
    baton_code rc = command_config(cmd, &config, &err);
    if (rc != BATON_OK) {
        return command_fail(cmd, rc, &err);
    }
    rc = check(config, &findings, &warnings, &err);
    if (rc != BATON_OK && findings.len == 0) {
        buf_add_text(&findings, err.text);
        buf_add_char(&findings, '\n');
    }
    if (cmd->json) {
        struct jsonw w = jsonw_to(&out);
        jsonw_begin_object(&w);
        jsonw_key_text(&w, "status", rc == BATON_OK ? "ok" : "failed");
        jsonw_key_text(&w, "path", config->path);
        if (rc != BATON_OK) {
            jsonw_key_text(&w, "code", baton_code_word(rc));
            jsonw_key_text(&w, "error", err.text);
        }
        jsonw_key_lines(&w, "findings", findings.data, findings.len);
        jsonw_key_lines(&w, "warnings", warnings.data, warnings.len);
        jsonw_end(&w);
        buf_add_char(&out, '\n');
    } else {
        text_add_lines(&out, findings.data, findings.len, 0, "error: ");
        text_add_lines(&out, warnings.data, warnings.len, 0, "warning: ");
        if (rc == BATON_OK) {
            buf_add_text(&out, "ok ");
            text_add(&out, config->path, strlen(config->path), 0);
            buf_printf(&out, " (%zu services)\n", config->n_services);
        }
    }
    command_print(cmd, &out);
    buf_done(&out);
    buf_done(&findings);
    buf_done(&warnings);
    config_free(config);
    return baton_code_exit(rc);
}

static const struct baton_command cmd_config_check = {
    .name = "check",
    .summary = "prove the configuration and the trust folder",
    .usage = "[--json]",
    .description =
        "Reports every mistake at once, with line and column: unknown keys, values out of "
        "range, chains that do not end, services without a name that topics can have, settings "
        "that librdkafka does not know or that Baton sets itself, a password's file that others "
        "can read; and what is wrong in the trust folder. Asks no broker. Programs that are not to "
        "be had on this host and "
        "rights that are missing are warnings.",
    .examples = "baton config check\nbaton config check --config /etc/baton/baton.yaml --json\n",
    .run = run_check,
};

static const struct baton_command *const subcommands[] = {&cmd_config_check, &cmd_config_show};

const struct baton_command cmd_config = {
    .name = "config",
    .summary = "check and show the configuration",
    .usage = "check|show",
    .description =
        "The configuration is one file of YAML: --config FILE, else $BATON_CONFIG, else "
        "./baton.yaml, else /etc/baton/baton.yaml. --set KEY=VALUE goes before the file.",
    .subcommands = subcommands,
    .n_subcommands = COUNT_OF(subcommands),
    .examples = "baton config check\nbaton config show\n",
};
