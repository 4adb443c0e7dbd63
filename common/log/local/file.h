/*
 * The file of the local log: where it may lie and what must be in it. Called by open.c.
 *
 * Any thread; a db belongs to its thread.
 */
#ifndef BATON_COMMON_LOG_LOCAL_FILE_H
#define BATON_COMMON_LOG_LOCAL_FILE_H

#include "common/sqlite/db.h"

#define FILE_APPLICATION_ID 0x42744c31 /* "BtL1" */
#define LOCAL_DAMAGED                                                                              \
    "the log is damaged: stop what uses it and put a copy of it back; without one move it away, "  \
    "and `baton topics apply` makes an empty one"

/* Folder of path: there, ours, closed to others, of this host. Codes: service_unavailable (nothing
 * there), bad_config. */
baton_code file_check_folder_of(const char *path, struct baton_error *err);
/* The same, and the file with what SQLite keeps beside it. */
baton_code file_check_place(const char *path, struct baton_error *err);

/* No log and nothing else: to be initialised. */
baton_code file_is_empty(struct db *db, bool *ret_empty, struct baton_error *err);
/* The version that this program writes. */
int file_version_now(void);
/* Version of a file of ours; store_failed if it is foreign or newer. */
baton_code file_version(struct db *db, int64_t *ret_version, struct baton_error *err);
/* Runs the migrations above version, in the caller's transaction. */
baton_code file_migrate(struct db *db, int64_t version, struct baton_error *err);
/* Compares sqlite_schema with what schema.sql gives; store_failed names the first difference. */
baton_code file_check_schema(struct db *db, struct baton_error *err);

#endif
