/*
 * `baton workflow check | graph | list | show`: workflow files before a run uses them. Needs neither
 * log nor keys. Listed by deploy/baton.c.
 */
#include "producer/cmd_workflow.h"

#include "common/base/check.h"
#include "common/base/jsonw.h"
#include "common/base/text.h"
#include "producer/workflow/workflow.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- which ---- */

/*
 * The configuration for the services that there are, if there is one: asked for, or in its usual
 * place. Without one a file is judged alone.
 */
static baton_code config_if_any(struct command *cmd, struct config **ret_config,
                                struct baton_error *err)
{
    char *path = NULL;
    if (cmd->config_path == NULL && config_find(NULL, &path, err) != BATON_OK) {
        return BATON_OK;
    }
    free(path);
    return command_config(cmd, ret_config, err);
}

/* A word without a slash or dot that is no file is a name: built in, or of the configuration. */
static bool is_name(const char *word)
{
    return strchr(word, '/') == NULL && access(word, F_OK) != 0;
}

/* Is it the configuration's workflow of that name? */
static bool configured(const char *path, const char *name, struct workflow **ret_workflow)
{
    struct workflow *workflow = NULL;
    if (workflow_load(path, NULL, &workflow, NULL, NULL, NULL) == BATON_OK &&
        strcmp(workflow->name.s, name) == 0) {
        *ret_workflow = workflow;
        return true;
    }
    workflow_free(workflow);
    return false;
}

/* A workflow by its file or name. findings and warnings as workflow_parse. */
static baton_code workflow_by_word(const char *word, const struct config *config,
                                   struct workflow **ret_workflow, struct buf *findings,
                                   struct buf *warnings, struct baton_error *err)
{
    size_t len = 0;
    if (!is_name(word)) {
        return workflow_load(word, config, ret_workflow, findings, warnings, err);
    }
    for (size_t i = 0; config != NULL && i < config->n_workflows; i++) {
        struct workflow *workflow = NULL;
        if (configured(config->workflows[i], word, &workflow)) {
            workflow_free(workflow);
            return workflow_load(config->workflows[i], config, ret_workflow, findings, warnings,
                                 err);
        }
    }
    const char *text = workflow_builtin(word, &len);
    if (text == NULL) {
        return baton_fail(err, BATON_E_bad_config,
                          "%s: no such file, and no workflow of that name is configured "
                          "(`workflows:`) or built in; `baton workflow list` names them",
                          text_quote_of(word).s);
    }
    return workflow_parse(word, text, len, config, ret_workflow, findings, warnings, err);
}

/* ---- check ---- */

struct checked {
    const char *word;
    struct workflow *workflow; /* NULL: it has mistakes */
    baton_code rc;
    struct buf findings;
    struct buf warnings;
};

static void check_one(struct checked *one, const struct config *config)
{
    struct baton_error err = {BATON_OK, ""};
    one->rc =
        workflow_by_word(one->word, config, &one->workflow, &one->findings, &one->warnings, &err);
    if (one->rc != BATON_OK && one->findings.len == 0) {
        buf_add_text(&one->findings, err.text);
        buf_add_char(&one->findings, '\n');
    }
}

static void print_json(struct jsonw *w, const struct checked *one)
{
    jsonw_begin_object(w);
    jsonw_key_text(w, "workflow", one->word);
    jsonw_key_text(w, "status", one->rc == BATON_OK ? "ok" : "failed");
    if (one->workflow != NULL) {
        jsonw_key_text(w, "name", one->workflow->name.s);
        jsonw_key_text(w, "digest", one->workflow->digest);
    } else {
        jsonw_key_text(w, "code", baton_code_word(one->rc));
    }
    jsonw_key_lines(w, "findings", one->findings.data, one->findings.len);
    jsonw_key_lines(w, "warnings", one->warnings.data, one->warnings.len);
    jsonw_end(w);
}

static void print_text(struct buf *out, const struct checked *one)
{
    text_add_lines(out, one->findings.data, one->findings.len, 0, "error: ");
    text_add_lines(out, one->warnings.data, one->warnings.len, 0, "warning: ");
    if (one->workflow != NULL) {
        buf_add_text(out, "ok ");
        text_add(out, one->word, strlen(one->word), 0);
        buf_printf(out, " (%s, digest %.12s: %zu slots, %zu transitions, %zu ends)\n",
                   one->workflow->name.s, one->workflow->digest, one->workflow->n_slots,
                   one->workflow->n_transitions, one->workflow->n_ends);
    }
}

static int run_check(struct command *cmd)
{
    struct config *config = NULL;
    struct baton_error err = {BATON_OK, ""};
    struct buf out = BUF_INIT;
    int status = 0;
    baton_code rc = config_if_any(cmd, &config, &err);
    if (rc != BATON_OK) {
        return command_fail(cmd, rc, &err);
    }
    const size_t n_configured = config != NULL ? config->n_workflows : 0;
    const size_t n = cmd->n_args > 0 ? cmd->n_args : n_configured;
    if (n == 0) {
        config_free(config);
        return command_usage(cmd, "name a file; the configuration has no `workflows:`");
    }
    struct jsonw w = jsonw_to(&out);
    if (cmd->json) {
        jsonw_begin_array(&w);
    }
    for (size_t i = 0; i < n; i++) {
        struct checked one = {.word = cmd->n_args > 0 ? cmd->args[i] : config->workflows[i]};
        check_one(&one, config);
        status = status != 0 ? status : baton_code_exit(one.rc);
        if (cmd->json) {
            print_json(&w, &one);
        } else {
            print_text(&out, &one);
        }
        workflow_free(one.workflow);
        buf_done(&one.findings);
        buf_done(&one.warnings);
    }
    if (cmd->json) {
        jsonw_end(&w);
        buf_add_char(&out, '\n');
    }
    command_print(cmd, &out);
    buf_done(&out);
    config_free(config);
    return status;
}

static const struct baton_command cmd_workflow_check = {
    .name = "check",
    .summary = "find every mistake in workflow files",
    .usage = "[FILE|NAME...] [--json]",
    .description =
        "Reports every mistake at once with line and column and exits with 2: unknown and reserved "
        "keys, verdicts that a role does not have, a verdict answered twice, a transition to "
        "nowhere or back to its own slot. Warns of what is legal but surely wrong: a loop without "
        "a cap, a node that nothing reaches, a verdict that nothing answers, a transition that no "
        "channel permits.\n\n"
        "With a configuration (--config, or in its usual place) services and roles are compared "
        "with it, and without FILE all its `workflows:` are checked. WORKFLOW.md documents every "
        "key.",
    .args_max = 64,
    .examples = "baton workflow check workflows/mine.yaml\nbaton workflow check --json\n",
    .run = run_check,
};

/* ---- graph ---- */

static int run_graph(struct command *cmd)
{
    struct config *config = NULL;
    struct workflow *workflow = NULL;
    struct baton_error err = {BATON_OK, ""};
    struct buf findings = BUF_INIT;
    struct buf out = BUF_INIT;
    baton_code rc = config_if_any(cmd, &config, &err);
    if (rc == BATON_OK) {
        rc = workflow_by_word(cmd->args[0], config, &workflow, &findings, NULL, &err);
    }
    if (rc != BATON_OK) {
        config_free(config);
        buf_done(&findings);
        return command_fail(cmd, rc, &err);
    }
    if (cmd->json) {
        workflow_print_json(workflow, config, &out);
    } else if (command_flag(cmd, "dot")) {
        workflow_print_dot(workflow, config, &out);
    } else {
        workflow_print_text(workflow, config, &out);
    }
    command_print(cmd, &out);
    buf_done(&out);
    buf_done(&findings);
    workflow_free(workflow);
    config_free(config);
    return 0;
}

/* clang-format off */
static const struct command_option graph_options[] = {
    {.name = "dot", .kind = OPTION_flag, .help = "For Graphviz."},
};
/* clang-format on */

static const struct baton_command cmd_workflow_graph = {
    .name = "graph",
    .summary = "draw a workflow: who comes after whom",
    .usage = "FILE|NAME [--dot|--json]",
    .description =
        "For each slot: its role, its service, and what follows each verdict. With --dot the same "
        "for Graphviz.",
    .options = graph_options,
    .n_options = COUNT_OF(graph_options),
    .args_min = 1,
    .args_max = 1,
    .examples = "baton workflow graph paired-review\n"
                "baton workflow graph mine.yaml --dot | dot -Tsvg > mine.svg\n",
    .run = run_graph,
};

/* ---- list ---- */

struct listing {
    bool json;
    struct jsonw w;
    struct table *table;
};

static void list_one(struct listing *listing, const char *name, const char *digest,
                     const char *where)
{
    if (listing->json) {
        jsonw_begin_object(&listing->w);
        jsonw_key_text(&listing->w, "name", name);
        jsonw_key_text(&listing->w, "digest", digest);
        jsonw_key_text(&listing->w, "where", where);
        jsonw_end(&listing->w);
        return;
    }
    char shown[13] = "-";
    if (digest != NULL) {
        memcpy(shown, digest, 12);
        shown[12] = '\0';
    }
    table_text(listing->table, name != NULL ? name : "(has mistakes)");
    table_whole(listing->table, shown);
    table_text(listing->table, where);
}

static void list_all(struct listing *listing, const struct config *config)
{
    for (size_t i = 0; config != NULL && i < config->n_workflows; i++) {
        struct workflow *workflow = NULL;
        const bool good =
            workflow_load(config->workflows[i], config, &workflow, NULL, NULL, NULL) == BATON_OK;
        list_one(listing, good ? workflow->name.s : NULL, good ? workflow->digest : NULL,
                 config->workflows[i]);
        workflow_free(workflow);
    }
    const char *name;
    for (size_t i = 0; (name = workflow_builtin_name(i)) != NULL; i++) {
        struct workflow *workflow = NULL;
        size_t len = 0;
        const char *text = workflow_builtin(name, &len);
        if (workflow_parse(name, text, len, NULL, &workflow, NULL, NULL, NULL) == BATON_OK) {
            list_one(listing, workflow->name.s, workflow->digest, "built in");
        }
        workflow_free(workflow);
    }
}

static int run_list(struct command *cmd)
{
    static const char *const titles[] = {"WORKFLOW", "DIGEST", "WHERE"};
    struct config *config = NULL;
    struct baton_error err = {BATON_OK, ""};
    struct buf out = BUF_INIT;
    baton_code rc = config_if_any(cmd, &config, &err);
    if (rc != BATON_OK) {
        return command_fail(cmd, rc, &err);
    }
    struct listing listing = {.json = cmd->json, .w = jsonw_to(&out)};
    if (cmd->json) {
        jsonw_begin_array(&listing.w);
    } else {
        listing.table = table_new(titles, COUNT_OF(titles));
        if (listing.table == NULL) {
            config_free(config);
            return command_fail(cmd, BATON_E_no_memory, NULL);
        }
    }
    list_all(&listing, config);
    if (cmd->json) {
        jsonw_end(&listing.w);
        buf_add_char(&out, '\n');
        command_print(cmd, &out);
    } else {
        command_table(cmd, listing.table);
        table_free(listing.table);
    }
    buf_done(&out);
    config_free(config);
    return 0;
}

static const struct baton_command cmd_workflow_list = {
    .name = "list",
    .summary = "name the workflows that runs may use",
    .usage = "[--json]",
    .description = "Those of the configuration (`workflows:`) and those that are built in. One of "
                   "the configuration goes before one that is built in under the same name.",
    .examples = "baton workflow list\n",
    .run = run_list,
};

/* ---- show ---- */

static int run_show(struct command *cmd)
{
    struct config *config = NULL;
    struct workflow *workflow = NULL;
    struct baton_error err = {BATON_OK, ""};
    struct buf out = BUF_INIT;
    baton_code rc = config_if_any(cmd, &config, &err);
    if (rc == BATON_OK) {
        rc = workflow_by_word(cmd->args[0], NULL, &workflow, NULL, NULL, &err);
    }
    config_free(config);
    if (rc != BATON_OK) {
        return command_fail(cmd, rc, &err);
    }
    if (cmd->json) {
        struct jsonw w = jsonw_to(&out);
        jsonw_begin_object(&w);
        jsonw_key_text(&w, "name", workflow->name.s);
        jsonw_key_text(&w, "digest", workflow->digest);
        jsonw_key(&w, "text");
        jsonw_bytes(&w, workflow->text, workflow->text_len);
        jsonw_end(&w);
        buf_add_char(&out, '\n');
    } else if (isatty(STDOUT_FILENO)) {
        text_add_lines(&out, workflow->text, workflow->text_len, 0, "");
    } else {
        buf_add(&out, workflow->text, workflow->text_len);
    }
    workflow_free(workflow);
    command_print(cmd, &out);
    buf_done(&out);
    return 0;
}

static const struct baton_command cmd_workflow_show = {
    .name = "show",
    .summary = "print a workflow's file",
    .usage = "FILE|NAME [--json]",
    .description = "As it is, comments and all: the way to begin one of your own.",
    .args_min = 1,
    .args_max = 1,
    .examples = "baton workflow show paired-review > workflows/mine.yaml\n",
    .run = run_show,
};

static const struct baton_command *const subcommands[] = {&cmd_workflow_check, &cmd_workflow_graph,
                                                          &cmd_workflow_list, &cmd_workflow_show};

const struct baton_command cmd_workflow = {
    .name = "workflow",
    .summary = "check, draw, list and show workflow files",
    .usage = "check|graph|list|show",
    .description =
        "A workflow says who comes after whom: nodes at services, each with roles; transitions "
        "that verdicts take; ends. It is one file of YAML; producer/WORKFLOW.md documents it.",
    .subcommands = subcommands,
    .n_subcommands = COUNT_OF(subcommands),
    .examples = "baton workflow check mine.yaml\nbaton workflow graph paired-review\n",
};
