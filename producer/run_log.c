/* Reads the run log for people. In: cmd_runs.c, cmd_runs_ask.c  Out: topics/scan.c, common/log/log.h */
#include "producer/run_log.h"

#include "common/base/check.h"
#include "common/base/text.h"
#include "topics/catalogue.h"
#include "topics/scan.h"

#include <stdlib.h>
#include <string.h>

#define FIND_TRIES 3

struct reading {
    run_fn *fn;
    void *arg;
};

static bool read_one(void *arg, const struct log_record *record)
{
    const struct reading *reading = arg;
    struct run *run = NULL;
    bool more = true;
    if (record->key_len == 0 || ((const char *)record->key)[0] == '~' || record->value == NULL) {
        return true;
    }
    if (run_parse(record->value, record->value_len, &run, NULL) == BATON_OK) {
        more = reading->fn(reading->arg, run);
    }
    run_free(run);
    return more;
}

baton_code run_log_each(struct log *log, const struct config *config, run_fn *fn, void *arg,
                        struct baton_error *err)
{
    const struct topic_name topic = topic_name(TOPIC_runs, config->prefix.s, NULL);
    struct reading reading = {fn, arg};
    int32_t partitions = 0;
    bool stopped = false;
    baton_code rc = scan_partitions(log, topic.s, &partitions, err);
    for (int32_t p = 0; rc == BATON_OK && !stopped && p < partitions; p++) {
        rc = scan_newest(log, topic.s, p, read_one, &reading, &stopped, err);
    }
    return rc;
}

struct finding {
    const char *word;
    size_t len;
    size_t n;
    struct run *run;
    bool failed;
};

static bool find_one(void *arg, const struct run *run)
{
    struct finding *finding = arg;
    const bool whole = strcmp(run->id.s, finding->word) == 0;
    if (!whole && strncmp(run->id.s, finding->word, finding->len) != 0) {
        return true;
    }
    run_free(finding->run);
    finding->run = NULL;
    finding->n = whole ? 1 : finding->n + 1;
    finding->failed = run_copy(run, &finding->run) != BATON_OK;
    return !whole && !finding->failed;
}

baton_code run_log_find(struct log *log, const struct config *config, const char *word,
                        struct run **ret_run, struct baton_error *err)
{
    struct finding finding = {.word = word, .len = strlen(word)};
    if (!plain_id_valid(word, finding.len) || finding.len < 4) {
        return baton_fail(err, BATON_E_invalid_request,
                          "'%s' is no run: its id, or at least its first 4 characters",
                          text_quote_of(word).s);
    }
    baton_code rc = BATON_OK;
    /* A record that is written anew while the topic is read may be passed over: it lies behind the end
     * then, and no more where it was. */
    for (int tries = 0; rc == BATON_OK && finding.n == 0 && tries < FIND_TRIES; tries++) {
        rc = run_log_each(log, config, find_one, &finding, err);
    }
    if (rc == BATON_OK && finding.failed) {
        rc = baton_fail(err, BATON_E_no_memory, "no memory for a run");
    } else if (rc == BATON_OK && finding.n == 0) {
        rc = baton_fail(err, BATON_E_run_not_found,
                        "no run %s is known; `baton runs list` shows those that are", word);
    } else if (rc == BATON_OK && finding.n > 1) {
        rc = baton_fail(err, BATON_E_run_ambiguous, "%zu runs begin with %s; give more of the id",
                        finding.n, word);
    }
    if (rc != BATON_OK) {
        run_free(finding.run);
        return rc;
    }
    *ret_run = finding.run;
    return BATON_OK;
}

enum run_still run_log_still(struct log *log, const struct config *config, int64_t timeout_ms)
{
    const struct topic_name group = group_of_coordinators(config->prefix.s);
    struct log_group_member *members = NULL;
    size_t count = 0;
    if (log_group_members_within(log, group.s, timeout_ms, &members, &count, NULL) != BATON_OK) {
        return RUN_STILL_unseen;
    }
    free(members);
    return count == 0 ? RUN_STILL_yes : RUN_STILL_no;
}
