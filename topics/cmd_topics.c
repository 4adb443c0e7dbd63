/* `baton topics plan | apply | list`. Listed by the program's table of verbs (deploy/baton.c). */
#include "topics/cmd_topics.h"

#include "common/base/jsonw.h"
#include "common/base/quantity.h"
#include "common/base/text.h"
#include "common/log/log.h"
#include "topics/provision.h"

#include <inttypes.h>
#include <stdio.h>

/* ---- what the three share ---- */

struct session {
    struct config *config;
    struct log *log;
    struct provision_plan plan;
};

static void session_done(struct session *session)
{
    provision_plan_done(&session->plan);
    log_close(session->log);
    config_free(session->config);
}

static baton_code session_open(struct command *cmd, bool create, struct session *session,
                               struct baton_error *err)
{
    baton_code rc = command_config(cmd, &session->config, err);
    if (rc == BATON_OK && create) {
        rc = log_create(session->config, err);
    }
    if (rc == BATON_OK && (rc = log_open(session->config, &session->log, err)) == BATON_OK) {
        rc = provision_plan_make(session->config, session->log, &session->plan, err);
    }
    return rc;
}

static void retention_text(const struct log_topic *topic, char *ret_text, size_t size)
{
    if (topic->cleanup == LOG_CLEANUP_compact) {
        snprintf(ret_text, size, "newest of each key");
    } else if (topic->retention_ms < 0) {
        snprintf(ret_text, size, "until taken in");
    } else {
        snprintf(ret_text, size, "%s", quantity_duration_text(topic->retention_ms).s);
    }
}

static void step_json(const struct provision_step *step, struct buf *out)
{
    struct jsonw w = jsonw_to(out);
    jsonw_begin_object(&w);
    jsonw_key_text(&w, "topic", step->name.s);
    jsonw_key_text(&w, "kind", topic_kind_word(step->kind));
    jsonw_key_text(&w, "service", step->service.s[0] != '\0' ? step->service.s : NULL);
    jsonw_key_text(&w, "action", provision_word(step->what));
    jsonw_key_int(&w, "partitions", step->wanted.partitions);
    jsonw_key_text(&w, "cleanup",
                   step->wanted.cleanup == LOG_CLEANUP_compact ? "compact" : "delete");
    jsonw_key_int(&w, "retention_ms", step->wanted.retention_ms);
    jsonw_key_int(&w, "tombstone_ms", step->wanted.tombstone_ms);
    jsonw_key_int(&w, "record_bytes_max", (int64_t)step->wanted.record_bytes_max);
    if (step->text[0] != '\0') {
        jsonw_key_text(&w, "why", step->text);
    }
    jsonw_end(&w);
    buf_add_char(out, '\n');
}

static void step_text(const struct provision_step *step, struct buf *out)
{
    const char *text = step->text[0] != '\0' ? step->text : provision_text(step->what);
    if (step->what == PROVISION_create) {
        char keeps[40];
        retention_text(&step->wanted, keeps, sizeof(keeps));
        buf_printf(out, "create  %s: %d partitions, keeps %s (%s)\n", step->name.s,
                   (int)step->wanted.partitions, keeps, topic_kind_text(step->kind));
    } else {
        buf_printf(out, "%-7s %s: %s\n", provision_word(step->what), step->name.s, text);
    }
}

/* Prints what is not as it should be; keep says whether what is right is shown, too. */
static void print_plan(struct command *cmd, const struct provision_plan *plan)
{
    struct buf out = BUF_INIT;
    for (size_t i = 0; i < plan->count; i++) {
        const struct provision_step *step = &plan->steps[i];
        if (step->what == PROVISION_keep) {
            continue;
        }
        if (cmd->json) {
            step_json(step, &out);
        } else {
            step_text(step, &out);
        }
        if (!command_print(cmd, &out)) {
            break;
        }
    }
    buf_done(&out);
}

/* ---- plan ---- */

static int run_plan(struct command *cmd)
{
    struct session session = {0};
    struct baton_error err = {BATON_OK, ""};
    baton_code rc = session_open(cmd, false, &session, &err);
    int status = 0;
    if (rc == BATON_OK) {
        print_plan(cmd, &session.plan);
        if (session.plan.n_changes == 0 && session.plan.n_refused == 0) {
            command_note(cmd, "nothing to do: every topic is as it should be");
        } else if (session.plan.n_changes > 0) {
            command_note(cmd, "`baton topics apply` does it");
        }
    } else {
        status = command_fail(cmd, rc, &err);
    }
    session_done(&session);
    return status;
}

static const struct baton_command cmd_plan = {
    .name = "plan",
    .summary = "show which topics are missing or wrongly made",
    .usage = "[--json]",
    .description =
        "Compares the topics that the configuration needs with those that are there, and "
        "shows what `baton topics apply` would change. Changes nothing.",
    .examples = "# what would be made\nbaton topics plan\n",
    .run = run_plan,
};

/* ---- apply ---- */

static int run_apply(struct command *cmd)
{
    struct session session = {0};
    struct baton_error err = {BATON_OK, ""};
    baton_code rc = session_open(cmd, true, &session, &err);
    if (rc == BATON_OK) {
        rc = provision_apply(session.log, &session.plan, &err);
    }
    int status = 0;
    if (rc == BATON_OK) {
        print_plan(cmd, &session.plan);
        command_note(cmd, "%zu topics made or mended", session.plan.n_changes);
    } else {
        status = command_fail(cmd, rc, &err);
    }
    session_done(&session);
    return status;
}

static const struct baton_command cmd_apply = {
    .name = "apply",
    .summary = "make missing topics and mend settings",
    .usage = "[--json]",
    .description =
        "Makes the topics that the configuration needs and mends settings of those that "
        "are there. Never changes a number of partitions, since keys would move to other "
        "partitions, and never deletes anything. May be repeated.\n\n"
        "On the local log the file is made, too, where there is none.",
    .examples = "# after adding a service to baton.yaml\nbaton topics apply\n",
    .run = run_apply,
};

/* ---- list ---- */

static int run_list(struct command *cmd)
{
    static const char *const titles[] = {"TOPIC", "PARTITIONS", "KEEPS", "STATE", "HOLDS"};
    struct session session = {0};
    struct baton_error err = {BATON_OK, ""};
    struct buf out = BUF_INIT;
    baton_code rc = session_open(cmd, false, &session, &err);
    struct table *table = rc == BATON_OK && !cmd->json ? table_new(titles, 5) : NULL;
    if (rc == BATON_OK && !cmd->json && table == NULL) {
        rc = baton_fail(&err, BATON_E_no_memory, "no memory for a table");
    }
    for (size_t i = 0; rc == BATON_OK && i < session.plan.count; i++) {
        const struct provision_step *step = &session.plan.steps[i];
        char keeps[40];
        if (step->what == PROVISION_create) {
            continue; /* it is not there */
        }
        if (cmd->json) {
            step_json(step, &out);
            continue;
        }
        retention_text(&step->wanted, keeps, sizeof(keeps));
        table_text(table, step->name.s);
        table_int(table, step->wanted.partitions);
        table_text(table, keeps);
        table_text(table, step->what == PROVISION_keep ? "ok" : provision_word(step->what));
        table_text(table, topic_kind_text(step->kind));
    }
    int status = 0;
    if (rc != BATON_OK) {
        status = command_fail(cmd, rc, &err);
    } else if (cmd->json) {
        command_print(cmd, &out);
    } else {
        command_table(cmd, table);
    }
    table_free(table);
    buf_done(&out);
    session_done(&session);
    return status;
}

static const struct baton_command cmd_list = {
    .name = "list",
    .summary = "list the topics that are there",
    .usage = "[--json]",
    .description =
        "Lists the topics of the configured services and those that all share, with what "
        "they hold and whether they are as they should be.",
    .examples = "baton topics list\nbaton topics list --json\n",
    .run = run_list,
};

static const struct baton_command *const subcommands[] = {&cmd_plan, &cmd_apply, &cmd_list};

const struct baton_command cmd_topics = {
    .name = "topics",
    .summary = "plan, make and list topics",
    .usage = "plan|apply|list",
    .description = "Topics are made by this command and never by themselves: a worker refuses to "
                   "start without its topics, and names what is missing.",
    .subcommands = subcommands,
    .n_subcommands = sizeof(subcommands) / sizeof(subcommands[0]),
    .examples = "# first show, then do\nbaton topics plan\nbaton topics apply\n",
};
