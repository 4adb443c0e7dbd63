/*
 * `baton doctor`: looks at everything that a host needs, and says which command mends what.
 * Listed by deploy/baton.c. The checks are a table; each adds findings.
 */
#include "deploy/verbs.h"

#include "common/base/check.h"
#include "common/base/clock.h"
#include "common/base/jsonw.h"
#include "common/base/quantity.h"
#include "common/base/safe_file.h"
#include "common/base/text.h"
#include "common/log/log.h"
#include "common/process/child.h"
#include "common/record/keyfile.h"
#include "common/record/keys.h"
#include "common/record/trust.h"
#include "common/store/store.h"
#include "deploy/doctor_agents.h"
#include "deploy/doctor_profiles.h"
#include "deploy/stores.h"
#include "producer/identity.h"
#include "topics/provision.h"
#include "topics/service_view.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define DISK_ENOUGH (256LL * 1024 * 1024)
#define DISK_NONE (16LL * 1024 * 1024)    /* the log cannot even be compacted any more */
#define CLOCK_EARLIEST_MS 1704067200000LL /* 2024-01-01: before this program was written */
#define CLOCK_AHEAD_MS 60000
#define WAITING_LONG_MS 60000

/* LEVEL(word, marks an error?) */
#define LEVELS(LEVEL)                                                                              \
    LEVEL(ok, false)                                                                               \
    LEVEL(warn, false)                                                                             \
    LEVEL(error, true)

#define LEVEL_ENUM(word, bad) LEVEL_##word,
enum level { LEVELS(LEVEL_ENUM) LEVEL_COUNT };
#undef LEVEL_ENUM
#define LEVEL_WORD(word, bad) #word,
static const char *const level_words[] = {LEVELS(LEVEL_WORD)};
#undef LEVEL_WORD

struct doctor {
    struct command *cmd;
    struct config *config;
    struct log *log; /* NULL: it cannot be opened */
    const char *check;
    struct buf out;
    int counts[LEVEL_COUNT];
    baton_code worst; /* code of the first error */
    char mend[4200];  /* what mends the findings before, not written yet: once for several */
    struct doctor_probed probed; /* profiles that work */
};

static void write_mend(struct doctor *d)
{
    if (d->mend[0] != '\0') {
        buf_printf(&d->out, "%22s-> %s\n", "", d->mend);
    }
    d->mend[0] = '\0';
}

/* A finding: what, and the command that mends it ("" for none). */
static void found(struct doctor *d, enum level level, baton_code code, const char *mend,
                  const char *format, ...) BATON_PRINTF(5, 6);
static void found(struct doctor *d, enum level level, baton_code code, const char *mend,
                  const char *format, ...)
{
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    d->counts[level]++;
    if (level == LEVEL_error && d->worst == BATON_OK) {
        d->worst = code;
    }
    if (d->cmd->json) {
        struct jsonw w = jsonw_to(&d->out);
        jsonw_begin_object(&w);
        jsonw_key_text(&w, "check", d->check);
        jsonw_key_text(&w, "level", level_words[level]);
        jsonw_key_text(&w, "code", code != BATON_OK ? baton_code_word(code) : NULL);
        jsonw_key_text(&w, "text", text);
        jsonw_key_text(&w, "mend", mend[0] != '\0' ? mend : NULL);
        jsonw_end(&w);
        buf_add_char(&d->out, '\n');
        return;
    }
    if (strcmp(d->mend, mend) != 0) {
        write_mend(d);
    }
    buf_printf(&d->out, "%-5s  %-13s  ", level_words[level], d->check);
    text_add(&d->out, text, strlen(text), 0);
    buf_add_char(&d->out, '\n');
    snprintf(d->mend, sizeof(d->mend), "%s", mend);
}

/* Each line of findings of another part as one. */
static void found_lines(struct doctor *d, enum level level, baton_code code, const char *mend,
                        const struct buf *lines)
{
    for (size_t at = 0; at < lines->len;) {
        const char *end = memchr(lines->data + at, '\n', lines->len - at);
        size_t n = end != NULL ? (size_t)(end - lines->data) - at : lines->len - at;
        found(d, level, code, mend, "%.*s", (int)n, lines->data + at);
        at += n + 1;
    }
}

/* ---- the checks ---- */

static void check_configuration(struct doctor *d)
{
    struct buf warnings = BUF_INIT;
    found(d, LEVEL_ok, BATON_OK, "", "%s, %zu services, log %s", d->config->path,
          d->config->n_services, d->config->log == LOG_KIND_local ? "local" : "kafka");
    config_warnings(d->config, &warnings);
    found_lines(d, LEVEL_warn, BATON_OK,
                "install the program, or correct services.….executor in the configuration",
                &warnings);
    buf_done(&warnings);
}

static void check_trust(struct doctor *d)
{
    struct trust *trust = NULL;
    struct buf findings = BUF_INIT;
    struct baton_error err = {BATON_OK, ""};
    baton_code rc = trust_load(d->config->trust, &trust, &findings, &err);
    if (rc == BATON_OK) {
        found(d, LEVEL_ok, BATON_OK, "", "%s, fleet %s", d->config->trust, trust_fleet(trust));
    } else if (findings.len > 0) {
        found_lines(d, LEVEL_error, rc, "baton keys list", &findings);
    } else {
        found(d, d->config->proof_required ? LEVEL_error : LEVEL_warn, rc,
              rc == BATON_E_key_unsafe ? "" : "baton keys apply", "%s", err.text);
    }
    trust_free(trust);
    buf_done(&findings);
}

/* The private key of one principal: may it be used, is it here? True: both. */
static bool check_private(struct doctor *d, const char *name, const char *what)
{
    char path[4096];
    char mend[160];
    struct key_id id;
    bool encrypted = false;
    struct baton_error err = {BATON_OK, ""};
    baton_code rc = BATON_E_key_not_found;
    int n = snprintf(path, sizeof(path), "%s/%s.pem", d->config->keys, name);
    if (n > 0 && (size_t)n < sizeof(path)) {
        rc = keyfile_private_id(path, &id, &encrypted, &err);
    }
    if (rc == BATON_E_key_not_found) {
        snprintf(mend, sizeof(mend), "baton keys generate %s, if this is the host for it", name);
        found(d, LEVEL_warn, BATON_OK, mend, "%s has no private key here: %s", name, what);
    } else if (rc != BATON_OK) {
        found(d, LEVEL_error, rc, "", "%s", err.text);
    }
    return rc == BATON_OK;
}

/* What this host needs to publish and to run workers. */
static bool check_private_all(struct doctor *d)
{
    char identity[ID_MAX + 1];
    struct baton_error err = {BATON_OK, ""};
    baton_code rc = safe_folder_check(d->config->keys, SAFE_secret, &err);
    if (rc == BATON_OK) {
        rc = identity_name(d->config, identity, &err);
    }
    if (rc != BATON_OK) {
        found(d, LEVEL_error, rc, "", "%s", err.text);
        return false;
    }
    bool whole = check_private(d, identity, "nothing can be published or operated");
    for (size_t i = 0; i < d->config->n_services; i++) {
        whole = check_private(d, d->config->services[i].name.s, "no worker of it can run") && whole;
    }
    return whole;
}

static void check_keys(struct doctor *d)
{
    bool whole = true;
    struct keys_plan plan = {NULL, 0};
    struct baton_error err = {BATON_OK, ""};
    baton_code rc = keys_plan_config(d->config, &plan, &err);
    if (rc != BATON_OK) {
        found(d, LEVEL_error, rc, "", "%s", err.text);
        whole = false;
    } else if (plan.count == 0 && d->config->proof_required) {
        whole = check_private_all(d);
    }
    if (whole && plan.count == 0) {
        found(d, LEVEL_ok, BATON_OK, "", "%s has the private keys of %s and of every service",
              d->config->keys, d->config->identity.s[0] != '\0' ? d->config->identity.s : "you");
    }
    /* On a host of a fleet only some of the keys belong: what is lacking is no error. */
    for (size_t i = 0; i < plan.count; i++) {
        found(d, LEVEL_warn, BATON_OK, "baton keys apply", "lacking: %s", plan.steps[i].text);
    }
    keys_plan_done(&plan);
}

static void check_proof(struct doctor *d)
{
    if (d->config->proof_required) {
        found(d, LEVEL_ok, BATON_OK, "", "required: every record is verified");
    } else {
        found(d, LEVEL_warn, BATON_OK, "set `proof: required` in the configuration",
              "proof is off: records are not verified, whoever can write to the log can create "
              "turns");
    }
}

/* Executors under our own user can read our keys (RECORD.md section 5). */
static void check_executors(struct doctor *d)
{
    size_t same = 0;
    const char *first = "";
    for (size_t i = 0; i < d->config->n_services; i++) {
        const struct config_service *service = &d->config->services[i];
        if (service->executor.kind != EXECUTOR_KIND_callback && service->executor.n_prefix == 0) {
            first = same == 0 ? service->name.s : first;
            same++;
        }
    }
    if (same > 0 && access(d->config->keys, R_OK | X_OK) == 0) {
        found(d, LEVEL_warn, BATON_OK,
              "run executors under another user: executor.prefix, worker/EXECUTOR.md",
              "executors of %zu services (%s%s) run under the worker's user and can read %s", same,
              first, same > 1 ? ", …" : "", d->config->keys);
    } else {
        found(d, LEVEL_ok, BATON_OK, "", "no executor can read the keys as this user");
    }
}

static void on_agent(void *arg, baton_code code, const char *mend, const char *text)
{
    enum level level = code != BATON_OK ? LEVEL_error : mend[0] != '\0' ? LEVEL_warn : LEVEL_ok;
    found(arg, level, code, mend, "%s", text);
}

static void on_works(void *arg, const struct service_id *service, const struct plain_id *profile)
{
    struct doctor *d = arg;
    doctor_probed_add(&d->probed, service, profile);
}

static void check_agents(struct doctor *d)
{
    doctor_agents(d->config, command_flag(d->cmd, "probe"), on_agent, on_works, d);
}

static void check_guard(struct doctor *d)
{
    struct baton_error err = {BATON_OK, ""};
    char *path = NULL;
    baton_code rc = child_guard_find(NULL, &path, &err);
    if (rc != BATON_OK) {
        found(d, LEVEL_error, rc, "install baton-guard beside baton", "%s", err.text);
    } else {
        found(d, LEVEL_ok, BATON_OK, "", "%s", path);
    }
    free(path);
}

static void check_log(struct doctor *d)
{
    struct baton_error err = {BATON_OK, ""};
    bool kafka = d->config->log == LOG_KIND_kafka;
    baton_code rc = log_open(d->config, &d->log, &err);
    if (rc != BATON_OK) {
        d->log =
            NULL; /* the brokers' own text says what to do: the network, or user and password */
        found(d, LEVEL_error, rc,
              rc == BATON_E_service_unavailable && !kafka ? "baton topics apply" : "", "%s",
              err.text);
    } else if (kafka) {
        const bool sasl = d->config->kafka.sasl_username[0] != '\0';
        found(d, LEVEL_ok, BATON_OK, "", "kafka at %s by %s%s%s, cluster %s",
              d->config->kafka_brokers, d->config->kafka.security, sasl ? " as " : "",
              d->config->kafka.sasl_username, log_cluster(d->log));
    } else {
        found(d, LEVEL_ok, BATON_OK, "", "local, %s", log_cluster(d->log));
    }
}

static void found_topic(struct doctor *d, const struct provision_step *step)
{
    switch (step->what) {
    case PROVISION_create:
        found(d, LEVEL_error, BATON_E_topic_missing, "baton topics apply", "topic %s is missing",
              step->name.s);
        break;
    case PROVISION_mend:
        found(d, LEVEL_error, BATON_E_topic_missing, "baton topics apply", "%s", step->text);
        break;
    case PROVISION_note:
        found(d, LEVEL_warn, BATON_OK, "", "%s", step->text);
        break;
    case PROVISION_refuse:
        found(d, LEVEL_error, BATON_E_topic_missing, "", "%s", step->text);
        break;
    case PROVISION_hidden:
    case PROVISION_keep:
    case PROVISION_surplus:
    case PROVISION_COUNT:
        break;
    }
}

static void check_topics(struct doctor *d)
{
    struct provision_plan plan = {0};
    struct baton_error err = {BATON_OK, ""};
    size_t kept = 0;
    size_t single = 0;
    if (d->log == NULL) {
        return;
    }
    baton_code rc = provision_plan_make(d->config, d->log, &plan, &err);
    if (rc != BATON_OK) {
        found(d, LEVEL_error, rc, "", "%s", err.text);
        return;
    }
    for (size_t i = 0; i < plan.count; i++) {
        found_topic(d, &plan.steps[i]);
        kept += plan.steps[i].what == PROVISION_keep ? 1 : 0;
        single += plan.steps[i].what == PROVISION_keep && plan.steps[i].found.copies == 1 ? 1 : 0;
    }
    if (plan.n_changes == 0 && plan.n_refused == 0 && plan.n_hidden == 0) {
        found(d, LEVEL_ok, BATON_OK, "", "%zu topics are as they should be", kept);
    } else if (plan.n_hidden > 0) { /* ordinary where each service has its own rights */
        found(d, kept > 0 ? LEVEL_ok : LEVEL_warn, BATON_OK,
              kept > 0 ? "" : "baton topics plan --acl, for whoever gives rights on the cluster",
              "%zu topics are as they should be; %zu may not be looked at by this principal", kept,
              plan.n_hidden);
    }
    if (single > 0 && d->config->log == LOG_KIND_kafka) {
        found(d, LEVEL_warn, BATON_OK,
              "for more than a trial: three brokers, and topics that are made on them",
              "%zu topics have one copy each: what that broker's disk loses is lost", single);
    }
    provision_plan_done(&plan);
}

/* What turns of a service wait for because it cannot be written. */
static void found_blocked(struct doctor *d, const char *service, const struct blocked_note *note)
{
    for (size_t k = 0; k < note->count; k++) {
        const struct blocked_target *target = &note->targets[k];
        const char *mend = target->code == BATON_E_not_permitted
                               ? "baton topics plan --acl, for whoever gives rights on the cluster"
                               : "baton topics apply";
        found(d, LEVEL_error, target->code, mend,
              "%s: worker %s cannot write to %s since %s: %s; its turns wait", service,
              note->worker.s, target->topic, wall_text(target->since).s,
              target->cause[0] != '\0' ? target->cause : baton_code_text(target->code));
    }
}

static void check_services(struct doctor *d)
{
    for (size_t i = 0; d->log != NULL && i < d->config->n_services; i++) {
        const struct config_service *service = &d->config->services[i];
        struct baton_error err = {BATON_OK, ""};
        struct service_view view;
        char start[128];
        baton_code rc = service_view_read(d->log, d->config, service, true, &view, &err);
        if (rc != BATON_OK) { /* its turn log may be closed to this principal, or missing */
            rc = service_view_read(d->log, d->config, service, false, &view, &err);
        }
        if (rc == BATON_E_topic_missing) {
            continue; /* told above */
        }
        if (rc != BATON_OK) {
            bool hidden = rc == BATON_E_not_permitted; /* ordinary under a service's own rights */
            found(d, hidden ? LEVEL_warn : LEVEL_error, hidden ? BATON_OK : rc, "", "%s: %s",
                  service->name.s, err.text);
            continue;
        }
        snprintf(start, sizeof(start), "baton worker --service %s", service->name.s);
        if (view.n_workers == 0 && view.oldest_ms > WAITING_LONG_MS) {
            found(d, LEVEL_warn, BATON_OK, start,
                  "%s: %lld handoffs wait, the oldest for %s, and no "
                  "worker runs",
                  service->name.s, (long long)view.lag,
                  quantity_duration_text(view.oldest_ms / 1000 * 1000).s);
        } else {
            found(d, LEVEL_ok, BATON_OK, "", "%s: %zu workers, %lld handoffs wait", service->name.s,
                  view.n_workers, (long long)view.lag);
        }
        for (size_t k = 0; k < view.n_blocked; k++) {
            found_blocked(d, service->name.s, &view.blocked[k]);
        }
        doctor_profiles(d->config, d->log, &view, &d->probed, on_agent, d);
        service_view_done(&view);
    }
}

/* The turn log itself cannot be written: its worker says so in a file. */
static void look_for_blocked(struct doctor *d, const struct store_place *place,
                             const struct store_summary *summary)
{
    static char bytes[BLOCKED_NOTE_BYTES_MAX + 1];
    char path[PATH_MAX];
    struct blocked_note note;
    size_t len = 0;
    const int n = snprintf(path, sizeof(path), "%s/%s", place->dir, BLOCKED_NOTE_FILE);
    if (summary->running && n > 0 && (size_t)n < sizeof(path) &&
        safe_read(path, SAFE_secret, sizeof(bytes) - 1, bytes, &len, NULL) == BATON_OK &&
        blocked_note_parse(bytes, len, &note) && strcmp(note.boot.s, summary->owner.boot) == 0) {
        found_blocked(d, place->service, &note);
    }
}

static bool on_store(void *arg, const struct store_place *place)
{
    struct doctor *d = arg;
    struct store_summary summary;
    struct buf findings = BUF_INIT;
    struct baton_error err = {BATON_OK, ""};
    baton_code rc = store_check(place->dir, &summary, &findings, &err);
    if (rc != BATON_OK && findings.len == 0) {
        found(d, LEVEL_error, rc, "stop its worker and move the file away: the log has it all",
              "%s", err.text);
    } else if (findings.len > 0) {
        found_lines(d, LEVEL_error, BATON_E_store_failed,
                    "stop its worker and move the file away: the log has it all", &findings);
    } else {
        found(d, LEVEL_ok, BATON_OK, "", "%s/%s, %s", place->service, place->worker,
              summary.running ? "in use" : "not in use");
        look_for_blocked(d, place, &summary);
    }
    buf_done(&findings);
    return true;
}

static void check_stores(struct doctor *d)
{
    struct baton_error err = {BATON_OK, ""};
    baton_code rc = stores_each(d->config->state_dir, NULL, NULL, on_store, d, &err);
    if (rc != BATON_OK) {
        found(d, LEVEL_error, rc, "", "%s", err.text);
    }
}

static void check_folders(struct doctor *d)
{
    struct stat st;
    if (stat(d->config->state_dir, &st) != 0) {
        found(d, errno == ENOENT ? LEVEL_warn : LEVEL_error, BATON_E_bad_config, "baton init",
              "%s: %s", d->config->state_dir, strerror(errno));
    } else if ((st.st_mode & 0077) != 0) {
        char mend[4200];
        snprintf(mend, sizeof(mend), "chmod 700 %s", d->config->state_dir);
        found(d, LEVEL_warn, BATON_OK, mend, "%s can be read by others (mode %03o)",
              d->config->state_dir, (unsigned)(st.st_mode & 0777));
    } else {
        found(d, LEVEL_ok, BATON_OK, "", "%s is ours alone", d->config->state_dir);
    }
}

static void check_disk_of(struct doctor *d, const char *path)
{
    struct statvfs fs;
    if (statvfs(path, &fs) != 0) {
        return; /* told above */
    }
    long long free_bytes = (long long)fs.f_bavail * (long long)fs.f_frsize;
    enum level level = free_bytes < DISK_NONE     ? LEVEL_error
                       : free_bytes < DISK_ENOUGH ? LEVEL_warn
                                                  : LEVEL_ok;
    found(d, level, level == LEVEL_error ? BATON_E_disk_full : BATON_OK,
          level == LEVEL_ok ? "" : "free some space", "%lld MiB free for %s", free_bytes >> 20,
          path);
}

static void check_disk(struct doctor *d)
{
    struct stat state;
    struct stat log;
    check_disk_of(d, d->config->state_dir);
    if (d->config->log == LOG_KIND_local && stat(d->config->local_path, &log) == 0 &&
        (stat(d->config->state_dir, &state) != 0 || state.st_dev != log.st_dev)) {
        check_disk_of(d, d->config->local_path); /* another disk than the stores' */
    }
}

static void check_clock(struct doctor *d)
{
    struct stat st;
    struct wall_ms now = wall_now();
    if (now.v < CLOCK_EARLIEST_MS) {
        found(d, LEVEL_error, BATON_E_bad_config, "set the clock, and keep it by NTP",
              "this host believes that it is %s", wall_text(now).s);
    } else if (stat(d->config->path, &st) == 0 &&
               (int64_t)st.st_mtime * 1000 > now.v + CLOCK_AHEAD_MS) {
        found(d, LEVEL_warn, BATON_OK, "set the clock, and keep it by NTP",
              "it is %s here, and %s was written later than that", wall_text(now).s,
              d->config->path);
    } else {
        found(d, LEVEL_ok, BATON_OK, "", "%s", wall_text(now).s);
    }
}

/* In this order: what comes later may rest on what came before. */
static const struct {
    const char *name;
    void (*run)(struct doctor *d);
} checks[] = {
    {"configuration", check_configuration},
    {"trust", check_trust},
    {"keys", check_keys},
    {"proof", check_proof},
    {"executors", check_executors},
    {"agents", check_agents},
    {"guard", check_guard},
    {"folders", check_folders},
    {"disk", check_disk},
    {"clock", check_clock},
    {"log", check_log},
    {"topics", check_topics},
    {"services", check_services},
    {"stores", check_stores},
};

static int run(struct command *cmd)
{
    struct doctor d = {.cmd = cmd, .out = BUF_INIT};
    struct baton_error err = {BATON_OK, ""};
    baton_code rc = command_config(cmd, &d.config, &err);
    if (rc != BATON_OK) {
        return command_fail(cmd, rc, &err);
    }
    process_hold_keys();
    for (size_t i = 0; i < COUNT_OF(checks); i++) {
        d.check = checks[i].name;
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
    .summary = "look at everything that this host needs",
    .usage = "[--probe] [--json]",
    .description =
        "Looks at configuration, keys and their permissions, trust, proofs, executors, agents, "
        "guard, "
        "folders, disk, clock, log, topics, services and stores. Each finding is ok, warn or "
        "error, and names the command that mends it. Changes nothing, but that with --probe a "
        "credential profile "
        "that was refused and works now is taken again.",
    .examples = "baton doctor\nbaton doctor --json | grep '\"level\":\"error\"'\n",
    .options = options,
    .n_options = COUNT_OF(options),
    .exits = "0 without errors (warnings do not count); else the status of the first error.\n",
    .run = run,
};
