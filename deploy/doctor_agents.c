/*
 * Agent programs on this host. In: cmd_doctor.c. Out: worker/executor/executor.h, worker/agent/agent.h
 */
#include "deploy/doctor_agents.h"

#include "common/base/clock.h"
#include "common/base/limits.h"
#include "common/base/mailbox.h"
#include "common/base/text.h"
#include "common/base/word.h"
#include "common/process/child.h"
#include "common/process/program.h"
#include "common/process/scratch.h"
#include "worker/agent/agent.h"
#include "worker/executor/executor.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define VERSION_MS 20000 /* a program that is slow to start: a node with a cold disk */
#define PROBE_MS 60000
#define PROBE_TURN                                                                                 \
    "{\"summary\":\"This only tries whether you can be reached. Look at nothing, do nothing, and " \
    "end at once with the first verdict of the list.\",\"data\":{}}"

struct look {
    const struct config_service *service;
    const struct agent_program *agent;
    char *program; /* absolute; NULL: not there */
    doctor_agents_fn *fn;
    doctor_agents_works_fn *works;
    void *arg;
};

__attribute__((format(printf, 4, 5))) static void say(const struct look *look, baton_code code,
                                                      const char *mend, const char *format, ...)
{
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    look->fn(look->arg, code, mend, text);
}

/* ---- the program ---- */

/* Reads what is there to the end, keeps what fits. False: nothing more will come. */
static bool drain(int out, char *text, size_t size, size_t *len)
{
    char piece[4096];
    ssize_t n;
    while ((n = read(out, piece, sizeof(piece))) > 0) {
        size_t room = size - 1 - *len;
        size_t kept = (size_t)n < room ? (size_t)n : room;
        memcpy(text + *len, piece, kept);
        *len += kept;
    }
    return n < 0 && (errno == EAGAIN || errno == EINTR);
}

/* What it prints until it ends, or the time is over. */
static bool read_until_end(struct child *child, int out, char *text, size_t size)
{
    const int64_t until = mono_now().v + VERSION_MS;
    struct child_status status;
    size_t len = 0;
    bool ended = false;
    bool open = true;
    for (int64_t left; !ended && (left = until - mono_now().v) > 0;) {
        struct pollfd fds[2] = {{.fd = child->pidfd, .events = POLLIN},
                                {.fd = open ? out : -1, .events = POLLIN}};
        if (poll(fds, 2, (int)left) < 0 && errno != EINTR) {
            break;
        }
        ended = (fds[0].revents & POLLIN) != 0 && child_reap(child, &status);
        open = open && drain(out, text, size, &len);
    }
    text[len] = '\0';
    if (!ended) {
        child_kill(child);
        return false;
    }
    return status.end == CHILD_END_exited && status.value == 0;
}

static bool version_of(const struct look *look, const char *dir, char *text, size_t size)
{
    char home[4200];
    char *guard = NULL;
    struct baton_error err;
    struct child child;
    int ours = -1;
    int childs = -1;
    bool ok = false;
    snprintf(home, sizeof(home), "HOME=%s", dir);
    const struct config_executor *executor = &look->service->executor;
    const char *argv[LIMIT_ARGV + 2] = {look->program};
    size_t n = 1;
    for (; n < executor->n_command && n < LIMIT_ARGV; n++) {
        argv[n] = executor->command[n];
    }
    argv[n] = "--version";
    const char *const env[] = {"PATH=" PROGRAM_PATH, home, "LANG=C.UTF-8", "NO_COLOR=1",
                               "BATON_ATTEMPT=0",    NULL};
    text[0] = '\0';
    if (child_guard_find(NULL, &guard, &err) != BATON_OK || !child_pipe(false, &ours, &childs)) {
        free(guard);
        return false;
    }
    const struct child_spec spec = {
        .guard = guard, .argv = argv, .env = env, .cwd = dir, .fds = {-1, childs, -1, -1}};
    if (child_spawn(&spec, &child, &err) == BATON_OK) {
        close(childs);
        childs = -1;
        ok = read_until_end(&child, ours, text, size);
        child_done(&child);
    }
    if (childs >= 0) {
        close(childs);
    }
    close(ours);
    free(guard);
    text[strcspn(text, "\r\n")] = '\0';
    return ok && text[0] != '\0';
}

static bool check_program(struct look *look, const char *dir)
{
    const struct config_executor *executor = &look->service->executor;
    const char *name = executor->n_command > 0 ? executor->command[0] : look->agent->command;
    char version[256];
    char mend[256];
    look->program = program_find(name);
    if (look->program == NULL) {
        snprintf(mend, sizeof(mend),
                 "install %.60s, or name its path: services.%.50s.executor.command",
                 look->agent->word, look->service->name.s);
        say(look, BATON_OK, mend, "%s: the program %s is not there, no worker of it can run here",
            look->service->name.s, text_quote_of(name).s);
        return false;
    }
    if (!version_of(look, dir, version, sizeof(version))) {
        snprintf(mend, sizeof(mend), "try %.200s --version by hand", look->program);
        say(look, BATON_OK, mend, "%s: %s does not tell its version", look->service->name.s,
            look->program);
        return true;
    }
    say(look, BATON_OK, "", "%s: %s is %s", look->service->name.s, look->program,
        text_quote_of(version).s);
    return true;
}

/* ---- credentials ---- */

static bool declares(const struct config_env *env, size_t n, const char *words)
{
    for (size_t i = 0; i < n; i++) {
        if (word_in_list(words, env[i].name)) {
            return true;
        }
    }
    return false;
}

/* Without one and without a HOME it cannot sign in anywhere. */
static bool check_profile(const struct look *look, const struct config_profile *profile,
                          struct executor_env **ret_env)
{
    const struct config_executor *executor = &look->service->executor;
    struct baton_error err;
    char mend[256];
    baton_code rc = executor_env_resolve(executor->env, executor->n_env, profile->env,
                                         profile->n_env, ret_env, &err);
    if (rc != BATON_OK) {
        say(look, BATON_OK, "make that file, or set that variable where the worker starts",
            "%s: profile %s: %s", look->service->name.s, profile->name.s, err.text);
        return false;
    }
    if (executor->home == NULL && !declares(executor->env, executor->n_env, "HOME") &&
        !declares(profile->env, profile->n_env, look->agent->credentials) &&
        !declares(executor->env, executor->n_env, look->agent->credentials)) {
        snprintf(mend, sizeof(mend), "declare one of %.100s in the profile's env, or executor.home",
                 look->agent->credentials);
        say(look, BATON_OK, mend, "%s: profile %s declares no credential", look->service->name.s,
            profile->name.s);
    }
    return true;
}

static enum role first_role(const struct config_service *service)
{
    for (unsigned i = 0; i < ROLE_COUNT; i++) {
        if ((service->roles & ROLE_BIT(i)) != 0) {
            return (enum role)i;
        }
    }
    return ROLE_reviewer;
}

static void tell_probe(const struct look *look, const struct config_profile *profile,
                       const struct executor_end *end)
{
    const char *name = look->service->name.s;
    if (end->ok || end->failure == FAILURE_no_verdict) {
        say(look, BATON_OK, "", "%s: profile %s works: the provider answered", name,
            profile->name.s);
        look->works(look->arg, &look->service->name, &profile->name);
    } else if (end->failure == FAILURE_auth || end->failure == FAILURE_access_denied) {
        say(look, BATON_E_unauthenticated, "mend the credential of that profile",
            "%s: profile %s was refused (%s): %s", name, profile->name.s,
            failure_word(end->failure), end->message);
    } else {
        say(look, BATON_OK, "try again later; the worker does, too",
            "%s: profile %s could not be tried to the end (%s): %s", name, profile->name.s,
            failure_word(end->failure), end->message);
    }
}

static void probe_profile(const struct look *look, const struct config_profile *profile,
                          const struct executor_env *env, const char *dir)
{
    const struct config_executor *executor = &look->service->executor;
    struct mailbox *events = mailbox_new(64);
    struct executor_pool *pool = NULL;
    struct baton_error err = {BATON_E_no_memory, "no memory for a probe"};
    const char *const *command = (const char *const *)executor->command;
    const struct executor_settings set = {
        .kind = EXECUTOR_KIND_agent,
        .service = look->service->name,
        .worker = plain_id_of("doctor"),
        .boot = boot_id_new(),
        .parallel = 1,
        .state_dir = dir,
        .command = command,
        .n_command = executor->n_command,
        .prefix = (const char *const *)executor->prefix,
        .n_prefix = executor->n_prefix,
        .agent = executor->agent,
        .model = executor->model,
        .home = executor->home,
        .access = EXECUTOR_ACCESS_read,
    };
    struct executor_job job = {
        .turn = turn_id_of("00000000000000000000000000000000"),
        .attempt = 1,
        .boot = set.boot,
        .role = first_role(look->service),
        .task = task_id_of("probe"),
        .intent = plain_id_of("probe"),
        .profile = profile->name,
        .json = PROBE_TURN,
        .json_len = strlen(PROBE_TURN),
        .env = env,
        .deadline_ms = PROBE_MS,
        .read_only = true,
    };
    baton_code rc = events != NULL ? executor_pool_new(&set, events, &pool, &err) : err.code;
    rc = rc == BATON_OK ? executor_start(pool, &job, &err) : rc;
    if (rc != BATON_OK) {
        say(look, rc, "", "%s: profile %s could not be tried: %s", look->service->name.s,
            profile->name.s, err.text);
    }
    for (bool over = rc != BATON_OK; !over && mailbox_wait(events, 2 * PROBE_MS);) {
        struct executor_event *event = mailbox_take(events);
        if (event != NULL && event->kind == EXECUTOR_EVENT_end) {
            tell_probe(look, profile, &event->end);
            over = true;
        }
        executor_event_free(event);
    }
    executor_pool_free(pool);
    if (events != NULL) {
        mailbox_free(events);
    }
}

/* ---- all of them ---- */

static void look_at(struct look *look, bool probe, const char *dir)
{
    const struct config_service *service = look->service;
    bool there = check_program(look, dir);
    if (probe && service->executor.n_prefix > 0 && chmod(dir, 0711) != 0) {
        say(look, BATON_OK, "", "%s: the user of its prefix cannot reach %s: %s", service->name.s,
            dir, strerror(errno)); /* mkdtemp lets nobody else through */
    }
    for (size_t i = 0; i < service->n_profiles; i++) {
        struct executor_env *env = NULL;
        if (check_profile(look, &service->profiles[i], &env) && there && probe) {
            probe_profile(look, &service->profiles[i], env, dir);
        }
        executor_env_free(env);
    }
    free(look->program);
}

void doctor_agents(const struct config *config, bool probe, doctor_agents_fn *fn,
                   doctor_agents_works_fn *works, void *arg)
{
    const char *tmp = getenv("TMPDIR");
    char dir[4096];
    snprintf(dir, sizeof(dir), "%s/baton-doctor.XXXXXX",
             tmp != NULL && tmp[0] == '/' ? tmp : "/tmp");
    bool made = false;
    for (size_t i = 0; i < config->n_services; i++) {
        struct look look = {.service = &config->services[i], .fn = fn, .works = works, .arg = arg};
        if (look.service->executor.kind != EXECUTOR_KIND_agent) {
            continue;
        }
        look.agent = agent_find(look.service->executor.agent);
        if (!made && mkdtemp(dir) == NULL) {
            say(&look, BATON_E_bad_config, "", "no folder to try programs in: %s", strerror(errno));
            return;
        }
        made = true;
        look_at(&look, probe, dir);
    }
    while (made && !scratch_remove_step(dir, 10000)) {
    }
}
