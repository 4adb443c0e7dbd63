/* `baton store check | backup`. Listed by deploy/baton.c. */
#include "deploy/verbs.h"

#include "common/base/check.h"
#include "common/base/jsonw.h"
#include "common/base/text.h"
#include "common/store/store.h"
#include "deploy/stores.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

struct work {
    struct command *cmd;
    const char *to; /* backup: the folder, or the file where one store is named */
    bool one;       /* --service and --id name one store */
    size_t count;
    baton_code worst;
    struct buf out;
};

/* clang-format off */
static const struct command_option options[] = {
    {.name = "service", .letter = 's', .argument = "S", .kind = OPTION_text,
     .help = "Only stores of this service."},
    {.name = "id", .argument = "W", .kind = OPTION_text, .help = "Only the store of this worker."},
};
/* clang-format on */

/* Runs fn over the stores that are asked for. */
static int run_each(struct command *cmd, const char *to, store_fn *fn)
{
    struct work work = {.cmd = cmd, .to = to, .out = BUF_INIT};
    work.one = command_given(cmd, "service") && command_given(cmd, "id");
    struct config *config = NULL;
    struct baton_error err = {BATON_OK, ""};
    int status = 0;
    baton_code rc = command_config(cmd, &config, &err);
    if (rc == BATON_OK) {
        rc = stores_each(config->state_dir, command_text(cmd, "service"), command_text(cmd, "id"),
                         fn, &work, &err);
    }
    bool asked = command_given(cmd, "service") || command_given(cmd, "id");
    if (rc == BATON_OK && work.count == 0 && asked) {
        rc = baton_fail(&err, BATON_E_store_failed, "there is no such store below %s",
                        config->state_dir);
    }
    if (rc != BATON_OK) {
        status = command_fail(cmd, rc, &err);
    } else {
        if (work.count == 0) {
            command_note(cmd, "there is no store below %s", config->state_dir);
        }
        status = baton_code_exit(work.worst);
    }
    buf_done(&work.out);
    config_free(config);
    return status;
}

static void begin_line(struct work *work, struct jsonw *w, const struct store_place *place)
{
    if (work->cmd->json) {
        *w = jsonw_to(&work->out);
        jsonw_begin_object(w);
        jsonw_key_text(w, "service", place->service);
        jsonw_key_text(w, "worker", place->worker);
    }
}

static bool end_line(struct work *work, struct jsonw *w)
{
    if (work->cmd->json) {
        jsonw_end(w);
        buf_add_char(&work->out, '\n');
    }
    return command_print(work->cmd, &work->out);
}

/* ---- check ---- */

static void check_json(struct jsonw *w, const struct store_summary *summary)
{
    jsonw_key_text(w, "cluster", summary->owner.cluster);
    jsonw_key_text(w, "topic", summary->owner.topic);
    jsonw_key_bool(w, "running", summary->running);
    jsonw_key_int(w, "size_bytes", summary->size_bytes);
    jsonw_key(w, "turns");
    jsonw_begin_object(w);
    for (int i = 0; i < TURN_STATE_COUNT; i++) {
        jsonw_key_int(w, turn_state_word((enum turn_state)i), summary->turns[i]);
    }
    jsonw_end(w);
}

static void findings_json(struct jsonw *w, const struct buf *findings)
{
    jsonw_key(w, "findings");
    jsonw_begin_array(w);
    for (size_t at = 0; at < findings->len;) {
        const char *end = memchr(findings->data + at, '\n', findings->len - at);
        size_t n = end != NULL ? (size_t)(end - findings->data) - at : findings->len - at;
        jsonw_bytes(w, findings->data + at, n);
        at += n + 1;
    }
    jsonw_end(w);
}

static bool on_check(void *arg, const struct store_place *place)
{
    struct work *work = arg;
    struct store_summary summary;
    struct buf findings = BUF_INIT;
    struct baton_error err = {BATON_OK, ""};
    struct jsonw w;
    baton_code rc = store_check(place->dir, &summary, &findings, &err);
    work->count++;
    if (rc == BATON_OK && findings.len > 0) {
        rc = baton_fail(&err, BATON_E_store_failed, "the store is inconsistent");
    }
    begin_line(work, &w, place);
    if (work->cmd->json) {
        jsonw_key_text(&w, "status", rc == BATON_OK ? "ok" : "failed");
        if (rc != BATON_OK) {
            jsonw_key_text(&w, "code", baton_code_word(rc));
            jsonw_key_text(&w, "error", err.text);
        } else {
            check_json(&w, &summary);
        }
        findings_json(&w, &findings);
    } else if (rc == BATON_OK) {
        buf_printf(&work->out, "ok     %s/%s: %lld open turns, %lld KiB%s\n", place->service,
                   place->worker,
                   (long long)(summary.turns[TURN_queued] + summary.turns[TURN_running] +
                               summary.turns[TURN_parked]),
                   (long long)summary.size_bytes / 1024, summary.running ? ", in use" : "");
    } else {
        buf_printf(&work->out, "error  %s/%s: ", place->service, place->worker);
        text_add(&work->out, err.text, strlen(err.text), 0);
        buf_add_char(&work->out, '\n');
        text_add_lines(&work->out, findings.data, findings.len, 0, "         ");
    }
    work->worst = work->worst == BATON_OK ? rc : work->worst;
    buf_done(&findings);
    return end_line(work, &w);
}

static int run_check(struct command *cmd)
{
    return run_each(cmd, NULL, on_check);
}

static const struct baton_command cmd_check = {
    .name = "check",
    .summary = "look for damage and inconsistencies in workers' stores",
    .usage = "[--service S] [--id W] [--json]",
    .description =
        "Opens each store below state_dir read-only: integrity, schema, planted objects, and "
        "one line for each inconsistency. Works while workers run. A damaged store may be "
        "moved away: its worker reads the log from the start, and what was running is done "
        "again.",
    .options = options,
    .n_options = COUNT_OF(options),
    .examples = "baton store check\nbaton store check --service example --id w1 --json\n",
    .run = run_check,
};

/* ---- backup ---- */

static baton_code backup(const struct work *work, const struct store_place *place, char *path,
                         size_t size, struct baton_error *err)
{
    if (!work->one && mkdir(work->to, 0700) != 0 && errno != EEXIST) {
        return baton_fail(err, BATON_E_invalid_request, "cannot make the folder %s: %s",
                          text_quote_of(work->to).s, strerror(errno));
    }
    int n = work->one
                ? snprintf(path, size, "%s", work->to)
                : snprintf(path, size, "%s/%s.%s.db", work->to, place->service, place->worker);
    if (n < 0 || (size_t)n >= size) {
        return baton_fail(err, BATON_E_invalid_request, "the path of the copy is too long");
    }
    return store_backup(place->dir, path, err);
}

static bool on_backup(void *arg, const struct store_place *place)
{
    struct work *work = arg;
    struct baton_error err = {BATON_OK, ""};
    struct jsonw w;
    char path[PATH_MAX] = "";
    baton_code rc = backup(work, place, path, sizeof(path), &err);
    work->count++;
    begin_line(work, &w, place);
    if (work->cmd->json) {
        jsonw_key_text(&w, "status", rc == BATON_OK ? "ok" : "failed");
        jsonw_key_text(&w, "path", path);
        if (rc != BATON_OK) {
            jsonw_key_text(&w, "code", baton_code_word(rc));
            jsonw_key_text(&w, "error", err.text);
        }
    } else {
        buf_printf(&work->out, "%s  %s/%s: ", rc == BATON_OK ? "ok   " : "error", place->service,
                   place->worker);
        const char *text = rc == BATON_OK ? path : err.text;
        text_add(&work->out, text, strlen(text), 0);
        buf_add_char(&work->out, '\n');
    }
    work->worst = work->worst == BATON_OK ? rc : work->worst;
    return end_line(work, &w);
}

static int run_backup(struct command *cmd)
{
    return run_each(cmd, cmd->args[0], on_backup);
}

static const struct baton_command cmd_backup = {
    .name = "backup",
    .summary = "copy workers' stores, also while they run",
    .usage = "DIR [--service S] [--json]\n--service S --id W FILE [--json]",
    .description =
        "Writes a consistent copy of each store into DIR, as SERVICE.WORKER.db, or of one "
        "store into FILE. What is there already is not overwritten. The log is what must "
        "not be lost: a store only saves work.",
    .options = options,
    .n_options = COUNT_OF(options),
    .examples = "baton store backup /var/backups/baton-2026-11-29\n",
    .args_min = 1,
    .args_max = 1,
    .run = run_backup,
};

static const struct baton_command *const subcommands[] = {&cmd_check, &cmd_backup};

const struct baton_command cmd_store = {
    .name = "store",
    .summary = "check and copy workers' stores",
    .usage = "check|backup",
    .description =
        "Each worker keeps an image of its turn log, and the ends of attempts that it has "
        "not published yet, in <state_dir>/<service>/<worker>/store.db.",
    .subcommands = subcommands,
    .n_subcommands = COUNT_OF(subcommands),
    .examples = "baton store check\n",
};
