/*
 * Key files: Ed25519 pairs as PKCS#8 and SubjectPublicKeyInfo in PEM. Private bytes are cleansed,
 * and never printed. Any thread, but a passphrase is asked on the main thread only.
 */
#ifndef BATON_RECORD_KEYFILE_H
#define BATON_RECORD_KEYFILE_H

#include "baton/code.h"
#include "common/base/buf.h"
#include "common/base/id.h"

#include <stdbool.h>

struct evp_pkey_st; /* OpenSSL's EVP_PKEY */

/* First 16 hex digits of SHA-256 over the DER of the public key. False: no memory. */
bool keyfile_id(struct evp_pkey_st *pair, struct key_id *ret_id);

/* key_unsafe, key_not_found, bad_config (no Ed25519 key), and those of passphrase_ask. */
baton_code keyfile_read_private(const char *path, struct evp_pkey_st **ret_pair,
                                struct baton_error *err);
/* From the text of a public key file; name is for errors. bad_config. */
baton_code keyfile_read_public(const char *name, const char *pem, size_t pem_len,
                               struct evp_pkey_st **ret_key, struct baton_error *err);
/* Who a private key is, without asking for a passphrase. *ret_encrypted: it has one, so its id is
 * not known (ret_id "" then). key_unsafe, key_not_found, bad_config. */
baton_code keyfile_private_id(const char *path, struct key_id *ret_id, bool *ret_encrypted,
                              struct baton_error *err);
void keyfile_free(struct evp_pkey_st *pair);

baton_code keyfile_generate(struct evp_pkey_st **ret_pair, struct baton_error *err);
/* Writes 0600; never over a file unless replace. with_passphrase: asks for one on the terminal
 * first. */
baton_code keyfile_write_private(const char *path, struct evp_pkey_st *pair, bool with_passphrase,
                                 bool replace, struct baton_error *err);
/* Writes 0644, never over a file with another content. */
baton_code keyfile_write_public(const char *path, struct evp_pkey_st *pair,
                                struct baton_error *err);

#endif
