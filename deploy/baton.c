/* The program: the table of its verbs, and nothing else. */
#include "deploy/verbs.h"

static const struct baton_command *const verbs[] = {
    &cmd_init,        &cmd_config, &cmd_dev,      &cmd_doctor, &cmd_topics, &cmd_keys,
    &cmd_publish,     &cmd_worker, &cmd_services, &cmd_turns,  &cmd_dlq,    &cmd_workflow,
    &cmd_coordinator, &cmd_runs,   &cmd_handoff,  &cmd_store,  &cmd_bench,  &cmd_version,
};

int main(int argc, char **argv)
{
    return command_main(verbs, sizeof(verbs) / sizeof(verbs[0]), argc, argv);
}
