/* The local driver's two doors: called by log.c. Everything else of it is inside (internal.h). */
#ifndef BATON_COMMON_LOG_LOCAL_H
#define BATON_COMMON_LOG_LOCAL_H

#include "common/log/log.h"

/* path: absolute, of the SQLite file. Codes as log_open and log_create. */
baton_code local_log_open(const char *path, struct log **ret_log, struct baton_error *err);
baton_code local_log_create(const char *path, struct baton_error *err);
/* Of SQLite as it runs; *ret_old: older than it was when this was built. */
const char *local_log_version(bool *ret_old);

#endif
