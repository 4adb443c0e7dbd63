/*
 * Other processes of a test: this program again (fork and exec: no library of the drivers survives
 * a bare fork), in one of the roles below, led by the test through shared memory.
 *
 * member: polls all the time unless told to be idle; one command at a time, actor_do waits for its
 * end.
 *
 * publisher: publishes `count` records to `outcomes`, then ends.
 *
 * copier: a member that copies each record of handoff to `outcomes`, in one transaction with its
 * offset; takes commands as a member does.
 *
 * committer: a member that commits without end, each time a record for every partition it has, the
 * same record to `outcomes`, and the offset one higher; it is there to be killed.
 */
#ifndef BATON_TESTS_CONFORMANCE_ACTOR_H
#define BATON_TESTS_CONFORMANCE_ACTOR_H

#include "tests/conformance/fixture.h"

#include <stdatomic.h>
#include <sys/types.h>

enum actor_command {
    ACTOR_none,
    ACTOR_commit, /* `value` to the state topic and `next` of handoff, of `partition` */
    ACTOR_leave,  /* leaves the group and ends */
    ACTOR_close,  /* ends and keeps its place */
    ACTOR_idle,   /* stops polling: a hung engine */
};

struct actor_shared {
    atomic_int command;
    int64_t count; /* of a publisher */
    /* Of a command. */
    int64_t generation;
    int32_t partition;
    int64_t next;
    char value[64];
    /* Told by the actor. */
    atomic_int verdict;
    atomic_int code;  /* of a call that failed: the actor has ended */
    atomic_uint mask; /* partitions that it was told; 0 after revoked and lost */
    atomic_llong told_generation;
    atomic_int n_assigned;
    atomic_int n_revoked;
    atomic_int n_lost;
    atomic_int n_commits;
};

struct actor {
    pid_t pid;
    struct actor_shared *shared;
};

struct actor actor_start(const struct fixture *fixture, const char *role, const char *name);
/* The same with a count, for a publisher. */
struct actor actor_start_counting(const struct fixture *fixture, const char *role, const char *name,
                                  int64_t count);
/* What main calls in such a process; does not return. */
_Noreturn void actor_main(char **argv);
#define ACTOR_ARGUMENT "--actor"
/* Gives the command and waits until it was done; the actor's commit verdict is in shared. */
void actor_do(const struct fixture *fixture, struct actor *actor, enum actor_command command);
/* Waits until the actor has exactly these partitions. */
void actor_await_mask(const struct fixture *fixture, const struct actor *actor, unsigned mask);
/* Waits for the end of the process; its exit status, or 128 and the signal. */
int actor_wait_end(struct actor *actor);
void actor_kill(struct actor *actor);
/* What it told is gone too. */
void actor_done(struct actor *actor);
/* Leave or close, wait for the end, done. */
void actor_end(const struct fixture *fixture, struct actor *actor, enum actor_command command);
void actor_stop(const struct actor *actor);
void actor_continue(const struct actor *actor);
enum log_verdict actor_commit(const struct fixture *fixture, struct actor *actor,
                              int64_t generation, int32_t partition, const char *value,
                              int64_t next);

/* Waits for a condition, at most wait_ms; fails the test with its text. */
#define AWAIT(fixture, condition)                                                                  \
    do {                                                                                           \
        int64_t await_end = mono_ns() + (fixture)->wait_ms * 1000000;                              \
        while (!(condition)) {                                                                     \
            if (mono_ns() > await_end) {                                                           \
                fail_msg("line %d: did not come true: %s", __LINE__, #condition);                  \
            }                                                                                      \
            usleep(1000);                                                                          \
        }                                                                                          \
    } while (0)

#endif
