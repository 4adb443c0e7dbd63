/*
 * What the files of `baton bench` share; nobody else includes it.
 *
 * A measurement has a folder of its own (configuration, keys, trust, log, store), a worker in a
 * process of its own (so that its CPU time and memory are its own), and one page that both
 * processes map: when which turn was published and when its executor started, on one clock.
 *
 * In: worker/cmd_bench.c  Out: worker/worker.c
 */
#ifndef BATON_WORKER_BENCH_BENCH_H
#define BATON_WORKER_BENCH_BENCH_H

#include "baton/code.h"
#include "common/base/config.h"
#include "common/log/log.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define BENCH_SERVICE "bench"
#define BENCH_ROLE "owner"
#define BENCH_VERDICT "done"
#define BENCH_FOLDER "baton-bench-" /* and six more: the folder of a measurement */
#define BENCH_TASK "turn-" /* and the turn's number: how an executor knows which one it has */
#define BENCH_PAYLOAD 500
#define BENCH_TURNS_MAX 1000000
#define BENCH_WARM_TURNS                                                                           \
    20 /* published first and not counted: statements are prepared, pages are there */
#define BENCH_STARTS 5
#define BENCH_WORKER "measured"
#define BENCH_SECOND "second" /* another member of the group, while the first is killed */
#define BENCH_KILLS 3
#define BENCH_PLACES 1000        /* so many numbers are tried until a turn falls where it should */
#define BENCH_RUNNING 10         /* turns that run when their worker is killed */
#define BENCH_CRASH_TURNS 500000 /* room in the page */
#define BENCH_WARM_RUNS 20       /* as BENCH_WARM_TURNS */
#define BENCH_RUN_CHANGES 3      /* that a reviewer asks for before it approves */
#define BENCH_RUN_TURNS (2 * (BENCH_RUN_CHANGES + 1))
#define BENCH_RUN_TURN_MS                                                                          \
    30 /* an executor takes, where it is measured how long what follows takes */
#define BENCH_RUN_THREADS 32 /* of executors */

enum bench_kind { BENCH_callback, BENCH_child, BENCH_KIND_COUNT };
const char *bench_kind_word(enum bench_kind kind);

/* Mapped by the publisher and by whoever starts turns. Nanoseconds of mono_ns. */
struct bench_page {
    _Atomic int64_t ready_ns;   /* the worker has joined its group */
    _Atomic int64_t first_ns;   /* the first executor started */
    _Atomic int64_t started;    /* turns */
    _Atomic int64_t commits;    /* of the log, when the worker has ended */
    _Atomic int64_t held;       /* first attempts of turns with lower numbers do not end */
    _Atomic int64_t again;      /* starts of their next attempts; runs: of their first turns */
    _Atomic int64_t threads;    /* for a callback; 0: one */
    int64_t runs;               /* there is room for; 0: turns are of none */
    _Atomic int64_t turn_ms;    /* that an executor of a run's turn takes */
    _Atomic int64_t start_ns[]; /* runs: start and end of each turn of a run, run after run */
};

/* ---- setup.c: a folder with everything in it ---- */

struct bench_set {
    enum bench_kind kind;
    bool proof;
    const char *brokers; /* host:port[,host:port]; NULL: the local log */
    const char *prefix;  /* of the topics: one that nobody else has */
    int64_t turns;       /* room in the page */
    bool of_runs;        /* the service has every role */
    bool keep;           /* the folder stays, also where the measurement is interrupted */
    char dir[512];
    struct config *config;
    struct bench_page *page;
    pid_t cleaner; /* clean.c; 0: none */
    int cleaner_fd;
};
/* Makes a folder below parent, configuration, keys and topics. */
baton_code bench_set_up(struct bench_set *set, const char *parent, int parallel,
                        struct baton_error *err);
/* Removes it all, unless it is to be kept. */
void bench_set_down(struct bench_set *set, bool keep);
/* clean.c: from now on the folder is removed when this process ends, however; and no more. Both are
 * bench_set_up's and bench_set_down's. */
void bench_clean_begin(struct bench_set *set);
void bench_clean_end(struct bench_set *set);
void bench_remove(const char *dir);
/* The process that waits for it (`do-clean DIR`); the exit status. */
int bench_be_cleaner(const char *dir);
/* <dir>/page; NULL: it cannot be mapped. create: of so many turns. */
struct bench_page *bench_page_map(const char *dir, int64_t create);
/* Publishes the turns from number `from` on, of BENCH_PAYLOAD bytes, many in a transaction of the
 * log. */
baton_code bench_publish_backlog(const struct bench_set *set, int64_t from, int64_t turns,
                                 struct baton_error *err);
/* Publishes the first turn from number `from` on that falls into one of those partitions. */
baton_code bench_publish_into(const struct bench_set *set, int64_t from, const int32_t *partitions,
                              size_t count, int64_t *ret_number, struct baton_error *err);
/* What an fdatasync of a page costs in that folder: the median of a hundred, in nanoseconds. */
int64_t bench_sync_ns(const char *parent);

/* ---- process.c: the worker's process ---- */

struct bench_worker {
    pid_t pid;
    int wake_fd; /* closing it is a clean stop */
    int64_t spawned_ns;
};
struct bench_use {
    double cpu_s;    /* with the children that it has waited for, once it has ended */
    int64_t rss_kib; /* now */
    int64_t peak_kib;
};
baton_code bench_worker_start(const struct bench_set *set, const char *id,
                              struct bench_worker *ret_worker, struct baton_error *err);
/* A coordinator in the same way. */
baton_code bench_coordinator_start(const struct bench_set *set, const char *id,
                                   struct bench_worker *ret_coordinator, struct baton_error *err);
/* Of a running worker: itself, without children. */
struct bench_use bench_worker_use(const struct bench_worker *worker);
/* False: it has ended. */
bool bench_worker_runs(const struct bench_worker *worker);
/* A clean stop; *ret_use: its CPU time to the end, and its peak just before. */
baton_code bench_worker_stop(struct bench_worker *worker, struct bench_use *ret_use,
                             struct baton_error *err);
/* SIGKILL, and waits for its end. */
void bench_worker_kill(struct bench_worker *worker);
/* Waits until the page says what is asked; timed_out after a while, unexpected when the worker has
 * ended. */
baton_code bench_wait(const struct bench_worker *worker, const _Atomic int64_t *value,
                      int64_t at_least, struct baton_error *err);

/* The processes that bench starts (`do-work DIR KIND ID`, `do-runs DIR ID`, `do-turns DIR`,
 * `do-clean DIR`). Returns the exit status; below 0: it is none of them. */
int bench_be(const char *const *args, size_t n_args);

/* ---- what is measured (bare.c, floor.c, drain.c, latency.c, idle.c, restart.c, crash.c, restore.c,
 * runs.c) ---- */

/* The SQLite work of turns alone. */
baton_code bench_bare(const struct bench_set *set, int64_t turns, double *ret_turns_s,
                      struct baton_error *err);

/* The log's work of turns alone: read, and written back in transactions with their offsets. */
struct bench_floor {
    double turns_s;
    double commit_ms; /* one transaction; median */
};
baton_code bench_floor(const struct bench_set *set, int64_t turns, struct bench_floor *ret,
                       struct baton_error *err);

struct bench_drain {
    double turns_s;
    double cpu_ms_turn; /* CPU seconds for 1,000 turns */
    double commits_s;   /* transactions of the log */
    int64_t peak_kib;
};
baton_code bench_drain(const struct bench_set *set, int64_t turns, struct bench_drain *ret,
                       struct baton_error *err);

struct bench_latency {
    double p50_ms;
    double p99_ms;
    double worst_ms;
    double rate; /* reached */
};
baton_code bench_latency(const struct bench_set *set, int64_t rate, int64_t seconds,
                         struct bench_latency *ret, struct baton_error *err);

struct bench_idle {
    double first_ms; /* from the start of the process to the start of the first turn's executor;
                        median */
    int64_t rss_kib;
    double cpu_percent;
};
baton_code bench_idle(const struct bench_set *set, int64_t seconds, struct bench_idle *ret,
                      struct baton_error *err);

struct bench_restart {
    double ms; /* from kill -9 to the next turn's executor, with the start of the process; median */
    bool noticed; /* the other member got a new assignment meanwhile */
};
baton_code bench_restart(const struct bench_set *set, struct bench_restart *ret,
                         struct baton_error *err);

/* Who has which partitions, while BENCH_WORKER and BENCH_SECOND are the group. */
struct bench_group {
    struct log *log;
    struct log_group_member first;
    struct log_group_member second;
};
/* Waits until each of the two has some. */
baton_code bench_group_await(const struct bench_set *set, struct bench_group *group,
                             struct baton_error *err);

/* How a worker is killed, and who goes on. */
enum bench_crash_case { CRASH_elsewhere, CRASH_same_id, CRASH_committing, CRASH_CASE_COUNT };
const char *bench_crash_word(enum bench_crash_case crash);
struct bench_crash {
    double first_ms; /* from kill -9 to the first next attempt; median */
    double all_ms;   /* to the last of BENCH_RUNNING; median */
    double worst_ms;
};
/* For each case. The set has room for BENCH_CRASH_TURNS. */
baton_code bench_crash(const struct bench_set *set, struct bench_crash ret[CRASH_CASE_COUNT],
                       struct baton_error *err);

struct bench_restore {
    double fill_s;    /* it took to write the turns */
    double empty_s;   /* from the start of the process to its first turn, with an empty store */
    double kept_s;    /* and with its store */
    int64_t peak_kib; /* with an empty one */
};
/* With so many ended turns in the turn log. */
baton_code bench_restore(const struct bench_set *set, int64_t turns, struct bench_restore *ret,
                         struct baton_error *err);

struct bench_runs_plan {
    int64_t runs; /* in the run log before anything is measured */
    int64_t open; /* of them: they wait for a person */
    int64_t turns;
    int64_t rate; /* turns a second while waits are measured; 0: they are not */
    int64_t seconds;
};
struct bench_runs {
    double fill_s;      /* it took to write the runs */
    double start_s;     /* of the coordinator's process, until runs have begun in all partitions */
    double start_cpu_s; /* of its CPU time, then */
    int64_t rss_kib;    /* then */
    int64_t peak_kib;
    double handoffs_s; /* next turns that were sent, and have started */
    double cpu_s_1000; /* of the coordinator, for 1,000 of them */
    double p50_ms;     /* from the end of a turn to the start of the next one's executor */
    double p99_ms;
    double worst_ms;
};
/* The set has room for bench_runs_room. */
baton_code bench_runs(const struct bench_set *set, const struct bench_runs_plan *plan,
                      struct bench_runs *ret, struct baton_error *err);
int64_t bench_runs_room(const struct bench_runs_plan *plan);
/* A turn of a run is executed: what its executor says. number: of the run. */
const char *bench_do_run_turn(struct bench_page *page, const char *number, const char *role);

/* ---- print.c: what `baton bench crash`, `restore` and `runs` say ---- */

/* What is measured for one kind of executor. */
struct bench_figures {
    enum bench_kind kind;
    bool proof;
    struct bench_drain drain;
    struct bench_latency latency;
    struct bench_idle idle;
    struct bench_restart restart;
    struct bench_crash crash[CRASH_CASE_COUNT];
    struct bench_restore restore;
    struct bench_runs runs;
};
struct command; /* common/base/command.h */
void bench_print_crashes(struct command *cmd, const struct bench_figures *list, size_t count);
void bench_print_restore(struct command *cmd, const struct bench_figures *figures);
void bench_print_runs(struct command *cmd, const struct bench_figures *list, size_t count);

/* Of turns that nobody has signed: each number another. */
struct turn_id bench_turn_id(int64_t number);

/* Sleeps until that moment of mono_ns. */
void bench_sleep_until(int64_t at_ns);

/* Sorts, and gives the value below which share of them lie. count > 0. */
int64_t bench_quantile(int64_t *values, size_t count, double share);

#endif
