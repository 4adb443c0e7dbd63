/*
 * Scratch directories: HOME and TMPDIR of one attempt, child or hook, 0700, gone afterwards.
 *
 * They lie in <folder>/<service>.<worker>/. Only one pool has that one (its worker holds the store's
 * lock); a coordinator's is <folder>/coordinator.<id>/. Shared ones, for another uid, are 0770 (who has the group of <folder>, if that hands its group
 * down, else the worker's) in two folders 0711, and <folder> is no store's and no log's.
 *
 * In: worker/executor (pool, launch), worker/start.c, producer/hook, deploy/doctor_executors.c.  Out: the file
 * system. Thread: its owner's.
 */
#ifndef BATON_PROCESS_SCRATCH_H
#define BATON_PROCESS_SCRATCH_H

#include "baton/code.h"

#include <stdbool.h>
#include <sys/types.h>

/* <folder> of shared ones: an executor that a prefix makes another user's has to get through to its directory, and
 * the folders of stores and log are closed to everybody, so it lies beside them. The caller frees it; NULL: no
 * memory. */
char *scratch_apart(const char *state_dir);
/* Makes <folder> and that of a pool in it; what stands there already is for scratch_remove_step. shared:
 * another uid must get through (a prefix changes it). The caller frees *ret_folder. BATON_E_bad_config:
 * it cannot be made, or is somebody else's. */
baton_code scratch_open(const char *folder, const char *service, const char *worker, bool shared,
                        char **ret_folder, struct baton_error *err);
/* Sets the mode of a directory that is shared; one that hands its group down goes on to do so. */
bool scratch_share(const char *path, mode_t mode);
/* A new directory <folder>/<name>.<6 random characters>; the caller frees it. */
baton_code scratch_new(const char *folder, const char *name, bool shared, char **ret_path,
                       struct baton_error *err);
/*
 * Removes up to max entries below path, then path itself. True when nothing is left to do: it is
 * gone, or cannot be removed. Links are removed, never followed. Call it again otherwise: an
 * agent's scratch may hold a hundred thousand files, and the thread has other work.
 */
bool scratch_remove_step(const char *path, int max);
/* Paths of what an earlier boot left in the folder, ended by NULL; the caller frees all. NULL: no
 * memory. */
char **scratch_left(const char *folder);

#endif
