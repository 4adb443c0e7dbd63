/*
 * Plans and applies topics. Called by cmd_topics, cmd_init and cmd_doctor (deploy) and tests.
 */
#include "topics/provision.h"

#include "common/base/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MENDED_MS 5000
#define LOOK_US 50000

#define PROVISION_WORD(word, text) #word,
#define PROVISION_TEXT(word, text) text,
static const char *const words[] = {PROVISIONS(PROVISION_WORD)};
static const char *const texts[] = {PROVISIONS(PROVISION_TEXT)};
#undef PROVISION_WORD
#undef PROVISION_TEXT

const char *provision_word(enum provision what)
{
    BATON_PRE((unsigned)what < PROVISION_COUNT);
    return words[what];
}

const char *provision_text(enum provision what)
{
    BATON_PRE((unsigned)what < PROVISION_COUNT);
    return texts[what];
}

static struct provision_step *add_step(struct provision_plan *plan, size_t *cap)
{
    if (plan->count == *cap) {
        size_t more = *cap == 0 ? 32 : *cap * 2;
        struct provision_step *steps = realloc(plan->steps, more * sizeof(*steps));
        if (steps == NULL) {
            return NULL;
        }
        plan->steps = steps;
        *cap = more;
    }
    struct provision_step *step = &plan->steps[plan->count++];
    memset(step, 0, sizeof(*step));
    return step;
}

static baton_code no_memory(struct baton_error *err)
{
    return baton_fail(err, BATON_E_no_memory, "no memory for the plan of topics");
}

/* What is there against what is wanted. */
static baton_code judge(struct log *log, struct provision_step *step, struct baton_error *err)
{
    const struct log_topic *wanted = &step->wanted;
    struct log_topic found = {0};
    struct baton_error ignored = {BATON_OK, ""}; /* topic_missing is an answer here */
    baton_code rc = log_topic_describe(log, step->name.s, &found, &ignored);
    if (rc == BATON_E_topic_missing) {
        step->what = PROVISION_create;
        return BATON_OK;
    }
    if (rc == BATON_E_not_permitted) { /* a principal of the fleet sees its own topics only */
        step->what = PROVISION_hidden;
        snprintf(step->text, sizeof(step->text), "%s", ignored.text);
        return BATON_OK;
    }
    if (rc != BATON_OK) {
        return baton_fail(err, rc, "%s", ignored.text);
    }
    step->found = found;
    if (!topic_check(wanted, &found, step->text, sizeof(step->text))) {
        step->what = found.partitions != wanted->partitions ? PROVISION_refuse : PROVISION_mend;
    } else if (wanted->copies > 0 && found.copies != wanted->copies) {
        step->what = PROVISION_note;
        snprintf(step->text, sizeof(step->text),
                 "topic %s has %d copies, the configuration says %d; the log's own tools move "
                 "copies (kafka-reassign-partitions), this program does not",
                 step->name.s, (int)found.copies, (int)wanted->copies);
    } else {
        step->what = PROVISION_keep;
    }
    return BATON_OK;
}

static baton_code add_wanted(const struct config *config, struct log *log, enum topic_kind kind,
                             const char *service, struct provision_plan *plan, size_t *cap,
                             struct baton_error *err)
{
    struct provision_step *step = add_step(plan, cap);
    if (step == NULL) {
        return no_memory(err);
    }
    step->kind = kind;
    step->name = topic_name(kind, config->prefix.s, service);
    if (service != NULL) {
        step->service = service_id_of(service);
    }
    topic_settings(kind, step->name.s, config->partitions, &step->wanted);
    step->wanted.copies = config->log == LOG_KIND_kafka ? config->replication : 0;
    return judge(log, step, err);
}

/* The service of a topic's name, if it is one of ours of that kind. */
static bool service_of_name(const char *name, const char *prefix, enum topic_kind kind,
                            struct service_id *ret_service)
{
    struct topic_name begin = topic_name_begin(kind, prefix);
    size_t before = strlen(begin.s);
    size_t len = strlen(name);
    if (len <= before || strncmp(name, begin.s, before) != 0 ||
        !service_id_valid(name + before, len - before)) {
        return false;
    }
    *ret_service = service_id_of(name + before);
    return true;
}

static baton_code add_surplus_of(const struct config *config, struct log *log, const char *begin,
                                 struct provision_plan *plan, size_t *cap, struct baton_error *err)
{
    char **names = NULL;
    size_t count = 0;
    baton_code rc = log_topics_list(log, begin, &names, &count, err);
    for (size_t i = 0; rc == BATON_OK && i < count; i++) {
        for (int kind = 0; rc == BATON_OK && kind < TOPIC_COUNT; kind++) {
            struct service_id service;
            if (!topic_kind_of_service((enum topic_kind)kind) ||
                !service_of_name(names[i], config->prefix.s, (enum topic_kind)kind, &service) ||
                config_service_find(config, service.s) != NULL) {
                continue;
            }
            struct provision_step *step = add_step(plan, cap);
            if (step == NULL) {
                rc = no_memory(err);
                break;
            }
            step->kind = (enum topic_kind)kind;
            step->name = topic_name(step->kind, config->prefix.s, service.s);
            step->service = service;
            step->what = PROVISION_surplus;
            rc = log_topic_describe(log, step->name.s, &step->found, err);
            step->wanted = step->found;
        }
    }
    log_names_free(names, count);
    return rc;
}

static baton_code add_surplus(const struct config *config, struct log *log,
                              struct provision_plan *plan, size_t *cap, struct baton_error *err)
{
    char begin[ID_MAX + 8];
    size_t len = strlen(config->prefix.s);
    BATON_PRE(len <= ID_MAX);
    memcpy(begin, config->prefix.s, len);
    memcpy(begin + len, ".", 2);
    baton_code rc = add_surplus_of(config, log, begin, plan, cap, err);
    if (rc == BATON_OK) {
        memcpy(begin, "dlq.", 4);
        memcpy(begin + 4, config->prefix.s, len);
        memcpy(begin + 4 + len, ".", 2);
        rc = add_surplus_of(config, log, begin, plan, cap, err);
    }
    return rc;
}

baton_code provision_plan_make(const struct config *config, struct log *log,
                               struct provision_plan *ret_plan, struct baton_error *err)
{
    struct provision_plan plan = {0};
    size_t cap = 0;
    baton_code rc = BATON_OK;
    for (size_t s = 0; rc == BATON_OK && s < config->n_services; s++) {
        for (int kind = 0; rc == BATON_OK && kind < TOPIC_COUNT; kind++) {
            if (topic_kind_of_service((enum topic_kind)kind)) {
                rc = add_wanted(config, log, (enum topic_kind)kind, config->services[s].name.s,
                                &plan, &cap, err);
            }
        }
    }
    for (int kind = 0; rc == BATON_OK && kind < TOPIC_COUNT; kind++) {
        if (!topic_kind_of_service((enum topic_kind)kind)) {
            rc = add_wanted(config, log, (enum topic_kind)kind, NULL, &plan, &cap, err);
        }
    }
    if (rc == BATON_OK) {
        rc = add_surplus(config, log, &plan, &cap, err);
    }
    if (rc != BATON_OK) {
        provision_plan_done(&plan);
        return rc;
    }
    for (size_t i = 0; i < plan.count; i++) {
        struct provision_step *step = &plan.steps[i];
        step->wanted.name = step->found.name = step->name.s; /* the array has moved meanwhile */
        plan.n_changes += step->what == PROVISION_create || step->what == PROVISION_mend ? 1 : 0;
        plan.n_refused += step->what == PROVISION_refuse ? 1 : 0;
        plan.n_hidden += step->what == PROVISION_hidden ? 1 : 0;
    }
    *ret_plan = plan;
    return BATON_OK;
}

/* A broker shows what was changed a moment later: who starts right behind us is to find it so. */
static void await_mended(struct log *log, const struct provision_plan *plan)
{
    const struct mono_ms end = {mono_now().v + MENDED_MS};
    for (size_t i = 0; i < plan->count; i++) {
        const struct provision_step *step = &plan->steps[i];
        struct log_topic found;
        char text[640];
        while (step->what == PROVISION_mend && mono_now().v < end.v &&
               (log_topic_describe(log, step->name.s, &found, NULL) != BATON_OK ||
                !topic_check(&step->wanted, &found, text, sizeof(text)))) {
            usleep(LOOK_US);
        }
    }
}

baton_code provision_apply(struct log *log, const struct provision_plan *plan,
                           struct baton_error *err)
{
    const struct provision_step *refused = NULL;
    const struct provision_step *hidden = NULL;
    struct log_topic *create = calloc(plan->count + 1, sizeof(*create));
    size_t n_create = 0;
    baton_code rc = BATON_OK;
    if (create == NULL) {
        return no_memory(err);
    }
    for (size_t i = 0; rc == BATON_OK && i < plan->count; i++) {
        const struct provision_step *step = &plan->steps[i];
        switch (step->what) {
        case PROVISION_create:
            create[n_create++] = step->wanted;
            break;
        case PROVISION_mend:
            rc = log_topic_alter(log, &step->wanted, err);
            break;
        case PROVISION_refuse:
            refused = refused == NULL ? step : refused;
            break;
        case PROVISION_hidden:
            hidden = hidden == NULL ? step : hidden;
            break;
        case PROVISION_keep:
        case PROVISION_note:
        case PROVISION_surplus:
        case PROVISION_COUNT:
            break;
        }
    }
    if (rc == BATON_OK && n_create > 0) {
        rc = log_topics_create(log, create, n_create, err);
    }
    free(create);
    if (rc == BATON_OK) {
        await_mended(log, plan);
    }
    if (rc == BATON_OK && refused != NULL) {
        return baton_fail(err, BATON_E_topic_missing, "%s", refused->text);
    }
    if (rc == BATON_OK && hidden != NULL) {
        return baton_fail(err, BATON_E_not_permitted, "%s", hidden->text);
    }
    return rc;
}

void provision_plan_done(struct provision_plan *plan)
{
    free(plan->steps);
    memset(plan, 0, sizeof(*plan));
}

baton_code provision_all(const struct config *config, size_t *ret_changes, struct baton_error *err)
{
    struct log *log = NULL;
    struct provision_plan plan = {0};
    baton_code rc;
    if ((rc = log_create(config, err)) == BATON_OK &&
        (rc = log_open(config, &log, err)) == BATON_OK &&
        (rc = provision_plan_make(config, log, &plan, err)) == BATON_OK) {
        rc = provision_apply(log, &plan, err);
    }
    if (rc == BATON_OK && ret_changes != NULL) {
        *ret_changes = plan.n_changes;
    }
    provision_plan_done(&plan);
    log_close(log);
    return rc;
}
