/* Key files. Called by signer.c, trust.c and the keys commands. */
#include "common/record/keyfile.h"

#include "common/base/limits.h"
#include "common/base/safe_file.h"
#include "common/base/text.h"
#include "common/record/passphrase.h"
#include "common/record/proof.h"

#include <openssl/bio.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool keyfile_id(struct evp_pkey_st *pair, struct key_id *ret_id)
{
    unsigned char *der = NULL;
    int len = i2d_PUBKEY(pair, &der);
    if (len <= 0) {
        return false;
    }
    struct digest digest = digest_of(der, (size_t)len);
    hex_encode(digest.b, 8, ret_id->s);
    OPENSSL_free(der);
    return true;
}

void keyfile_free(struct evp_pkey_st *pair)
{
    EVP_PKEY_free(pair);
}

struct asking {
    const char *path;
    bool asked;
    baton_code code; /* why no passphrase came, or ok */
    struct baton_error err;
};

/* OpenSSL asks for a passphrase only where the file is encrypted. */
static int give_passphrase(char *buf, int size, int rwflag, void *arg)
{
    struct asking *asking = arg;
    char text[PASSPHRASE_MAX + 1];
    char prompt[160];
    (void)rwflag;
    /* After a wrong one OpenSSL tries its older reader, which would ask again. */
    if (asking->asked) {
        return -1;
    }
    asking->asked = true;
    snprintf(prompt, sizeof(prompt), "passphrase of %s", text_quote_of(asking->path).s);
    asking->code = passphrase_ask(prompt, false, text, &asking->err);
    if (asking->code != BATON_OK) {
        return -1;
    }
    size_t len = strlen(text);
    if (len <= (size_t)size) {
        memcpy(buf, text, len);
    } else {
        len = 0;
    }
    OPENSSL_cleanse(text, sizeof(text));
    return len == 0 ? -1 : (int)len;
}

static baton_code check_kind(const char *name, EVP_PKEY *key, struct baton_error *err)
{
    if (EVP_PKEY_get_id(key) != EVP_PKEY_ED25519) {
        return baton_fail(err, BATON_E_bad_config, "%s is no Ed25519 key", text_quote_of(name).s);
    }
    return BATON_OK;
}

baton_code keyfile_read_private(const char *path, struct evp_pkey_st **ret_pair,
                                struct baton_error *err)
{
    char pem[LIMIT_KEY_FILE + 1];
    size_t len = 0;
    struct asking asking = {.path = path};
    EVP_PKEY *pair = NULL;
    baton_code rc = safe_read(path, SAFE_secret, LIMIT_KEY_FILE, pem, &len, err);
    if (rc == BATON_OK) {
        BIO *bio = BIO_new_mem_buf(pem, (int)len);
        pair = bio == NULL ? NULL : PEM_read_bio_PrivateKey(bio, NULL, give_passphrase, &asking);
        BIO_free(bio);
        if (asking.code != BATON_OK) {
            rc = baton_fail(err, asking.code, "%s", asking.err.text);
        } else if (pair == NULL) {
            rc = baton_fail(err, BATON_E_bad_config,
                            "%s is no private key in PEM, or its passphrase is another one",
                            text_quote_of(path).s);
        } else {
            rc = check_kind(path, pair, err);
        }
    }
    OPENSSL_cleanse(pem, sizeof(pem));
    if (rc != BATON_OK) {
        EVP_PKEY_free(pair);
        return rc;
    }
    *ret_pair = pair;
    return BATON_OK;
}

static int refuse_passphrase(char *buf, int size, int rwflag, void *arg)
{
    (void)buf;
    (void)size;
    (void)rwflag;
    *(bool *)arg = true;
    return -1;
}

baton_code keyfile_private_id(const char *path, struct key_id *ret_id, bool *ret_encrypted,
                              struct baton_error *err)
{
    char pem[LIMIT_KEY_FILE + 1];
    size_t len = 0;
    bool encrypted = false;
    struct key_id id = {""};
    baton_code rc = safe_read(path, SAFE_secret, LIMIT_KEY_FILE, pem, &len, err);
    if (rc == BATON_OK) {
        BIO *bio = BIO_new_mem_buf(pem, (int)len);
        EVP_PKEY *pair =
            bio == NULL ? NULL : PEM_read_bio_PrivateKey(bio, NULL, refuse_passphrase, &encrypted);
        BIO_free(bio);
        if (!encrypted && (pair == NULL || check_kind(path, pair, NULL) != BATON_OK)) {
            rc = baton_fail(err, BATON_E_bad_config, "%s is no Ed25519 private key in PEM",
                            text_quote_of(path).s);
        } else if (pair != NULL && !keyfile_id(pair, &id)) {
            rc = baton_fail(err, BATON_E_no_memory, "no memory for a key");
        }
        EVP_PKEY_free(pair);
    }
    OPENSSL_cleanse(pem, sizeof(pem));
    if (rc == BATON_OK) {
        *ret_id = id;
        *ret_encrypted = encrypted;
    }
    return rc;
}

baton_code keyfile_read_public(const char *name, const char *pem, size_t pem_len,
                               struct evp_pkey_st **ret_key, struct baton_error *err)
{
    BIO *bio = BIO_new_mem_buf(pem, (int)pem_len);
    EVP_PKEY *key = bio == NULL ? NULL : PEM_read_bio_PUBKEY(bio, NULL, NULL, NULL);
    BIO_free(bio);
    if (key == NULL) {
        return baton_fail(err, BATON_E_bad_config, "%s is no public key in PEM",
                          text_quote_of(name).s);
    }
    baton_code rc = check_kind(name, key, err);
    if (rc != BATON_OK) {
        EVP_PKEY_free(key);
        return rc;
    }
    *ret_key = key;
    return BATON_OK;
}

baton_code keyfile_generate(struct evp_pkey_st **ret_pair, struct baton_error *err)
{
    EVP_PKEY *pair = EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");
    if (pair == NULL) {
        return baton_fail(err, BATON_E_unexpected, "OpenSSL made no Ed25519 key");
    }
    *ret_pair = pair;
    return BATON_OK;
}

baton_code keyfile_write_private(const char *path, struct evp_pkey_st *pair, bool with_passphrase,
                                 bool replace, struct baton_error *err)
{
    char passphrase[PASSPHRASE_MAX + 1] = "";
    char *bytes = NULL;
    baton_code rc = BATON_OK;
    if (with_passphrase) {
        rc = passphrase_ask("new passphrase", true, passphrase, err);
        if (rc != BATON_OK) {
            return rc;
        }
    }
    /* Secure-heap memory or not, the BIO's buffer is cleansed when it is freed. */
    BIO *bio = BIO_new(BIO_s_secmem());
    int ok = bio == NULL ? 0
             : with_passphrase
                 ? PEM_write_bio_PKCS8PrivateKey(bio, pair, EVP_aes_256_cbc(), passphrase,
                                                 (int)strlen(passphrase), NULL, NULL)
                 : PEM_write_bio_PKCS8PrivateKey(bio, pair, NULL, NULL, 0, NULL, NULL);
    OPENSSL_cleanse(passphrase, sizeof(passphrase));
    long len = ok == 1 ? BIO_get_mem_data(bio, &bytes) : 0;
    rc = len > 0 ? safe_write(path, bytes, (size_t)len, 0600, replace, err)
                 : baton_fail(err, BATON_E_unexpected, "OpenSSL could not write a private key");
    BIO_free(bio);
    return rc;
}

baton_code keyfile_write_public(const char *path, struct evp_pkey_st *pair, struct baton_error *err)
{
    char *bytes = NULL;
    BIO *bio = BIO_new(BIO_s_mem());
    long len =
        bio != NULL && PEM_write_bio_PUBKEY(bio, pair) == 1 ? BIO_get_mem_data(bio, &bytes) : 0;
    /* The name holds the key's own id, so an existing file is this key. */
    baton_code rc =
        len > 0 ? safe_write(path, bytes, (size_t)len, 0644, false, err)
                : baton_fail(err, BATON_E_unexpected, "OpenSSL could not write a public key");
    BIO_free(bio);
    return rc == BATON_E_duplicate ? BATON_OK : rc;
}
