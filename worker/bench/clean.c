/*
 * A measurement that is interrupted leaves no folder behind: a process beside it waits for its end,
 * whatever that is, and removes what is still there.
 * In: worker/bench/setup.c, worker/bench/process.c  Out: common/base/clock.h
 */
#include "worker/bench/bench.h"

#include "common/base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define REMOVE_FDS 16
#define PATIENCE_MS 15000 /* for workers that end, and write meanwhile */
#define AGAIN_NS 50000000

extern char **environ;

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st;
    (void)kind;
    (void)at;
    return remove(path); /* ignored below: what stays behind is seen in the folder */
}

void bench_remove(const char *dir)
{
    (void)nftw(dir, remove_one, REMOVE_FDS, FTW_DEPTH | FTW_PHYS);
}

void bench_clean_begin(struct bench_set *set)
{
    int fds[2];
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    char *const argv[] = {(char *)"baton", (char *)"bench", (char *)"do-clean", set->dir, NULL};
    if (pipe2(fds, O_CLOEXEC) != 0) {
        return; /* then an interrupted one leaves its folder */
    }
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, fds[0], 0);
    posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addclosefrom_np(&actions, 3);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID); /* Ctrl-C is not for it */
    if (posix_spawn(&set->cleaner, "/proc/self/exe", &actions, &attributes, argv, environ) != 0) {
        set->cleaner = 0;
    }
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    close(fds[0]);
    set->cleaner_fd = fds[1];
    if (set->cleaner == 0) {
        close(fds[1]);
    }
}

void bench_clean_end(struct bench_set *set)
{
    if (set->cleaner > 0) {
        kill(set->cleaner, SIGKILL);
        close(set->cleaner_fd);
        while (waitpid(set->cleaner, NULL, 0) < 0 && errno == EINTR) {
        }
    }
    set->cleaner = 0;
}

int bench_be_cleaner(const char *dir)
{
    const char *name = strrchr(dir, '/');
    char byte;
    /* Whatever else somebody gives it, is none of ours. */
    if (name == NULL || strncmp(name, "/" BENCH_FOLDER, strlen("/" BENCH_FOLDER)) != 0) {
        return 2;
    }
    while (read(STDIN_FILENO, &byte, 1) > 0) {
    }
    const int64_t until = mono_now().v + PATIENCE_MS;
    do {
        bench_remove(dir);
        bench_sleep_until(mono_ns() + AGAIN_NS);
    } while (access(dir, F_OK) == 0 && mono_now().v < until);
    return 0;
}
