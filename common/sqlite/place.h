/*
 * Where a database may lie: on a disk of this host. On a network file system locks are promises, and the
 * shared memory of a write-ahead log is none. In: common/log/local/file.c, worker/start.c. Any thread.
 */
#ifndef BATON_SQLITE_PLACE_H
#define BATON_SQLITE_PLACE_H

#include <stdbool.h>
#include <stdint.h>

struct place_type {
    char s[80]; /* the magic number as statfs has it, and behind FUSE the mount's type */
};

/* Does the folder lie on a network file system, or behind FUSE on what is not known to be of this host?
 * False, too, for one that cannot be looked at. */
bool place_is_remote(const char *folder, struct place_type *ret_type);

/* The judgement, for tests. mount_type: of what lies behind FUSE, else "". */
bool file_system_is_remote(uint64_t magic, const char *mount_type);

#endif
