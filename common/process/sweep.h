/*
 * Finds processes by what their environment carries, and kills them: what an earlier boot of a
 * worker left behind, or a tree that lost its guard; or tells who they are. No pids are stored.
 */
#ifndef BATON_PROCESS_SWEEP_H
#define BATON_PROCESS_SWEEP_H

#include <sys/types.h>

/* A process is meant if its environment has `equals` and an entry that begins with `begins`, and
 * not `lacks`. Whole entries NAME=VALUE; each may be NULL, but not both of the first. */
struct sweep_mark {
    const char *equals;
    const char *begins;
    const char *lacks;
};

/*
 * SIGKILLs every such process but this one and its ancestors, and waits until they are gone (2 s at
 * most). Returns how many were killed. A pid that is used again meanwhile is safe: a pidfd is taken
 * before the environment is read. Processes of another uid cannot be read and are not found.
 */
int sweep_kill(const struct sweep_mark *mark);

/*
 * The program that a guard of such processes runs: it carries the mark, its guard does, and what started the
 * guard does not. 0: none that this user may look at. Kills nothing.
 */
pid_t sweep_program(const struct sweep_mark *mark);

#endif
