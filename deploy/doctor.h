/*
 * What the checks of `baton doctor` share: how a finding is told. A finding has a level, what is so, why that
 * matters, and what mends it: a command that can be run as it stands, or a hint for what no command can do, or
 * a command with a hint to whom it is for.
 * Included by cmd_doctor.c, which runs the checks, and the doctor_*.c, which hold them. Main thread.
 */
#ifndef BATON_DEPLOY_DOCTOR_H
#define BATON_DEPLOY_DOCTOR_H

#include "common/base/command.h"
#include "common/log/log.h"
#include "deploy/doctor_profiles.h"

/* LEVEL(word): from what is well to what keeps something from working. */
#define LEVELS(LEVEL)                                                                              \
    LEVEL(ok)                                                                                      \
    LEVEL(warn)                                                                                    \
    LEVEL(error)

#define LEVEL_ENUM(word) LEVEL_##word,
enum level { LEVELS(LEVEL_ENUM) LEVEL_COUNT };
#undef LEVEL_ENUM

struct doctor {
    struct command *cmd;
    struct config *config;
    struct log *log; /* NULL: it cannot be opened */
    const char *check;
    const char *why; /* of this check, for findings that name no other reason */
    struct buf out;
    int counts[LEVEL_COUNT];
    baton_code worst; /* code of the first error: what comes later may follow from it */
    struct buf mend; /* why and what mends the findings before, not written yet: once for several */
    struct doctor_probed probed; /* profiles that work */
    struct wall_ms written;      /* the newest date of the log's records; 0: none was read */
};

/* What mends a finding; both "" where nothing need be done, or nobody here can. */
struct mend {
    const char *command; /* for a shell, whole: no placeholders */
    const char *hint;    /* in words */
};
#define MEND_NONE ((struct mend){"", ""})
#define MEND_COMMAND(text) ((struct mend){(text), ""})
#define MEND_HINT(text) ((struct mend){"", (text)})
#define MEND_SAID MEND_HINT("as it says") /* the text has it */
#define MEND_RIGHTS                                                                                \
    ((struct mend){"baton topics plan --acl --format kafka-acls",                                  \
                   "for whoever gives rights on the cluster"})

/* Tells a finding. code: of an error, else BATON_OK. why: NULL for the reason of the check. A command of
 * baton gets the --config and every --set that doctor was given. */
void doctor_found(struct doctor *d, enum level level, baton_code code, struct mend mend,
                  const char *why, const char *format, ...) BATON_PRINTF(6, 7);
/* A text as one word of a command: quoted for a shell where it needs to be. */
void doctor_add_word(struct buf *command, const char *text);
/* Each line of findings of another part as one. */
void doctor_found_lines(struct doctor *d, enum level level, baton_code code, struct mend mend,
                        const struct buf *lines);
/* A doctor_agents_fn: what agents and profiles tell; arg is the struct doctor. */
void doctor_found_agent(void *arg, baton_code code, const char *mend, const char *text);

/* doctor_keys.c: who is who, and may it be believed. */
void doctor_check_trust(struct doctor *d);
void doctor_check_keys(struct doctor *d);
void doctor_check_proof(struct doctor *d);
/* doctor_host.c: this host. */
void doctor_check_versions(struct doctor *d);
void doctor_check_guard(struct doctor *d);
void doctor_check_folders(struct doctor *d);
void doctor_check_disk(struct doctor *d);
void doctor_check_stores(struct doctor *d);
/* Last: it goes by what the other checks have read of the log. */
void doctor_check_clock(struct doctor *d);
/* doctor_executors.c: what executors can get at. */
void doctor_check_executors(struct doctor *d);
/* doctor_log.c: the log itself; opens d->log. */
void doctor_check_log(struct doctor *d);
void doctor_check_topics(struct doctor *d);
/* doctor_rights.c: what the brokers permit. */
void doctor_check_rights(struct doctor *d);
/* doctor_services.c: groups, turns and what they wait for. */
void doctor_check_services(struct doctor *d);
/* What turns of a service wait for because it cannot be written. */
void doctor_found_blocked(struct doctor *d, const char *service, const struct blocked_note *note);

#endif
