/*
 * Progress files. In: worker/round.c, worker/start.c, producer/cmd_turns_watch.c
 * Out: common/base/safe_file.h
 */
#include "topics/progress.h"

#include "common/base/jsonw.h"
#include "common/base/safe_file.h"
#include "common/record/json.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PATH_SIZE 4400
#define BYTES_MAX (6 * PROGRESS_TEXT_MAX + 1024) /* each byte of the text escaped, and the rest */

static bool path_of(const char *dir, const char *name, char path[PATH_SIZE])
{
    return snprintf(path, PATH_SIZE, "%s/" PROGRESS_FOLDER "%s%s", dir, name[0] != '\0' ? "/" : "",
                    name) < PATH_SIZE;
}

void progress_clear(const char *dir)
{
    char path[PATH_SIZE];
    if (!path_of(dir, "", path) || (mkdir(path, 0700) != 0 && errno != EEXIST)) {
        return;
    }
    DIR *folder = opendir(path);
    for (struct dirent *entry; folder != NULL && (entry = readdir(folder)) != NULL;) {
        (void)unlinkat(dirfd(folder), entry->d_name, 0); /* "." and ".." stay by themselves */
    }
    if (folder != NULL) {
        closedir(folder);
    }
}

static void encode(const struct progress *progress, struct buf *value)
{
    struct jsonw w = jsonw_to(value);
    jsonw_begin_object(&w);
    jsonw_key_int(&w, "attempt", progress->attempt);
    jsonw_key_text(&w, "service", progress->service.s);
    jsonw_key_text(&w, "worker", progress->worker.s);
    jsonw_key_text(&w, "at", wall_text(progress->at).s);
    jsonw_key_plain(&w, "text", progress->text, strlen(progress->text));
    jsonw_end(&w);
}

/* Not synced: who reads it does so while its writer lives. */
void progress_write(const char *dir, const char *turn_id, const struct progress *progress)
{
    char path[PATH_SIZE];
    char draft[PATH_SIZE];
    struct buf value = BUF_INIT;
    encode(progress, &value);
    if (!buf_ok(&value) || !path_of(dir, turn_id, path) || !path_of(dir, "new", draft)) {
        buf_done(&value);
        return;
    }
    int fd = open(draft, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    bool written = fd >= 0 && write(fd, value.data, value.len) == (ssize_t)value.len;
    if (fd >= 0) {
        close(fd);
    }
    if (!written || rename(draft, path) != 0) {
        (void)unlink(draft);
    }
    buf_done(&value);
}

void progress_remove(const char *dir, const char *turn_id)
{
    char path[PATH_SIZE];
    if (path_of(dir, turn_id, path)) {
        (void)unlink(path);
    }
}

/* ---- reading ---- */

static bool decode(const char *bytes, size_t len, struct progress *ret_progress)
{
    struct progress progress = {0};
    struct json_doc *doc = NULL;
    size_t n;
    if (json_parse(bytes, len, BYTES_MAX, 2, &doc, NULL) != BATON_OK) {
        return false;
    }
    const struct json_value *root = json_root(doc);
    const struct json_value *attempt =
        json_kind(root) == JSON_object ? json_member(root, "attempt") : NULL;
    bool read = attempt != NULL && json_kind(attempt) == JSON_int && json_int(attempt) > 0 &&
                json_int(attempt) <= INT32_MAX;
    if (read) {
        progress.attempt = (int)json_int(attempt);
        const char *text = json_member_text(root, "service", &n);
        read = service_id_valid(text, n);
        progress.service = service_id_of(read ? text : "");
        text = json_member_text(root, "worker", &n);
        read = read && plain_id_valid(text, n);
        progress.worker = plain_id_of(read ? text : "");
        text = json_member_text(root, "at", &n);
        read = read && wall_parse(text, n, &progress.at);
        text = json_member_text(root, "text", &n);
        read = read && n <= PROGRESS_TEXT_MAX;
        memcpy(progress.text, text, read ? n : 0);
    }
    json_free(doc);
    if (read) {
        *ret_progress = progress;
    }
    return read;
}

/* Of one worker; true if it is newer than what is there. */
static bool read_one(const char *dir, const char *turn_id, bool any, struct progress *progress)
{
    static char bytes[BYTES_MAX + 1]; /* commands have one thread */
    char path[PATH_SIZE];
    struct progress found;
    size_t len = 0;
    if (!path_of(dir, turn_id, path) ||
        safe_read(path, SAFE_secret, BYTES_MAX, bytes, &len, NULL) != BATON_OK ||
        !decode(bytes, len, &found) || (any && found.at.v <= progress->at.v)) {
        return false;
    }
    *progress = found;
    return true;
}

bool progress_read(const struct config *config, const char *turn_id, struct progress *ret_progress)
{
    bool any = false;
    for (size_t i = 0; i < config->n_services; i++) {
        char folder[PATH_SIZE];
        char dir[PATH_SIZE];
        if (snprintf(folder, sizeof(folder), "%s/%s", config->state_dir,
                     config->services[i].name.s) >= (int)sizeof(folder)) {
            continue;
        }
        DIR *workers = opendir(folder);
        for (struct dirent *entry; workers != NULL && (entry = readdir(workers)) != NULL;) {
            if (entry->d_name[0] != '.' && snprintf(dir, sizeof(dir), "%.4000s/%s", folder,
                                                    entry->d_name) < (int)sizeof(dir)) {
                any = read_one(dir, turn_id, any, ret_progress) || any;
            }
        }
        if (workers != NULL) {
            closedir(workers);
        }
    }
    return any;
}
