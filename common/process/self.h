/*
 * This program again, with other words: a worker or coordinator of `baton dev`. Not guarded: it looks
 * after its own processes, and is told to stop when its parent dies. Main thread.
 */
#ifndef BATON_PROCESS_SELF_H
#define BATON_PROCESS_SELF_H

#include <stdbool.h>
#include <sys/types.h>

/* Starts it in a process group of its own, with log_fd as standard error; words[0] is the program's name,
 * NULL behind the last. False: no process is to be had (errno). */
bool self_start(const char *const *words, int log_fd, pid_t *ret_pid);

#endif
