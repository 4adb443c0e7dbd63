/*
 * `baton init`: a folder in which publish and worker work at once. Listed by deploy/baton.c.
 *
 * Every file is written only where there is none; no question is asked. Doing it again says what is
 * there and changes nothing.
 */
#include "deploy/verbs.h"

#include "common/base/check.h"
#include "common/base/jsonw.h"
#include "common/base/text.h"
#include "common/log/log.h"
#include "common/record/keys.h"
#include "common/record/trust.h"
#include "deploy/embedded.h"
#include "producer/identity.h"
#include "topics/provision.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define IDENTITY_MARK "@IDENTITY@"
#define NAMELESS "operator" /* where the login name is no id */

/* What was done: printed at the end, or as JSON. */
struct init {
    struct command *cmd;
    char dir[PATH_MAX];
    struct buf made; /* lines */
    struct buf kept;
    size_t n_made;
    struct baton_error err;
};

static void note(struct buf *lines, const char *what)
{
    buf_add_text(lines, what);
    buf_add_char(lines, '\n');
}

static void made(struct init *init, const char *what)
{
    note(&init->made, what);
    init->n_made++;
}

static bool path_of(struct init *init, const char *name, char *ret_path, size_t size)
{
    int n = snprintf(ret_path, size, "%s/%s", init->dir, name);
    if (n < 0 || (size_t)n >= size) {
        baton_fail(&init->err, BATON_E_invalid_request, "the path of %s is too long", name);
        return false;
    }
    return true;
}

/* ---- folders and files ---- */

static baton_code cannot(struct init *init, const char *what, const char *path)
{
    baton_code code = errno == ENOSPC ? BATON_E_disk_full : BATON_E_invalid_request;
    return baton_fail(&init->err, code, "cannot %s %s: %s", what, text_quote_of(path).s,
                      strerror(errno));
}

/* Makes each part of the path that is missing. */
static baton_code make_folder(struct init *init, const char *path, mode_t mode)
{
    char part[PATH_MAX];
    struct stat st;
    snprintf(part, sizeof(part), "%s", path);
    for (char *slash = strchr(part + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdir(part, mode) != 0 && errno != EEXIST) {
            return cannot(init, "make the folder", part);
        }
        *slash = '/';
    }
    if (mkdir(path, mode) != 0 && errno != EEXIST) {
        return cannot(init, "make the folder", path);
    }
    if (stat(path, &st) != 0 || !S_ISDIR(st.st_mode)) {
        errno = ENOTDIR;
        return cannot(init, "use", path);
    }
    return BATON_OK;
}

static bool write_all(int fd, const void *bytes, size_t len)
{
    const char *at = bytes;
    while (len > 0) {
        ssize_t n = write(fd, at, len);
        if (n < 0 && errno != EINTR) {
            return false;
        }
        at += n > 0 ? n : 0;
        len -= n > 0 ? (size_t)n : 0;
    }
    return true;
}

/* Under another name first, so that the file is there whole or not at all. */
static baton_code make_file(struct init *init, const char *name, const void *bytes, size_t len,
                            mode_t mode)
{
    char path[PATH_MAX];
    char draft[PATH_MAX];
    if (!path_of(init, name, path, sizeof(path) - 8)) {
        return init->err.code;
    }
    if (access(path, F_OK) == 0) {
        note(&init->kept, name);
        return BATON_OK;
    }
    snprintf(draft, sizeof(draft), "%.*s.new", (int)sizeof(path) - 8, path);
    int fd = open(draft, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, mode);
    if (fd < 0) {
        return cannot(init, "write", draft);
    }
    bool written = write_all(fd, bytes, len) && fsync(fd) == 0;
    written = close(fd) == 0 && written;
    /* link, not rename: what somebody else has put there meanwhile stays. */
    bool placed = written && link(draft, path) == 0;
    bool there = written && !placed && errno == EEXIST;
    baton_code rc = placed || there ? BATON_OK : cannot(init, "write", path);
    unlink(draft);
    if (placed) {
        made(init, name);
    } else if (there) {
        note(&init->kept, name);
    }
    return rc;
}

/* ---- the parts ---- */

static baton_code make_configuration(struct init *init)
{
    const struct config none = {.identity = {""}};
    char identity[ID_MAX + 1];
    struct buf text = BUF_INIT;
    const char *template = (const char *)embedded_baton_yaml;
    const char *mark =
        memmem(template, embedded_baton_yaml_len, IDENTITY_MARK, strlen(IDENTITY_MARK));
    BATON_INVARIANT(mark != NULL);
    if (identity_name(&none, identity, NULL) != BATON_OK) {
        snprintf(identity, sizeof(identity), "%s", NAMELESS);
    }
    size_t before = (size_t)(mark - template);
    buf_add(&text, template, before);
    buf_add_text(&text, identity);
    buf_add(&text, mark + strlen(IDENTITY_MARK),
            embedded_baton_yaml_len - before - strlen(IDENTITY_MARK));
    baton_code rc = buf_ok(&text)
                        ? make_file(init, "baton.yaml", text.data, text.len, 0644)
                        : baton_fail(&init->err, BATON_E_no_memory, "no memory for a file");
    buf_done(&text);
    return rc;
}

static baton_code make_files(struct init *init)
{
    char examples[PATH_MAX];
    baton_code rc = make_folder(init, init->dir, 0755);
    if (rc == BATON_OK && realpath(init->dir, examples) != NULL) {
        memcpy(init->dir, examples, strlen(examples) + 1);
    }
    if (rc == BATON_OK && !path_of(init, "examples", examples, sizeof(examples))) {
        rc = init->err.code;
    }
    if (rc != BATON_OK || (rc = make_folder(init, examples, 0755)) != BATON_OK ||
        (rc = make_configuration(init)) != BATON_OK ||
        (rc = make_file(init, ".gitignore", embedded_gitignore, embedded_gitignore_len, 0644)) !=
            BATON_OK) {
        return rc;
    }
    return make_file(init, "examples/review-patch", embedded_review_patch,
                     embedded_review_patch_len, 0755);
}

static baton_code make_keys(struct init *init, const struct config *config)
{
    struct keys_plan plan = {NULL, 0};
    baton_code rc = keys_apply_config(config, &plan, &init->err);
    for (size_t i = 0; rc == BATON_OK && i < plan.count; i++) {
        made(init, plan.steps[i].text);
    }
    if (rc == BATON_OK && plan.count == 0) {
        note(&init->kept, "keys and trust");
    }
    keys_plan_done(&plan);
    return rc;
}

static baton_code make_topics(struct init *init, const struct config *config)
{
    size_t changes = 0;
    char line[80];
    baton_code rc = make_folder(init, config->state_dir, 0700);
    if (rc == BATON_OK) {
        rc = provision_all(config, &changes, &init->err);
    }
    if (rc == BATON_OK && changes > 0) {
        snprintf(line, sizeof(line), "%zu topics", changes);
        made(init, line);
    } else if (rc == BATON_OK) {
        note(&init->kept, "topics");
    }
    return rc;
}

/* ---- what was done ---- */

static void add_array(struct jsonw *w, const char *key, const struct buf *lines)
{
    jsonw_key(w, key);
    jsonw_begin_array(w);
    for (size_t at = 0; at < lines->len;) {
        size_t n =
            (size_t)((char *)memchr(lines->data + at, '\n', lines->len - at) - lines->data) - at;
        jsonw_bytes(w, lines->data + at, n);
        at += n + 1;
    }
    jsonw_end(w);
}

static void print(struct init *init, const struct config *config)
{
    struct command *cmd = init->cmd;
    struct buf out = BUF_INIT;
    if (cmd->json) {
        struct jsonw w = jsonw_to(&out);
        jsonw_begin_object(&w);
        jsonw_key_text(&w, "dir", init->dir);
        jsonw_key_text(&w, "config", config->path);
        jsonw_key_text(&w, "identity", config->identity.s);
        add_array(&w, "made", &init->made);
        add_array(&w, "kept", &init->kept);
        jsonw_end(&w);
        buf_add_char(&out, '\n');
    } else {
        text_add_lines(&out, init->made.data, init->made.len, 0, "made  ");
        text_add_lines(&out, init->kept.data, init->kept.len, 0, "kept  ");
    }
    command_print(cmd, &out);
    buf_done(&out);
    command_note(cmd, "%s is ready. Next, there:", init->dir);
    command_note(
        cmd, "  baton publish --service example --role reviewer --task t-1 --payload FILE.diff");
    command_note(cmd, "  baton worker --service example --drain");
    command_note(cmd, "  baton turns list");
}

static int run(struct command *cmd)
{
    struct init init = {.cmd = cmd, .made = BUF_INIT, .kept = BUF_INIT};
    struct config *config = NULL;
    char path[PATH_MAX];
    int status = 0;
    const char *dir = cmd->n_args > 0 ? cmd->args[0] : ".";
    baton_code rc = BATON_OK;
    if (cmd->config_path != NULL) {
        return command_usage(cmd, "init writes DIR/baton.yaml; --config names another file");
    }
    if (dir[0] == '\0' ||
        snprintf(init.dir, sizeof(init.dir), "%s", dir) >= (int)sizeof(init.dir)) {
        return command_usage(cmd, "the folder's name is empty or too long");
    }
    process_hold_keys();
    if ((rc = make_files(&init)) == BATON_OK && path_of(&init, "baton.yaml", path, sizeof(path))) {
        rc = config_load(path, cmd->sets, cmd->n_sets, &config, NULL, &init.err);
    }
    if (rc == BATON_OK && (rc = make_keys(&init, config)) == BATON_OK) {
        rc = make_topics(&init, config);
    }
    if (rc == BATON_OK) {
        print(&init, config);
    } else {
        status = command_fail(cmd, rc, &init.err);
    }
    config_free(config);
    buf_done(&init.made);
    buf_done(&init.kept);
    return status;
}

const struct baton_command cmd_init = {
    .name = "init",
    .summary = "make a folder in which Baton works at once",
    .usage = "[DIR] [--json]",
    .description = "Writes what one host needs into DIR (default: here): baton.yaml with a service "
                   "`example` for "
                   "every role, its executor, a key for you, one for the coordinator and one for "
                   "each service, the "
                   "trust folder with their rights, the local log with its topics, and a "
                   ".gitignore for what must "
                   "not leave the host.\n\n"
                   "Asks nothing, and never changes a file that is there: doing it again makes "
                   "what is missing.",
    .examples = "baton init\n# in a folder of its own\nbaton init ~/baton\n",
    .files = "baton.yaml  keys/  trust/  data/  examples/  .gitignore\n",
    .args_max = 1,
    .run = run,
};
