/*
 * What `baton doctor` says of executors and keys (RECORD.md section 5): under our own user they can read them. A
 * prefix that makes them another user's is tried as a worker uses it: can what it starts read a key, and can
 * the guard end what that leaves?
 * In: deploy/cmd_doctor.c. Out: common/process/child.h, common/process/scratch.h, worker/executor/environment.h
 */
#include "deploy/doctor.h"

#include "common/base/clock.h"
#include "common/base/limits.h"
#include "common/process/child.h"
#include "common/process/program.h"
#include "common/process/scratch.h"
#include "worker/executor/environment.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define TRY_MS 15000 /* a container takes its time; a guard that may not kill gives up within it */
/* No worker is called so: none takes what is tried for a leftover of its own. */
#define WORKER "~doctor"
#define SHELL "/bin/sh"
#define CAN_READ 10
#define CAN_NOT 11
/* Opens each key, and leaves a process behind, which ends by itself where nobody may end it (the guard gives up
 * before that). */
#define TRY                                                                                        \
    "for key in \"$1\"/*.pem; do if [ -f \"$key\" ] && (: <\"$key\") 2>/dev/null; then exit 10; "  \
    "fi; done\n"                                                                                   \
    "sleep 8 >/dev/null 2>&1 &\n"                                                                  \
    "exit 11"

struct tried {
    bool ended; /* in time: status is known */
    struct child_status status;
    char said[512]; /* the first line of what was printed */
};

/* A directory as attempts get one; gone afterwards, as its folder is where no worker has made that yet. */
struct scratch {
    char *folder;
    bool made; /* the folder, too */
    char *path;
};

static baton_code make_scratch(const struct config *config, const char *service,
                               struct scratch *scratch, struct baton_error *err)
{
    char name[SERVICE_MAX + sizeof("." WORKER)];
    snprintf(name, sizeof(name), "%s." WORKER, service);
    scratch->folder = scratch_apart(config->state_dir);
    if (scratch->folder == NULL) {
        return baton_fail(err, BATON_E_no_memory, "no memory for a path");
    }
    scratch->made = mkdir(scratch->folder, 0711) == 0;
    if (scratch->made) {
        scratch_share(scratch->folder, 0711);
    }
    return scratch_new(scratch->folder, name, true, &scratch->path, err);
}

static void remove_scratch(struct scratch *scratch)
{
    for (int i = 0; scratch->path != NULL && i < 100; i++) {
        if (scratch_remove_step(scratch->path, 100)) {
            break;
        }
    }
    if (scratch->made) {
        rmdir(scratch->folder);
    }
    free(scratch->path);
    free(scratch->folder);
}

/* Waits for the end; what is printed is little, and the pipe holds it. */
static void wait_for(struct child *child, int out, struct tried *tried)
{
    const int64_t until = mono_now().v + TRY_MS;
    for (int64_t left; !tried->ended && (left = until - mono_now().v) > 0;) {
        struct pollfd fd = {.fd = child->pidfd, .events = POLLIN};
        if (poll(&fd, 1, (int)left) < 0 && errno != EINTR) {
            break;
        }
        tried->ended = (fd.revents & POLLIN) != 0 && child_reap(child, &tried->status);
    }
    if (!tried->ended) {
        child_kill(child);
    }
    const ssize_t n = read(out, tried->said, sizeof(tried->said) - 1);
    tried->said[n > 0 ? n : 0] = '\0';
    tried->said[strcspn(tried->said, "\r\n")] = '\0';
}

static bool start_try(const char *guard, const char *const *argv, const char *service,
                      const char *scratch, struct tried *tried, struct baton_error *err)
{
    struct env_block block = {NULL, 0, 0, false};
    struct child child;
    char worker[SERVICE_MAX + sizeof("/" WORKER)];
    int ours = -1;
    int childs = -1;
    bool ok = false;
    snprintf(worker, sizeof(worker), "%s/" WORKER, service);
    env_block_set_base(&block, service, worker, boot_id_new().s, scratch);
    if (block.broken) {
        baton_fail(err, BATON_E_no_memory, "no memory for an environment");
    } else if (!child_pipe(false, &ours, &childs)) {
        baton_fail(err, BATON_E_service_unavailable, "no pipe: %s", strerror(errno));
    } else {
        const struct child_spec spec = {.guard = guard,
                                        .argv = argv,
                                        .env = (const char *const *)block.entries,
                                        .cwd = scratch,
                                        .fds = {-1, childs, childs, -1},
                                        .keep_capabilities = true};
        ok = child_spawn(&spec, &child, err) == BATON_OK;
        close(childs);
        if (ok) {
            wait_for(&child, ours, tried);
            child_done(&child);
        }
        close(ours);
    }
    env_block_done(&block);
    return ok;
}

/* As a worker starts an executor. False: err says what is lacking for it. */
static bool try_prefix(const struct doctor *d, const struct config_service *service,
                       struct tried *tried, struct baton_error *err)
{
    const struct config_executor *executor = &service->executor;
    const char *argv[LIMIT_ARGV + 8] = {NULL};
    struct scratch scratch = {.path = NULL};
    char *guard = NULL;
    size_t n = 0;
    for (; n < executor->n_prefix && n < LIMIT_ARGV; n++) {
        argv[n] = executor->prefix[n];
    }
    argv[n++] = SHELL;
    argv[n++] = "-c";
    argv[n++] = TRY;
    argv[n++] = "sh";
    argv[n++] = d->config->keys;
    char *program = program_find(executor->prefix[0]);
    bool ok = false;
    if (program == NULL) {
        baton_fail(err, BATON_E_bad_config, "the program %s is not there", executor->prefix[0]);
    } else if (child_guard_find(NULL, &guard, err) == BATON_OK &&
               make_scratch(d->config, service->name.s, &scratch, err) == BATON_OK) {
        argv[0] = program;
        ok = start_try(guard, argv, service->name.s, scratch.path, tried, err);
    }
    remove_scratch(&scratch);
    free(program);
    free(guard);
    return ok;
}

/* Has the prefix worked, and is only the shell not there where it leads to, as in a container without one? What
 * begins with the name of the prefix's own program is that one's complaint. */
static bool lacks_shell(const struct config_executor *executor, const struct tried *tried)
{
    const char *slash = strrchr(executor->prefix[0], '/');
    const char *name = slash != NULL ? slash + 1 : executor->prefix[0];
    const size_t len = strlen(name);
    const size_t head = strcspn(tried->said, ":"); /* "PROGRAM: …", or its whole path */
    const bool own = head >= len && tried->said[head] == ':' &&
                     memcmp(tried->said + head - len, name, len) == 0 &&
                     (head == len || tried->said[head - len - 1] == '/');
    return tried->ended && tried->status.end == CHILD_END_exited &&
           tried->status.value != CAN_READ && tried->status.value != CAN_NOT &&
           (strstr(tried->said, SHELL) != NULL ||
            (!own && (tried->status.value == 126 || tried->status.value == 127)));
}

static void tell_tried(struct doctor *d, const struct config_service *of, const struct tried *tried)
{
    const char *service = of->name.s;
    const bool exited = tried->ended && tried->status.end == CHILD_END_exited;
    if (exited && tried->status.value == CAN_READ) {
        doctor_found(d, LEVEL_warn, BATON_OK,
                     MEND_HINT("let executor.prefix change to another user: worker/EXECUTOR.md"),
                     NULL, "executors of %s can read %s, whatever their prefix does", service,
                     d->config->keys);
    } else if (exited && tried->status.value == CAN_NOT && tried->status.left) {
        doctor_found(
            d, LEVEL_warn, BATON_OK, MEND_HINT("give the worker CAP_KILL, as deploy/systemd does"),
            "what an executor leaves behind works on beside the attempt that follows",
            "executors of %s are another user's, whose processes may not be ended from here",
            service);
    } else if (lacks_shell(&of->executor, tried)) {
        doctor_found(d, LEVEL_ok, BATON_OK, MEND_NONE, NULL,
                     "the prefix of %s could not be tried: " SHELL
                     " cannot be run where it leads to (%s); whether executors of it can read %s "
                     "is not known",
                     service, tried->said[0] != '\0' ? tried->said : "it fails without a word",
                     d->config->keys);
    } else if (!exited || tried->status.value != CAN_NOT) {
        doctor_found(d, LEVEL_warn, BATON_OK,
                     MEND_HINT("run doctor with the rights that the worker has: "
                               "deploy/systemd/README.md"),
                     "a worker that has no other rights than this starts no executor",
                     "the prefix of %s does not work from here: %s", service,
                     !tried->ended            ? "it does not come to an end"
                     : tried->said[0] != '\0' ? tried->said
                                              : "it fails without a word");
    }
}

/* Has an earlier service the same prefix? It was tried, unless it starts no executor. */
static bool tried_before(const struct config *config, size_t at)
{
    const struct config_executor *executor = &config->services[at].executor;
    for (size_t i = 0; i < at; i++) {
        const struct config_executor *other = &config->services[i].executor;
        bool same = other->kind != EXECUTOR_KIND_callback && other->n_prefix == executor->n_prefix;
        for (size_t k = 0; same && k < executor->n_prefix; k++) {
            same = strcmp(other->prefix[k], executor->prefix[k]) == 0;
        }
        if (same) {
            return true;
        }
    }
    return false;
}

static void check_prefix(struct doctor *d, size_t at)
{
    const struct config_service *service = &d->config->services[at];
    struct tried tried = {.ended = false};
    struct baton_error err = {BATON_OK, ""};
    if (tried_before(d->config, at)) {
        return;
    }
    if (try_prefix(d, service, &tried, &err)) {
        tell_tried(d, service, &tried);
    } else {
        doctor_found(d, LEVEL_warn, BATON_OK, MEND_SAID, "no executor of it can be started here",
                     "the prefix of %s does not work from here: %s", service->name.s, err.text);
    }
}

void doctor_check_executors(struct doctor *d)
{
    size_t same = 0;
    const char *first = "";
    const int told = d->counts[LEVEL_warn] + d->counts[LEVEL_ok];
    for (size_t i = 0; i < d->config->n_services; i++) {
        const struct config_service *service = &d->config->services[i];
        if (service->executor.kind == EXECUTOR_KIND_callback) {
            continue; /* a thread of ours */
        }
        if (service->executor.n_prefix > 0) {
            check_prefix(d, i);
        } else {
            first = same == 0 ? service->name.s : first;
            same++;
        }
    }
    if (same > 0 && access(d->config->keys, R_OK | X_OK) == 0) {
        doctor_found(
            d, LEVEL_warn, BATON_OK,
            MEND_HINT("run executors under another user: executor.prefix, worker/EXECUTOR.md"),
            NULL, "executors of %zu services (%s%s) run under the worker's user and can read %s",
            same, first, same > 1 ? ", …" : "", d->config->keys);
    } else if (d->counts[LEVEL_warn] + d->counts[LEVEL_ok] == told) {
        doctor_found(d, LEVEL_ok, BATON_OK, MEND_NONE, NULL,
                     "no executor can read the keys as this user");
    }
}
