/*
 * Ids: each kind is its own type, so that one cannot pass for another. All end with NUL.
 *
 * Grammar (RECORD.md section 2): ids [a-z0-9._-]{1,64}; services [a-z0-9-]{1,48} but `coordinator`;
 * task ids also upper case, '/', '#', ':'; idempotency keys the same characters, 200 of them.
 * Any thread.
 */
#ifndef BATON_BASE_ID_H
#define BATON_BASE_ID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ID_MAX 64
#define SERVICE_MAX 48
#define KEY_MAX 200
#define DIGEST_LEN 32

struct turn_id {
    char s[32 + 1]; /* 32 lower-case hex digits */
};
struct boot_id {
    char s[32 + 1]; /* 128 random bits, new at each start (protocol rule 1) */
};
struct key_id {
    char s[16 + 1];
};
struct service_id {
    char s[SERVICE_MAX + 1];
};
/* A principal, run, intent, worker or other plain id. */
struct plain_id {
    char s[ID_MAX + 1];
};
struct task_id {
    char s[ID_MAX + 1];
};
struct digest {
    uint8_t b[DIGEST_LEN]; /* SHA-256 */
};

/* text of text_len bytes fits the grammar? */
bool plain_id_valid(const char *text, size_t text_len);
/* A plain id that names a file or a folder: of a worker, coordinator or principal. "." and ".." are other
 * folders, and what begins with a dot is passed over by who lists them. */
bool file_id_valid(const char *text, size_t text_len);
bool service_id_valid(const char *text, size_t text_len);
bool task_id_valid(const char *text, size_t text_len);
bool idempotency_key_valid(const char *text, size_t text_len);
/* Exactly n lower-case hex digits? */
bool hex_valid(const char *text, size_t text_len, size_t n);

/* Copies a text that was checked (contract) into the type. */
struct turn_id turn_id_of(const char *text);
struct service_id service_id_of(const char *text);
struct plain_id plain_id_of(const char *text);
struct task_id task_id_of(const char *text);

/* Writes 2*len lower-case hex digits and NUL. */
void hex_encode(const uint8_t *bytes, size_t len, char *ret_hex);
/* False unless hex_len is 2*len lower-case hex digits. */
bool hex_decode(const char *hex, size_t hex_len, uint8_t *ret_bytes, size_t len);

/* len random bytes from the kernel; stops the program if it has none. */
void random_bytes(void *ret_bytes, size_t len);
struct boot_id boot_id_new(void);
/* len hex digits of randomness and NUL. */
void random_hex(char *ret_hex, size_t len);

#endif
