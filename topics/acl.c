/*
 * Who must be allowed what on a Kafka cluster, from the trust folder. Called by cmd_topics_acl and
 * tests.
 *
 * Every name that ends in a service is closed by a dot or a literal, so that the rights of `claude`
 * are none of `claude-review`.
 */
#include "topics/acl.h"

#include "common/base/check.h"

#include <stdlib.h>
#include <string.h>

#define ANYWHERE "*"

#define RESOURCE_WORD(id, word, option) word,
static const char *const resource_words[] = {ACL_RESOURCES(RESOURCE_WORD)};
#undef RESOURCE_WORD
#define RESOURCE_OPTION(id, word, option) option,
static const char *const resource_options[] = {ACL_RESOURCES(RESOURCE_OPTION)};
#undef RESOURCE_OPTION
#define OPERATION_WORD(word) #word,
static const char *const operation_words[] = {ACL_OPERATIONS(OPERATION_WORD)};
#undef OPERATION_WORD
#define REQUEST_WORD(word) #word,
static const char *const request_words[] = {REQUEST_KINDS(REQUEST_WORD)};
#undef REQUEST_WORD

const char *acl_resource_word(enum acl_resource resource)
{
    BATON_PRE((unsigned)resource < ACL_RESOURCE_COUNT);
    return resource_words[resource];
}

const char *acl_resource_option(enum acl_resource resource)
{
    BATON_PRE((unsigned)resource < ACL_RESOURCE_COUNT);
    return resource_options[resource];
}

const char *acl_operation_word(enum acl_operation operation)
{
    BATON_PRE((unsigned)operation < ACL_OPERATION_COUNT);
    return operation_words[operation];
}

/* ---- collecting ---- */

struct maker {
    struct acl_list list;
    const char *prefix;
    const char *principal;
    bool no_memory;
};

static void add(struct maker *maker, enum acl_resource resource, bool prefixed,
                struct topic_name name, enum acl_operation operation, const char *why)
{
    struct acl_list *list = &maker->list;
    if (list->count == list->cap) {
        size_t cap = list->cap == 0 ? 64 : 2 * list->cap;
        struct acl *rights = realloc(list->rights, cap * sizeof(*rights));
        if (rights == NULL) {
            maker->no_memory = true;
            return;
        }
        list->rights = rights;
        list->cap = cap;
    }
    list->rights[list->count++] =
        (struct acl){maker->principal, resource, prefixed, name, operation, why};
}

/* Whoever uses a topic may look at its settings: a wrongly made one is refused before it is used. */
static void topic(struct maker *maker, enum topic_kind kind, const char *service,
                  enum acl_operation operation, const char *why)
{
    bool prefixed = service != NULL && strcmp(service, ANYWHERE) == 0;
    struct topic_name name =
        prefixed ? topic_name_begin(kind, maker->prefix) : topic_name(kind, maker->prefix, service);
    add(maker, ACL_RESOURCE_topic, prefixed, name, operation, why);
    add(maker, ACL_RESOURCE_topic, prefixed, name, ACL_OPERATION_DescribeConfigs,
        "refuses a topic that is wrongly made");
}

/* The group itself, and the transactional ids of its members, a dead one's too. */
static void membership(struct maker *maker, struct topic_name group)
{
    struct topic_name ids = transactional_begin(group.s);
    add(maker, ACL_RESOURCE_group, false, group, ACL_OPERATION_Read, "is a member of its group");
    add(maker, ACL_RESOURCE_transactional, true, ids, ACL_OPERATION_Write,
        "commits, and ends what a dead worker left open");
    add(maker, ACL_RESOURCE_transactional, true, ids, ACL_OPERATION_Describe,
        "finds the coordinator of its transactions");
}

/* Who waits for runs wants to know whether anybody moves them. */
static void looks_at_coordinators(struct maker *maker)
{
    add(maker, ACL_RESOURCE_group, false, group_of_coordinators(maker->prefix),
        ACL_OPERATION_Describe, "sees whether a coordinator runs");
}

/* ---- by right ---- */

static bool any_role(bool (*may)(const struct trust_principal *who, const char *service,
                                 enum role role),
                     const struct trust_principal *who, const char *service)
{
    bool any = false;
    for (int role = 0; role < ROLE_COUNT; role++) {
        any = any || may(who, service, (enum role)role);
    }
    return any;
}

static void of_service(struct maker *maker, const struct trust_principal *who)
{
    const char *name = maker->principal;
    topic(maker, TOPIC_handoff, name, ACL_OPERATION_Read, "takes handoffs");
    topic(maker, TOPIC_handoff, name, ACL_OPERATION_Delete, "trims what it has taken in");
    topic(maker, TOPIC_control, name, ACL_OPERATION_Read, "obeys operators");
    topic(maker, TOPIC_control, name, ACL_OPERATION_Delete, "trims what it has taken in");
    topic(maker, TOPIC_control, name, ACL_OPERATION_Write, "renews leases, reports");
    topic(maker, TOPIC_turns, name, ACL_OPERATION_Read, "restores its turns");
    topic(maker, TOPIC_turns, name, ACL_OPERATION_Write, "writes down its turns");
    topic(maker, TOPIC_dlq, name, ACL_OPERATION_Write, "writes dead letters");
    topic(maker, TOPIC_outcomes, NULL, ACL_OPERATION_Write, "tells what became of turns");
    membership(maker, group_of_workers(maker->prefix, name));
    const char *to;
    for (size_t i = 0; (to = trust_place(who, TRUST_RIGHT_pass, i)) != NULL; i++) {
        if (any_role(trust_may_pass, who, to)) {
            topic(maker, TOPIC_handoff, to, ACL_OPERATION_Write, "passes turns on");
            topic(maker, TOPIC_control, to, ACL_OPERATION_Write,
                  "forwards what is meant for a passed turn");
        }
    }
}

static void of_origin(struct maker *maker, const struct trust_principal *who)
{
    const char *at;
    bool any = false;
    for (size_t i = 0; (at = trust_place(who, TRUST_RIGHT_create, i)) != NULL; i++) {
        if (any_role(trust_may_create, who, at)) {
            any = true;
            topic(maker, TOPIC_handoff, at, ACL_OPERATION_Write, "creates turns");
            topic(maker, TOPIC_control, at, ACL_OPERATION_Write, "cancels its turns");
        }
    }
    if (any) {
        topic(maker, TOPIC_outcomes, NULL, ACL_OPERATION_Read, "waits for what becomes of turns");
    }
}

static void of_operator(struct maker *maker, const struct trust_principal *who)
{
    const char *at;
    for (size_t i = 0; (at = trust_place(who, TRUST_RIGHT_operate, i)) != NULL; i++) {
        bool anywhere = strcmp(at, ANYWHERE) == 0;
        topic(maker, TOPIC_control, at, ACL_OPERATION_Write, "cancels, replays, pauses");
        topic(maker, TOPIC_handoff, at, ACL_OPERATION_Write, "publishes dead letters again");
        topic(maker, TOPIC_turns, at, ACL_OPERATION_Read, "shows turns");
        topic(maker, TOPIC_dlq, at, ACL_OPERATION_Read, "shows dead letters");
        add(maker, ACL_RESOURCE_group, anywhere,
            anywhere ? group_of_workers_begin(maker->prefix) : group_of_workers(maker->prefix, at),
            ACL_OPERATION_Describe, "shows workers and what waits");
        topic(maker, TOPIC_outcomes, NULL, ACL_OPERATION_Read, "waits for answers");
        looks_at_coordinators(maker);
    }
}

static void of_requester(struct maker *maker, const struct trust_principal *who)
{
    bool any = false;
    for (size_t i = 0; i < COUNT_OF(request_words); i++) {
        any = any || trust_may_request(who, request_words[i]);
    }
    if (any) {
        topic(maker, TOPIC_requests, NULL, ACL_OPERATION_Write, "asks for runs");
        topic(maker, TOPIC_runs, NULL, ACL_OPERATION_Read, "shows runs");
        topic(maker, TOPIC_outcomes, NULL, ACL_OPERATION_Read, "waits for answers");
        looks_at_coordinators(maker);
    }
}

static void of_coordinator(struct maker *maker)
{
    topic(maker, TOPIC_requests, NULL, ACL_OPERATION_Read, "takes requests");
    topic(maker, TOPIC_requests, NULL, ACL_OPERATION_Delete, "trims what it has taken in");
    topic(maker, TOPIC_outcomes, NULL, ACL_OPERATION_Read, "learns what became of turns");
    topic(maker, TOPIC_outcomes, NULL, ACL_OPERATION_Write, "answers");
    topic(maker, TOPIC_runs, NULL, ACL_OPERATION_Read, "restores its runs");
    topic(maker, TOPIC_runs, NULL, ACL_OPERATION_Write, "writes down its runs");
    topic(maker, TOPIC_handoff, ANYWHERE, ACL_OPERATION_Write, "creates turns");
    topic(maker, TOPIC_control, ANYWHERE, ACL_OPERATION_Write, "cancels and replays turns");
    topic(maker, TOPIC_dlq_requests, NULL, ACL_OPERATION_Write, "writes dead letters");
    membership(maker, group_of_coordinators(maker->prefix));
}

/* ---- the list ---- */

static int compare(const void *left, const void *right)
{
    const struct acl *a = left;
    const struct acl *b = right;
    int order = strcmp(a->principal, b->principal);
    order = order != 0 ? order : (int)a->resource - (int)b->resource;
    order = order != 0 ? order : strcmp(a->name.s, b->name.s);
    order = order != 0 ? order : (int)a->prefixed - (int)b->prefixed;
    order = order != 0 ? order : (int)a->operation - (int)b->operation;
    return order != 0 ? order : strcmp(a->why, b->why);
}

/* Does an earlier right say the same, or a prefixed one of the same principal more? */
static bool covered(const struct acl_list *list, size_t from, size_t to, const struct acl *acl)
{
    for (size_t i = from; i < to; i++) {
        const struct acl *other = &list->rights[i];
        bool same = other->prefixed == acl->prefixed && strcmp(other->name.s, acl->name.s) == 0;
        bool more = other->prefixed && strlen(other->name.s) <= strlen(acl->name.s) &&
                    strncmp(other->name.s, acl->name.s, strlen(other->name.s)) == 0;
        if (other != acl && other->resource == acl->resource &&
            other->operation == acl->operation && (same ? other < acl : more)) {
            return true;
        }
    }
    return false;
}

/* Sorts, and leaves out what others cover: a cover of a cover covers, too, so marks may be compared
 * with. */
static void tidy(struct acl_list *list)
{
    size_t kept = 0;
    if (list->count > 0) {
        qsort(list->rights, list->count, sizeof(*list->rights), compare);
    }
    for (size_t from = 0; from < list->count;) {
        const char *principal = list->rights[from].principal;
        size_t to = from;
        while (to < list->count && strcmp(list->rights[to].principal, principal) == 0) {
            to++;
        }
        for (size_t i = from; i < to; i++) {
            if (covered(list, from, to, &list->rights[i])) {
                list->rights[i].why = NULL;
            }
        }
        from = to;
    }
    for (size_t i = 0; i < list->count; i++) {
        if (list->rights[i].why != NULL) {
            list->rights[kept++] = list->rights[i];
        }
    }
    list->count = kept;
}

baton_code acl_of_trust(const struct trust *trust, const char *prefix, struct acl_list *ret_list,
                        struct baton_error *err)
{
    struct maker maker = {.prefix = prefix};
    for (size_t i = 0; i < trust_principals(trust); i++) {
        const struct trust_principal *who = trust_principal_at(trust, i);
        maker.principal = trust_principal_name(who);
        if (trust_principal_kind(who) == PRINCIPAL_service) {
            of_service(&maker, who);
        } else {
            of_origin(&maker, who);
            of_operator(&maker, who);
            of_requester(&maker, who);
        }
        if (trust_may_coordinate(who)) {
            of_coordinator(&maker);
        }
    }
    if (maker.no_memory) {
        acl_list_done(&maker.list);
        return baton_fail(err, BATON_E_no_memory, "no memory for the list of rights");
    }
    tidy(&maker.list);
    *ret_list = maker.list;
    return BATON_OK;
}

void acl_list_done(struct acl_list *list)
{
    free(list->rights);
    *list = (struct acl_list){NULL, 0, 0};
}
