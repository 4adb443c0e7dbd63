/* Other processes of a test. Called by the conformance tests, and by main in such a process. */
#include "tests/conformance/actor.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define SHARED_FD 9 /* in the other process */
#define EXIT_TWIN 6

/* ---- in the other process ---- */

static unsigned mask_of(const struct log_event *event)
{
    unsigned mask = 0;
    for (size_t i = 0; i < event->count; i++) {
        mask |= 1u << event->partitions[i];
    }
    return mask;
}

static void note_event(struct actor_shared *shared, const struct log_event *event)
{
    switch (event->kind) {
    case LOG_EVENT_none:
        break;
    case LOG_EVENT_assigned:
        atomic_store(&shared->told_generation, event->generation);
        atomic_fetch_add(&shared->n_assigned, 1);
        atomic_store(&shared->mask, mask_of(event));
        break;
    case LOG_EVENT_revoked:
        atomic_store(&shared->mask, 0);
        atomic_fetch_add(&shared->n_revoked, 1);
        break;
    case LOG_EVENT_lost:
        atomic_store(&shared->mask, 0);
        atomic_fetch_add(&shared->n_lost, 1);
        break;
    }
}

/* Ends the process if a call failed. */
static void must(struct actor_shared *shared, baton_code rc, const struct baton_error *err)
{
    if (rc != BATON_OK) {
        atomic_store(&shared->code, rc);
        if (rc != BATON_E_twin) {
            fprintf(stderr, "actor: %s: %s\n", baton_code_word(rc), err->text);
        }
        _exit(rc == BATON_E_twin ? EXIT_TWIN : 1);
    }
}

static void do_commit(const struct fixture *fixture, struct log_member *member,
                      struct actor_shared *shared)
{
    struct baton_error err = {0};
    struct log_record record = record_of(fixture->turns, shared->partition, "turn", shared->value);
    struct log_offset offset = {.partition = shared->partition, .next = shared->next};
    struct log_txn txn = {.generation = shared->generation,
                          .records = &record,
                          .n_records = 1,
                          .offsets = &offset,
                          .n_offsets = 1};
    struct log_commit_result result = {0};
    must(shared, log_commit(member, &txn, fixture->wait_ms, &result, &err), &err);
    atomic_store(&shared->verdict, result.verdict);
}

/* true: the actor has ended. */
static bool obey(const struct fixture *fixture, struct log_member *member,
                 struct actor_shared *shared, bool *idle)
{
    enum actor_command command = (enum actor_command)atomic_load(&shared->command);
    bool ends = command == ACTOR_leave || command == ACTOR_close;
    if (command == ACTOR_commit) {
        do_commit(fixture, member, shared);
    } else if (command == ACTOR_idle) {
        *idle = true;
    } else if (ends) {
        log_member_close(member, command == ACTOR_leave, fixture->wait_ms);
    }
    atomic_store(&shared->command, ACTOR_none);
    return ends;
}

static struct log_member *become_member(const struct fixture *fixture, struct actor_shared *shared,
                                        const char *worker)
{
    struct baton_error err = {0};
    struct log_member_spec spec = fixture_spec(fixture, worker);
    struct log_member *member = NULL;
    must(shared, log_member_open(fixture->log, &spec, &member, &err), &err);
    return member;
}

static void be_member(const struct fixture *fixture, struct actor_shared *shared,
                      const char *worker)
{
    struct baton_error err = {0};
    struct log_member *member = become_member(fixture, shared, worker);
    bool idle = false;
    while (!obey(fixture, member, shared, &idle)) {
        struct pollfd waited = {.fd = log_member_fd(member), .events = POLLIN};
        struct log_event event = {0};
        if (idle) {
            usleep(1000);
            continue;
        }
        must(shared, log_member_poll(member, &event, &err), &err);
        note_event(shared, &event);
        if (event.kind == LOG_EVENT_none) {
            poll(&waited, 1, 2); /* short, to hear commands */
        }
    }
}

static void be_publisher(const struct fixture *fixture, struct actor_shared *shared,
                         const char *name)
{
    struct baton_error err = {0};
    struct log_publisher *publisher = NULL;
    must(shared, log_publisher_open(fixture->log, &publisher, &err), &err);
    for (int64_t i = 0; i < shared->count; i++) {
        char value[64];
        snprintf(value, sizeof(value), "%s-%lld", name, (long long)i);
        struct log_record record = record_of(fixture->outcomes, LOG_PARTITION_BY_KEY, value, value);
        must(shared, log_publish(publisher, &record, 1, fixture->wait_ms, &err), &err);
    }
    log_publisher_close(publisher);
}

/* One transaction over all partitions: count n in turn log, outcomes and offsets. */
static enum log_verdict commit_count(const struct fixture *fixture, struct log_member *member,
                                     struct actor_shared *shared, const struct log_event *assigned,
                                     int64_t n)
{
    struct baton_error err = {0};
    struct log_record records[2 * PARTITIONS];
    struct log_offset offsets[PARTITIONS];
    struct log_commit_result result = {0};
    char value[32];
    snprintf(value, sizeof(value), "%lld", (long long)n);
    for (size_t i = 0; i < assigned->count; i++) {
        int32_t p = assigned->partitions[i];
        records[2 * i] = record_of(fixture->turns, p, "count", value);
        records[2 * i + 1] = record_of(fixture->outcomes, p, "count", value);
        offsets[i] = (struct log_offset){.input = 0, .partition = p, .next = n};
    }
    struct log_txn txn = {.generation = assigned->generation,
                          .records = records,
                          .n_records = 2 * assigned->count,
                          .offsets = offsets,
                          .n_offsets = assigned->count};
    must(shared, log_commit(member, &txn, fixture->wait_ms, &result, &err), &err);
    return result.verdict;
}

static void be_committer(const struct fixture *fixture, struct actor_shared *shared,
                         const char *worker)
{
    struct baton_error err = {0};
    struct log_member *member = become_member(fixture, shared, worker);
    struct log_event assigned = await_event(fixture, member, LOG_EVENT_assigned);
    int64_t offsets[LOG_INPUTS][LOG_PARTITIONS_MAX];
    must(shared,
         log_member_committed(member, assigned.partitions, assigned.count, fixture->wait_ms,
                              offsets, &err),
         &err);
    int64_t n = offsets[0][0] == LOG_OFFSET_NONE ? 0 : offsets[0][0];
    note_event(shared, &assigned);
    while (commit_count(fixture, member, shared, &assigned, ++n) == LOG_VERDICT_committed) {
        atomic_fetch_add(&shared->n_commits, 1);
    }
    _exit(1);
}

#define COPY_AT_ONCE 7

static void seek_to_committed(const struct fixture *fixture, struct log_member *member,
                              struct actor_shared *shared, const struct log_event *assigned)
{
    struct baton_error err = {0};
    int64_t offsets[LOG_INPUTS][LOG_PARTITIONS_MAX];
    must(shared,
         log_member_committed(member, assigned->partitions, assigned->count, fixture->wait_ms,
                              offsets, &err),
         &err);
    for (size_t i = 0; i < assigned->count; i++) {
        int64_t at = offsets[0][i] == LOG_OFFSET_NONE ? 0 : offsets[0][i];
        must(shared, log_member_seek(member, 0, assigned->partitions[i], at, &err), &err);
    }
}

/* Copies what is there of one partition: all of it is in the log, or nothing. */
static enum log_verdict copy_some(const struct fixture *fixture, struct log_member *member,
                                  struct actor_shared *shared, const struct log_event *assigned,
                                  int32_t partition, struct log_batch *batch)
{
    struct baton_error err = {0};
    struct log_record records[2 * COPY_AT_ONCE];
    struct log_commit_result result = {0};
    must(shared, log_member_fetch(member, 0, partition, COPY_AT_ONCE, SIZE_MAX, batch, &err), &err);
    if (batch->count == 0) {
        return LOG_VERDICT_committed;
    }
    for (size_t i = 0; i < batch->count; i++) {
        records[2 * i] = batch->records[i];
        records[2 * i].topic = fixture->turns;
        records[2 * i].partition = partition;
        records[2 * i + 1] = batch->records[i];
        records[2 * i + 1].topic = fixture->outcomes;
        records[2 * i + 1].partition = LOG_PARTITION_BY_KEY;
    }
    struct log_offset offset = {.input = 0, .partition = partition, .next = batch->next_offset};
    struct log_txn txn = {.generation = assigned->generation,
                          .records = records,
                          .n_records = 2 * batch->count,
                          .offsets = &offset,
                          .n_offsets = 1};
    must(shared, log_commit(member, &txn, fixture->wait_ms, &result, &err), &err);
    if (result.verdict == LOG_VERDICT_committed) {
        atomic_fetch_add(&shared->n_commits, 1);
    } else if (result.verdict == LOG_VERDICT_fenced || result.verdict == LOG_VERDICT_unknown) {
        must(shared, log_member_renew(member, &err), &err);
    }
    return result.verdict;
}

static void be_copier(const struct fixture *fixture, struct actor_shared *shared,
                      const char *worker)
{
    struct baton_error err = {0};
    struct log_batch batch = {0};
    struct log_member *member = become_member(fixture, shared, worker);
    struct log_event assigned = {0};
    bool idle = false;
    while (!obey(fixture, member, shared, &idle)) {
        struct pollfd waited = {.fd = log_member_fd(member), .events = POLLIN};
        struct log_event event = {0};
        must(shared, log_member_poll(member, &event, &err), &err);
        note_event(shared, &event);
        if (event.kind == LOG_EVENT_assigned) {
            assigned = event;
            seek_to_committed(fixture, member, shared, &assigned);
        } else if (event.kind != LOG_EVENT_none) {
            assigned.count = 0;
        }
        for (size_t i = 0; i < assigned.count; i++) {
            const enum log_verdict verdict =
                copy_some(fixture, member, shared, &assigned, assigned.partitions[i], &batch);
            if (verdict == LOG_VERDICT_lost) {
                assigned.count = 0; /* the event tells it as well */
            } else if (verdict != LOG_VERDICT_committed) {
                seek_to_committed(fixture, member, shared, &assigned);
            }
        }
        if (event.kind == LOG_EVENT_none) {
            poll(&waited, 1, 2);
        }
    }
    log_batch_free(&batch);
}

static const struct {
    const char *role;
    void (*be)(const struct fixture *fixture, struct actor_shared *shared, const char *name);
} roles[] = {{"member", be_member},
             {"publisher", be_publisher},
             {"copier", be_copier},
             {"committer", be_committer}};

/* argv: program, ACTOR_ARGUMENT, place, prefix, role, name */
_Noreturn void actor_main(char **argv)
{
    struct actor_shared *shared =
        mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED, SHARED_FD, 0);
    if (shared == MAP_FAILED) {
        _exit(1);
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    struct fixture *fixture = fixture_attach(argv[2], argv[3]);
    for (size_t i = 0; i < sizeof(roles) / sizeof(roles[0]); i++) {
        if (strcmp(roles[i].role, argv[4]) == 0) {
            roles[i].be(fixture, shared, argv[5]);
        }
    }
    log_close(fixture->log);
    _exit(0); /* what is left belongs to the test's other half */
}

/* ---- in the test ---- */

struct actor actor_start(const struct fixture *fixture, const char *role, const char *name)
{
    return actor_start_counting(fixture, role, name, 0);
}

struct actor actor_start_counting(const struct fixture *fixture, const char *role, const char *name,
                                  int64_t count)
{
    struct actor actor;
    int fd = memfd_create("actor", MFD_CLOEXEC);
    assert_true(fd >= 0 && ftruncate(fd, sizeof(*actor.shared)) == 0);
    actor.shared = mmap(NULL, sizeof(*actor.shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_true(actor.shared != MAP_FAILED);
    actor.shared->count = count;
    actor.pid = fork();
    assert_true(actor.pid >= 0);
    if (actor.pid == 0) {
        /* Without close-on-exec, which dup2 of a descriptor to itself would leave. */
        if (fd == SHARED_FD ? fcntl(fd, F_SETFD, 0) == 0 : dup2(fd, SHARED_FD) == SHARED_FD) {
            execl("/proc/self/exe", "conformance", ACTOR_ARGUMENT, fixture->place, fixture->prefix,
                  role, name, (char *)NULL);
        }
        _exit(127);
    }
    close(fd);
    return actor;
}

void actor_do(const struct fixture *fixture, struct actor *actor, enum actor_command command)
{
    atomic_store(&actor->shared->command, command);
    AWAIT(fixture, atomic_load(&actor->shared->command) == ACTOR_none);
}

void actor_await_mask(const struct fixture *fixture, const struct actor *actor, unsigned mask)
{
    int64_t end_ns = mono_ns() + fixture->takeover_ms * 1000000;
    while (atomic_load(&actor->shared->mask) != mask) {
        if (mono_ns() > end_ns) {
            fail_msg("partitions %x, not %x", atomic_load(&actor->shared->mask), mask);
        }
        usleep(1000);
    }
}

int actor_wait_end(struct actor *actor)
{
    int status = 0;
    assert_int_equal(waitpid(actor->pid, &status, 0), actor->pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

void actor_done(struct actor *actor)
{
    munmap(actor->shared, sizeof(*actor->shared));
}

void actor_end(const struct fixture *fixture, struct actor *actor, enum actor_command command)
{
    actor_do(fixture, actor, command);
    assert_int_equal(actor_wait_end(actor), 0);
    actor_done(actor);
}

void actor_kill(struct actor *actor)
{
    kill(actor->pid, SIGKILL);
    assert_int_equal(actor_wait_end(actor), 128 + SIGKILL);
}

void actor_stop(const struct actor *actor)
{
    int status = 0;
    kill(actor->pid, SIGSTOP);
    assert_int_equal(waitpid(actor->pid, &status, WUNTRACED), actor->pid);
}

void actor_continue(const struct actor *actor)
{
    kill(actor->pid, SIGCONT);
}

enum log_verdict actor_commit(const struct fixture *fixture, struct actor *actor,
                              int64_t generation, int32_t partition, const char *value,
                              int64_t next)
{
    actor->shared->generation = generation;
    actor->shared->partition = partition;
    actor->shared->next = next;
    snprintf(actor->shared->value, sizeof(actor->shared->value), "%s", value);
    actor_do(fixture, actor, ACTOR_commit);
    return (enum log_verdict)atomic_load(&actor->shared->verdict);
}
