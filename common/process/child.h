/*
 * A child process under baton-guard: start, ask, kill, reap.
 *
 * The guard owns whatever the program starts: closing the lifeline, or dying with it open, kills
 * the whole tree. No SIGCHLD handler: child.pidfd becomes readable when the guard has ended, and by
 * then no process of the tree is left. Thread: who started a child uses it; that thread must live
 * as long as the child (its death ends the guard, too).
 */
#ifndef BATON_PROCESS_CHILD_H
#define BATON_PROCESS_CHILD_H

#include "baton/code.h"

#include <stdbool.h>
#include <sys/types.h>

struct child {
    pid_t pid;    /* of the guard */
    int pidfd;    /* poll it: readable when all is over; owned */
    int lifeline; /* owned */
};

#define CHILD_NONE ((struct child){-1, -1, -1})

struct child_spec {
    const char *guard;       /* absolute path of baton-guard */
    const char *const *argv; /* [0] an absolute path; ends with NULL */
    const char *const *env;  /* the whole environment, NAME=VALUE; ends with NULL */
    const char *cwd;         /* absolute directory */
    int fds[4];              /* become 0..3 of the program; -1: /dev/null. Stay the caller's */
    bool keep_capabilities;  /* argv begins with a prefix that changes the uid */
    bool look;               /* cwd must stay as it is: child_status.look says whether it has */
};

enum child_end {
    CHILD_END_exited,      /* value: exit status */
    CHILD_END_signaled,    /* value: signal */
    CHILD_END_exec_failed, /* value: errno: the program never ran */
    CHILD_END_guard_lost,  /* value: what ended the guard; its program died with it (SIGKILL), but
                              others of the tree may live: sweep_kill */
};

enum child_look {
    CHILD_LOOK_same, /* or nobody was to look */
    CHILD_LOOK_changed,
    CHILD_LOOK_unlooked, /* the guard was ended before it had looked: it may have changed */
};

struct child_status {
    enum child_end end;
    int value;
    bool left;            /* processes are left that the guard could not kill */
    enum child_look look; /* child_spec.look: has anything below cwd changed since it began? */
};

/*
 * The guard's path: given (tests), else baton-guard beside this program, else in the libexec folder
 * beside its bin, else where it was installed. The caller frees it. bad_config if there is none.
 */
baton_code child_guard_find(const char *given, char **ret_path, struct baton_error *err);

/*
 * Starts argv under the guard: own session, default signals, empty mask, descriptors 0 to 3 only.
 * That the program itself could not be executed comes as CHILD_END_exec_failed. place_missing: cwd
 * cannot be entered. service_unavailable: no process or descriptor to be had.
 */
baton_code child_spawn(const struct child_spec *spec, struct child *ret_child,
                       struct baton_error *err);

/* SIGTERM to the program's process group. Nothing if it is over. */
void child_term(struct child *child);
/* SIGKILL to the whole tree. Nothing if it is over. */
void child_kill(struct child *child);
/* False while anything of the tree lives. Afterwards the child is spent; child_done closes. */
bool child_reap(struct child *child, struct child_status *ret_status);
/* Closes both descriptors: a tree that lives is killed, without anybody waiting for it. */
void child_done(struct child *child);

/* A pipe with both ends close-on-exec and above the numbers a child gets; the end that stays here
 * is non-blocking. to_child: the child reads. False when descriptors are out. */
bool child_pipe(bool to_child, int *ret_ours, int *ret_childs);
/* A read-only descriptor over a copy of bytes, for a child's standard input: it never blocks. */
int child_bytes(const void *bytes, size_t len);

#endif
