/* What the keys commands share when they write into the two folders; for keys_*.c only. */
#ifndef BATON_RECORD_KEYS_WRITE_H
#define BATON_RECORD_KEYS_WRITE_H

#include "common/record/keys.h"
#include "common/record/trust_data.h"

struct evp_pkey_st;

#define KEYS_PATH_MAX 4096

/* Makes a folder that is not there; an existing one is left as it is. */
baton_code keys_folder_make(const char *path, unsigned mode, struct baton_error *err);
/* <dir>/<name><ending>; bad_config if it is too long. */
baton_code keys_path(const char *dir, const char *name, const char *ending,
                     char ret_path[KEYS_PATH_MAX], struct baton_error *err);
bool keys_path_exists(const char *path);
/* Writes trust/fleet.yaml. */
baton_code keys_write_fleet(const char *trust, const char *fleet, struct baton_error *err);
/* Writes trust/NAME.yaml anew from kind and rights. */
baton_code keys_write_rights(const char *trust, const struct trust_principal *who,
                             struct baton_error *err);
/* Writes trust/NAME.<id>.pem; ret_path (may be NULL) gets where. */
baton_code keys_write_public(const char *trust, const char *name, struct evp_pkey_st *pair,
                             struct key_id *ret_id, char *ret_path, size_t path_size,
                             struct baton_error *err);
/* Adds roles at a service to a list of grants. False: no memory. */
bool keys_grant_add(struct grant **grants, size_t *count, const char *service, role_set roles);
/* The names of roles with commas between. */
void keys_roles_text(role_set roles, struct buf *out);
/* A copy of a principal's rights. False: no memory. */
bool keys_rights_copy(const struct trust_principal *from, struct trust_principal *ret_to);

#endif
