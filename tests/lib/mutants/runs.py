"""Faults in workflows, runs and the handoff operation (RULES H, S4, S14). Called by table.py."""
FILE, RUN, HANDOFF = "unit/test_workflow_file", "unit/test_run", "unit/test_handoff"
FLEET = "fleet/test_67_runs.py"

ROWS = (
    # ---- the workflow ----
    ("channels_close_loops", "H-10, S14", "producer/workflow/loops.c",
     "    for (size_t k = 0; k < workflow->n_slots; k++) {",
     "    for (size_t i = 0; i < workflow->n_channels; i++) {\n        to[workflow->channels[i].from] |= workflow->channels[i].to;\n    }\n"
     "    for (size_t k = 0; k < workflow->n_slots; k++) {",
     f"{FILE} test_H09_H10_caps"),
    ("broadcast_reaches_oneself", "H-07", "producer/workflow/transitions.c",
     "&workflow->nodes[workflow->slots[i].node] != own ? SLOT_BIT(i) : 0;", "own != NULL ? SLOT_BIT(i) : 0;",
     f"{FILE} test_H06_H07_H26_targets"),
    ("a_loop_without_a_cap_is_endless", "I37", "producer/workflow/loops.c",
     "            one->cap = (int)(2 * workflow->n_slots);", "            one->cap = 0;",
     f"{FILE} test_I16_I37_a_loop_without_a_cap_gets_one"),
    # ---- the operation ----
    ("self_target_by_node", "H-26, S14", "producer/handoff/handoff.c",
     "strcmp(target, slot) == 0", "strncmp(target, slot, strcspn(slot, \".\")) == 0",
     f"{HANDOFF} test_H05_one_transition_fits_or_none"),
    ("undeclared_data_passes", "H-37, S14", "producer/handoff/handoff.c",
     "        if (!declared) {", "        if (!declared && found->hook != NULL) {",
     f"{HANDOFF} test_H37_data_that_a_hook_declares"),
    ("one_more_than_the_cap", "H-09", "producer/handoff/handoff.c",
     "taken >= one->cap) {", "taken > one->cap) {",
     f"{HANDOFF} test_H01_each_stage_refuses_by_its_name"),
    ("a_side_effect_holds_up", "H-33, S14", "producer/handoff/handoff.c",
     "d->ask->hook->code != BATON_OK && hook->class == HOOK_CLASS_validation", "d->ask->hook->code != BATON_OK",
     f"{HANDOFF} test_H14_H30_H33_H38_hooks"),
    ("older_epochs_go_on", "S14", "producer/handoff/handoff.c",
     "turn->epoch != run->epoch", "turn->epoch > run->epoch",
     f"{HANDOFF} test_an_older_epoch_is_refused"),
    ("an_agent_takes_any_transition", "H-05", "producer/handoff/handoff.c",
     "one->on == 0 || ask->actor == HANDOFF_ACTOR_person ||", "one->on == 0 || ask->actor != HANDOFF_ACTOR_workflow ||",
     f"{HANDOFF} test_H05_one_transition_fits_or_none"),
    # ---- the run ----
    ("a_parked_turn_moves_the_task", "R-41, S14", "producer/run/run.c",
     "    if (state == TURN_completed && turn->has_verdict) {", "    if (turn->has_verdict || state == TURN_cancelled) {",
     f"{RUN} test_R41_R52_only_a_verdict_moves_the_task"),
    ("an_ended_run_goes_on", "I10", "producer/run/run.c",
     "!run_state_may_move(run->state, to) || !run_state_open(run->state)", "!run_state_may_move(run->state, to)",
     f"{RUN} test_S4_every_pair_of_states"),
    ("a_taking_counts_twice", "H-11, S14", "producer/run/run.c",
     "    edge->taken++;", "    edge->taken += 2;",
     f"{RUN} test_H47_H48_counters"),
    ("a_touch_forgets_what_was", "H-47", "producer/run/run.c",
     "        run->edges[i].taken = 0;", "        run->edges[i].taken = run->edges[i].total = 0;",
     f"{RUN} test_H47_H48_counters"),
    # ---- the coordinator ----
    ("a_program_starts_what_people_start", "L-05, S12", "producer/coordinator/requests.c",
     "    if (person || workflow->invoke == INVOKE_allow) {", "    if (person || workflow->invoke != INVOKE_ask) {",
     f"{FLEET} test_l05_starts_that_are_refused[local]"),
)
