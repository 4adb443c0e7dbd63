/*
 * What `baton doctor` says of the log and its topics.
 * In: deploy/cmd_doctor.c. Out: common/log/log.h, topics/provision.h
 */
#include "deploy/doctor.h"

#include "topics/provision.h"

void doctor_check_log(struct doctor *d)
{
    struct baton_error err = {BATON_OK, ""};
    bool kafka = d->config->log == LOG_KIND_kafka;
    baton_code rc = log_open(d->config, &d->log, &err);
    if (rc != BATON_OK) {
        d->log =
            NULL; /* the brokers' own text says what to do: the network, or user and password */
        doctor_found(d, LEVEL_error, rc,
                     rc == BATON_E_service_unavailable && !kafka
                         ? MEND_COMMAND("baton topics apply")
                         : MEND_SAID,
                     NULL, "%s", err.text);
    } else if (kafka) {
        const bool sasl = d->config->kafka.sasl_username[0] != '\0';
        doctor_found(d, LEVEL_ok, BATON_OK, MEND_NONE, NULL, "kafka at %s by %s%s%s, cluster %s",
                     d->config->kafka_brokers, d->config->kafka.security, sasl ? " as " : "",
                     d->config->kafka.sasl_username, log_cluster(d->log));
    } else {
        doctor_found(d, LEVEL_ok, BATON_OK, MEND_NONE, NULL, "local, %s", log_cluster(d->log));
    }
}

#define WHY_MISSING "what must be written there cannot be: its turns wait, and nothing is lost"

static void found_topic(struct doctor *d, const struct provision_step *step)
{
    switch (step->what) {
    case PROVISION_create:
        doctor_found(d, LEVEL_error, BATON_E_topic_missing, MEND_COMMAND("baton topics apply"),
                     WHY_MISSING, "topic %s is missing", step->name.s);
        break;
    case PROVISION_mend:
        doctor_found(d, LEVEL_error, BATON_E_topic_missing, MEND_COMMAND("baton topics apply"),
                     NULL, "%s", step->text);
        break;
    case PROVISION_note:
        doctor_found(d, LEVEL_warn, BATON_OK, MEND_SAID,
                     "what the disks of its brokers lose is lost", "%s", step->text);
        break;
    case PROVISION_refuse:
        doctor_found(d, LEVEL_error, BATON_E_topic_missing, MEND_SAID, NULL, "%s", step->text);
        break;
    case PROVISION_hidden:
    case PROVISION_keep:
    case PROVISION_surplus:
    case PROVISION_COUNT:
        break;
    }
}

void doctor_check_topics(struct doctor *d)
{
    struct provision_plan plan = {0};
    struct baton_error err = {BATON_OK, ""};
    size_t kept = 0;
    size_t single = 0;
    if (d->log == NULL) {
        return;
    }
    baton_code rc = provision_plan_make(d->config, d->log, &plan, &err);
    if (rc != BATON_OK) {
        doctor_found(d, LEVEL_error, rc, MEND_SAID, NULL, "%s", err.text);
        return;
    }
    for (size_t i = 0; i < plan.count; i++) {
        found_topic(d, &plan.steps[i]);
        kept += plan.steps[i].what == PROVISION_keep ? 1 : 0;
        single += plan.steps[i].what == PROVISION_keep && plan.steps[i].found.copies == 1 ? 1 : 0;
    }
    if (plan.n_changes == 0 && plan.n_refused == 0 && plan.n_hidden == 0) {
        doctor_found(d, LEVEL_ok, BATON_OK, MEND_NONE, NULL, "%zu topics are as they should be",
                     kept);
    } else if (plan.n_hidden > 0) { /* ordinary where each service has its own rights */
        doctor_found(d, kept > 0 ? LEVEL_ok : LEVEL_warn, BATON_OK,
                     kept > 0 ? MEND_NONE : MEND_RIGHTS, "this principal can do nothing here",
                     "%zu topics are as they should be; %zu may not be looked at by this principal",
                     kept, plan.n_hidden);
    }
    if (single > 0 && d->config->log == LOG_KIND_kafka) {
        doctor_found(d, LEVEL_warn, BATON_OK,
                     MEND_HINT("for more than a trial: three brokers, and topics that are made on "
                               "them"),
                     "what that broker's disk loses is lost", "%zu topics have one copy each",
                     single);
    }
    provision_plan_done(&plan);
}
