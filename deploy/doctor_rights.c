/*
 * What `baton doctor` says of rights on a Kafka cluster: may what comes from this host write and read the topics,
 * and look at the groups, that the trust folder makes its business? Nothing is written, read or joined for it.
 * What cannot be asked so is not asked: membership of a group, transactional ids, trimming.
 * In: deploy/cmd_doctor.c. Out: topics/acl.h, common/log/log.h (log_may_write, log_may_read)
 */
#include "deploy/doctor.h"

#include "common/base/check.h"
#include "producer/identity.h"
#include "topics/acl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What is asked of one kind of right: how, and what is told if all is well. */
struct question {
    enum acl_resource resource;
    enum acl_operation operation;
    baton_code (*ask)(struct log *log, const char *const *names, size_t count,
                      struct baton_error *ret_errs, struct baton_error *err);
    const char *held;
};

struct wanted {
    struct topic_name *names;
    const char **why; /* of each, borrowed from the list of rights */
    size_t count;
};

/* Is it one that comes to the brokers from here? Under a login of its own only that one; else whoever has a
 * private key here. */
static bool comes_from_here(const struct config *config, const char *identity,
                            const char *principal)
{
    char path[4200];
    if (config->kafka.sasl_username[0] != '\0') {
        return strcmp(principal, config->kafka.sasl_username) == 0;
    }
    snprintf(path, sizeof(path), "%s/%s.pem", config->keys, principal);
    return strcmp(principal, identity) == 0 || access(path, R_OK) == 0;
}

static void want(struct wanted *wanted, const struct acl *right, const struct topic_name *name)
{
    const size_t len = strlen(right->name.s);
    if (right->prefixed ? strncmp(name->s, right->name.s, len) != 0
                        : strcmp(name->s, right->name.s) != 0) {
        return;
    }
    for (size_t i = 0; i < wanted->count; i++) {
        if (strcmp(wanted->names[i].s, name->s) == 0) {
            return;
        }
    }
    wanted->names[wanted->count] = *name;
    wanted->why[wanted->count++] = right->why;
}

/* Who is a member of a group, or looks at it, may describe it: Read has Describe in it. */
static baton_code may_look(struct log *log, const char *const *groups, size_t count,
                           struct baton_error *ret_errs, struct baton_error *err)
{
    (void)err;
    for (size_t i = 0; i < count; i++) {
        struct log_group_member *members = NULL;
        size_t n = 0;
        if (log_group_members(log, groups[i], &members, &n, &ret_errs[i]) == BATON_OK) {
            ret_errs[i] = (struct baton_error){BATON_OK, ""};
        }
        free(members);
    }
    return BATON_OK;
}

#define ANY_OPERATION ACL_OPERATION_COUNT

static const struct question questions[] = {
    {ACL_RESOURCE_topic, ACL_OPERATION_Write, log_may_write,
     "topics that are written from here may be"},
    {ACL_RESOURCE_topic, ACL_OPERATION_Read, log_may_read, "topics that are read from here may be"},
    {ACL_RESOURCE_group, ANY_OPERATION, may_look, "groups may be looked at from here"},
};

/* Groups of the configuration that a right is about. */
static void want_groups(const struct config *config, const struct acl *right, struct wanted *wanted)
{
    const struct topic_name coordinators = group_of_coordinators(config->prefix.s);
    for (size_t i = 0; i < config->n_services; i++) {
        const struct topic_name name =
            group_of_workers(config->prefix.s, config->services[i].name.s);
        want(wanted, right, &name);
    }
    want(wanted, right, &coordinators);
}

/* Topics of the configuration that a right is about. */
static void want_topics(const struct config *config, const struct acl *right, struct wanted *wanted)
{
    for (int kind = 0; kind < TOPIC_COUNT; kind++) {
        const bool of_service = topic_kind_of_service((enum topic_kind)kind);
        for (size_t i = 0; i < (of_service ? config->n_services : 1); i++) {
            const struct topic_name name =
                topic_name((enum topic_kind)kind, config->prefix.s,
                           of_service ? config->services[i].name.s : NULL);
            want(wanted, right, &name);
        }
    }
}

static void tell(struct doctor *d, const struct question *question, const struct wanted *wanted,
                 const struct baton_error *errs)
{
    size_t held = 0;
    size_t missing = 0;
    char rest[64] = "";
    for (size_t i = 0; i < wanted->count; i++) {
        char why[200];
        snprintf(why, sizeof(why), "it is needed for this: %s", wanted->why[i]);
        if (errs[i].code == BATON_E_not_permitted) {
            doctor_found(d, LEVEL_error, errs[i].code, MEND_RIGHTS, why, "%s", errs[i].text);
        } else if (errs[i].code != BATON_OK && errs[i].code != BATON_E_topic_missing) {
            doctor_found(d, LEVEL_warn, BATON_OK, MEND_HINT("try again"), why,
                         "it is not known yet: %s", errs[i].text);
        }
        held += errs[i].code == BATON_OK;
        missing += errs[i].code == BATON_E_topic_missing;
    }
    if (missing > 0) { /* told with the topics; a right to what is not there cannot be asked for */
        snprintf(rest, sizeof(rest), "; %zu %s missing", missing, missing == 1 ? "is" : "are");
    }
    if (held > 0 || missing > 0) {
        doctor_found(d, LEVEL_ok, BATON_OK, MEND_NONE, NULL, "%zu of %zu %s%s", held, wanted->count,
                     question->held, rest);
    }
}

static void ask(struct doctor *d, const struct question *question, const struct wanted *wanted)
{
    struct baton_error err = {BATON_OK, ""};
    struct baton_error *errs = calloc(wanted->count, sizeof(*errs));
    const char **names = calloc(wanted->count, sizeof(*names));
    for (size_t i = 0; names != NULL && i < wanted->count; i++) {
        names[i] = wanted->names[i].s;
    }
    if (errs == NULL || names == NULL) {
        doctor_found(d, LEVEL_error, BATON_E_no_memory, MEND_NONE, NULL,
                     "no memory for the rights");
    } else if (question->ask(d->log, names, wanted->count, errs, &err) != BATON_OK) {
        doctor_found(d, LEVEL_error, err.code, MEND_SAID, NULL, "%s", err.text);
    } else {
        tell(d, question, wanted, errs);
    }
    free(errs);
    free(names);
}

/* Rights of that kind, of whoever comes from here. */
static void check(struct doctor *d, const struct question *question, const struct acl_list *list,
                  const char *identity)
{
    const size_t most = (d->config->n_services + 1) * TOPIC_COUNT;
    struct wanted wanted = {calloc(most, sizeof(*wanted.names)), calloc(most, sizeof(*wanted.why)),
                            0};
    for (size_t i = 0; wanted.names != NULL && wanted.why != NULL && i < list->count; i++) {
        const struct acl *right = &list->rights[i];
        if (right->resource != question->resource ||
            (right->operation != question->operation && question->operation != ANY_OPERATION) ||
            !comes_from_here(d->config, identity, right->principal)) {
            continue;
        }
        if (right->resource == ACL_RESOURCE_group) {
            want_groups(d->config, right, &wanted);
        } else {
            want_topics(d->config, right, &wanted);
        }
    }
    if (wanted.count > 0) {
        ask(d, question, &wanted);
    }
    free(wanted.names);
    free(wanted.why);
}

void doctor_check_rights(struct doctor *d)
{
    char identity[ID_MAX + 1] = "";
    struct trust *trust = NULL;
    struct acl_list list = {0};
    struct baton_error err = {BATON_OK, ""};
    if (d->log != NULL && d->config->log == LOG_KIND_kafka &&
        trust_load(d->config->trust, &trust, NULL, &err) == BATON_OK &&
        acl_of_trust(trust, d->config->prefix.s, &list, &err) == BATON_OK) {
        (void)identity_name(d->config, identity, &err); /* without one: the keys alone */
        for (size_t i = 0; i < COUNT_OF(questions); i++) {
            check(d, &questions[i], &list, identity);
        }
    }
    acl_list_done(&list);
    trust_free(trust);
}
