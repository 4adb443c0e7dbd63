/*
 * What `baton bench crash` and `baton bench restore` print: a table, or one JSON object.
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
