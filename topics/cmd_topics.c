/* `baton topics plan | apply | list`. Listed by the program's table of verbs (deploy/baton.c). */
#include "topics/cmd_topics.h"

#include "common/base/jsonw.h"
#include "common/base/quantity.h"
#include "common/base/text.h"
#include "common/log/log.h"
#include "topics/provision.h"

#include <stdio.h>
#include <string.h>

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

static void settings_json(struct jsonw *w, const struct log_topic *topic)
{
    jsonw_key_int(w, "partitions", topic->partitions);
    if (topic->copies > 0) {
        jsonw_key_int(w, "copies", topic->copies);
    }
    jsonw_key_text(w, "cleanup", topic_cleanup_word(topic->cleanup));
    jsonw_key_int(w, "retention_ms", topic->retention_ms);
    jsonw_key_int(w, "tombstone_ms", topic->tombstone_ms);
    jsonw_key_int(w, "record_bytes_max", (int64_t)topic->record_bytes_max);
}

/* What applying changes, and from what to what. */
static void changes_json(struct jsonw *w, const struct provision_step *step)
{
    struct topic_change changes[TOPIC_CHANGES_MAX];
    size_t n = topic_changes(&step->wanted, &step->found, changes);
    jsonw_key(w, "changes");
    jsonw_begin_array(w);
    for (size_t i = 0; i < n; i++) {
        jsonw_begin_object(w);
        jsonw_key_text(w, "setting", changes[i].setting);
        jsonw_key_text(w, "from", changes[i].from);
        jsonw_key_text(w, "to", changes[i].to);
        jsonw_end(w);
    }
    jsonw_end(w);
    if (step->found.differs[0] != '\0') {
        jsonw_key_text(w, "differs", step->found.differs);
    }
}

/* topic: what is wanted, or what is there. records < 0: not counted. */
static void step_json(const struct provision_step *step, const struct log_topic *topic,
                      int64_t records, struct buf *out)
{
    struct jsonw w = jsonw_to(out);
    jsonw_begin_object(&w);
    jsonw_key_text(&w, "topic", step->name.s);
    jsonw_key_text(&w, "kind", topic_kind_word(step->kind));
    jsonw_key_text(&w, "service", step->service.s[0] != '\0' ? step->service.s : NULL);
    jsonw_key_text(&w, "action", provision_word(step->what));
    settings_json(&w, topic);
    if (records >= 0) {
        jsonw_key_int(&w, "records", records);
    }
    if (step->what == PROVISION_mend) {
        changes_json(&w, step);
    }
    if (step->text[0] != '\0') {
        jsonw_key_text(&w, "why", step->text);
    }
    jsonw_end(&w);
    buf_add_char(out, '\n');
}

static void mend_text(const struct provision_step *step, struct buf *out)
{
    struct topic_change changes[TOPIC_CHANGES_MAX];
    size_t n = topic_changes(&step->wanted, &step->found, changes);
    buf_printf(out, "mend    %s:", step->name.s);
    for (size_t i = 0; i < n; i++) {
        buf_printf(out, "%s %s %s -> %s", i > 0 ? "," : "", changes[i].setting, changes[i].from,
                   changes[i].to);
    }
    if (step->found.differs[0] != '\0') {
        buf_add_text(out, n > 0 ? "; " : " ");
        text_add(out, step->found.differs, strlen(step->found.differs), 0);
    }
    buf_add_char(out, '\n');
}

static void step_text(const struct provision_step *step, struct buf *out)
{
    char keeps[40];
    switch (step->what) {
    case PROVISION_create:
        retention_text(&step->wanted, keeps, sizeof(keeps));
        buf_printf(out, "create  %s: %d partitions, keeps %s (%s)\n", step->name.s,
                   (int)step->wanted.partitions, keeps, topic_kind_text(step->kind));
        break;
    case PROVISION_mend:
        mend_text(step, out);
        break;
    case PROVISION_note:
    case PROVISION_hidden:
    case PROVISION_refuse:
        buf_printf(out, "%-7s %s\n", provision_word(step->what), step->text);
        break;
    case PROVISION_keep:
    case PROVISION_surplus:
    case PROVISION_COUNT:
        buf_printf(out, "%-7s %s: %s\n", provision_word(step->what), step->name.s,
                   provision_text(step->what));
        break;
    }
}

/* Prints what is not as it should be. */
static void print_plan(struct command *cmd, const struct provision_plan *plan)
{
    struct buf out = BUF_INIT;
    for (size_t i = 0; i < plan->count; i++) {
        const struct provision_step *step = &plan->steps[i];
        if (step->what == PROVISION_keep) {
            continue;
        }
        if (cmd->json) {
            step_json(step, &step->wanted, -1, &out);
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

/* Something is to be done, or cannot be done: what --check ends with. */
static int plan_check(struct command *cmd, const struct provision_plan *plan)
{
    struct baton_error err = {BATON_OK, ""};
    const char *first = "";
    for (size_t i = plan->count; i > 0; i--) {
        enum provision what = plan->steps[i - 1].what;
        if (what == PROVISION_create || what == PROVISION_mend || what == PROVISION_refuse) {
            first = plan->steps[i - 1].name.s;
        }
    }
    baton_fail(&err, BATON_E_topic_missing,
               "%zu topics are missing or wrongly made, the first is %s; %s",
               plan->n_changes + plan->n_refused, first,
               plan->n_changes > 0 ? "run: baton topics apply"
                                   : "`baton topics plan` says what to do about each");
    return command_fail(cmd, err.code, &err);
}

static const struct baton_error *hidden_error(const struct provision_plan *plan,
                                              struct baton_error *err)
{
    for (size_t i = 0; i < plan->count; i++) {
        if (plan->steps[i].what == PROVISION_hidden) {
            baton_fail(err, BATON_E_not_permitted, "%s", plan->steps[i].text);
            break;
        }
    }
    return err;
}

static int run_plan(struct command *cmd)
{
    struct session session = {0};
    struct baton_error err = {BATON_OK, ""};
    if (command_flag(cmd, "acl")) {
        return command_flag(cmd, "check")
                   ? command_usage(cmd, "--check is about topics; with --acl nothing is compared")
                   : topics_acl_run(cmd);
    }
    if (command_given(cmd, "format")) {
        return command_usage(cmd, "--format is for --acl");
    }
    baton_code rc = session_open(cmd, false, &session, &err);
    const struct provision_plan *plan = &session.plan;
    int status = 0;
    if (rc != BATON_OK) {
        status = command_fail(cmd, rc, &err);
    } else {
        print_plan(cmd, plan);
        if (plan->n_changes + plan->n_refused > 0 && command_flag(cmd, "check")) {
            status = plan_check(cmd, plan);
        } else if (plan->n_hidden > 0 && command_flag(cmd, "check")) {
            status = command_fail(cmd, BATON_E_not_permitted, hidden_error(plan, &err));
        } else if (plan->n_changes > 0) {
            command_note(cmd, "`baton topics apply` does it");
        } else if (plan->n_refused + plan->n_hidden == 0) {
            command_note(cmd, "nothing to do: every topic is as it should be");
        }
    }
    session_done(&session);
    return status;
}

/* clang-format off */
static const struct command_option plan_options[] = {
    {.name = "check", .kind = OPTION_flag,
     .help = "Ends with status 8 (topic_missing) if a topic is missing or wrongly made, so that a deployment can "
             "stop there."},
    {.name = "acl", .kind = OPTION_flag,
     .help = "Lists instead the rights that the brokers must give to each principal of the trust folder (Kafka). "
             "Needs no broker."},
    {.name = "format", .argument = "FORM", .kind = OPTION_text, .fallback = "table",
     .help = "With --acl: table, or kafka-acls, a script of commands of Apache Kafka's own tool."},
};
/* clang-format on */

static const struct baton_command cmd_plan = {
    .name = "plan",
    .summary = "show which topics are missing or wrongly made, and which rights are needed",
    .usage = "[--check] [--json]\n--acl [--format table|kafka-acls] [--json]",
    .description =
        "Compares the topics that the configuration needs with those that are there, and "
        "shows what `baton topics apply` would create, and mend from what to what. A wrong "
        "number of partitions is refused, never mended: keys would move to other partitions, "
        "away from their turns. Changes nothing.\n\n"
        "With --acl: what each principal of the trust folder must be allowed on a Kafka cluster. "
        "Kafka has one right (Delete) for trimming a topic and for deleting it.",
    .options = plan_options,
    .n_options = sizeof(plan_options) / sizeof(plan_options[0]),
    .examples = "# what would be made\nbaton topics plan\n"
                "# in a deployment: stop unless everything is there\nbaton topics plan --check\n"
                "# what a Kafka administrator runs\n"
                "baton topics plan --acl --format kafka-acls > acls.sh\n",
    .exits = "0 also if something is to do, unless --check is given: 8 then.\n",
    .run = run_plan,
};

/* ---- apply ---- */

static int run_apply(struct command *cmd)
{
    struct session session = {0};
    struct baton_error err = {BATON_OK, ""};
    baton_code rc = session_open(cmd, true, &session, &err);
    bool planned = rc == BATON_OK;
    if (planned) {
        rc = provision_apply(session.log, &session.plan, &err);
    }
    int status = 0;
    /* What cannot be mended does not hold up the rest: what was done is shown before it is said. */
    if (rc == BATON_OK || (planned && session.plan.n_refused + session.plan.n_hidden > 0)) {
        print_plan(cmd, &session.plan);
        command_note(cmd, "%zu topics made or mended", session.plan.n_changes);
    }
    if (rc != BATON_OK) {
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
        "Makes the topics that the configuration needs, waits until they can be used, and mends "
        "settings of those that are there; settings that Baton does not know stay as they are. "
        "Never changes a number of partitions, since keys would move to other partitions, and "
        "never deletes anything. May be repeated.\n\n"
        "On the local log the file is made, too, where there is none. On Kafka this needs the "
        "rights Create, DescribeConfigs and AlterConfigs, which no principal of the fleet needs "
        "otherwise.",
    .examples = "# after adding a service to baton.yaml\nbaton topics apply\n",
    .exits = "8 (topic_missing) if a topic cannot be mended; the others are done all the same.\n",
    .run = run_apply,
};

/* ---- list ---- */

/* Records between the ends of all partitions: an upper bound where records go by their key. */
static baton_code count_records(struct log *log, const struct provision_step *step,
                                int64_t *ret_records, struct baton_error *err)
{
    int64_t records = 0;
    baton_code rc = BATON_OK;
    for (int32_t p = 0; rc == BATON_OK && p < step->found.partitions; p++) {
        int64_t low = 0;
        int64_t high = 0;
        rc = log_watermarks(log, step->name.s, p, &low, &high, err);
        records += high - low;
    }
    *ret_records = records;
    return rc;
}

static void list_row(struct table *table, const struct provision_step *step, int64_t records)
{
    char keeps[40];
    retention_text(&step->found, keeps, sizeof(keeps));
    table_text(table, step->name.s);
    table_int(table, step->found.partitions);
    table_int(table, step->found.copies);
    table_text(table, keeps);
    if (records >= 0) {
        table_int(table, records);
    }
    table_text(table, step->what == PROVISION_keep ? "ok" : provision_word(step->what));
    table_text(table, topic_kind_text(step->kind));
}

static int run_list(struct command *cmd)
{
    static const char *const titles[] = {"TOPIC", "PARTITIONS", "COPIES",
                                         "KEEPS", "STATE",      "HOLDS"};
    static const char *const counted[] = {"TOPIC",   "PARTITIONS", "COPIES", "KEEPS",
                                          "RECORDS", "STATE",      "HOLDS"};
    struct session session = {0};
    struct baton_error err = {BATON_OK, ""};
    struct buf out = BUF_INIT;
    bool count = command_flag(cmd, "records");
    baton_code rc = session_open(cmd, false, &session, &err);
    struct table *table = NULL;
    if (rc == BATON_OK && !cmd->json) {
        table = count ? table_new(counted, 7) : table_new(titles, 6);
        rc =
            table != NULL ? BATON_OK : baton_fail(&err, BATON_E_no_memory, "no memory for a table");
    }
    for (size_t i = 0; rc == BATON_OK && i < session.plan.count; i++) {
        const struct provision_step *step = &session.plan.steps[i];
        int64_t records = -1;
        if (step->what == PROVISION_create || step->what == PROVISION_hidden) {
            continue; /* it is not there, or may be */
        }
        if (count) {
            rc = count_records(session.log, step, &records, &err);
        }
        if (cmd->json) {
            step_json(step, &step->found, records, &out);
        } else {
            list_row(table, step, records);
        }
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

/* clang-format off */
static const struct command_option list_options[] = {
    {.name = "records", .kind = OPTION_flag,
     .help = "Counts offsets between first and last record, too: two questions to the log for each partition; "
             "commit markers and records that newer ones replaced are counted."},
};
/* clang-format on */

static const struct baton_command cmd_list = {
    .name = "list",
    .summary = "list the topics that are there",
    .usage = "[--records] [--json]",
    .description =
        "Lists the topics of the configured services and those that all share, as they are: "
        "partitions, copies, what they keep and hold, and whether they are as they should be.",
    .options = list_options,
    .n_options = sizeof(list_options) / sizeof(list_options[0]),
    .examples = "baton topics list\nbaton topics list --records --json\n",
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
