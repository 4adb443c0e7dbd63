/* The judgement of a start; called as its header says. */
#include "producer/workflow/may_start.h"

#include "common/base/text.h"

#include <string.h>

baton_code workflow_named(const struct config *config, const char *name,
                          struct workflow **ret_workflow, struct baton_error *err)
{
    size_t len = 0;
    for (size_t i = 0; i < config->n_workflows; i++) {
        struct workflow *workflow = NULL;
        baton_code rc = workflow_load(config->workflows[i], config, &workflow, NULL, NULL, err);
        if (rc == BATON_OK && strcmp(workflow->name.s, name) == 0) {
            *ret_workflow = workflow;
            return BATON_OK;
        }
        workflow_free(workflow);
    }
    const char *text = workflow_builtin(name, &len);
    if (text == NULL) {
        return baton_fail(err, BATON_E_invalid_request,
                          "no workflow '%s' here: `baton workflow list` names them, on the host of "
                          "the coordinator, which reads `workflows:` at its start and on SIGHUP",
                          text_quote_of(name).s);
    }
    return workflow_parse(name, text, len, config, ret_workflow, NULL, NULL, err);
}

baton_code workflow_may_start(const struct workflow *workflow,
                              const struct workflow_starter *starter, struct wall_ms deadline,
                              struct baton_error *err)
{
    const bool person = starter->person_key && !starter->agent;
    const bool confirmed = starter->person_key && starter->confirmed;
    const char *name = starter->name != NULL ? starter->name : "who asks";
    const char *is = starter->person_key ? "an agent asks with the key of" : "a program is";
    if (!person && workflow->invoke != INVOKE_allow &&
        !(workflow->invoke == INVOKE_ask && confirmed)) {
        return workflow->invoke == INVOKE_ask
                   ? baton_fail(
                         err, BATON_E_confirm_needed,
                         "workflow %s is started by people, or by an agent with a person's key "
                         "once that person has said yes (--confirmed); %s %s",
                         workflow->name.s, is, name)
                   : baton_fail(err, BATON_E_invoke_denied,
                                "workflow %s is started by people; %s %s", workflow->name.s, is,
                                name);
    }
    if (deadline.v > 0 && deadline.v <= wall_now().v) {
        return baton_fail(err, BATON_E_deadline_exceeded, "the run was to be over at %s",
                          wall_text(deadline).s);
    }
    return BATON_OK;
}
