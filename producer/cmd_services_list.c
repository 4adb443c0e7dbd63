/*
 * `baton services [list]`: the fleet's front page. Reads each service, and has it shown.
 * In: producer/cmd_services.c
 * Out: topics/service_view.c, producer/session.c, producer/service_json.c, producer/service_text.c
 */
#include "producer/cmd_services.h"

#include "common/base/check.h"
#include "common/base/table.h"
#include "producer/service_shown.h"
#include "producer/session.h"
#include "topics/service_view.h"

/* A topic of one service that is missing, or closed to this principal, hides no other service. */
static bool of_one_service(baton_code rc)
{
    return rc == BATON_E_topic_missing || rc == BATON_E_not_permitted;
}

/* As much of it as there is; *ret_none: nothing at all. */
static baton_code read_view(struct session *session, const struct config_service *service,
                            struct service_view *ret_view, struct baton_error *ret_lacks,
                            bool *ret_none, struct baton_error *err)
{
    struct baton_error more = {BATON_OK, ""};
    baton_code rc =
        service_view_read(session->log, session->config, service, true, ret_view, ret_lacks);
    if (of_one_service(rc)) {
        rc = service_view_read(session->log, session->config, service, false, ret_view, &more);
        if (of_one_service(rc)) {
            *ret_view = (struct service_view){.service = service, .oldest_ms = -1};
            *ret_none = true;
            rc = BATON_OK;
        }
    } else if (rc == BATON_OK) {
        ret_lacks->code = BATON_OK;
    } else {
        more = *ret_lacks;
    }
    if (rc != BATON_OK) {
        *err = more;
    }
    return rc;
}

static baton_code list_services(struct command *cmd, struct session *session, struct table *table,
                                struct buf *out, struct baton_error *err)
{
    baton_code rc = BATON_OK;
    size_t empty = 0;
    for (size_t i = 0; rc == BATON_OK && i < session->config->n_services; i++) {
        struct baton_error lacks = {BATON_OK, ""};
        struct service_view view;
        bool none = false;
        rc = read_view(session, &session->config->services[i], &view, &lacks, &none, err);
        if (rc != BATON_OK) {
            break;
        }
        empty += none;
        if (empty == session->config->n_services) {
            *err = lacks; /* another prefix, other brokers: it is not about one service */
            rc = lacks.code;
        }
        if (cmd->json) {
            service_json(&view, &lacks, out);
        } else {
            service_row(&view, &lacks, table, out);
        }
        service_view_done(&view);
    }
    return rc;
}

int services_list(struct command *cmd)
{
    static const char *const titles[] = {"SERVICE", "WORKERS", "WAITING", "OLDEST",
                                         "QUEUED",  "RUNNING", "PARKED",  "NOW"};
    struct session session = {0};
    struct baton_error err = {BATON_OK, ""};
    struct table *table = NULL;
    struct buf out = BUF_INIT;
    int status = 0;
    baton_code rc = session_open(cmd, &session, &err);
    if (rc == BATON_OK && (table = table_new(titles, COUNT_OF(titles))) == NULL) {
        rc = baton_fail(&err, BATON_E_no_memory, "no memory for a table");
    }
    if (rc == BATON_OK) {
        rc = list_services(cmd, &session, table, &out, &err);
    }
    if (rc != BATON_OK) {
        status = command_fail(cmd, rc, &err);
    } else if (cmd->json) {
        command_print(cmd, &out);
    } else if (session.config->n_services == 0) {
        command_note(cmd, "no service is configured");
    } else {
        if (command_table(cmd, table)) {
            command_print(cmd, &out);
        }
    }
    table_free(table);
    buf_done(&out);
    session_done(&session);
    return status;
}
