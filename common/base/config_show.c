/*
 * The configuration shown and documented. Called by `config show`, `config check`, the manual.
 */
#include "common/base/check.h"
#include "common/base/config_load.h"
#include "common/base/jsonw.h"
#include "common/base/quantity.h"
#include "common/base/table.h"
#include "common/base/text.h"

#include <string.h>

static const char *const source_words[] = {"default", "file", "--set"};

static void show_json(const struct config *config, struct buf *out)
{
    struct jsonw w = jsonw_to(out);
    jsonw_begin_object(&w);
    jsonw_key_text(&w, "path", config->path);
    jsonw_key(&w, "settings");
    jsonw_begin_array(&w);
    for (size_t i = 0; i < config->n_settings; i++) {
        jsonw_begin_object(&w);
        jsonw_key_text(&w, "key", config->settings[i].key);
        jsonw_key_text(&w, "value", config->settings[i].value);
        jsonw_key_text(&w, "source", source_words[config->settings[i].source]);
        jsonw_end(&w);
    }
    jsonw_end(&w);
    jsonw_end(&w);
    buf_add_char(out, '\n');
}

static void show_text(const struct config *config, struct buf *out)
{
    static const char *const titles[] = {"KEY", "VALUE", "SOURCE"};
    struct table *table = table_new(titles, COUNT_OF(titles));
    if (table == NULL) {
        out->broken = true;
        return;
    }
    for (size_t i = 0; i < config->n_settings; i++) {
        const struct config_setting *setting = &config->settings[i];
        table_text(table, setting->key);
        table_text(table, setting->value[0] != '\0' ? setting->value : NULL);
        table_text(table, source_words[setting->source]);
    }
    buf_add_text(out, "# ");
    text_add(out, config->path, strlen(config->path), 0);
    buf_add_char(out, '\n');
    if (!table_print(table, 0, out)) {
        out->broken = true;
    }
    table_free(table);
}

void config_show(const struct config *config, bool as_json, struct buf *out)
{
    if (as_json) {
        show_json(config, out);
    } else {
        show_text(config, out);
    }
}

static void document_type(const struct config_key *key, struct buf *out)
{
    switch (key->type) {
    case CONFIG_TYPE_WORD:
        for (const char *at = key->words; *at != '\0'; at++) {
            buf_add_text(out, *at == ' ' ? " | " : (char[]){*at, '\0'});
        }
        break;
    case CONFIG_TYPE_BOOL:
        buf_add_text(out, "true | false");
        break;
    case CONFIG_TYPE_COUNT:
        buf_printf(out, "auto | %lld..%lld", (long long)key->min, (long long)key->max);
        break;
    case CONFIG_TYPE_INT:
    case CONFIG_TYPE_REAL:
        buf_printf(out, "%lld..%lld", (long long)key->min, (long long)key->max);
        break;
    case CONFIG_TYPE_DURATION:
        buf_printf(out, "%s..%s", quantity_duration_text(key->min).s,
                   quantity_duration_text(key->max).s);
        break;
    case CONFIG_TYPE_ID:
    case CONFIG_TYPE_PREFIX:
    case CONFIG_TYPE_TEXT:
        buf_add_text(out, "text");
        break;
    case CONFIG_TYPE_PATH:
        buf_add_text(out, "path");
        break;
    case CONFIG_TYPE_LISTEN:
        buf_add_text(out, "address:port");
        break;
    }
}

static void document_text(const char *place, const struct config_key *keys, size_t n,
                          struct buf *out)
{
    for (size_t i = 0; i < n; i++) {
        buf_printf(out, "%s%s  (", place, keys[i].key);
        document_type(&keys[i], out);
        if (keys[i].fallback == NULL) {
            buf_add_text(out, "; required");
        } else if (keys[i].fallback[0] != '\0') {
            buf_printf(out, "; default %s", keys[i].fallback);
        }
        buf_printf(out, ")\n    %s\n", keys[i].help);
    }
}

/* The same as one object a line. */
static void document_json(const char *place, const struct config_key *keys, size_t n,
                          struct buf *out)
{
    for (size_t i = 0; i < n; i++) {
        struct buf text = BUF_INIT;
        struct jsonw w = jsonw_to(out);
        jsonw_begin_object(&w);
        buf_printf(&text, "%s%s", place, keys[i].key);
        jsonw_key_text(&w, "key", buf_ok(&text) ? text.data : NULL);
        buf_clear(&text);
        document_type(&keys[i], &text);
        jsonw_key_text(&w, "type", buf_ok(&text) ? text.data : NULL);
        jsonw_key_bool(&w, "required", keys[i].fallback == NULL);
        const bool some = keys[i].fallback != NULL && keys[i].fallback[0] != '\0';
        jsonw_key_text(&w, "default", some ? keys[i].fallback : NULL);
        jsonw_key_text(&w, "help", keys[i].help);
        jsonw_end(&w);
        buf_add_char(out, '\n');
        out->broken = out->broken || !buf_ok(&text);
        buf_done(&text);
    }
}

static void section_json(const char *key, const char *shape, const char *help, struct buf *out)
{
    struct jsonw w = jsonw_to(out);
    jsonw_begin_object(&w);
    jsonw_key_text(&w, "key", key);
    jsonw_key_text(&w, "type", shape);
    jsonw_key_bool(&w, "required", false);
    jsonw_key_text(&w, "default", NULL);
    jsonw_key_text(&w, "help", help);
    jsonw_end(&w);
    buf_add_char(out, '\n');
}

void config_document(bool json, struct buf *out)
{
    void (*document)(const char *, const struct config_key *, size_t, struct buf *) =
        json ? document_json : document_text;
    static const struct config_key keys[] = {CONFIG_KEYS(CONFIG_ROW)};
    static const struct config_key service_keys[] = {CONFIG_SERVICE_KEYS(CONFIG_ROW)};
    static const struct config_key executor_keys[] = {CONFIG_EXECUTOR_KEYS(CONFIG_ROW)};
    static const struct config_key price_keys[] = {CONFIG_PRICE_KEYS(CONFIG_ROW)};
    static const struct config_key role_keys[] = {CONFIG_ROLE_KEYS(CONFIG_ROW)};
    document("", keys, COUNT_OF(keys), out);
    document("services.<name>.", service_keys, COUNT_OF(service_keys), out);
    document("services.<name>.executor.", executor_keys, COUNT_OF(executor_keys), out);
    document("services.<name>.executor.prices.", price_keys, COUNT_OF(price_keys), out);
    document("roles.<role>.", role_keys, COUNT_OF(role_keys), out);
#define SECTION_JSON(key, shape, help) section_json(key, shape, help, out);
#define SECTION_TEXT(key, shape, help) key "  " shape "\n    " help "\n"
    if (json) {
        CONFIG_SECTIONS(SECTION_JSON)
    } else {
        buf_add_text(out, CONFIG_SECTIONS(SECTION_TEXT));
    }
#undef SECTION_TEXT
#undef SECTION_JSON
}
