/*
 * Agent programs in the pool: what is handed to one, and what is made of its output.
 * In: run_exec.c, pool.c. Out: launch.c, worker/agent/agent.h, worker/agent/prompt.h
 */
#include "worker/executor/run_agent.h"

#include "common/base/limits.h"
#include "common/process/mask.h"
#include "worker/agent/agent.h"
#include "worker/agent/prompt.h"
#include "common/process/scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The kind's state: const once the pool is open. */
struct agent_kind {
    const struct agent_program *program;
    struct prompts prompts;
    char *model;
    char *home;
    bool resume;
    struct usage_prices prices;
    enum executor_access access;
};

struct agent_run {
    struct agent_reading reading;
    struct executor_env *env; /* its mask is in use */
    struct line_reader lines;
    struct line_reader error_lines;
    struct mask_stream mask; /* of what it says: a secret may come in pieces of messages */
    struct output said;      /* masked already */
    bool open;               /* the last piece's line has not ended */
    enum agent_source source;
    struct usage_prices prices;
    struct usage before; /* of the session that it goes on in */
    bool resumed;
    bool gone; /* that session is not there */
    bool any_said;
    char hint[256];
};

/* ---- open ---- */

static char *copy_of(const char *text, bool *ok)
{
    char *copy = text != NULL ? strdup(text) : NULL;
    *ok = *ok && (text == NULL || copy != NULL);
    return copy;
}

baton_code agent_open(struct executor_pool *pool, struct baton_error *err)
{
    const struct executor_settings *set = &pool->set;
    struct agent_kind *kind = calloc(1, sizeof(*kind));
    bool ok = kind != NULL;
    pool->state = kind;
    if (ok) {
        kind->program = agent_find(set->agent);
        kind->access = set->access;
        kind->resume = set->resume;
        kind->prices = set->prices;
        kind->model = copy_of(set->model, &ok);
        kind->home = copy_of(set->home, &ok);
    }
    if (!ok) {
        return baton_fail(err, BATON_E_no_memory, "no memory for an agent executor");
    }
    if (set->n_command == 0) {
        pool->set.command = &kind->program->command;
        pool->set.n_command = 1;
    }
    return prompts_load(set->prompts, &kind->prompts, err);
}

void agent_free(struct executor_pool *pool)
{
    struct agent_kind *kind = pool->state;
    if (kind != NULL) {
        prompts_done(&kind->prompts);
        free(kind->model);
        free(kind->home);
        free(kind);
    }
}

/* ---- what is handed to the program ---- */

static const char *declared(const void *arg, const char *name)
{
    return executor_env_find(arg, name);
}

static bool is_secret(const void *arg, const char *name)
{
    return executor_env_is_secret(arg, name);
}

/* Writes a file below the scratch directory, which nobody else has been in yet. Who shares it gets at
 * the file by its group. */
static bool write_file(const char *scratch, const char *name, const void *bytes, size_t len,
                       bool shared)
{
    char path[4096];
    const char *slash = strchr(name, '/');
    if (slash != NULL) {
        snprintf(path, sizeof(path), "%s/%.*s", scratch, (int)(slash - name), name);
        if ((mkdir(path, 0700) != 0 && errno != EEXIST) || (shared && !scratch_share(path, 0770))) {
            return false;
        }
    }
    snprintf(path, sizeof(path), "%s/%s", scratch, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    bool ok = fd >= 0 && (!shared || fchmod(fd, 0660) == 0);
    for (const char *at = bytes; ok && len > 0;) {
        ssize_t n = write(fd, at, len);
        ok = n > 0 || (n < 0 && errno == EINTR);
        at += n > 0 ? n : 0;
        len -= n > 0 ? (size_t)n : 0;
    }
    return (fd < 0 || close(fd) == 0) && ok;
}

static bool write_files(const struct agent_setup *setup, const struct buf *schema,
                        const struct buf *payload, const char *scratch, bool shared)
{
    bool ok = write_file(scratch, AGENT_SCHEMA_FILE, schema->data, schema->len, shared);
    for (size_t i = 0; ok && i + 1 < setup->files.count; i += 2) {
        const char *text = setup->files.list[i + 1];
        ok = write_file(scratch, setup->files.list[i], text, strlen(text), shared);
    }
    return ok && (payload->len == 0 ||
                  write_file(scratch, PROMPT_PAYLOAD_FILE, payload->data, payload->len, shared));
}

static enum agent_access access_of(const struct agent_kind *kind, const struct attempt *attempt)
{
    switch (kind->access) {
    case EXECUTOR_ACCESS_auto:
        return attempt->read_only ? AGENT_ACCESS_read : AGENT_ACCESS_write;
    case EXECUTOR_ACCESS_read:
        return AGENT_ACCESS_read;
    case EXECUTOR_ACCESS_write:
        return AGENT_ACCESS_write;
    case EXECUTOR_ACCESS_full:
        return AGENT_ACCESS_full;
    }
    return AGENT_ACCESS_read;
}

static baton_code fill_prompt(const struct agent_kind *kind, const struct attempt *attempt,
                              const char *scratch, struct buf *prompt, struct buf *payload,
                              struct baton_error *err)
{
    char mark[PROMPT_MARK_MAX + 1];
    char payload_path[4096];
    uint64_t drawn;
    random_bytes(&drawn, sizeof(drawn));
    snprintf(mark, sizeof(mark), "%016llx", (unsigned long long)drawn);
    snprintf(payload_path, sizeof(payload_path), "%s/%s", scratch, PROMPT_PAYLOAD_FILE);
    const struct prompt_values values = {
        .role = attempt->role,
        .verdicts = attempt->verdicts,
        .task = attempt->task.s,
        .task_rev = attempt->task_rev,
        .run = attempt->run.s,
        .intent = attempt->intent.s,
        .json = attempt->json,
        .json_len = attempt->json_len,
        .read_only = access_of(kind, attempt) == AGENT_ACCESS_read,
        .place = attempt->place != NULL,
        .schema = kind->program->schema,
        .mark = mark,
        .payload_path = payload_path,
    };
    return prompt_fill(&kind->prompts, &values, prompt, payload, err);
}

baton_code agent_prepare(struct executor_pool *pool, const struct attempt *attempt,
                         const struct executor_env *env, const char *scratch,
                         struct launch_plan *ret_plan, struct baton_error *err)
{
    const struct agent_kind *kind = pool->state;
    char real[PATH_MAX];
    const char *place = attempt->place;
    struct buf schema = BUF_INIT;
    struct buf payload = BUF_INIT;
    struct launch_plan plan = {.home = kind->home,
                               .may_write = access_of(kind, attempt) != AGENT_ACCESS_read};
    if (place != NULL && realpath(place, real) != NULL) {
        place = real; /* as the program will see it */
    }
    agent_schema(attempt->verdicts, &schema);
    baton_code rc = buf_ok(&schema) ? fill_prompt(kind, attempt, scratch, &plan.in, &payload, err)
                                    : baton_fail(err, BATON_E_no_memory, "no memory for a prompt");
    if (rc == BATON_OK) {
        const struct agent_request request = {
            .access = access_of(kind, attempt),
            .model = kind->model,
            .schema = schema.data,
            .scratch = scratch,
            .place = place,
            .max_cost_micros = attempt->max_cost_micros,
            .keep_session = kind->resume,
            .session = attempt->session != NULL && agent_session_valid(attempt->session)
                           ? attempt->session
                           : NULL,
            .home = kind->home != NULL ? kind->home : executor_env_find(env, "HOME"),
            .declared = declared,
            .secret = is_secret,
            .declared_arg = env,
        };
        kind->program->setup(&request, &plan.setup);
        if (request.access == AGENT_ACCESS_read) { /* git must not refresh its index by looking */
            agent_words_add(&plan.setup.env, "GIT_OPTIONAL_LOCKS=0");
        }
        if (plan.setup.refused != NULL) {
            rc = baton_fail(err, BATON_E_bad_config, "%s", plan.setup.refused);
        } else if (plan.setup.argv.broken || plan.setup.env.broken || plan.setup.files.broken) {
            rc = baton_fail(err, BATON_E_no_memory, "no memory for an agent's command");
        } else if (!write_files(&plan.setup, &schema, &payload, scratch, pool->set.n_prefix > 0)) {
            rc = baton_fail(err, BATON_E_service_unavailable,
                            "cannot write into the scratch directory: %s", strerror(errno));
        }
    }
    buf_done(&schema);
    buf_done(&payload);
    if (rc != BATON_OK) {
        launch_plan_done(&plan);
        return rc;
    }
    *ret_plan = plan;
    return BATON_OK;
}

/* ---- what it prints ---- */

struct agent_run *agent_run_new(struct executor_pool *pool, const struct attempt *attempt)
{
    const struct agent_kind *kind = pool->state;
    struct agent_run *run = calloc(1, sizeof(*run));
    if (run != NULL) {
        run->env = executor_env_share(attempt->env);
        run->before = attempt->session_usage;
        run->prices = kind->prices;
        run->resumed = kind->resume && attempt->session != NULL;
        agent_reading_init(&run->reading, kind->program);
        line_reader_init(&run->lines, LIMIT_CHILD_FRAME);
        line_reader_init(&run->error_lines, LIMIT_STDERR_LINE);
        mask_stream_init(&run->mask, executor_env_mask(run->env));
        output_init(&run->said, mask_nothing(), OUTPUT_HEAD, OUTPUT_TAIL, NULL, NULL);
    }
    return run;
}

void agent_run_free(struct agent_run *run)
{
    if (run != NULL) {
        agent_reading_done(&run->reading);
        line_reader_done(&run->lines);
        line_reader_done(&run->error_lines);
        mask_stream_done(&run->mask);
        output_done(&run->said);
        executor_env_free(run->env);
        free(run);
    }
}

static void tell(struct executor_pool *pool, const struct attempt *attempt, const struct buf *text)
{
    if (attempt != NULL && buf_ok(text) && text->len > 0) {
        size_t len = text->len < EXECUTOR_PROGRESS_MAX ? text->len : EXECUTOR_PROGRESS_MAX;
        while (len < text->len && len > 0 && ((unsigned char)text->data[len] & 0xC0) == 0x80) {
            len--; /* not in the middle of a character */
        }
        attempt_progress(pool, attempt, text->data, len);
    }
}

/* What the agent says, each message on lines of its own. Appends to told what is decided of it. */
static void say(struct agent_run *run, const struct buf *said, struct buf *told)
{
    struct buf ends = BUF_INIT; /* a line of before */
    if (run->open && !run->reading.piece) {
        run->open = false;
        mask_stream_feed(&run->mask, "\n", 1, &ends);
        output_feed(&run->said, ends.data, ends.len);
        while (ends.len > 0 && ends.data[ends.len - 1] == '\n') {
            ends.len--;
        }
        buf_add(told, ends.data, ends.len);
    }
    buf_done(&ends);
    if (said->len > 0) {
        bool line = said->data[said->len - 1] == '\n';
        size_t before = told->len;
        run->any_said = true;
        run->open = run->reading.piece && !line;
        mask_stream_feed(&run->mask, said->data, said->len, told);
        if (!line && !run->open) {
            mask_stream_feed(&run->mask, "\n", 1, told);
        }
        output_feed(&run->said, told->data + before, told->len - before);
        if (!line && !run->open && told->len > before && told->data[told->len - 1] == '\n') {
            told->len--;
        }
    }
}

static void take_line(struct agent_run *run, struct executor_pool *pool,
                      const struct attempt *attempt, const char *line, size_t len)
{
    struct buf masked = BUF_INIT;
    struct buf said = BUF_INIT;
    struct buf doing = BUF_INIT;
    struct buf told = BUF_INIT;
    mask_add(executor_env_mask(run->env), line, len, &masked);
    if (buf_ok(&masked) && masked.len > 0) {
        agent_line(&run->reading, masked.data, masked.len, &said, &doing);
    }
    /* Decoded, they may show what the line did not. */
    if (buf_ok(&said) && buf_ok(&doing) && (said.len > 0 || doing.len > 0)) {
        say(run, &said, &told);
        tell(pool, attempt, &told);
        buf_clear(&told);
        mask_add(executor_env_mask(run->env), doing.data, doing.len, &told);
        tell(pool, attempt, &told);
    }
    buf_done(&masked);
    buf_done(&said);
    buf_done(&doing);
    buf_done(&told);
}

/* A line that is too long is passed over: what a tool printed, say. The program's own end is short. */
void agent_run_feed(struct agent_run *run, struct executor_pool *pool,
                    const struct attempt *attempt, const char *bytes, size_t len)
{
    const char *line;
    size_t line_len;
    enum line_state state;
    if (!line_reader_feed(&run->lines, bytes, len)) {
        return; /* without memory its end is not seen: invalid_output */
    }
    while ((state = line_reader_next(&run->lines, &line, &line_len)) != LINE_none) {
        if (state == LINE_whole) {
            take_line(run, pool, attempt, line, line_len);
        }
    }
}

void agent_run_feed_error(struct agent_run *run, const char *bytes, size_t len)
{
    const char *line;
    size_t line_len;
    enum failure class;
    if (!line_reader_feed(&run->error_lines, bytes, len)) {
        return;
    }
    while (line_reader_next(&run->error_lines, &line, &line_len) != LINE_none) {
        run->gone = run->gone || agent_session_gone(&run->reading, line, line_len);
        if (agent_class(run->reading.program, agent_status_in(line, line_len), line, line_len,
                        &class)) {
            struct buf masked = BUF_INIT;
            mask_add(executor_env_mask(run->env), line, line_len, &masked);
            snprintf(run->hint, sizeof(run->hint), "%s", buf_ok(&masked) ? masked.data : "");
            buf_done(&masked);
        }
    }
}

static void end_said(struct agent_run *run)
{
    struct buf rest = BUF_INIT;
    if (run->open) {
        mask_stream_feed(&run->mask, "\n", 1, &rest);
    }
    mask_stream_end(&run->mask, &rest);
    output_feed(&run->said, rest.data, rest.len);
    output_end(&run->said);
    buf_done(&rest);
}

/* What this attempt alone took of its session, and what that costs. */
static void settle_usage(struct agent_run *run)
{
    struct usage *usage = &run->reading.usage;
    if (run->resumed && run->reading.program->cumulative) {
        usage_subtract(usage, &run->before);
    }
    usage_price(usage, &run->prices);
}

void agent_run_end(struct agent_run *run, const struct executor_exit *exit,
                   const struct output *error, struct buf *object)
{
    const char *line;
    size_t len;
    char last[EXECUTOR_MESSAGE_MAX] = "";
    if (line_reader_rest(&run->lines, &line, &len)) {
        take_line(run, NULL, NULL, line, len);
    }
    end_said(run);
    settle_usage(run);
    output_add_last_line(error, last, sizeof(last));
    const struct agent_end end = {
        .signaled = exit->signaled,
        .value = exit->value,
        .error = last[0] != '\0' ? last + 2 : NULL, /* behind its ": " */
        .error_len = last[0] != '\0' ? strlen(last + 2) : 0,
        .now = wall_now(),
        .mask = mask_add,
        .mask_arg = executor_env_mask(run->env),
    };
    run->source = agent_judge(&run->reading, &end, object);
    run->gone = run->gone || agent_session_gone(&run->reading, end.error, end.error_len);
    run->gone = run->gone && !exit->signaled && exit->value != 0;
}

bool agent_run_begin_anew(const struct agent_run *run)
{
    return run->resumed && run->gone;
}

static void mask_name(const struct agent_run *run, char *name, size_t size)
{
    struct buf masked = BUF_INIT;
    mask_add(executor_env_mask(run->env), name, strlen(name), &masked);
    snprintf(name, size, "%s", buf_ok(&masked) && masked.len > 0 ? masked.data : "");
    buf_done(&masked);
}

void agent_run_usage(const struct agent_run *run, char usage[USAGE_TEXT_MAX + 1])
{
    struct usage told = agent_usage(&run->reading, run->source);
    mask_name(run, told.model, sizeof(told.model));
    mask_name(run, told.session, sizeof(told.session));
    char *text = usage_text(&told);
    snprintf(usage, USAGE_TEXT_MAX + 1, "%s", text != NULL ? text : "");
    free(text);
}

const struct output *agent_run_said(const struct agent_run *run)
{
    return run->any_said ? &run->said : NULL;
}

const char *agent_run_hint(const struct agent_run *run)
{
    return run->hint;
}
