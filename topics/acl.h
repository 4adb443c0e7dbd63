/*
 * What each principal of the trust folder must be allowed on a Kafka cluster, and nothing more: the
 * list of RECORD.md section 5, with what Kafka's clients need beside it.
 *
 * Made from names alone: no log is opened. Any thread.
 */
#ifndef BATON_TOPICS_ACL_H
#define BATON_TOPICS_ACL_H

#include "baton/code.h"
#include "common/base/id.h"
#include "common/record/trust.h"
#include "topics/catalogue.h"

#include <stdbool.h>
#include <stddef.h>

/* ACL_RESOURCE(id, word, option): as Kafka names it, and the option of its tool kafka-acls. */
#define ACL_RESOURCES(ACL_RESOURCE)                                                                \
    ACL_RESOURCE(topic, "topic", "--topic")                                                        \
    ACL_RESOURCE(group, "group", "--group")                                                        \
    ACL_RESOURCE(transactional, "transactional-id", "--transactional-id")

#define ACL_RESOURCE_ENUM(id, word, option) ACL_RESOURCE_##id,
enum acl_resource { ACL_RESOURCES(ACL_RESOURCE_ENUM) ACL_RESOURCE_COUNT };
#undef ACL_RESOURCE_ENUM

/* ACL_OPERATION(word): Kafka's own words. Read, Write and Delete include Describe. */
#define ACL_OPERATIONS(ACL_OPERATION)                                                              \
    ACL_OPERATION(Read)                                                                            \
    ACL_OPERATION(Write)                                                                           \
    ACL_OPERATION(Delete)                                                                          \
    ACL_OPERATION(Describe)                                                                        \
    ACL_OPERATION(DescribeConfigs)

#define ACL_OPERATION_ENUM(word) ACL_OPERATION_##word,
enum acl_operation { ACL_OPERATIONS(ACL_OPERATION_ENUM) ACL_OPERATION_COUNT };
#undef ACL_OPERATION_ENUM

struct acl {
    const char *principal; /* the trust folder's */
    enum acl_resource resource;
    bool prefixed; /* every name that begins with name; else that name alone */
    struct topic_name name;
    enum acl_operation operation;
    const char *why; /* what for, in words */
};

struct acl_list {
    struct acl *rights; /* by principal, resource, name, operation */
    size_t count;
    size_t cap;
};

const char *acl_resource_word(enum acl_resource resource);
const char *acl_resource_option(enum acl_resource resource);
const char *acl_operation_word(enum acl_operation operation);

/* The list borrows names from trust. Errors: no_memory. */
baton_code acl_of_trust(const struct trust *trust, const char *prefix, struct acl_list *ret_list,
                        struct baton_error *err);
void acl_list_done(struct acl_list *list);

#endif
