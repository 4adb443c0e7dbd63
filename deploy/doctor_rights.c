/*
 * What `baton doctor` says of rights on a Kafka cluster: may what comes from this host write the topics that the
 * trust folder makes its business? Nothing is written for it.
 * In: deploy/cmd_doctor.c. Out: topics/acl.h, common/log/log.h (log_may_write)
 */
#include "deploy/doctor.h"

#include "producer/identity.h"
#include "topics/acl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

static void tell(struct doctor *d, const struct wanted *wanted, const struct baton_error *errs)
{
    size_t held = 0;
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
    }
    doctor_found(d, LEVEL_ok, BATON_OK, MEND_NONE, NULL,
                 "%zu of %zu topics that are written from here may be", held, wanted->count);
}

static void ask(struct doctor *d, const struct wanted *wanted)
{
    struct baton_error err = {BATON_OK, ""};
    struct baton_error *errs = calloc(wanted->count, sizeof(*errs));
    const char **topics = calloc(wanted->count, sizeof(*topics));
    for (size_t i = 0; topics != NULL && i < wanted->count; i++) {
        topics[i] = wanted->names[i].s;
    }
    if (errs == NULL || topics == NULL) {
        doctor_found(d, LEVEL_error, BATON_E_no_memory, MEND_NONE, NULL,
                     "no memory for the rights");
    } else if (log_may_write(d->log, topics, wanted->count, errs, &err) != BATON_OK) {
        doctor_found(d, LEVEL_error, err.code, MEND_SAID, NULL, "%s", err.text);
    } else {
        tell(d, wanted, errs);
    }
    free(errs);
    free(topics);
}

void doctor_check_rights(struct doctor *d)
{
    char identity[ID_MAX + 1] = "";
    const size_t most = (d->config->n_services + 1) * TOPIC_COUNT;
    struct trust *trust = NULL;
    struct acl_list list = {0};
    struct wanted wanted = {calloc(most, sizeof(*wanted.names)), calloc(most, sizeof(*wanted.why)),
                            0};
    struct baton_error err = {BATON_OK, ""};
    if (d->log != NULL && d->config->log == LOG_KIND_kafka && wanted.names != NULL &&
        wanted.why != NULL && trust_load(d->config->trust, &trust, NULL, &err) == BATON_OK &&
        acl_of_trust(trust, d->config->prefix.s, &list, &err) == BATON_OK) {
        (void)identity_name(d->config, identity, &err); /* without one: the keys alone */
        for (size_t i = 0; i < list.count; i++) {
            const struct acl *right = &list.rights[i];
            if (right->resource == ACL_RESOURCE_topic && right->operation == ACL_OPERATION_Write &&
                comes_from_here(d->config, identity, right->principal)) {
                want_topics(d->config, right, &wanted);
            }
        }
        if (wanted.count > 0) {
            ask(d, &wanted);
        }
    }
    acl_list_done(&list);
    trust_free(trust);
    free(wanted.names);
    free(wanted.why);
}
