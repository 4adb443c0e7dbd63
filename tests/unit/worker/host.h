/*
 * A host of one service with real workers on a real local log, each a process of its own that a
 * test may kill, with a callback executor that does what the turn's summary says. For the tests of
 * worker/.
 *
 * The summary is a plan: words with commas, one for each attempt, the last one for all that follow:
 *   a verdict          approve, proceed, done, ...
 *   a failure class    overloaded, auth, crash, ...   (class@MS: with retry-after)
 *   hang               waits until it is told to stop or the file <dir>/go is there, then goes on
 *                      with the next
 *   die                SIGKILL of its worker
 *   silent             ends without a result
 */
#ifndef BATON_TESTS_UNIT_WORKER_HOST_H
#define BATON_TESTS_UNIT_WORKER_HOST_H

#include "common/base/diag.h"
#include "common/base/fault.h"
#include "common/record/control.h"
#include "common/record/outcome.h"
#include "common/record/turn.h"
#include "common/record/turn_record.h"
#include "topics/catalogue.h"
#include "topics/provision.h"
#include "worker/worker.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef WAIT_MS
#define WAIT_MS 30000
#endif
#define PREFIX "t"
#define SERVICE "lint"
#define WORKERS_MAX 4

#define OK(call)                                                                                   \
    do {                                                                                           \
        struct baton_error ok_err = {0};                                                           \
        struct baton_error *err = &ok_err;                                                         \
        baton_code ok_rc = (call);                                                                 \
        if (ok_rc != BATON_OK) {                                                                   \
            fail_msg("line %d: %s: %s: %s", __LINE__, #call, baton_code_word(ok_rc), ok_err.text); \
        }                                                                                          \
    } while (0)

struct worker_process {
    char id[32];
    pid_t pid; /* 0: none */
    int wake;  /* writing end */
};

struct host {
    char dir[64];
    char go[80];
    char calls[80];
    struct config *config;
    struct log *log;
    struct log_publisher *publisher;
    struct worker_process workers[WORKERS_MAX];
    int n_turns;
    bool unchecked; /* the test leaves something in a state that the checks at the end refuse */
};

static const char *const host_defaults[] = {"retry.first=20ms", "retry.factor=1", "retry.jitter=0"};
static const char host_yaml[] =
    "version: 1\n"
    "prefix: t\n"
    "log: local\n"
    "local: {path: log.db, partitions: 2, session: 800ms, heartbeat: 50ms}\n"
    "state_dir: data\n"
    "proof: off\n"
    "lease: 2s\n"
    "lease_grace: 400ms\n"
    "services:\n"
    "  lint:\n"
    "    roles: [reviewer, arbiter, owner]\n"
    "    parallel: 4\n"
    "    deadline: 20s\n"
    "    executor: {kind: callback}\n"
    "    profiles: [{name: one, env: {}}, {name: two, env: {}}]\n";

/* ---- the executor ---- */

/* The word of the plan for an attempt, and the one after it. */
static void plan_word(const char *turn, int number, char *ret_word, size_t size)
{
    const char *at = strstr(turn, "\"summary\":\"");
    ret_word[0] = '\0';
    if (at == NULL) {
        return;
    }
    at += strlen("\"summary\":\"");
    for (int i = 1;; i++) {
        size_t len = strcspn(at, ",\"");
        if (i == number || at[len] == '"') {
            snprintf(ret_word, size, "%.*s", (int)len, at);
            return;
        }
        at += len + 1;
    }
}

static void note_call(const char *path, const struct baton_attempt *attempt)
{
    char line[160];
    int n = snprintf(line, sizeof(line), "%s %d %s\n", baton_attempt_turn_id(attempt),
                     baton_attempt_number(attempt), baton_attempt_role(attempt));
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (fd < 0 || write(fd, line, (size_t)n) != n) {
        abort();
    }
    close(fd);
}

static int execute(const struct baton_attempt *attempt, struct baton_result *result, void *arg)
{
    const struct host *host = arg;
    int number = baton_attempt_number(attempt);
    size_t len = 0;
    char word[64];
    enum verdict verdict;
    note_call(host->calls, attempt);
    plan_word(baton_attempt_turn(attempt, &len), number, word, sizeof(word));
    if (strcmp(word, "die") == 0) {
        kill(getpid(), SIGKILL);
    }
    if (strcmp(word, "hang") == 0) {
        while (!baton_attempt_stopped(attempt) && access(host->go, F_OK) != 0) {
            usleep(2000);
        }
        if (baton_attempt_stopped(attempt)) {
            return 1;
        }
        plan_word(baton_attempt_turn(attempt, &len), number + 1, word, sizeof(word));
    }
    if (verdict_parse(word, strlen(word), &verdict)) {
        baton_result_verdict(result, word, "as planned");
        return 0;
    }
    if (strcmp(word, "silent") == 0) {
        return 0;
    }
    char *after = strchr(word, '@');
    int64_t retry_after = 0;
    if (after != NULL) {
        *after = '\0';
        retry_after = strtoll(after + 1, NULL, 10);
    }
    baton_result_fail(result, word, "as planned", retry_after);
    return 1;
}

/* ---- host ---- */

static void host_configure(struct host *host, const char *const *sets, size_t n_sets)
{
    const char *all[16];
    char name[96];
    struct buf findings = BUF_INIT;
    struct baton_error err = {0};
    size_t n = 0;
    for (size_t i = 0; i < sizeof(host_defaults) / sizeof(host_defaults[0]); i++) {
        all[n++] = host_defaults[i];
    }
    for (size_t i = 0; i < n_sets; i++) {
        all[n++] = sets[i];
    }
    snprintf(name, sizeof(name), "%s/baton.yaml", host->dir);
    config_free(host->config);
    if (config_parse(name, host_yaml, strlen(host_yaml), all, n, &host->config, &findings, &err) !=
        BATON_OK) {
        fail_msg("%s\n%s", err.text, findings.data);
    }
    buf_done(&findings);
}

__attribute__((unused)) static int host_setup(void **state)
{
    struct host *host = calloc(1, sizeof(*host));
    assert_non_null(host);
    snprintf(host->dir, sizeof(host->dir), "/tmp/baton-worker-XXXXXX");
    assert_non_null(mkdtemp(host->dir));
    snprintf(host->go, sizeof(host->go), "%s/go", host->dir);
    snprintf(host->calls, sizeof(host->calls), "%s/calls", host->dir);
    host_configure(host, NULL, 0);
    OK(provision_all(host->config, NULL, err));
    OK(log_open(host->config, &host->log, err));
    OK(log_publisher_open(host->log, &host->publisher, err));
    *state = host;
    return 0;
}

static int host_remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

static struct topic_name host_topic(enum topic_kind kind)
{
    return topic_name(kind, PREFIX, topic_kind_of_service(kind) ? SERVICE : NULL);
}

/* ---- workers ---- */

static void write_line(void *arg, enum diag_level level, const char *line, size_t len)
{
    (void)level;
    ssize_t n = write(*(int *)arg, line, len);
    (void)n;
}

/* The child's whole life. */
static void worker_main(struct host *host, const char *id, const char *faults, bool drain, int wake)
{
    static int lines;
    char path[128];
    char text[256];
    struct baton_error err = {0};
    const struct rlimit none = {0, 0};
    struct worker_options options = {.config = host->config,
                                     .service = SERVICE,
                                     .id = id,
                                     .drain = drain,
                                     .wake_fd = wake,
                                     .callback = execute,
                                     .callback_arg = host,
                                     .callback_threads = 8};
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setrlimit(RLIMIT_CORE, &none);
    snprintf(path, sizeof(path), "%s/%s.log", host->dir, id);
    lines = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    dup2(lines, 2); /* broken contracts and sanitizers speak there, too */
    diag_set(write_line, &lines, DIAG_info, DIAG_FORM_readable);
#ifdef BATON_FAULTS
    fault_begin(); /* else the first point would read the environment over it */
    if (!fault_set(faults, text, sizeof(text))) {
        dprintf(2, "%s\n", text);
        _exit(99);
    }
#else
    (void)text;
    (void)faults;
#endif
    baton_code rc = worker_run(&options, &err);
    if (rc != BATON_OK) {
        dprintf(2, "worker_run: %s: %s\n", baton_code_word(rc), err.text);
    }
    exit(rc == BATON_OK ? 0 : baton_code_exit(rc));
}

static struct worker_process *host_worker(struct host *host, const char *id)
{
    struct worker_process *unused = NULL;
    for (int i = 0; i < WORKERS_MAX; i++) {
        if (strcmp(host->workers[i].id, id) == 0) {
            return &host->workers[i];
        }
        if (unused == NULL && host->workers[i].id[0] == '\0') {
            unused = &host->workers[i];
        }
    }
    assert_non_null(unused);
    snprintf(unused->id, sizeof(unused->id), "%s", id);
    return unused;
}

static void worker_start_as(struct host *host, const char *id, const char *faults, bool drain)
{
    struct worker_process *worker = host_worker(host, id);
    int fds[2];
    assert_int_equal(worker->pid, 0);
    assert_int_equal(pipe2(fds, O_CLOEXEC | O_NONBLOCK), 0);
    fflush(NULL);
    worker->pid = fork();
    assert_true(worker->pid >= 0);
    if (worker->pid == 0) {
        close(fds[1]);
        worker_main(host, id, faults, drain, fds[0]);
    }
    close(fds[0]);
    worker->wake = fds[1];
}

__attribute__((unused)) static void worker_start(struct host *host, const char *id)
{
    worker_start_as(host, id, "", false);
}

/* What the worker wrote, for a failed test. */
static void show_log(struct host *host, const char *id)
{
    char path[128];
    char text[4096];
    snprintf(path, sizeof(path), "%s/%s.log", host->dir, id);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        off_t end = lseek(fd, 0, SEEK_END);
        lseek(fd, end > (off_t)sizeof(text) ? end - (off_t)sizeof(text) : 0, SEEK_SET);
        ssize_t n = read(fd, text, sizeof(text));
        fprintf(stderr, "---- %s\n%.*s\n", id, (int)(n > 0 ? n : 0), text);
        close(fd);
    }
}

/* Waits for the end of a worker; its status of waitpid. */
static int worker_wait(struct host *host, const char *id)
{
    struct worker_process *worker = host_worker(host, id);
    int status = 0;
    assert_true(worker->pid > 0);
    for (int64_t end = mono_now().v + WAIT_MS;;) {
        pid_t pid = waitpid(worker->pid, &status, WNOHANG);
        if (pid == worker->pid) {
            break;
        }
        if (mono_now().v > end) {
            show_log(host, id);
            fail_msg("worker %s does not end", id);
        }
        usleep(2000);
    }
    close(worker->wake);
    worker->pid = 0;
    return status;
}

/* It was killed (by a fault point or by itself). */
__attribute__((unused)) static void worker_wait_killed(struct host *host, const char *id)
{
    int status = worker_wait(host, id);
    if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL) {
        show_log(host, id);
        fail_msg("worker %s: status %x instead of SIGKILL", id, (unsigned)status);
    }
}

__attribute__((unused)) static void worker_wait_ok(struct host *host, const char *id)
{
    int status = worker_wait(host, id);
    if (status != 0) {
        show_log(host, id);
        fail_msg("worker %s: status %x", id, (unsigned)status);
    }
}

__attribute__((unused)) static void worker_kill(struct host *host, const char *id)
{
    kill(host_worker(host, id)->pid, SIGKILL);
    worker_wait_killed(host, id);
}

__attribute__((unused)) static void worker_stop(struct host *host, const char *id)
{
    char stop = WAKE_STOP;
    assert_int_equal(write(host_worker(host, id)->wake, &stop, 1), 1);
    worker_wait_ok(host, id);
}

/* Runs until nothing is left to do. */
__attribute__((unused)) static void worker_drain(struct host *host, const char *id)
{
    worker_start_as(host, id, "", true);
    worker_wait_ok(host, id);
}

__attribute__((unused)) static void host_go(struct host *host)
{
    int fd = open(host->go, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    close(fd);
}

/* ---- what is sent ---- */

static void send_value(struct host *host, enum topic_kind kind, const char *key, const void *value,
                       size_t len, bool wait)
{
    struct topic_name topic = host_topic(kind);
    const struct log_header header = {"baton-wait", "claimed", 7};
    struct log_record record = {.topic = topic.s,
                                .partition = LOG_PARTITION_BY_KEY,
                                .key = key,
                                .key_len = strlen(key),
                                .value = value,
                                .value_len = len,
                                .headers = &header,
                                .n_headers = wait ? 1 : 0};
    OK(log_publish(host->publisher, &record, 1, 10000, err));
}

struct sending {
    enum role role;
    const char *plan;
    const char *key;       /* NULL: a new one */
    const char *reason;    /* another content under the same key */
    int64_t not_before_ms; /* from now */
    bool wait;
    int partition; /* that the turn shall be in, from 1; 0: any (only without a key) */
};

static struct turn_id send_turn_as(struct host *host, const struct sending *sending)
{
    char key[32];
    struct turn *turn = NULL;
    const struct turn_draft draft = {
        .fleet = PREFIX,
        .origin = "tester",
        .service = SERVICE,
        .role = sending->role,
        .task_id = "t-1",
        .run_id = "",
        .intent = "work",
        .key = sending->key != NULL ? sending->key : key,
        .parent = "",
        .created_at = wall_now(),
        .not_before = {sending->not_before_ms > 0 ? wall_now().v + sending->not_before_ms : 0},
        .summary = sending->plan,
        .payload = sending->reason != NULL ? sending->reason : "p",
        .payload_len = sending->reason != NULL ? strlen(sending->reason) : 1};
    do {
        turn_free(turn);
        snprintf(key, sizeof(key), "k%d", ++host->n_turns);
        OK(turn_encode(&draft, &turn, err));
    } while (sending->partition > 0 &&
             log_partition_of(turn->id.s, strlen(turn->id.s), host->config->partitions) !=
                 sending->partition - 1);
    struct turn_id id = turn->id;
    send_value(host, TOPIC_handoff, id.s, turn->bytes, turn->len, sending->wait);
    turn_free(turn);
    return id;
}

__attribute__((unused)) static struct turn_id send_turn(struct host *host, enum role role,
                                                        const char *plan)
{
    const struct sending sending = {.role = role, .plan = plan};
    return send_turn_as(host, &sending);
}

static void send_control(struct host *host, struct control *control)
{
    struct buf value = BUF_INIT;
    random_hex(control->id.s, 32);
    control->at = wall_now();
    control_encode(control, &value);
    assert_true(buf_ok(&value));
    send_value(host, TOPIC_control, control->turn_id.s, value.data, value.len, false);
    buf_done(&value);
}

__attribute__((unused)) static void send_cancel(struct host *host, const char *turn_id)
{
    struct control control = {
        .kind = CONTROL_cancel, .turn_id = turn_id_of(turn_id), .reason = (char *)"enough"};
    send_control(host, &control);
}

__attribute__((unused)) static void send_replay(struct host *host, const char *turn_id, int attempt,
                                                bool again)
{
    struct control control = {
        .kind = CONTROL_replay, .turn_id = turn_id_of(turn_id), .attempt = attempt, .again = again};
    send_control(host, &control);
}

/* ---- what is there ---- */

/* Reads all records of a topic, each partition in its order. */
static void each_record(struct host *host, enum topic_kind kind,
                        void (*fn)(const struct log_record *record, void *arg), void *arg)
{
    struct topic_name topic = host_topic(kind);
    for (int32_t p = 0; p < host->config->partitions; p++) {
        struct log_reader *reader = NULL;
        struct log_batch batch = {0};
        OK(log_reader_open(host->log, topic.s, p, 0, LOG_READ_committed, &reader, err));
        do {
            OK(log_reader_next(reader, 500, 0, &batch, err));
            for (size_t i = 0; i < batch.count; i++) {
                fn(&batch.records[i], arg);
            }
        } while (!batch.at_end);
        log_reader_close(reader);
        log_batch_free(&batch);
    }
}

struct finding {
    const char *id;
    struct turn_record *record;
    bool found;
};

static void find_turn(const struct log_record *record, void *arg)
{
    struct finding *finding = arg;
    if (record->key_len == 32 && memcmp(record->key, finding->id, 32) == 0 &&
        record->value != NULL) {
        struct baton_error err = {0};
        turn_record_done(finding->record);
        if (turn_record_parse(record->value, record->value_len, finding->record, &err) !=
            BATON_OK) {
            fail_msg("turn log: %s", err.text);
        }
        finding->found = true;
    }
}

/* The turn log's word about a turn; false: it does not know it. */
static bool turn_in_log(struct host *host, const char *id, struct turn_record *ret_record)
{
    struct finding finding = {id, ret_record, false};
    turn_record_init(ret_record);
    each_record(host, TOPIC_turns, find_turn, &finding);
    return finding.found;
}

/* Waits for a state, and an attempt number (0: any). */
__attribute__((unused)) static void wait_for(struct host *host, const char *id,
                                             enum turn_state state, int attempt)
{
    struct turn_record record;
    for (int64_t end = mono_now().v + WAIT_MS;; usleep(3000)) {
        bool found = turn_in_log(host, id, &record);
        bool there = found && record.state == state && (attempt == 0 || record.attempt == attempt);
        enum turn_state now = record.state;
        int no = record.attempt;
        turn_record_done(&record);
        if (there) {
            return;
        }
        if (mono_now().v > end) {
            for (int i = 0; i < WORKERS_MAX; i++) {
                if (host->workers[i].id[0] != '\0') {
                    show_log(host, host->workers[i].id);
                }
            }
            fail_msg("turn %s is %s at attempt %d, not %s", id,
                     found ? turn_state_word(now) : "unknown", no, turn_state_word(state));
        }
    }
}

struct listing {
    const char *id;
    char text[4096];
};

static void list_outcome(const struct log_record *record, void *arg)
{
    struct listing *listing = arg;
    struct outcome *outcome = NULL;
    OK(outcome_parse(record->value, record->value_len, &outcome, err));
    if (strcmp(outcome->turn_id.s, listing->id) == 0) {
        size_t n = strlen(listing->text);
        snprintf(listing->text + n, sizeof(listing->text) - n, "%s%s%s%s", n > 0 ? " " : "",
                 outcome_word(outcome->event), outcome->event == OUTCOME_answer ? ":" : "",
                 outcome->event == OUTCOME_answer ? baton_code_word(outcome->code) : "");
    }
    outcome_free(outcome);
}

/* What was told about a turn, in order: `claimed completed answer:ok`. */
static const char *outcomes_of(struct host *host, const char *id)
{
    static struct listing listing;
    memset(&listing, 0, sizeof(listing));
    listing.id = id;
    each_record(host, TOPIC_outcomes, list_outcome, &listing);
    return listing.text;
}

static void list_letter(const struct log_record *record, void *arg)
{
    struct listing *listing = arg;
    if (record->key_len == 32 && memcmp(record->key, listing->id, 32) == 0) {
        for (size_t i = 0; i < record->n_headers; i++) {
            if (strcmp(record->headers[i].name, "baton-code") == 0) {
                size_t n = strlen(listing->text);
                snprintf(listing->text + n, sizeof(listing->text) - n, "%s%.*s", n > 0 ? " " : "",
                         (int)record->headers[i].value_len, (const char *)record->headers[i].value);
            }
        }
    }
}

/* Codes of the dead letters of a key. */
static const char *letters_of(struct host *host, const char *id)
{
    static struct listing listing;
    memset(&listing, 0, sizeof(listing));
    listing.id = id;
    each_record(host, TOPIC_dlq, list_letter, &listing);
    return listing.text;
}

/* Waits until the text of outcomes holds a word. */
__attribute__((unused)) static void wait_told(struct host *host, const char *id, const char *word)
{
    for (int64_t end = mono_now().v + WAIT_MS; strstr(outcomes_of(host, id), word) == NULL;
         usleep(3000)) {
        if (mono_now().v > end) {
            show_log(host, host->workers[0].id);
            fail_msg("'%s' was not told of %s: %s", word, id, outcomes_of(host, id));
        }
    }
}

/* The attempts of a turn as `1:failed/overloaded/one 2:completed//one`. */
__attribute__((unused)) static const char *attempts_of(struct host *host, const char *id)
{
    static char text[8192];
    struct turn_record record;
    text[0] = '\0';
    if (turn_in_log(host, id, &record)) {
        for (size_t i = 0; i < record.n_attempts; i++) {
            const struct attempt *a = &record.attempts[i];
            size_t n = strlen(text);
            snprintf(text + n, sizeof(text) - n, "%s%d:%s/%s/%s", n > 0 ? " " : "", a->no,
                     attempt_state_word(a->state), a->has_class ? failure_word(a->class) : "",
                     a->profile.s);
        }
    }
    turn_record_done(&record);
    return text;
}

/* How often an attempt was called; attempt 0: any of them. */
static int calls_of(struct host *host, const char *id, int attempt)
{
    char line[160];
    int count = 0;
    FILE *file = fopen(host->calls, "r");
    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        count +=
            strncmp(line, id, 32) == 0 && (attempt == 0 || strtol(line + 33, NULL, 10) == attempt)
                ? 1
                : 0;
    }
    if (file != NULL) {
        fclose(file);
    }
    return count;
}

__attribute__((unused)) static void wait_called(struct host *host, const char *id, int attempt)
{
    for (int64_t end = mono_now().v + WAIT_MS; calls_of(host, id, attempt) == 0; usleep(2000)) {
        if (mono_now().v > end) {
            show_log(host, host->workers[0].id);
            fail_msg("attempt %d of %s was not called: %s", attempt, id, attempts_of(host, id));
        }
    }
}

/* The first column of the first row of a worker's store, read from outside. */
__attribute__((unused)) static const char *store_text(struct host *host, const char *worker,
                                                      const char *sql)
{
    static char text[1024];
    char path[160];
    sqlite3 *handle = NULL;
    sqlite3_stmt *stmt = NULL;
    snprintf(path, sizeof(path), "%s/data/" SERVICE "/%s/store.db", host->dir, worker);
    assert_int_equal(sqlite3_open_v2(path, &handle, SQLITE_OPEN_READWRITE, NULL), SQLITE_OK);
    sqlite3_busy_timeout(handle, 5000);
    int rc = sqlite3_prepare_v2(handle, sql, -1, &stmt, NULL);
    text[0] = '\0'; /* before its worker has made the tables, too */
    if (rc == SQLITE_OK && sqlite3_step(stmt) == SQLITE_ROW &&
        sqlite3_column_text(stmt, 0) != NULL) {
        snprintf(text, sizeof(text), "%s", (const char *)sqlite3_column_text(stmt, 0));
    }
    sqlite3_finalize(stmt);
    sqlite3_close(handle);
    return text;
}

__attribute__((unused)) static void wait_stored(struct host *host, const char *worker,
                                                const char *sql, const char *text)
{
    char path[160];
    snprintf(path, sizeof(path), "%s/data/" SERVICE "/%s/store.db-wal", host->dir, worker);
    for (int64_t end = mono_now().v + WAIT_MS;
         access(path, F_OK) != 0 || strcmp(store_text(host, worker, sql), text) != 0;
         usleep(3000)) {
        if (mono_now().v > end) {
            show_log(host, worker);
            fail_msg("%s: never %s", sql, text);
        }
    }
}

/* ---- what holds whatever happened (RULES S5: I1 to I4) ---- */

static void check_call(struct host *host, char *line)
{
    struct turn_record record;
    char *role = strrchr(line, ' ');
    int attempt = (int)strtol(line + 33, NULL, 10);
    line[32] = '\0';
    role[strcspn(role, "\n")] = '\0';
    if (!turn_in_log(host, line, &record)) {
        fail_msg("turn %s was called and the log does not know it", line);
    }
    if (strcmp(role + 1, role_word(record.role)) != 0) {
        fail_msg("turn %s is %s's and was called as %s", line, role_word(record.role), role + 1);
    }
    turn_record_done(&record);
    if (calls_of(host, line, attempt) != 1) {
        fail_msg("attempt %d of %s was called %d times", attempt, line,
                 calls_of(host, line, attempt));
    }
}

static int count_word(const char *text, const char *word)
{
    int count = 0;
    for (const char *at = text; (at = strstr(at, word)) != NULL; at++) {
        count++;
    }
    return count;
}

static void check_turn(const struct log_record *log_record, void *arg)
{
    struct host *host = arg;
    struct turn_record record;
    int live = 0;
    if (log_record->key_len != 32 || log_record->value == NULL) {
        return;
    }
    OK(turn_record_parse(log_record->value, log_record->value_len, &record, err));
    for (size_t i = 0; i < record.n_attempts; i++) {
        live += attempt_state_live(record.attempts[i].state) ? 1 : 0;
    }
    const char *told = outcomes_of(host, record.id.s);
    int ends = count_word(told, "completed") + count_word(told, "cancelled");
    bool one = record.state == TURN_parked ? live == 0 && ends == 0
               : record.state == TURN_queued || record.state == TURN_running
                   ? live == 1 && ends == 0
                   : live == 0 && ends == 1;
    if (record.state == TURN_parked) {
        one = one && letters_of(host, record.id.s)[0] != '\0';
    }
    if (!one) {
        fail_msg("turn %s is %s with %d live attempts, told: %s, letters: %s", record.id.s,
                 turn_state_word(record.state), live, told, letters_of(host, record.id.s));
    }
    turn_record_done(&record);
}

static void host_check(struct host *host)
{
    char line[160];
    FILE *file = fopen(host->calls, "r");
    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        check_call(host, line);
    }
    if (file != NULL) {
        fclose(file);
    }
    each_record(host, TOPIC_turns, check_turn, host);
}

__attribute__((unused)) static int host_teardown(void **state)
{
    struct host *host = *state;
    for (int i = 0; i < WORKERS_MAX; i++) {
        if (host->workers[i].pid > 0) {
            kill(host->workers[i].pid, SIGKILL);
            waitpid(host->workers[i].pid, NULL, 0);
            close(host->workers[i].wake);
            host->workers[i].pid = 0;
        }
    }
    if (!host->unchecked) {
        host_check(host);
    }
    log_publisher_close(host->publisher);
    log_close(host->log);
    config_free(host->config);
    nftw(host->dir, host_remove_one, 16, FTW_DEPTH | FTW_PHYS);
    free(host);
    return 0;
}

#define HOST_TEST(name) cmocka_unit_test_setup_teardown(name, host_setup, host_teardown)

#endif
