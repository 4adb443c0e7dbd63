/* What a loaded trust folder consists of; for trust.c, trust_load.c and trust_rights.c only. */
#ifndef BATON_RECORD_TRUST_DATA_H
#define BATON_RECORD_TRUST_DATA_H

#include "common/base/yaml_tree.h"
#include "common/record/trust.h"

#define TRUST_ANYWHERE "*" /* a grant at every service */
#define TRUST_FLEET_FILE "fleet.yaml"
#define TRUST_ENTRIES_MAX 10000 /* files of a folder: thousands of principals */

/* A service, or all of them, and the roles there. */
struct grant {
    struct service_id service; /* "*": every one */
    role_set roles;
};

struct trust_principal {
    struct plain_id name;
    enum principal_kind kind;
    role_set serve;
    struct grant *create;
    size_t n_create;
    struct grant *pass;
    size_t n_pass;
    struct service_id *operate;
    size_t n_operate;
    unsigned requests; /* bit for each of REQUEST_KINDS */
    bool coordinate;
};

struct trust_key {
    struct key_id id;
    struct evp_pkey_st *key;
    struct trust_principal *owner;
    struct plain_id owner_name; /* from the file's name, while it is loaded */
    bool revoked;
    struct wall_ms made_at;
};

struct trust {
    char *dir;
    struct plain_id fleet;
    struct trust_principal *principals; /* by name */
    size_t n_principals;
    struct trust_key *keys; /* by id */
    size_t n_keys;
    struct digest stamp; /* names, times and sizes of the folder's files */
};

/* Reads kind and rights of a principal's file into who, whose name is set. False: no memory. */
bool trust_rights_read(const struct yaml_node *root, struct yaml_findings *findings,
                       struct trust_principal *who);
void trust_principal_done(struct trust_principal *who);

/* Names, times and sizes of what is in the folder now. False: it cannot be listed. */
bool trust_stamp(const char *dir, struct digest *ret_stamp);

#endif
