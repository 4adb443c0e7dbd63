/*
 * What `baton doctor` says of agent programs: whether each is there, which version, whether a credential is
 * declared and can be read, and (asked for, since it costs a request) whether the provider takes it.
 * Called by cmd_doctor.c.
 */
#ifndef BATON_DEPLOY_DOCTOR_AGENTS_H
#define BATON_DEPLOY_DOCTOR_AGENTS_H

#include "baton/code.h"
#include "common/base/config.h"

/* A finding: code ok and no mend: all is well; code ok and a mend: a warning; else an error. Texts are
 * borrowed for the call. */
typedef void doctor_agents_fn(void *arg, baton_code code, const char *mend, const char *text);

/* A profile of a service answered a probe. */
typedef void doctor_agents_works_fn(void *arg, const struct service_id *service,
                                    const struct plain_id *profile);

/* Looks at every service of kind agent, one after the other. probe: asks each provider with each profile
 * for one short answer; it takes up to a minute for each, and its price. */
void doctor_agents(const struct config *config, bool probe, doctor_agents_fn *fn,
                   doctor_agents_works_fn *works, void *arg);

#endif
