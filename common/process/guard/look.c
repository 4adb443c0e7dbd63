/*
 * Fingerprints of trees. In: main.c. Out: the file system, read only.
 * A list of paths that are still to be entered, the last one first: neither depth nor width is bounded by the stack.
 */
#include "common/process/guard/look.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct paths {
    char **list;
    size_t count;
    size_t cap;
};

static bool paths_add(struct paths *paths, const char *folder, const char *name)
{
    size_t folder_len = strlen(folder);
    size_t name_len = strlen(name);
    char *path = malloc(folder_len + name_len + 2);
    if (paths->count == paths->cap) {
        size_t cap = paths->cap == 0 ? 64 : paths->cap * 2;
        char **grown = realloc(paths->list, cap * sizeof(*grown));
        if (grown == NULL) {
            free(path);
            return false;
        }
        paths->list = grown;
        paths->cap = cap;
    }
    if (path == NULL) {
        return false;
    }
    memcpy(path, folder, folder_len);
    path[folder_len] = '/';
    memcpy(path + folder_len + 1, name, name_len + 1);
    paths->list[paths->count++] = path;
    return true;
}

static void add_bytes(uint64_t hash[2], const void *bytes, size_t len)
{
    const unsigned char *at = bytes;
    for (size_t i = 0; i < len; i++) { /* FNV-1a, twice from different beginnings */
        hash[0] = (hash[0] ^ at[i]) * 1099511628211ULL;
        hash[1] = (hash[1] ^ at[i]) * 1099511628211ULL;
    }
}

/* dir: folder, open. Below .git/modules and .git/worktrees are repositories of submodules and other work
 * trees, in folders of any name and depth; there, a branch may be called index, too. */
static bool is_git_index(int dir, const char *folder, const char *name)
{
    size_t len = strlen(folder);
    if (strcmp(name, "index") != 0) {
        return false;
    }
    if (len >= 5 && strcmp(folder + len - 5, "/.git") == 0) {
        return true;
    }
    return (strstr(folder, "/.git/modules/") != NULL ||
            strstr(folder, "/.git/worktrees/") != NULL) &&
           faccessat(dir, "HEAD", F_OK, AT_SYMLINK_NOFOLLOW) == 0 &&
           (faccessat(dir, "objects", F_OK, AT_SYMLINK_NOFOLLOW) == 0 ||
            faccessat(dir, "commondir", F_OK, AT_SYMLINK_NOFOLLOW) == 0);
}

/* One entry of a folder that is open as dir. */
static void add_entry(struct look *look, int dir, const char *folder, const char *name,
                      bool *ret_is_dir)
{
    uint64_t hash[2] = {14695981039346656037ULL, 0x6c62272e07bb0142ULL};
    struct stat st;
    char target[4096];
    ssize_t target_len = 0;
    *ret_is_dir = false;
    add_bytes(hash, folder, strlen(folder) + 1);
    add_bytes(hash, name, strlen(name) + 1);
    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0) {
        *ret_is_dir = S_ISDIR(st.st_mode);
        const uint64_t always[] = {st.st_mode, st.st_uid, st.st_gid, st.st_ino, st.st_dev};
        const uint64_t files[] = {(uint64_t)st.st_size,         (uint64_t)st.st_mtim.tv_sec,
                                  (uint64_t)st.st_mtim.tv_nsec, (uint64_t)st.st_ctim.tv_sec,
                                  (uint64_t)st.st_ctim.tv_nsec, st.st_nlink};
        if (!is_git_index(dir, folder, name)) {
            add_bytes(hash, always, sizeof(always));
            if (!*ret_is_dir) {
                add_bytes(hash, files, sizeof(files));
            }
        }
        if (S_ISLNK(st.st_mode)) {
            target_len = readlinkat(dir, name, target, sizeof(target));
        }
    }
    add_bytes(hash, target, target_len > 0 ? (size_t)target_len : 0);
    look->sums[0] += hash[0];
    look->sums[1] += hash[1];
    look->entries++;
}

static bool look_into(struct look *look, struct paths *paths, const char *folder)
{
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    bool ok = true;
    if (dir == NULL) {
        if (fd >= 0) {
            close(fd);
        }
        return true;
    }
    for (struct dirent *entry; ok && (entry = readdir(dir)) != NULL;) {
        bool is_dir;
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) {
            continue;
        }
        add_entry(look, fd, folder, entry->d_name, &is_dir);
        ok = !is_dir || paths_add(paths, folder, entry->d_name);
    }
    closedir(dir);
    return ok;
}

bool look_at_tree(struct look *ret_look, bool (*stop)(void))
{
    struct look look = {{0, 0}, 0};
    struct paths paths = {NULL, 0, 0};
    bool is_dir;
    bool ok = look_into(&look, &paths, ".");
    add_entry(&look, AT_FDCWD, "", ".", &is_dir); /* its own mode and owner */
    while (ok && paths.count > 0) {
        char *folder = paths.list[--paths.count];
        ok = !stop() && look_into(&look, &paths, folder);
        free(folder);
    }
    while (paths.count > 0) {
        free(paths.list[--paths.count]);
    }
    free(paths.list);
    *ret_look = look;
    return ok;
}

bool look_same(const struct look *a, const struct look *b)
{
    return a->sums[0] == b->sums[0] && a->sums[1] == b->sums[1] && a->entries == b->entries;
}
