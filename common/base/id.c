/* Ids: grammar, copies, hex and randomness. Called from everywhere that reads or makes an id. */
#include "common/base/id.h"

#include "common/base/check.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

enum {
    CHAR_LOWER = 1,
    CHAR_UPPER = 2,
    CHAR_DIGIT = 4,
    CHAR_DASH = 8,
    CHAR_DOT = 16,
    CHAR_TASK = 32
};

static unsigned char_kind(unsigned char c)
{
    if (c >= 'a' && c <= 'z') {
        return CHAR_LOWER;
    }
    if (c >= 'A' && c <= 'Z') {
        return CHAR_UPPER;
    }
    if (c >= '0' && c <= '9') {
        return CHAR_DIGIT;
    }
    if (c == '-') {
        return CHAR_DASH;
    }
    if (c == '.' || c == '_') {
        return CHAR_DOT;
    }
    if (c == '/' || c == '#' || c == ':') {
        return CHAR_TASK;
    }
    return 0;
}

static bool made_of(const char *text, size_t text_len, unsigned kinds, size_t max)
{
    if (text_len == 0 || text_len > max) {
        return false;
    }
    for (size_t i = 0; i < text_len; i++) {
        if ((char_kind((unsigned char)text[i]) & kinds) == 0) {
            return false;
        }
    }
    return true;
}

bool plain_id_valid(const char *text, size_t text_len)
{
    return made_of(text, text_len, CHAR_LOWER | CHAR_DIGIT | CHAR_DASH | CHAR_DOT, ID_MAX);
}

bool file_id_valid(const char *text, size_t text_len)
{
    return plain_id_valid(text, text_len) && text[0] != '.';
}

bool service_id_valid(const char *text, size_t text_len)
{
    static const char reserved[] = "coordinator";
    return made_of(text, text_len, CHAR_LOWER | CHAR_DIGIT | CHAR_DASH, SERVICE_MAX) &&
           !(text_len == sizeof(reserved) - 1 && memcmp(text, reserved, text_len) == 0);
}

#define TASK_KINDS (CHAR_LOWER | CHAR_UPPER | CHAR_DIGIT | CHAR_DASH | CHAR_DOT | CHAR_TASK)

bool task_id_valid(const char *text, size_t text_len)
{
    return made_of(text, text_len, TASK_KINDS, ID_MAX);
}

bool idempotency_key_valid(const char *text, size_t text_len)
{
    return made_of(text, text_len, TASK_KINDS, KEY_MAX);
}

bool hex_valid(const char *text, size_t text_len, size_t n)
{
    if (text_len != n) {
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        if (!((text[i] >= '0' && text[i] <= '9') || (text[i] >= 'a' && text[i] <= 'f'))) {
            return false;
        }
    }
    return true;
}

static void copy_checked(char *to, size_t size, const char *text)
{
    size_t len = strlen(text);
    BATON_PRE(len < size);
    memcpy(to, text, len + 1);
}

struct turn_id turn_id_of(const char *text)
{
    struct turn_id id = {""};
    copy_checked(id.s, sizeof(id.s), text);
    return id;
}

struct service_id service_id_of(const char *text)
{
    struct service_id id = {""};
    copy_checked(id.s, sizeof(id.s), text);
    return id;
}

struct plain_id plain_id_of(const char *text)
{
    struct plain_id id = {""};
    copy_checked(id.s, sizeof(id.s), text);
    return id;
}

struct task_id task_id_of(const char *text)
{
    struct task_id id = {""};
    copy_checked(id.s, sizeof(id.s), text);
    return id;
}

void hex_encode(const uint8_t *bytes, size_t len, char *ret_hex)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < len; i++) {
        ret_hex[2 * i] = digits[bytes[i] >> 4];
        ret_hex[2 * i + 1] = digits[bytes[i] & 15];
    }
    ret_hex[2 * len] = '\0';
}

static unsigned hex_digit(char c)
{
    return c <= '9' ? (unsigned)(c - '0') : (unsigned)(c - 'a' + 10);
}

bool hex_decode(const char *hex, size_t hex_len, uint8_t *ret_bytes, size_t len)
{
    if (!hex_valid(hex, hex_len, 2 * len)) {
        return false;
    }
    for (size_t i = 0; i < len; i++) {
        ret_bytes[i] = (uint8_t)(hex_digit(hex[2 * i]) << 4 | hex_digit(hex[2 * i + 1]));
    }
    return true;
}

void random_bytes(void *ret_bytes, size_t len)
{
    BATON_PRE(len <= 256); /* getrandom gives up to 256 bytes whole */
    BATON_INVARIANT(getrandom(ret_bytes, len, 0) == (ssize_t)len);
}

struct boot_id boot_id_new(void)
{
    struct boot_id boot;
    random_hex(boot.s, 32);
    return boot;
}

void random_hex(char *ret_hex, size_t len)
{
    uint8_t bytes[64];
    char hex[sizeof(bytes) * 2 + 1];
    BATON_PRE(len <= sizeof(bytes) * 2);
    random_bytes(bytes, sizeof(bytes));
    hex_encode(bytes, sizeof(bytes), hex);
    memcpy(ret_hex, hex, len);
    ret_hex[len] = '\0';
}
