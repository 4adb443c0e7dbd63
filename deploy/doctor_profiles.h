/*
 * What `baton doctor` says of credential profiles that workers keep as refused: which, since when, and how
 * they are cleared. One that a probe of this run found to work is cleared at once, by the same signed
 * record as `baton services clear`, where the configured identity may. Called by cmd_doctor.c.
 */
#ifndef BATON_DEPLOY_DOCTOR_PROFILES_H
#define BATON_DEPLOY_DOCTOR_PROFILES_H

#include "common/log/log.h"
#include "deploy/doctor_agents.h"
#include "topics/service_view.h"

/* Profiles that answered a probe. */
struct doctor_probed {
    struct doctor_worked {
        struct service_id service;
        struct plain_id profile;
    } * list;
    size_t count;
};

/* Keeps one; without memory it is not kept, and is not cleared. */
void doctor_probed_add(struct doctor_probed *probed, const struct service_id *service,
                       const struct plain_id *profile);
void doctor_probed_done(struct doctor_probed *probed);

/* Tells of each refused profile of the service that is seen, and clears those that work. config and log
 * are borrowed for the call. */
void doctor_profiles(struct config *config, struct log *log, const struct service_view *view,
                     const struct doctor_probed *probed, doctor_agents_fn *fn, void *arg);

#endif
