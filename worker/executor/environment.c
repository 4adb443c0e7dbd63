/*
 * Resolves declared environment values and builds environments of executors.
 * In: worker (claim), launch. Out: common/process/mask.c.
 */
#include "worker/executor/environment.h"

#include "common/base/check.h"
#include "common/base/limits.h"
#include "common/base/text.h"
#include "common/process/mask.h"
#include "common/record/proof.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct env_value {
    char *name;
    char *value;
    bool secret;
};

struct executor_env {
    atomic_int holders; /* the engine's thread and attempts of the pool's */
    struct env_value *values;
    size_t count;
    struct mask *mask;
};

static void clear_and_free(char *text)
{
    if (text != NULL) {
        explicit_bzero(text, strlen(text));
        free(text);
    }
}

static bool name_valid(const char *name)
{
    if (!isalpha((unsigned char)name[0]) && name[0] != '_') {
        return false;
    }
    for (const char *at = name; *at != '\0'; at++) {
        if (!isalnum((unsigned char)*at) && *at != '_') {
            return false;
        }
    }
    return true;
}

/* The file's content without one trailing newline. */
static baton_code read_secret(const struct config_env *env, char **ret_value,
                              struct baton_error *err)
{
    int fd = open(env->text, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        int why = fd < 0 ? errno : 0;
        if (fd >= 0) {
            close(fd);
        }
        return baton_fail(err, BATON_E_bad_config, "the value of %s cannot be read from %s: %s",
                          env->name, text_quote_of(env->text).s,
                          why != 0 ? strerror(why) : "no regular file");
    }
    char *value = malloc(LIMIT_SECRET + 2);
    size_t len = 0;
    ssize_t n = value != NULL ? 1 : -1;
    while (n > 0 && len <= LIMIT_SECRET) {
        n = read(fd, value + len, LIMIT_SECRET + 1 - len);
        len += n > 0 ? (size_t)n : 0;
    }
    int why = errno;
    close(fd);
    if (n < 0 || len > LIMIT_SECRET || memchr(value, '\0', len) != NULL) {
        if (value != NULL) {
            explicit_bzero(value, LIMIT_SECRET + 2);
        }
        free(value);
        return baton_fail(err, BATON_E_bad_config, "the value of %s in %s %s", env->name,
                          text_quote_of(env->text).s,
                          n < 0                ? strerror(why)
                          : len > LIMIT_SECRET ? "is longer than 64 KiB"
                                               : "holds a NUL byte");
    }
    len -= len > 0 && value[len - 1] == '\n' ? 1 : 0;
    value[len] = '\0';
    char *copy = strdup(value);
    explicit_bzero(value, LIMIT_SECRET + 2);
    free(value);
    if (copy == NULL) {
        return baton_fail(err, BATON_E_no_memory, "no memory for the value of %s", env->name);
    }
    *ret_value = copy;
    return BATON_OK;
}

static baton_code read_value(const struct config_env *env, char **ret_value,
                             struct baton_error *err)
{
    const char *text = env->text;
    switch (env->source) {
    case ENV_SOURCE_file:
        return read_secret(env, ret_value, err);
    case ENV_SOURCE_from:
        text = getenv(env->text);
        if (text == NULL) {
            return baton_fail(err, BATON_E_bad_config,
                              "%s takes its value from the variable %s, which is not set here",
                              env->name, text_quote_of(env->text).s);
        }
        break;
    case ENV_SOURCE_value:
        break;
    }
    char *copy = strdup(text);
    if (copy == NULL) {
        return baton_fail(err, BATON_E_no_memory, "no memory for the value of %s", env->name);
    }
    *ret_value = copy;
    return BATON_OK;
}

static baton_code add_values(struct executor_env *env, const struct config_env *from, size_t n,
                             struct baton_error *err)
{
    for (size_t i = 0; i < n; i++) {
        char *value = NULL;
        if (!name_valid(from[i].name) || strncmp(from[i].name, "BATON_", 6) == 0) {
            return baton_fail(
                err, BATON_E_bad_config,
                "%s cannot be declared for an executor: names are letters, digits and "
                "_, and BATON_* is Baton's own",
                text_quote_of(from[i].name).s);
        }
        baton_code rc = read_value(&from[i], &value, err);
        if (rc != BATON_OK) {
            return rc;
        }
        size_t at = 0;
        while (at < env->count && strcmp(env->values[at].name, from[i].name) != 0) {
            at++;
        }
        if (at < env->count) {
            clear_and_free(env->values[at].value);
        } else {
            env->values[at].name = strdup(from[i].name);
            env->count++;
        }
        env->values[at].value = value;
        env->values[at].secret = from[i].source != ENV_SOURCE_value;
        if (env->values[at].name == NULL) {
            return baton_fail(err, BATON_E_no_memory, "no memory for the environment");
        }
    }
    return BATON_OK;
}

static bool make_mask(struct executor_env *env)
{
    const char **secrets = calloc(env->count + 1, sizeof(*secrets));
    size_t n = 0;
    for (size_t i = 0; secrets != NULL && i < env->count; i++) {
        if (env->values[i].secret) {
            secrets[n++] = env->values[i].value;
        }
    }
    env->mask = secrets != NULL ? mask_new(secrets, n) : NULL;
    free(secrets);
    return env->mask != NULL;
}

baton_code executor_env_resolve(const struct config_env *base, size_t n_base,
                                const struct config_env *profile, size_t n_profile,
                                struct executor_env **ret_env, struct baton_error *err)
{
    struct executor_env *env = calloc(1, sizeof(*env));
    if (env == NULL ||
        (env->values = calloc(n_base + n_profile + 1, sizeof(*env->values))) == NULL) {
        free(env);
        return baton_fail(err, BATON_E_no_memory, "no memory for the environment");
    }
    atomic_init(&env->holders, 1);
    baton_code rc = add_values(env, base, n_base, err);
    rc = rc != BATON_OK ? rc : add_values(env, profile, n_profile, err);
    if (rc == BATON_OK && !make_mask(env)) {
        rc = baton_fail(err, BATON_E_no_memory, "no memory to mask the environment's secrets");
    }
    if (rc != BATON_OK) {
        executor_env_free(env);
        return rc;
    }
    *ret_env = env;
    return BATON_OK;
}

struct executor_env *executor_env_share(struct executor_env *env)
{
    if (env != NULL) {
        atomic_fetch_add(&env->holders, 1);
    }
    return env;
}

void executor_env_free(struct executor_env *env)
{
    if (env == NULL || atomic_fetch_sub(&env->holders, 1) != 1) {
        return;
    }
    for (size_t i = 0; i < env->count; i++) {
        free(env->values[i].name);
        clear_and_free(env->values[i].value);
    }
    free(env->values);
    mask_free(env->mask);
    free(env);
}

bool executor_env_equal(const struct executor_env *a, const struct executor_env *b)
{
    size_t n = a != NULL ? a->count : 0;
    if (n != (b != NULL ? b->count : 0)) {
        return false;
    }
    for (size_t i = 0; i < n; i++) { /* both were read from the same configuration: same order */
        if (strcmp(a->values[i].name, b->values[i].name) != 0 ||
            strcmp(a->values[i].value, b->values[i].value) != 0) {
            return false;
        }
    }
    return true;
}

void executor_env_digest(const struct executor_env *env, struct digest *ret_digest)
{
    struct json_span parts[2 * 2 * LIMIT_ENV];
    size_t n = 0;
    for (size_t i = 0; env != NULL && i < env->count && n + 2 <= COUNT_OF(parts); i++) {
        parts[n++] = (struct json_span){env->values[i].name, strlen(env->values[i].name)};
        parts[n++] = (struct json_span){env->values[i].value, strlen(env->values[i].value)};
    }
    *ret_digest = digest_of_parts(NULL, 0, parts, n);
}

const char *executor_env_find(const struct executor_env *env, const char *name)
{
    for (size_t i = 0; env != NULL && i < env->count; i++) {
        if (strcmp(env->values[i].name, name) == 0) {
            return env->values[i].value;
        }
    }
    return NULL;
}

bool executor_env_is_secret(const struct executor_env *env, const char *name)
{
    for (size_t i = 0; env != NULL && i < env->count; i++) {
        if (strcmp(env->values[i].name, name) == 0) {
            return env->values[i].secret;
        }
    }
    return false;
}

const struct mask *executor_env_mask(const struct executor_env *env)
{
    return env != NULL ? env->mask : mask_nothing();
}

static void add_entry(struct env_block *block, const char *name, char *entry)
{
    size_t name_len = strlen(name);
    for (size_t i = 0; i < block->count; i++) {
        if (strncmp(block->entries[i], name, name_len) == 0 && block->entries[i][name_len] == '=') {
            clear_and_free(block->entries[i]);
            block->entries[i] = entry;
            return;
        }
    }
    if (block->count + 1 >= block->cap) {
        size_t cap = block->cap == 0 ? 32 : block->cap * 2;
        char **grown = realloc(block->entries, cap * sizeof(*grown));
        if (grown == NULL) {
            clear_and_free(entry);
            block->broken = true;
            return;
        }
        block->entries = grown;
        block->cap = cap;
    }
    block->entries[block->count++] = entry;
    block->entries[block->count] = NULL;
}

void env_block_set(struct env_block *block, const char *name, const char *value)
{
    char *entry;
    if (asprintf(&entry, "%s=%s", name, value) < 0) {
        block->broken = true;
        return;
    }
    add_entry(block, name, entry);
}

void env_block_set_int(struct env_block *block, const char *name, int64_t value)
{
    char text[24];
    snprintf(text, sizeof(text), "%lld", (long long)value);
    env_block_set(block, name, text);
}

void env_block_set_base(struct env_block *block, const char *service, const char *worker,
                        const char *boot, const char *scratch)
{
    env_block_set(block, "BATON_WORKER", worker);
    env_block_set(block, "BATON_BOOT", boot);
    env_block_set(block, "BATON_SCRATCH", scratch);
    env_block_set(block, "BATON_SERVICE", service);
    env_block_set(block, "BATON_MODE", "unattended");
    env_block_set(block, "PATH", EXECUTOR_PATH);
    env_block_set(block, "HOME", scratch);
    env_block_set(block, "TMPDIR", scratch);
    env_block_set(block, "LANG", "C.UTF-8");
}

void env_block_set_declared(struct env_block *block, const struct executor_env *env)
{
    for (size_t i = 0; env != NULL && i < env->count; i++) {
        env_block_set(block, env->values[i].name, env->values[i].value);
    }
}

void env_block_done(struct env_block *block)
{
    for (size_t i = 0; i < block->count; i++) {
        clear_and_free(block->entries[i]);
    }
    free(block->entries);
    *block = (struct env_block){NULL, 0, 0, false};
}
