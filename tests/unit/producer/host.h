/* A host in a temporary folder for tests of topics and producer: configuration, keys, trust, local
 * log. */
#ifndef BATON_TESTS_UNIT_PRODUCER_HOST_H
#define BATON_TESTS_UNIT_PRODUCER_HOST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <ftw.h>

#include "common/base/config.h"
#include "common/log/log.h"

static int host_remove_one(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
    (void)st;
    (void)kind;
    (void)ftw;
    return remove(path);
}

struct host {
    char dir[64];
    struct config *config;
    struct log *log; /* opened by host_log */
};

/* text: the configuration after `version: 1`. */
static struct config *host_config(const struct host *host, const char *text)
{
    char path[128];
    char whole[4096];
    struct config *config = NULL;
    struct baton_error err = {BATON_OK, ""};
    snprintf(path, sizeof(path), "%s/baton.yaml", host->dir);
    snprintf(whole, sizeof(whole), "version: 1\n%s", text);
    if (config_parse(path, whole, strlen(whole), NULL, 0, &config, NULL, &err) != BATON_OK) {
        fail_msg("%s", err.text);
    }
    return config;
}

static void host_open(struct host *host, const char *text)
{
    memset(host, 0, sizeof(*host));
    snprintf(host->dir, sizeof(host->dir), "/tmp/baton-unit-XXXXXX");
    assert_non_null(mkdtemp(host->dir));
    host->config = host_config(host, text);
}

static inline void host_log(struct host *host)
{
    struct baton_error err = {BATON_OK, ""};
    if (log_create(host->config, &err) != BATON_OK ||
        log_open(host->config, &host->log, &err) != BATON_OK) {
        fail_msg("%s", err.text);
    }
}

static void host_close(struct host *host)
{
    log_close(host->log);
    config_free(host->config);
    nftw(host->dir, host_remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

#define HOST_SERVICES                                                                              \
    "identity: alice\n"                                                                            \
    "services:\n"                                                                                  \
    "  alpha: {roles: [owner, reviewer, arbiter], executor: {kind: exec, command: [/bin/true]}}\n" \
    "  beta: {roles: [reviewer], executor: {kind: exec, command: [/bin/true]}}\n"

#endif
