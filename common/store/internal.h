/* What the files of the store share; nobody else includes it. */
#ifndef BATON_COMMON_STORE_INTERNAL_H
#define BATON_COMMON_STORE_INTERNAL_H

#include "common/sqlite/db.h"
#include "common/store/store.h"
#include "common/store/queries.h" /* made from sql/queries.sql */

#define STORE_APPLICATION_ID 0x42746e53 /* "BtnS" */
#define STORE_VERSION 1
#define STORE_DAMAGED                                                                              \
    "the store is damaged: stop its worker and move the store's folder away, and it is made from " \
    "the log again"

struct store {
    struct db db;
    char path[4096];
    int lock_fd;
    struct boot_id boot;
    struct boot_id previous;
    bool looking; /* between store_look and store_look_end */
};

/* The file's version; refuses files of other programs and newer ones. */
baton_code store_version_check(struct db *db, int64_t *ret_version, struct baton_error *err);
/* Brings the file to the newest version and compares its schema with the expected text. */
baton_code store_migrate(struct db *db, struct baton_error *err);
baton_code store_schema_check(struct db *db, struct baton_error *err);

#endif
