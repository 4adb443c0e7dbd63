/*
 * Any bytes as a workflow: neither a crash nor a leak; what is refused is told with a place, and what
 * is taken can be drawn and asked. Parts: workflow
 */
#include "common/base/text.h"
#include "producer/workflow/workflow.h"

#include <stdlib.h>
#include <string.h>

static void insist(bool holds)
{
    if (!holds) {
        abort();
    }
}

static void ask(const struct workflow *workflow)
{
    for (size_t slot = 0; slot < workflow->n_slots; slot++) {
        for (int v = 0; v < VERDICT_COUNT; v++) { /* one answer at most */
            insist(workflow_transition_on(workflow, slot, (enum verdict)v) == NULL ||
                   workflow_end_on(workflow, slot, (enum verdict)v) == NULL);
        }
    }
    for (size_t i = 0; i < workflow->n_transitions; i++) {
        const struct workflow_transition *one = &workflow->transitions[i];
        insist(one->targets != 0 && (one->targets & SLOT_BIT(one->from)) == 0);
        insist(one->cap == 0 || one->closes_loop);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct workflow *workflow = NULL;
    struct buf findings = BUF_INIT;
    struct buf drawn = BUF_INIT;
    struct baton_error err = {BATON_OK, ""};
    const baton_code rc = workflow_parse("/f/w.yaml", (const char *)data, size, NULL, &workflow,
                                         &findings, NULL, &err);
    if (rc == BATON_OK) {
        insist(workflow != NULL && findings.len == 0 && workflow->text_len == size);
        ask(workflow);
        workflow_print_text(workflow, NULL, &drawn);
        workflow_print_dot(workflow, NULL, &drawn);
        workflow_print_json(workflow, NULL, &drawn);
        insist(buf_ok(&drawn) && text_utf8_valid(drawn.data, drawn.len));
        workflow_free(workflow);
    } else {
        insist(rc == BATON_E_bad_config && workflow == NULL && findings.len > 0);
        insist(strncmp(findings.data, "/f/w.yaml", 9) == 0 && err.text[0] != '\0');
        for (size_t i = 0; i < findings.len; i++) { /* nothing of the file reaches a terminal raw */
            insist(findings.data[i] == '\n' ||
                   ((unsigned char)findings.data[i] >= 0x20 && findings.data[i] != 0x7f));
        }
    }
    buf_done(&findings);
    buf_done(&drawn);
    return 0;
}
