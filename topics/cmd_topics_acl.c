/*
 * `baton topics plan --acl`: the rights of each principal as a table, as JSON, or as a script of
 * kafka-acls. Called by cmd_topics. Needs configuration and trust folder only.
 */
#include "common/base/check.h"
#include "common/base/jsonw.h"
#include "topics/acl.h"
#include "topics/cmd_topics.h"

#include <stdlib.h>
#include <string.h>

/* How Kafka names who has proven by SASL that it is NAME; by TLS that it is CN=NAME needs the
 * brokers' ssl.principal.mapping.rules. */
#define PRINCIPAL_TYPE "User:"

/* ---- forms ---- */

static void json(const struct acl_list *list, struct buf *out)
{
    for (size_t i = 0; i < list->count; i++) {
        const struct acl *acl = &list->rights[i];
        struct jsonw w = jsonw_to(out);
        jsonw_begin_object(&w);
        jsonw_key(&w, "principal");
        struct buf name = BUF_INIT;
        buf_printf(&name, PRINCIPAL_TYPE "%s", acl->principal);
        jsonw_bytes(&w, buf_ok(&name) ? name.data : "", name.len);
        buf_done(&name);
        jsonw_key_text(&w, "resource", acl_resource_word(acl->resource));
        jsonw_key_text(&w, "pattern", acl->prefixed ? "prefixed" : "literal");
        jsonw_key_text(&w, "name", acl->name.s);
        jsonw_key_text(&w, "operation", acl_operation_word(acl->operation));
        jsonw_key_text(&w, "why", acl->why);
        jsonw_end(&w);
        buf_add_char(out, '\n');
    }
}

static bool table(struct command *cmd, const struct acl_list *list)
{
    static const char *const titles[] = {"PRINCIPAL", "RESOURCE",  "PATTERN",
                                         "NAME",      "OPERATION", "WHY"};
    struct table *rows = table_new(titles, COUNT_OF(titles));
    for (size_t i = 0; rows != NULL && i < list->count; i++) {
        const struct acl *acl = &list->rights[i];
        struct buf name = BUF_INIT;
        buf_printf(&name, PRINCIPAL_TYPE "%s", acl->principal);
        table_text(rows, buf_ok(&name) ? name.data : "");
        buf_done(&name);
        table_text(rows, acl_resource_word(acl->resource));
        table_text(rows, acl->prefixed ? "prefixed" : "literal");
        table_text(rows, acl->name.s);
        table_text(rows, acl_operation_word(acl->operation));
        table_text(rows, acl->why);
    }
    if (rows != NULL) {
        command_table(cmd, rows);
        table_free(rows);
    }
    return rows != NULL;
}

static const char script_head[] =
    "# Run it as an administrator of the cluster; repeating it is harmless.\n"
    "#   BROKERS         the brokers, host:port\n"
    "#   COMMAND_CONFIG  a file with the administrator's client settings, where brokers ask for "
    "them\n"
    "#   KAFKA_ACLS      the tool of Apache Kafka (kafka-acls.sh, or kafka-acls)\n"
    "#\n"
    "# Delete on a topic is what trimming it (DeleteRecords) needs; Kafka has no smaller right, so "
    "its\n"
    "# holder could delete the topic. Brokers before 3.0 want IdempotentWrite on the cluster, too, "
    "for\n"
    "# whoever writes.\n"
    "set -eu\n";

/* One command for each resource of a principal. Names are ids: nothing in them means anything to a
 * shell. */
static void script(const struct config *config, const struct trust *trust,
                   const struct acl_list *list, struct buf *out)
{
    buf_printf(out, "#!/bin/sh\n# Rights on the topics of prefix %s, for the fleet %s.\n",
               config->prefix.s, trust_fleet(trust));
    buf_add_text(out, script_head);
    buf_printf(out, "BROKERS=${BROKERS:-%s}\n",
               config->kafka_brokers != NULL ? config->kafka_brokers : "localhost:9092");
    buf_add_text(out, "allow() {\n"
                      "    principal=$1\n    shift\n"
                      "    \"${KAFKA_ACLS:-kafka-acls.sh}\" --bootstrap-server \"$BROKERS\" \\\n"
                      "        ${COMMAND_CONFIG:+--command-config \"$COMMAND_CONFIG\"} \\\n"
                      "        --add --allow-principal \"" PRINCIPAL_TYPE "$principal\" \"$@\"\n"
                      "}\n");
    for (size_t i = 0; i < list->count;) {
        const struct acl *first = &list->rights[i];
        if (i == 0 || strcmp(first[-1].principal, first->principal) != 0) {
            buf_printf(out, "\n# %s\n", first->principal);
        }
        buf_printf(out, "allow %s %s %s%s", first->principal, acl_resource_option(first->resource),
                   first->name.s, first->prefixed ? " --resource-pattern-type prefixed" : "");
        for (; i < list->count; i++) {
            const struct acl *acl = &list->rights[i];
            if (strcmp(acl->principal, first->principal) != 0 || acl->resource != first->resource ||
                acl->prefixed != first->prefixed || strcmp(acl->name.s, first->name.s) != 0) {
                break;
            }
            buf_printf(out, " --operation %s", acl_operation_word(acl->operation));
        }
        buf_add_char(out, '\n');
    }
}

/* ---- the command ---- */

static int print(struct command *cmd, const struct config *config, const struct trust *trust,
                 const struct acl_list *list)
{
    struct buf out = BUF_INIT;
    if (cmd->json) {
        json(list, &out);
        command_print(cmd, &out);
    } else if (strcmp(command_text(cmd, "format"), "kafka-acls") == 0) {
        script(config, trust, list, &out);
        command_print(cmd, &out);
    } else {
        if (!table(cmd, list)) {
            return command_fail(cmd, BATON_E_no_memory, NULL);
        }
        command_note(cmd,
                     "Delete is for trimming (DeleteRecords): Kafka has one right for that and "
                     "for deleting the topic");
        if (config->log == LOG_KIND_local) {
            command_note(cmd, "the log of this configuration is local: it knows no such rights");
        }
    }
    buf_done(&out);
    return 0;
}

int topics_acl_run(struct command *cmd)
{
    struct config *config = NULL;
    struct trust *trust = NULL;
    struct acl_list list = {NULL, 0, 0};
    struct baton_error err = {BATON_OK, ""};
    const char *format = command_text(cmd, "format");
    int status = 0;
    if (strcmp(format, "table") != 0 && strcmp(format, "kafka-acls") != 0) {
        return command_usage(cmd, "--format is table or kafka-acls");
    }
    baton_code rc = command_config(cmd, &config, &err);
    if (rc == BATON_OK && (rc = trust_load(config->trust, &trust, NULL, &err)) == BATON_OK) {
        rc = acl_of_trust(trust, config->prefix.s, &list, &err);
    }
    status = rc == BATON_OK ? print(cmd, config, trust, &list) : command_fail(cmd, rc, &err);
    acl_list_done(&list);
    trust_free(trust);
    config_free(config);
    return status;
}
