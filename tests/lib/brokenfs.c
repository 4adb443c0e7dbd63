/*
 * A file system that is not what it seems: preloaded into a program. What lies below the folder REMOTE_FS is
 * on NFS, as statfs says; below FAILING_FS nothing reaches the disk (EIO) while that folder's file `failing`
 * is there. Built and used by test_88_field_store.py.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#define SEEN __attribute__((visibility("default")))

SEEN int statfs(const char *path, struct statfs *ret_fs)
{
    int (*real)(const char *, struct statfs *);
    const char *below = getenv("REMOTE_FS");
    *(void **)&real = dlsym(RTLD_NEXT, "statfs");
    const int rc = real(path, ret_fs);
    if (rc == 0 && below != NULL && strncmp(path, below, strlen(below)) == 0) {
        ret_fs->f_type = 0x6969;
    }
    return rc;
}

static int fails(int fd)
{
    char link[64];
    char flag[4096];
    char path[4096] = "";
    const char *below = getenv("FAILING_FS");
    if (below == NULL) {
        return 0;
    }
    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    snprintf(flag, sizeof(flag), "%s/failing", below);
    return readlink(link, path, sizeof(path) - 1) > 0 && strncmp(path, below, strlen(below)) == 0 &&
           access(flag, F_OK) == 0;
}

#define SYNC(name)                                                                                 \
    SEEN int name(int fd)                                                                          \
    {                                                                                              \
        int (*real)(int);                                                                          \
        *(void **)&real = dlsym(RTLD_NEXT, #name);                                                 \
        if (fails(fd)) {                                                                           \
            errno = EIO;                                                                           \
            return -1;                                                                             \
        }                                                                                          \
        return real(fd);                                                                           \
    }

SYNC(fsync)
SYNC(fdatasync)
