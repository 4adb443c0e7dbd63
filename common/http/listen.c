/*
 * Metrics and health over HTTP, by libmicrohttpd: the only file that includes it.
 * In: worker/start.c, producer/coordinator/coordinator.c  Out: common/base/metrics.h, common/http/health.h
 *
 * The socket is made here and handed over, so that an address in use is told as such.
 */
#include "common/http/listen.h"

#include "common/base/buf.h"
#include "common/base/diag.h"
#include "common/base/library.h"
#include "common/base/metrics.h"
#include "common/http/health.h"

#include <arpa/inet.h>
#include <errno.h>
#include <microhttpd.h>
#include <netdb.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CONNECTIONS_MAX 16
#define CONNECTION_BYTES 16384u /* of a request's head; more is refused (431) */
#define IDLE_S 5u
#define HOST_MAX 255
#define BACKLOG 16

struct http_listener {
    struct MHD_Daemon *daemon;
    char host[HOST_MAX + 1]; /* of http.listen, without brackets */
};

/* ---- libmicrohttpd, loaded by the processes that listen (common/base/library.h) ---- */

static struct {
    __typeof__(&MHD_start_daemon) start_daemon;
    __typeof__(&MHD_stop_daemon) stop_daemon;
    __typeof__(&MHD_lookup_connection_value) lookup_connection_value;
    __typeof__(&MHD_create_response_from_buffer) create_response_from_buffer;
    __typeof__(&MHD_add_response_header) add_response_header;
    __typeof__(&MHD_queue_response) queue_response;
    __typeof__(&MHD_destroy_response) destroy_response;
} mhd;

static const struct library_symbol mhd_symbols[] = {
    LIBRARY_SYMBOL(MHD_start_daemon, mhd.start_daemon),
    LIBRARY_SYMBOL(MHD_stop_daemon, mhd.stop_daemon),
    LIBRARY_SYMBOL(MHD_lookup_connection_value, mhd.lookup_connection_value),
    LIBRARY_SYMBOL(MHD_create_response_from_buffer, mhd.create_response_from_buffer),
    LIBRARY_SYMBOL(MHD_add_response_header, mhd.add_response_header),
    LIBRARY_SYMBOL(MHD_queue_response, mhd.queue_response),
    LIBRARY_SYMBOL(MHD_destroy_response, mhd.destroy_response),
};

static struct library mhd_library = {
    .file = "libmicrohttpd.so.12",
    .package = "libmicrohttpd12",
    .key = "http.listen",
    .symbols = mhd_symbols,
    .n_symbols = sizeof(mhd_symbols) / sizeof(mhd_symbols[0]),
};

/* ---- what it says ---- */

struct page {
    unsigned status;
    const char *type;
    struct buf body;
};

static void metrics_page(struct page *page)
{
    metric_set(METRIC_ready, health_look().reason == NULL);
    page->type = "text/plain; version=0.0.4; charset=utf-8";
    metrics_text(&page->body);
}

static void alive_page(struct page *page)
{
    const struct health health = health_look();
    if (health.alive) {
        buf_add_text(&page->body, "ok\n");
        return;
    }
    page->status = MHD_HTTP_SERVICE_UNAVAILABLE;
    buf_printf(&page->body, "the main thread has not come round for %lld s\n",
               (long long)(health.late_ms / 1000));
}

static void ready_page(struct page *page)
{
    const struct health health = health_look();
    if (health.reason == NULL) {
        buf_add_text(&page->body, "ready\n");
        return;
    }
    page->status = MHD_HTTP_SERVICE_UNAVAILABLE;
    buf_printf(&page->body, "not ready: %s\n", health.reason);
}

static const struct {
    const char *path;
    void (*fill)(struct page *page);
} pages[] = {
    {"/metrics", metrics_page},
    {"/healthz", alive_page},
    {"/readyz", ready_page},
};

/* ---- whom it answers ---- */

static bool is_address(const char *host)
{
    unsigned char address[sizeof(struct in6_addr)];
    return inet_pton(AF_INET, host, address) == 1 || inet_pton(AF_INET6, host, address) == 1;
}

/* The host of HOST, HOST:PORT, [HOST] or [HOST]:PORT. */
static bool host_of(const char *text, char ret_host[HOST_MAX + 1])
{
    const char *begin = text[0] == '[' ? text + 1 : text;
    const size_t len = text[0] == '[' ? strcspn(begin, "]") : strcspn(begin, ":");
    if (len == 0 || len > HOST_MAX) {
        return false;
    }
    memcpy(ret_host, begin, len);
    ret_host[len] = '\0';
    return true;
}

/* A name that somebody else may have pointed at this address is not ours (DNS rebinding). */
static bool host_is_ours(const struct http_listener *listener, const char *header)
{
    char host[HOST_MAX + 1];
    if (header == NULL) {
        return true; /* HTTP/1.0; a browser always sends one */
    }
    return host_of(header, host) && (is_address(host) || strcasecmp(host, "localhost") == 0 ||
                                     strcasecmp(host, listener->host) == 0);
}

static void refuse(struct page *page, unsigned status, const char *why)
{
    page->status = status;
    buf_clear(&page->body);
    buf_printf(&page->body, "%s\n", why);
}

static void judge(const struct http_listener *listener, struct MHD_Connection *connection,
                  const char *path, const char *method, bool has_body, struct page *page)
{
    if (!host_is_ours(listener, mhd.lookup_connection_value(connection, MHD_HEADER_KIND,
                                                            MHD_HTTP_HEADER_HOST))) {
        refuse(page, MHD_HTTP_FORBIDDEN, "this host is not called so");
        return;
    }
    if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 && strcmp(method, MHD_HTTP_METHOD_HEAD) != 0) {
        refuse(page, MHD_HTTP_METHOD_NOT_ALLOWED, "only GET and HEAD");
        return;
    }
    if (has_body) {
        refuse(page, MHD_HTTP_CONTENT_TOO_LARGE, "no body is taken");
        return;
    }
    for (size_t i = 0; i < sizeof(pages) / sizeof(pages[0]); i++) {
        if (strcmp(path, pages[i].path) == 0) {
            pages[i].fill(page);
            return;
        }
    }
    refuse(page, MHD_HTTP_NOT_FOUND, "there are /metrics, /healthz and /readyz");
}

static bool announces_body(struct MHD_Connection *connection)
{
    const char *length =
        mhd.lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_CONTENT_LENGTH);
    return (length != NULL && strcmp(length, "0") != 0) ||
           mhd.lookup_connection_value(connection, MHD_HEADER_KIND,
                                       MHD_HTTP_HEADER_TRANSFER_ENCODING) != NULL;
}

static enum MHD_Result answer(void *opaque, struct MHD_Connection *connection, const char *path,
                              const char *method, const char *version, const char *body,
                              size_t *body_len, void **of_request)
{
    struct page page = {.status = MHD_HTTP_OK, .type = "text/plain; charset=utf-8"};
    (void)version;
    (void)body;
    (void)of_request;

    judge(opaque, connection, path, method, *body_len != 0 || announces_body(connection), &page);
    if (!buf_ok(&page.body)) {
        buf_done(&page.body);
        return MHD_NO; /* out of memory: the connection is closed */
    }
    size_t len = 0;
    char *text = buf_take(&page.body, &len);
    struct MHD_Response *response =
        mhd.create_response_from_buffer(len, text, MHD_RESPMEM_MUST_FREE);
    if (response == NULL) {
        free(text);
        return MHD_NO;
    }
    mhd.add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, page.type);
    mhd.add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
    if (page.status == MHD_HTTP_METHOD_NOT_ALLOWED) {
        mhd.add_response_header(response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
    }
    enum MHD_Result queued = mhd.queue_response(connection, page.status, response);
    mhd.destroy_response(response);
    return queued;
}

/* ---- where it listens ---- */

static baton_code bound(const char *listen_at, const char *host, const char *port, int *ret_fd,
                        struct baton_error *err)
{
    const struct addrinfo hints = {.ai_family = AF_UNSPEC,
                                   .ai_socktype = SOCK_STREAM,
                                   .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
    struct addrinfo *found = NULL;
    const int failed = getaddrinfo(host, port, &hints, &found);
    if (failed != 0) {
        return baton_fail(err, BATON_E_bad_config, "http.listen: %s: %s", listen_at,
                          gai_strerror(failed));
    }
    const int yes = 1;
    const int fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    const bool good = fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) == 0 &&
                      bind(fd, found->ai_addr, found->ai_addrlen) == 0 && listen(fd, BACKLOG) == 0;
    const int cause = errno;
    freeaddrinfo(found);
    if (good) {
        *ret_fd = fd;
        return BATON_OK;
    }
    if (fd >= 0) {
        close(fd);
    }
    return cause == EADDRINUSE
               ? baton_fail(
                     err, BATON_E_bad_config,
                     "http.listen: %s is taken by another process; give each process of this "
                     "host its own (--set http.listen=ADDRESS:PORT), or port 0",
                     listen_at)
               : baton_fail(err, BATON_E_bad_config, "http.listen: %s: %s", listen_at,
                            strerror(cause));
}

static bool of_this_host(const struct sockaddr_storage *at)
{
    if (at->ss_family == AF_INET) {
        const struct sockaddr_in *four = (const struct sockaddr_in *)at;
        return ntohl(four->sin_addr.s_addr) >> 24 == 127;
    }
    return at->ss_family == AF_INET6 &&
           IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)at)->sin6_addr);
}

static void tell_where(int fd, const char *host)
{
    struct sockaddr_storage at = {0};
    socklen_t len = sizeof(at);
    char port[8] = "";
    if (getsockname(fd, (struct sockaddr *)&at, &len) == 0 &&
        getnameinfo((struct sockaddr *)&at, len, NULL, 0, port, sizeof(port), NI_NUMERICSERV) ==
            0) {
        const bool here = of_this_host(&at);
        diag_line(here ? DIAG_info : DIAG_warn, "http.listening", D_TEXT("host", host),
                  D_TEXT("port", port),
                  D_TEXT("meaning", here ? NULL
                                         : "whoever reaches this address can read the metrics, "
                                           "which name services and workers"));
    }
}

/* Its thread takes no signal: those are the main thread's. */
static struct MHD_Daemon *start(int fd, struct http_listener *listener)
{
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    struct MHD_Daemon *daemon = mhd.start_daemon(
        MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_EPOLL, 0, NULL, NULL, answer, listener,
        MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT, (unsigned)CONNECTIONS_MAX,
        MHD_OPTION_PER_IP_CONNECTION_LIMIT, (unsigned)CONNECTIONS_MAX,
        MHD_OPTION_CONNECTION_TIMEOUT, IDLE_S, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
        (size_t)CONNECTION_BYTES, MHD_OPTION_END);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return daemon;
}

baton_code http_listen(const char *listen, struct http_listener **ret_listener,
                       struct baton_error *err)
{
    const char *colon = strrchr(listen, ':');
    struct http_listener *listener = calloc(1, sizeof(*listener));
    int fd = -1;
    if (listener == NULL) {
        return baton_fail(err, BATON_E_no_memory, "out of memory");
    }
    baton_code rc = BATON_OK;
    if (colon == NULL || !host_of(listen, listener->host)) {
        rc = baton_fail(err, BATON_E_bad_config, "http.listen: '%s' is not ADDRESS:PORT", listen);
    }
    if (rc == BATON_OK) {
        rc = library_load(&mhd_library, err);
    }
    if (rc == BATON_OK) {
        rc = bound(listen, listener->host, colon + 1, &fd, err);
    }
    if (rc == BATON_OK) {
        listener->daemon = start(fd, listener);
        if (listener->daemon == NULL) {
            close(fd);
            rc = baton_fail(err, BATON_E_unexpected, "http.listen: the listener cannot be started");
        }
    }
    if (rc != BATON_OK) {
        free(listener);
        return rc;
    }
    tell_where(fd, listener->host);
    *ret_listener = listener;
    return BATON_OK;
}

void http_close(struct http_listener *listener)
{
    if (listener != NULL) {
        mhd.stop_daemon(listener->daemon); /* closes the socket */
        free(listener);
    }
}
