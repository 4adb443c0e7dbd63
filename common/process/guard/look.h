/*
 * A fingerprint of a directory's whole tree, so that a change is seen: of each entry the name, kind,
 * owner, mode, size, inode, times of change, and where a link points. No content is read: whatever
 * changes a file's content changes its ctime, which nobody but the clock's owner can set.
 *
 * git's index (also that of a submodule or another work tree) is left out, and times of directories: looking at a tree with git refreshes the index,
 * which changes nothing that anybody has written.
 */
#ifndef BATON_PROCESS_GUARD_LOOK_H
#define BATON_PROCESS_GUARD_LOOK_H

#include <stdbool.h>
#include <stdint.h>

struct look {
    uint64_t sums[2]; /* over all entries, whatever their order */
    uint64_t entries;
};

/* Looks at the working directory. stop is asked once for each directory; true ends it. False: it was
 * ended, or memory was out, and there is no fingerprint. What cannot be entered counts as it looks from
 * outside. */
bool look_at_tree(struct look *ret_look, bool (*stop)(void));
bool look_same(const struct look *a, const struct look *b);

#endif
