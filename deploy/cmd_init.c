/*
 * `baton init`: a folder in which publish and worker work at once. Listed by deploy/baton.c.
 *
 * Every file is written only where there is none; no question is asked. Doing it again says what is
 * there and changes nothing.
 */
#include "deploy/verbs.h"

#include "common/base/check.h"
#include "common/base/jsonw.h"
#include "common/base/limits.h"
#include "common/base/tbl/agents.h"
#include "common/base/text.h"
#include "common/log/log.h"
#include "common/record/keys.h"
#include "common/record/trust.h"
#include "deploy/embedded.h"
#include "deploy/init_compose.h"
#include "producer/identity.h"
#include "topics/provision.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* What was done: printed at the end, or as JSON. */
struct init {
    struct command *cmd;
    const char *brokers;                             /* NULL: the local log */
    const struct agent_program *agents[LIMIT_CHAIN]; /* --agent, then each --fallback */
    size_t n_agents;                                 /* 0: the example executor */
    char dir[PATH_MAX];
    struct buf made; /* lines */
    struct buf kept;
    size_t n_made;
    struct baton_error err;
};

static void note(struct buf *lines, const char *what)
{
    buf_add_text(lines, what);
    buf_add_char(lines, '\n');
}

static void made(struct init *init, const char *what)
{
    note(&init->made, what);
    init->n_made++;
}

static bool path_of(struct init *init, const char *name, char *ret_path, size_t size)
{
    int n = snprintf(ret_path, size, "%s/%s", init->dir, name);
    if (n < 0 || (size_t)n >= size) {
        baton_fail(&init->err, BATON_E_invalid_request, "the path of %s is too long", name);
        return false;
    }
    return true;
}

/* ---- folders and files ---- */

static baton_code cannot(struct init *init, const char *what, const char *path)
{
    baton_code code = errno == ENOSPC ? BATON_E_disk_full : BATON_E_invalid_request;
    return baton_fail(&init->err, code, "cannot %s %s: %s", what, text_quote_of(path).s,
                      strerror(errno));
}

/* Makes each part of the path that is missing. */
static baton_code make_folder(struct init *init, const char *path, mode_t mode)
{
    char part[PATH_MAX];
    struct stat st;
    snprintf(part, sizeof(part), "%s", path);
    for (char *slash = strchr(part + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdir(part, mode) != 0 && errno != EEXIST) {
            return cannot(init, "make the folder", part);
        }
        *slash = '/';
    }
    if (mkdir(path, mode) != 0 && errno != EEXIST) {
        return cannot(init, "make the folder", path);
    }
    if (stat(path, &st) != 0 || !S_ISDIR(st.st_mode)) {
        errno = ENOTDIR;
        return cannot(init, "use", path);
    }
    return BATON_OK;
}

static bool write_all(int fd, const void *bytes, size_t len)
{
    const char *at = bytes;
    while (len > 0) {
        ssize_t n = write(fd, at, len);
        if (n < 0 && errno != EINTR) {
            return false;
        }
        at += n > 0 ? n : 0;
        len -= n > 0 ? (size_t)n : 0;
    }
    return true;
}

/* Under another name first, so that the file is there whole or not at all. */
static baton_code make_file(struct init *init, const char *name, const void *bytes, size_t len,
                            mode_t mode)
{
    char path[PATH_MAX];
    char draft[PATH_MAX];
    if (!path_of(init, name, path, sizeof(path) - 8)) {
        return init->err.code;
    }
    if (access(path, F_OK) == 0) {
        note(&init->kept, name);
        return BATON_OK;
    }
    snprintf(draft, sizeof(draft), "%.*s.new", (int)sizeof(path) - 8, path);
    int fd = open(draft, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, mode);
    if (fd < 0) {
        return cannot(init, "write", draft);
    }
    bool written = write_all(fd, bytes, len) && fsync(fd) == 0;
    written = close(fd) == 0 && written;
    /* link, not rename: what somebody else has put there meanwhile stays. */
    bool placed = written && link(draft, path) == 0;
    bool there = written && !placed && errno == EEXIST;
    baton_code rc = placed || there ? BATON_OK : cannot(init, "write", path);
    unlink(draft);
    if (placed) {
        made(init, name);
    } else if (there) {
        note(&init->kept, name);
    }
    return rc;
}

/* ---- the parts ---- */

static baton_code make_files(struct init *init, const struct buf *configuration)
{
    char examples[PATH_MAX];
    baton_code rc = make_folder(init, init->dir, 0755);
    if (rc == BATON_OK && realpath(init->dir, examples) != NULL) {
        memcpy(init->dir, examples, strlen(examples) + 1);
    }
    if (rc == BATON_OK && !path_of(init, "examples", examples, sizeof(examples))) {
        rc = init->err.code;
    }
    if (rc == BATON_OK && init->n_agents == 0) {
        rc = make_folder(init, examples, 0755);
    }
    if (rc != BATON_OK ||
        (rc = make_file(init, "baton.yaml", configuration->data, configuration->len, 0644)) !=
            BATON_OK ||
        (rc = make_file(init, ".gitignore", embedded_gitignore, embedded_gitignore_len, 0644)) !=
            BATON_OK) {
        return rc;
    }
    if (init->n_agents > 0) {
        return BATON_OK;
    }
    return make_file(init, "examples/review-patch", embedded_review_patch,
                     embedded_review_patch_len, 0755);
}

static baton_code make_keys(struct init *init, const struct config *config)
{
    struct keys_plan plan = {NULL, 0};
    baton_code rc = keys_apply_config(config, &plan, &init->err);
    for (size_t i = 0; rc == BATON_OK && i < plan.count; i++) {
        made(init, plan.steps[i].text);
    }
    if (rc == BATON_OK && plan.count == 0) {
        note(&init->kept, "keys and trust");
    }
    keys_plan_done(&plan);
    return rc;
}

/* Only the local log's: whoever may make topics of a cluster is seldom who sets up a host. */
static baton_code make_topics(struct init *init, const struct config *config)
{
    size_t changes = 0;
    char line[80];
    baton_code rc = make_folder(init, config->state_dir, 0700);
    if (rc != BATON_OK || config->log != LOG_KIND_local) {
        return rc;
    }
    rc = provision_all(config, &changes, &init->err);
    if (rc == BATON_OK && changes > 0) {
        snprintf(line, sizeof(line), "%zu topics", changes);
        made(init, line);
    } else if (rc == BATON_OK) {
        note(&init->kept, "topics");
    }
    return rc;
}

/* ---- what was done ---- */

static void add_array(struct jsonw *w, const char *key, const struct buf *lines)
{
    jsonw_key(w, key);
    jsonw_begin_array(w);
    for (size_t at = 0; at < lines->len;) {
        size_t n =
            (size_t)((char *)memchr(lines->data + at, '\n', lines->len - at) - lines->data) - at;
        jsonw_bytes(w, lines->data + at, n);
        at += n + 1;
    }
    jsonw_end(w);
}

/* The commands that come next, one a line. */
static void add_next(const struct init *init, bool kafka, struct buf *next)
{
    const char *service = init->n_agents > 0 ? init->agents[0]->word : "example";
    if (kafka) {
        buf_add_text(next, "baton topics plan --acl\nbaton topics apply\n");
    }
    if (kafka || init->n_agents > 0) {
        buf_add_text(next, "baton doctor\n");
    }
    buf_printf(next, "baton publish --service %s --role reviewer --task t-1 --payload FILE.diff\n",
               service);
    for (size_t i = 1; i < init->n_agents; i++) { /* who takes over must run, too */
        buf_printf(next, "baton worker --service %s &\n", init->agents[i]->word);
    }
    buf_printf(next, "baton worker --service %s%s\n", service, kafka ? "" : " --drain");
    buf_add_text(next, kafka ? "" : "baton turns list\n");
}

static void print(struct init *init, const struct config *config)
{
    struct command *cmd = init->cmd;
    struct buf out = BUF_INIT;
    struct buf next = BUF_INIT;
    bool kafka = config->log == LOG_KIND_kafka;
    add_next(init, kafka, &next);
    if (cmd->json) {
        struct jsonw w = jsonw_to(&out);
        jsonw_begin_object(&w);
        jsonw_key_text(&w, "dir", init->dir);
        jsonw_key_text(&w, "config", config->path);
        jsonw_key_text(&w, "identity", config->identity.s);
        jsonw_key_text(&w, "log", kafka ? "kafka" : "local");
        add_array(&w, "made", &init->made);
        add_array(&w, "kept", &init->kept);
        add_array(&w, "next", &next);
        jsonw_end(&w);
        buf_add_char(&out, '\n');
    } else {
        text_add_lines(&out, init->made.data, init->made.len, 0, "made  ");
        text_add_lines(&out, init->kept.data, init->kept.len, 0, "kept  ");
    }
    command_print(cmd, &out);
    buf_done(&out);
    if (kafka) {
        command_note(cmd,
                     "%s is ready, and no broker was asked. Next: kafka.security in "
                     "baton.yaml, if the brokers want it; then, there:",
                     init->dir);
    } else {
        command_note(cmd, "%s is ready. Next, there:", init->dir);
    }
    for (size_t at = 0; at < next.len;) {
        const char *end = memchr(next.data + at, '\n', next.len - at);
        size_t n = end != NULL ? (size_t)(end - next.data) - at : next.len - at;
        command_note(cmd, "  %.*s", (int)n, next.data + at);
        at += n + 1;
    }
    buf_done(&next);
}

/* What may stand in a list of brokers; the rest is judged as part of the configuration. */
static bool brokers_plain(const char *brokers)
{
    size_t len = strlen(brokers);
    return len > 0 && brokers[0] != ',' && brokers[len - 1] != ',' &&
           strstr(brokers, ",,") == NULL &&
           strspn(brokers, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                           ".-_:[],") == len;
}

static int add_agent(struct command *cmd, struct init *init, const char *word)
{
    const struct agent_program *agent = agent_find(word);
    if (agent == NULL) {
        return command_usage(cmd, "--agent and --fallback name one of:" AGENT_LIST);
    }
    for (size_t i = 0; i < init->n_agents; i++) {
        if (init->agents[i] == agent) {
            return command_usage(cmd, "--agent and --fallback name an agent once");
        }
    }
    if (init->n_agents < LIMIT_CHAIN) {
        init->agents[init->n_agents++] = agent;
    }
    return 0;
}

static int agents_of(struct command *cmd, struct init *init)
{
    size_t n = 0;
    const char *first = command_text(cmd, "agent");
    const char *const *more = command_list(cmd, "fallback", &n);
    if (first == NULL) {
        return n > 0 ? command_usage(cmd, "--fallback needs --agent") : 0;
    }
    int status = add_agent(cmd, init, first);
    for (size_t i = 0; status == 0 && i < n; i++) {
        status = add_agent(cmd, init, more[i]);
    }
    return status;
}

static int usage_of(struct command *cmd, struct init *init)
{
    const char *dir = cmd->n_args > 0 ? cmd->args[0] : ".";
    const char *log = command_text(cmd, "log");
    bool kafka = strcmp(log, "kafka") == 0;
    init->brokers = command_text(cmd, "brokers");
    if (cmd->config_path != NULL) {
        return command_usage(cmd, "init writes DIR/baton.yaml; --config names another file");
    }
    if (dir[0] == '\0' ||
        snprintf(init->dir, sizeof(init->dir), "%s", dir) >= (int)sizeof(init->dir)) {
        return command_usage(cmd, "the folder's name is empty or too long");
    }
    if (!kafka && strcmp(log, "local") != 0) {
        return command_usage(cmd, "--log is local or kafka");
    }
    if (kafka != (init->brokers != NULL)) {
        return command_usage(cmd, "--log kafka and --brokers HOST:PORT[,HOST:PORT] go together");
    }
    if (kafka && !brokers_plain(init->brokers)) {
        return command_usage(cmd, "--brokers is HOST:PORT[,HOST:PORT]");
    }
    return agents_of(cmd, init);
}

/* A configuration that is there is kept: it must not name another log, or other brokers, than what
 * is asked for. Told before anything is written. */
static baton_code check_kept(struct init *init)
{
    struct config *config = NULL;
    char path[PATH_MAX];
    if (!command_given(init->cmd, "log") || !path_of(init, "baton.yaml", path, sizeof(path)) ||
        access(path, F_OK) != 0) {
        return init->err.code;
    }
    baton_code rc =
        config_load(path, init->cmd->sets, init->cmd->n_sets, &config, NULL, &init->err);
    if (rc == BATON_OK && (config->log == LOG_KIND_kafka) != (init->brokers != NULL)) {
        rc = baton_fail(&init->err, BATON_E_invalid_request,
                        "%s is there and says log: %s; init changes no file that is there: edit "
                        "it, once nothing is open, or take another folder",
                        text_quote_of(path).s, config->log == LOG_KIND_kafka ? "kafka" : "local");
    } else if (rc == BATON_OK && init->brokers != NULL &&
               strcmp(config->kafka_brokers, init->brokers) != 0) {
        rc = baton_fail(&init->err, BATON_E_invalid_request,
                        "%s is there and names the brokers %s; init changes no file that is there: "
                        "edit kafka.brokers in it, or take another folder",
                        text_quote_of(path).s, config->kafka_brokers);
    }
    config_free(config);
    return rc;
}

static int run(struct command *cmd)
{
    struct init init = {.cmd = cmd, .made = BUF_INIT, .kept = BUF_INIT};
    struct config *config = NULL;
    struct buf configuration = BUF_INIT;
    char path[PATH_MAX];
    int status = usage_of(cmd, &init);
    if (status != 0) {
        return status;
    }
    process_hold_keys();
    baton_code rc =
        init_compose(init.brokers, init.agents, init.n_agents, &configuration, &init.err);
    if (rc == BATON_OK && (rc = check_kept(&init)) == BATON_OK &&
        (rc = make_files(&init, &configuration)) == BATON_OK &&
        path_of(&init, "baton.yaml", path, sizeof(path))) {
        rc = config_load(path, cmd->sets, cmd->n_sets, &config, NULL, &init.err);
    }
    if (rc == BATON_OK && (rc = make_keys(&init, config)) == BATON_OK) {
        rc = make_topics(&init, config);
    }
    if (rc == BATON_OK) {
        print(&init, config);
    } else {
        status = command_fail(cmd, rc, &init.err);
    }
    config_free(config);
    buf_done(&configuration);
    buf_done(&init.made);
    buf_done(&init.kept);
    return status;
}

/* clang-format off */
static const struct command_option options[] = {
    {.name = "log", .argument = "KIND", .kind = OPTION_text, .fallback = "local",
     .help = "local: one file on this host. kafka: a cluster, with --brokers."},
    {.name = "brokers", .argument = "LIST", .kind = OPTION_text,
     .help = "With --log kafka: HOST:PORT, several with commas between. They need not be up: nothing is asked of them."},
    {.name = "agent", .argument = "AGENT", .kind = OPTION_text,
     .help = "A service of that name whose turns an agent program does (claude, codex, gemini), in place of the example."},
    {.name = "fallback", .argument = "AGENT", .kind = OPTION_multi,
     .help = "With --agent: another one, to which turns go when it fails. Given several times: in that order."},
};
/* clang-format on */

const struct baton_command cmd_init = {
    .name = "init",
    .summary = "make a folder in which Baton works at once",
    .usage = "[DIR] [--json]\n[DIR] --agent AGENT [--fallback AGENT]... [--json]\n"
             "[DIR] --log kafka --brokers HOST:PORT[,HOST:PORT] [--json]",
    .description =
        "Writes what one host needs into DIR (default: here): baton.yaml with a service "
        "`example` for every role, its executor, a key for you, one for the coordinator "
        "and one for each service, the trust folder with their rights, the local log "
        "with its topics, and a .gitignore for what must not leave the host.\n\n"
        "With --log kafka the configuration names the brokers instead; topics are made "
        "afterwards, by `baton topics apply`, by somebody who may.\n\n"
        "With --agent the services are agent programs; credentials come from the worker's "
        "environment until the configuration says otherwise.\n\n"
        "Asks nothing, and never changes a file that is there: doing it again makes "
        "what is missing.",
    .options = options,
    .n_options = COUNT_OF(options),
    .examples =
        "baton init\n# in a folder of its own\nbaton init ~/baton\n"
        "# claude, and codex where its provider refuses\nbaton init --agent claude --fallback "
        "codex\n"
        "# for a cluster\nbaton init ~/baton --log kafka --brokers kafka-1:9092,kafka-2:9092\n",
    .files = "baton.yaml  keys/  trust/  data/  examples/  .gitignore\n",
    .args_max = 1,
    .run = run,
};
