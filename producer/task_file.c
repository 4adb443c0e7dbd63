/*
 * Reads task files.
 * In: producer/cmd_runs_start.c
 * Out: common/base/yaml_read.c, producer/input.c
 */
#include "producer/task_file.h"

#include "common/base/check.h"
#include "common/base/jsonw.h"
#include "common/base/limits.h"
#include "common/base/quantity.h"
#include "common/base/text.h"
#include "common/base/yaml_read.h"
#include "common/record/payload.h"
#include "producer/input.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const keys[] = {"id", "rev", "summary", "data", "text", "payload"};

/* ---- names ---- */

static bool ends_with(const char *word, const char *end)
{
    const size_t len = strlen(word);
    return len > strlen(end) && strcmp(word + len - strlen(end), end) == 0;
}

static bool is_yaml(const char *path)
{
    return ends_with(path, ".yaml") || ends_with(path, ".yml") || ends_with(path, ".json");
}

bool task_file_named(const char *word)
{
    return word[0] == '/' || strncmp(word, "./", 2) == 0 || strncmp(word, "../", 3) == 0 ||
           is_yaml(word) || ends_with(word, ".md") || ends_with(word, ".txt");
}

/* fix-parser.md: fix-parser. False: nothing of it fits an id. */
static bool id_of_name(const char *path, struct task_id *ret_id)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash != NULL ? slash + 1 : path;
    const char *dot = strrchr(name, '.');
    char id[ID_MAX + 1];
    size_t n = 0;
    for (const char *at = name; *at != '\0' && at != dot && n < ID_MAX; at++) {
        const char one[] = {*at, '\0'};
        const bool fits = task_id_valid(one, 1);
        if (fits || (n > 0 && id[n - 1] != '-')) {
            id[n++] = fits ? *at : '-';
        }
    }
    while (n > 0 && id[n - 1] == '-') {
        n--;
    }
    id[n] = '\0';
    if (!task_id_valid(id, n)) {
        return false;
    }
    *ret_id = task_id_of(id);
    return true;
}

/* ---- a text ---- */

/* The first line with something in it, without the signs of a heading. */
static char *first_line(const char *text, size_t len)
{
    const char *at = text;
    const char *end = text + len;
    while (at < end && strchr("# \t\r\n", *at) != NULL && *at != '\0') {
        at++;
    }
    size_t n = 0;
    while (at + n < end && at[n] != '\n' && at[n] != '\r' && n < LIMIT_SUMMARY) {
        n++;
    }
    while (n > 0 && at + n < end && ((unsigned char)at[n] & 0xC0) == 0x80) {
        n--; /* no character is cut */
    }
    while (n > 0 && (at[n - 1] == ' ' || at[n - 1] == '\t')) {
        n--;
    }
    return n > 0 ? strndup(at, n) : NULL;
}

static void read_text(const char *path, const struct buf *bytes, struct task_file *task)
{
    struct jsonw w = jsonw_to(&task->payload);
    const char *text = bytes->data != NULL ? bytes->data : "";
    payload_write(&w, ends_with(path, ".md") ? "text/markdown" : NULL, text, bytes->len);
    if (text_utf8_valid(text, bytes->len) && memchr(text, '\0', bytes->len) == NULL) {
        task->summary = first_line(text, bytes->len);
    }
}

/* ---- YAML, and so JSON ---- */

/* Relative to the task's file. */
static baton_code read_payload(const char *path, const char *name, struct task_file *task,
                               struct baton_error *err)
{
    struct buf bytes = BUF_INIT;
    struct buf where = BUF_INIT;
    const char *slash = strrchr(path, '/');
    if (name[0] != '/' && slash != NULL) {
        buf_add(&where, path, (size_t)(slash - path) + 1);
    }
    buf_add_text(&where, name);
    baton_code rc = buf_ok(&where) ? input_read(where.data, &bytes, err) : BATON_E_no_memory;
    if (rc == BATON_OK) {
        struct jsonw w = jsonw_to(&task->payload);
        payload_write(&w, ends_with(name, ".md") ? "text/markdown" : NULL,
                      bytes.data != NULL ? bytes.data : "", bytes.len);
    }
    buf_done(&where);
    buf_done(&bytes);
    return rc;
}

static void read_data(struct yaml_findings *findings, const struct yaml_node *map,
                      struct task_file *task)
{
    struct jsonw w = jsonw_to(&task->data);
    if (!yaml_is_map(findings, map, "data")) {
        return;
    }
    jsonw_begin_object(&w);
    for (const struct yaml_node *node = map->first; node != NULL; node = node->next) {
        if (node->kind != YAML_KIND_text) {
            yaml_found(findings, node, "data.%s is %s; it must be one text",
                       text_quote_of(node->key).s, yaml_kind_text(node));
            continue;
        }
        jsonw_key_any(&w, node->key, strlen(node->key));
        jsonw_plain(&w, node->text, node->text_len);
    }
    jsonw_end(&w);
}

static void read_head(struct yaml_findings *findings, const struct yaml_node *root,
                      struct task_file *task)
{
    const struct yaml_node *id = yaml_member(root, "id");
    const struct yaml_node *rev = yaml_member(root, "rev");
    const struct yaml_node *summary = yaml_member(root, "summary");
    int64_t number = 0;
    if (yaml_is_text(findings, NULL, id, "id")) {
        if (task_id_valid(id->text, id->text_len)) {
            task->id = task_id_of(id->text);
        } else {
            yaml_found(findings, id, "id: '%s' is no task id: 1 to %d of [A-Za-z0-9._/#:-]",
                       text_quote_of(id->text).s, ID_MAX);
        }
    }
    if (yaml_is_text(findings, NULL, rev, "rev")) {
        if (!quantity_int_parse(rev->text, rev->text_len, &number) || number < 0 ||
            number > INT32_MAX) {
            yaml_found(findings, rev, "rev: '%s' is no number from 0 to %d",
                       text_quote_of(rev->text).s, INT32_MAX);
        } else {
            task->rev = (int32_t)number;
        }
    }
    if (yaml_is_text(findings, NULL, summary, "summary")) {
        if (summary->text_len > LIMIT_SUMMARY) {
            yaml_found(findings, summary, "summary has %zu bytes; at most %d are allowed",
                       summary->text_len, LIMIT_SUMMARY);
        }
        task->summary = strdup(summary->text);
        BATON_INVARIANT(task->summary != NULL);
    }
}

static baton_code read_root(const char *path, struct yaml_findings *findings,
                            const struct yaml_node *root, struct task_file *task,
                            struct baton_error *err)
{
    const struct yaml_node *text = yaml_member(root, "text");
    const struct yaml_node *payload = yaml_member(root, "payload");
    if (!yaml_is_map(findings, root, "a task")) {
        return baton_fail(err, BATON_E_invalid_request, "%s", findings->first.text);
    }
    yaml_only_keys(findings, root, "a task", keys, COUNT_OF(keys));
    read_head(findings, root, task);
    read_data(findings, yaml_member(root, "data"), task);
    if (text != NULL && payload != NULL) {
        yaml_found(findings, payload, "a task has either text or payload, not both");
    }
    const bool has_text = yaml_is_text(findings, NULL, text, "text");
    const bool has_payload = yaml_is_text(findings, NULL, payload, "payload");
    if (findings->count > 0) {
        return baton_fail(err, BATON_E_invalid_request, "%s", findings->first.text);
    }
    if (has_text) {
        struct jsonw w = jsonw_to(&task->payload);
        payload_write(&w, NULL, text->text, text->text_len);
    }
    return has_payload ? read_payload(path, payload->text, task, err) : BATON_OK;
}

static baton_code read_yaml(const char *path, const struct buf *bytes, struct task_file *task,
                            struct buf *lines, struct baton_error *err)
{
    struct yaml_findings findings;
    struct yaml_tree *tree = NULL;
    yaml_findings_init(&findings, path, BATON_E_invalid_request, lines);
    baton_code rc =
        yaml_tree_parse(bytes->data != NULL ? bytes->data : "", bytes->len, &findings, &tree);
    if (rc == BATON_OK) {
        rc = read_root(path, &findings, yaml_tree_root(tree), task, err);
    } else if (findings.count > 0) {
        baton_fail(err, rc, "%s", findings.first.text);
    }
    yaml_tree_free(tree);
    return rc;
}

/* ---- one file ---- */

baton_code task_file_read(const char *path, struct task_file *ret_task, struct buf *findings,
                          struct baton_error *err)
{
    struct task_file task = {.rev = 0};
    struct buf bytes = BUF_INIT;
    const bool named = id_of_name(path, &task.id);
    baton_code rc = input_read(path, &bytes, err);
    if (rc == BATON_OK && is_yaml(path)) {
        rc = read_yaml(path, &bytes, &task, findings, err);
    } else if (rc == BATON_OK) {
        read_text(path, &bytes, &task);
    }
    if (rc == BATON_OK && !named && task.id.s[0] == '\0') {
        rc = baton_fail(err, BATON_E_invalid_request,
                        "no task id can be made of the name %s; --task-id gives one",
                        text_quote_of(path).s);
    }
    if (rc == BATON_OK && (!buf_ok(&task.data) || !buf_ok(&task.payload))) {
        rc = baton_fail(err, BATON_E_no_memory, "no memory for a task");
    }
    buf_done(&bytes);
    if (rc != BATON_OK) {
        task_file_done(&task);
        return rc;
    }
    *ret_task = task;
    return BATON_OK;
}

void task_file_done(struct task_file *task)
{
    free(task->summary);
    buf_done(&task->data);
    buf_done(&task->payload);
    *task = (struct task_file){.rev = 0};
}
