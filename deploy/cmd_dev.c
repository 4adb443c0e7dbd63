/*
 * `baton dev`: a worker for each service and a coordinator as child processes, their log lines as one
 * live view. For one person at one machine; a fleet runs each of them as a service. Listed by
 * deploy/baton.c.
 */
#include "deploy/verbs.h"

#include "common/base/check.h"
#include "common/base/jsonw.h"
#include "common/base/limits.h"
#include "common/base/text.h"
#include "common/base/wake.h"
#include "common/base/word.h"
#include "common/process/line_io.h"
#include "common/process/self.h"
#include "common/record/json.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define PROCESSES_MAX (LIMIT_SERVICES + 1)
#define LINE_MAX_BYTES (64 * 1024)
#define SETS_MAX 64
#define STOP_MS 30000 /* then they are killed */

struct process {
    const char *name; /* of its service, or coordinator */
    pid_t pid;        /* 0: it has ended */
    int fd;           /* its log; -1: closed */
    struct line_reader reader;
};

struct dev {
    struct command *cmd;
    const struct config *config;
    struct process processes[PROCESSES_MAX];
    size_t count;
    size_t width; /* of the longest name */
    bool stopping;
    struct mono_ms kill_at;
    int status;
};

/* ---- starting ---- */

static baton_code run_self(const struct dev *dev, const char *service, int log, pid_t *ret_pid,
                           struct baton_error *err)
{
    const char *words[10 + 2 * SETS_MAX];
    size_t n = 0;
    words[n++] = "baton";
    words[n++] = service != NULL ? "worker" : "coordinator";
    if (service != NULL) {
        words[n++] = "--service";
        words[n++] = service;
    }
    words[n++] = "--config";
    words[n++] = dev->config->path;
    for (size_t i = 0; i < dev->cmd->n_sets && i < SETS_MAX; i++) {
        words[n++] = "--set";
        words[n++] = dev->cmd->sets[i];
    }
    if (dev->config->http_listen != NULL) { /* one address would do for one of them */
        words[n++] = "--set";
        words[n++] = "http.listen=127.0.0.1:0";
    }
    words[n] = NULL;
    return self_start(words, log, ret_pid)
               ? BATON_OK
               : baton_fail(err, BATON_E_unexpected, "a process cannot be started: %s",
                            strerror(errno));
}

static baton_code start(struct dev *dev, const char *service, struct baton_error *err)
{
    struct process *process = &dev->processes[dev->count];
    int fds[2];
    if (pipe2(fds, O_CLOEXEC) != 0) {
        return baton_fail(err, BATON_E_unexpected, "a pipe cannot be made: %s", strerror(errno));
    }
    pid_t pid = 0;
    baton_code rc = run_self(dev, service, fds[1], &pid, err);
    close(fds[1]);
    if (rc != BATON_OK) {
        close(fds[0]);
        return rc;
    }
    (void)fcntl(fds[0], F_SETFL, O_NONBLOCK);
    process->name = service != NULL ? service : "coordinator";
    process->pid = pid;
    process->fd = fds[0];
    line_reader_init(&process->reader, LINE_MAX_BYTES);
    dev->count++;
    const size_t len = strlen(process->name);
    dev->width = len > dev->width ? len : dev->width;
    return BATON_OK;
}

/* ---- the view ---- */

struct shown {
    const char *event;
    const char *text; /* {field}: what the line says there */
};

/* What a person wants to see while it works; everything of level warn and error besides. */
static const struct shown shown[] = {
    {"worker.ready", "ready"},
    {"coordinator.ready", "ready"},
    {"http.listening", "metrics and health at {host}:{port}"},
    {"turn.moved", "{role} turn {turn}: {from} -> {to}"},
    {"turn.begun", "{role} turn {turn}: {to}"},
    {"attempt.ended", "{role} turn {turn}, attempt {attempt}: {verdict}{class}"},
    {"turn.delegated", "{role} turn {turn}: {from} -> {to}, attempt {next}"},
    {"run.started", "run {run} of {workflow}, by {by}"},
    {"run.turn", "run {run}: {by} -> {to} ({role} at {service}), turn {turn}"},
    {"run.moved", "run {run}: {from} -> {to}: {why}"},
};

static void add_field(struct buf *out, const struct json_value *line, const char *name, size_t len)
{
    char key[32];
    snprintf(key, sizeof(key), "%.*s", (int)len, name);
    const struct json_value *value = json_member(line, key);
    if (value == NULL) {
        return;
    }
    if (json_kind(value) == JSON_int) {
        buf_printf(out, "%lld", (long long)json_int(value));
    } else if (json_kind(value) == JSON_text) {
        size_t n;
        const char *text = json_text(value, &n);
        /* the first of an id say which */
        const bool id = strcmp(key, "turn") == 0 || strcmp(key, "run") == 0;
        text_add(out, text, id && n > 10 ? 10 : n, 0);
    }
}

static void add_shown(struct buf *out, const struct json_value *line, const char *text)
{
    while (*text != '\0') {
        const char *end = *text == '{' ? strchr(text, '}') : NULL;
        if (end != NULL) {
            add_field(out, line, text + 1, (size_t)(end - text) - 1);
            text = end + 1;
        } else {
            buf_add_char(out, *text++);
        }
    }
}

static void add_trouble(struct buf *out, const struct json_value *line, const char *event)
{
    static const char *const said[] = {"error", "text", "note", "meaning"};
    text_add(out, event, strlen(event), 0);
    for (size_t i = 0; i < COUNT_OF(said); i++) {
        if (json_member(line, said[i]) != NULL) {
            buf_add_text(out, ": ");
            add_field(out, line, said[i], strlen(said[i]));
        }
    }
}

static void view(struct dev *dev, const struct process *process, const char *bytes, size_t len)
{
    struct json_doc *doc = NULL;
    struct buf out = BUF_INIT;
    size_t n;
    const bool is_json =
        json_parse(bytes, len, LINE_MAX_BYTES, LIMIT_JSON_DEPTH, &doc, NULL) == BATON_OK &&
        json_kind(json_root(doc)) == JSON_object;
    if (dev->cmd->json && is_json) {
        buf_add(&out, bytes, len);
    } else if (dev->cmd->json) { /* why it did not start, say */
        struct jsonw w = jsonw_to(&out);
        jsonw_begin_object(&w);
        jsonw_key_text(&w, "process", process->name);
        jsonw_key(&w, "text");
        jsonw_bytes(&w, bytes, len);
        jsonw_end(&w);
    } else if (!is_json) {
        buf_printf(&out, "%-*s  ", (int)dev->width, process->name);
        text_add(&out, bytes, len, 0);
    } else {
        const struct json_value *line = json_root(doc);
        const char *event = json_member_text(line, "event", &n);
        const char *level = json_member_text(line, "level", &n);
        const char *at = json_member_text(line, "ts", &n);
        const bool trouble = strcmp(level, "warn") == 0 || strcmp(level, "error") == 0;
        const struct shown *found = NULL;
        if (strcmp(event, "turn.moved") == 0 &&
            strcmp(json_member_text(line, "from", &n), "none") == 0) {
            event = "turn.begun";
        }
        for (size_t i = 0; i < COUNT_OF(shown); i++) {
            found = strcmp(shown[i].event, event) == 0 ? &shown[i] : found;
        }
        if (found == NULL && !trouble && !dev->cmd->verbose) {
            json_free(doc);
            return;
        }
        buf_printf(&out, "%.8s  %-*s  ", strlen(at) > 19 ? at + 11 : "", (int)dev->width,
                   process->name);
        if (found != NULL) {
            add_shown(&out, line, found->text);
        } else {
            add_trouble(&out, line, event);
        }
    }
    json_free(doc);
    buf_add_char(&out, '\n');
    (void)command_print(dev->cmd, &out);
    buf_done(&out);
}

/* ---- while they run ---- */

static void read_log(struct dev *dev, struct process *process)
{
    char bytes[8192];
    const ssize_t n = read(process->fd, bytes, sizeof(bytes));
    const char *line;
    size_t len;
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
        return;
    }
    if (n <= 0 || !line_reader_feed(&process->reader, bytes, (size_t)n)) {
        close(process->fd);
        process->fd = -1;
        return;
    }
    while (line_reader_next(&process->reader, &line, &len) != LINE_none) {
        view(dev, process, line, len);
    }
}

static void send_all(struct dev *dev, int number)
{
    for (size_t i = 0; i < dev->count; i++) {
        if (dev->processes[i].pid > 0) {
            (void)kill(dev->processes[i].pid, number);
        }
    }
}

static void stop_all(struct dev *dev)
{
    send_all(dev, SIGTERM);
    if (!dev->stopping) {
        dev->stopping = true;
        dev->kill_at.v = mono_now().v + STOP_MS;
    }
}

/* Ctrl-C: once is enough where no attempt runs; twice does not wait for any. A terminal's goes to the
 * workers, too, for which it is the same. */
static void asked_to_stop(struct dev *dev)
{
    if (dev->stopping) {
        dev->kill_at.v = 0;
        return;
    }
    stop_all(dev);
    command_note(dev->cmd,
                 "stopping; attempts that run have %d seconds, Ctrl-C once more ends them",
                 STOP_MS / 1000);
}

/* One that ends by itself ends the rest: half of them would look like a whole. */
static void reap(struct dev *dev)
{
    int status;
    for (size_t i = 0; i < dev->count; i++) {
        struct process *process = &dev->processes[i];
        if (process->pid <= 0 || waitpid(process->pid, &status, WNOHANG) != process->pid) {
            continue;
        }
        process->pid = 0;
        while (process->fd >= 0) { /* what it said last */
            struct pollfd fd = {.fd = process->fd, .events = POLLIN};
            if (poll(&fd, 1, 0) != 1) {
                break;
            }
            read_log(dev, process);
        }
        if (!dev->stopping) {
            dev->status = WIFEXITED(status) && WEXITSTATUS(status) != 0 ? WEXITSTATUS(status) : 1;
            command_note(dev->cmd, "%s has ended by itself (%s %d); the others are stopped",
                         process->name, WIFEXITED(status) ? "status" : "signal",
                         WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
            stop_all(dev);
        }
    }
}

static size_t living(const struct dev *dev)
{
    size_t n = 0;
    for (size_t i = 0; i < dev->count; i++) {
        n += dev->processes[i].pid > 0 || dev->processes[i].fd >= 0;
    }
    return n;
}

static void loop(struct dev *dev, int wake)
{
    while (living(dev) > 0) {
        struct pollfd fds[PROCESSES_MAX + 1];
        fds[0] = (struct pollfd){.fd = wake, .events = POLLIN};
        for (size_t i = 0; i < dev->count; i++) {
            fds[i + 1] = (struct pollfd){.fd = dev->processes[i].fd, .events = POLLIN};
        }
        (void)poll(fds, dev->count + 1, 200);
        char byte;
        while (read(wake, &byte, 1) == 1) {
            if (byte == WAKE_STOP) {
                asked_to_stop(dev);
            } else {
                send_all(dev, SIGHUP);
            }
        }
        for (size_t i = 0; i < dev->count; i++) {
            if (dev->processes[i].fd >= 0 && (fds[i + 1].revents & (POLLIN | POLLHUP)) != 0) {
                read_log(dev, &dev->processes[i]);
            }
        }
        reap(dev);
        if (dev->stopping && mono_now().v >= dev->kill_at.v) {
            send_all(dev, SIGKILL); /* their executors end with them (baton-guard) */
            dev->kill_at.v = INT64_MAX;
        }
    }
}

static int run(struct command *cmd)
{
    struct dev *dev = calloc(1, sizeof(*dev));
    struct config *config = NULL;
    struct baton_error err = {BATON_OK, ""};
    int wake = -1;
    baton_code rc = dev != NULL ? command_config(cmd, &config, &err) : BATON_E_no_memory;
    if (rc == BATON_OK && !wake_open(&wake)) {
        rc = baton_fail(&err, BATON_E_unexpected, "a pipe for signals cannot be made: %m");
    }
    if (rc != BATON_OK) {
        free(dev);
        config_free(config);
        return command_fail(cmd, rc, &err);
    }
    dev->cmd = cmd;
    dev->config = config;
    for (size_t i = 0; rc == BATON_OK && i < config->n_services; i++) {
        rc = start(dev, config->services[i].name.s, &err);
    }
    if (rc == BATON_OK) {
        rc = start(dev, NULL, &err);
    }
    if (rc == BATON_OK) {
        command_note(cmd, "%zu worker%s and a coordinator; Ctrl-C stops them", config->n_services,
                     config->n_services == 1 ? "" : "s");
        command_note(cmd, "in another terminal: baton runs start --workflow paired-review --task "
                          "FILE.md --wait");
    } else {
        stop_all(dev);
    }
    loop(dev, wake);
    for (size_t i = 0; i < dev->count; i++) {
        line_reader_done(&dev->processes[i].reader);
    }
    const int status = rc == BATON_OK ? dev->status : command_fail(cmd, rc, &err);
    free(dev);
    config_free(config);
    return status;
}

const struct baton_command cmd_dev = {
    .name = "dev",
    .summary = "run a worker for each service and a coordinator on this host, in view",
    .usage = "[--json]",
    .description =
        "Starts them as child processes with this configuration and shows what turns and runs do, "
        "and every warning; --verbose shows all their lines, --json passes them on as they are. "
        "Ctrl-C stops them cleanly, and attempts that run have 30 seconds to end; once more, and "
        "they are killed and tried again at the next start. One that ends by itself stops the "
        "others. For one person at one machine: in a fleet each is a service of its own.",
    .examples =
        "baton dev\n# in another terminal\nbaton runs start --workflow paired-review --task "
        "fix-parser.md --wait\n",
    .run = run,
};
