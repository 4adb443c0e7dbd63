/*
 * Reading a trust folder: first whether everything in it is safe, then what it says, all findings
 * at once. Called at start, on SIGHUP, when a key id is unknown, and by the keys commands.
 *
 *   fleet.yaml             {version: 1, fleet: prod}
 *   NAME.yaml              kind and rights of a principal
 *   NAME.<key id>.pem      a public key of it
 *   <key id>.revoked       never trusted
 *
 * Names that begin with a dot are passed over: links of Kubernetes, files being written.
 */
#include "common/base/check.h"
#include "common/base/limits.h"
#include "common/base/safe_file.h"
#include "common/base/text.h"
#include "common/record/keyfile.h"
#include "common/record/proof.h"
#include "common/record/trust_data.h"

#include <dirent.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum entry_kind { ENTRY_fleet, ENTRY_principal, ENTRY_key, ENTRY_revoked, ENTRY_unknown };

struct entry {
    char *name;
    enum entry_kind kind;
    struct plain_id principal; /* principal, key */
    struct key_id id;          /* key, revoked */
};

struct loading {
    struct trust *trust;
    struct entry *entries;
    size_t n_entries;
    struct buf *findings; /* may be NULL */
    size_t n_findings;
    struct baton_error first;
};

/* ---- names ---- */

static bool ends_with(const char *name, const char *ending, size_t *ret_stem_len)
{
    size_t len = strlen(name);
    size_t n = strlen(ending);
    if (len <= n || strcmp(name + len - n, ending) != 0) {
        return false;
    }
    *ret_stem_len = len - n;
    return true;
}

static bool principal_name(const char *text, size_t len, struct plain_id *ret_name)
{
    if (!plain_id_valid(text, len) || (len == 5 && memcmp(text, "fleet", 5) == 0)) {
        return false;
    }
    memset(ret_name, 0, sizeof(*ret_name));
    memcpy(ret_name->s, text, len);
    return true;
}

static void classify(struct entry *entry)
{
    const char *name = entry->name;
    size_t stem = 0;
    entry->kind = ENTRY_unknown;
    if (strcmp(name, TRUST_FLEET_FILE) == 0) {
        entry->kind = ENTRY_fleet;
    } else if (ends_with(name, ".yaml", &stem) && principal_name(name, stem, &entry->principal)) {
        entry->kind = ENTRY_principal;
    } else if (ends_with(name, ".pem", &stem) && stem > 17 && name[stem - 17] == '.' &&
               hex_valid(name + stem - 16, 16, 16) &&
               principal_name(name, stem - 17, &entry->principal)) {
        entry->kind = ENTRY_key;
        memcpy(entry->id.s, name + stem - 16, 16);
    } else if (ends_with(name, ".revoked", &stem) && hex_valid(name, stem, 16)) {
        entry->kind = ENTRY_revoked;
        memcpy(entry->id.s, name, 16);
    }
}

static int visible(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

static baton_code list_entries(struct loading *l, const char *dir, struct baton_error *err)
{
    struct dirent **names = NULL;
    int n = scandir(dir, &names, visible, alphasort);
    if (n < 0) {
        return baton_fail(err, BATON_E_service_unavailable, "cannot list %s: %s",
                          text_quote_of(dir).s, strerror(errno));
    }
    l->entries = calloc((size_t)n + 1, sizeof(l->entries[0]));
    bool ok = l->entries != NULL && n <= TRUST_ENTRIES_MAX;
    for (int i = 0; i < n; i++) {
        if (ok) {
            l->entries[i].name = strdup(names[i]->d_name);
            ok = l->entries[i].name != NULL;
            l->n_entries += ok ? 1 : 0;
        }
        free(names[i]);
    }
    free(names);
    if (n > TRUST_ENTRIES_MAX) {
        return baton_fail(err, BATON_E_bad_config, "%s holds more than %d files",
                          text_quote_of(dir).s, TRUST_ENTRIES_MAX);
    }
    for (size_t i = 0; i < l->n_entries; i++) {
        classify(&l->entries[i]);
    }
    return ok ? BATON_OK : baton_fail(err, BATON_E_no_memory, "no memory for the trust folder");
}

bool trust_stamp(const char *dir, struct digest *ret_stamp)
{
    struct dirent **names = NULL;
    struct buf seen = BUF_INIT;
    int n = scandir(dir, &names, visible, alphasort);
    if (n < 0) {
        return false;
    }
    for (int i = 0; i < n; i++) {
        char path[4096];
        struct stat st;
        int len = snprintf(path, sizeof(path), "%s/%s", dir, names[i]->d_name);
        if (len < 0 || (size_t)len >= sizeof(path) || stat(path, &st) != 0) {
            memset(&st, 0, sizeof(st));
        }
        buf_printf(&seen, "%s/%lld.%09ld/%lld.%09ld/%lld/%llu/%o/%u\n", names[i]->d_name,
                   (long long)st.st_mtim.tv_sec, st.st_mtim.tv_nsec, (long long)st.st_ctim.tv_sec,
                   st.st_ctim.tv_nsec, (long long)st.st_size, (unsigned long long)st.st_ino,
                   (unsigned)st.st_mode, (unsigned)st.st_uid);
        free(names[i]);
    }
    free(names);
    bool ok = buf_ok(&seen);
    if (ok) {
        *ret_stamp = digest_of(seen.data, seen.len);
    }
    buf_done(&seen);
    return ok;
}

/* ---- findings ---- */

BATON_PRINTF(3, 4)
static void found(struct loading *l, const char *name, const char *format, ...)
{
    char text[400];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    if (l->n_findings++ == 0) {
        baton_fail(&l->first, BATON_E_bad_config, "%s/%s: %s", text_quote_of(l->trust->dir).s,
                   text_quote_of(name).s, text);
    }
    if (l->findings != NULL && l->n_findings <= LIMIT_YAML_FINDINGS) {
        buf_printf(l->findings, "%s/%s: %s\n", text_quote_of(l->trust->dir).s,
                   text_quote_of(name).s, text);
    }
}

static bool path_of(const struct loading *l, const char *name, char path[4096])
{
    int n = snprintf(path, 4096, "%s/%s", l->trust->dir, name);
    return n > 0 && n < 4096;
}

/* ---- reading ---- */

/* Reads and parses a file of YAML; *ret_tree NULL: there were findings. */
static baton_code read_yaml(struct loading *l, const char *name, struct yaml_findings *findings,
                            struct yaml_tree **ret_tree, struct baton_error *err)
{
    char path[4096];
    char text[LIMIT_KEY_FILE + 1];
    size_t len;
    if (!path_of(l, name, path)) {
        return baton_fail(err, BATON_E_bad_config, "the path of the trust folder is too long");
    }
    baton_code rc = safe_read(path, SAFE_public, LIMIT_KEY_FILE, text, &len, err);
    if (rc == BATON_OK) {
        rc = yaml_tree_parse(text, len, findings, ret_tree);
        if (rc == BATON_E_no_memory) {
            return baton_fail(err, rc, "no memory for the trust folder");
        }
        rc = BATON_OK;
    }
    return rc;
}

static void end_yaml(struct loading *l, struct yaml_findings *findings, struct yaml_tree *tree)
{
    if (findings->count > 0 && l->n_findings == 0) {
        l->first = findings->first;
    }
    l->n_findings += findings->count;
    yaml_tree_free(tree);
}

static void read_fleet_tree(struct loading *l, struct yaml_findings *f,
                            const struct yaml_node *root)
{
    static const char *const keys[] = {"version", "fleet"};
    if (root->kind != YAML_KIND_map) {
        yaml_found(f, root, "version and fleet are due here");
        return;
    }
    yaml_only_keys(f, root, "the fleet", keys, COUNT_OF(keys));
    const struct yaml_node *version = yaml_member(root, "version");
    const struct yaml_node *fleet = yaml_member(root, "fleet");
    if (version == NULL || version->kind != YAML_KIND_text || strcmp(version->text, "1") != 0) {
        yaml_found(f, version, "version must be 1");
    }
    if (fleet == NULL || fleet->kind != YAML_KIND_text ||
        !plain_id_valid(fleet->text, fleet->text_len)) {
        yaml_found(f, fleet, "fleet must be a name, [a-z0-9._-]{1,64}");
    } else {
        l->trust->fleet = plain_id_of(fleet->text);
    }
}

static baton_code read_fleet(struct loading *l, const struct entry *entry, struct baton_error *err)
{
    char path[4096];
    struct yaml_findings findings;
    struct yaml_tree *tree = NULL;
    path_of(l, entry->name, path);
    yaml_findings_init(&findings, path, BATON_E_bad_config, l->findings);
    baton_code rc = read_yaml(l, entry->name, &findings, &tree, err);
    if (rc == BATON_OK && tree != NULL) {
        read_fleet_tree(l, &findings, yaml_tree_root(tree));
    }
    end_yaml(l, &findings, tree);
    return rc;
}

static baton_code read_principal(struct loading *l, const struct entry *entry,
                                 struct baton_error *err)
{
    char path[4096];
    struct yaml_findings findings;
    struct yaml_tree *tree = NULL;
    struct trust_principal *who = &l->trust->principals[l->trust->n_principals];
    path_of(l, entry->name, path);
    yaml_findings_init(&findings, path, BATON_E_bad_config, l->findings);
    baton_code rc = read_yaml(l, entry->name, &findings, &tree, err);
    if (rc == BATON_OK) {
        l->trust->n_principals++;
        who->name = entry->principal;
        if (tree != NULL && !trust_rights_read(yaml_tree_root(tree), &findings, who)) {
            rc = baton_fail(err, BATON_E_no_memory, "no memory for the trust folder");
        }
    }
    end_yaml(l, &findings, tree);
    return rc;
}

/* The id in the name is only a label: it is computed again from the key. */
static baton_code read_key(struct loading *l, const struct entry *entry, struct baton_error *err)
{
    char path[4096];
    char pem[LIMIT_KEY_FILE + 1];
    size_t len;
    struct trust_key key;
    struct stat st;
    struct key_id id;
    struct baton_error detail;
    memset(&key, 0, sizeof(key));
    if (!path_of(l, entry->name, path)) {
        return baton_fail(err, BATON_E_bad_config, "the path of the trust folder is too long");
    }
    baton_code rc = safe_read(path, SAFE_public, LIMIT_KEY_FILE, pem, &len, err);
    if (rc != BATON_OK) {
        return rc;
    }
    if (keyfile_read_public(entry->name, pem, len, &key.key, &detail) != BATON_OK) {
        found(l, entry->name, "%s", detail.text);
        return BATON_OK;
    }
    if (!keyfile_id(key.key, &id)) {
        keyfile_free(key.key);
        return baton_fail(err, BATON_E_no_memory, "no memory for the trust folder");
    }
    if (strcmp(id.s, entry->id.s) != 0) {
        keyfile_free(key.key);
        return baton_fail(err, BATON_E_key_unsafe,
                          "%s holds key %s, not the one that its name says; take it out of the "
                          "folder, and ask who put it there",
                          text_quote_of(path).s, id.s);
    }
    key.id = id;
    key.owner_name = entry->principal;
    if (stat(path, &st) == 0) {
        key.made_at.v = (int64_t)st.st_mtim.tv_sec * 1000 + st.st_mtim.tv_nsec / 1000000;
    }
    l->trust->keys[l->trust->n_keys++] = key;
    return BATON_OK;
}

/* Nothing is believed before everything has been found safe. */
static baton_code check_safety(struct loading *l, struct baton_error *err)
{
    char path[4096];
    char bytes[LIMIT_KEY_FILE + 1];
    size_t len;
    for (size_t i = 0; i < l->n_entries; i++) {
        if (!path_of(l, l->entries[i].name, path)) {
            return baton_fail(err, BATON_E_bad_config, "the path of the trust folder is too long");
        }
        if (l->entries[i].kind == ENTRY_unknown) {
            continue; /* never read: told as a finding */
        }
        baton_code rc = safe_read(path, SAFE_public, LIMIT_KEY_FILE, bytes, &len, err);
        if (rc != BATON_OK) {
            return rc;
        }
    }
    return BATON_OK;
}

static baton_code read_entries(struct loading *l, struct baton_error *err)
{
    baton_code rc = BATON_OK;
    for (size_t i = 0; rc == BATON_OK && i < l->n_entries; i++) {
        const struct entry *entry = &l->entries[i];
        switch (entry->kind) {
        case ENTRY_fleet:
            rc = read_fleet(l, entry, err);
            break;
        case ENTRY_principal:
            rc = read_principal(l, entry, err);
            break;
        case ENTRY_key:
            rc = read_key(l, entry, err);
            break;
        case ENTRY_revoked:
            break;
        case ENTRY_unknown:
            found(l, entry->name,
                  "is not known here; the folder holds fleet.yaml, NAME.yaml, NAME.<key id>.pem "
                  "and <key id>.revoked");
            break;
        }
    }
    return rc;
}

/* ---- what must fit together ---- */

static int order_keys(const void *a, const void *b)
{
    return strcmp(((const struct trust_key *)a)->id.s, ((const struct trust_key *)b)->id.s);
}

static int order_principals(const void *a, const void *b)
{
    return strcmp(((const struct trust_principal *)a)->name.s,
                  ((const struct trust_principal *)b)->name.s);
}

static void check_keys(struct loading *l)
{
    struct trust *t = l->trust;
    for (size_t i = 0; i < t->n_keys; i++) {
        struct trust_key *key = &t->keys[i];
        key->owner = (struct trust_principal *)trust_principal_find(t, key->owner_name.s);
        if (key->owner == NULL) {
            found(l, key->owner_name.s,
                  "key %s has no principal; write %s.yaml with kind and rights", key->id.s,
                  key->owner_name.s);
        }
        if (i > 0 && strcmp(key->id.s, t->keys[i - 1].id.s) == 0) {
            found(l, key->owner_name.s, "key %s belongs to %s, too; one key has one principal",
                  key->id.s, t->keys[i - 1].owner_name.s);
        }
    }
    for (size_t i = 0; i < t->n_principals; i++) {
        size_t mine = 0;
        for (size_t k = 0; k < t->n_keys; k++) {
            mine += t->keys[k].owner == &t->principals[i] ? 1 : 0;
        }
        if (mine == 0) {
            found(l, t->principals[i].name.s,
                  "is a principal without a key; `baton keys generate %s` makes one",
                  t->principals[i].name.s);
        }
    }
}

static void link_up(struct loading *l)
{
    struct trust *t = l->trust;
    qsort(t->keys, t->n_keys, sizeof(t->keys[0]), order_keys);
    qsort(t->principals, t->n_principals, sizeof(t->principals[0]), order_principals);
    for (size_t i = 0; i < l->n_entries; i++) {
        for (size_t k = 0; l->entries[i].kind == ENTRY_revoked && k < t->n_keys; k++) {
            if (strcmp(t->keys[k].id.s, l->entries[i].id.s) == 0) {
                t->keys[k].revoked = true;
            }
        }
    }
    check_keys(l);
    if (t->fleet.s[0] == '\0' && l->n_findings == 0) {
        found(l, TRUST_FLEET_FILE, "is missing or names no fleet: {version: 1, fleet: NAME}");
    }
}

static baton_code load(struct loading *l, const char *dir, struct baton_error *err)
{
    struct trust *t = l->trust;
    baton_code rc;
    if ((t->dir = strdup(dir)) == NULL) {
        return baton_fail(err, BATON_E_no_memory, "no memory for the trust folder");
    }
    if ((rc = safe_folder_check(dir, SAFE_public, err)) != BATON_OK) {
        return rc;
    }
    /* Stamped before reading: what changes meanwhile is seen as a change later. */
    if (!trust_stamp(dir, &t->stamp)) {
        return baton_fail(err, BATON_E_service_unavailable, "cannot list %s: %s",
                          text_quote_of(dir).s, strerror(errno));
    }
    if ((rc = list_entries(l, dir, err)) != BATON_OK || (rc = check_safety(l, err)) != BATON_OK) {
        return rc;
    }
    t->principals = calloc(l->n_entries + 1, sizeof(t->principals[0]));
    t->keys = calloc(l->n_entries + 1, sizeof(t->keys[0]));
    if (t->principals == NULL || t->keys == NULL) {
        return baton_fail(err, BATON_E_no_memory, "no memory for the trust folder");
    }
    if ((rc = read_entries(l, err)) == BATON_OK) {
        link_up(l);
    }
    return rc;
}

static void loading_done(struct loading *l)
{
    for (size_t i = 0; i < l->n_entries; i++) {
        free(l->entries[i].name);
    }
    free(l->entries);
    trust_free(l->trust);
}

static baton_code read_folder(const char *dir, struct trust **ret_trust, struct buf *findings,
                              size_t *ret_findings, struct baton_error *ret_first,
                              struct baton_error *err)
{
    struct loading l = {.findings = findings};
    l.trust = calloc(1, sizeof(*l.trust));
    baton_code rc = l.trust == NULL
                        ? baton_fail(err, BATON_E_no_memory, "no memory for the trust folder")
                        : load(&l, dir, err);
    if (rc == BATON_OK) {
        *ret_trust = l.trust;
        l.trust = NULL;
        *ret_findings = l.n_findings;
        *ret_first = l.first;
    }
    loading_done(&l);
    return rc;
}

baton_code trust_read(const char *dir, struct trust **ret_trust, struct buf *findings,
                      size_t *ret_findings, struct baton_error *err)
{
    struct baton_error first;
    return read_folder(dir, ret_trust, findings, ret_findings, &first, err);
}

baton_code trust_load(const char *dir, struct trust **ret_trust, struct buf *findings,
                      struct baton_error *err)
{
    struct baton_error first;
    struct trust *trust = NULL;
    size_t n_findings = 0;
    baton_code rc = read_folder(dir, &trust, findings, &n_findings, &first, err);
    if (rc == BATON_OK && n_findings > 0) {
        trust_free(trust);
        return baton_fail(err, BATON_E_bad_config, "%s%s", first.text,
                          n_findings > 1 ? " (and more; `baton config check` lists all)" : "");
    }
    if (rc == BATON_OK) {
        *ret_trust = trust;
    }
    return rc;
}
