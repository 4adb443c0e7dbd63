/*
 * A measurement's folder: made, filled with turns, removed.
 * In: worker/cmd_bench.c  Out: common/record/keys.h, topics/provision.h, common/log/log.h
 */
#include "worker/bench/bench.h"

#include "common/base/clock.h"
#include "common/record/headers.h"
#include "common/record/keys.h"
#include "common/record/signer.h"
#include "common/record/turn.h"
#include "producer/identity.h"
#include "topics/catalogue.h"
#include "topics/provision.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define PUBLISH_AT_ONCE 500
#define PUBLISH_TIMEOUT_MS 60000
#define SYNCS 100

const char *bench_kind_word(enum bench_kind kind)
{
    static const char *const words[BENCH_KIND_COUNT] = {"callback", "child"};
    return words[kind];
}

struct turn_id bench_turn_id(int64_t number)
{
    const struct digest digest = digest_of(&number, sizeof(number));
    char hex[2 * DIGEST_LEN + 1];
    hex_encode(digest.b, DIGEST_LEN, hex);
    hex[32] = '\0';
    return turn_id_of(hex);
}

int64_t bench_quantile(int64_t *values, size_t count, double share)
{
    for (size_t gap = count / 2; gap > 0;
         gap /= 2) { /* Shell's sort: short, and fast enough here */
        for (size_t i = gap; i < count; i++) {
            int64_t value = values[i];
            size_t at = i;
            for (; at >= gap && values[at - gap] > value; at -= gap) {
                values[at] = values[at - gap];
            }
            values[at] = value;
        }
    }
    size_t index = (size_t)(share * (double)count);
    return values[index < count ? index : count - 1];
}

/* ---- the page ---- */

static size_t page_size(int64_t turns)
{
    return sizeof(struct bench_page) + (size_t)turns * sizeof(int64_t);
}

struct bench_page *bench_page_map(const char *dir, int64_t create)
{
    char path[600];
    struct stat st;
    snprintf(path, sizeof(path), "%s/page", dir);
    int fd = open(path, O_RDWR | O_CLOEXEC | (create > 0 ? O_CREAT | O_EXCL : 0), 0600);
    if (fd < 0 || (create > 0 && ftruncate(fd, (off_t)page_size(create)) != 0) ||
        fstat(fd, &st) != 0) {
        if (fd >= 0) {
            close(fd);
        }
        return NULL;
    }
    void *page = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    return page == MAP_FAILED ? NULL : page;
}

static void page_unmap(struct bench_page *page, int64_t turns)
{
    if (page != NULL) {
        munmap(page, page_size(turns));
    }
}

/* ---- the folder ---- */

void bench_set_down(struct bench_set *set, bool keep)
{
    config_free(set->config);
    page_unmap(set->page, set->turns);
    set->config = NULL;
    set->page = NULL;
    if (set->dir[0] != '\0' && !keep) {
        bench_remove(set->dir);
    }
    bench_clean_end(set);
}

/* `log:` and its section. */
static void write_log(FILE *file, const struct bench_set *set)
{
    if (set->brokers == NULL) {
        fprintf(file, "log: local\nlocal: {path: data/log.db}\n");
        return;
    }
    fprintf(file, "prefix: %s\nlog: kafka\nkafka:\n  brokers: [", set->prefix);
    for (const char *at = set->brokers; *at != '\0';) {
        const size_t n = strcspn(at, ",");
        fprintf(file, "%s\"%.*s\"", at != set->brokers ? ", " : "", (int)n, at);
        at += n + (at[n] == ',');
    }
    fprintf(file, "]\n");
}

static baton_code write_config(struct bench_set *set, int parallel, struct baton_error *err)
{
    static const char chains[] =
        "roles: {owner: {chain: [" BENCH_SERVICE "]}, reviewer: {chain: [" BENCH_SERVICE
        "]}, arbiter: {chain: [" BENCH_SERVICE "]}}\n";
    char path[600];
    char self[512] = "";
    snprintf(path, sizeof(path), "%s/baton.yaml", set->dir);
    if (readlink("/proc/self/exe", self, sizeof(self) - 1) < 0) {
        return baton_fail(err, BATON_E_unexpected, "/proc/self/exe cannot be read: %m");
    }
    FILE *file = fopen(path, "wxe");
    if (file == NULL) {
        return baton_fail(err, BATON_E_unexpected, "%s: cannot be made: %m", path);
    }
    fprintf(file, "version: 1\n");
    write_log(file, set);
    fprintf(file,
            "state_dir: data\nidentity: "
            "publisher\nkeys: keys\n"
            "trust: trust\nproof: %s\n%sservices:\n  " BENCH_SERVICE
            ":\n    roles: [%s]\n    parallel: %d\n"
            "    deadline: 10m\n    grace: 2s\n    executor: {kind: %s%s%s%s%s%s}\n",
            set->proof ? "required" : "off", set->of_runs ? chains : "",
            set->of_runs ? "owner, reviewer, arbiter" : BENCH_ROLE, parallel,
            bench_kind_word(set->kind), set->kind == BENCH_child ? ", command: [\"" : "",
            set->kind == BENCH_child ? self : "",
            set->kind == BENCH_child ? "\", bench, do-turns, \"" : "",
            set->kind == BENCH_child ? set->dir : "", set->kind == BENCH_child ? "\"]" : "");
    if (fclose(file) != 0) {
        return baton_fail(err, BATON_E_unexpected, "%s: cannot be written: %m", path);
    }
    return config_load(path, NULL, 0, &set->config, NULL, err);
}

baton_code bench_set_up(struct bench_set *set, const char *parent, int parallel,
                        struct baton_error *err)
{
    struct keys_plan plan = {NULL, 0};
    baton_code rc;

    snprintf(set->dir, sizeof(set->dir), "%.400s/" BENCH_FOLDER "XXXXXX", parent);
    if (mkdtemp(set->dir) == NULL) {
        rc = baton_fail(err, BATON_E_invalid_request,
                        "%s: no folder can be made there: %m; choose another --dir", parent);
        set->dir[0] = '\0';
        return rc;
    }
    if (!set->keep) {
        bench_clean_begin(set);
    }
    set->page = bench_page_map(set->dir, set->turns);
    if (set->page == NULL) {
        return baton_fail(err, BATON_E_unexpected, "%s/page: cannot be mapped: %m", set->dir);
    }
    rc = write_config(set, parallel, err);
    if (rc == BATON_OK && set->proof) {
        rc = keys_apply_config(set->config, &plan, err);
        keys_plan_done(&plan);
    }
    return rc == BATON_OK ? provision_all(set->config, NULL, err) : rc;
}

/* ---- the backlog ---- */

struct backlog {
    struct identity identity;
    struct log *log;
    struct log_publisher *publisher;
    struct topic_name topic;
    struct turn *turns[PUBLISH_AT_ONCE];
    struct proof_text proofs[PUBLISH_AT_ONCE];
    struct log_header headers[PUBLISH_AT_ONCE];
    struct log_record records[PUBLISH_AT_ONCE];
    char payload[BENCH_PAYLOAD];
};

static baton_code add_turn(struct backlog *backlog, size_t at, int64_t number,
                           struct baton_error *err)
{
    char task[32];
    snprintf(task, sizeof(task), BENCH_TASK "%lld", (long long)number);
    const struct turn_draft draft = {
        .fleet = backlog->identity.fleet,
        .origin = backlog->identity.name,
        .service = BENCH_SERVICE,
        .role = ROLE_owner,
        .task_id = task,
        .run_id = "",
        .intent = "work",
        .key = task,
        .parent = "",
        .created_at = wall_now(),
        .summary = task,
        .payload = backlog->payload,
        .payload_len = sizeof(backlog->payload),
    };
    baton_code rc = turn_encode(&draft, &backlog->turns[at], err);
    if (rc == BATON_OK) {
        const struct turn *turn = backlog->turns[at];
        rc = identity_prove(&backlog->identity, PROOF_turn, turn->id.s, &turn->digest,
                            &backlog->proofs[at], err);
        backlog->headers[at] =
            (struct log_header){HEADER_SIG, backlog->proofs[at].s, strlen(backlog->proofs[at].s)};
        backlog->records[at] = (struct log_record){
            .topic = backlog->topic.s,
            .partition = LOG_PARTITION_BY_KEY,
            .key = turn->id.s,
            .key_len = strlen(turn->id.s),
            .value = turn->bytes,
            .value_len = turn->len,
            .headers = &backlog->headers[at],
            .n_headers = backlog->headers[at].value_len > 0 ? 1 : 0,
        };
    }
    return rc;
}

static baton_code publish_some(struct backlog *backlog, int64_t from, size_t count,
                               struct baton_error *err)
{
    baton_code rc = BATON_OK;
    size_t made = 0;
    while (rc == BATON_OK && made < count) {
        if ((rc = add_turn(backlog, made, from + (int64_t)made, err)) == BATON_OK) {
            made++;
        }
    }
    if (rc == BATON_OK) {
        rc = log_publish(backlog->publisher, backlog->records, count, PUBLISH_TIMEOUT_MS, err);
    }
    for (size_t i = 0; i < made; i++) {
        turn_free(backlog->turns[i]);
    }
    return rc;
}

static void backlog_close(struct backlog *backlog)
{
    if (backlog == NULL) {
        return;
    }
    if (backlog->publisher != NULL) {
        log_publisher_close(backlog->publisher);
    }
    log_close(backlog->log);
    identity_close(&backlog->identity);
    free(backlog);
}

static baton_code backlog_open(const struct bench_set *set, struct backlog **ret_backlog,
                               struct baton_error *err)
{
    struct backlog *backlog = calloc(1, sizeof(*backlog));
    if (backlog == NULL) {
        return baton_fail(err, BATON_E_no_memory, "out of memory");
    }
    memset(backlog->payload, 'x', sizeof(backlog->payload));
    backlog->topic = topic_name(TOPIC_handoff, set->config->prefix.s, BENCH_SERVICE);
    baton_code rc = identity_open(set->config, &backlog->identity, err);
    if (rc == BATON_OK && (rc = log_open(set->config, &backlog->log, err)) == BATON_OK) {
        rc = log_publisher_open(backlog->log, &backlog->publisher, err);
    }
    if (rc != BATON_OK) {
        backlog_close(backlog);
        return rc;
    }
    *ret_backlog = backlog;
    return BATON_OK;
}

baton_code bench_publish_backlog(const struct bench_set *set, int64_t from, int64_t turns,
                                 struct baton_error *err)
{
    struct backlog *backlog = NULL;
    baton_code rc = backlog_open(set, &backlog, err);
    for (int64_t at = 0; rc == BATON_OK && at < turns; at += PUBLISH_AT_ONCE) {
        size_t count = turns - at < PUBLISH_AT_ONCE ? (size_t)(turns - at) : PUBLISH_AT_ONCE;
        rc = publish_some(backlog, from + at, count, err);
    }
    backlog_close(backlog);
    return rc;
}

/* Turns until one falls into the right place: published, when it does. */
static baton_code publish_fitting(struct backlog *backlog, int32_t all, int64_t from,
                                  const int32_t *partitions, size_t count, int64_t *ret_number,
                                  struct baton_error *err)
{
    for (int64_t number = from; number < from + BENCH_PLACES; number++) {
        baton_code rc = add_turn(backlog, 0, number, err);
        if (rc != BATON_OK) {
            return rc;
        }
        const struct log_record *record = &backlog->records[0];
        const int32_t partition = log_partition_of(record->key, record->key_len, all);
        bool fits = false;
        for (size_t i = 0; i < count; i++) {
            fits = fits || partitions[i] == partition;
        }
        if (fits) {
            rc = log_publish(backlog->publisher, backlog->records, 1, PUBLISH_TIMEOUT_MS, err);
            *ret_number = number;
        }
        turn_free(backlog->turns[0]);
        if (fits) {
            return rc;
        }
    }
    return baton_fail(err, BATON_E_unexpected, "no turn falls into the worker's partitions");
}

baton_code bench_publish_into(const struct bench_set *set, int64_t from, const int32_t *partitions,
                              size_t count, int64_t *ret_number, struct baton_error *err)
{
    struct backlog *backlog = NULL;
    baton_code rc = backlog_open(set, &backlog, err);
    if (rc == BATON_OK) {
        rc = publish_fitting(backlog, set->config->partitions, from, partitions, count, ret_number,
                             err);
    }
    backlog_close(backlog);
    return rc;
}

/* ---- the disk ---- */

int64_t bench_sync_ns(const char *parent)
{
    char path[600];
    char page[4096] = "";
    int64_t took[SYNCS];
    size_t n = 0;
    snprintf(path, sizeof(path), "%.400s/baton-bench-sync-XXXXXX", parent);
    int fd = mkstemp(path);
    if (fd < 0) {
        return 0;
    }
    unlink(path);
    for (; n < SYNCS; n++) {
        int64_t begin = mono_ns();
        if (write(fd, page, sizeof(page)) != (ssize_t)sizeof(page) || fdatasync(fd) != 0) {
            break;
        }
        took[n] = mono_ns() - begin;
    }
    close(fd);
    return n > 0 ? bench_quantile(took, n, 0.5) : 0;
}
