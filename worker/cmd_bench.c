/*
 * baton bench: measures a worker on this host, in a folder of its own that is removed afterwards.
 * In: deploy/baton.c  Out: worker/bench/bare.c, worker/bench/drain.c, worker/bench/latency.c,
 * worker/bench/idle.c, worker/bench/floor.c, worker/bench/restart.c, worker/bench/crash.c,
 * worker/bench/restore.c, worker/bench/runs.c, worker/bench/print.c
 */
#include "common/base/check.h"
#include "common/base/command.h"
#include "common/base/diag.h"
#include "common/base/jsonw.h"
#include "common/base/text.h"
#include "worker/bench/bench.h"

#include <stdio.h>
#include <string.h>

extern const struct baton_command cmd_bench;

/* What is the same for all that is measured in one run. */
struct ground {
    double bare_turns_s;
    double commit_ms; /* kafka: one transaction of the log alone */
    int64_t sync_ns;  /* local */
};

/* Where it is measured: a folder, or brokers and a prefix that nobody else has. */
struct where {
    const char *dir;
    const char *brokers; /* NULL: the local log */
    char run[32];
    char prefix[48];
    int sets;
};

static int64_t parallel_of(const struct command *cmd)
{
    const int64_t asked = command_int(cmd, "parallel");
    const bool kafka = strcmp(command_text(cmd, "log"), "kafka") == 0;
    return asked > 0 ? asked : kafka ? 1000 : 512;
}

/* Topics of a measurement are found by their names, and no other measurement has them. */
static struct bench_set next_set(struct where *where, enum bench_kind kind, bool proof,
                                 int64_t room)
{
    snprintf(where->prefix, sizeof(where->prefix), "%s-%d", where->run, ++where->sets);
    return (struct bench_set){.kind = kind,
                              .proof = proof,
                              .turns = room,
                              .brokers = where->brokers,
                              .prefix = where->prefix};
}

/* Sets up, measures, removes. */
static baton_code measure(struct command *cmd, struct where *where, const char *what, int64_t room,
                          struct bench_figures *figures, struct baton_error *err)
{
    struct bench_set set = next_set(where, figures->kind, figures->proof, room);
    const int64_t rate = command_int(cmd, "rate");
    const int64_t seconds = command_int(cmd, "seconds");

    set.keep = command_flag(cmd, "keep");
    command_note(cmd, "%s, proof %s: %s", bench_kind_word(figures->kind),
                 figures->proof ? "required" : "off", what);
    baton_code rc = bench_set_up(&set, where->dir, (int)parallel_of(cmd), err);
    if (rc == BATON_OK) {
        rc = strcmp(what, "drain") == 0 ? bench_drain(&set, room, &figures->drain, err)
             : strcmp(what, "latency") == 0
                 ? bench_latency(&set, rate, seconds, &figures->latency, err)
             : strcmp(what, "restart") == 0 ? bench_restart(&set, &figures->restart, err)
             : strcmp(what, "crash") == 0   ? bench_crash(&set, figures->crash, err)
             : strcmp(what, "restore") == 0
                 ? bench_restore(&set, command_int(cmd, "turns"), &figures->restore, err)
                 : bench_idle(&set, seconds, &figures->idle, err);
    }
    if (command_flag(cmd, "keep") && set.dir[0] != '\0') {
        command_note(cmd, "kept: %s", set.dir);
    }
    bench_set_down(&set, command_flag(cmd, "keep"));
    return rc;
}

/* The same of runs: their service has every role. */
static baton_code measure_runs(struct command *cmd, struct where *where,
                               struct bench_figures *figures, struct baton_error *err)
{
    const struct bench_runs_plan plan = {.runs = command_int(cmd, "runs"),
                                         .open = command_int(cmd, "open"),
                                         .turns = command_int(cmd, "turns"),
                                         .rate = command_int(cmd, "rate"),
                                         .seconds = command_int(cmd, "seconds")};
    struct bench_set set = next_set(where, BENCH_callback, figures->proof, bench_runs_room(&plan));
    set.of_runs = true;
    set.keep = command_flag(cmd, "keep");
    command_note(cmd, "proof %s: %lld runs in the run log", figures->proof ? "required" : "off",
                 (long long)plan.runs);
    diag_open_stderr(DIAG_error, DIAG_FORM_auto); /* filling moves runs, which has log lines */
    baton_code rc = bench_set_up(&set, where->dir, (int)parallel_of(cmd), err);
    if (rc == BATON_OK) {
        rc = bench_runs(&set, &plan, &figures->runs, err);
    }
    if (command_flag(cmd, "keep") && set.dir[0] != '\0') {
        command_note(cmd, "kept: %s", set.dir);
    }
    if (where->brokers != NULL) {
        command_note(cmd, "left on the brokers: the topics whose names hold %s-", where->run);
    }
    bench_set_down(&set, command_flag(cmd, "keep"));
    return rc;
}

/* Is the word in a list with commas? */
static bool is_listed(const char *list, const char *word)
{
    const size_t len = strlen(word);
    for (const char *at = list; (at = strstr(at, word)) != NULL; at += len) {
        if ((at == list || at[-1] == ',') && (at[len] == ',' || at[len] == '\0')) {
            return true;
        }
    }
    return false;
}

static baton_code measure_all(struct command *cmd, struct where *where,
                              struct bench_figures *figures, struct baton_error *err)
{
    const int64_t timed = command_int(cmd, "rate") * command_int(cmd, "seconds") + BENCH_WARM_TURNS;
    const struct {
        const char *what;
        int64_t room; /* turns */
    } steps[] = {{"drain", command_int(cmd, "turns")},
                 {"latency", timed},
                 {"idle", BENCH_STARTS},
                 {"restart", BENCH_KILLS * BENCH_PLACES}};
    baton_code rc = BATON_OK;
    for (size_t i = 0; rc == BATON_OK && i < COUNT_OF(steps); i++) {
        if (is_listed(command_text(cmd, "measure"), steps[i].what) &&
            (steps[i].room > BENCH_WARM_TURNS || strcmp(steps[i].what, "latency") != 0)) {
            rc = measure(cmd, where, steps[i].what, steps[i].room, figures, err);
        }
    }
    return rc;
}

static baton_code measure_ground(struct command *cmd, struct where *where,
                                 struct ground *ret_ground, struct baton_error *err)
{
    struct bench_set set = next_set(where, BENCH_callback, false, 1);
    struct bench_floor floor = {0};
    command_note(cmd, where->brokers != NULL ? "the log's work alone" : "the SQLite work alone");
    ret_ground->sync_ns = bench_sync_ns(where->dir);
    baton_code rc = bench_set_up(&set, where->dir, 1, err);
    if (rc == BATON_OK && where->brokers != NULL) {
        rc = bench_floor(&set, command_int(cmd, "turns"), &floor, err);
        ret_ground->bare_turns_s = floor.turns_s;
        ret_ground->commit_ms = floor.commit_ms;
    } else if (rc == BATON_OK) {
        rc = bench_bare(&set, command_int(cmd, "turns"), &ret_ground->bare_turns_s, err);
    }
    bench_set_down(&set, false);
    return rc;
}

/* ---- printing ---- */

static void print_json(struct command *cmd, const struct bench_figures *list, size_t count,
                       const struct ground *ground)
{
    struct buf out = BUF_INIT;
    struct jsonw w = jsonw_to(&out);
    jsonw_begin_object(&w);
    jsonw_key_text(&w, "log", command_text(cmd, "log"));
    jsonw_key_int(&w, "turns", command_int(cmd, "turns"));
    jsonw_key_int(&w, "payload_bytes", BENCH_PAYLOAD);
    jsonw_key_int(&w, "parallel", parallel_of(cmd));
    jsonw_key_int(&w, "rate", command_int(cmd, "rate"));
    jsonw_key(&w, "sync_ms");
    jsonw_real(&w, (double)ground->sync_ns / 1e6);
    jsonw_key(&w, "bare_commit_ms");
    jsonw_real(&w, ground->commit_ms);
    jsonw_key(&w, "bare_turns_per_s");
    jsonw_real(&w, ground->bare_turns_s);
    jsonw_key(&w, "measured");
    jsonw_begin_array(&w);
    for (size_t i = 0; i < count; i++) {
        const struct bench_figures *at = &list[i];
        const struct {
            const char *key;
            double value;
        } reals[] = {
            {"turns_per_s", at->drain.turns_s},
            {"commits_per_s", at->drain.commits_s},
            {"cpu_s_per_1000", at->drain.cpu_ms_turn},
            {"p50_ms", at->latency.p50_ms},
            {"p99_ms", at->latency.p99_ms},
            {"worst_ms", at->latency.worst_ms},
            {"first_turn_ms", at->idle.first_ms},
            {"idle_cpu_percent", at->idle.cpu_percent},
            {"restart_ms", at->restart.ms},
        };
        jsonw_begin_object(&w);
        jsonw_key_text(&w, "executor", bench_kind_word(at->kind));
        jsonw_key_bool(&w, "proof", at->proof);
        for (size_t k = 0; k < COUNT_OF(reals); k++) {
            jsonw_key(&w, reals[k].key);
            jsonw_real(&w, reals[k].value);
        }
        jsonw_key_bool(&w, "restart_noticed", at->restart.noticed);
        jsonw_key_int(&w, "peak_kib", at->drain.peak_kib);
        jsonw_key_int(&w, "idle_rss_kib", at->idle.rss_kib);
        jsonw_end(&w);
    }
    jsonw_end(&w);
    jsonw_end(&w);
    buf_add_char(&out, '\n');
    (void)command_print(cmd, &out); /* the frame tells */
    buf_done(&out);
}

static void cell(struct table *table, int digits, double value)
{
    char text[32];
    snprintf(text, sizeof(text), "%.*f", digits, value);
    table_text(table, text);
}

static void print_table(struct command *cmd, const struct where *where,
                        const struct bench_figures *list, size_t count, const struct ground *ground)
{
    static const char *const titles[] = {
        "EXECUTOR", "PROOF",    "TURNS/S", "COMMITS/S",  "CPU S/1000", "PEAK MB", "P50 MS",
        "P99 MS",   "FIRST MS", "IDLE MB", "IDLE CPU %", "RESTART MS", "NOTICED"};
    struct table *table = table_new(titles, COUNT_OF(titles));
    if (table == NULL) {
        (void)command_fail(cmd, BATON_E_no_memory, NULL);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        const struct bench_figures *at = &list[i];
        table_text(table, bench_kind_word(at->kind));
        table_text(table, at->proof ? "required" : "off");
        table_int(table, (int64_t)at->drain.turns_s);
        cell(table, 1, at->drain.commits_s);
        cell(table, 3, at->drain.cpu_ms_turn);
        cell(table, 1, (double)at->drain.peak_kib / 1024);
        cell(table, 2, at->latency.p50_ms);
        cell(table, 2, at->latency.p99_ms);
        cell(table, 1, at->idle.first_ms);
        cell(table, 1, (double)at->idle.rss_kib / 1024);
        cell(table, 2, at->idle.cpu_percent);
        cell(table, 1, at->restart.ms);
        table_text(table, at->restart.noticed ? "yes" : "no");
    }
    (void)command_table(cmd, table);
    table_free(table);
    command_note(cmd, "backlog %lld turns of %d bytes, parallel %lld; %lld turns/s for the waits",
                 (long long)command_int(cmd, "turns"), BENCH_PAYLOAD, (long long)parallel_of(cmd),
                 (long long)command_int(cmd, "rate"));
    if (where->brokers != NULL) {
        command_note(cmd,
                     "what bounds it: the log's work alone does %lld turns/s here, and one of its "
                     "transactions takes %.1f ms",
                     (long long)ground->bare_turns_s, ground->commit_ms);
        command_note(cmd, "left on the brokers: the topics whose names hold %s-", where->run);
    } else {
        command_note(cmd,
                     "what bounds it: fdatasync takes %.2f ms here, and the SQLite work alone does "
                     "%lld turns/s",
                     (double)ground->sync_ns / 1e6, (long long)ground->bare_turns_s);
    }
}

/* ---- the verb ---- */

/* Which of two words is asked for; `both` is both. */
static bool wanted(const char *asked, const char *word)
{
    return strcmp(asked, "both") == 0 || strcmp(asked, word) == 0;
}

static bool one_of(const char *asked, const char *first, const char *second)
{
    return wanted(asked, first) || strcmp(asked, second) == 0;
}

/* The brokers are written into a configuration: nothing but what a list of them consists of. */
static bool brokers_plain(const char *brokers)
{
    return brokers[0] != '\0' &&
           strspn(brokers,
                  "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_:[],") ==
               strlen(brokers);
}

static bool find_place(struct command *cmd, struct where *where)
{
    const char *brokers = command_text(cmd, "brokers");
    const bool kafka = strcmp(command_text(cmd, "log"), "kafka") == 0;
    const struct boot_id random = boot_id_new();
    where->dir = command_text(cmd, "dir");
    where->brokers = kafka ? brokers : NULL;
    snprintf(where->run, sizeof(where->run), "baton-bench-%.8s", random.s);
    return kafka ? brokers != NULL && brokers_plain(brokers)
                 : strcmp(command_text(cmd, "log"), "local") == 0 && brokers == NULL;
}

static int run(struct command *cmd)
{
    struct bench_figures list[2 * BENCH_KIND_COUNT] = {0};
    struct baton_error err = {BATON_OK, ""};
    const char *kinds = command_text(cmd, "kind");
    const char *proofs = command_text(cmd, "proof");
    struct ground ground = {0};
    struct where where = {0};
    size_t count = 0;
    baton_code rc;
    const char *word = cmd->n_args == 1 ? cmd->args[0] : "";
    const bool crash = strcmp(word, "crash") == 0;
    const bool restore = strcmp(word, "restore") == 0;
    const bool runs = strcmp(word, "runs") == 0;

    if (cmd->n_args > 0 && !crash && !restore && !runs) {
        const int status = bench_be(cmd->args, cmd->n_args);
        return status >= 0 ? status
                           : command_usage(cmd,
                                           "'%s' is nothing that is measured: crash, restore "
                                           "or runs, or no word for a worker",
                                           text_quote_of(cmd->args[0]).s);
    }
    if (!one_of(kinds, "callback", "child") || !one_of(proofs, "required", "off")) {
        return command_usage(cmd,
                             "--kind is callback, child or both; --proof is required, off or both");
    }
    if (!find_place(cmd, &where)) {
        return command_usage(cmd, "--log is local, or kafka with --brokers HOST:PORT[,HOST:PORT]");
    }
    if (restore) { /* neither executor nor proof has to do with it */
        rc = measure(cmd, &where, "restore", BENCH_STARTS, &list[0], &err);
        if (rc != BATON_OK) {
            return command_fail(cmd, rc, &err);
        }
        bench_print_restore(cmd, &list[0]);
        return 0;
    }
    rc = crash || runs ? BATON_OK : measure_ground(cmd, &where, &ground, &err);
    if (rc != BATON_OK) {
        return command_fail(cmd, rc, &err);
    }
    for (int kind = 0; kind < BENCH_KIND_COUNT; kind++) {
        for (int proof = 1; proof >= 0; proof--) {
            if (!wanted(kinds, bench_kind_word((enum bench_kind)kind)) ||
                !wanted(proofs, proof ? "required" : "off") || (runs && kind != BENCH_callback)) {
                continue;
            }
            struct bench_figures *at = &list[count++];
            *at = (struct bench_figures){.kind = (enum bench_kind)kind, .proof = proof != 0};
            rc = crash  ? measure(cmd, &where, "crash", BENCH_CRASH_TURNS, at, &err)
                 : runs ? measure_runs(cmd, &where, at, &err)
                        : measure_all(cmd, &where, at, &err);
            if (rc != BATON_OK) {
                return command_fail(cmd, rc, &err);
            }
        }
    }
    if (runs) {
        bench_print_runs(cmd, list, count);
    } else if (crash) {
        bench_print_crashes(cmd, list, count);
    } else if (cmd->json) {
        print_json(cmd, list, count, &ground);
    } else {
        print_table(cmd, &where, list, count, &ground);
    }
    return 0;
}

static const struct command_option options[] = {
    {.name = "log",
     .argument = "WORD",
     .kind = OPTION_text,
     .fallback = "local",
     .help = "local, or kafka: on the brokers that --brokers names."},
    {.name = "brokers",
     .argument = "LIST",
     .kind = OPTION_text,
     .help = "HOST:PORT[,HOST:PORT] (--log kafka). Topics are made there and stay there."},
    {.name = "turns",
     .argument = "N",
     .kind = OPTION_int,
     .fallback = "20000",
     .min = 1,
     .max = BENCH_TURNS_MAX,
     .help = "The backlog that is drained, or what the turn log holds (restore)."},
    {.name = "runs",
     .argument = "N",
     .kind = OPTION_int,
     .fallback = "1000",
     .min = 0,
     .max = BENCH_TURNS_MAX,
     .help = "What the run log holds before runs are measured (runs)."},
    {.name = "open",
     .argument = "N",
     .kind = OPTION_int,
     .fallback = "100",
     .min = 0,
     .max = BENCH_TURNS_MAX,
     .help = "How many of them wait for a person; the others have ended (runs)."},
    {.name = "rate",
     .argument = "N",
     .kind = OPTION_int,
     .fallback = "200",
     .min = 0,
     .max = 10000,
     .help = "Turns a second while waits are measured; 0: they are not."},
    {.name = "seconds",
     .argument = "N",
     .kind = OPTION_int,
     .fallback = "5",
     .min = 1,
     .max = 60,
     .help = "How long waits are measured, and how long an idle worker is watched."},
    {.name = "kind",
     .argument = "KIND",
     .kind = OPTION_text,
     .fallback = "both",
     .help = "callback (a function in the worker), child (a long-lived program) or both."},
    {.name = "proof",
     .argument = "WORD",
     .kind = OPTION_text,
     .fallback = "both",
     .help = "required, off or both."},
    {.name = "measure",
     .argument = "LIST",
     .kind = OPTION_text,
     .fallback = "drain,latency,idle,restart",
     .help = "What is measured; what is not stands as 0."},
    {.name = "parallel",
     .argument = "N",
     .kind = OPTION_int,
     .fallback = "0",
     .min = 0,
     .max = 1000,
     .help =
         "Turns at a time; 0: 512, or 1000 on Kafka, where few large transactions are cheapest."},
    {.name = "dir",
     .argument = "FOLDER",
     .kind = OPTION_text,
     .fallback = "/var/tmp",
     .help = "Where the folder of a measurement is made: on the disk that is to be measured, not "
             "in memory."},
    {.name = "keep", .kind = OPTION_flag, .help = "Leaves the folders there, and names them."},
};

const struct baton_command cmd_bench = {
    .name = "bench",
    .summary = "measure a worker on this host",
    .usage =
        "[crash|restore|runs] [--log WORD --brokers LIST] [--turns N] [--kind KIND] [--proof WORD] "
        "[--json]",
    .description =
        "Makes a log with a service of its own (on Kafka: topics of their own names), "
        "and runs turns that do nothing "
        "through a worker in a process of "
        "its own. TURNS/S: from the moment the worker is ready until the log holds "
        "every outcome of the backlog. P50, "
        "P99: from the moment at which a publish is due to the start of its executor. "
        "FIRST: from the start of the "
        "worker's process to its first turn. RESTART: from kill -9 of a worker that is "
        "started again under its id to its next turn; NOTICED: whether another worker "
        "of the service got new partitions meanwhile (on the local log a death is an "
        "event, and it does). CPU and memory are the worker's, with its "
        "executors.\n\n"
        "baton bench crash: from kill -9 of a worker with ten running turns until their "
        "next attempts have started. KILLED elsewhere: another worker takes over; same "
        "id: it is started again at once; committing: while it commits all the time, on "
        "Kafka with a transaction open, and another one takes over. baton bench "
        "restore: from the start of "
        "a worker to its first turn with --turns ended turns in the turn log, its store "
        "being EMPTY, and KEPT from before. baton bench runs: paired reviews of eight turns "
        "through a coordinator, with --runs runs in the run log. START: from the start of "
        "the coordinator until it has begun runs in all partitions; RSS: its memory then. "
        "HANDOFFS/S: next turns that have started, --turns turns at once. P50, P99: from "
        "the end of a turn to the start of the next one's executor, at --rate turns a "
        "second. CPU and PEAK are the coordinator's.\n\n"
        "Everything is durable, as in use; the figures depend on the disk, or on the "
        "brokers. "
        "Nothing that is configured is "
        "read or touched.",
    .options = options,
    .n_options = COUNT_OF(options),
    .args_max = 4, /* do-work, do-runs, do-turns: the processes that it starts itself */
    .examples =
        "# everything, about two minutes\nbaton bench\n"
        "# on a cluster\nbaton bench --log kafka --brokers 127.0.0.1:9092 --kind callback\n"
        "# how long a death holds up ten running turns\nbaton bench crash --kind child --proof "
        "required\n"
        "# what a new host needs for a million turns\nbaton bench restore --turns 1000000\n"
        "# how a coordinator gets on with a hundred thousand runs\nbaton bench runs --runs 100000 "
        "--proof required\n"
        "# one figure for a script\nbaton bench --kind callback --proof off --rate 0 --json\n",
    .run = run,
};
