/*
 * One value of the configuration: its type, its default, what is wrong with it. Called by config.c
 * and config_sections.c.
 */
#include "common/base/config_load.h"
#include "common/base/limits.h"
#include "common/base/quantity.h"
#include "common/base/text.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

char *config_copy(struct config_loading *loading, const char *text)
{
    char *copy = strdup(text);
    loading->no_memory = loading->no_memory || copy == NULL;
    return copy;
}

char *config_path(struct config_loading *loading, const char *text)
{
    struct buf path = BUF_INIT;
    if (text[0] == '\0') {
        return NULL;
    }
    if (text[0] != '/') {
        const char *dir = loading->config->dir;
        buf_printf(&path, "%s/", strcmp(dir, "/") == 0 ? "" : dir);
    }
    buf_add_text(&path, strncmp(text, "./", 2) == 0 ? text + 2 : text);
    char *copy = buf_take(&path, NULL);
    loading->no_memory = loading->no_memory || copy == NULL;
    return copy;
}

void *config_array(struct config_loading *loading, size_t n, size_t size)
{
    void *array = n > 0 ? calloc(n, size) : NULL;
    loading->no_memory = loading->no_memory || (n > 0 && array == NULL);
    return array;
}

void config_setting(struct config_loading *loading, const char *path, const char *value,
                    const struct yaml_node *node)
{
    struct config *config = loading->config;
    size_t n = config->n_settings;
    if ((n & (n - 1)) == 0) { /* full at each power of two */
        struct config_setting *more =
            realloc(config->settings, (n == 0 ? 1 : 2 * n) * sizeof(*more));
        if (more == NULL) {
            loading->no_memory = true;
            return;
        }
        config->settings = more;
    }
    enum config_source source = node == NULL           ? CONFIG_SOURCE_default
                                : node->origin == NULL ? CONFIG_SOURCE_file
                                                       : CONFIG_SOURCE_set;
    config->settings[config->n_settings++] =
        (struct config_setting){config_copy(loading, path), config_copy(loading, value), source};
}

static int word_of(const char *list, const char *text)
{
    int i = 0;
    for (const char *at = list; *at != '\0'; i++) {
        size_t n = strcspn(at, " ");
        if (strlen(text) == n && memcmp(at, text, n) == 0) {
            return i;
        }
        at += n + strspn(at + n, " ");
    }
    return -1;
}

static bool prefix_valid(const char *text)
{
    size_t len = strlen(text);
    return len <= SERVICE_MAX && service_id_valid(text, len) && strcmp(text, "dlq") != 0;
}

/* address:port or [address]:port; the address is judged by who binds it. */
static bool listen_valid(const char *text)
{
    const char *colon = strrchr(text, ':');
    int64_t port;
    if (colon == NULL || colon == text ||
        !quantity_int_parse(colon + 1, strlen(colon + 1), &port) || port < 0 || port > 65535) {
        return false;
    }
    bool bracketed = text[0] == '[' && colon[-1] == ']';
    return bracketed || memchr(text, ':', (size_t)(colon - text)) == NULL;
}

static bool printable(const char *text)
{
    size_t len = strlen(text);
    for (size_t i = 0; i < len;) {
        uint32_t point;
        size_t n = text_utf8_next(text + i, len - i, &point);
        if (n == 0 || text_dangerous(point)) {
            return false;
        }
        i += n;
    }
    return true;
}

static bool in_range(const struct config_key *key, int64_t number)
{
    return number >= key->min && number <= key->max;
}

/* Types text as key says. */
static bool value_parse(const struct config_key *key, const char *text, struct config_value *value)
{
    size_t len = strlen(text);
    value->text = text;
    switch (key->type) {
    case CONFIG_TYPE_WORD:
        value->number = word_of(key->words, text);
        return value->number >= 0;
    case CONFIG_TYPE_BOOL:
        value->number = word_of("false true", text);
        return value->number >= 0;
    case CONFIG_TYPE_COUNT:
        if (strcmp(text, "auto") == 0) {
            value->number = 0;
            return true;
        }
        return quantity_int_parse(text, len, &value->number) && in_range(key, value->number);
    case CONFIG_TYPE_INT:
        return quantity_int_parse(text, len, &value->number) && in_range(key, value->number);
    case CONFIG_TYPE_DURATION:
        return quantity_duration_parse(text, len, &value->number) && in_range(key, value->number);
    case CONFIG_TYPE_REAL:
        return quantity_real_parse(text, len, &value->real) && value->real >= (double)key->min &&
               value->real <= (double)key->max;
    case CONFIG_TYPE_ID:
        return plain_id_valid(text, len);
    case CONFIG_TYPE_PREFIX:
        return prefix_valid(text);
    case CONFIG_TYPE_TEXT:
        return len > 0 && len <= (size_t)key->max && printable(text);
    case CONFIG_TYPE_PATH:
        return len > 0 && len < PATH_MAX && printable(text);
    case CONFIG_TYPE_LISTEN:
        return len < 256 && printable(text) && listen_valid(text);
    }
    return false;
}

static void words_with_commas(struct buf *out, const char *words)
{
    for (; *words != '\0'; words++) {
        buf_add_text(out, *words == ' ' ? ", " : (char[]){*words, '\0'});
    }
}

/* What a value of this type looks like, for people. */
static void type_expected(const struct config_key *key, struct buf *out)
{
    switch (key->type) {
    case CONFIG_TYPE_WORD:
        buf_add_text(out, "one of ");
        words_with_commas(out, key->words);
        break;
    case CONFIG_TYPE_BOOL:
        buf_add_text(out, "true or false");
        break;
    case CONFIG_TYPE_COUNT:
    case CONFIG_TYPE_INT:
        buf_printf(out, "%sa whole number from %lld to %lld",
                   key->type == CONFIG_TYPE_COUNT ? "auto or " : "", (long long)key->min,
                   (long long)key->max);
        break;
    case CONFIG_TYPE_DURATION:
        buf_printf(out, "a duration with its unit (500ms, 2s, 20m, 6h, 7d), from %s to %s",
                   quantity_duration_text(key->min).s, quantity_duration_text(key->max).s);
        break;
    case CONFIG_TYPE_REAL:
        buf_printf(out, "a number from %lld to %lld", (long long)key->min, (long long)key->max);
        break;
    case CONFIG_TYPE_ID:
        buf_add_text(out, "an id of [a-z0-9._-], at most 64 characters");
        break;
    case CONFIG_TYPE_PREFIX:
        buf_add_text(out,
                     "a name of [a-z0-9-], at most 48 characters, neither dlq nor coordinator");
        break;
    case CONFIG_TYPE_TEXT:
        buf_printf(out, "a text of 1 to %lld printable bytes", (long long)key->max);
        break;
    case CONFIG_TYPE_PATH:
        buf_add_text(out, "a path");
        break;
    case CONFIG_TYPE_LISTEN:
        buf_add_text(out, "ADDRESS:PORT, for example 127.0.0.1:9464");
        break;
    }
}

static void value_wrong(struct config_loading *loading, const struct config_key *key,
                        const struct yaml_node *node, const char *path)
{
    struct buf expected = BUF_INIT;
    type_expected(key, &expected);
    if (!buf_ok(&expected)) {
        loading->no_memory = true;
    } else if (node == NULL) {
        yaml_found(&loading->findings, NULL, "%s is missing; it must be %s", path, expected.data);
    } else if (node->kind != YAML_KIND_text) {
        yaml_found(&loading->findings, node, "%s must be %s, not a %s", path, expected.data,
                   node->kind == YAML_KIND_map ? "section" : "list");
    } else if (node->empty) {
        yaml_found(&loading->findings, node, "%s has no value; it must be %s", path, expected.data);
    } else {
        yaml_found(&loading->findings, node, "%s must be %s, not '%s'", path, expected.data,
                   text_quote(node->text, node->text_len).s);
    }
    buf_done(&expected);
}

void config_read(struct config_loading *loading, const struct config_key *key,
                 const struct yaml_node *node, const char *path, struct config_value *ret_value)
{
    struct config_value value = {.number = -1, .text = ""};
    bool right;
    if (node == NULL) {
        /* A default of the table is right by itself (a test reads each); "" is "not set". */
        right = key->fallback != NULL &&
                (key->fallback[0] == '\0' || value_parse(key, key->fallback, &value));
    } else {
        right = node->kind == YAML_KIND_text && value_parse(key, node->text, &value);
    }
    if (!right) {
        value_wrong(loading, key, node, path);
        value = (struct config_value){.number = -1, .text = ""};
        if (key->fallback != NULL && key->fallback[0] != '\0') {
            value_parse(key, key->fallback, &value); /* so that later checks see something whole */
        }
    }
    if (key->type == CONFIG_TYPE_PATH && value.text[0] != '\0') {
        char *absolute = config_path(loading, value.text);
        config_setting(loading, path, absolute != NULL ? absolute : "", node);
        free(absolute);
    } else {
        config_setting(loading, path, value.text, node);
    }
    *ret_value = value;
}
