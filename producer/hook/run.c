/*
 * Runs one hook: its own thread waits for the program, so that a slow one holds nothing up. The thread
 * must live as long as the program does: with it the guard would end.
 *
 * In: producer/coordinator/hooks.c  Out: answer.c, common/process (child, program, scratch, mask)
 */
#include "common/base/buf.h"
#include "common/base/check.h"
#include "common/base/clock.h"
#include "common/base/diag.h"
#include "common/base/limits.h"
#include "common/process/mask.h"
#include "common/process/program.h"
#include "common/process/scratch.h"
#include "common/process/sweep.h"
#include "producer/hook/hook.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#define OWN_VARIABLES 12
#define REMOVE_STEP 10000 /* entries of a scratch directory at a time */

struct hook_run {
    struct workflow *workflow; /* owns the hook */
    const struct workflow_hook *hook;
    char *folder;
    char *place; /* NULL: none */
    char *run_id;
    char *task_id;
    int attempt;
    char *input;
    size_t input_len;
    char *data; /* NULL: none */
    struct mailbox *mail;
    int stop; /* an eventfd: readable once it is to stop */
    pthread_t thread;
    struct hook_end end; /* the thread's until it has posted */
};

/* ---- environment ---- */

struct block {
    char *entries[OWN_VARIABLES + LIMIT_ENV + 1]; /* ends with NULL */
    size_t n;
    const char *secrets[LIMIT_ENV]; /* values of the coordinator's own variables */
    size_t n_secrets;
    bool broken;
};

static void block_set(struct block *block, const char *name, const char *value)
{
    BATON_PRE(block->n + 1 < COUNT_OF(block->entries));
    if (asprintf(&block->entries[block->n], "%s=%s", name, value) < 0) {
        block->entries[block->n] = NULL;
        block->broken = true;
        return;
    }
    block->n++;
}

/* The whole environment: only what a hook declares is the coordinator's (H-39). */
static void block_fill(struct block *block, const struct hook_run *run, const char *scratch)
{
    char number[16];
    snprintf(number, sizeof(number), "%d", run->attempt);
    block_set(block, "PATH", PROGRAM_PATH);
    block_set(block, "HOME", scratch);
    block_set(block, "TMPDIR", scratch);
    block_set(block, "LANG", "C.UTF-8");
    block_set(block, "BATON_HOOK", run->hook->name.s);
    block_set(block, "BATON_RUN_ID", run->run_id);
    block_set(block, "BATON_TASK_ID", run->task_id);
    block_set(block, "BATON_ATTEMPT", number); /* no run is started from inside it (L-09) */
    block_set(block, "BATON_MODE", "unattended");
    block_set(block, "BATON_SCRATCH", scratch);
    for (size_t i = 0; i < run->hook->n_env; i++) {
        const char *name = run->hook->env[i];
        const char *value = getenv(name);
        bool own = false;
        for (size_t k = 0; k < block->n; k++) {
            const size_t len = strlen(name);
            own = own ||
                  (strncmp(block->entries[k], name, len) == 0 && block->entries[k][len] == '=');
        }
        if (value != NULL && !own) {
            block_set(block, name, value);
            block->secrets[block->n_secrets++] = value;
        }
    }
}

static void block_done(struct block *block)
{
    for (size_t i = 0; i < block->n; i++) {
        explicit_bzero(block->entries[i], strlen(block->entries[i]));
        free(block->entries[i]);
    }
}

/* ---- one program ---- */

struct running {
    struct hook_run *run;
    struct child child;
    int answer; /* our end of its descriptor 3; -1: it has ended */
    struct buf bytes;
    bool overflow;
    bool timed_out;
};

static void read_answer(struct running *r)
{
    char piece[4096];
    /* Bounded: what floods is read on, so that it does not block, and is not kept. */
    for (int i = 0; r->answer >= 0 && i < 64; i++) {
        const ssize_t n = read(r->answer, piece, sizeof(piece));
        if (n < 0 && (errno == EINTR || errno == EAGAIN)) {
            return;
        }
        if (n <= 0) {
            close(r->answer);
            r->answer = -1;
            return;
        }
        const size_t room = LIMIT_RESULT - r->bytes.len;
        r->overflow = r->overflow || (size_t)n > room;
        buf_add(&r->bytes, piece, (size_t)n < room ? (size_t)n : room);
    }
}

/* Until its tree is gone, killed when its time is over or it is to stop. */
static void wait_for(struct running *r, struct child_status *status)
{
    const int64_t until = mono_now().v + r->run->hook->timeout_ms;
    bool killed = false;
    while (!child_reap(&r->child, status)) {
        struct pollfd fds[] = {{r->child.pidfd, POLLIN, 0},
                               {r->answer, POLLIN, 0},
                               {killed ? -1 : r->run->stop, POLLIN, 0}};
        const int64_t left = until - mono_now().v;
        (void)poll(fds, COUNT_OF(fds), killed ? -1 : left > 0 ? (int)left : 0);
        read_answer(r);
        const bool late = mono_now().v >= until && (fds[0].revents & POLLIN) == 0;
        if (!killed && (late || (fds[2].revents & POLLIN) != 0)) {
            killed = true;
            r->timed_out = late;
            child_kill(&r->child);
        }
    }
    read_answer(r);
}

/* The task's own directory (H-28), where it is: a coordinator may be on a host that has no such place. */
static const char *start_at(const struct hook_run *run, const char *scratch)
{
    struct stat at;
    return run->place != NULL && stat(run->place, &at) == 0 && S_ISDIR(at.st_mode) ? run->place
                                                                                   : scratch;
}

static baton_code spawn(struct running *r, const char *program, const char *scratch,
                        const struct block *block, struct baton_error *err)
{
    const struct workflow_hook *hook = r->run->hook;
    const char *argv[LIMIT_ARGV + 1] = {program};
    char *guard = NULL;
    int theirs = -1;
    const int in = child_bytes(r->run->input, r->run->input_len);
    BATON_PRE(hook->n_command <= LIMIT_ARGV);
    for (size_t i = 1; i < hook->n_command; i++) {
        argv[i] = hook->command[i];
    }
    baton_code rc = child_guard_find(NULL, &guard, err);
    if (rc == BATON_OK && (in < 0 || !child_pipe(false, &r->answer, &theirs))) {
        rc = baton_fail(err, BATON_E_service_unavailable, "no pipes for it: %s", strerror(errno));
    }
    if (rc == BATON_OK) {
        const struct child_spec spec = {.guard = guard,
                                        .argv = argv,
                                        .env = (const char *const *)block->entries,
                                        .cwd = start_at(r->run, scratch),
                                        .fds = {in, -1, -1, theirs}};
        rc = child_spawn(&spec, &r->child, err);
    }
    if (in >= 0) {
        close(in);
    }
    if (theirs >= 0) {
        close(theirs);
    }
    free(guard);
    return rc;
}

/* A tree that lost its guard is found by its scratch directory. */
static void sweep(const char *scratch)
{
    char *mark;
    if (asprintf(&mark, "BATON_SCRATCH=%s", scratch) >= 0) {
        sweep_kill(&(struct sweep_mark){.equals = mark});
        free(mark);
    }
}

static baton_code run_program(struct hook_run *run, const char *program, const char *scratch,
                              struct baton_error *err)
{
    struct block block = {.n = 0};
    struct running r = {.run = run, .child = CHILD_NONE, .answer = -1, .bytes = BUF_INIT};
    struct child_status status;
    block_fill(&block, run, scratch);
    struct mask *mask = mask_new(block.secrets, block.n_secrets);
    baton_code rc = block.broken || mask == NULL
                        ? baton_fail(err, BATON_E_no_memory, "no memory for its environment")
                        : spawn(&r, program, scratch, &block, err);
    if (rc == BATON_OK) {
        struct buf masked = BUF_INIT;
        wait_for(&r, &status);
        if (status.end == CHILD_END_guard_lost) {
            sweep(scratch);
        }
        mask_add(mask, r.bytes.data, r.bytes.len, &masked);
        const struct hook_said said = {.bytes = masked.data,
                                       .len = masked.len,
                                       .overflow =
                                           r.overflow || !buf_ok(&masked) || !buf_ok(&r.bytes),
                                       .timed_out = r.timed_out,
                                       .status = status};
        hook_judge(run->hook, &said, run->data, &run->end);
        buf_done(&masked);
    }
    child_done(&r.child);
    if (r.answer >= 0) {
        close(r.answer);
    }
    buf_done(&r.bytes);
    mask_free(mask);
    block_done(&block);
    return rc;
}

/* ---- its thread ---- */

static void *run_hook(void *arg)
{
    struct hook_run *run = arg;
    struct baton_error err = {BATON_OK, ""};
    char *scratch = NULL;
    char *program = program_find(run->hook->command[0]);
    baton_code rc = BATON_OK;
    if (program == NULL) {
        rc = baton_fail(&err, BATON_E_hook_unavailable, "its program %.160s is no executable file",
                        run->hook->command[0]);
    }
    if (rc == BATON_OK) {
        rc = scratch_new(run->folder, run->hook->name.s, false, &scratch, &err);
    }
    if (rc == BATON_OK) {
        rc = run_program(run, program, scratch, &err);
    }
    while (scratch != NULL && !scratch_remove_step(scratch, REMOVE_STEP)) {
    }
    if (rc != BATON_OK) {
        run->end = (struct hook_end){.decision = {.code = BATON_E_hook_unavailable}};
        snprintf(run->end.decision.text, sizeof(run->end.decision.text), "%.255s", err.text);
    }
    free(scratch);
    free(program);
    BATON_INVARIANT(mailbox_post(run->mail, run)); /* it has room for each that runs */
    return NULL;
}

static void hook_run_free(struct hook_run *run)
{
    if (run->stop >= 0) {
        close(run->stop);
    }
    workflow_free(run->workflow);
    free(run->folder);
    free(run->place);
    free(run->run_id);
    free(run->task_id);
    free(run->input);
    free(run->data);
    free(run);
}

baton_code hook_start(const struct hook_spec *spec, struct hook_run **ret_run,
                      struct baton_error *err)
{
    struct hook_run *run = calloc(1, sizeof(*run));
    sigset_t all;
    sigset_t before;
    if (run == NULL) {
        workflow_free(spec->take_workflow);
        return baton_fail(err, BATON_E_no_memory, "no memory for a hook");
    }
    *run = (struct hook_run){.workflow = spec->take_workflow,
                             .hook = spec->hook,
                             .folder = strdup(spec->scratch),
                             .place = spec->place != NULL ? strdup(spec->place) : NULL,
                             .run_id = strdup(spec->run_id),
                             .task_id = strdup(spec->task_id),
                             .attempt = spec->attempt,
                             .input = strndup(spec->input, spec->input_len),
                             .input_len = spec->input_len,
                             .data = spec->data != NULL ? strdup(spec->data) : NULL,
                             .mail = spec->mail,
                             .stop = eventfd(0, EFD_CLOEXEC)};
    if (run->folder == NULL || run->run_id == NULL || run->task_id == NULL || run->input == NULL ||
        (spec->place != NULL && run->place == NULL) || (spec->data != NULL && run->data == NULL)) {
        hook_run_free(run);
        return baton_fail(err, BATON_E_no_memory, "no memory for a hook");
    }
    sigfillset(&all); /* signals are the program's main thread's */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int failed = run->stop < 0 ? errno : pthread_create(&run->thread, NULL, run_hook, run);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failed != 0) {
        hook_run_free(run);
        return baton_fail(err, BATON_E_service_unavailable, "no thread for a hook: %s",
                          strerror(failed));
    }
    *ret_run = run;
    return BATON_OK;
}

void hook_stop(struct hook_run *run)
{
    const uint64_t one = 1;
    ssize_t n = write(run->stop, &one, sizeof(one)); /* a full counter has told it already */
    (void)n;
}

void hook_join(struct hook_run *run, struct hook_end *ret_end)
{
    BATON_INVARIANT(pthread_join(run->thread, NULL) == 0);
    *ret_end = run->end;
    hook_run_free(run);
}
