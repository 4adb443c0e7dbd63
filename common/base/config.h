/*
 * The configuration: one file of YAML, read once, const afterwards.
 *
 * Order: default < file < `--set KEY=VALUE`. Scalars come from one table (tbl/config_keys.h), which
 * also gives `config show`, the documentation and the nearest known key in an error. Every mistake
 * is reported at once, with line and column. Paths are relative to the file and absolute after
 * loading. Secrets never stand in the file: a profile names a file or a variable of the worker's
 * environment.
 *
 * Owner: who loaded it; any thread may read it.
 */
#ifndef BATON_BASE_CONFIG_H
#define BATON_BASE_CONFIG_H

#include "baton/code.h"
#include "common/base/buf.h"
#include "common/base/failure.h"
#include "common/base/id.h"
#include "common/base/role.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum log_kind { LOG_KIND_local, LOG_KIND_kafka };
enum executor_kind {
    EXECUTOR_KIND_exec,
    EXECUTOR_KIND_child,
    EXECUTOR_KIND_agent,
    EXECUTOR_KIND_callback
};
enum cut_off { CUT_OFF_kill, CUT_OFF_keep };
/* What an agent may do to its place; auto: as the role's read_only says. */
enum executor_access {
    EXECUTOR_ACCESS_auto,
    EXECUTOR_ACCESS_read,
    EXECUTOR_ACCESS_write,
    EXECUTOR_ACCESS_full
};

/* Where a value of an executor's environment comes from. */
enum env_source {
    ENV_SOURCE_value, /* written in the configuration: no secret */
    ENV_SOURCE_file,  /* the content of a file, without one trailing newline: a secret */
    ENV_SOURCE_from,  /* a variable of the worker's environment: a secret */
};

struct config_env {
    char *name;
    enum env_source source;
    char *text; /* the value, the absolute path, or the variable's name */
};

struct config_profile {
    struct plain_id name;
    struct config_env *env;
    size_t n_env;
};

/* What a million tokens cost, in millionths of a US dollar. */
struct config_prices {
    bool known;
    int64_t input;
    int64_t cached; /* input from a cache */
    int64_t output;
};

struct config_executor {
    enum executor_kind kind;
    char **command; /* argv; [0] resolved to an absolute path when it names a file; agent: may be
                       empty */
    size_t n_command;
    char **prefix; /* put in front of command: setpriv, bwrap */
    size_t n_prefix;
    char *agent;   /* agent: claude, codex, gemini */
    char *model;   /* NULL: the agent's own */
    char *prompts; /* agent: folder of templates; NULL: the shipped ones */
    char *home;    /* agent: its HOME; NULL: the scratch directory */
    bool resume;   /* agent: go on in the session of the attempt before */
    enum executor_access access;
    struct config_prices prices; /* agent: of its model, where the agent tells no costs */
    struct config_env *env;
    size_t n_env;
};

struct config_service {
    struct service_id name;
    role_set roles;
    int parallel;
    int64_t deadline_ms;  /* for an attempt */
    int64_t heartbeat_ms; /* an attempt must show progress in this time; 0: no bound */
    int64_t grace_ms;     /* of a clean stop; the deadline unless set */
    enum cut_off cut_off;
    struct config_executor executor;
    struct config_profile *profiles; /* at least one: "default" without env unless named */
    size_t n_profiles;
    char *place; /* working directory of attempts; NULL: the scratch directory */
    int line;    /* where it stands in the file */
};

struct config_role {
    struct service_id *chain;
    size_t n_chain;
    bool read_only;
};

struct config_actions {
    enum action list[8];
    size_t count;
};

/* Further librdkafka settings, as they stand in the file. */
struct config_pair {
    char *key;
    char *value;
    char *where; /* `file:line:column`, or the option that it came from */
};

enum config_source { CONFIG_SOURCE_default, CONFIG_SOURCE_file, CONFIG_SOURCE_set };

/* One key as `config show` prints it. */
struct config_setting {
    char *key;
    char *value;
    enum config_source source;
};

struct config {
    char *path; /* absolute path of the file */
    char *dir;

    struct plain_id prefix;
    enum log_kind log;
    char *local_path;
    int32_t partitions; /* of the driver in use */

    char *kafka_brokers; /* comma-separated; NULL if there is no kafka section */
    int replication;     /* 0: auto */
    struct {
        char *security;       /* plaintext, ssl, sasl_plaintext, sasl_ssl */
        char *sasl_mechanism; /* as librdkafka knows it; "": none */
        char *sasl_username;
        char *sasl_password_file; /* held to the rules of a private key: common/base/safe_file */
        char *ca;                 /* PEM; NULL: those of the system */
        char *certificate; /* PEM, with key: who we are to brokers that ask for it; NULL: none */
        char *key;         /* PEM; held to the rules of a private key */
        struct config_pair *client;
        size_t n_client;
    } kafka;
    int64_t session_ms;
    int64_t heartbeat_ms;
    int64_t lease_ms;
    int64_t lease_grace_ms;

    char *state_dir;
    struct plain_id identity;
    char *keys;
    char *trust;
    bool proof_required;

    struct config_role roles[ROLE_COUNT];
    struct config_service *services;
    size_t n_services;

    struct {
        int failures;
        int losses;
        int replays;
        int attempts;
        int64_t max_cost_micros; /* millionths of a US dollar; 0: no bound */
    } budget;
    struct {
        int64_t first_ms;
        double factor;
        int64_t max_ms;
        double jitter;
        int each_service;
        int64_t max_wait_ms;
        int64_t rest_ms;
    } retry;
    struct config_actions on_failure[FAILURE_COUNT];
    struct {
        int after;
        int64_t for_ms;
        int64_t probe_ms;
    } circuit;
    char **workflows;
    size_t n_workflows;
    char *http_listen; /* address:port; NULL: no listener */
    struct {
        char *endpoint;     /* http or https, without user, query or fragment; NULL: no spans */
        char *headers_file; /* NULL: none; held to the rules of a private key */
        char *ca;           /* PEM; NULL: those of the system */
        int64_t timeout_ms; /* of one export */
        int queue;          /* spans that may wait */
    } traces;

    struct config_setting *settings; /* every key with its value and source, in order */
    size_t n_settings;
};

/* Where the configuration is looked for: explicit path, $BATON_CONFIG, ./baton.yaml,
 * /etc/baton/baton.yaml. */
baton_code config_find(const char *explicit_path, char **ret_path, struct baton_error *err);

/*
 * Loads and checks. sets: `KEY=VALUE` with dotted keys of the table. On bad_config every finding is
 * a line `file:line:column: text` in *findings (may be NULL), and the first stands in err.
 */
baton_code config_load(const char *path, const char *const *sets, size_t n_sets,
                       struct config **ret_config, struct buf *findings, struct baton_error *err);
/* The same from memory, for tests and fuzzing; name stands for the path in findings. */
baton_code config_parse(const char *name, const char *text, size_t text_len,
                        const char *const *sets, size_t n_sets, struct config **ret_config,
                        struct buf *findings, struct baton_error *err);
void config_free(struct config *config);

/*
 * What is not wrong but will not work on this host as it is: a command that does not resolve, say.
 * Appends lines, returns how many.
 */
size_t config_warnings(const struct config *config, struct buf *lines);

/* One finding about a pair, for drivers: a line `file:line:column: text` in findings (may be NULL),
 * and in err if it is the first there. */
void config_pair_found(const struct config_pair *pair, struct buf *findings,
                       struct baton_error *err, const char *format, ...) BATON_PRINTF(4, 5);

/* Does an agent program (tbl/agents.h) tell what an attempt has cost? Where not, prices do. */
bool config_agent_tells_costs(const char *agent);

/* The service, or NULL. */
const struct config_service *config_service_find(const struct config *config, const char *name);
/* The same for a name that somebody gave; unknown_service names those that are configured.
 * ret_service may be NULL. */
baton_code config_service_get(const struct config *config, const char *name,
                              const struct config_service **ret_service, struct baton_error *err);

/*
 * Prints every scalar key with value and source (default, file, --set), then services, roles and
 * lists; as text for people, or JSON. Secrets never appear: a file's path and a variable's name do.
 */
void config_show(const struct config *config, bool as_json, struct buf *out);
/* The documentation of every key (name, type, default, range, unit, help), from the same table. */
void config_document(bool json, struct buf *out);

#endif
