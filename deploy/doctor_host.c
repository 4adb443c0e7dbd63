/*
 * What `baton doctor` says of this host: versions, guard, folders, disk, stores, clock.
 * In: deploy/cmd_doctor.c. Out: common/store/store.h, common/process/child.h, deploy/stores.h
 */
#include "deploy/doctor.h"

#include "common/base/clock.h"
#include "common/base/quantity.h"
#include "common/base/safe_file.h"
#include "common/process/child.h"
#include "common/store/store.h"
#include "deploy/stores.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/timex.h>
#include <unistd.h>

#define DISK_ENOUGH (256LL * 1024 * 1024)
#define DISK_NONE (16LL * 1024 * 1024)    /* the log cannot even be compacted any more */
#define CLOCK_EARLIEST_MS 1704067200000LL /* 2024-01-01: before this program was written */
#define CLOCK_AHEAD_MS 60000

void doctor_check_versions(struct doctor *d)
{
    char text[256];
    const bool old = log_versions(text, sizeof(text));
    if (old) {
        doctor_found(d, LEVEL_warn, BATON_OK,
                     MEND_HINT("install the libraries that it was built with, or newer ones"), NULL,
                     "baton %s with %s", BATON_VERSION, text);
    } else {
        doctor_found(d, LEVEL_ok, BATON_OK, MEND_NONE, NULL, "baton %s with %s", BATON_VERSION,
                     text);
    }
}

void doctor_check_guard(struct doctor *d)
{
    struct baton_error err = {BATON_OK, ""};
    char *path = NULL;
    baton_code rc = child_guard_find(NULL, &path, &err);
    if (rc != BATON_OK) {
        doctor_found(d, LEVEL_error, rc, MEND_HINT("install baton-guard beside baton"), NULL, "%s",
                     err.text);
    } else {
        doctor_found(d, LEVEL_ok, BATON_OK, MEND_NONE, NULL, "%s", path);
    }
    free(path);
}

void doctor_check_folders(struct doctor *d)
{
    struct stat st;
    if (stat(d->config->state_dir, &st) != 0) {
        doctor_found(d, errno == ENOENT ? LEVEL_warn : LEVEL_error, BATON_E_bad_config,
                     errno == ENOENT ? MEND_HINT("the first worker makes it") : MEND_SAID, NULL,
                     "%s: %s", d->config->state_dir, strerror(errno));
    } else if ((st.st_mode & (S_ISVTX | S_IWOTH)) != 0) { /* as /tmp: not to be closed to others */
        doctor_found(d, LEVEL_warn, BATON_OK,
                     MEND_HINT("set `state_dir` to a folder that nobody else may enter"), NULL,
                     "%s can be written by others (mode %04o)", d->config->state_dir,
                     (unsigned)(st.st_mode & 07777));
    } else if ((st.st_mode & 0077) != 0) {
        struct buf mend = BUF_INIT;
        buf_add_text(&mend, "chmod 700 ");
        doctor_add_word(&mend, d->config->state_dir);
        buf_add_char(&mend, '\0');
        doctor_found(d, LEVEL_warn, BATON_OK, MEND_COMMAND(buf_ok(&mend) ? mend.data : ""), NULL,
                     "%s can be read by others (mode %03o)", d->config->state_dir,
                     (unsigned)(st.st_mode & 0777));
        buf_done(&mend);
    } else {
        doctor_found(d, LEVEL_ok, BATON_OK, MEND_NONE, NULL, "%s is ours alone",
                     d->config->state_dir);
    }
}

static void check_disk_of(struct doctor *d, const char *path)
{
    struct statvfs fs;
    char mend[4200];
    if (statvfs(path, &fs) != 0) {
        return; /* told with the folders */
    }
    long long free_bytes = (long long)fs.f_bavail * (long long)fs.f_frsize;
    enum level level = free_bytes < DISK_NONE     ? LEVEL_error
                       : free_bytes < DISK_ENOUGH ? LEVEL_warn
                                                  : LEVEL_ok;
    snprintf(mend, sizeof(mend), "make room on the disk of %s", path);
    doctor_found(d, level, level == LEVEL_error ? BATON_E_disk_full : BATON_OK,
                 level == LEVEL_ok ? MEND_NONE : MEND_HINT(mend), NULL,
                 "%lld MiB free for %s; %lld are wanted", free_bytes >> 20, path,
                 DISK_ENOUGH >> 20);
}

void doctor_check_disk(struct doctor *d)
{
    struct stat state;
    struct stat log;
    check_disk_of(d, d->config->state_dir);
    if (d->config->log == LOG_KIND_local && stat(d->config->local_path, &log) == 0 &&
        (stat(d->config->state_dir, &state) != 0 || state.st_dev != log.st_dev)) {
        check_disk_of(d, d->config->local_path); /* another disk than the stores' */
    }
}

/* ---- stores ---- */

/* The turn log itself cannot be written: its worker says so in a file. */
static void look_for_blocked(struct doctor *d, const struct store_place *place,
                             const struct store_summary *summary)
{
    static char bytes[BLOCKED_NOTE_BYTES_MAX + 1];
    char path[PATH_MAX];
    struct blocked_note note;
    size_t len = 0;
    const int n = snprintf(path, sizeof(path), "%s/%s", place->dir, BLOCKED_NOTE_FILE);
    if (summary->running && n > 0 && (size_t)n < sizeof(path) &&
        safe_read(path, SAFE_secret, sizeof(bytes) - 1, bytes, &len, NULL) == BATON_OK &&
        blocked_note_parse(bytes, len, &note) && strcmp(note.boot.s, summary->owner.boot) == 0) {
        doctor_found_blocked(d, place->service, &note);
    }
}

static bool on_store(void *arg, const struct store_place *place)
{
    struct doctor *d = arg;
    struct store_summary summary;
    struct buf findings = BUF_INIT;
    struct baton_error err = {BATON_OK, ""};
    const struct mend mend =
        MEND_HINT("stop its worker and move the file away: the log has it all");
    baton_code rc = store_check(place->dir, &summary, &findings, &err);
    if (rc != BATON_OK && findings.len == 0) {
        doctor_found(d, LEVEL_error, rc, mend, NULL, "%s", err.text);
    } else if (findings.len > 0) {
        doctor_found_lines(d, LEVEL_error, BATON_E_store_failed, mend, &findings);
    } else {
        doctor_found(d, LEVEL_ok, BATON_OK, MEND_NONE, NULL, "%s/%s, %s", place->service,
                     place->worker, summary.running ? "in use" : "not in use");
        look_for_blocked(d, place, &summary);
    }
    buf_done(&findings);
    return true;
}

void doctor_check_stores(struct doctor *d)
{
    struct baton_error err = {BATON_OK, ""};
    baton_code rc = stores_each(d->config->state_dir, NULL, NULL, on_store, d, &err);
    if (rc != BATON_OK) {
        doctor_found(d, LEVEL_error, rc, MEND_SAID, NULL, "%s", err.text);
    }
}

/* ---- clock ---- */

/* Does anything keep the kernel's clock by others'? Where that cannot be asked: assumed. */
static bool kept(void)
{
    struct timex now = {.modes = 0};
    return adjtimex(&now) != TIME_ERROR || (now.status & STA_UNSYNC) == 0;
}

void doctor_check_clock(struct doctor *d)
{
    struct stat st;
    const struct wall_ms now = wall_now();
    const struct mend set = MEND_HINT("set the clock, and keep it by NTP");
    if (now.v < CLOCK_EARLIEST_MS) {
        doctor_found(d, LEVEL_error, BATON_E_bad_config, set, NULL,
                     "this host believes that it is %s", wall_text(now).s);
    } else if (d->written.v > now.v + CLOCK_AHEAD_MS) {
        doctor_found(d, LEVEL_warn, BATON_OK, set, NULL,
                     "it is %s here, and the log has a record that is dated %s after that",
                     wall_text(now).s, quantity_age_text(d->written.v - now.v).s);
    } else if (stat(d->config->path, &st) == 0 &&
               (int64_t)st.st_mtime * 1000 > now.v + CLOCK_AHEAD_MS) {
        doctor_found(d, LEVEL_warn, BATON_OK, set, NULL,
                     "it is %s here, and %s was written later than that", wall_text(now).s,
                     d->config->path);
    } else if (d->config->log == LOG_KIND_kafka && !kept()) {
        doctor_found(d, LEVEL_warn, BATON_OK,
                     MEND_HINT("let a time service run on this host: chrony, systemd-timesyncd"),
                     NULL, "%s, kept by no time service", wall_text(now).s);
    } else {
        doctor_found(d, LEVEL_ok, BATON_OK, MEND_NONE, NULL, "%s", wall_text(now).s);
    }
}
