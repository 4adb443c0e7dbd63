/*
 * What `baton doctor` says of executors and keys (RECORD.md section 5): under our own user they can read them. A
 * prefix that makes them another user's is tried as a worker uses it: can what it starts read a key, and can
 * the guard end what that leaves?
 * In: deploy/cmd_doctor.c. Out: common/process/child.h
 */
#include "deploy/doctor.h"

#include "common/base/clock.h"
#include "common/base/limits.h"
#include "common/process/child.h"
#include "common/process/program.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TRY_MS 15000 /* a container takes its time; a guard that may not kill gives up within it */
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
    char said[256]; /* the first line of what was printed */
};

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

/* As a worker starts an executor. False: err says what is lacking for it. */
static bool try_prefix(const struct doctor *d, const struct config_executor *executor,
                       struct tried *tried, struct baton_error *err)
{
    const char *const env[] = {"PATH=" PROGRAM_PATH, "LANG=C.UTF-8", NULL};
    const char *argv[LIMIT_ARGV + 8] = {NULL};
    struct child child;
    char *guard = NULL;
    int ours = -1;
    int childs = -1;
    size_t n = 0;
    for (; n < executor->n_prefix && n < LIMIT_ARGV; n++) {
        argv[n] = executor->prefix[n];
    }
    argv[n++] = "/bin/sh";
    argv[n++] = "-c";
    argv[n++] = TRY;
    argv[n++] = "sh";
    argv[n++] = d->config->keys;
    char *program = program_find(executor->prefix[0]);
    bool ok = false;
    if (program == NULL) {
        baton_fail(err, BATON_E_bad_config, "the program %s is not there", executor->prefix[0]);
    } else if (child_guard_find(NULL, &guard, err) == BATON_OK) {
        argv[0] = program;
        if (!child_pipe(false, &ours, &childs)) {
            baton_fail(err, BATON_E_service_unavailable, "no pipe: %s", strerror(errno));
        } else {
            const struct child_spec spec = {.guard = guard,
                                            .argv = argv,
                                            .env = env,
                                            .cwd = "/",
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
    }
    free(program);
    free(guard);
    return ok;
}

static void tell_tried(struct doctor *d, const char *service, const struct tried *tried)
{
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

/* Has an earlier service the same prefix? It was tried. */
static bool tried_before(const struct config *config, size_t at)
{
    const struct config_executor *executor = &config->services[at].executor;
    for (size_t i = 0; i < at; i++) {
        const struct config_executor *other = &config->services[i].executor;
        bool same = other->n_prefix == executor->n_prefix;
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
    if (try_prefix(d, &service->executor, &tried, &err)) {
        tell_tried(d, service->name.s, &tried);
    } else {
        doctor_found(d, LEVEL_warn, BATON_OK, MEND_SAID, "no executor of it can be started here",
                     "the prefix of %s does not work from here: %s", service->name.s, err.text);
    }
}

void doctor_check_executors(struct doctor *d)
{
    size_t same = 0;
    const char *first = "";
    const int warned = d->counts[LEVEL_warn];
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
    } else if (d->counts[LEVEL_warn] == warned) {
        doctor_found(d, LEVEL_ok, BATON_OK, MEND_NONE, NULL,
                     "no executor can read the keys as this user");
    }
}
