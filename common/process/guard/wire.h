/*
 * What a worker and its baton-guard say to each other over the lifeline (a SOCK_SEQPACKET pair).
 *
 * Worker to guard: single bytes. The end of the lifeline means the same as GUARD_KILL: the worker
 * died or let go. Guard to worker: one struct guard_report before it exits, if it still can.
 */
#ifndef BATON_PROCESS_GUARD_WIRE_H
#define BATON_PROCESS_GUARD_WIRE_H

#include <stdint.h>

#define GUARD_FD 4      /* the guard's end; 0 to 3 are the program's */
#define GUARD_TERM 'T'  /* SIGTERM to the program's process group */
#define GUARD_KILL 'K'  /* SIGKILL to every descendant, now */
#define GUARD_KEEP "-k" /* first arguments: ambient capabilities stay, a prefix needs them */
#define GUARD_LOOK "-l" /* the working directory must stay as it is: say if it has changed */

/* The guard gives up on what it cannot kill (no permission, stuck in the kernel) after this. */
#define GUARD_GIVE_UP_MS 5000

enum guard_end {
    GUARD_END_exited = 1,  /* value: exit status */
    GUARD_END_signaled,    /* value: signal */
    GUARD_END_exec_failed, /* value: errno; the program never ran */
};

enum guard_look {
    GUARD_LOOK_same, /* or it was not to look */
    GUARD_LOOK_changed,
    GUARD_LOOK_unlooked, /* it had to end before it had seen it all: nobody knows */
};

struct guard_report {
    uint32_t end; /* enum guard_end */
    int32_t value;
    uint32_t left; /* 1: descendants are left that could not be killed */
    uint32_t look; /* enum guard_look: of the working directory's tree */
};

#endif
