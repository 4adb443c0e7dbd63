/* A bound on the speed of much work, and its progress. Called by cmd_dlq_replay.c, and by
 * cmd_dlq_list.c and cmd_turns.c for long readings. */
#include "producer/pace.h"

#include "common/base/quantity.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define SHORT_MS 1000 /* nothing is shown before */
#define BAR_EVERY_MS 100
#define LINE_EVERY_MS 5000
#define BAR_COLUMNS 24

static volatile sig_atomic_t interrupted;

static void on_signal(int number)
{
    (void)number;
    interrupted = 1;
}

static void take_signals(void (*handler)(int), int flags)
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = flags};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

struct pace pace_begin(struct command *cmd, const char *verb, size_t total, int64_t per_second)
{
    interrupted = 0;
    take_signals(on_signal, (int)(SA_RESTART | SA_RESETHAND));
    return (struct pace){.cmd = cmd,
                         .verb = verb,
                         .total = total,
                         .per_second = per_second,
                         .began = mono_now(),
                         .shown = mono_now()};
}

static void show(struct pace *pace, struct mono_ms now)
{
    const int64_t spent_ms = now.v - pace->began.v;
    const bool bar = isatty(STDERR_FILENO) == 1;
    if (pace->cmd->quiet || spent_ms < SHORT_MS || pace->done == 0 ||
        now.v - pace->shown.v < (bar ? BAR_EVERY_MS : LINE_EVERY_MS)) {
        return;
    }
    pace->shown = now;
    const int64_t left_ms =
        spent_ms * (int64_t)(pace->total - pace->done) / (int64_t)pace->done / 1000 * 1000;
    if (!bar) {
        command_note(pace->cmd, "%s %zu of %zu, %s left", pace->verb, pace->done, pace->total,
                     quantity_duration_text(left_ms).s);
        return;
    }
    char marks[BAR_COLUMNS + 1];
    const size_t full = pace->done * BAR_COLUMNS / pace->total;
    memset(marks, '#', full);
    memset(marks + full, '.', BAR_COLUMNS - full);
    marks[BAR_COLUMNS] = '\0';
    fprintf(stderr, "\r[%s] %zu of %zu, %s left \033[K", marks, pace->done, pace->total,
            quantity_duration_text(left_ms).s);
    fflush(stderr);
    pace->bar = true;
}

bool pace_next(struct pace *pace)
{
    struct mono_ms now = mono_now();
    while (!interrupted && pace->per_second > 0 &&
           now.v < pace->began.v + (int64_t)pace->done * 1000 / pace->per_second) {
        nanosleep(&(struct timespec){0, 5000000}, NULL); /* a signal ends the wait */
        now = mono_now();
        show(pace, now);
    }
    show(pace, now);
    pace->done += interrupted ? 0 : 1;
    return !interrupted;
}

void pace_end(struct pace *pace)
{
    if (pace->bar) {
        fprintf(stderr, "\r\033[K");
        fflush(stderr);
    }
    take_signals(SIG_DFL, 0);
}

/* ---- reading ---- */

struct reading reading_begin(struct command *cmd)
{
    return (struct reading){.cmd = cmd, .began = mono_now(), .shown = mono_now()};
}

void reading_shows(void *arg, int64_t passed, int64_t all)
{
    struct reading *reading = arg;
    const struct mono_ms now = mono_now();
    if (reading->cmd->quiet || reading->cmd->json || now.v - reading->began.v < SHORT_MS ||
        now.v - reading->shown.v < BAR_EVERY_MS || isatty(STDERR_FILENO) != 1) {
        return;
    }
    reading->shown = now;
    fprintf(stderr, "\rread back %lld of %lld records; Ctrl-C stops \033[K", (long long)passed,
            (long long)all);
    fflush(stderr);
    reading->line = true;
}

void reading_end(struct reading *reading)
{
    if (reading->line) {
        fprintf(stderr, "\r\033[K");
        fflush(stderr);
    }
    reading->line = false;
}
