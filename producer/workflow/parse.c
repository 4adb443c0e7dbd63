/*
 * A workflow file into a struct workflow: its sections one after the other, then what they mean
 * together.
 *
 * In: `baton workflow`, and whoever starts or goes on with a run
 * Out: nodes.c, hooks.c, transitions.c, judge.c, loops.c
 */
#include "producer/workflow/reading.h"

#include "common/base/check.h"
#include "common/base/quantity.h"
#include "common/base/safe_file.h"
#include "common/base/text.h"
#include "common/base/word.h"
#include "common/record/signer.h"

#include <stdlib.h>
#include <string.h>

#define RESERVED_WORD(key) #key,
static const char *const reserved[] = {WORKFLOW_RESERVED(RESERVED_WORD)};
#undef RESERVED_WORD
#define WORKFLOW_WORD(word, meaning) #word,
static const char *const invokes[] = {WORKFLOW_INVOKES(WORKFLOW_WORD)};
#undef WORKFLOW_WORD
#define WORKFLOW_WORD(word) #word,
static const char *const verdicts[] = {VERDICTS(WORKFLOW_WORD)};
#undef WORKFLOW_WORD
#define ROLE_NAME(word, list) #word,
static const char *const roles[] = {ROLES(ROLE_NAME)};
#undef ROLE_NAME

static const char *const file_keys[] = {"version",  "name",     "start",       "invoke",
                                        "deadline", "nodes",    "transitions", "ends",
                                        "hooks",    "channels", "verdicts"};

const char *invoke_word(enum invoke invoke)
{
    return invokes[invoke];
}

static void read_verdicts(struct workflow_reading *reading, const struct yaml_node *map)
{
    struct workflow *workflow = reading->workflow;
    for (int role = 0; role < ROLE_COUNT; role++) {
        workflow->verdicts[role] = verdicts_of((enum role)role);
    }
    if (!yaml_is_map(&reading->findings, map, "verdicts")) {
        return;
    }
    yaml_only_keys(&reading->findings, map, "verdicts", roles, COUNT_OF(roles));
    for (int role = 0; role < ROLE_COUNT; role++) {
        const struct yaml_node *list = yaml_member(map, roles[role]);
        char where[WORKFLOW_WHERE_MAX];
        if (list == NULL) {
            continue;
        }
        workflow_where(where, "verdicts", roles[role]);
        const verdict_set set = workflow_words(reading, list, where, verdicts, COUNT_OF(verdicts));
        for (int v = 0; v < VERDICT_COUNT; v++) {
            if ((set & ~workflow->verdicts[role] & VERDICT_BIT(v)) != 0) {
                yaml_found(&reading->findings, list,
                           "%s: %s is no verdict of the role %s; a workflow only narrows", where,
                           verdicts[v], roles[role]);
            }
        }
        workflow->verdicts[role] &= set;
    }
}

/* ---- the file ---- */

/* What belongs to prepared hand-offs is refused by its name, wherever it stands. */
static void refuse_reserved(struct workflow_reading *reading, const struct yaml_node *root)
{
    const struct yaml_node *node = root;
    while (node != NULL) {
        if (node->key != NULL &&
            word_find(reserved, COUNT_OF(reserved), node->key, strlen(node->key)) >= 0 &&
            (node->parent == root ||
             (node->parent->parent != NULL && node->parent->parent->parent == root))) {
            yaml_found(&reading->findings, node,
                       "'%s' is kept for prepared hand-offs and approvals, which version 1 of "
                       "workflows does not have",
                       node->key);
        }
        if (node->first != NULL) {
            node = node->first;
            continue;
        }
        while (node != root && node->next == NULL) {
            node = node->parent;
        }
        node = node != root ? node->next : NULL;
    }
}

static void read_head(struct workflow_reading *reading, const struct yaml_node *root)
{
    struct workflow *workflow = reading->workflow;
    const struct yaml_node *version = yaml_member(root, "version");
    const struct yaml_node *name = yaml_member(root, "name");
    const struct yaml_node *invoke = yaml_member(root, "invoke");
    const struct yaml_node *deadline = yaml_member(root, "deadline");
    if (yaml_is_text(&reading->findings, root, version, "version") &&
        strcmp(version->text, "1") != 0) {
        yaml_found(&reading->findings, version,
                   "version '%s' is not known to this program; it is 1",
                   text_quote_of(version->text).s);
    }
    if (yaml_is_text(&reading->findings, root, name, "name")) {
        if (plain_id_valid(name->text, name->text_len)) {
            workflow->name = plain_id_of(name->text);
        } else {
            yaml_found(&reading->findings, name, "name: '%s' is no name: [a-z0-9._-], at most %d",
                       text_quote_of(name->text).s, ID_MAX);
        }
    }
    workflow->invoke = INVOKE_deny;
    if (yaml_is_text(&reading->findings, NULL, invoke, "invoke")) {
        const int word =
            yaml_word(&reading->findings, invoke, "invoke", invokes, COUNT_OF(invokes));
        workflow->invoke = word >= 0 ? (enum invoke)word : INVOKE_deny;
    }
    if (yaml_is_text(&reading->findings, NULL, deadline, "deadline") &&
        (!quantity_duration_parse(deadline->text, deadline->text_len, &workflow->deadline_ms) ||
         workflow->deadline_ms < 1000 || workflow->deadline_ms > WORKFLOW_DEADLINE_MAX_MS)) {
        yaml_found(&reading->findings, deadline,
                   "deadline: '%s' is no duration from 1s to 90d (20m, 6h, 7d)",
                   text_quote_of(deadline->text).s);
    }
}

static void read_file(struct workflow_reading *reading, const struct yaml_node *root)
{
    struct workflow *workflow = reading->workflow;
    if (!yaml_is_map(&reading->findings, root, "a workflow")) {
        return;
    }
    refuse_reserved(reading, root);
    if (reading->findings.count == 0) {
        yaml_only_keys(&reading->findings, root, "a workflow", file_keys, COUNT_OF(file_keys));
    }
    read_head(reading, root);
    workflow_read_nodes(reading, root, yaml_member(root, "nodes"));
    read_verdicts(reading, yaml_member(root, "verdicts"));
    workflow_read_hooks(reading, yaml_member(root, "hooks"));
    if (workflow->n_slots > 0) {
        (void)workflow_read_slot_name(reading, root, "", "start", &workflow->start);
        workflow_read_transitions(reading, yaml_member(root, "transitions"));
        workflow_read_ends(reading, yaml_member(root, "ends"));
        workflow_read_channels(reading, yaml_member(root, "channels"));
    }
    if (reading->findings.count == 0) {
        workflow_judge(reading);
    }
    if (reading->findings.count == 0) {
        workflow_judge_loops(reading);
    }
}

static void keep_text(struct workflow_reading *reading, const char *text, size_t text_len)
{
    struct workflow *workflow = reading->workflow;
    const struct digest digest = digest_of(text, text_len);
    workflow->text = malloc(text_len + 1);
    if (workflow->text == NULL) {
        reading->no_memory = true;
        return;
    }
    memcpy(workflow->text, text, text_len);
    workflow->text[text_len] = '\0';
    workflow->text_len = text_len;
    hex_encode(digest.b, sizeof(digest.b), workflow->digest);
}

baton_code workflow_parse(const char *path, const char *text, size_t text_len,
                          const struct config *config, struct workflow **ret_workflow,
                          struct buf *findings, struct buf *warnings, struct baton_error *err)
{
    struct workflow_reading reading = {.config = config, .path = path};
    struct yaml_tree *tree = NULL;
    baton_code rc = BATON_OK;

    yaml_findings_init(&reading.findings, path, BATON_E_bad_config, findings);
    yaml_findings_init(&reading.warnings, path, BATON_E_bad_config, warnings);
    reading.workflow = calloc(1, sizeof(*reading.workflow));
    if (reading.workflow == NULL) {
        return baton_fail(err, BATON_E_no_memory, "no memory for a workflow");
    }
    if (text_len > WORKFLOW_FILE_MAX) {
        yaml_found(&reading.findings, NULL, "the file is larger than 64 KiB");
    } else if (yaml_tree_parse(text, text_len, &reading.findings, &tree) == BATON_OK) {
        keep_text(&reading, text, text_len);
        read_file(&reading, yaml_tree_root(tree));
    }
    if (reading.no_memory || (tree == NULL && reading.findings.count == 0)) {
        rc = baton_fail(err, BATON_E_no_memory, "no memory for a workflow");
    } else if (reading.findings.count > 0) {
        rc = baton_fail(err, BATON_E_bad_config, "%s", reading.findings.first.text);
    } else {
        *ret_workflow = reading.workflow;
        reading.workflow = NULL; /* now the caller's */
    }
    free(reading.nodes_at);
    free(reading.transitions_at);
    free(reading.ends_at);
    free(reading.hooks_at);
    free(reading.channels_at);
    workflow_free(reading.workflow);
    yaml_tree_free(tree);
    return rc;
}

baton_code workflow_load(const char *path, const struct config *config,
                         struct workflow **ret_workflow, struct buf *findings, struct buf *warnings,
                         struct baton_error *err)
{
    char *text = malloc(WORKFLOW_FILE_MAX + 2);
    size_t len = 0;
    if (text == NULL) {
        return baton_fail(err, BATON_E_no_memory, "no memory for a workflow");
    }
    baton_code rc = safe_read(path, SAFE_public, WORKFLOW_FILE_MAX, text, &len, err);
    if (rc == BATON_OK) {
        rc = workflow_parse(path, text, len, config, ret_workflow, findings, warnings, err);
    }
    free(text);
    return rc;
}
