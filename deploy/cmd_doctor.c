/*
 * `baton doctor`: looks at everything that a host and its fleet need, and says which command mends what.
 * Listed by deploy/baton.c. The checks are a table; each adds findings.
 * Out: deploy/doctor_keys.c, deploy/doctor_host.c, deploy/doctor_executors.c, deploy/doctor_agents.c,
 * deploy/doctor_log.c, deploy/doctor_rights.c, deploy/doctor_services.c
 */
#include "deploy/verbs.h"

#include "common/base/check.h"
#include "common/base/jsonw.h"
#include "common/base/text.h"
#include "common/record/signer.h"
#include "deploy/doctor.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define INDENT 22 /* where texts stand, behind level and check */

#define LEVEL_WORD(word) #word,
static const char *const level_words[] = {LEVELS(LEVEL_WORD)};
#undef LEVEL_WORD

static void write_mend(struct doctor *d)
{
    buf_add(&d->out, d->mend.data, d->mend.len);
    buf_clear(&d->mend);
}

/* "COMMAND, HINT", or either; whole, however long a command is. */
static void add_mend(struct buf *text, struct mend mend)
{
    buf_add_text(text, mend.command);
    buf_add_text(text, mend.command[0] != '\0' && mend.hint[0] != '\0' ? ", " : "");
    buf_add_text(text, mend.hint);
}

static void found_json(struct doctor *d, enum level level, baton_code code, struct mend mend,
                       const char *why, const char *text)
{
    struct buf whole = BUF_INIT;
    struct jsonw w = jsonw_to(&d->out);
    add_mend(&whole, mend);
    buf_add_char(&whole, '\0');
    jsonw_begin_object(&w);
    jsonw_key_text(&w, "check", d->check);
    jsonw_key_text(&w, "level", level_words[level]);
    jsonw_key_text(&w, "code", code != BATON_OK ? baton_code_word(code) : NULL);
    jsonw_key_text(&w, "text", text);
    jsonw_key_text(&w, "why", level != LEVEL_ok ? why : NULL);
    jsonw_key_text(&w, "mend", buf_ok(&whole) && whole.data[0] != '\0' ? whole.data : NULL);
    jsonw_key_text(&w, "command", mend.command[0] != '\0' ? mend.command : NULL);
    jsonw_end(&w);
    buf_add_char(&d->out, '\n');
    buf_done(&whole);
}

/* "LEVEL  CHECK  text", on a terminal with the text wrapped in its column. */
static void found_line(struct doctor *d, enum level level, const char *text)
{
    struct buf plain = BUF_INIT;
    struct buf wrapped = BUF_INIT;
    text_add(&plain, text, strlen(text), 0);
    const size_t len = plain.len;
    buf_add_char(&plain, '\0');
    buf_printf(&d->out, "%-5s  %-13s  ", level_words[level], d->check);
    if (command_width() > INDENT + 20 && buf_ok(&plain)) {
        text_wrap(&wrapped, plain.data, INDENT, INDENT, command_width());
        buf_add(&d->out, wrapped.data + INDENT, wrapped.len - INDENT);
    } else {
        buf_add(&d->out, plain.data, len);
        buf_add_char(&d->out, '\n');
    }
    buf_done(&plain);
    buf_done(&wrapped);
}

/* Why and mend follow the last of several findings that share them. */
static void found_text(struct doctor *d, enum level level, struct mend mend, const char *why,
                       const char *text)
{
    struct buf whole = BUF_INIT;
    struct buf after = BUF_INIT;
    add_mend(&whole, mend);
    if (level != LEVEL_ok) {
        text_wrap(&after, why, INDENT + 3, INDENT + 3, command_width());
    }
    if (whole.len > 0) {
        buf_printf(&after, "%*s-> ", INDENT, "");
        text_add(&after, whole.data, whole.len, 0);
        buf_add_char(&after, '\n');
    }
    if (after.len != d->mend.len ||
        (after.len > 0 && memcmp(after.data, d->mend.data, after.len) != 0)) {
        write_mend(d);
    }
    found_line(d, level, text);
    buf_clear(&d->mend);
    buf_add(&d->mend, after.data, after.len);
    buf_done(&whole);
    buf_done(&after);
}

void doctor_add_word(struct buf *command, const char *text)
{
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+:@%,=";
    if (text[0] != '\0' && text[strspn(text, plain)] == '\0') {
        buf_add_text(command, text);
        return;
    }
    buf_add_char(command, '\'');
    for (; *text != '\0'; text++) {
        if (*text == '\'') {
            buf_add_text(command, "'\\''");
        } else {
            buf_add_char(command, *text);
        }
    }
    buf_add_char(command, '\'');
}

/* About the configuration that was looked at, as it was looked at, and not the one that lies where it is
 * run. */
static void add_command(const struct doctor *d, const char *command, struct buf *ret_whole)
{
    const bool ours = strncmp(command, "baton ", strlen("baton ")) == 0;
    buf_add_text(ret_whole, command);
    if (ours && d->cmd->config_path != NULL) {
        buf_add_text(ret_whole, " --config ");
        doctor_add_word(ret_whole, d->config->path);
    }
    for (size_t i = 0; ours && i < d->cmd->n_sets; i++) {
        buf_add_text(ret_whole, " --set ");
        doctor_add_word(ret_whole, d->cmd->sets[i]);
    }
    buf_add_char(ret_whole, '\0');
}

void doctor_found(struct doctor *d, enum level level, baton_code code, struct mend mend,
                  const char *why, const char *format, ...)
{
    char text[1024];
    struct buf command = BUF_INIT;
    va_list args;
    add_command(d, mend.command, &command);
    mend.command = buf_ok(&command) ? command.data : mend.command;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    d->counts[level]++;
    if (level == LEVEL_error && d->worst == BATON_OK) {
        d->worst = code;
    }
    why = why != NULL ? why : d->why;
    if (d->cmd->json) {
        found_json(d, level, code, mend, why, text);
    } else {
        found_text(d, level, mend, why, text);
    }
    buf_done(&command);
}

void doctor_found_lines(struct doctor *d, enum level level, baton_code code, struct mend mend,
                        const struct buf *lines)
{
    for (size_t at = 0; at < lines->len;) {
        const char *end = memchr(lines->data + at, '\n', lines->len - at);
        size_t n = end != NULL ? (size_t)(end - lines->data) - at : lines->len - at;
        doctor_found(d, level, code, mend, NULL, "%.*s", (int)n, lines->data + at);
        at += n + 1;
    }
}

void doctor_found_agent(void *arg, baton_code code, const char *mend, const char *text)
{
    enum level level = code != BATON_OK ? LEVEL_error : mend[0] != '\0' ? LEVEL_warn : LEVEL_ok;
    bool command = strncmp(mend, "baton ", strlen("baton ")) == 0;
    doctor_found(arg, level, code, command ? MEND_COMMAND(mend) : MEND_HINT(mend), NULL, "%s",
                 text);
}

static void check_configuration(struct doctor *d)
{
    struct buf warnings = BUF_INIT;
    doctor_found(d, LEVEL_ok, BATON_OK, MEND_NONE, NULL, "%s, %zu services, log %s",
                 d->config->path, d->config->n_services,
                 d->config->log == LOG_KIND_local ? "local" : "kafka");
    config_warnings(d->config, &warnings);
    doctor_found_lines(d, LEVEL_warn, BATON_OK,
                       MEND_HINT("as it says; `baton config check` tells when it is right"),
                       &warnings);
    buf_done(&warnings);
}

static void on_works(void *arg, const struct service_id *service, const struct plain_id *profile)
{
    struct doctor *d = arg;
    doctor_probed_add(&d->probed, service, profile);
}

static void check_agents(struct doctor *d)
{
    doctor_agents(d->config, command_flag(d->cmd, "probe"), doctor_found_agent, on_works, d);
}

/* In this order: what comes later may rest on what came before. why: what it means for turns if something is
 * wrong there. */
static const struct {
    const char *name;
    void (*run)(struct doctor *d);
    const char *why;
} checks[] = {
    {"configuration", check_configuration, "a worker cannot do a turn as it is configured"},
    {"versions", doctor_check_versions, "this program may meet faults that later ones do not have"},
    {"trust", doctor_check_trust, "whose records are believed is not known, so none is taken"},
    {"keys", doctor_check_keys, "without its key nobody can publish, operate or run a worker here"},
    {"proof", doctor_check_proof, "roles and payloads can be forged"},
    {"executors", doctor_check_executors, "an agent that reads a key can sign as this service"},
    {"agents", check_agents,
     "attempts with it fail, and their turns go on elsewhere or are parked"},
    {"guard", doctor_check_guard, "without it no executor can be started"},
    {"folders", doctor_check_folders, "stores hold what agents said, and are for the worker alone"},
    {"disk", doctor_check_disk, "without room nothing is decided: what runs goes on, turns wait"},
    {"log", doctor_check_log, "nothing can be published or decided without the log; turns wait"},
    {"topics", doctor_check_topics,
     "records would be lost or misplaced, so workers and publishers refuse to use it"},
    {"rights", doctor_check_rights, "turns that need it wait"},
    {"services", doctor_check_services, "turns of the service wait"},
    {"stores", doctor_check_stores, "a worker does not start on a damaged store"},
    {"clock", doctor_check_clock, "waits and expiries that others signed are judged by it"},
};

static int run(struct command *cmd)
{
    struct doctor d = {.cmd = cmd, .out = BUF_INIT, .mend = BUF_INIT};
    struct baton_error err = {BATON_OK, ""};
    baton_code rc = command_config(cmd, &d.config, &err);
    if (rc != BATON_OK) {
        return command_fail(cmd, rc, &err);
    }
    process_hold_keys();
    for (size_t i = 0; i < COUNT_OF(checks); i++) {
        d.check = checks[i].name;
        d.why = checks[i].why;
        checks[i].run(&d);
        write_mend(&d);
        if (!command_print(cmd, &d.out)) {
            break;
        }
    }
    command_note(cmd, "%d errors, %d warnings", d.counts[LEVEL_error], d.counts[LEVEL_warn]);
    doctor_probed_done(&d.probed);
    log_close(d.log);
    config_free(d.config);
    buf_done(&d.out);
    buf_done(&d.mend);
    return baton_code_exit(d.worst);
}

/* clang-format off */
static const struct command_option options[] = {
    {.name = "probe", .kind = OPTION_flag,
     .help = "Ask the provider of each agent program for one short answer, with each credential profile, and clear those that answer and were kept as refused. It has its price."},
};
/* clang-format on */

const struct baton_command cmd_doctor = {
    .name = "doctor",
    .summary = "look at everything that this host and its fleet need",
    .usage = "[--probe] [--json]",
    .description =
        "Looks at configuration, versions, trust, keys and their permissions, proofs, executors, "
        "agents, guard, folders, disk, log, topics, rights, services (workers, partitions, what "
        "waits, "
        "what "
        "hangs, what is parked), stores and clock. Each finding is ok, warn or error, and says "
        "what is so, why it matters, and what mends it: behind the arrow, once for several. With "
        "--json `command` is that command, to be run as it stands, where one suffices. Each "
        "`executor.prefix` is tried: what it starts looks whether it can open a key. Changes "
        "nothing, but that with --probe a credential profile that was refused and works now is "
        "taken again.",
    .examples = "baton doctor\nbaton doctor --json | grep '\"level\":\"error\"'\n",
    .options = options,
    .n_options = COUNT_OF(options),
    .exits = "0 without errors (warnings do not count); else the status of the first error, from "
             "which others may follow.\n",
    .run = run,
};
