/*
 * Files that decide whom to believe: read only if nobody else can have written (or, for secrets,
 * read) them (RECORD.md section 4). Every refusal is key_unsafe and says how to mend it. Any
 * thread.
 */
#ifndef BATON_BASE_SAFE_FILE_H
#define BATON_BASE_SAFE_FILE_H

#include "baton/code.h"

#include <stdbool.h>
#include <stddef.h>

enum safe_kind {
    SAFE_public, /* root's or mine, writable by nobody else */
    SAFE_secret, /* that, and readable by nobody else; by a group only if root owns it */
};

/*
 * A folder of root's or mine that nobody else can write. For a folder of secrets the sticky bit
 * suffices (mounted secrets have it): others may add names there, but not replace a file, and a
 * file of theirs is refused itself. key_unsafe, bad_config (no folder), service_unavailable (cannot
 * be looked at).
 */
baton_code safe_folder_check(const char *path, enum safe_kind kind, struct baton_error *err);
/*
 * Reads a regular file, following links, of at most max bytes; fills ret_bytes (of max + 1 bytes)
 * and a NUL behind. key_unsafe, key_not_found (no such file), bad_config (too large),
 * service_unavailable (cannot be read).
 */
baton_code safe_read(const char *path, enum safe_kind kind, size_t max, char *ret_bytes,
                     size_t *ret_len, struct baton_error *err);
/*
 * Writes a file whole or not at all: a new file beside it, synced, then renamed over it. With
 * replace false an existing file is left alone: duplicate. Removes what it began on failure.
 */
baton_code safe_write(const char *path, const void *bytes, size_t len, unsigned mode, bool replace,
                      struct baton_error *err);

#endif
