/* Writing into the folders of keys and trust. Called by keys_plan.c and keys_make.c. */
#include "common/record/keys_write.h"

#include "common/base/check.h"
#include "common/base/safe_file.h"
#include "common/base/text.h"
#include "common/record/keyfile.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define REQUEST_WORD(word) #word,
static const char *const request_words[] = {REQUEST_KINDS(REQUEST_WORD)};
#undef REQUEST_WORD

baton_code keys_folder_make(const char *path, unsigned mode, struct baton_error *err)
{
    if (mkdir(path, mode) == 0) {
        /* The mode as said, whatever the umask is. */
        if (chmod(path, mode) == 0) {
            return BATON_OK;
        }
    } else if (errno == EEXIST) {
        return BATON_OK;
    }
    return baton_fail(err, BATON_E_service_unavailable, "cannot make the folder %s: %s",
                      text_quote_of(path).s, strerror(errno));
}

baton_code keys_path(const char *dir, const char *name, const char *ending,
                     char ret_path[KEYS_PATH_MAX], struct baton_error *err)
{
    int n = snprintf(ret_path, KEYS_PATH_MAX, "%s/%s%s", dir, name, ending);
    if (n < 0 || n >= KEYS_PATH_MAX) {
        return baton_fail(err, BATON_E_bad_config, "the path of the folder %s is too long",
                          text_quote_of(dir).s);
    }
    return BATON_OK;
}

bool keys_path_exists(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0;
}

baton_code keys_write_fleet(const char *trust, const char *fleet, struct baton_error *err)
{
    char path[KEYS_PATH_MAX];
    char text[128];
    baton_code rc = keys_path(trust, TRUST_FLEET_FILE, "", path, err);
    if (rc != BATON_OK) {
        return rc;
    }
    int n = snprintf(text, sizeof(text), "version: 1\nfleet: %s\n", fleet);
    return safe_write(path, text, (size_t)n, 0644, false, err);
}

void keys_roles_text(role_set roles, struct buf *out)
{
    bool first = true;
    for (int r = 0; r < ROLE_COUNT; r++) {
        if ((roles & ROLE_BIT(r)) != 0) {
            buf_printf(out, "%s%s", first ? "" : ", ", role_word((enum role)r));
            first = false;
        }
    }
}

/* A name as YAML: quoted unless it begins with a letter, since `*` and `-` mean something there. */
static void add_name(struct buf *out, const char *name)
{
    bool plain = name[0] >= 'a' && name[0] <= 'z';
    buf_printf(out, plain ? "%s" : "'%s'", name);
}

static void add_grants(struct buf *out, const char *right, const struct grant *grants, size_t count)
{
    if (count == 0) {
        return;
    }
    buf_printf(out, "%s:\n", right);
    for (size_t i = 0; i < count; i++) {
        buf_add_text(out, "  ");
        add_name(out, grants[i].service.s);
        buf_add_text(out, ": [");
        keys_roles_text(grants[i].roles, out);
        buf_add_text(out, "]\n");
    }
}

static void rights_text(const struct trust_principal *who, struct buf *out)
{
    buf_printf(out, "kind: %s\n", principal_kind_word(who->kind));
    if (who->serve != 0) {
        buf_add_text(out, "serve: [");
        keys_roles_text(who->serve, out);
        buf_add_text(out, "]\n");
    }
    add_grants(out, "pass", who->pass, who->n_pass);
    add_grants(out, "create", who->create, who->n_create);
    if (who->n_operate > 0) {
        buf_add_text(out, "operate: [");
        for (size_t i = 0; i < who->n_operate; i++) {
            buf_add_text(out, i == 0 ? "" : ", ");
            add_name(out, who->operate[i].s);
        }
        buf_add_text(out, "]\n");
    }
    if (who->requests != 0) {
        bool first = true;
        buf_add_text(out, "request: [");
        for (size_t i = 0; i < COUNT_OF(request_words); i++) {
            if ((who->requests & 1u << i) != 0) {
                buf_printf(out, "%s%s", first ? "" : ", ", request_words[i]);
                first = false;
            }
        }
        buf_add_text(out, "]\n");
    }
    if (who->coordinate) {
        buf_add_text(out, "coordinate: true\n");
    }
}

baton_code keys_write_rights(const char *trust, const struct trust_principal *who,
                             struct baton_error *err)
{
    char path[KEYS_PATH_MAX];
    struct buf text = BUF_INIT;
    baton_code rc = keys_path(trust, who->name.s, ".yaml", path, err);
    if (rc == BATON_OK) {
        rights_text(who, &text);
        rc = buf_ok(&text) ? safe_write(path, text.data, text.len, 0644, true, err)
                           : baton_fail(err, BATON_E_no_memory, "no memory for a trust file");
    }
    buf_done(&text);
    return rc;
}

baton_code keys_write_public(const char *trust, const char *name, struct evp_pkey_st *pair,
                             struct key_id *ret_id, char *ret_path, size_t path_size,
                             struct baton_error *err)
{
    char path[KEYS_PATH_MAX];
    char ending[32];
    struct key_id id;
    if (!keyfile_id(pair, &id)) {
        return baton_fail(err, BATON_E_no_memory, "no memory for a key");
    }
    snprintf(ending, sizeof(ending), ".%s.pem", id.s);
    baton_code rc = keys_path(trust, name, ending, path, err);
    if (rc == BATON_OK) {
        rc = keyfile_write_public(path, pair, err);
    }
    if (rc == BATON_OK) {
        *ret_id = id;
        if (ret_path != NULL) {
            size_t n = strnlen(path, path_size - 1);
            memcpy(ret_path, path, n);
            ret_path[n] = '\0';
        }
    }
    return rc;
}

bool keys_grant_add(struct grant **grants, size_t *count, const char *service, role_set roles)
{
    for (size_t i = 0; i < *count; i++) {
        if (strcmp((*grants)[i].service.s, service) == 0) {
            (*grants)[i].roles |= roles;
            return true;
        }
    }
    struct grant *more = realloc(*grants, (*count + 1) * sizeof(more[0]));
    if (more == NULL) {
        return false;
    }
    *grants = more;
    more[(*count)++] = (struct grant){service_id_of(service), roles};
    return true;
}

bool keys_rights_copy(const struct trust_principal *from, struct trust_principal *ret_to)
{
    struct trust_principal to = *from;
    to.create = calloc(from->n_create + 1, sizeof(to.create[0]));
    to.pass = calloc(from->n_pass + 1, sizeof(to.pass[0]));
    to.operate = calloc(from->n_operate + 1, sizeof(to.operate[0]));
    if (to.create == NULL || to.pass == NULL || to.operate == NULL) {
        trust_principal_done(&to);
        return false;
    }
    for (size_t i = 0; i < from->n_create; i++) {
        to.create[i] = from->create[i];
    }
    for (size_t i = 0; i < from->n_pass; i++) {
        to.pass[i] = from->pass[i];
    }
    for (size_t i = 0; i < from->n_operate; i++) {
        to.operate[i] = from->operate[i];
    }
    *ret_to = to;
    return true;
}
