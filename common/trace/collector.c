/*
 * The HTTP of the exporter, by libcurl: the only file that includes it.
 * In: common/trace/tracer.c  Out: libcurl, loaded by common/base/library.h
 */
#include "common/trace/collector.h"

#include "common/base/check.h"
#include "common/base/library.h"
#include "common/base/safe_file.h"

#include <ctype.h>
#include <curl/curl.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define HEADERS_BYTES_MAX 8192
#define HEADERS_MAX 16
#define ANSWER_BYTES_MAX 65536 /* what it answers is not read; more is cut off */
#define LOOK_MS 500

/* ---- libcurl, loaded by processes that export ---- */

static struct {
    __typeof__(&curl_global_init) global_init;
    __typeof__(&curl_easy_init) easy_init;
    __typeof__(&curl_easy_setopt) easy_setopt;
    __typeof__(&curl_easy_getinfo) easy_getinfo;
    __typeof__(&curl_easy_strerror) easy_strerror;
    __typeof__(&curl_easy_cleanup) easy_cleanup;
    __typeof__(&curl_slist_append) slist_append;
    __typeof__(&curl_slist_free_all) slist_free_all;
    __typeof__(&curl_multi_init) multi_init;
    __typeof__(&curl_multi_cleanup) multi_cleanup;
    __typeof__(&curl_multi_add_handle) multi_add_handle;
    __typeof__(&curl_multi_remove_handle) multi_remove_handle;
    __typeof__(&curl_multi_perform) multi_perform;
    __typeof__(&curl_multi_poll) multi_poll;
    __typeof__(&curl_multi_wakeup) multi_wakeup;
    __typeof__(&curl_multi_info_read) multi_info_read;
    __typeof__(&curl_url) url;
    __typeof__(&curl_url_set) url_set;
    __typeof__(&curl_url_cleanup) url_cleanup;
} lib;

static const struct library_symbol lib_symbols[] = {
    LIBRARY_SYMBOL(curl_global_init, lib.global_init),
    LIBRARY_SYMBOL(curl_easy_init, lib.easy_init),
    LIBRARY_SYMBOL(curl_easy_setopt, lib.easy_setopt),
    LIBRARY_SYMBOL(curl_easy_getinfo, lib.easy_getinfo),
    LIBRARY_SYMBOL(curl_easy_strerror, lib.easy_strerror),
    LIBRARY_SYMBOL(curl_easy_cleanup, lib.easy_cleanup),
    LIBRARY_SYMBOL(curl_slist_append, lib.slist_append),
    LIBRARY_SYMBOL(curl_slist_free_all, lib.slist_free_all),
    LIBRARY_SYMBOL(curl_multi_init, lib.multi_init),
    LIBRARY_SYMBOL(curl_multi_cleanup, lib.multi_cleanup),
    LIBRARY_SYMBOL(curl_multi_add_handle, lib.multi_add_handle),
    LIBRARY_SYMBOL(curl_multi_remove_handle, lib.multi_remove_handle),
    LIBRARY_SYMBOL(curl_multi_perform, lib.multi_perform),
    LIBRARY_SYMBOL(curl_multi_poll, lib.multi_poll),
    LIBRARY_SYMBOL(curl_multi_wakeup, lib.multi_wakeup),
    LIBRARY_SYMBOL(curl_multi_info_read, lib.multi_info_read),
    LIBRARY_SYMBOL(curl_url, lib.url),
    LIBRARY_SYMBOL(curl_url_set, lib.url_set),
    LIBRARY_SYMBOL(curl_url_cleanup, lib.url_cleanup),
};

static baton_code begin(struct baton_error *err)
{
    return lib.global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK
               ? BATON_OK
               : baton_fail(err, BATON_E_bad_config, "traces.endpoint: libcurl cannot be begun");
}

static struct library curl_library = {
    .file = "libcurl.so.4",
    .package = "libcurl4",
    .key = "traces.endpoint",
    .symbols = lib_symbols,
    .n_symbols = COUNT_OF(lib_symbols),
    .begin = begin,
};

/* ---- the file of headers ---- */

struct collector {
    const struct config *config;
    CURL *easy;
    CURLM *multi;
    size_t answered; /* bytes of the answer */
};

static bool append(struct curl_slist **headers, const char *line)
{
    struct curl_slist *grown = lib.slist_append(*headers, line);
    if (grown == NULL) {
        return false;
    }
    *headers = grown;
    return true;
}

/* `Name: value`, and no header of ours. */
static bool header_valid(const char *line)
{
    static const char *const ours[] = {"content-type", "content-length", "host", "expect",
                                       "transfer-encoding"};
    const size_t name = strcspn(line, ":");
    if (name == 0 || line[name] != ':' ||
        strspn(line, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") < name ||
        line[name + 1 + strspn(line + name + 1, " ")] == '\0') {
        return false;
    }
    for (size_t i = 0; i < COUNT_OF(ours); i++) {
        if (strlen(ours[i]) == name && strncasecmp(line, ours[i], name) == 0) {
            return false;
        }
    }
    for (const char *at = line; *at != '\0'; at++) {
        if (*at < ' ' || *at > '~') {
            return false;
        }
    }
    return true;
}

static baton_code add_lines(char *text, const char *path, struct curl_slist **headers,
                            struct baton_error *err)
{
    char *rest = text;
    int count = 0;
    for (int n = 1; rest != NULL && rest[0] != '\0'; n++) {
        char *line = strsep(&rest, "\n");
        const size_t len = strlen(line);
        if (len > 0 && line[len - 1] == '\r') {
            line[len - 1] = '\0';
        }
        if (line[0] == '\0') {
            continue;
        }
        if (++count > HEADERS_MAX || !header_valid(line)) {
            return baton_fail(
                err, BATON_E_bad_config,
                "traces.headers.file %s, line %d: must be `Name: value`, at most %d of them, and "
                "none of Content-Type, Content-Length, Host, Expect, Transfer-Encoding",
                path, n, HEADERS_MAX);
        }
        if (!append(headers, line)) {
            return baton_fail(err, BATON_E_no_memory, "out of memory");
        }
    }
    return BATON_OK;
}

/* Those of the file, which may have been rotated, and ours. */
static baton_code make_headers(const struct collector *collector, struct curl_slist **ret_headers,
                               struct baton_error *err)
{
    const char *path = collector->config->traces.headers_file;
    struct curl_slist *headers = NULL;
    char text[HEADERS_BYTES_MAX + 1];
    size_t len = 0;
    baton_code rc = BATON_OK;
    if (path != NULL) {
        rc = safe_read(path, SAFE_secret, HEADERS_BYTES_MAX, text, &len, err);
        if (rc == BATON_E_key_not_found) {
            rc = baton_fail(err, BATON_E_bad_config,
                            "traces.headers.file: there is no file %.300s; make it (chmod 600), or "
                            "leave the key out",
                            path);
        } else if (rc != BATON_OK) {
            rc = baton_fail_context(err, rc, "traces.headers.file: ");
        }
        if (rc == BATON_OK && strlen(text) != len) {
            rc = baton_fail(err, BATON_E_bad_config, "traces.headers.file %s holds a NUL byte",
                            path);
        }
        if (rc == BATON_OK) {
            rc = add_lines(text, path, &headers, err);
        }
        explicit_bzero(text, sizeof(text));
    }
    if (rc == BATON_OK && (!append(&headers, "Content-Type: application/x-protobuf") ||
                           !append(&headers, "Expect:"))) {
        rc = baton_fail(err, BATON_E_no_memory, "out of memory");
    }
    if (rc != BATON_OK) {
        lib.slist_free_all(headers);
        return rc;
    }
    *ret_headers = headers;
    return BATON_OK;
}

/* ---- open ---- */

static size_t hear(char *bytes, size_t size, size_t n, void *arg)
{
    struct collector *collector = arg;
    (void)bytes;
    collector->answered += size * n;
    return collector->answered <= ANSWER_BYTES_MAX ? size * n : 0;
}

/* What the program starts beside us gets no connection of ours. */
static curl_socket_t open_socket(void *arg, curlsocktype purpose, struct curl_sockaddr *address)
{
    (void)arg;
    (void)purpose;
    return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

static bool url_valid(const char *text)
{
    CURLU *url = lib.url();
    const bool valid = url != NULL && lib.url_set(url, CURLUPART_URL, text, 0) == CURLUE_OK;
    lib.url_cleanup(url);
    return valid;
}

static bool set_up(struct collector *collector)
{
    const struct config *c = collector->config;
    CURL *easy = collector->easy;
    return lib.easy_setopt(easy, CURLOPT_URL, c->traces.endpoint) == CURLE_OK &&
           lib.easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https") == CURLE_OK &&
           lib.easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L) == CURLE_OK &&
           lib.easy_setopt(easy, CURLOPT_PROXY, "") == CURLE_OK &&
           lib.easy_setopt(easy, CURLOPT_NOSIGNAL, 1L) == CURLE_OK &&
           lib.easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L) == CURLE_OK &&
           lib.easy_setopt(easy, CURLOPT_POST, 1L) == CURLE_OK &&
           lib.easy_setopt(easy, CURLOPT_USERAGENT, "baton/" BATON_VERSION) == CURLE_OK &&
           lib.easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)c->traces.timeout_ms) == CURLE_OK &&
           lib.easy_setopt(easy, CURLOPT_WRITEFUNCTION, hear) == CURLE_OK &&
           lib.easy_setopt(easy, CURLOPT_WRITEDATA, collector) == CURLE_OK &&
           lib.easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, open_socket) == CURLE_OK &&
           (c->traces.ca == NULL || /* instead of the system's, not beside them */
            (lib.easy_setopt(easy, CURLOPT_CAINFO, c->traces.ca) == CURLE_OK &&
             lib.easy_setopt(easy, CURLOPT_CAPATH, NULL) == CURLE_OK));
}

baton_code collector_open(const struct config *config, struct collector **ret_collector,
                          struct baton_error *err)
{
    struct curl_slist *headers = NULL;
    baton_code rc = library_load(&curl_library, err);
    if (rc != BATON_OK) {
        return rc;
    }
    if (config->traces.ca != NULL && access(config->traces.ca, R_OK) != 0) {
        return baton_fail(err, BATON_E_bad_config, "traces.ca: %.300s: %s", config->traces.ca,
                          strerror(errno));
    }
    if (!url_valid(config->traces.endpoint)) {
        return baton_fail(err, BATON_E_bad_config,
                          "traces.endpoint is no URL that libcurl can read: look at its host, for "
                          "example http://127.0.0.1:4318/v1/traces");
    }
    struct collector *collector = calloc(1, sizeof(*collector));
    if (collector == NULL) {
        return baton_fail(err, BATON_E_no_memory, "out of memory");
    }
    collector->config = config;
    rc = make_headers(collector, &headers, err); /* what is wrong there is told at the start */
    lib.slist_free_all(headers);
    if (rc == BATON_OK) {
        collector->easy = lib.easy_init();
        collector->multi = lib.multi_init();
        if (collector->easy == NULL || collector->multi == NULL) {
            rc = baton_fail(err, BATON_E_no_memory, "libcurl has no memory");
        } else if (!set_up(collector)) {
            rc = baton_fail(err, BATON_E_bad_config,
                            "traces.endpoint: the libcurl of this machine cannot be set up: it "
                            "wants version 7.87 or newer, with https");
        }
    }
    if (rc != BATON_OK) {
        collector_close(collector);
        return rc;
    }
    *ret_collector = collector;
    return BATON_OK;
}

void collector_close(struct collector *collector)
{
    if (collector == NULL) {
        return;
    }
    if (collector->easy != NULL) {
        lib.easy_cleanup(collector->easy);
    }
    if (collector->multi != NULL) {
        (void)lib.multi_cleanup(collector->multi);
    }
    free(collector);
}

void collector_wake(struct collector *collector)
{
    (void)lib.multi_wakeup(collector->multi);
}

/* ---- send ---- */

/* Until the transfer is over, or given up: false. */
static bool transfer(struct collector *collector, bool (*given_up)(void *arg), void *arg,
                     CURLcode *ret_result)
{
    int running = 1;
    int left = 0;
    while (!given_up(arg)) {
        if (lib.multi_perform(collector->multi, &running) != CURLM_OK) {
            *ret_result = CURLE_OUT_OF_MEMORY;
            return true;
        }
        if (running == 0) {
            const CURLMsg *message = lib.multi_info_read(collector->multi, &left);
            *ret_result = message != NULL ? message->data.result : CURLE_OUT_OF_MEMORY;
            return true;
        }
        (void)lib.multi_poll(collector->multi, NULL, 0, LOOK_MS, NULL);
    }
    return false;
}

/* What the protocol says of statuses: these four are to be sent again, all other failures are not. */
static bool comes_back(long status)
{
    return status == 429 || status == 502 || status == 503 || status == 504;
}

static struct collector_answer judge(const struct collector *collector, CURLcode result)
{
    struct collector_answer answer = {.said = COLLECTOR_later};
    long status = 0;
    curl_off_t wait_s = 0;
    (void)lib.easy_getinfo(collector->easy, CURLINFO_RESPONSE_CODE, &status);
    /* Once its status is there it has decided, whatever becomes of the rest: sent again, spans would be there twice. */
    if (result != CURLE_OK && status < 200) {
        snprintf(answer.why, sizeof(answer.why), "%s%s", lib.easy_strerror(result),
                 result == CURLE_PEER_FAILED_VERIFICATION || result == CURLE_SSL_CACERT_BADFILE
                     ? "; look at traces.ca"
                     : "");
        return answer;
    }
    snprintf(answer.why, sizeof(answer.why), "HTTP status %ld", status);
    if (status >= 200 && status < 300) {
        answer.said = COLLECTOR_took;
    } else if (!comes_back(status)) {
        answer.said = COLLECTOR_refused;
    } else if (lib.easy_getinfo(collector->easy, CURLINFO_RETRY_AFTER, &wait_s) == CURLE_OK &&
               wait_s > 0) {
        answer.wait_ms = (wait_s < 3600 ? wait_s : 3600) * 1000;
    }
    return answer;
}

struct collector_answer collector_send(struct collector *collector, const void *bytes, size_t len,
                                       bool (*given_up)(void *arg), void *arg)
{
    struct collector_answer answer = {.said = COLLECTOR_later};
    struct curl_slist *headers = NULL;
    struct baton_error err;
    CURLcode result = CURLE_OK;
    if (make_headers(collector, &headers, &err) != BATON_OK) {
        snprintf(answer.why, sizeof(answer.why), "%.199s", err.text);
        return answer;
    }
    collector->answered = 0;
    if (lib.easy_setopt(collector->easy, CURLOPT_HTTPHEADER, headers) != CURLE_OK ||
        lib.easy_setopt(collector->easy, CURLOPT_POSTFIELDS, bytes) != CURLE_OK ||
        lib.easy_setopt(collector->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)len) !=
            CURLE_OK ||
        lib.multi_add_handle(collector->multi, collector->easy) != CURLM_OK) {
        snprintf(answer.why, sizeof(answer.why), "libcurl has no memory");
    } else {
        const bool over = transfer(collector, given_up, arg, &result);
        if (over) {
            answer = judge(collector, result);
        } else {
            answer.said = COLLECTOR_stopped;
        }
        (void)lib.multi_remove_handle(collector->multi, collector->easy);
    }
    (void)lib.easy_setopt(collector->easy, CURLOPT_HTTPHEADER, NULL);
    lib.slist_free_all(headers);
    return answer;
}
