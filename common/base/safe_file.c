/* Reading and writing keys, trust files and passwords. Called by common/record (keyfile, signer,
 * trust_load, keys), by who has a secret in a file, and by deploy/doctor_keys.c. */
#include "common/base/safe_file.h"

#include "common/base/check.h"
#include "common/base/id.h"
#include "common/base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PATH_TEXT_MAX 4096

static baton_code cannot(const char *verb, const char *path, struct baton_error *err)
{
    if (errno == EACCES || errno == EPERM) { /* trying again would not help */
        return baton_fail(err, BATON_E_key_unsafe,
                          "cannot %s %s: %s; run this as the user whose file it is", verb,
                          text_quote_of(path).s, strerror(errno));
    }
    return baton_fail(err, BATON_E_service_unavailable, "cannot %s %s: %s", verb,
                      text_quote_of(path).s, strerror(errno));
}

static baton_code unsafe(const char *path, const char *what, const char *mend,
                         struct baton_error *err)
{
    return baton_fail(err, BATON_E_key_unsafe, "%s %s; %s", text_quote_of(path).s, what, mend);
}

static bool owner_trusted(const struct stat *st)
{
    return st->st_uid == 0 || st->st_uid == geteuid();
}

static baton_code check_owner_and_mode(const char *path, const struct stat *st, enum safe_kind kind,
                                       struct baton_error *err)
{
    if (!owner_trusted(st)) {
        return unsafe(path, "belongs to another user",
                      "make root or the user who runs this its owner (chown)", err);
    }
    if (kind == SAFE_public) {
        return (st->st_mode & 022) == 0
                   ? BATON_OK
                   : unsafe(path, "can be written by others", "chmod go-w", err);
    }
    bool group_read = (st->st_mode & 040) != 0;
    if ((st->st_mode & 037) != 0 || (group_read && st->st_uid != 0)) {
        return unsafe(path, "holds a secret and is open to others", "chmod 600", err);
    }
    return BATON_OK;
}

baton_code safe_folder_check(const char *path, enum safe_kind kind, struct baton_error *err)
{
    struct stat st;
    if (stat(path, &st) != 0) {
        if (errno == ENOENT || errno == ENOTDIR) {
            return baton_fail(err, BATON_E_bad_config,
                              "there is no folder %s; `baton init` or `baton keys apply` makes it",
                              text_quote_of(path).s);
        }
        return cannot("look at", path, err);
    }
    if (!S_ISDIR(st.st_mode)) {
        return unsafe(path, "is no folder", "name the folder in the configuration", err);
    }
    if (kind == SAFE_secret && (st.st_mode & S_ISVTX) != 0) {
        st.st_mode &= ~(mode_t)022;
    }
    return check_owner_and_mode(path, &st, SAFE_public, err);
}

/* The file is judged before it is opened, since opening a FIFO or device would act; and again once
 * it is open, since it may be another one by then. */
static baton_code open_safe(const char *path, enum safe_kind kind, int *ret_fd,
                            struct baton_error *err)
{
    struct stat st;
    baton_code rc;
    if (stat(path, &st) != 0) {
        if (errno == ENOENT) {
            return baton_fail(err, BATON_E_key_not_found, "there is no file %s",
                              text_quote_of(path).s);
        }
        return cannot("look at", path, err);
    }
    if (!S_ISREG(st.st_mode)) {
        return unsafe(path, "is no regular file", "put the file itself there", err);
    }
    if ((rc = check_owner_and_mode(path, &st, kind, err)) != BATON_OK) {
        return rc;
    }
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0) {
        return cannot("open", path, err);
    }
    if (fstat(fd, &st) != 0) {
        rc = cannot("look at", path, err);
    } else if (!S_ISREG(st.st_mode)) {
        rc = unsafe(path, "is no regular file", "put the file itself there", err);
    } else {
        rc = check_owner_and_mode(path, &st, kind, err);
    }
    if (rc != BATON_OK) {
        close(fd);
        return rc;
    }
    *ret_fd = fd;
    return BATON_OK;
}

baton_code safe_read(const char *path, enum safe_kind kind, size_t max, char *ret_bytes,
                     size_t *ret_len, struct baton_error *err)
{
    int fd = -1;
    size_t len = 0;
    baton_code rc = open_safe(path, kind, &fd, err);
    if (rc != BATON_OK) {
        return rc;
    }
    while (len <= max) {
        ssize_t n = read(fd, ret_bytes + len, max + 1 - len);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            rc = cannot("read", path, err);
            break;
        }
        if (n == 0) {
            break;
        }
        len += (size_t)n;
    }
    close(fd);
    if (rc == BATON_OK && len > max) {
        rc = baton_fail(err, BATON_E_bad_config, "%s is larger than %zu bytes",
                        text_quote_of(path).s, max);
    }
    if (rc == BATON_OK) {
        ret_bytes[len] = '\0';
        *ret_len = len;
    }
    return rc;
}

static baton_code write_all(int fd, const char *path, const char *bytes, size_t len,
                            struct baton_error *err)
{
    while (len > 0) {
        ssize_t n = write(fd, bytes, len);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            return errno == ENOSPC || errno == EDQUOT
                       ? baton_fail(err, BATON_E_disk_full, "cannot write %s: the disk is full",
                                    text_quote_of(path).s)
                       : cannot("write", path, err);
        }
        bytes += n;
        len -= (size_t)n;
    }
    return fsync(fd) == 0 ? BATON_OK : cannot("sync", path, err);
}

/* The name is durable only once its folder is. */
static baton_code sync_folder_of(const char *path, struct baton_error *err)
{
    char folder[PATH_TEXT_MAX];
    const char *slash = strrchr(path, '/');
    size_t n = slash == NULL ? 0 : (size_t)(slash - path) + 1;
    BATON_PRE(n < sizeof(folder));
    memcpy(folder, path, n);
    memcpy(folder + n, ".", 2);
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        return cannot("open", folder, err);
    }
    baton_code rc = fsync(fd) == 0 ? BATON_OK : cannot("sync", folder, err);
    close(fd);
    return rc;
}

baton_code safe_write(const char *path, const void *bytes, size_t len, unsigned mode, bool replace,
                      struct baton_error *err)
{
    char temp[PATH_TEXT_MAX];
    char suffix[17];
    random_hex(suffix, 16);
    const char *slash = strrchr(path, '/');
    size_t folder_len = slash == NULL ? 0 : (size_t)(slash - path) + 1;
    /* A dot in front: whoever reads the folder meanwhile passes over it. */
    int n = snprintf(temp, sizeof(temp), "%.*s.%s.%s", (int)folder_len, path, path + folder_len,
                     suffix);
    if (n < 0 || (size_t)n >= sizeof(temp)) {
        return baton_fail(err, BATON_E_bad_config, "the path %s is too long",
                          text_quote_of(path).s);
    }
    int fd = open(temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode);
    if (fd < 0) {
        return cannot("create", temp, err);
    }
    baton_code rc = fchmod(fd, mode) == 0 ? BATON_OK : cannot("set the mode of", temp, err);
    if (rc == BATON_OK) {
        rc = write_all(fd, temp, bytes, len, err);
    }
    close(fd);
    if (rc == BATON_OK && !replace) {
        /* A link fails where a rename would replace. */
        if (link(temp, path) != 0) {
            rc = errno == EEXIST ? baton_fail(err, BATON_E_duplicate, "%s is there already",
                                              text_quote_of(path).s)
                                 : cannot("create", path, err);
        }
        unlink(temp);
    } else if (rc == BATON_OK && rename(temp, path) != 0) {
        rc = cannot("replace", path, err);
        unlink(temp);
    } else if (rc != BATON_OK) {
        unlink(temp);
    }
    return rc == BATON_OK ? sync_folder_of(path, err) : rc;
}
