/*
 * A workflow: who comes after whom. One file of YAML (producer/WORKFLOW.md documents each field and
 * refusal), read once, const afterwards; frozen in a run as its bytes and their digest.
 *
 * A node is a place at a service; its slots are the lanes there, each with one role. A transition leads
 * from one slot to others; an end leads out of the run. Both may answer verdicts. A verdict that
 * nothing answers makes the run wait for a person. Roles are attributes of slots: no transition makes
 * one of another.
 *
 * Owner: who parsed it; any thread may read it.
 */
#ifndef BATON_PRODUCER_WORKFLOW_WORKFLOW_H
#define BATON_PRODUCER_WORKFLOW_WORKFLOW_H

#include "common/base/config.h"
#include "producer/workflow/tbl/words.h"

#define WORKFLOW_NAME_MAX 30  /* node, slot, transition, hook: [a-z0-9_-]; NODE.SLOT is an id */
#define WORKFLOW_SLOTS_MAX 64 /* of all nodes: sets of them are one integer */
#define WORKFLOW_ROWS_MAX 256 /* transitions, ends, hooks, channels */
#define WORKFLOW_FILE_MAX (64 * 1024) /* it travels in the run's record */
#define WORKFLOW_DEADLINE_MAX_MS (90LL * 86400000)

#define WORKFLOW_ENUM(word, meaning) INVOKE_##word,
enum invoke { WORKFLOW_INVOKES(WORKFLOW_ENUM) INVOKE_COUNT };
#undef WORKFLOW_ENUM
#define WORKFLOW_ENUM(word) TASK_STATUS_##word,
enum task_status { TASK_STATUSES(WORKFLOW_ENUM) TASK_STATUS_COUNT };
#undef WORKFLOW_ENUM
#define WORKFLOW_ENUM(word) WORKFLOW_END_##word,
enum workflow_end_kind { WORKFLOW_ENDS(WORKFLOW_ENUM) WORKFLOW_END_COUNT };
#undef WORKFLOW_ENUM
#define WORKFLOW_ENUM(word) HOOK_CLASS_##word,
enum hook_class { HOOK_CLASSES(WORKFLOW_ENUM) HOOK_CLASS_COUNT };
#undef WORKFLOW_ENUM

const char *invoke_word(enum invoke invoke);
const char *task_status_word(enum task_status status);
const char *workflow_end_word(enum workflow_end_kind kind);
const char *hook_class_word(enum hook_class class);

struct workflow_name {
    char s[WORKFLOW_NAME_MAX + 1];
};

/* Sets: bit 1 << index. */
typedef uint64_t slot_set;
typedef unsigned status_set;
#define SLOT_BIT(slot) (UINT64_C(1) << (slot))

struct workflow_node {
    struct workflow_name name;
    struct service_id service; /* "": the first of the role's chain, for each slot */
    size_t first_slot;
    size_t n_slots;
};

struct workflow_slot {
    struct workflow_name name; /* "" where the node has this one only */
    size_t node;
    enum role role;
};

struct workflow_hook {
    struct workflow_name name;
    enum hook_class class;
    char **command; /* argv; [0] is absolute, or found in PATH when the hook runs */
    size_t n_command;
    char **env; /* variables of the coordinator's environment that it may see */
    size_t n_env;
    char **data; /* keys that a handoff's data may have */
    size_t n_data;
    const char *subject; /* one of data: what its handoffs are about stays the same (H-40); NULL */
    int64_t timeout_ms;
    bool enabled;
    bool people_only; /* refused when an agent asks for the handoff */
};

struct workflow_transition {
    struct workflow_name name;
    size_t from;       /* a slot */
    verdict_set on;    /* verdicts of it that take this transition; 0: only when it is asked for */
    char *to;          /* as written: NODE, NODE.SLOT or * */
    slot_set targets;  /* what that means */
    int max_cycles;    /* as written; 0: nothing is */
    int cap;           /* what holds in a run; 0: none, because it closes no loop */
    bool closes_loop;  /* lies on a cycle of transitions; channels do not count (H-10) */
    status_set status; /* statuses of the task in which it may be taken; 0: any */
    const struct workflow_hook *hook; /* NULL: none */
};

struct workflow_end {
    struct workflow_name name;
    size_t from;
    verdict_set on;
    enum workflow_end_kind as;
};

struct workflow_channel {
    size_t from; /* nodes */
    slot_set to; /* slots of the nodes that it names */
};

struct workflow {
    struct plain_id name;
    char *text; /* the file's bytes: what a run freezes */
    size_t text_len;
    char digest[64 + 1]; /* SHA-256 of them, in hex */

    size_t start; /* the slot of the first turn */
    enum invoke invoke;
    int64_t deadline_ms;              /* of a run; 0: none */
    verdict_set verdicts[ROLE_COUNT]; /* what each role may say here */

    struct workflow_node *nodes;
    size_t n_nodes;
    struct workflow_slot slots[WORKFLOW_SLOTS_MAX];
    size_t n_slots;
    struct workflow_transition *transitions;
    size_t n_transitions;
    struct workflow_end *ends;
    size_t n_ends;
    struct workflow_hook *hooks;
    size_t n_hooks;
    struct workflow_channel *channels; /* none: whatever is a transition is permitted (H-08) */
    size_t n_channels;
};

/*
 * Reads text; path is the file's, for messages and for relative commands of hooks. config gives the
 * services that there are and may be NULL. Every mistake is a line `path:line:column: text` in
 * findings, what is legal but surely wrong one in warnings (either may be NULL). bad_config with the
 * first mistake in err; no_memory. Recursion: none. Rules H-05 to H-10, H-26, H-30.
 */
baton_code workflow_parse(const char *path, const char *text, size_t text_len,
                          const struct config *config, struct workflow **ret_workflow,
                          struct buf *findings, struct buf *warnings, struct baton_error *err);
/* The same from a file; bad_config also when it cannot be read. */
baton_code workflow_load(const char *path, const struct config *config,
                         struct workflow **ret_workflow, struct buf *findings, struct buf *warnings,
                         struct baton_error *err);
void workflow_free(struct workflow *workflow);

/* ---- built in ---- */

/* The text of a workflow that every program has (paired-review), or NULL. */
const char *workflow_builtin(const char *name, size_t *ret_len);
/* Their names, one after the other; NULL behind the last. */
const char *workflow_builtin_name(size_t index);

/* ---- questions ---- */

/* NODE, or NODE.SLOT where the node has several; into ret_text. */
struct workflow_slot_text {
    char s[2 * WORKFLOW_NAME_MAX + 2];
};
struct workflow_slot_text workflow_slot_text(const struct workflow *workflow, size_t slot);
/* The service of a slot: the node's, else the first of its role's chain; NULL if there is none. */
const char *workflow_service(const struct workflow *workflow, size_t slot,
                             const struct config *config);
/* What answers this verdict of this slot; NULL: nothing does. At most one of both is not NULL. */
const struct workflow_transition *workflow_transition_on(const struct workflow *workflow,
                                                         size_t slot, enum verdict verdict);
const struct workflow_end *workflow_end_on(const struct workflow *workflow, size_t slot,
                                           enum verdict verdict);
/* Does a channel permit it? Without channels: yes. */
bool workflow_permits(const struct workflow *workflow, size_t from_slot, size_t to_slot);
/* Does this verdict wait for a person when nothing answers it, and rightly so? */
bool verdict_asks_person(enum role role, enum verdict verdict);

/* ---- pictures ---- */

/* For people, for Graphviz, for programs. config (may be NULL) fills in services. */
void workflow_print_text(const struct workflow *workflow, const struct config *config,
                         struct buf *out);
void workflow_print_dot(const struct workflow *workflow, const struct config *config,
                        struct buf *out);
void workflow_print_json(const struct workflow *workflow, const struct config *config,
                         struct buf *out);

#endif
