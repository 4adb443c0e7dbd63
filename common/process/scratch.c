/*
 * Makes and removes scratch directories.
 *
 * Removal never recurses: a directory below is moved up beside its parent and emptied there, so
 * that neither depth nor the length of paths matters, and it can stop at any point.
 *
 * In: worker/executor (pool, launch), producer/hook.  Out: the file system.
 */
#include "common/process/scratch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

char *scratch_apart(const char *state_dir)
{
    char *path = NULL;
    size_t len = strlen(state_dir);
    while (len > 1 && state_dir[len - 1] == '/') {
        len--;
    }
    return asprintf(&path, "%.*s-scratch", (int)len, state_dir) < 0 ? NULL : path;
}

bool scratch_share(const char *path, mode_t mode)
{
    struct stat st;
    return stat(path, &st) == 0 && chmod(path, mode | (st.st_mode & S_ISGID)) == 0;
}

static baton_code make_dir(const char *path, mode_t mode, struct baton_error *err)
{
    if (mkdir(path, mode) != 0 && errno != EEXIST) {
        return baton_fail(err, errno == ENOSPC ? BATON_E_disk_full : BATON_E_bad_config,
                          "cannot make the scratch folder %s: %s", path, strerror(errno));
    }
    struct stat st;
    if (lstat(path, &st) != 0 || !S_ISDIR(st.st_mode) || st.st_uid != geteuid()) {
        return baton_fail(err, BATON_E_bad_config,
                          "the scratch folder %s is no folder of this user: remove it", path);
    }
    if ((mode & 0077) != 0) {
        scratch_share(path, mode); /* whatever the umask says, or one of before lets through */
    }
    return BATON_OK;
}

baton_code scratch_open(const char *folder, const char *service, const char *worker, bool shared,
                        char **ret_folder, struct baton_error *err)
{
    mode_t mode = shared ? 0711 : 0700;
    char *own;
    baton_code rc = make_dir(folder, mode, err);
    if (rc != BATON_OK) {
        return rc;
    }
    if (asprintf(&own, "%s/%s.%s", folder, service, worker) < 0) {
        return baton_fail(err, BATON_E_no_memory, "no memory for a path");
    }
    rc = make_dir(own, mode, err);
    if (rc != BATON_OK) {
        free(own);
        return rc;
    }
    *ret_folder = own;
    return BATON_OK;
}

baton_code scratch_new(const char *folder, const char *name, bool shared, char **ret_path,
                       struct baton_error *err)
{
    char *path;
    if (asprintf(&path, "%s/%s.XXXXXX", folder, name) < 0) {
        return baton_fail(err, BATON_E_no_memory, "no memory for a path");
    }
    if (mkdtemp(path) == NULL) {
        int why = errno;
        free(path);
        return baton_fail(err, why == ENOSPC ? BATON_E_disk_full : BATON_E_service_unavailable,
                          "cannot make a scratch directory in %s: %s", folder, strerror(why));
    }
    if (shared) {
        scratch_share(path, 0770); /* for the group that worker and executor share */
    }
    *ret_path = path;
    return BATON_OK;
}

/* Moves a directory inside `dir` up into `top` under a name that is free; false if it cannot be. */
static bool lift_up(int dir, const char *name, int top)
{
    fchmodat(dir, name, 0700, 0); /* a move changes its "..": it must be writable */
    for (unsigned i = 0; i < 1000; i++) {
        char up[32];
        snprintf(up, sizeof(up), "lifted-%u", i);
        if (renameat2(dir, name, top, up, RENAME_NOREPLACE) == 0) {
            return true;
        }
        if (errno != EEXIST) {
            return false;
        }
    }
    return false;
}

static int open_dir(int at, const char *name)
{
    fchmodat(at, name, 0700, 0); /* caches that tools leave behind are often read-only */
    return openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* Empties a directory one level below top: files go, directories move up. Takes fd. */
static bool empty_dir(int fd, int top, int *budget)
{
    DIR *dir = fdopendir(fd);
    bool whole = dir != NULL;
    if (dir == NULL) {
        close(fd);
        return false;
    }
    for (struct dirent *entry; *budget > 0 && (entry = readdir(dir)) != NULL;) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) {
            continue;
        }
        --*budget;
        if (unlinkat(fd, entry->d_name, 0) != 0 && !lift_up(fd, entry->d_name, top)) {
            whole = false;
        }
    }
    closedir(dir);
    return whole;
}

bool scratch_remove_step(const char *path, int max)
{
    int budget = max;
    int top = open_dir(AT_FDCWD, path);
    DIR *dir = top >= 0 ? fdopendir(top) : NULL;
    if (dir == NULL) {
        if (top >= 0) {
            close(top);
        }
        return true;
    }
    bool moved = false;
    for (struct dirent *entry; budget > 0 && (entry = readdir(dir)) != NULL;) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) {
            continue;
        }
        budget--;
        if (unlinkat(top, entry->d_name, 0) == 0) {
            moved = true;
            continue;
        }
        int fd = open_dir(top, entry->d_name);
        if (fd >= 0 && empty_dir(fd, top, &budget)) {
            moved = true;
            unlinkat(top, entry->d_name, AT_REMOVEDIR);
        }
    }
    closedir(dir);
    return rmdir(path) == 0 || errno == ENOENT || !moved;
}

char **scratch_left(const char *folder)
{
    DIR *dir = opendir(folder);
    char **paths = calloc(1, sizeof(*paths));
    size_t n = 0;
    for (struct dirent *entry; dir != NULL && paths != NULL && (entry = readdir(dir)) != NULL;) {
        char **grown = realloc(paths, (n + 2) * sizeof(*paths));
        if (grown == NULL) {
            break;
        }
        paths = grown;
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
            asprintf(&paths[n], "%s/%s", folder, entry->d_name) >= 0) {
            n++;
        }
        paths[n] = NULL;
    }
    if (dir != NULL) {
        closedir(dir);
    }
    return paths;
}
