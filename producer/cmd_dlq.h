/* The verb `dlq`, for the program's table, and its parts for each other. */
#ifndef BATON_PRODUCER_CMD_DLQ_H
#define BATON_PRODUCER_CMD_DLQ_H

#include "common/base/command.h"
#include "common/base/jsonw.h"
#include "producer/dead.h"
#include "producer/pace.h"

extern const struct baton_command cmd_dlq;

/* cmd_dlq_list.c, cmd_dlq_show.c, cmd_dlq_replay.c, cmd_dlq_discard.c */
extern const struct baton_command cmd_dlq_list;
extern const struct baton_command cmd_dlq_stats;
extern const struct baton_command cmd_dlq_show;
extern const struct baton_command cmd_dlq_export;
extern const struct baton_command cmd_dlq_replay;
extern const struct baton_command cmd_dlq_discard;

#define DLQ_LIST_MAX 10000

/* The options that choose among dead letters, the same for every part. */
#define DLQ_FILTER_OPTIONS                                                                         \
    {.name = "where",                                                                              \
     .letter = 'w',                                                                                \
     .argument = "KEY=VALUE,...",                                                                  \
     .kind = OPTION_multi,                                                                         \
     .help = "Only those of which all of this holds; keys are the names of the options below: "    \
             "service=example,class=auth,newer=1d."},                                              \
        {.name = "service",                                                                        \
         .letter = 's',                                                                            \
         .argument = "S",                                                                          \
         .kind = OPTION_text,                                                                      \
         .help = "Only those of this service; coordinator: requests of runs."},                    \
        {.name = "role",                                                                           \
         .letter = 'r',                                                                            \
         .argument = "R",                                                                          \
         .kind = OPTION_text,                                                                      \
         .help = "Only those of this role."},                                                      \
        {.name = "class",                                                                          \
         .argument = "CLASS",                                                                      \
         .kind = OPTION_text,                                                                      \
         .help = "Only parked turns whose last attempt failed so, for example auth."},             \
        {.name = "code",                                                                           \
         .argument = "CODE",                                                                       \
         .kind = OPTION_text,                                                                      \
         .help = "Only those with this code, for example unknown_key."},                           \
        {.name = "run", .argument = "ID", .kind = OPTION_text, .help = "Only those of this run."}, \
        {.name = "origin",                                                                         \
         .argument = "NAME",                                                                       \
         .kind = OPTION_text,                                                                      \
         .help = "Only parked turns that this principal published."},                              \
        {.name = "older",                                                                          \
         .argument = "DURATION",                                                                   \
         .kind = OPTION_duration,                                                                  \
         .help = "Only those that have been dead for longer, for example 1h."},                    \
    {                                                                                              \
        .name = "newer", .argument = "DURATION", .kind = OPTION_duration,                          \
        .help = "Only those that died within this time, for example 15m."                          \
    }
#define DLQ_FILTER_USAGE                                                                           \
    "[--where KEY=VALUE,...] [--service S] [--role R] [--class CLASS] [--code CODE] [--run ID] "   \
    "[--origin NAME] [--older DURATION] [--newer DURATION]"

/* What they ask for. Its texts are the command's, or lie in words: it is not copied. */
struct dlq_filter {
    struct dead_filter dead;
    char words[8][128]; /* values of --where, one for each key */
};

/* cmd_dlq_where.c. Was any of them given? */
bool dlq_filtered(const struct command *cmd);
/* invalid_request: a key or word that is none, or one said twice. */
baton_code dlq_filter_of(struct command *cmd, struct dlq_filter *ret_filter,
                         struct baton_error *err);
/* Reads those that the options choose, for a command that changes nothing. */
baton_code dlq_read(struct command *cmd, dead_fn *fn, void *arg, struct baton_error *err);

/* ---- many at once: cmd_dlq_choose.c ---- */

struct dlq_choice {
    char id[LETTER_ID_MAX];
    char service[SERVICE_MAX + 1];
    char run_id[ID_MAX + 1];
    char role[16];
    int attempt;
    bool parked;
};

struct dlq_chosen {
    struct dlq_choice *list; /* parked turns first; the caller's free */
    size_t count;
    size_t max;
    size_t left_out;
    struct command *hold; /* what failed again in the same way after a replay is said there, and not
                             chosen; NULL: it is chosen, too */
    size_t held;
};

/* Those that the options choose, at most --limit. */
baton_code dlq_choose(struct command *cmd, struct session *session, struct dlq_chosen *chosen,
                      struct baton_error *err);
/* At the end: what was held, left out, or not done because somebody interrupted. */
void dlq_tell_rest(struct command *cmd, const struct dlq_chosen *chosen, const struct pace *pace);
/* What became of one that was not replayed; note may be NULL. */
void dlq_said(struct command *cmd, const char *id, const char *service, const char *status,
              const char *note);

/* NULL for "": what is not known is null in JSON and a dash in a table. */
const char *dlq_or_null(const char *text);
/* What is said of a dead letter in JSON, by `list` and `export` alike: members of the object that is open. */
void dlq_members(struct jsonw *w, const struct dead *dead);

#endif
