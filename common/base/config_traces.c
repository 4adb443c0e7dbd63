/*
 * What the traces section means: where spans go, and what may stand in that URL. Called by
 * config_check.c once everything is read.
 */
#include "common/base/check.h"
#include "common/base/config_load.h"
#include "common/base/quantity.h"
#include "common/base/text.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

struct endpoint {
    bool tls;
    const char *host; /* with brackets, where it has them */
    size_t host_len;
};

static const char endpoint_form[] =
    "must be http://HOST[:PORT]/PATH or https://…, for example http://127.0.0.1:4318/v1/traces";

/* Why this is none; NULL if it is one. It is not shown: somebody may have put a password into it. */
static const char *endpoint_parse(const char *text, struct endpoint *ret_endpoint)
{
    struct endpoint endpoint = {.tls = strncasecmp(text, "https://", 8) == 0};
    int64_t port;
    if (!endpoint.tls && strncasecmp(text, "http://", 7) != 0) {
        return endpoint_form;
    }
    endpoint.host = text + (endpoint.tls ? 8 : 7);
    if (strpbrk(endpoint.host, "@?#") != NULL) {
        return "must have neither user, query nor fragment: what is secret stands in "
               "traces.headers.file";
    }
    for (const char *at = endpoint.host; *at != '\0'; at++) {
        if (*at <= ' ' || *at > '~' || strchr("\"'\\<>^`{|}", *at) != NULL) {
            return endpoint_form;
        }
    }
    const size_t len = strcspn(endpoint.host, "/");
    const char *colon = NULL;
    if (endpoint.host[0] == '[') {
        endpoint.host_len = strcspn(endpoint.host, "]") + 1;
        colon = endpoint.host + endpoint.host_len;
    } else {
        endpoint.host_len = strcspn(endpoint.host, ":/");
        colon = endpoint.host + endpoint.host_len;
    }
    const size_t port_len = endpoint.host_len < len ? len - endpoint.host_len - 1 : 0;
    if (endpoint.host_len == 0 || endpoint.host_len > len || endpoint.host[len] != '/' ||
        (endpoint.host_len < len &&
         (*colon != ':' || !quantity_int_parse(colon + 1, port_len, &port) || port < 1 ||
          port > 65535))) {
        return endpoint_form;
    }
    *ret_endpoint = endpoint;
    return NULL;
}

static bool of_this_host(const struct endpoint *endpoint)
{
    return (endpoint->host_len == 9 && strncasecmp(endpoint->host, "localhost", 9) == 0) ||
           (endpoint->host_len == 5 && strncmp(endpoint->host, "[::1]", 5) == 0) ||
           (strncmp(endpoint->host, "127.", 4) == 0 &&
            strspn(endpoint->host, "0123456789.") >= endpoint->host_len);
}

void config_check_traces(struct config_loading *loading)
{
    static const char *const with_endpoint[] = {"traces.headers.file", "traces.ca"};
    const struct config *c = loading->config;
    struct endpoint endpoint = {.tls = true};
    if (c->traces.endpoint != NULL) {
        const char *wrong = endpoint_parse(c->traces.endpoint, &endpoint);
        if (wrong != NULL) {
            yaml_found(&loading->findings, config_node(loading, "traces.endpoint"),
                       "traces.endpoint %s", wrong);
            return;
        }
    }
    for (size_t i = 0; i < COUNT_OF(with_endpoint); i++) {
        const struct yaml_node *node = config_node(loading, with_endpoint[i]);
        if (node != NULL && !node->empty && c->traces.endpoint == NULL) {
            yaml_found(&loading->findings, node, "%s has no effect without traces.endpoint",
                       with_endpoint[i]);
        }
    }
    if (c->traces.ca != NULL && !endpoint.tls) {
        yaml_found(&loading->findings, config_node(loading, "traces.ca"),
                   "traces.ca has no effect with http://; it belongs to https://");
    }
}

size_t config_warnings_traces(const struct config *config, struct buf *lines)
{
    struct endpoint endpoint;
    if (config->traces.endpoint == NULL ||
        endpoint_parse(config->traces.endpoint, &endpoint) != NULL || endpoint.tls ||
        of_this_host(&endpoint)) {
        return 0;
    }
    buf_printf(lines,
               "%s: traces.endpoint: spans, which name services, workers, turns and tasks,%s go "
               "over the network unencrypted; https:// protects them\n",
               text_quote_of(config->path).s,
               config->traces.headers_file != NULL ? " and the headers of traces.headers.file"
                                                   : "");
    return 1;
}
