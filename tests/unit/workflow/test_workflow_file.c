/* Workflow files: every refusal and warning by its line and column, and what a good one means. */
/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */

#include "common/base/check.h"
#include "producer/workflow/workflow.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATH "/etc/x/w.yaml"

/* Two nodes, the second with two slots; what a test adds comes behind it. */
#define HEAD                                                                                       \
    "version: 1\nname: w\nstart: a\n"                                                              \
    "nodes:\n  a: {role: owner, service: one}\n"                                                   \
    "  b: {service: two, slots: {x: reviewer, y: arbiter}}\n"

static struct workflow *parse(const char *text, const struct config *config, struct buf *findings,
                              struct buf *warnings)
{
    struct workflow *workflow = NULL;
    struct baton_error err = {BATON_OK, ""};
    const baton_code rc =
        workflow_parse(PATH, text, strlen(text), config, &workflow, findings, warnings, &err);
    if (rc != BATON_OK) {
        assert_int_equal(rc, BATON_E_bad_config);
        assert_null(workflow);
        const size_t first = strcspn(findings->data, "\n"); /* the first is the error */
        assert_memory_equal(err.text, findings->data, first < 200 ? first : 200);
    }
    return workflow;
}

static const char *text_in(const struct buf *buf)
{
    assert_true(buf_ok(buf));
    return buf->data != NULL ? buf->data : "";
}

static void refused(const char *text, const char *expected)
{
    struct buf findings = BUF_INIT;
    struct buf warnings = BUF_INIT;
    struct workflow *workflow = parse(text, NULL, &findings, &warnings);
    if (workflow != NULL || strstr(text_in(&findings), expected) == NULL) {
        fail_msg("%s\nexpected: %s\ngot: %s", text, expected, text_in(&findings));
    }
    buf_done(&findings);
    buf_done(&warnings);
}

/* Legal, with this warning (NULL: with none). The caller frees it. */
static struct workflow *warned(const char *text, const char *expected)
{
    struct buf findings = BUF_INIT;
    struct buf warnings = BUF_INIT;
    struct workflow *workflow = parse(text, NULL, &findings, &warnings);
    if (workflow == NULL) {
        fail_msg("%s\nrefused: %s", text, text_in(&findings));
    }
    if (expected == NULL ? warnings.len > 0 : strstr(text_in(&warnings), expected) == NULL) {
        fail_msg("%s\nexpected: %s\ngot: %s", text, expected != NULL ? expected : "no warning",
                 text_in(&warnings));
    }
    buf_done(&findings);
    buf_done(&warnings);
    return workflow;
}

struct row {
    const char *text;
    const char *expected;
};

static const struct row mistakes[] = {
    {"", "w.yaml: version is missing"},
    {"[1]", "a workflow must be a section of keys, not a list"},
    {"version: 2\n", "1:1: version '2' is not known"},
    {HEAD "name: x\n", "the key 'name' stands here twice"},
    {"version: 1\nname: A b\n", "2:1: name: 'A b' is no name"},
    {"version: 1\nname: w\nstart: a\n", "nodes is missing"},
    {HEAD "invoke: maybe\n", "7:1: invoke: 'maybe' is none of allow, ask, deny"},
    {HEAD "deadline: soon\n", "7:1: deadline: 'soon' is no duration from 1s to 90d"},
    {HEAD "deadline: 91d\n", "7:1: deadline: '91d' is no duration"},
    {HEAD "transition: {}\n", "7:1: unknown key 'transition' in a workflow; did you mean "
                              "'transitions'?"},
    {"version: 1\nname: w\nstart: q\nnodes: {a: {role: owner}}\n",
     "3:1: start names 'q', which is no node or slot here"},
    {"version: 1\nname: w\nstart: a\nnodes: {a: {slots: {x: owner, y: owner}}}\n",
     "3:1: start: node 'a' has several slots; name one: a.x"},
    {"version: 1\nname: w\nstart: a\nnodes: {a: {role: boss}}\n",
     "nodes.a.role: 'boss' is none of owner, reviewer, arbiter"},
    {"version: 1\nname: w\nstart: a\nnodes: {a: {}}\n", "4:9: nodes.a is empty"},
    {"version: 1\nname: w\nstart: a\nnodes: {a: {service: s}}\n",
     "nodes.a must have either `role: ROLE` or `slots: {NAME: ROLE, ...}`"},
    {"version: 1\nname: w\nstart: a\nnodes:\n", "4:1: nodes is empty"},
    {"version: 1\nname: w\nstart: a\nnodes: text\n", "nodes must be a section of keys"},
    {"version: 1\nname: w\nstart: a\nnodes: {a: {slots: }}\n", "nodes.a.slots is empty"},
    {HEAD "transitions:\n  t:\n", "8:3: transitions.t is empty"},
    {HEAD "ends:\n  e:\n", "8:3: ends.e is empty"},
    {HEAD "hooks:\n  h:\n", "8:3: hooks.h is empty"},
    {HEAD "channels:\n  - {}\n", "8:5: a row of channels is empty"},
    {"version: 1\nname: w\nstart: a\nnodes: {a: {role: owner, slots: {x: owner}}}\n",
     "nodes.a must have either"},
    {"version: 1\nname: w\nstart: a\nnodes: {a: {slots: {}}}\n", "nodes.a.slots is empty"},
    {"version: 1\nname: w\nstart: a\nnodes: {a: {role: owner, service: 'No'}}\n",
     "nodes.a.service: 'No' is no service"},
    {"version: 1\nname: w\nstart: a\nnodes: {A: {role: owner}}\n", "'A' is no name for a node"},
    /* transitions */
    {HEAD "transitions:\n  t: {to: b.x}\n", "8:3: transitions.t.from is missing"},
    {HEAD "transitions:\n  t: {from: a}\n", "8:3: transitions.t.to is missing"},
    {HEAD "transitions:\n  t: {from: a, to: c}\n",
     "8:16: transitions.t.to names 'c', which is no node or slot here"},
    {HEAD "transitions:\n  t: {from: a, to: b.z}\n", "names 'b.z'"},
    {HEAD "transitions:\n  t: {from: a, to: b.x, when: []}\n", "transitions.t.when is empty"},
    {HEAD "transitions:\n  t: {from: a, to: b.x, when: [don]}\n",
     "transitions.t.when: 'don' is none of"},
    {HEAD "transitions:\n  t: {from: a, to: b.x, when: [done, done]}\n", "names done twice"},
    {HEAD "transitions:\n  t: {from: a, to: b.x, when: [approve]}\n",
     "8:3: transitions.t.when: approve is no verdict of a, whose role is owner"},
    {HEAD "verdicts: {owner: [done]}\ntransitions:\n  t: {from: a, to: b.x, when: [blocked]}\n",
     "blocked is no verdict of a, whose role is owner; `verdicts` left it out"},
    {HEAD "verdicts: {owner: [approve]}\n",
     "verdicts.owner: approve is no verdict of the role owner; a workflow only narrows"},
    {HEAD "transitions:\n  t: {from: a, to: b.x, max_cycles: 0}\n",
     "transitions.t.max_cycles: '0' is no whole number from 1 to 1000"},
    {HEAD "transitions:\n  t: {from: a, to: b.x, max_cycles: many}\n", "'many' is no whole number"},
    {HEAD "transitions:\n  t: {from: a, to: b.x, requires_status: [done]}\n",
     "transitions.t.requires_status: 'done' is none of active, review_ready, in_review"},
    {HEAD "transitions:\n  t: {from: a, to: b.x, hook: h}\n",
     "transitions.t.hook names 'h', which is no hook here"},
    {HEAD "transitions:\n  t: {from: a, to: b.x, role: owner}\n",
     "unknown key 'role' in transitions.t"},
    /* ends */
    {HEAD "ends:\n  e: {from: a, as: completed}\n", "8:3: ends.e.when is missing"},
    {HEAD "ends:\n  e: {from: a, when: [done]}\n", "8:3: ends.e.as is missing"},
    {HEAD "ends:\n  e: {from: a, when: [done], as: cancelled}\n",
     "ends.e.as: 'cancelled' is none of completed, failed"},
    /* hooks */
    {HEAD "hooks:\n  h: {timeout: 1s}\n", "8:3: hooks.h.command is missing"},
    {HEAD "hooks:\n  h: {command: [x], class: strict}\n",
     "hooks.h.class: 'strict' is none of validation, side_effect"},
    {HEAD "hooks:\n  h: {command: [x], timeout: 11m}\n",
     "hooks.h.timeout: '11m' is no duration from 100ms to 10m"},
    {HEAD "hooks:\n  h: {command: [x], enabled: yes}\n", "hooks.h.enabled: 'yes' is none of"},
    {HEAD "hooks:\n  h: {command: [x], env: [BATON_ROLE]}\n",
     "hooks.h.env: 'BATON_ROLE' is no variable that can be handed on"},
    {HEAD "hooks:\n  h: {command: [x], data: [a], subject: b}\n",
     "hooks.h.subject: 'b' is none of the keys of its `data`"},
    {HEAD "hooks:\n  h: {command: [x], subject: b}\n",
     "hooks.h.subject: 'b' is none of the keys of its `data`"},
    {HEAD "hooks:\n  h: {command: [x], data: [from], subject: from}\n",
     "hooks.h.subject: 'from' is none of the keys of its `data`"},
    {HEAD "hooks:\n  h: {command: [x], data: [A b]}\n", "hooks.h.data: 'A b' is no key of data"},
    /* channels */
    {HEAD "channels:\n  - {from: c, to: [b]}\n", "channels.from names 'c'"},
    {HEAD "channels:\n  - {from: a, to: [c]}\n", "channels.to names 'c'"},
    {HEAD "channels:\n  - {from: a}\n", "8:5: channels.to is missing"},
};

static void test_every_mistake_is_told_with_its_place(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(mistakes); i++) {
        refused(mistakes[i].text, mistakes[i].expected);
    }
}

static void test_all_mistakes_at_once(void **state)
{
    struct buf findings = BUF_INIT;
    (void)state;
    assert_null(parse(HEAD "invoke: maybe\ndeadline: soon\ntransitions:\n"
                           "  t: {from: a, to: c}\n  u: {from: c, to: a}\n",
                      NULL, &findings, NULL));
    size_t lines = 0;
    for (const char *at = text_in(&findings); *at != '\0'; at++) {
        lines += *at == '\n';
    }
    assert_int_equal(lines, 4);
    buf_done(&findings);
}

/* What prepared hand-offs will need is refused by its name, not as a slip (H-43: `gate`, too). */
static void test_H43_reserved_keys_are_refused_by_name(void **state)
{
    (void)state;
#define RESERVED_KEY(key) #key,
    static const char *const keys[] = {WORKFLOW_RESERVED(RESERVED_KEY)};
#undef RESERVED_KEY
    for (size_t i = 0; i < COUNT_OF(keys); i++) {
        char text[1024];
        char expected[128];
        snprintf(expected, sizeof(expected), "'%s' is kept for prepared hand-offs", keys[i]);
        snprintf(text, sizeof(text), HEAD "%s: {}\n", keys[i]);
        refused(text, expected);
        snprintf(text, sizeof(text), HEAD "transitions:\n  t: {from: a, to: b.x, %s: 1}\n",
                 keys[i]);
        refused(text, expected);
    }
    /* a node may be called so */
    workflow_free(
        warned("version: 1\nname: w\nstart: report\nnodes: {report: {role: owner}}\n"
               "ends: {e: {from: report, when: [done, done_with_concerns], as: completed}}\n",
               NULL));
}

/* H-05: a verdict and a request have one answer. */
static void test_H05_what_could_mean_two_things_is_refused(void **state)
{
    (void)state;
    refused(HEAD "transitions:\n  t: {from: a, to: b.x, when: [done]}\n"
                 "  u: {from: a, to: b.y, when: [done]}\n",
            "9:3: done of a is answered twice: by 't' and by 'u'");
    refused(HEAD "transitions:\n  t: {from: a, to: b.x, when: [done]}\n"
                 "ends:\n  e: {from: a, when: [done], as: completed}\n",
            "10:3: done of a is answered twice: by 't' and by 'e'");
    refused(HEAD "transitions:\n  t: {from: a, to: b.x}\n  u: {from: a, to: b.x}\n",
            "9:3: transitions 't' and 'u' both lead from a to 'b.x' without a verdict");
}

/* H-06, H-07, H-26: what NODE, NODE.SLOT and * mean, and that none of them is oneself. */
static void test_H06_H07_H26_targets(void **state)
{
    (void)state;
    struct workflow *workflow =
        warned(HEAD "transitions:\n  n: {from: a, to: b}\n  s: {from: a, to: b.y}\n"
                    "  all: {from: b.x, to: '*'}\n  sibling: {from: b.x, to: b}\n",
               "no way leads to an end");
    assert_int_equal(workflow->transitions[0].targets, SLOT_BIT(1) | SLOT_BIT(2));
    assert_int_equal(workflow->transitions[1].targets, SLOT_BIT(2));
    assert_int_equal(workflow->transitions[2].targets, SLOT_BIT(0)); /* not the own node's */
    assert_int_equal(workflow->transitions[3].targets, SLOT_BIT(2)); /* the sibling, not oneself */
    workflow_free(workflow);
    refused(HEAD "transitions:\n  t: {from: a, to: a}\n", "leads back to the sender's own slot");
    refused(HEAD "transitions:\n  t: {from: b.x, to: b.x}\n",
            "leads back to the sender's own slot");
    refused("version: 1\nname: w\nstart: a\nnodes: {a: {role: owner}}\n"
            "transitions: {t: {from: a, to: '*'}}\n",
            "transitions.t.to: there is no other node");
}

/* H-08: without channels all that is declared is permitted, with them what they name. */
static void test_H08_channels(void **state)
{
    (void)state;
    struct workflow *workflow = warned(HEAD "transitions:\n  t: {from: a, to: b.x}\n", "no way");
    assert_true(workflow_permits(workflow, 0, 1));
    workflow_free(workflow);
    workflow = warned(HEAD "transitions:\n  t: {from: a, to: b.x}\n  u: {from: a, to: b.y}\n"
                           "channels:\n  - {from: a, to: [b.x]}\n",
                      "9:3: no channel permits transition 'u' to b.y");
    assert_true(workflow_permits(workflow, 0, 1));
    assert_false(workflow_permits(workflow, 0, 2));
    assert_false(workflow_permits(workflow, 1, 0));
    workflow_free(workflow);
}

/* H-09, H-10: only what closes a loop of transitions is capped. */
static void test_H09_H10_caps(void **state)
{
    (void)state;
    struct workflow *workflow =
        warned(HEAD "transitions:\n  go: {from: a, to: b.x, max_cycles: 1}\n"
                    "channels:\n  - {from: a, to: [b]}\n  - {from: b, to: [a]}\n",
               "8:3: max_cycles of transition 'go' means nothing");
    assert_false(workflow->transitions[0].closes_loop);
    assert_int_equal(workflow->transitions[0].cap, 0);
    workflow_free(workflow);

    workflow = warned(HEAD "transitions:\n  go: {from: a, to: b.x}\n"
                           "  back: {from: b.x, to: a, max_cycles: 3}\n"
                           "  out: {from: b.x, to: b.y}\n",
                      "no way leads to an end");
    assert_true(workflow->transitions[0].closes_loop);
    assert_int_equal(workflow->transitions[0].cap, 0); /* bounded by the way back */
    assert_int_equal(workflow->transitions[1].cap, 3);
    assert_false(workflow->transitions[2].closes_loop);
    workflow_free(workflow);
}

/* FIELD I16, I37: a loop without a cap is told, and bounded all the same by the size of the whole. */
static void test_I16_I37_a_loop_without_a_cap_gets_one(void **state)
{
    (void)state;
    struct workflow *workflow = warned(HEAD "transitions:\n  go: {from: a, to: b.x}\n"
                                            "  back: {from: b.x, to: a}\n",
                                       "9:3: transition 'back' lies on a loop without a cap; it is "
                                       "taken 6 times at most");
    assert_int_equal(workflow->transitions[0].cap, 6);
    assert_int_equal(workflow->transitions[1].cap, 6);
    workflow_free(workflow);
}

static void test_what_is_surely_wrong_is_warned_of(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {HEAD "transitions:\n  t: {from: a, to: b.x, when: [done]}\n",
         "5:3: nothing answers done_with_concerns of a"},
        {HEAD "transitions:\n  t: {from: a, to: b.x, when: [done]}\n",
         "6:3: nothing reaches b.y from the start"},
        {HEAD "hooks:\n  h: {command: [x]}\n", "8:3: no transition has hook 'h'"},
        {HEAD "hooks:\n  h: {command: [x], enabled: false}\n"
              "transitions:\n  t: {from: a, to: b.x, hook: h}\n",
         "8:3: hook 'h' is switched off"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        workflow_free(warned(rows[i].text, rows[i].expected));
    }
}

static void test_hooks(void **state)
{
    (void)state;
    struct workflow *workflow =
        warned(HEAD "hooks:\n"
                    "  near: {command: [./check, -x], env: [GH_TOKEN], data: [x, pr_url], subject: "
                    "pr_url, timeout: 2s}\n"
                    "  far: {command: [/bin/true], class: side_effect, people_only: true}\n"
                    "  found: {command: [true]}\n"
                    "transitions:\n  t: {from: a, to: b.x, hook: near}\n",
               "no transition has hook 'far'");
    const struct workflow_hook *hook = workflow->transitions[0].hook;
    assert_non_null(hook);
    assert_string_equal(hook->name.s, "near");
    assert_string_equal(hook->command[0], "/etc/x/check"); /* beside the file */
    assert_string_equal(hook->command[1], "-x");
    assert_string_equal(hook->env[0], "GH_TOKEN");
    assert_string_equal(hook->data[1], "pr_url");
    assert_ptr_equal(hook->subject, hook->data[1]);
    assert_int_equal(hook->timeout_ms, 2000);
    assert_true(hook->enabled && !hook->people_only && hook->class == HOOK_CLASS_validation);
    assert_true(workflow->hooks[1].class == HOOK_CLASS_side_effect &&
                workflow->hooks[1].people_only);
    assert_string_equal(workflow->hooks[2].command[0], "true");
    assert_null(workflow->hooks[2].subject);
    workflow_free(workflow);
}

static void test_digest_and_text_are_the_file_s(void **state)
{
    (void)state;
    struct workflow *one = warned(HEAD, "no way");
    struct workflow *other = warned(HEAD "# a remark\n", "no way");
    assert_string_equal(one->text, HEAD);
    assert_int_equal(strlen(one->digest), 64);
    assert_string_not_equal(one->digest, other->digest);
    workflow_free(one);
    workflow_free(other);
}

/* The services of nodes against a configuration. */
static void test_services(void **state)
{
    (void)state;
    struct service_id chain = service_id_of("two");
    struct config_service services[2] = {
        {.name = service_id_of("one"), .roles = ROLE_BIT(ROLE_owner)},
        {.name = service_id_of("two"), .roles = ROLE_BIT(ROLE_reviewer)},
    };
    struct config config = {.services = services, .n_services = 2};
    struct buf findings = BUF_INIT;
    config.roles[ROLE_reviewer].chain = &chain;
    config.roles[ROLE_reviewer].n_chain = 1;
    assert_null(parse("version: 1\nname: w\nstart: a\nnodes:\n  a: {role: owner, service: two}\n"
                      "  b: {role: owner, service: three}\n  c: {role: arbiter}\n"
                      "  d: {role: reviewer}\n",
                      &config, &findings, NULL));
    assert_non_null(
        strstr(text_in(&findings), "5:3: nodes.a: service two does not serve the role owner"));
    assert_non_null(
        strstr(text_in(&findings), "6:3: nodes.b: service three is not in the configuration"));
    assert_non_null(strstr(text_in(&findings),
                           "7:3: nodes.c names no service, and the configuration has no "
                           "chain for the role arbiter"));
    assert_null(strstr(text_in(&findings), "nodes.d"));
    buf_done(&findings);
}

static void test_paired_review_is_sound(void **state)
{
    (void)state;
    size_t len = 0;
    struct buf findings = BUF_INIT;
    struct buf warnings = BUF_INIT;
    struct workflow *workflow = NULL;
    const char *text = workflow_builtin("paired-review", &len);
    assert_non_null(text);
    assert_string_equal(workflow_builtin_name(0), "paired-review");
    assert_null(workflow_builtin("paired", &len));
    text = workflow_builtin("paired-review", &len);
    assert_int_equal(
        workflow_parse("paired-review", text, len, NULL, &workflow, &findings, &warnings, NULL),
        BATON_OK);
    assert_string_equal(text_in(&warnings), "");
    assert_true(workflow->invoke == INVOKE_deny);
    const struct workflow_transition *review =
        workflow_transition_on(workflow, workflow->start, VERDICT_done);
    assert_non_null(review);
    const size_t reviewer = (size_t)__builtin_ctzll(review->targets);
    assert_int_equal(workflow->slots[reviewer].role, ROLE_reviewer);
    const struct workflow_transition *changes =
        workflow_transition_on(workflow, reviewer, VERDICT_changes);
    assert_true(changes->closes_loop && changes->cap == 3);
    assert_null(workflow_transition_on(workflow, reviewer, VERDICT_approve));
    assert_int_equal(workflow_end_on(workflow, reviewer, VERDICT_approve)->as,
                     WORKFLOW_END_completed);
    workflow_free(workflow);
    buf_done(&findings);
    buf_done(&warnings);
}

static void test_pictures(void **state)
{
    (void)state;
    struct buf out = BUF_INIT;
    struct workflow *workflow =
        warned(HEAD "transitions:\n"
                    "  go: {from: a, to: b.x, when: [done], requires_status: [active, in_review]}\n"
                    "  back: {from: b.x, to: a, max_cycles: 1}\n"
                    "ends:\n  e: {from: b.y, when: [proceed], as: failed}\n",
               "nothing reaches b.y");
    workflow_print_text(workflow, NULL, &out);
    assert_non_null(strstr(text_in(&out), "start -> a\n\na (owner at one)\n"));
    assert_non_null(strstr(text_in(&out), "-> b.x   (go, if active or in_review)\n"));
    assert_non_null(strstr(text_in(&out), "-> a   (back, at most once)\n"));
    assert_non_null(strstr(text_in(&out), "-> the run is failed   (e)\n"));
    buf_clear(&out);
    workflow_print_dot(workflow, NULL, &out);
    assert_non_null(strstr(text_in(&out),
                           "  \"a\" -> \"b.x\" [label=\"go: done, if active or in_review\"];\n"));
    assert_non_null(strstr(text_in(&out), "style=dashed"));
    buf_clear(&out);
    workflow_print_json(workflow, NULL, &out);
    assert_non_null(strstr(text_in(&out),
                           "\"name\":\"back\",\"from\":\"b.x\",\"when\":[],\"target\":\"a\","
                           "\"to\":[\"a\"],\"closes_loop\":true,\"cap\":1"));
    workflow_free(workflow);
    buf_done(&out);
}

static void test_size_is_bounded(void **state)
{
    (void)state;
    struct buf text = BUF_INIT;
    buf_add_text(&text, "version: 1\nname: w\nstart: n0\nnodes:\n");
    for (int i = 0; i <= WORKFLOW_SLOTS_MAX; i++) {
        buf_printf(&text, "  n%d: {role: owner}\n", i);
    }
    assert_true(buf_ok(&text));
    refused(text.data, "there are more than 64 slots");
    buf_clear(&text);
    while (text.len <= WORKFLOW_FILE_MAX && buf_ok(&text)) {
        buf_add_text(&text, "# a remark that goes on and on\n");
    }
    refused(text.data, "the file is larger than 64 KiB");
    buf_done(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_mistake_is_told_with_its_place),
        cmocka_unit_test(test_all_mistakes_at_once),
        cmocka_unit_test(test_H43_reserved_keys_are_refused_by_name),
        cmocka_unit_test(test_H05_what_could_mean_two_things_is_refused),
        cmocka_unit_test(test_H06_H07_H26_targets),
        cmocka_unit_test(test_H08_channels),
        cmocka_unit_test(test_H09_H10_caps),
        cmocka_unit_test(test_I16_I37_a_loop_without_a_cap_gets_one),
        cmocka_unit_test(test_what_is_surely_wrong_is_warned_of),
        cmocka_unit_test(test_hooks),
        cmocka_unit_test(test_digest_and_text_are_the_file_s),
        cmocka_unit_test(test_services),
        cmocka_unit_test(test_paired_review_is_sound),
        cmocka_unit_test(test_pictures),
        cmocka_unit_test(test_size_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
