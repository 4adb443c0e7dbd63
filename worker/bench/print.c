/*
 * What `baton bench crash`, `restore` and `runs` print: a table, or one JSON object.
 * In: worker/cmd_bench.c  Out: common/base/command.h, common/base/jsonw.h
 */
#include "worker/bench/bench.h"

#include "common/base/check.h"
#include "common/base/command.h"
#include "common/base/jsonw.h"

#include <stdio.h>

static void cell(struct table *table, int digits, double value)
{
    char text[32];
    snprintf(text, sizeof(text), "%.*f", digits, value);
    table_text(table, text);
}

static void print_object(struct command *cmd, struct buf *object)
{
    buf_add_char(object, '\n');
    (void)command_print(cmd, object); /* the frame tells */
    buf_done(object);
}

static void print_crashes_json(struct command *cmd, const struct bench_figures *list, size_t count)
{
    struct buf out = BUF_INIT;
    struct jsonw w = jsonw_to(&out);
    jsonw_begin_object(&w);
    jsonw_key_text(&w, "log", command_text(cmd, "log"));
    jsonw_key_int(&w, "running", BENCH_RUNNING);
    jsonw_key_int(&w, "kills", BENCH_KILLS);
    jsonw_key(&w, "measured");
    jsonw_begin_array(&w);
    for (size_t i = 0; i < count * CRASH_CASE_COUNT; i++) {
        const struct bench_figures *at = &list[i / CRASH_CASE_COUNT];
        const enum bench_crash_case how = (enum bench_crash_case)(i % CRASH_CASE_COUNT);
        jsonw_begin_object(&w);
        jsonw_key_text(&w, "executor", bench_kind_word(at->kind));
        jsonw_key_bool(&w, "proof", at->proof);
        jsonw_key_text(&w, "killed", bench_crash_word(how));
        jsonw_key(&w, "first_ms");
        jsonw_real(&w, at->crash[how].first_ms);
        jsonw_key(&w, "all_ms");
        jsonw_real(&w, at->crash[how].all_ms);
        jsonw_key(&w, "worst_ms");
        jsonw_real(&w, at->crash[how].worst_ms);
        jsonw_end(&w);
    }
    jsonw_end(&w);
    jsonw_end(&w);
    print_object(cmd, &out);
}

static void print_crash_table(struct command *cmd, const struct bench_figures *list, size_t count)
{
    static const char *const titles[] = {"EXECUTOR", "PROOF",  "KILLED",
                                         "FIRST MS", "ALL MS", "WORST MS"};
    struct table *table = table_new(titles, COUNT_OF(titles));
    if (table == NULL) {
        (void)command_fail(cmd, BATON_E_no_memory, NULL);
        return;
    }
    for (size_t i = 0; i < count * CRASH_CASE_COUNT; i++) {
        const struct bench_figures *at = &list[i / CRASH_CASE_COUNT];
        const enum bench_crash_case how = (enum bench_crash_case)(i % CRASH_CASE_COUNT);
        table_text(table, bench_kind_word(at->kind));
        table_text(table, at->proof ? "required" : "off");
        table_text(table, bench_crash_word(how));
        cell(table, 1, at->crash[how].first_ms);
        cell(table, 1, at->crash[how].all_ms);
        cell(table, 1, at->crash[how].worst_ms);
    }
    (void)command_table(cmd, table);
    table_free(table);
    command_note(cmd, "%d turns ran; median of %d kills, and the worst", BENCH_RUNNING,
                 BENCH_KILLS);
}

void bench_print_crashes(struct command *cmd, const struct bench_figures *list, size_t count)
{
    (cmd->json ? print_crashes_json : print_crash_table)(cmd, list, count);
}

void bench_print_restore(struct command *cmd, const struct bench_figures *figures)
{
    static const char *const titles[] = {"TURNS", "EMPTY S", "PEAK MB", "KEPT S"};
    const struct bench_restore *restore = &figures->restore;
    if (cmd->json) {
        struct buf out = BUF_INIT;
        struct jsonw w = jsonw_to(&out);
        jsonw_begin_object(&w);
        jsonw_key_text(&w, "log", command_text(cmd, "log"));
        jsonw_key_int(&w, "turns", command_int(cmd, "turns"));
        jsonw_key(&w, "fill_s");
        jsonw_real(&w, restore->fill_s);
        jsonw_key(&w, "empty_s");
        jsonw_real(&w, restore->empty_s);
        jsonw_key(&w, "kept_s");
        jsonw_real(&w, restore->kept_s);
        jsonw_key_int(&w, "peak_kib", restore->peak_kib);
        jsonw_end(&w);
        print_object(cmd, &out);
        return;
    }
    struct table *table = table_new(titles, COUNT_OF(titles));
    if (table == NULL) {
        (void)command_fail(cmd, BATON_E_no_memory, NULL);
        return;
    }
    table_int(table, command_int(cmd, "turns"));
    cell(table, 2, restore->empty_s);
    cell(table, 1, (double)restore->peak_kib / 1024);
    cell(table, 2, restore->kept_s);
    (void)command_table(cmd, table);
    table_free(table);
    command_note(cmd, "it took %.1f s to write them", restore->fill_s);
}

static void print_runs_json(struct command *cmd, const struct bench_figures *list, size_t count)
{
    struct buf out = BUF_INIT;
    struct jsonw w = jsonw_to(&out);
    jsonw_begin_object(&w);
    jsonw_key_text(&w, "log", command_text(cmd, "log"));
    jsonw_key_int(&w, "runs", command_int(cmd, "runs"));
    jsonw_key_int(&w, "open", command_int(cmd, "open"));
    jsonw_key_int(&w, "rate", command_int(cmd, "rate"));
    jsonw_key(&w, "measured");
    jsonw_begin_array(&w);
    for (size_t i = 0; i < count; i++) {
        const struct bench_runs *runs = &list[i].runs;
        const struct {
            const char *key;
            double value;
        } reals[] = {{"fill_s", runs->fill_s},
                     {"start_s", runs->start_s},
                     {"start_cpu_s", runs->start_cpu_s},
                     {"handoffs_per_s", runs->handoffs_s},
                     {"cpu_s_per_1000", runs->cpu_s_1000},
                     {"p50_ms", runs->p50_ms},
                     {"p99_ms", runs->p99_ms},
                     {"worst_ms", runs->worst_ms}};
        jsonw_begin_object(&w);
        jsonw_key_bool(&w, "proof", list[i].proof);
        for (size_t k = 0; k < COUNT_OF(reals); k++) {
            jsonw_key(&w, reals[k].key);
            jsonw_real(&w, reals[k].value);
        }
        jsonw_key_int(&w, "rss_kib", runs->rss_kib);
        jsonw_key_int(&w, "peak_kib", runs->peak_kib);
        jsonw_end(&w);
    }
    jsonw_end(&w);
    jsonw_end(&w);
    print_object(cmd, &out);
}

static void print_runs_table(struct command *cmd, const struct bench_figures *list, size_t count)
{
    static const char *const titles[] = {"RUNS",        "OPEN",   "PROOF",      "START S",
                                         "START CPU S", "RSS MB", "HANDOFFS/S", "CPU S/1000",
                                         "PEAK MB",     "P50 MS", "P99 MS",     "WORST MS"};
    struct table *table = table_new(titles, COUNT_OF(titles));
    if (table == NULL) {
        (void)command_fail(cmd, BATON_E_no_memory, NULL);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        const struct bench_runs *runs = &list[i].runs;
        table_int(table, command_int(cmd, "runs"));
        table_int(table, command_int(cmd, "open"));
        table_text(table, list[i].proof ? "required" : "off");
        cell(table, 2, runs->start_s);
        cell(table, 2, runs->start_cpu_s);
        cell(table, 1, (double)runs->rss_kib / 1024);
        table_int(table, (int64_t)runs->handoffs_s);
        cell(table, 3, runs->cpu_s_1000);
        cell(table, 1, (double)runs->peak_kib / 1024);
        cell(table, 2, runs->p50_ms);
        cell(table, 2, runs->p99_ms);
        cell(table, 2, runs->worst_ms);
    }
    (void)command_table(cmd, table);
    table_free(table);
    command_note(cmd,
                 "%d turns in each run; it took %.1f s to write the runs that were there before",
                 BENCH_RUN_TURNS, list[0].runs.fill_s);
}

void bench_print_runs(struct command *cmd, const struct bench_figures *list, size_t count)
{
    (cmd->json ? print_runs_json : print_runs_table)(cmd, list, count);
}
