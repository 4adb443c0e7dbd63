/* Opens what commands need. Called by the cmd_*.c files of this folder. */
#include "producer/session.h"

baton_code session_open(struct command *cmd, struct session *session, struct baton_error *err)
{
    baton_code rc = command_config(cmd, &session->config, err);
    return rc == BATON_OK ? log_open(session->config, &session->log, err) : rc;
}

baton_code session_open_signing(struct command *cmd, struct session *session,
                                struct baton_error *err)
{
    baton_code rc = command_config(cmd, &session->config, err);
    if (rc == BATON_OK) {
        rc = identity_open(session->config, &session->identity, err);
        session->has_identity = rc == BATON_OK;
    }
    return rc == BATON_OK ? log_open(session->config, &session->log, err) : rc;
}

void session_done(struct session *session)
{
    log_close(session->log);
    if (session->has_identity) {
        identity_close(&session->identity);
    }
    config_free(session->config);
}

struct outcome_trust session_trust(const struct session *session)
{
    return (struct outcome_trust){session->identity.trust, session->identity.fleet,
                                  session->identity.required};
}
