/*
 * The rights of a principal: read from its file, asked, and told as sentences. Called by
 * trust_load.c, receipt.c, the keys commands and whoever prints ACLs.
 */
#include "common/base/check.h"
#include "common/base/text.h"
#include "common/base/word.h"
#include "common/record/trust_data.h"

#include <stdlib.h>
#include <string.h>

#define REQUEST_WORD(word) #word,
static const char *const request_words[] = {REQUEST_KINDS(REQUEST_WORD)};
#undef REQUEST_WORD
static const char *const kind_words[] = {"service", "program", "person"};

/* The rights, and which kinds of principal may have them. */
static const char *const right_keys[] = {"kind",    "serve",   "pass",      "create",
                                         "operate", "request", "coordinate"};
static const struct {
    const char *key;
    const char *kinds;
} right_kinds[] = {
    {"serve", "service"},          {"pass", "service"},           {"create", "program person"},
    {"operate", "program person"}, {"request", "program person"}, {"coordinate", "program"},
};

const char *principal_kind_word(enum principal_kind kind)
{
    BATON_PRE((unsigned)kind < COUNT_OF(kind_words));
    return kind_words[kind];
}

void trust_principal_done(struct trust_principal *who)
{
    free(who->create);
    free(who->pass);
    free(who->operate);
    memset(who, 0, sizeof(*who));
}

/* ---- reading ---- */

/* A list of words; a single word counts as a list of one. Calls take for each text. */
typedef bool take_word(struct yaml_findings *findings, const struct yaml_node *node, void *arg);

static bool each_word(struct yaml_findings *findings, const struct yaml_node *node, take_word *take,
                      void *arg)
{
    if (node->kind != YAML_KIND_list) {
        yaml_found(findings, node, "%s must be a list, like [a, b]", text_quote_of(node->key).s);
        return true;
    }
    for (const struct yaml_node *item = node->first; item != NULL; item = item->next) {
        if (item->kind != YAML_KIND_text) {
            yaml_found(findings, item, "a word is due here");
        } else if (!take(findings, item, arg)) {
            return false;
        }
    }
    return true;
}

static bool take_role(struct yaml_findings *findings, const struct yaml_node *node, void *arg)
{
    role_set *roles = arg;
    enum role role;
    if (!role_parse(node->text, node->text_len, &role)) {
        yaml_found(findings, node, "'%s' is no role; roles are: %s", text_quote_of(node->text).s,
                   role_list());
    } else {
        *roles |= ROLE_BIT(role);
    }
    return true;
}

static bool take_request(struct yaml_findings *findings, const struct yaml_node *node, void *arg)
{
    unsigned *requests = arg;
    int i = word_find(request_words, COUNT_OF(request_words), node->text, node->text_len);
    if (i < 0) {
        const char *near = word_nearest(request_words, COUNT_OF(request_words), node->text);
        yaml_found(findings, node, "'%s' is no kind of request%s%s", text_quote_of(node->text).s,
                   near != NULL ? "; did you mean " : "", near != NULL ? near : "");
    } else {
        *requests |= 1u << (unsigned)i;
    }
    return true;
}

static bool service_or_any(const char *text, size_t len, bool any)
{
    return service_id_valid(text, len) || (any && len == 1 && text[0] == '*');
}

static bool take_operate(struct yaml_findings *findings, const struct yaml_node *node, void *arg)
{
    struct trust_principal *who = arg;
    if (!service_or_any(node->text, node->text_len, true)) {
        yaml_found(findings, node, "'%s' is neither a service nor '*'",
                   text_quote_of(node->text).s);
        return true;
    }
    struct service_id *operate = realloc(who->operate, (who->n_operate + 1) * sizeof(operate[0]));
    if (operate == NULL) {
        return false;
    }
    who->operate = operate;
    who->operate[who->n_operate++] = service_id_of(node->text);
    return true;
}

/* {service: [roles]} */
static bool read_grants(struct yaml_findings *findings, const struct yaml_node *node, bool any,
                        struct grant **ret_grants, size_t *ret_count)
{
    if (node->kind != YAML_KIND_map) {
        yaml_found(findings, node, "%s must be a map, like {codex-review: [reviewer]}", node->key);
        return true;
    }
    struct grant *grants = calloc(node->count + 1, sizeof(grants[0]));
    size_t count = 0;
    if (grants == NULL) {
        return false;
    }
    for (const struct yaml_node *item = node->first; item != NULL; item = item->next) {
        if (!service_or_any(item->key, strlen(item->key), any)) {
            yaml_found(findings, item, "'%s' is no service%s", text_quote_of(item->key).s,
                       any ? ", nor '*'" : "");
            continue;
        }
        grants[count].service = service_id_of(item->key);
        if (!each_word(findings, item, take_role, &grants[count].roles)) {
            free(grants);
            return false;
        }
        count++;
    }
    *ret_grants = grants;
    *ret_count = count;
    return true;
}

static void check_kinds(const struct yaml_node *root, struct yaml_findings *findings,
                        const struct trust_principal *who)
{
    for (size_t i = 0; i < COUNT_OF(right_kinds); i++) {
        const struct yaml_node *node = yaml_member(root, right_kinds[i].key);
        if (node != NULL && !word_in_list(right_kinds[i].kinds, principal_kind_word(who->kind))) {
            yaml_found(findings, node, "a %s cannot have the right `%s`",
                       principal_kind_word(who->kind), right_kinds[i].key);
        }
    }
}

static bool read_kind(const struct yaml_node *root, struct yaml_findings *findings,
                      struct trust_principal *who)
{
    const struct yaml_node *node = yaml_member(root, "kind");
    int i = node == NULL || node->kind != YAML_KIND_text
                ? -1
                : word_find(kind_words, COUNT_OF(kind_words), node->text, node->text_len);
    if (i < 0) {
        yaml_found(findings, node, "kind must be service, program or person");
        return false;
    }
    who->kind = (enum principal_kind)i;
    if (who->kind == PRINCIPAL_service && !service_id_valid(who->name.s, strlen(who->name.s))) {
        yaml_found(findings, node, "'%s' is no name of a service, [a-z0-9-]{1,48} but coordinator",
                   who->name.s);
    }
    return true;
}

bool trust_rights_read(const struct yaml_node *root, struct yaml_findings *findings,
                       struct trust_principal *who)
{
    const struct yaml_node *node;
    if (root->kind != YAML_KIND_map) {
        yaml_found(findings, root, "a map with kind and rights is due here");
        return true;
    }
    yaml_only_keys(findings, root, "a principal", right_keys, COUNT_OF(right_keys));
    if (read_kind(root, findings, who)) {
        check_kinds(root, findings, who);
    }
    if ((node = yaml_member(root, "coordinate")) != NULL) {
        if (node->kind != YAML_KIND_text ||
            (strcmp(node->text, "true") != 0 && strcmp(node->text, "false") != 0)) {
            yaml_found(findings, node, "coordinate must be true or false");
        } else {
            who->coordinate = strcmp(node->text, "true") == 0;
        }
    }
    return ((node = yaml_member(root, "serve")) == NULL ||
            each_word(findings, node, take_role, &who->serve)) &&
           ((node = yaml_member(root, "request")) == NULL ||
            each_word(findings, node, take_request, &who->requests)) &&
           ((node = yaml_member(root, "operate")) == NULL ||
            each_word(findings, node, take_operate, who)) &&
           ((node = yaml_member(root, "create")) == NULL ||
            read_grants(findings, node, true, &who->create, &who->n_create)) &&
           ((node = yaml_member(root, "pass")) == NULL ||
            read_grants(findings, node, false, &who->pass, &who->n_pass));
}

/* ---- asking ---- */

static bool granted(const struct grant *grants, size_t count, const char *service, enum role role)
{
    for (size_t i = 0; i < count; i++) {
        const char *at = grants[i].service.s;
        if ((grants[i].roles & ROLE_BIT(role)) != 0 &&
            (strcmp(at, TRUST_ANYWHERE) == 0 || strcmp(at, service) == 0)) {
            return true;
        }
    }
    return false;
}

bool trust_may_create(const struct trust_principal *who, const char *service, enum role role)
{
    return who != NULL && who->kind != PRINCIPAL_service &&
           granted(who->create, who->n_create, service, role);
}

bool trust_may_create_any(const struct trust_principal *who)
{
    bool any = false;
    for (size_t i = 0; who != NULL && who->kind != PRINCIPAL_service && i < who->n_create; i++) {
        any = any || who->create[i].roles != 0;
    }
    return any;
}

bool trust_may_serve(const struct trust_principal *who, enum role role)
{
    return who != NULL && who->kind == PRINCIPAL_service && (who->serve & ROLE_BIT(role)) != 0;
}

bool trust_may_pass(const struct trust_principal *who, const char *to, enum role role)
{
    return who != NULL && who->kind == PRINCIPAL_service &&
           granted(who->pass, who->n_pass, to, role);
}

bool trust_may_operate(const struct trust_principal *who, const char *service)
{
    for (size_t i = 0; who != NULL && who->kind != PRINCIPAL_service && i < who->n_operate; i++) {
        if (strcmp(who->operate[i].s, TRUST_ANYWHERE) == 0 ||
            strcmp(who->operate[i].s, service) == 0) {
            return true;
        }
    }
    return false;
}

bool trust_may_operate_any(const struct trust_principal *who)
{
    return who != NULL && who->kind != PRINCIPAL_service && who->n_operate > 0;
}

bool trust_may_coordinate(const struct trust_principal *who)
{
    return who != NULL && who->kind == PRINCIPAL_program && who->coordinate;
}

bool trust_may_request(const struct trust_principal *who, const char *kind)
{
    int i = word_find(request_words, COUNT_OF(request_words), kind, strlen(kind));
    return who != NULL && who->kind != PRINCIPAL_service && i >= 0 &&
           (who->requests & 1u << (unsigned)i) != 0;
}

const char *trust_place(const struct trust_principal *who, enum trust_right right, size_t i)
{
    switch (right) {
    case TRUST_RIGHT_create:
        return i < who->n_create ? who->create[i].service.s : NULL;
    case TRUST_RIGHT_pass:
        return i < who->n_pass ? who->pass[i].service.s : NULL;
    case TRUST_RIGHT_operate:
        return i < who->n_operate ? who->operate[i].s : NULL;
    }
    return NULL;
}

/* ---- telling ---- */

static void add_roles(struct buf *out, role_set roles)
{
    bool first = true;
    for (int r = 0; r < ROLE_COUNT; r++) {
        if ((roles & ROLE_BIT(r)) != 0) {
            buf_printf(out, "%s%s", first ? "" : ", ", role_word((enum role)r));
            first = false;
        }
    }
    if (first) {
        buf_add_text(out, "nothing");
    }
}

static const char *place(const char *service)
{
    return strcmp(service, TRUST_ANYWHERE) == 0 ? "every service" : service;
}

void trust_rights(const struct trust_principal *who, struct buf *out)
{
    const char *name = who->name.s;
    if (who->serve != 0) {
        buf_printf(out, "%s may serve ", name);
        add_roles(out, who->serve);
        buf_add_char(out, '\n');
    }
    for (size_t i = 0; i < who->n_pass; i++) {
        buf_printf(out, "%s may pass ", name);
        add_roles(out, who->pass[i].roles);
        buf_printf(out, " to %s\n", who->pass[i].service.s);
    }
    for (size_t i = 0; i < who->n_create; i++) {
        buf_printf(out, "%s may create ", name);
        add_roles(out, who->create[i].roles);
        buf_printf(out, " at %s\n", place(who->create[i].service.s));
    }
    for (size_t i = 0; i < who->n_operate; i++) {
        buf_printf(out, "%s may operate %s\n", name, place(who->operate[i].s));
    }
    for (size_t i = 0; i < COUNT_OF(request_words); i++) {
        if ((who->requests & 1u << i) != 0) {
            buf_printf(out, "%s may ask to %s\n", name, request_words[i]);
        }
    }
    if (who->coordinate) {
        buf_printf(out, "%s may coordinate runs\n", name);
    }
}
