/*
 * What the kafka section means: brokers, security, what is passed through. Called by config_check.c
 * once everything is read, and by log drivers for their own findings. What only librdkafka knows is
 * judged by the driver (log_settings_check).
 */
#include "common/base/check.h"
#include "common/base/config_load.h"
#include "common/base/quantity.h"
#include "common/base/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define CLIENT_KEY_MAX 100

/* ---- brokers ---- */

/* Why this is no host:port; NULL if it is one. */
static const char *broker_wrong(const char *text)
{
    const char *colon = strrchr(text, ':');
    int64_t port;
    if (strstr(text, "://") != NULL) {
        return "host:port without a scheme: kafka.security says how the brokers are spoken to";
    }
    if (colon == NULL || colon == text || (strchr(text, ':') != colon && text[0] != '[') ||
        (text[0] == '[' && colon[-1] != ']')) {
        return "host:port, for example kafka-1:9092 or [::1]:9092";
    }
    for (const char *at = text; *at != '\0'; at++) {
        if (*at <= ' ' || *at > '~' || strchr(",\"'\\/@", *at) != NULL) {
            return "host:port, one for each member of the list";
        }
    }
    if (!quantity_int_parse(colon + 1, strlen(colon + 1), &port) || port < 1 || port > 65535) {
        return "host:port, and a port is a number from 1 to 65535";
    }
    return NULL;
}

/* What can be shown of one that is wrong: somebody may have put a password into it. */
static struct text_quote broker_shown(const char *text)
{
    const char *at = strrchr(text, '@');
    const char *host = at != NULL ? at + 1 : text;
    const size_t len = strcspn(host, "?#");
    char shown[TEXT_QUOTE_MAX + 1];
    snprintf(shown, sizeof(shown), "%s%.*s%s", at != NULL ? "***@" : "", (int)len, host,
             host[len] != '\0' ? "***" : "");
    return text_quote_of(shown);
}

static void check_brokers(struct config_loading *loading)
{
    const struct config *c = loading->config;
    const struct yaml_node *list = config_node(loading, "kafka.brokers");
    const struct yaml_node *node = list;
    if (c->log == LOG_KIND_kafka && c->kafka_brokers == NULL) {
        node = node != NULL ? node : config_node(loading, "kafka");
        yaml_found(&loading->findings, node != NULL ? node : config_node(loading, "log"),
                   "log: kafka needs kafka.brokers, [host:port, ...]");
        return;
    }
    if (list == NULL || list->kind != YAML_KIND_list) {
        return;
    }
    for (node = list->first; node != NULL; node = node->next) {
        const char *wrong = node->kind == YAML_KIND_text && node->text_len > 0
                                ? broker_wrong(node->text)
                                : NULL; /* told when it was read */
        if (wrong != NULL) {
            yaml_found(&loading->findings, node, "kafka.brokers: '%s' must be %s",
                       broker_shown(node->text).s, wrong);
        }
    }
}

/* ---- security ---- */

/* These keys have an effect only with such a security. */
static void only_with(struct config_loading *loading, bool effective, const char *const *paths,
                      size_t n, const char *with)
{
    for (size_t i = 0; !effective && i < n; i++) {
        const struct yaml_node *node = config_node(loading, paths[i]);
        if (node != NULL && !node->empty) {
            yaml_found(&loading->findings, node,
                       "%s has no effect with kafka.security: %s; it belongs to %s", paths[i],
                       loading->config->kafka.security, with);
        }
    }
}

static void check_security(struct config_loading *loading)
{
    static const char *const sasl_keys[] = {"kafka.sasl.mechanism", "kafka.sasl.username",
                                            "kafka.sasl.password"};
    static const char *const tls_keys[] = {"kafka.ca", "kafka.certificate", "kafka.key"};
    const struct config *c = loading->config;
    if (c->kafka.security == NULL) {
        return; /* no memory */
    }
    bool sasl = strncmp(c->kafka.security, "sasl_", 5) == 0;
    bool tls = strstr(c->kafka.security, "ssl") != NULL;
    only_with(loading, sasl, sasl_keys, COUNT_OF(sasl_keys), "sasl_ssl and sasl_plaintext");
    only_with(loading, tls, tls_keys, COUNT_OF(tls_keys), "ssl and sasl_ssl");
    if (sasl && (c->kafka.sasl_mechanism[0] == '\0' || c->kafka.sasl_username[0] == '\0' ||
                 c->kafka.sasl_password_file == NULL)) {
        yaml_found(&loading->findings, config_node(loading, "kafka.security"),
                   "kafka.security: %s needs kafka.sasl: {mechanism, username, password: "
                   "{file: PATH}}",
                   c->kafka.security);
    }
    if ((c->kafka.certificate != NULL) != (c->kafka.key != NULL)) {
        const char *there = c->kafka.key != NULL ? "kafka.key" : "kafka.certificate";
        const char *lacks = c->kafka.key != NULL ? "kafka.certificate" : "kafka.key";
        yaml_found(&loading->findings, config_node(loading, there), "%s needs %s beside it", there,
                   lacks);
    }
}

/* ---- what is passed through ---- */

/* A value that `config show` must not print, by the looks of its name. */
static bool secret_key(const char *key)
{
    static const char *const parts[] = {"password", "secret", "jaas",
                                        "token",    ".pem",   "oauthbearer"};
    for (size_t i = 0; i < COUNT_OF(parts); i++) {
        if (strstr(key, parts[i]) != NULL) {
            return true;
        }
    }
    return false;
}

static void check_client(struct config_loading *loading)
{
    const struct yaml_node *map = config_node(loading, "kafka.client");
    if (map == NULL || map->kind != YAML_KIND_map) {
        return;
    }
    for (const struct yaml_node *node = map->first; node != NULL; node = node->next) {
        size_t len = strlen(node->key);
        if (len == 0 || len > CLIENT_KEY_MAX ||
            strspn(node->key, "abcdefghijklmnopqrstuvwxyz0123456789._") != len) {
            yaml_found(&loading->findings, node,
                       "kafka.client: '%s' is no name of a setting of librdkafka, [a-z0-9._]",
                       text_quote_of(node->key).s);
        } else if (secret_key(node->key)) {
            yaml_found(&loading->findings, node,
                       "kafka.client: %s is a secret, and none stands in the configuration; "
                       "kafka.sasl.password.file and kafka.key name files",
                       node->key);
        }
    }
}

void config_check_kafka(struct config_loading *loading)
{
    check_brokers(loading);
    check_security(loading);
    check_client(loading);
}

size_t config_warnings_kafka(const struct config *config, struct buf *lines)
{
    if (config->log != LOG_KIND_kafka || strcmp(config->kafka.security, "sasl_plaintext") != 0) {
        return 0;
    }
    bool plain = strcmp(config->kafka.sasl_mechanism, "PLAIN") == 0;
    buf_printf(lines,
               "%s: kafka.security: sasl_plaintext: %s records go over the network unencrypted; "
               "sasl_ssl protects them\n",
               text_quote_of(config->path).s, plain ? "the password and all" : "all");
    return 1;
}

/* ---- findings of drivers ---- */

void config_pair_found(const struct config_pair *pair, struct buf *findings,
                       struct baton_error *err, const char *format, ...)
{
    char text[256];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    if (err != NULL && err->code == BATON_OK) {
        baton_fail(err, BATON_E_bad_config, "%s: %s", pair->where, text);
    }
    if (findings != NULL) {
        buf_printf(findings, "%s: %s\n", pair->where, text);
    }
}
